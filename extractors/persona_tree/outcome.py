"""Scores of an answer by what the executor makes of it, beside those of its operations as such (`score`).

The answer's operations and the gold ones are carried out on the same tree, that of the chunk, and the trees that they lead
to are compared. An answer that could not be parsed carries out nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from extractors.contract import ExtractionError
from extractors.persona_tree import score
from extractors.persona_tree.executor import execute
from extractors.persona_tree.extractor import Chunk
from extractors.persona_tree.operations import Operation
from extractors.persona_tree.schema import Schema
from extractors.persona_tree.score import StateCounts, count_state, state_metrics
from extractors.persona_tree.tree import PersonaTree


@dataclass(frozen=True)
class Counts(score.Counts):
    """What one row adds to the metrics.

    accepted: of the operations proposed (`predicted`: NO_OP is none), those that the executor applied to the chunk's tree,
    also where the value was shortened to its budget, where ADD met a filled leaf or UPDATE an empty one, and where the leaf
    held the same already. Not accepted is whatever it refused with a reason, an operation that a later one on the same leaf
    supersedes included. gold_refused: gold operations that it refuses, a fault of the dataset. state_*: `StateCounts`.
    """

    accepted: int = 0
    gold_refused: int = 0
    state_gold: int = 0
    state_predicted: int = 0
    state_hits: int = 0
    state_points: int = 0

    def __add__(self, other: score.Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def count(
    chunk: Chunk, gold: Sequence[Operation], answer: Sequence[Operation] | ExtractionError, schema: Schema
) -> Counts:
    """Counts of one row. answer: what `PersonaTreeExtractor.parse` returned; schema: the extractor's. Raises InputError
    for a tree that the schema does not permit."""
    before = PersonaTree(schema, chunk.tree)
    due = execute(before, gold)
    done = execute(before, () if isinstance(answer, ExtractionError) else answer)
    state = count_state(before.values, due.tree.values, done.tree.values)
    return Counts(
        **vars(score.count(chunk, gold, answer)),
        accepted=sum(each.operation.kind != "NO_OP" for each in done.applied),
        gold_refused=len(due.rejected),
        state_gold=state.gold,
        state_predicted=state.predicted,
        state_hits=state.hits,
        state_points=state.points,
    )


def metrics(total: Counts) -> dict[str, float]:
    """Metrics of summed counts: `score.state_metrics` of the leaves that a chunk changed, micro; acceptance_rate, accepted
    of proposed operations, absent where none was proposed; then all of `score.metrics`."""
    state = StateCounts(total.state_gold, total.state_predicted, total.state_hits, total.state_points)
    accepted = {"acceptance_rate": total.accepted / total.predicted} if total.predicted else {}
    return {**state_metrics(state), **accepted, **score.metrics(total)}
