"""Tokens per second of `training.sft` beside TRL's own script: same model, rows, batch, steps and dtype, in turns.

    python tests/benchmarks/sft_throughput.py [--steps 12] [--pairs 3] [--record]

Both train SmolLM2-135M-Instruct with the settings of the quickstart (bf16 arithmetic where the CPU has it), on rows of the
simulated world that were written once as TRL's prompt / completion messages. TRL's script is run as its users run it
(`trl/scripts/sft.py`). Both are measured by `train_runtime` of their own trainer, so start-up and tokenising are outside; the
ratio is the median of the pairs. What differs: on a CPU ours makes the logits of the trained positions at once (TRL folds the
loss over the vocabulary, for which it has a GPU kernel only), and lets the C library keep freed memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from data_synthesis.simulate import simulate  # noqa: E402
from eval.results import record  # noqa: E402
from extractors import load_extractor  # noqa: E402
from extractors.rows import read_rows  # noqa: E402
from recipes.checks import cpu_has_bf16  # noqa: E402
from recipes.loader import load_recipe  # noqa: E402
from recipes.models import resolve_model  # noqa: E402

RECIPE = ROOT / "recipes/quickstart/triplets-smollm2-135m.yaml"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    recipe = load_recipe(RECIPE)
    extractor = load_extractor(recipe.extractor, recipe.extractor_options)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        simulate(folder / "world", people=60, seed=0)
        rows = read_rows(folder / "world/train.jsonl", extractor)
        (folder / "trl").mkdir()
        with (folder / "trl/train.jsonl").open("w", encoding="utf-8") as file:
            for row in rows:
                completion = [{"role": "assistant", "content": extractor.render(row.gold)}]
                file.write(json.dumps({"prompt": extractor.messages(row.input), "completion": completion}) + "\n")
        # The recipe's own keys for both, less what decides how often it is evaluated, saved and reported.
        settings = {
            **recipe.trainer_values(),
            **recipe.model_values(),
            "max_steps": args.steps,
            "eval_strategy": "no",
            "save_strategy": "no",
            "bf16": cpu_has_bf16(),  # as the quickstart does
            "model_name_or_path": resolve_model(recipe.values["model_name_or_path"]),
        }
        theirs = {k: v for k, v in settings.items() if k != "train_sampling_strategy" and v is not None}
        ratios = []
        for _ in range(args.pairs):
            ours = _train(["-m", "training.sft", "--config", str(RECIPE)], settings, folder / "ours", folder / "world")
            spec = importlib.util.find_spec("trl.scripts.sft")
            assert spec is not None and spec.origin is not None
            plain = _train([spec.origin], theirs, folder / "plain", folder / "trl")
            ratios.append(plain / ours)
            print(f"ours {ours:.1f} s, TRL's script {plain:.1f} s, ratio {ratios[-1]:.2f}", flush=True)
    ratio = statistics.median(ratios)
    print(f"sft.tokens_per_s_ratio {ratio:.3f} (median of {args.pairs}, {min(ratios):.2f} to {max(ratios):.2f})")
    if args.record:
        record(
            "sft.tokens_per_s_ratio",
            ratio,
            n=args.pairs,
            interval=(min(ratios), max(ratios)),
            command=f"python tests/benchmarks/sft_throughput.py --steps {args.steps} --pairs {args.pairs} --record",
            data="simulated persona world",
            model="SmolLM2-135M-Instruct, fp32 weights, " + ("bf16" if cpu_has_bf16() else "fp32") + " arithmetic",
            note="ours / TRL's script, same rows, batch and steps; the interval is the range of the pairs",
        )
    return 0


def _train(program: list[str], settings: dict[str, object], output: Path, data: Path) -> float:
    """Seconds of training per row seen, as the trainer itself reports it, of one run in its own process."""
    command = [sys.executable, *program, "--output_dir", str(output), "--dataset_name", str(data)]
    for name, value in settings.items():
        if name in ("output_dir", "dataset_name") or value is None:
            continue
        words = [str(v) for v in value] if isinstance(value, list) and "scripts" in program[0] else [json.dumps(value)]
        command += [f"--{name}", *(word.strip('"') for word in words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = re.findall(r"'train_runtime': '?([\d.]+)", done.stdout + done.stderr)
    if done.returncode or not found:
        raise SystemExit(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    import shutil

    shutil.rmtree(output, ignore_errors=True)
    return float(found[-1])


if __name__ == "__main__":
    sys.exit(main())
