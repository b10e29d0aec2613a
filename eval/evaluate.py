"""Score the answers to a set of rows and write the result folder: `samples.jsonl` (every row) and `result.json`.

    samples.jsonl   id, group, input, gold, predicted or error, right, the text as printed, the row's counts, tags
    result.json     metrics with n and 95% interval, breakdowns by tag, failures by kind, what was measured with what

A model's answers and a baseline's predictions go the same way; a prediction has no text, so it has no schema
compliance, which is that of the grammar where the extractor has one. An answer that could not be read is a wrong
answer, and the failure rate is reported beside the metrics.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import extractors.persona_tree.outcome as persona_tree_outcome
import extractors.triplets.score as triplets_score
from eval.bootstrap import percentiles, resampled_totals
from extractors.contract import ExtractionError, Extractor, InputError
from extractors.persona_tree import PersonaTreeExtractor
from extractors.rows import Row, write_rows
from recipes.provenance import git_revision, machine, versions

# Of each score module: Counts (a dataclass of int, with `rows_right`), count(input, gold, answer) (see `counter`),
# metrics(total).
SCORES: dict[str, ModuleType] = {"triplets": triplets_score, "persona_tree": persona_tree_outcome}
REQUIRED_META = ("model", "adapter", "dataset", "dataset_sha256", "template_sha256", "seed", "seconds")
MOST_TAG_VALUES = 12
FIRST_IDS = 5


class Answer(Protocol):
    """What `serve.generate` and `serve.client` return for a row."""

    @property
    def text(self) -> str | None: ...
    @property
    def value(self) -> Any: ...
    @property
    def finish_reason(self) -> str | None: ...
    @property
    def prompt_tokens(self) -> int | None: ...
    @property
    def completion_tokens(self) -> int | None: ...


@dataclass(frozen=True)
class Prediction:
    """A baseline's answer: an output that never was text."""

    value: Any
    text: None = None
    finish_reason: None = None
    prompt_tokens: None = None
    completion_tokens: None = None


@dataclass(frozen=True)
class Score:
    """A metric over n rows with its 95% interval, which is None where there are too few rows or groups to tell."""

    value: float
    n: int
    low: float | None
    high: float | None

    def __str__(self) -> str:
        spread = "" if self.low is None else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.value:.3f}{spread} (n = {self.n})"


Scores = dict[str, Score]


@dataclass(frozen=True)
class Result:
    """A result folder: breakdowns[tag][tag value] are scores of those rows; failures[kind] = {count, first_ids}; meta:
    all that stands in result.json besides."""

    folder: Path
    metrics: Scores
    breakdowns: dict[str, dict[str, Scores]]
    failures: dict[str, dict[str, Any]]
    meta: dict[str, Any]


