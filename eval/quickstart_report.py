"""What the quickstart measured, from the folders that its stages wrote: the report, the closing lines, the recorded figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.evaluate import Result, Score, read_result
from eval.quickstart import EXAMPLE, TREE_EXAMPLE
from eval.replays import read_replays
from eval.report import Headline, Section, Text, write_report
from eval.results import record
from eval.sections import (
    breakdown_bars,
    drawn_examples,
    loss_curve,
    metric_bars,
    metrics_table,
    middle_walk,
    replay_sections,
    reward_curve,
)

TREE_MODEL = "SmolLM2-135M, first trained on triplets"
ALIGNED_MODEL = "the same, aligned by its reward"


def write_quickstart_report(out: Path, steps: Mapping[str, float]) -> dict[str, Any]:
    """`report.json` ({stages: {triplets: {…}, persona_tree: {…}}, steps: {…}, …}), `report.html` and `report.png` from what
    the stages wrote. steps: seconds of each stage."""
    results = {
        "Trained SmolLM2-135M": read_result(out / "eval/trained/model"),
        "Untrained, five shots": read_result(out / "eval/five-shots/model"),
        "Untrained, zero-shot": read_result(out / "eval/zero-shot/model"),
        "TF-IDF + linear taggers": read_result(out / "eval/baselines/tfidf_linear"),
        "MiniLM neighbour, slots filled": read_result(out / "eval/baselines/minilm_nn_slots"),
    }
    trained, five, zero, tfidf, nearest = (result.metrics["f1"] for result in results.values())
    export = json.loads((out / "export/export_report.json").read_text(encoding="utf-8"))
    taught = json.loads((out / "taught/card.json").read_text(encoding="utf-8"))
    trees = _tree_results(out)
    tree_seconds = sum(seconds for name, seconds in steps.items() if name.startswith("tree-"))
    report = {
        "stages": {
            "triplets": {
                "seconds": sum(steps.values()) - tree_seconds,
                "base": {"zero_shot": zero.value, "five_shots": five.value},
                "trained": trained.value,
                "baselines": {"tfidf_linear": tfidf.value, "minilm_nn_slots": nearest.value},
                "n": trained.n,
                "interval": [trained.low, trained.high],
                "export": str(out / "export"),
            },
            "persona_tree": {
                "seconds": tree_seconds,
                "model": TREE_MODEL,
                **{
                    kind: {name: score.value for name, score in result.metrics.items()}
                    for kind, result in zip(("trained", "aligned", "base", "no_op"), trees.values(), strict=True)
                },
                "n": trees[TREE_MODEL].metrics["state_f1"].n,
                "replays": _replays(trees[TREE_MODEL])["final"],
                "middle_replay": middle_walk(_replays(trees[TREE_MODEL]))["replay"],
                "export": str(out / "persona-tree-export"),
            },
        },
        "steps": dict(steps),
        "synthesis": {
            "rows": {split: counts["rows"] for split, counts in taught["splits"].items()},
            "rejected": taught["details"]["rejected"],
            **taught["details"]["synthesis"],
        },
        "training": _training(out / "run"),
        "tree_training": _training(out / "persona-tree-run"),
        "alignment": _alignment(out / "persona-tree-dapo-run"),
        "export_proof": export.get("proof", {}),
    }
    (out / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    example = (out / "logs/serve.log").read_text(encoding="utf-8")
    curve = loss_curve(out / "run")
    write_report(
        out,
        "Mnemosmith quickstart",
        [
            Headline(
                [
                    (
                        f"{trained.value:.2f}",
                        "triplet F1, trained",
                        f"n = {trained.n}, 95% {trained.low:.2f} to {trained.high:.2f}",
                    ),
                    (f"{five.value:.2f}", "untrained, five shots", f"zero-shot {zero.value:.2f}"),
                    (f"{tfidf.value:.2f}", "best classic baseline", f"nearest neighbour {nearest.value:.2f}"),
                    _large(trees[TREE_MODEL], "state_f1", "tree state F1, trained"),
                    (
                        f"{sum(steps.values()) / 60:.1f} min",
                        "all stages",
                        f"training {steps['train'] / 60:.1f}, {steps['tree-train'] / 60:.1f} and "
                        f"{steps['tree-align'] / 60:.1f} min",
                    ),
                ]
            ),
            metric_bars(results, "f1", "Triplet F1 on people that no split shares", "Trained SmolLM2-135M"),
            breakdown_bars(results, "phrasing", "f1", "Wordings seen in training, and wordings that only the test has"),
            *([curve] if curve else []),
            metrics_table(results),
            drawn_examples(results),
            Text("One extraction from the server", ["\n".join(EXAMPLE), example]),
            *_tree_sections(out, trees),
            Text(
                "Where everything lies",
                pairs=[
                    ("dataset", str(out / "world")),
                    ("a teacher's dataset", str(out / "taught")),
                    ("run", str(out / "run")),
                    ("export", str(out / "export")),
                    ("PersonaTree: dataset", str(out / "operations")),
                    ("PersonaTree: run", str(out / "persona-tree-run")),
                    ("PersonaTree: export", str(out / "persona-tree-export")),
                    ("PersonaTree: aligned", str(out / "persona-tree-dapo-export")),
                    ("PersonaTree: walked trees", str(out / "eval/tree-trained/model/stores")),
                    ("evaluations", str(out / "eval")),
                    ("logs", str(out / "logs")),
                ],
            ),
        ],
        subtitle="A 135M model learns to extract triplets from dialogues of simulated people, then to keep their PersonaTrees, "
        "on a CPU.",
    )
    return report


def _tree_results(out: Path) -> dict[str, Result]:
    """The trained MemListener, the aligned one, the untrained one, and the floor, as the report names them."""
    return {
        TREE_MODEL: read_result(out / "eval/tree-trained/model"),
        ALIGNED_MODEL: read_result(out / "eval/tree-aligned/model"),
        "Untrained, five shots": read_result(out / "eval/tree-five-shots/model"),
        "NO_OP to everything": read_result(out / "eval/tree-trained/no_op"),
    }


def _tree_sections(out: Path, trees: Mapping[str, Result]) -> list[Section]:
    trained = trees[TREE_MODEL]
    curve = loss_curve(out / "persona-tree-run", "MemListener: training loss")
    rewards = reward_curve(out / "persona-tree-dapo-run", "MemListener: reward of its own answers")
    example = (out / "logs/tree-serve.log").read_text(encoding="utf-8")
    return [
        Headline(
            [
                _large(trained, "state_f1", "state F1 after execution"),
                _large(trained, "value_match", "values right, given the path"),
                _large(trained, "noop_f1", "NO_OP F1"),
                _large(trained, "parse_rate", "answers that can be read"),
            ]
        ),
        metric_bars(
            trees,
            "state_f1",
            "PersonaTree: leaves as they should be after each chunk",
            TREE_MODEL,
            f"The model is {TREE_MODEL}; the schema is the quickstart's; the people are held out.",
        ),
        *([curve] if curve else []),
        *([rewards] if rewards else []),
        metrics_table(trees, "PersonaTree: all metrics"),
        drawn_examples(trees, title="PersonaTree: rows as they went"),
        *replay_sections(trained, "PersonaTree: whole replays on the model's own tree"),
        Text("One edit of a tree from the server", [TREE_EXAMPLE.read_text(encoding="utf-8"), example]),
    ]


def _large(result: Result, metric: str, what: str) -> tuple[str, str, str]:
    score = result.metrics[metric]
    interval = _interval(score)
    return (
        f"{score.value:.2f}",
        what,
        f"n = {score.n}" + (f", 95% {interval[0]:.2f} to {interval[1]:.2f}" if interval else ""),
    )


def _replays(result: Result) -> dict[str, Any]:
    replays = read_replays(result.folder)
    assert replays is not None, "the stage walks replays"
    return replays


def _training(run: Path) -> dict[str, Any]:
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    return {
        "rows": record["tokens"]["rows"],
        "tokens_per_s": record["figures"]["tokens_per_s"],
        "dtype": record["dtype"],
        "trainable_parameters": record["trainable_parameters"],
    }


def _alignment(run: Path) -> dict[str, Any]:
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    return {
        "steps": record["steps"],
        "reward": record["curve"]["reward"],
        "groups": record["groups"],
        "trainable_parameters": record["trainable_parameters"],
        "seconds_per_step": record["figures"]["seconds_per_step"],
    }


def _interval(score: Score) -> tuple[float, float] | None:
    return None if score.low is None or score.high is None else (score.low, score.high)


def closing(out: Path, report: dict[str, Any], seconds: float) -> str:
    triplets = report["stages"]["triplets"]
    low, high = triplets["interval"]
    tree = report["stages"]["persona_tree"]
    whole = tree["replays"]["state_f1"]
    return f"""
