"""Whole replays: a model walks through a person's chunks on the tree that its own operations have made so far.

    test rows with tags.replay  ->  draw  ->  step by step, all replays side by side  ->  replays.json and stores/

A row's score says how a chunk is edited on a perfect tree. Here an operation that was wrong or missing stays in the tree
that the next chunk is asked with, so the curve over the steps shows what errors add up to. Both trees, the model's and the
gold one, begin at the tree of the replay's first row; the gold one follows the gold operations of the rows that are walked.

`replays.json` (in the model's result folder; shares are between 0 and 1):

    replays, groups, rows, available   walked; their groups and chunks; how many the split has
    final        metric: {value, n, low, high}, mean over replays at their last chunk, interval over groups. state_f1 and
                 soft_state_f1 compare whole trees; changed_f1 and soft_changed_f1 the leaves that changed since the first
                 chunk; untouched_f1 is the state_f1 of the first tree left as it was
    curve        [{step, n, state_f1, soft_state_f1, untouched_f1}]: means over the n replays that have that many chunks
    operations   {proposed, accepted, refused: {reason: {count, first_ids}}}, NO_OP not counted (see persona_tree.outcome)
    unreadable   {kind: {count, first_ids}}: answers that changed nothing because they could not be read
    turns_left_out, gold_differs       turns that the prompt's budget left out; rows ({count, first_ids}) whose own tree is
                 not that of the gold walk: values over their budget, or rows left out of the replay that changed it
    walks        [{replay, group, rows, state_f1, soft_state_f1, changed_f1, store, first, final, gold}]: trees by path

`stores/` holds each walk as a TreeStore of the person `replay id`, with the rows' ids as chunk ids, and `schema.json`:
`mnemosmith memory inspect FOLDER/stores` reads it. A tree that is not empty at first is its first chunk, `(start)`.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.evaluate import FIRST_IDS, Answer, score_counts
from extractors.contract import ExtractionError, InputError
from extractors.persona_tree import NO_OP, Chunk, Operation, PersonaTree, PersonaTreeExtractor, TreeStore, execute
from extractors.persona_tree.score import POINTS, count_state, state_metrics
from extractors.persona_tree.store import file_name
from extractors.rows import Row

START = "(start)"
ChunkRow = Row[Chunk, tuple[Operation, ...]]
Ask = Callable[[Sequence[Chunk]], Sequence[Answer]]
_FINAL = ("state_f1", "soft_state_f1", "changed_f1", "soft_changed_f1", "untouched_f1")
_CURVE = ("state_f1", "soft_state_f1", "untouched_f1")


@dataclass(frozen=True)
class Replay:
    """One person's chunks in their order."""

    id: str
    group: str
    rows: tuple[ChunkRow, ...]


@dataclass
class _Walk:
    """A replay on its way. said: of each chunk the operations and when they came; points: of each chunk the scores."""

    replay: Replay
    start: tuple[Operation, ...]
    first: PersonaTree
    tree: PersonaTree
    gold: PersonaTree
    said: list[tuple[str, tuple[Operation, ...], datetime]] = field(default_factory=list)
    points: list[dict[str, float]] = field(default_factory=list)


class _Tally(dict[str, list[str]]):
    """Ids by kind."""

    def note(self, kind: str, name: str) -> None:
        self.setdefault(kind, []).append(name)

    def to_json(self) -> dict[str, Any]:
        return {kind: _counted(ids) for kind, ids in sorted(self.items())}


