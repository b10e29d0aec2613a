"""Sections of a report made from result folders: what `mnemosmith eval` and the quickstart both show."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.evaluate import Result, Score, read_samples
from eval.replays import read_replays
from eval.report import Bar, Bars, Curve, Example, Examples, Headline, Section, Table, Text, TreeLine, TreePicture
from extractors import load_extractor
from extractors.persona_tree import PersonaTreeExtractor, Schema, TreeStore
from extractors.persona_tree.executor import printable
from extractors.persona_tree.score import value_similarity
from extractors.persona_tree.show import show_history
from extractors.persona_tree.tree import outer_paths

_ANY = {
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "right_rows": "rows right as a whole",
    "exact_rows": "rows right to the letter",
    "parse_failure_rate": "answers that cannot be read",
}
METRIC_NAMES: dict[str, dict[str, str]] = {
    "triplets": {
        "f1": "triplet F1",
        "precision": "triplet precision",
        "recall": "triplet recall",
        "exact_f1": "triplet F1, to the letter",
        "exact_precision": "triplet precision, to the letter",
        "exact_recall": "triplet recall, to the letter",
        "relation_accuracy": "relation accuracy (rows)",
        "relation_f1": "relation F1",
        "object_match": "object right, given subject and relation",
        "hallucinated_object_rate": "object words that nobody said",
        "schema_compliance": "answers that follow the JSON schema",
    },
    "persona_tree": {
        "state_f1": "state F1",
        "soft_state_f1": "state F1, values by their words",
        "acceptance_rate": "operations that the executor accepts",
        "f1": "operation F1",
        "precision": "operation precision",
        "recall": "operation recall",
        "f1_add": "F1 of ADD",
        "f1_update": "F1 of UPDATE",
        "f1_delete": "F1 of DELETE",
        "path_accuracy": "path right (gold operations)",
        "path_similarity": "path similarity",
        "kind_accuracy": "kind right, given the path",
        "value_f1": "value F1, given the path",
        "value_match": "value right, given the path",
        "noop_precision": "NO_OP precision",
        "noop_recall": "NO_OP recall",
        "noop_f1": "NO_OP F1",
        "keep_old": "old words kept by UPDATE",
        "parse_rate": "answers that can be read",
        "schema_compliance": "answers that follow the grammar",
    },
}
# What a report says first and `mnemosmith eval` prints; the first of them is drawn.
HEADLINES = {
    "triplets": ("f1", "right_rows", "parse_failure_rate"),
    "persona_tree": ("state_f1", "f1", "noop_f1", "value_f1", "parse_rate"),
}
MOST_LEAVES = 60  # in a picture of a tree
MOST_CHUNKS = 60  # in a history


def metric_name(result: Result, metric: str) -> str:
    """A metric as a reader knows it."""
    names = METRIC_NAMES.get(result.meta["extractor"]["name"], {})
    return names.get(metric, _ANY.get(metric, metric))


def headline(result: Result) -> Headline:
    """The extractor's main metrics as large figures, with n and interval."""
    figures = []
    for name in HEADLINES[result.meta["extractor"]["name"]]:
        score = result.metrics[name]
        spread = "" if score.low is None else f", 95% interval {score.low:.3f} to {score.high:.3f}"
        figures.append((f"{score.value:.3f}", metric_name(result, name), f"n = {score.n}{spread}"))
    return Headline(figures)


def metric_bars(results: Mapping[str, Result], metric: str, title: str, emphasis: str = "", note: str = "") -> Bars:
    """One bar a result, labelled with its key."""
    bars = [_bar(label, result.metrics[metric], emphasis=label == emphasis) for label, result in results.items()]
    axis = metric_name(next(iter(results.values())), metric)
    return Bars(title, bars, axis, note or _interval_note(results.values()))


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
    axis = metric_name(next(iter(results.values())), metric)
    return Bars(title, bars, axis, " ".join(filter(None, (note, counted))))


def metrics_table(results: Mapping[str, Result], title: str = "All metrics") -> Table:
    """Every metric of every result as value [low, high]."""
    names = list(dict.fromkeys(name for result in results.values() for name in result.metrics))
    header = ["", *(f"{label} (n = {result.meta['rows']})" for label, result in results.items())]
    rows = []
    for name in names:
        cells = [_printed(result.metrics[name]) if name in result.metrics else "" for result in results.values()]
        rows.append([metric_name(next(iter(results.values())), name), *cells])
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
    lines = _logged(run, (("loss", "training"), ("eval_loss", "held-out")))
    return Curve(title, lines, "step", "loss per trained token") if lines else None


def reward_curve(run: Path, title: str, over: int = 5) -> Curve | None:
    """Mean reward of a step's completions from the folder of a run of reinforcement learning, beside its mean over the last
    `over` steps; None where it logged none."""
    lines = _logged(run, (("reward", "each step"),))
    if not lines:
        return None
    points = lines[0][1]
    spans = [points[max(0, place + 1 - over) : place + 1] for place in range(len(points))]
    smooth = [(span[-1][0], sum(y for _, y in span) / len(span)) for span in spans]
    return Curve(title, [*lines, (f"mean of {over} steps", smooth)], "step", "mean reward of the completions")


def _logged(run: Path, keys: Sequence[tuple[str, str]]) -> list[tuple[str, list[tuple[float, float]]]]:
    """(label, points) of each key that a run logged."""
    log = run / "train_log.jsonl"
    history = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.is_file() else []
    found = []
    for key, label in keys:
        points = [(float(entry["step"]), float(entry[key])) for entry in history if entry.get(key) is not None]
        if points:
            found.append((label, points))
    return found