triplet F1 on {triplets["n"]} rows of held-out people
  trained                  {triplets["trained"]:.3f}  [{low:.3f}, {high:.3f}]
  untrained, five shots    {triplets["base"]["five_shots"]:.3f}
  untrained, zero-shot     {triplets["base"]["zero_shot"]:.3f}
  TF-IDF + linear taggers  {triplets["baselines"]["tfidf_linear"]:.3f}
  MiniLM neighbour         {triplets["baselines"]["minilm_nn_slots"]:.3f}

PersonaTree on {tree["n"]} chunks of held-out people       state F1   NO_OP F1   values right
  trained                                    {_three(tree["trained"])}
  aligned by its reward                      {_three(tree["aligned"])}
  untrained, five shots                      {_three(tree["base"])}
  whole replays on its own tree, at the end  {whole["value"]:>8.3f}   (n = {whole["n"]})

report   {out / "report.html"} (picture: {out / "report.png"}, figures: {out / "report.json"})
export   {out / "export"}
try it   mnemosmith extract {out / "export"} --text "Mia: I moved to Porto and adopted a greyhound."
look     mnemosmith memory inspect {out / "eval/tree-trained/model/stores"} --user {tree["middle_replay"]} --history
{seconds:.0f} s this time, {triplets["seconds"] + tree["seconds"]:.0f} s for all stages"""


def _three(metrics: Mapping[str, float]) -> str:
    return "   ".join(f"{metrics[name]:>8.3f}" for name in ("state_f1", "noop_f1", "value_match"))


def record_figures(out: Path, report: dict[str, Any]) -> None:
    """Writes the figures into docs/results.json."""
    where: dict[str, Any] = {
        "command": "make quickstart",
        "data": "simulated persona world, held-out people",
        "model": "SmolLM2-135M-Instruct",
    }
    folders = {
        "base": "five-shots/model",
        "trained": "trained/model",
        "tfidf_linear": "baselines/tfidf_linear",
        "minilm_nn_slots": "baselines/minilm_nn_slots",
    }
    for name, folder in folders.items():
        score = read_result(out / "eval" / folder).metrics["f1"]
        record(f"quickstart.triplets.f1.{name}", score.value, n=score.n, interval=_interval(score), **where)
    trained, aligned, base, _ = _tree_results(out).values()
    figures = {
        "state_f1.sft": trained.metrics["state_f1"],
        "state_f1.aligned": aligned.metrics["state_f1"],
        "state_f1.base": base.metrics["state_f1"],
        "parse_rate": trained.metrics["parse_rate"],
        "noop_f1": trained.metrics["noop_f1"],
        "value_f1": trained.metrics["value_f1"],
        "value_match": trained.metrics["value_match"],
        "replay_state_f1": Score(**_replays(trained)["final"]["state_f1"]),
    }
    notes = {
        "state_f1.aligned": "the MemListener after 60 steps of reinforcement learning of 16 completions",
        "state_f1.base": "the untrained model with five worked examples",
        "replay_state_f1": "whole trees after the last chunk of a replay, on the tree that the model's operations made",
    }
    for name, score in figures.items():
        where["model"] = "SmolLM2-135M-Instruct" if name.endswith("base") else TREE_MODEL
        record(f"memlistener.{name}", score.value, n=score.n, interval=_interval(score), note=notes.get(name), **where)
    where["model"] = "SmolLM2-135M-Instruct"
    record(
        "quickstart.seconds",
        sum(stage["seconds"] for stage in report["stages"].values()),
        **where,
        note="sum of the stages, after installation",
    )
