"""MSC's growing personas as walks: what annotators wrote down of each utterance goes to the leaf that a plain rule finds.

An annotation is a few short sentences ("I have two dogs. I am a nurse."). `leaf_of` reads a sentence by the first rule of
msc.yaml that matches; they know the common forms and no others. A chunk with a sentence that has no leaf is left out as a
whole, with a count (`Walk.left_out`), since its gold would be incomplete, and its facts are not known from then on. Of the
47,238 sentences of the valid and test parts the rules place 38%; of the first 400 dialogues 54% of the chunks of one exchange
remain, two thirds of them without a change, and 22% of those of three. So use `--exchanges 1`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import yaml

from data_synthesis.corpora import load_dialogues
from data_synthesis.dialogues import Dialogue, Loaded
from data_synthesis.dialogues import Turn as Said
from data_synthesis.operations import Change, Step, Walk
from extractors.triplets import Turn

_TABLE = Path(__file__).with_suffix(".yaml")
_SENTENCE = re.compile(r"[^.!?\n]+")


def load(source: str | None = None) -> Loaded:
    return load_dialogues("msc", source)


@lru_cache
def rules() -> tuple[tuple[str, bool, re.Pattern[str]], ...]:
    """Leaf, whether it holds one thing at a time, and pattern of a whole sentence, in the order in which they are tried."""
    table = yaml.safe_load(_TABLE.read_text(encoding="utf-8"))
    found = []
    for rule in table["rules"]:
        pattern = rule["pattern"]
        for name, part in table["parts"].items():
            pattern = pattern.replace(f"<<{name}>>", part)
        found.append((rule["leaf"], rule["one"], re.compile(pattern, re.IGNORECASE)))
    return tuple(found)


def leaf_of(sentence: str) -> tuple[str, bool, str] | None:
    """Leaf, whether it holds one thing, and value of an annotator's sentence; None where no rule matches."""
    for leaf, single, pattern in rules():
        if match := pattern.fullmatch(sentence):
            return leaf, single, match["v"].replace(";", ",").strip()
    return None


def sentences(turn: Said) -> list[str]:
    """What an annotator wrote down of a turn, sentence by sentence."""
    text = turn.labels.get("persona") or turn.labels.get("persona_text") or ""
    return [" ".join(found.split()) for found in _SENTENCE.findall(text) if found.strip()]


def walks(dialogue: Dialogue, exchanges: int = 3) -> Iterator[Walk]:
    """The walks of both speakers. exchanges: of two turns each, to a chunk; none crosses a session."""
    for person in ("Speaker 1", "Speaker 2"):
        steps: list[Step] = []
        left_out: list[str] = []
        for session in dialogue.sessions:
            for start in range(0, len(session.turns), 2 * exchanges):
                turns = session.turns[start : start + 2 * exchanges]
                said = [text for turn in turns if turn.speaker == person for text in sentences(turn)]
                found = [leaf_of(text) for text in said]
                name = f"{dialogue.id}-{person[-1]}-{session.id}-{start // 2:02d}"
                if None in found:
                    left_out.append(name)
                    continue
                other = any(sentences(turn) for turn in turns)
                steps.append(
                    Step(
                        name,
                        tuple(Turn(turn.speaker, turn.text, turn.id) for turn in turns),
                        tuple(Change(leaf, value, None, single) for leaf, single, value in filter(None, found)),
                        {"about": "the person" if said else "others" if other else "nobody"},
                    )
                )
        yield Walk(f"{dialogue.id}-{person[-1]}", dialogue.group, person, tuple(steps), left_out=tuple(left_out))