def evaluate(
    answers: Sequence[Answer],
    rows: Sequence[Row[Any, Any]],
    extractor: Extractor[Any, Any],
    out: Path,
    meta: Mapping[str, Any],
    n_resamples: int = 1000,
) -> Result:
    """Scores `answers[i]` against `rows[i]` and writes the result folder `out`.

    meta says what was measured: at least the keys of REQUIRED_META (None where something does not apply; seconds: of
    the generation). Intervals resample whole groups (persons). Raises ValueError for answers that do not match the
    rows.
    """
    if len(answers) != len(rows) or not rows:
        raise ValueError(
            f"{len(answers)} answers were given for {len(rows)} rows: one each is due, and at least one row."
        )
    if missing := [key for key in REQUIRED_META if key not in meta]:
        raise ValueError(f"`meta` lacks {', '.join(missing)}: write None where it does not apply.")

    count = counter(extractor)
    complies = schema_check(extractor.json_schema) if extractor.grammar is None else extractor.admits
    counts = [count(row.input, row.gold, answer.value) for row, answer in zip(rows, answers, strict=True)]
    compliant = [None if isinstance(answer, Prediction) else complies(answer.text or "") for answer in answers]
    matrix = counts_matrix([asdict(each) for each in counts], compliant)
    groups = [row.group for row in rows]
    metric = metric_of(extractor.name)

    def scores(places: Sequence[int]) -> Scores:
        return score_counts(matrix[list(places)], [groups[i] for i in places], metric, n_resamples)

    tags, skipped_tags = _tag_values(rows)
    samples = [_sample(*each, extractor) for each in zip(rows, answers, counts, compliant, strict=True)]
    result = Result(
        folder=out,
        metrics=scores(range(len(rows))),
        breakdowns={
            tag: {value: scores(places) for value, places in sorted(values.items())}
            for tag, values in sorted(tags.items())
        },
        failures=_failures(rows, answers),
        meta={
            **meta,
            "extractor": {"name": extractor.name, "version": extractor.version, "options": extractor.options()},
            "prompt_sha256": _digest(extractor.prompt()),
            "rows": len(rows),
            "groups": len({row.group for row in rows}),
            "counts": dict(zip(asdict(counts[0]), matrix.sum(axis=0).tolist(), strict=False)),
            "finish_reasons": dict(Counter(answer.finish_reason for answer in answers if answer.finish_reason)),
            "tokens": {
                "prompt": sum(answer.prompt_tokens or 0 for answer in answers),
                "completion": sum(answer.completion_tokens or 0 for answer in answers),
            },
            "tags_not_broken_down": skipped_tags,
            "bootstrap": {"n_resamples": n_resamples, "unit": "group", "seed": 0, "level": 0.95},
            "versions": versions(),
            "git_revision": git_revision(),
            "machine": machine(),
        },
    )
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").unlink(missing_ok=True)  # never an old summary beside new samples
    write_rows(out / "samples.jsonl", samples)
    _write_json(out / "result.json", _result_json(result))
    return result


def read_result(folder: Path) -> Result:
    """A result folder that `evaluate` wrote. Raises FileNotFoundError."""
    data = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    metrics = _read_scores(data.pop("metrics"))
    breakdowns = {
        tag: {v: _read_scores(s) for v, s in values.items()} for tag, values in data.pop("breakdowns").items()
    }
    return Result(folder, metrics, breakdowns, data.pop("failures"), data)


def read_samples(folder: Path) -> list[dict[str, Any]]:
    """The rows of a result folder's samples.jsonl."""
    with (folder / "samples.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def score_counts(
    matrix: NDArray[np.int64],
    groups: Sequence[str],
    metric: Callable[[NDArray[np.int64]], dict[str, float]],
    n_resamples: int,
) -> Scores:
    """Every metric of the summed counts [rows, fields], with the interval that resampling the groups gives."""
    values = metric(matrix.sum(axis=0))
    if len(set(groups)) < 2:
        return {name: Score(value, len(matrix), None, None) for name, value in values.items()}
    resampled = [metric(total) for total in resampled_totals(matrix, groups, n_resamples)]
    found = {}
    for name, value in values.items():
        low, high = percentiles([each[name] for each in resampled if name in each])
        found[name] = Score(value, len(matrix), low, high)
    return found


def counter(extractor: Extractor[Any, Any]) -> Callable[[Any, Any, Any], Any]:
    """Counts of one row from (input, gold, answer); operations are carried out with the extractor's own schema."""
    count: Callable[..., Any] = SCORES[extractor.name].count
    return partial(count, schema=extractor.schema) if isinstance(extractor, PersonaTreeExtractor) else count


def check_gold(rows: Sequence[Row[Any, Any]], extractor: Extractor[Any, Any]) -> None:
    """Raises InputError for a row that cannot be scored, before a model is asked about it."""
    count = counter(extractor)
    for row in rows:
        try:
            count(row.input, row.gold, row.gold)
        except InputError as error:
            raise InputError(f"{error} (row {row.id!r})") from None