def find_replays(rows: Sequence[ChunkRow], source: Path) -> list[Replay]:
    """The replays of a split, in the order of their first rows: the rows with a tag `replay`, ordered by their tag `chunk`.
    Raises InputError where no row has the tag, where a chunk has no number of its own, and where groups are mixed."""
    found: dict[str, list[ChunkRow]] = {}
    for row in rows:
        name = row.tags.get("replay")
        if name is None:
            continue
        chunk = row.tags.get("chunk")
        if not isinstance(name, str) or not name or isinstance(chunk, bool) or not isinstance(chunk, int):
            raise InputError(
                f"{source}: the row {row.id!r} has the tags replay = {name!r:.60} and chunk = {chunk!r:.60}: write the "
                "replay's name as text and the chunk's place in it as a whole number."
            )
        found.setdefault(name, []).append(row)
    if not found:
        raise InputError(
            f"{source}: no row has the tag `replay`, so there is nothing to walk through. Make the dataset with `mnemosmith "
            "prepare operations`, or write `replays: null`."
        )
    replays = []
    for name, members in found.items():
        ordered = sorted(members, key=lambda row: row.tags["chunk"])
        for one, other in zip(ordered, ordered[1:], strict=False):
            if one.tags["chunk"] == other.tags["chunk"]:
                raise InputError(
                    f"{source}: {one.id!r} and {other.id!r} are both chunk {one.tags['chunk']} of {name!r}."
                )
            if one.group != other.group:
                raise InputError(f"{source}: {one.id!r} and {other.id!r} of the replay {name!r} differ in `group`.")
        replays.append(Replay(name, ordered[0].group, tuple(ordered)))
    return replays


def draw_replays(replays: Sequence[Replay], count: int, seed: int) -> list[Replay]:
    """`count` of them at random, in their order. Raises InputError for more than there are."""
    if count > len(replays):
        raise InputError(
            f"`replays` is {count}, but the split has {len(replays)}: write at most that, or null for none."
        )
    return [replays[place] for place in sorted(random.Random(seed).sample(range(len(replays)), count))]


