"""PersonaTree metrics, pure: what eval reports, early stopping watches and a reward can use.

A row is scored by counting, a set of rows by summing the counts (micro average). Predicted operations are matched with
gold ones one to one: first those on the same leaf, then each remaining gold operation with the nearest remaining path. An
answer that could not be parsed counts as no operation at all: it misses every gold operation and is not a NO_OP, because
a failure is never a right answer.

Similarity of paths is 2 * d / (a + b), d being how many names two paths of a and b names share from the top
(Wu and Palmer 1994): 1.0 for the same leaf, 0.5 for two leaves that share two of four names. Similarity of values is F1
over the multisets of their normalised words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from extractors.contract import ExtractionError
from extractors.persona_tree.extractor import Chunk
from extractors.persona_tree.operations import Operation
from extractors.triplets.score import normalise

POINTS = 10_000  # of a similarity of 1.0: counts are integers, so that they can be added up in any order


@dataclass(frozen=True)
class Counts:
    """What one row adds to the metrics; rows are added up field by field. NO_OP is no operation in these counts.

    hits: predicted operations whose kind, path and normalised value are a gold one's; the same by kind as *_add,
    *_update and *_delete; paths: gold operations whose path was predicted; path_points: similarity of the matched
    paths in ten thousandths, summed over gold operations; kinds: gold operations whose path was predicted with their
    kind; written: gold ADD and UPDATE whose path was predicted with a value; value_points: similarity of the values,
    values: those that are the same; no_op_*: rows; kept_words of old_words: words of a recorded value that gold keeps
    in an UPDATE of it, and those of them that the answer keeps too.
    """

    rows: int = 0
    rows_right: int = 0
    rows_exact: int = 0
    parse_failures: int = 0
    gold: int = 0
    predicted: int = 0
    hits: int = 0
    gold_add: int = 0
    predicted_add: int = 0
    hits_add: int = 0
    gold_update: int = 0
    predicted_update: int = 0
    hits_update: int = 0
    gold_delete: int = 0
    predicted_delete: int = 0
    hits_delete: int = 0
    paths: int = 0
    path_points: int = 0
    kinds: int = 0
    written: int = 0
    values: int = 0
    value_points: int = 0
    no_op_gold: int = 0
    no_op_predicted: int = 0
    no_op_hits: int = 0
    old_words: int = 0
    kept_words: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def count(chunk: Chunk, gold: Sequence[Operation], answer: Sequence[Operation] | ExtractionError) -> Counts:
    """Counts of one row. answer: what `PersonaTreeExtractor.parse` returned."""
    failed = isinstance(answer, ExtractionError)
    truth = [operation for operation in gold if operation.kind != "NO_OP"]
    guess = [] if isinstance(answer, ExtractionError) else [each for each in answer if each.kind != "NO_OP"]
    gold_plain, guess_plain = Counter(map(_plain, truth)), Counter(map(_plain, guess))
    hits = gold_plain & guess_plain

    def of_kind(operations: Counter[tuple[str, str, str]], kind: str) -> int:
        return sum(times for (each, _, _), times in operations.items() if each == kind)

    pairs = _match(truth, guess)
    same_path = [(mine, theirs) for mine, theirs in pairs if mine.path == theirs.path]
    written = [
        value_similarity(mine.value, theirs.value)
        for mine, theirs in same_path
        if mine.value is not None and theirs.value is not None
    ]
    old_words = kept_words = 0
    answered = {operation.path: operation for operation in guess}
    for operation in truth:
        old = chunk.tree.get(operation.path)
        if operation.kind == "UPDATE" and old is not None and not failed:
            due = _words(old) & _words(operation.value)
            theirs = answered.get(operation.path)
            # A leaf that is not touched keeps all it has.
            kept = due if theirs is None else due & _words(theirs.value)
            old_words, kept_words = old_words + due.total(), kept_words + kept.total()
    no_op_gold, no_op_predicted = not truth, not failed and not guess
    return Counts(
        rows=1,
        rows_right=int(not failed and gold_plain == guess_plain),
        rows_exact=int(not failed and Counter(truth) == Counter(guess)),
        parse_failures=int(failed),
        gold=len(truth),
        predicted=len(guess),
        hits=hits.total(),
        gold_add=of_kind(gold_plain, "ADD"),
        predicted_add=of_kind(guess_plain, "ADD"),
        hits_add=of_kind(hits, "ADD"),
        gold_update=of_kind(gold_plain, "UPDATE"),
        predicted_update=of_kind(guess_plain, "UPDATE"),
        hits_update=of_kind(hits, "UPDATE"),
        gold_delete=of_kind(gold_plain, "DELETE"),
        predicted_delete=of_kind(guess_plain, "DELETE"),
        hits_delete=of_kind(hits, "DELETE"),
        paths=len(same_path),
        path_points=sum(_points(path_similarity(mine.path, theirs.path)) for mine, theirs in pairs),
        kinds=sum(mine.kind == theirs.kind for mine, theirs in same_path),
        written=len(written),
        values=sum(similarity == 1 for similarity in written),
        value_points=sum(map(_points, written)),
        no_op_gold=int(no_op_gold),
        no_op_predicted=int(no_op_predicted),
        no_op_hits=int(no_op_gold and no_op_predicted),
        old_words=old_words,
        kept_words=kept_words,
    )


def metrics(total: Counts) -> dict[str, float]:
    """Metrics of summed counts; a ratio without a denominator is 0.0.

    precision, recall, f1: operations, micro, right in kind, path and normalised value; f1_add, f1_update, f1_delete: of
    one kind; path_accuracy: gold operations whose path was predicted, path_similarity: the same in degrees;
    kind_accuracy: of those with the right path, the share whose kind is right; value_f1 and value_match: of writes at the
    right path, the mean token F1 of the value and the share that is right; noop_*: rows without change; keep_old: of the
    words of recorded values that gold keeps in its UPDATEs, the share that the answer keeps; right_rows: rows that are
    right as a whole, exact_rows: to the letter; parse_rate: rows that could be read.
    """
    return {
        "precision": _ratio(total.hits, total.predicted),
        "recall": _ratio(total.hits, total.gold),
        "f1": _ratio(2 * total.hits, total.predicted + total.gold),
        "f1_add": _ratio(2 * total.hits_add, total.predicted_add + total.gold_add),
        "f1_update": _ratio(2 * total.hits_update, total.predicted_update + total.gold_update),
        "f1_delete": _ratio(2 * total.hits_delete, total.predicted_delete + total.gold_delete),
        "path_accuracy": _ratio(total.paths, total.gold),
        "path_similarity": _ratio(total.path_points, total.gold * POINTS),
        "kind_accuracy": _ratio(total.kinds, total.paths),
        "value_f1": _ratio(total.value_points, total.written * POINTS),
        "value_match": _ratio(total.values, total.written),
        "noop_precision": _ratio(total.no_op_hits, total.no_op_predicted),
        "noop_recall": _ratio(total.no_op_hits, total.no_op_gold),
        "noop_f1": _ratio(2 * total.no_op_hits, total.no_op_predicted + total.no_op_gold),
        "keep_old": _ratio(total.kept_words, total.old_words),
        "right_rows": _ratio(total.rows_right, total.rows),
        "exact_rows": _ratio(total.rows_exact, total.rows),
        "parse_rate": _ratio(total.rows - total.parse_failures, total.rows),
        "parse_failure_rate": _ratio(total.parse_failures, total.rows),
    }


def path_similarity(first: str, second: str) -> float:
    """2 * names shared from the top / names of both paths."""
    ours, theirs = first.split("."), second.split(".")
    shared = 0
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            break
        shared += 1
    return 2 * shared / (len(ours) + len(theirs))


def value_similarity(first: str | None, second: str | None) -> float:
    """F1 over the multisets of normalised words; 1.0 where neither has a value."""
    if first is None or second is None:
        return float(first is second)
    ours, theirs = _words(first), _words(second)
    return 2 * (ours & theirs).total() / (ours.total() + theirs.total()) if ours or theirs else 1.0


@dataclass(frozen=True)
class StateCounts:
    """Leaves that changed between a tree and the one after a chunk or a replay, by gold and by the answer; a leaf that
    was emptied counts as changed. points: summed over leaves that both changed, the value's token F1 in ten thousandths;
    an emptied leaf is like another emptied one alone."""

    gold: int = 0
    predicted: int = 0
    hits: int = 0
    points: int = 0

    def __add__(self, other: StateCounts) -> StateCounts:
        return StateCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def count_state(before: Mapping[str, str], gold: Mapping[str, str], predicted: Mapping[str, str]) -> StateCounts:
    """Counts of one chunk or replay from non-empty leaf values: before it, after the gold operations, after the
    answer's. With before = {} it compares two whole trees."""
    changed_gold, changed_predicted = _changed(before, gold), _changed(before, predicted)
    both = changed_gold & changed_predicted
    similar = [value_similarity(gold.get(path), predicted.get(path)) for path in both]
    return StateCounts(
        len(changed_gold),
        len(changed_predicted),
        sum(similarity == 1 for similarity in similar),
        sum(map(_points, similar)),
    )