def schema_check(schema: Mapping[str, Any]) -> Callable[[str], bool]:
    """Whether a text, exactly as printed, is one JSON value that the schema admits."""
    from jsonschema.validators import validator_for

    validator = validator_for(schema)(schema)

    def holds(text: str) -> bool:
        try:
            return bool(validator.is_valid(json.loads(text)))
        except (ValueError, RecursionError):
            return False

    return holds


def counts_matrix(counts: Sequence[Mapping[str, int]], compliant: Sequence[bool | None]) -> NDArray[np.int64]:
    """One row a sample [rows, fields + 2]: its counts, whether it had a text, whether that text followed the schema."""
    rows = [[*each.values(), held is not None, bool(held)] for each, held in zip(counts, compliant, strict=True)]
    return np.array(rows, dtype=np.int64)


def metric_of(extractor_name: str) -> Callable[[NDArray[np.int64]], dict[str, float]]:
    """The extractor's metrics, and schema compliance where there was text, of a summed row of `counts_matrix`."""
    score = SCORES[extractor_name]

    def metric(total: NDArray[np.int64]) -> dict[str, float]:
        *counted, printed, compliant = (int(number) for number in total)
        found: dict[str, float] = score.metrics(score.Counts(*counted))
        return {**found, "schema_compliance": compliant / printed} if printed else found

    return metric


def _sample(
    row: Row[Any, Any], answer: Answer, counts: Any, compliant: bool | None, extractor: Extractor[Any, Any]
) -> dict[str, Any]:
    value = answer.value
    failed = isinstance(value, ExtractionError)
    return {
        "id": row.id,
        "group": row.group,
        "input": extractor.messages(row.input)[-1]["content"],
        "gold": extractor.write_output(row.gold),
        "predicted": None if failed else extractor.write_output(value),
        "error": {key: getattr(value, key) for key in ("kind", "position", "excerpt", "detail")} if failed else None,
        "text": answer.text,
        "compliant": compliant,
        "finish_reason": answer.finish_reason,
        "completion_tokens": answer.completion_tokens,
        "right": bool(counts.rows_right),
        "counts": asdict(counts),
        "tags": row.tags,
    }


def _failures(rows: Sequence[Row[Any, Any]], answers: Sequence[Answer]) -> dict[str, dict[str, Any]]:
    ids: dict[str, list[str]] = {}
    for row, answer in zip(rows, answers, strict=True):
        if isinstance(answer.value, ExtractionError):
            ids.setdefault(answer.value.kind, []).append(row.id)
    return {kind: {"count": len(found), "first_ids": found[:FIRST_IDS]} for kind, found in sorted(ids.items())}


def _tag_values(rows: Sequence[Row[Any, Any]]) -> tuple[dict[str, dict[str, list[int]]], list[str]]:
    """Places of the rows by tag and value; and the tags that are no grouping: lists, objects, or too many values."""
    names = sorted({name for row in rows for name in row.tags})
    found: dict[str, dict[str, list[int]]] = {}
    skipped = []
    for name in names:
        values: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            value = row.tags.get(name)
            values.setdefault("(none)" if value is None else str(value), []).append(place)
        single = all(isinstance(row.tags.get(name), (str, bool, int, type(None))) for row in rows)
        if single and len(values) <= MOST_TAG_VALUES:
            found[name] = values
        else:
            skipped.append(name)
    return found, skipped


def _result_json(result: Result) -> dict[str, Any]:
    def plain(scores: Scores) -> dict[str, Any]:
        return {name: asdict(score) for name, score in scores.items()}

    return {
        "metrics": plain(result.metrics),
        "breakdowns": {tag: {v: plain(s) for v, s in values.items()} for tag, values in result.breakdowns.items()},
        "failures": result.failures,
        **result.meta,
    }


def _read_scores(data: Mapping[str, Any]) -> Scores:
    return {name: Score(**score) for name, score in data.items()}


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _write_json(path: Path, data: Any) -> None:
    temporary = path.with_name(path.name + ".partial")
    temporary.write_text(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    temporary.replace(path)