def walk_replays(
    replays: Sequence[Replay],
    extractor: PersonaTreeExtractor,
    ask: Ask,
    out: Path,
    meta: Mapping[str, Any],
    on_progress: Callable[[int, int], None] | None = None,
    n_resamples: int = 1000,
) -> dict[str, Any]:
    """Walks the replays and writes `replays.json` and `stores/` into `out`; returns what the file holds.

    ask: answers to the chunks of one step, in their order; on_progress: called with (chunks done, chunks in all); meta:
    further keys of the file, such as `available`.
    """
    forget_replays(out)
    walks = [_begin(replay, extractor) for replay in replays]
    refused, unreadable = _Tally(), _Tally()
    differs: list[str] = []
    proposed = accepted = left_out = done = 0
    total = sum(len(replay.rows) for replay in replays)
    started = time.perf_counter()
    for step in range(max(len(replay.rows) for replay in replays)):
        going = [walk for walk in walks if step < len(walk.replay.rows)]
        rows = [walk.replay.rows[step] for walk in going]
        chunks = [replace(row.input, tree=dict(walk.tree.values)) for row, walk in zip(rows, going, strict=True)]
        left_out += sum(map(extractor.turns_left_out, chunks))
        for walk, row, answer in zip(going, rows, ask(chunks), strict=True):
            if isinstance(answer.value, ExtractionError):
                unreadable.note(answer.value.kind, row.id)
            operations = () if isinstance(answer.value, ExtractionError) else answer.value
            result = execute(walk.tree, operations, row.id)
            proposed += sum(each.kind != NO_OP.kind for each in operations)
            accepted += sum(each.operation.kind != NO_OP.kind for each in result.applied)
            for each in result.rejected:
                refused.note(each.reason, row.id)
            if row.input.tree != walk.gold.values:
                differs.append(row.id)
            walk.tree, walk.gold = result.tree, execute(walk.gold, row.gold).tree
            walk.said.append((row.id, operations, datetime.now(UTC)))
            walk.points.append(_compare(walk))
            if step + 1 == len(walk.replay.rows):
                _store(walk, extractor, out / "stores")
        done += len(going)
        if on_progress is not None:
            on_progress(done, total)
    data = {
        **meta,
        "replays": len(walks),
        "groups": len({replay.group for replay in replays}),
        "rows": total,
        "seconds": time.perf_counter() - started,
        "final": _final(walks, n_resamples),
        "curve": _curve(walks),
        "operations": {"proposed": proposed, "accepted": accepted, "refused": refused.to_json()},
        "unreadable": unreadable.to_json(),
        "turns_left_out": left_out,
        "gold_differs": _counted(differs),
        "walks": [_walk_json(walk) for walk in walks],
    }
    (out / "stores" / "schema.json").write_text(
        json.dumps(extractor.schema.to_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    temporary = out / "replays.json.partial"
    temporary.write_text(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    temporary.replace(out / "replays.json")
    return data


def read_replays(folder: Path) -> dict[str, Any] | None:
    """What `walk_replays` wrote into a result folder; None where nothing was walked."""
    path = folder / "replays.json"
    if not path.is_file():
        return None
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def forget_replays(folder: Path) -> None:
    """Removes an earlier run's replays from a result folder: they would stand beside scores of another model."""
    (folder / "replays.json").unlink(missing_ok=True)
    shutil.rmtree(folder / "stores", ignore_errors=True)


def _begin(replay: Replay, extractor: PersonaTreeExtractor) -> _Walk:
    start = tuple(Operation("ADD", path, value) for path, value in replay.rows[0].input.tree.items())
    empty = PersonaTree(extractor.schema)
    first = execute(empty, start, START).tree if start else empty
    return _Walk(replay, start, first, first, first)


def _compare(walk: _Walk) -> dict[str, float]:
    first, gold, tree = walk.first.values, walk.gold.values, walk.tree.values
    whole, changed = state_metrics(count_state({}, gold, tree)), state_metrics(count_state(first, gold, tree))
    return {
        "state_f1": whole["state_f1"],
        "soft_state_f1": whole["soft_state_f1"],
        "changed_f1": changed["state_f1"],
        "soft_changed_f1": changed["soft_state_f1"],
        "untouched_f1": state_metrics(count_state({}, gold, first))["state_f1"],
    }


def _store(walk: _Walk, extractor: PersonaTreeExtractor, folder: Path) -> None:
    with TreeStore(folder, walk.replay.id, extractor.schema) as store:
        if walk.start:
            store.apply(START, walk.start, time=walk.said[0][2])
        for chunk, operations, when in walk.said:
            store.apply(chunk, operations, time=when)


def _final(walks: Sequence[_Walk], n_resamples: int) -> dict[str, Any]:
    """Means over replays; whole groups are resampled."""
    last = [walk.points[-1] for walk in walks]
    counts = np.array([[1, *(round(each[name] * POINTS) for name in _FINAL)] for each in last], dtype=np.int64)

    def metric(total: NDArray[np.int64]) -> dict[str, float]:
        return {name: float(points) / POINTS / float(total[0]) for name, points in zip(_FINAL, total[1:], strict=True)}

    scores = score_counts(counts, [walk.replay.group for walk in walks], metric, n_resamples)
    return {name: asdict(score) for name, score in scores.items()}


def _curve(walks: Sequence[_Walk]) -> list[dict[str, float]]:
    curve = []
    for step in range(max(len(walk.points) for walk in walks)):
        here = [walk.points[step] for walk in walks if step < len(walk.points)]
        curve.append(
            {"step": step + 1, "n": len(here), **{name: fmean(each[name] for each in here) for name in _CURVE}}
        )
    return curve


def _walk_json(walk: _Walk) -> dict[str, Any]:
    last = walk.points[-1]
    return {
        "replay": walk.replay.id,
        "group": walk.replay.group,
        "rows": len(walk.replay.rows),
        **{name: last[name] for name in ("state_f1", "soft_state_f1", "changed_f1")},
        "store": f"stores/{file_name(walk.replay.id)}",
        "first": dict(walk.first.values),
        "final": dict(walk.tree.values),
        "gold": dict(walk.gold.values),
    }


def _counted(ids: Sequence[str]) -> dict[str, Any]:
    return {"count": len(ids), "first_ids": list(ids[:FIRST_IDS])}
