"""The shape of a relation's wordings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """say: clauses that state the fact; new: the same, with the news that it has just begun.

    ask: "question | answer", the question to the person, the answer elliptical or not; noun: noun phrases that state
    it in passing; end: clauses that say that it is over (no fact any more); void: the speaker's sentences that
    mention a value without stating anything about a person: questions, wishes, what-ifs, films, other people's talk.
    """

    say: tuple[str, ...]
    new: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    noun: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    void: tuple[str, ...] = ()


def lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines() if line.strip())