def state_metrics(total: StateCounts) -> dict[str, float]:
    """state_f1: changed leaves that end with the right normalised value; soft_state_f1: the same, a value counting by its
    token F1. Where neither changed anything both are 1.0."""
    changes = total.gold + total.predicted
    return {
        "state_f1": 2 * total.hits / changes if changes else 1.0,
        "soft_state_f1": 2 * total.points / POINTS / changes if changes else 1.0,
    }


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def _match(gold: Sequence[Operation], predicted: Sequence[Operation]) -> list[tuple[Operation, Operation]]:
    """Pairs of a gold and a predicted operation: the same path first, of the same kind where there is a choice, then the
    nearest path, each operation at most once; paths without a common name are no pair."""
    ranked = sorted(
        (
            (-path_similarity(mine.path, theirs.path), mine.kind != theirs.kind, i, j)
            for i, mine in enumerate(gold)
            for j, theirs in enumerate(predicted)
        ),
    )
    pairs: dict[int, int] = {}
    for negative, _, i, j in ranked:
        if negative < 0 and i not in pairs and j not in pairs.values():
            pairs[i] = j
    return [(gold[i], predicted[j]) for i, j in sorted(pairs.items())]


def _plain(operation: Operation) -> tuple[str, str, str]:
    return operation.kind, operation.path, normalise(operation.value or "")


def _words(text: str | None) -> Counter[str]:
    return Counter(normalise(text or "").split())


def _points(similarity: float) -> int:
    return round(similarity * POINTS)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
