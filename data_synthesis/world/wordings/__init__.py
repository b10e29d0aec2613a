"""How the facts of a life get said: for every relation many wordings of the project's own, as slots and plain English.

A wording is dealt by its text to everybody (`seen`) or to the test split alone (`unseen`): see `Phrasing.reserved`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from data_synthesis.world.grammar import names_speaker
from data_synthesis.world.wordings import daily, family, tastes
from data_synthesis.world.wordings.form import Wording

WORDINGS: dict[str, Wording] = {**daily.WORDINGS, **tastes.WORDINGS, **family.WORDINGS}
PAIRS: dict[tuple[str, str], tuple[str, ...]] = {**daily.PAIRS, **tastes.PAIRS, **family.PAIRS}
RELATIONS = tuple(WORDINGS)

RESERVED_SHARE = 0.4


@dataclass(frozen=True)
class Phrasing:
    """One way to state one fact (or two: `second` names the other relation).

    form: "say" (a clause), "new" (a clause that says that it is recent), "ask" (a question and its answer), "noun" (a
    noun phrase that states kinship in passing: "my sister Ana"). reserved: only the test split may use it.
    """

    id: str
    relation: str
    form: str
    text: str
    question: str = ""
    second: str = ""
    reserved: bool = False

    @property
    def speaker_only(self) -> bool:
        return names_speaker(self.text) or names_speaker(self.question)


@cache
def phrasings() -> Mapping[str, tuple[Phrasing, ...]]:
    """relation -> its phrasings. Of each form, `RESERVED_SHARE` (rounded to nearest, over the relation) are
    reserved."""
    result: dict[str, tuple[Phrasing, ...]] = {}
    for relation, wording in WORDINGS.items():
        items = [("say", line, "", "") for line in wording.say] + [("new", line, "", "") for line in wording.new]
        items += [("noun", line, "", "") for line in wording.noun]
        for line in wording.ask:
            question, _, answer = line.partition(" | ")
            items.append(("ask", answer, question, ""))
        for (first, second), lines in PAIRS.items():
            if first == relation:
                items += [("say", line, "", second) for line in lines]
        reserved = _reserved([(form + second, question + text) for form, text, question, second in items])
        result[relation] = tuple(
            Phrasing(f"{relation}/{number:02d}", relation, form, text, question, second, number in reserved)
            for number, (form, text, question, second) in enumerate(items)
        )
    return result


def _reserved(items: list[tuple[str, str]]) -> set[int]:
    """Numbers of the reserved items: a stable draw within each form, so that every form keeps seen wordings."""
    chosen: set[int] = set()
    for form in sorted({form for form, _ in items}):
        numbers = [n for n, item in enumerate(items) if item[0] == form]
        numbers.sort(key=lambda n: hashlib.sha256(items[n][1].encode()).hexdigest())
        chosen.update(numbers[: min(len(numbers) - 1, math.floor(RESERVED_SHARE * len(numbers) + 0.5))])
    return chosen
