"""Operation rows from what a corpus already knows: the gold of PersonaTree extractors without a teacher.

    a corpus's view -> walks (a person's chunks, each with what it changes) -> the executor -> rows -> dataset folder

A view (`world.py`, `halumem.py`, `msc.py`) says what each chunk of a person's dialogue changes. `operations_for` turns that
into operations on the tree as it then stands, and the executor carries them out, so that the gold is what the executor
accepts, values within their budgets, and the tree of a row is what the rows before it led to.

A leaf that may hold several things holds them one after the other, with a semicolon between: "bouldering; fly fishing".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from data_synthesis.splits import states_nothing
from extractors.persona_tree import Chunk, Operation, PersonaTree, PersonaTreeExtractor
from extractors.persona_tree.executor import execute
from extractors.triplets import Turn

SEPARATOR = "; "
NO_OP_SHARE = 0.2  # of a split's rows; further chunks that change nothing are left out, which changes no tree


@dataclass(frozen=True)
class Change:
    """What a statement does to one leaf. now: what holds from now on, None for an end; before: what it takes the place
    of, None where it comes beside what is there. In a `single` leaf whatever is there gives way to `now`."""

    leaf: str
    now: str | None
    before: str | None = None
    single: bool = False


@dataclass(frozen=True)
class Step:
    """A chunk of a walk. id: of the row to come."""

    id: str
    turns: tuple[Turn, ...]
    changes: tuple[Change, ...]
    tags: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Walk:
    """A person's chunks in order. id: of the walk; group: what no split divides; person: as called in the turns; start:
    values by leaf path before the first chunk; left_out: ids of chunks that hold something for which the view has no leaf."""

    id: str
    group: str
    person: str
    steps: tuple[Step, ...]
    start: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def operations_for(changes: Iterable[Change], tree: Mapping[str, str]) -> tuple[Operation, ...]:
    """The operations that bring `tree` up to date, one for each leaf that changes, in the order in which the changes
    come to it; NO_OP alone where none does: what is recorded already is not written again, and what is not recorded
    cannot end."""
    after: dict[str, list[str]] = {}
    for change in changes:
        items = after.setdefault(change.leaf, _items(tree.get(change.leaf, ""), change.single))
        place = None if change.before is None else _place(items, change.before)
        if change.now is None:
            if place is not None:
                del items[place]
        elif change.single:
            items[:] = items if _same(items, change.now) is not None else [change.now]
        elif place is not None:
            items[place] = change.now
        elif _place(items, change.now) is None:
            items.append(change.now)
    found = []
    for path, items in after.items():
        old, new = tree.get(path), SEPARATOR.join(items)
        if old is None and new:
            found.append(Operation("ADD", path, new))
        elif old is not None and not new:
            found.append(Operation("DELETE", path))
        elif old is not None and new != old:
            found.append(Operation("UPDATE", path, new))
    return tuple(found) or (Operation("NO_OP"),)


def rows_of(walk: Walk, extractor: PersonaTreeExtractor) -> Iterator[dict[str, Any]]:
    """A row for every chunk, its tree being what the gold of those before it led to. Raises ValueError where the
    executor refuses an operation: a view then names a leaf that the schema does not have."""
    begun = execute(
        PersonaTree(extractor.schema), [Operation("ADD", path, value) for path, value in walk.start.items()]
    )
    if begun.rejected:
        raise ValueError(f"{walk.id}: {begun.rejected[0].detail} ({begun.rejected[0].operation.path}).")
    tree = begun.tree
    for number, step in enumerate(walk.steps):
        gold = operations_for(step.changes, tree.values)
        done = execute(tree, gold, step.id)
        if done.rejected:
            raise ValueError(f"{step.id}: {done.rejected[0].detail} ({done.rejected[0].operation.path}).")
        # What a leaf's budget cut off is not to be learnt.
        gold = tuple(replace(each.operation, value=each.after) for each in done.applied)
        yield {
            "id": step.id,
            "group": walk.group,
            "input": extractor.write_input(Chunk(tree.values, step.turns, walk.person)),
            "gold": extractor.write_output(extractor.in_order(gold)),
            "tags": {"operations": kinds_of(gold), **step.tags, "replay": walk.id, "chunk": number},
        }
        tree = done.tree


def balanced(rows: Sequence[dict[str, Any]], share: float = NO_OP_SHARE) -> tuple[list[dict[str, Any]], int]:
    """Rows of one split, of which at most a share are NO_OP; and how many NO_OP rows were left out. Those that stay are
    spread evenly over the rows and, as far as there are enough, over what their tag `about` says."""
    counts = Counter(row["tags"].get("about") for row in rows if states_nothing(row))
    room = int(share * (len(rows) - counts.total()) / (1 - share) + 1e-9)
    quotas: dict[Any, int] = {}
    for left, (about, count) in zip(
        range(len(counts), 0, -1), sorted(counts.items(), key=lambda item: item[1]), strict=True
    ):
        quotas[about] = min(count, (room - sum(quotas.values())) // left)
    kept, left_out = [], 0
    credit: dict[Any, float] = dict.fromkeys(counts, 0.0)
    for row in rows:
        about = row["tags"].get("about")
        if not states_nothing(row):
            kept.append(row)
            continue
        credit[about] += quotas[about] / counts[about]
        if credit[about] >= 1 - 1e-9:
            credit[about] -= 1
            kept.append(row)
        else:
            left_out += 1
    return kept, left_out


def kinds_of(gold: Sequence[Operation]) -> str:
    """A row's tag `operations`: the kind of all of its operations."""
    kinds = {operation.kind for operation in gold}
    return kinds.pop() if len(kinds) == 1 else "several kinds"


def _items(value: str, single: bool) -> list[str]:
    if single:
        return [value] if value else []
    return [item for part in value.split(SEPARATOR.strip()) if (item := part.strip())]


def _same(items: Sequence[str], wanted: str) -> int | None:
    folded = wanted.casefold()
    return next((place for place, item in enumerate(items) if item.casefold() == folded), None)


def _place(items: Sequence[str], wanted: str) -> int | None:
    """The item that is `wanted`, or that says more about it ("ferret Pim", "brother Gustav")."""
    folded = wanted.casefold()
    exact = _same(items, wanted)
    if exact is not None:
        return exact
    for place, item in enumerate(items):
        other = item.casefold()
        if other.startswith(folded + " ") or other.endswith(" " + folded):
            return place
    return None
