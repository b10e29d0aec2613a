"""What every corpus loader returns: dialogues of dated sessions, and an account of what could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["user", "assistant", "system", ""]


@dataclass(frozen=True)
class Turn:
    """One message. id: unique in its dialogue; speaker: the label that an extractor sees; role: who that is in an
    assistant's chat, "" between people; labels: what the corpus's annotators said about this turn."""

    id: str
    speaker: str
    text: str
    role: Role = ""
    labels: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Session:
    """Turns that were said on one occasion. date: as ISO 8601 says it (`2023-05-08` or `2023-05-08T13:56`), "" where
    the corpus does not tell."""

    id: str
    date: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class Dialogue:
    """A conversation over one session or several.

    id: unique in its corpus. group: the persona or the conversation that no split may cut in two (dialogues of one
    persona share it). labels: what annotators said about the whole (personas, questions, memory points), in the
    corpus's own words.
    """

    id: str
    corpus: str
    group: str
    sessions: tuple[Session, ...]
    labels: Mapping[str, Any] = field(default_factory=dict)

    def turns(self) -> Iterator[Turn]:
        """Every turn, in order."""
        for session in self.sessions:
            yield from session.turns


@dataclass
class Loaded:
    """A corpus as it was read. files: read, relative to the source; bad: rows that could not be used, by reason, with
    the first of each in `first_bad` (`file:line` or an id)."""

    corpus: str
    dialogues: list[Dialogue] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    bad: Counter[str] = field(default_factory=Counter)
    first_bad: dict[str, str] = field(default_factory=dict)

    def reject(self, reason: str, place: str) -> None:
        """Count one row that cannot be used."""
        self.bad[reason] += 1
        self.first_bad.setdefault(reason, place)

    def bad_rows(self) -> dict[str, Any]:
        """The rejected rows as a card states them: {reason: {count, first}}."""
        return {reason: {"count": n, "first": self.first_bad[reason]} for reason, n in sorted(self.bad.items())}
