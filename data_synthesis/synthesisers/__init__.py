"""What a teacher is asked, per extractor: each module cuts a corpus's dialogues into items and makes rows of the
answers."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from data_synthesis.dialogues import Dialogue
from data_synthesis.overlap import THRESHOLD
from data_synthesis.recipe import SynthesisRecipe
from extractors.contract import Extractor, InputError

SYNTHESISERS = ("triplets", "continuity", "persona_tree")  # modules of this package, by their extractors

Row = dict[str, Any]


@dataclass(frozen=True)
class Item:
    """One thing to ask. id: of the row to come; group: the person or conversation that no split divides; input: in the
    extractor's JSON form; tags: kept in the row; chain: items of one chain are asked in their order, each with what the
    answers before it changed in its input (`Synthesiser.follow`)."""

    id: str
    group: str
    split: str
    input: Mapping[str, Any]
    tags: Mapping[str, Any] = field(default_factory=dict)
    chain: str = ""


@dataclass(frozen=True)
class Answered:
    """An item with what the teacher's samples said, as JSON outputs of the extractor; no sample is a failure."""

    item: Item
    outputs: tuple[Any, ...]

    def row(self, gold: Any) -> dict[str, Any]:
        """The dataset row with this gold."""
        item = self.item
        return {"id": item.id, "group": item.group, "input": dict(item.input), "gold": gold, "tags": dict(item.tags)}


@dataclass(frozen=True)
class Left:
    """An answered item that becomes no row. reason: a short word to count by."""

    answered: Answered
    reason: str
    detail: str


@dataclass(frozen=True)
class Synthesiser:
    """How an extractor's supervision is made; each module declares its own as SYNTHESISER.

    items: those of a dialogue for a split; rows: with their answers, and the answers that become none. follow: of a chain,
    what an answer changes in the input of the next item; details: of the rows that were made, for the card; near_duplicate:
    the gate's threshold, None where rows over the same text are meant.
    """

    items: Callable[[Dialogue, str, SynthesisRecipe], Iterator[Item]]
    rows: Callable[[list[Answered], SynthesisRecipe], tuple[list[tuple[Row, Answered]], list[Left]]]
    follow: Callable[[Extractor[Any, Any], Item, Any], Mapping[str, Any]] | None = None
    details: Callable[[list[tuple[Row, Answered]]], dict[str, Any]] | None = None
    near_duplicate: float | None = THRESHOLD


def load_synthesiser(extractor: str) -> Synthesiser:
    """The one of an extractor, by name. Raises InputError where a teacher cannot be asked for it."""
    if extractor not in SYNTHESISERS:
        raise InputError(f"`extractor` is {extractor}: a teacher can be asked for {', '.join(SYNTHESISERS)}.")
    found = importlib.import_module(f"{__name__}.{extractor}").SYNTHESISER
    assert isinstance(found, Synthesiser)
    return found
