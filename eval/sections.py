"""Sections of a report made from result folders: what `mnemosmith eval` and the quickstart both show."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eval.evaluate import Result, Score, read_samples
from eval.report import Bar, Bars, Curve, Example, Examples, Table

METRIC_NAMES = {
    "f1": "triplet F1",
    "precision": "triplet precision",
    "recall": "triplet recall",
    "exact_f1": "triplet F1, to the letter",
    "exact_precision": "triplet precision, to the letter",
    "exact_recall": "triplet recall, to the letter",
    "relation_accuracy": "relation accuracy (rows)",
    "relation_f1": "relation F1",
    "object_match": "object right, given subject and relation",
    "right_rows": "rows right as a whole",
    "exact_rows": "rows right to the letter",
    "parse_failure_rate": "answers that cannot be read",
    "hallucinated_object_rate": "object words that nobody said",
    "schema_compliance": "answers that follow the JSON schema",
}


def metric_bars(results: Mapping[str, Result], metric: str, title: str, emphasis: str = "", note: str = "") -> Bars:
    """One bar a result, labelled with its key."""
    bars = [_bar(label, result.metrics[metric], emphasis=label == emphasis) for label, result in results.items()]
    return Bars(title, bars, METRIC_NAMES.get(metric, metric), note or _interval_note(results.values()))


def breakdown_bars(
    results: Mapping[str, Result], tag: str, metric: str, title: str, emphasis: str = "", note: str = ""
) -> Bars:
    """One bar a result and value of a tag, such as seen and unseen phrasings; of rows tagged `none`, which have no gold,
    there is no F1 to show."""
    bars = [
        _bar(label, scores[metric], f"{tag}: {value}", label == emphasis)
        for label, result in results.items()
        for value, scores in result.breakdowns.get(tag, {}).items()
        if value != "none"
    ]
    sizes = {
        value: scores[metric].n
        for result in results.values()
        for value, scores in result.breakdowns.get(tag, {}).items()
    }
    counted = "Rows: " + ", ".join(f"{value} {n}" for value, n in sizes.items()) + "."
    return Bars(title, bars, METRIC_NAMES.get(metric, metric), " ".join(filter(None, (note, counted))))


def metrics_table(results: Mapping[str, Result], title: str = "All metrics") -> Table:
    """Every metric of every result as value [low, high]."""
    names = list(dict.fromkeys(name for result in results.values() for name in result.metrics))
    header = ["", *(f"{label} (n = {result.meta['rows']})" for label, result in results.items())]
    rows = []
    for name in names:
        cells = [_printed(result.metrics[name]) if name in result.metrics else "" for result in results.values()]
        rows.append([METRIC_NAMES.get(name, name), *cells])
    return Table(title, header, rows, _interval_note(results.values()))


def drawn_examples(
    results: Mapping[str, Result], count: int = 6, seed: int = 0, title: str = "Rows as they went"
) -> Examples:
    """Rows drawn at random from those that all results have, so that nobody picked the flattering ones."""
    samples = {
        label: {sample["id"]: sample for sample in read_samples(result.folder)} for label, result in results.items()
    }
    first = next(iter(samples.values()))
    shared = [name for name in first if all(name in of for of in samples.values())]
    drawn = random.Random(seed).sample(shared, min(count, len(shared)))
    examples = [
        Example(
            input=first[name]["input"],
            gold=print_output(first[name]["gold"]),
            answers=[(label, _answer(of[name]), of[name]["right"]) for label, of in samples.items()],
            label=", ".join(f"{tag}: {value}" for tag, value in first[name]["tags"].items() if isinstance(value, str)),
        )
        for name in drawn
    ]
    return Examples(title, examples, f"{len(drawn)} of {len(shared)} rows, drawn with seed {seed}.")


def loss_curve(run: Path, title: str = "Training loss") -> Curve | None:
    """Training (and held-out) loss by step from a finished training run's folder, or None where it logged none."""
    log = run / "train_log.jsonl"
    history = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.is_file() else []
    lines: list[tuple[str, list[tuple[float, float]]]] = []
    for key, label in (("loss", "training"), ("eval_loss", "held-out")):
        points = [(float(entry["step"]), float(entry[key])) for entry in history if key in entry]
        if points:
            lines.append((label, points))
    return Curve(title, lines, "step", "loss per trained token") if lines else None


def print_output(value: Any) -> str:
    """An output's JSON form on as few lines as can be read: one a fact, its fields in their order."""
    if isinstance(value, list):
        if not value:
            return "nothing"
        return "\n".join(
            f"({', '.join(map(str, item.values()))})" if isinstance(item, dict) else str(item) for item in value
        )
    return json.dumps(value, ensure_ascii=False)


def _answer(sample: Mapping[str, Any]) -> str:
    error = sample["error"]
    if error is None:
        return print_output(sample["predicted"])
    return f"cannot be read: {error['kind']} ({error['detail']})\n{error['excerpt']}".strip()


def _bar(label: str, score: Score, series: str = "", emphasis: bool = False) -> Bar:
    return Bar(label, score.value, score.low, score.high, series, emphasis)


def _printed(score: Score) -> str:
    known = score.low is not None and score.low != score.high
    return f"{score.value:.3f}" + (f" [{score.low:.3f}, {score.high:.3f}]" if known else "")


def _interval_note(results: Iterable[Result]) -> str:
    found = list(results)
    rows, groups = {result.meta["rows"] for result in found}, {result.meta["groups"] for result in found}
    if len(rows) > 1 or len(groups) > 1:
        return "Lines and brackets are 95% intervals (bootstrap over persons)."
    n, persons = rows.pop(), groups.pop()
    unit = "rows" if n == persons else "persons"
    counted = f"{n} rows" if n == persons else f"{n} rows of {persons} persons"
    return f"{counted}; 95% intervals from a bootstrap over {unit}, none where every resample gives the same."
