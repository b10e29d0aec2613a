"""What a teacher is asked, per extractor: each module cuts a corpus's dialogues into items and makes rows of the
answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Item:
    """One thing to ask. id: of the row to come; group: the person or conversation that no split divides; input: in the
    extractor's JSON form; tags: kept in the row; chain: items of one chain are asked in their order, each with what the
    answers before it changed in its input (the module's `follow`)."""

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
