"""What a teacher will be asked: the recipe's corpora, the dialogues whose roles admit it, cut into items and chains of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from data_synthesis.corpora import CORPORA, load_dialogues
from data_synthesis.corpora.shared import without_shared
from data_synthesis.dialogues import Dialogue
from data_synthesis.recipe import SynthesisRecipe
from data_synthesis.roles import split_by_role
from data_synthesis.synthesisers import Item, load_synthesiser
from extractors.contract import Extractor, InputError


@dataclass(frozen=True)
class Plan:
    """What will be asked. refused: what cannot be, by reason, with the first id; sources: per corpus what was read."""

    items: list[Item]
    sources: dict[str, Any]
    refused: dict[str, Any]
    licences: list[str] = field(default_factory=list)

    def summary(self) -> str:
        splits = Counter(item.split for item in self.items)
        lines = [f"{len(self.items)} items: " + ", ".join(f"{n} {split}" for split, n in splits.items())]
        for name, source in self.sources.items():
            kept = ", ".join(f"{n} {role}" for role, n in source["roles"].items())
            lines.append(f"  {name}: {source['dialogues']} dialogues ({kept})")
            lines += [
                f"    left out: {v['count']} x {why} (first: {v['first']})" for why, v in source["bad_rows"].items()
            ]
        lines += [f"  not asked: {v['count']} x {why} (first: {v['first_id']})" for why, v in self.refused.items()]
        return "\n".join(lines)


def make_plan(recipe: SynthesisRecipe, extractor: Extractor[Any, Any]) -> Plan:
    """Read the corpora, keep what their roles admit, cut items. Raises InputError where nothing is left to ask."""
    synthesiser = load_synthesiser(recipe.extractor)
    sources: dict[str, Any] = {}
    by_role: dict[str, list[Dialogue]] = {}
    for choice in recipe.corpora:
        loaded = load_dialogues(choice.name, choice.source)
        dialogues = loaded.dialogues[: choice.dialogues]
        roles = split_by_role(dialogues, recipe.extractor, recipe.role_override)
        sources[choice.name] = {
            "dialogues": len(dialogues),
            "files": loaded.files,
            "bad_rows": loaded.bad_rows(),
            "roles": {role: len(members) for role, members in roles.items() if members},
        }
        for role, members in roles.items():
            by_role.setdefault(role, []).extend(members)
    by_role, shared = without_shared(by_role)
    by_split: dict[str, list[Item]] = {split: [] for split in recipe.splits}
    refused: dict[str, Any] = {
        f"dialogues for {role} that stand in another corpus too": lost for role, lost in shared.items()
    }
    for split in recipe.splits:
        for dialogue in by_role.get(split, ()):
            for item in synthesiser.items(dialogue, split, recipe):
                if why := _unaskable(item, extractor):
                    entry = refused.setdefault(why, {"count": 0, "first_id": item.id})
                    entry["count"] += 1
                else:
                    by_split[split].append(item)
    licences = [CORPORA[choice.name] for choice in recipe.corpora]
    items = [item for split in recipe.splits for item in _first(by_split[split], recipe.rows)]
    if not items:
        raise InputError(
            "there is nothing to ask: no dialogue of the corpora has one of the wanted roles "
            f"({', '.join(recipe.splits)}) for {recipe.extractor} (data_synthesis/roles.yaml)."
        )
    return Plan(items, sources, refused, licences)


def _unaskable(item: Item, extractor: Extractor[Any, Any]) -> str | None:
    try:
        extractor.read_input(item.input)
    except InputError as error:
        return str(error)
    return None


def _first(items: list[Item], limit: int | None) -> list[Item]:
    """`limit` items by the hash of their ids: a fair sample, which a larger limit only adds to. Of chains whole ones by the
    hash of their names, of the last its beginning."""
    if limit is None or len(items) <= limit:
        return items
    chosen: set[str] = set()
    for chain in sorted(chains(items), key=lambda chain: hashlib.sha256(_name(chain[0]).encode()).digest()):
        chosen.update(item.id for item in chain[: limit - len(chosen)])
    return [item for item in items if item.id in chosen]


def chains(items: Sequence[Item]) -> list[list[Item]]:
    """The items that are asked one after the other, in their order; an item without a chain is one of its own."""
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(_name(item), []).append(item)
    return list(found.values())


def _name(item: Item) -> str:
    return item.chain or item.id