def replay_sections(result: Result, title: str = "Whole replays") -> list[Section]:
    """Of a model that walked through replays (`eval.replays`): the drift curve, the figures, one walked tree and its
    history; nothing where none was walked."""
    replays = read_replays(result.folder)
    if replays is None:
        return []
    walk = middle_walk(replays)
    return [drift_curve(replays, title), replay_table(replays), walked_tree(result, walk), walk_history(result, walk)]


def drift_curve(replays: Mapping[str, Any], title: str) -> Curve:
    """State F1 of the whole tree after every chunk, beside that of a tree that nobody touches."""
    curve = replays["curve"]
    lines = [
        (label, [(float(point["step"]), float(point[name])) for point in curve])
        for name, label in (
            ("state_f1", "model's tree"),
            ("soft_state_f1", "values by their words"),
            ("untouched_f1", "first tree, untouched"),
        )
    ]
    note = (
        f"Means over the replays still going: {curve[0]['n']} at the first chunk, {curve[-1]['n']} at chunk "
        f"{curve[-1]['step']}. Every chunk is asked with the tree that the model's own operations have made so far."
    )
    return Curve(title, lines, "chunk", "state F1 of the whole tree", note)


def replay_table(replays: Mapping[str, Any], title: str = "Replays at their end") -> Table:
    """Final scores with their intervals, and what became of the operations."""
    names = {
        "state_f1": "state F1, whole tree",
        "soft_state_f1": "state F1, whole tree, values by their words",
        "changed_f1": "state F1, leaves that changed since the first chunk",
        "soft_changed_f1": "the same, values by their words",
        "untouched_f1": "state F1 of the first tree, untouched",
    }
    rows = [[names[name], _printed(Score(**score))] for name, score in replays["final"].items()]
    operations = replays["operations"]
    rows.append(["operations accepted by the executor", f"{operations['accepted']} of {operations['proposed']}"])
    rows += [[f"refused: {reason}", str(found["count"])] for reason, found in operations["refused"].items()]
    rows += [[f"cannot be read: {kind}", str(found["count"])] for kind, found in replays["unreadable"].items()]
    note = (
        f"{replays['replays']} of {replays['available']} replays, {replays['rows']} chunks of {replays['groups']} persons "
        "or conversations; 95% intervals from a bootstrap over those."
    )
    return Table(title, ["", "model"], rows, note)


def middle_walk(replays: Mapping[str, Any]) -> dict[str, Any]:
    """The walk whose final state F1 is the median: neither the flattering one nor the worst."""
    ranked = sorted(replays["walks"], key=lambda walk: (walk["state_f1"], walk["replay"]))
    found: dict[str, Any] = ranked[(len(ranked) - 1) // 2]
    return found


def walked_tree(result: Result, walk: Mapping[str, Any]) -> TreePicture:
    """The tree at the end of a walk; leaves that differ from the gold tree are marked."""
    mine, gold = walk["final"], walk["gold"]
    order = {path: place for place, path in enumerate(_schema(result).leaves)}
    paths = sorted(mine.keys() | gold.keys(), key=lambda path: (order.get(path, len(order)), path))
    lines: list[TreeLine] = []
    shown: set[str] = set()
    for path in paths[:MOST_LEAVES]:
        for outer in outer_paths(path):
            if outer not in shown:
                shown.add(outer)
                lines.append(TreeLine(outer.count("."), outer.rpartition(".")[2], "group"))
        name = path.rpartition(".")[2]
        if path not in mine:
            line = TreeLine(path.count("."), f"{name}: {printable(gold[path], 400)}", "missing")
        elif path not in gold:
            line = TreeLine(path.count("."), f"{name}: {printable(mine[path], 400)}", "extra")
        elif value_similarity(mine[path], gold[path]) == 1:
            line = TreeLine(path.count("."), f"{name}: {printable(mine[path], 400)}", "right")
        else:
            due = printable(gold[path], 400)
            line = TreeLine(path.count("."), f"{name}: {printable(mine[path], 400)}", "wrong", due)
        lines.append(line)
    left_out = f" {len(paths) - MOST_LEAVES} further leaves are not drawn." if len(paths) > MOST_LEAVES else ""
    note = (
        f"The replay {walk['replay']} after its {walk['rows']} chunks, state F1 {walk['state_f1']:.3f}: the median of the "
        f"replays.{left_out}"
    )
    return TreePicture(f"The tree of {walk['replay']}, as the model kept it", lines, note)


def walk_history(result: Result, walk: Mapping[str, Any]) -> Text:
    """What each chunk of a walk did, as its store says."""
    store = TreeStore(result.folder / "stores", walk["replay"], _schema(result), read_only=True)
    records = store.records[:MOST_CHUNKS]
    rest = len(store.records) - len(records)
    more = [f"{rest} further chunks are in the store."] if rest else []
    command = f"mnemosmith memory inspect {result.folder / 'stores'} --user {walk['replay']} --history"
    return Text("How it came about", more, [("history", show_history(records)), ("all of it", command)])


def _schema(result: Result) -> Schema:
    extractor = load_extractor(result.meta["extractor"]["name"], result.meta["extractor"]["options"])
    assert isinstance(extractor, PersonaTreeExtractor)
    return extractor.schema


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
