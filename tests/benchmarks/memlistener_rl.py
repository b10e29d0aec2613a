"""Does reinforcement learning by the process reward make a MemListener better on people that it has never met?

    make quickstart                                                     # makes the model to begin with, and its data
    python tests/benchmarks/memlistener_rl.py start                     # SFT goes on until dev stops improving (once)
    python tests/benchmarks/memlistener_rl.py seeds --seeds 0 1 2 [--record]

From one start (SmolLM2-135M), for each seed: other simulated people whose chunks nobody has trained on, and three arms on them:

    rl        GRPO with DAPO's objective (recipes/quickstart/persona-tree-dapo-smollm2-135m.yaml, --steps)
    sft_more  SFT continued on the gold of these chunks, for as long as `rl` took
    rft       best of 8: half of that time eight answers of the start to each chunk, half SFT on the best of each, where its
              reward is above 0

All are exported and measured on the same chunks of held-out people (the quickstart's test split), bound to the grammar, greedily.
Differences to the start are paired, with 95% intervals from a bootstrap over people. Grounding stands beside them: the share of
the written values' content words that the chunk, or what the leaf held, says.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from eval.bootstrap import percentiles, resampled_totals  # noqa: E402
from eval.evaluate import counts_matrix, metric_of, read_result, read_samples  # noqa: E402
from eval.results import record  # noqa: E402
from extractors import load_extractor  # noqa: E402
from extractors.persona_tree.operations import operation_to_json  # noqa: E402
from extractors.rows import read_rows  # noqa: E402
from training.rewards.process import process_reward  # noqa: E402

OUT = ROOT / "outputs/benchmarks/memlistener_rl"
QUICKSTART = ROOT / "outputs/quickstart"
RECIPES = ROOT / "recipes/quickstart"
EXTRACTOR = load_extractor("persona_tree", {"schema": "quickstart", "path_index": "none", "prompt": "compact"})
ARMS = ("rl", "sft_more", "rft")
STAGE = 80  # steps of SFT between two looks at dev
ENOUGH = 0.01  # of state F1: a stage that gains less has stopped
METRICS = ("state_f1", "soft_state_f1", "value_f1", "noop_f1", "parse_rate")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("start", "seeds"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=60, help="optimiser steps of `rl`, of 16 completions")
    parser.add_argument("--learning-rate", default="1.0e-4", help="of `rl`")
    parser.add_argument("--rows", type=int, default=300, help="held-out chunks to measure on")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if args.what == "start":
        return make_start(args.rows)
    if not (OUT / "start/extractor.json").is_file():
        print("error: there is no start: run `memlistener_rl.py start` first.", file=sys.stderr)
        return 2
    found = {seed: run_seed(seed, args) for seed in args.seeds}
    (OUT / "found.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    show(found)
    if args.record:
        keep(found, args)
    return 0


def make_start(rows: int) -> int:
    """SFT on the quickstart's rows goes on from its MemListener, stage by stage, until dev gains less than ENOUGH twice."""
    data, best, misses = QUICKSTART / "operations", QUICKSTART / "persona-tree-export", 0
    score = state_f1(measure(best, data, "dev", OUT / "dev/0", rows))
    print(f"quickstart's MemListener: dev state F1 {score:.3f}")
    current = best
    for stage in range(1, 9):
        run, export = OUT / f"stage-{stage}", OUT / f"stage-{stage}-export"
        sft(current, data, run, STAGE, seed=stage)
        command("export", run, export, "--overwrite")
        current, found = export, state_f1(measure(export, data, "dev", OUT / f"dev/{stage}", rows))
        print(f"{stage * STAGE} further steps: dev state F1 {found:.3f}", flush=True)
        misses = 0 if found >= score + ENOUGH else misses + 1
        if found > score:
            best, score = export, found
        if misses == 2:
            break
    shutil.rmtree(OUT / "start", ignore_errors=True)
    shutil.copytree(best, OUT / "start")
    measure(OUT / "start", data, "test", OUT / "start-test", rows)
    print(f"start: {best}, dev state F1 {score:.3f}; two stages in a row gained less than {ENOUGH}")
    return 0


def run_seed(seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """The three arms of one seed: seconds, metrics, and differences to the start."""
    folder, start = OUT / f"seed-{seed}", OUT / "start"
    world, data = folder / "world", folder / "operations"
    if not data.is_dir():
        command("simulate", RECIPES / "world.yaml", "--seed", 100 + seed, "--people", 120, "--out", world)
        shape = ("--schema", "quickstart", "--exchanges", 1, "--no-op-share", 0.25)
        command("prepare", "operations", "world", "--source", world, "--out", data, *shape)
    command(
        *("train", RECIPES / "persona-tree-dapo-smollm2-135m.yaml", "--dataset_name", data, "--seed", seed),
        *("--model_name_or_path", start, "--output_dir", folder / "rl", "--max_steps", args.steps),
        *("--learning_rate", args.learning_rate),
    )
    seconds = run_record(folder / "rl")["figures"]["seconds"]
    pace = run_record(OUT / "stage-1")["figures"]["seconds_per_step"]
    sft(start, data, folder / "sft_more", round(seconds / pace), seed=seed)
    kept = best_of_eight(start, data, folder / "best", seconds / 2, seed)
    sft(start, folder / "best", folder / "rft", round(seconds / 2 / pace), seed=seed)
    found: dict[str, Any] = {"rl_seconds": seconds, "rft_rows": kept, "arms": {}}
    before = read_samples(OUT / "start-test/model")
    for arm in ARMS:
        export = folder / f"{arm}-export"
        command("export", folder / arm, export, "--overwrite")
        measure(export, QUICKSTART / "operations", "test", folder / f"{arm}-test", args.rows)
        found["arms"][arm] = {
            "seconds": run_record(folder / arm)["figures"]["seconds"],
            **compared(before, folder / f"{arm}-test"),
        }
        print(f"seed {seed}, {arm}: {found['arms'][arm]}", flush=True)
    return found


def sft(start: Path, data: Path, run: Path, steps: int, seed: int) -> None:
    command(
        *("train", RECIPES / "persona-tree-smollm2-135m.yaml", "--dataset_name", data, "--seed", seed),
        *("--model_name_or_path", start, "--output_dir", run, "--max_steps", steps),
        *("--learning_rate", "1.0e-4", "--num_train_epochs", 20),
    )


def best_of_eight(start: Path, data: Path, folder: Path, seconds: float, seed: int) -> int:
    """Rows of the training split with the best of eight sampled answers as gold, as many as `seconds` allow. The sampler is
    that of `rl`. Returns how many rows were kept."""
    from recipes.loader import load_recipe
    from training.build import load_tokenizer
    from training.grpo import build_trainer, load_task

    recipe = load_recipe(
        RECIPES / "persona-tree-dapo-smollm2-135m.yaml",
        [f"--dataset_name={data}", f"--model_name_or_path={start}", f"--seed={seed}", f"--output_dir={folder}-run"],
    )
    tokenizer = load_tokenizer(recipe, str(start))
    task, _ = load_task(recipe, EXTRACTOR, tokenizer, str(start))
    trainer = build_trainer(recipe, task, tokenizer, str(start))
    trainer.model.train()
    text = (data / "train.jsonl").read_text(encoding="utf-8")
    rows_as_written = {line["id"]: line for line in map(json.loads, text.splitlines())}
    order = np.random.default_rng(seed).permutation(len(task.rows["train"])).tolist()
    lines, began = [], time.monotonic()
    while order and time.monotonic() - began < seconds:
        rows = [order.pop() for _ in range(min(2, len(order)))]
        rollouts = trainer._roll_out("train", [row for row in rows for _ in range(8)], 8)
        for place, row in enumerate(rows):
            group = [each for each in rollouts[8 * place : 8 * place + 8] if each.reward.value is not None]
            best = max(group, key=lambda each: each.reward.value)
            said = EXTRACTOR.parse(best.text)
            if best.reward.value > 0 and isinstance(said, tuple):
                gold = [operation_to_json(each) for each in said]
                lines.append({**rows_as_written[task.rows["train"][row].id], "gold": gold})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    shutil.copy(data / "dev.jsonl", folder / "dev.jsonl")
    return len(lines)


def measure(model: Path, data: Path, split: str, out: Path, rows: int) -> Path:
    command(
        *("eval", RECIPES / "eval-persona-tree.yaml", "--model", model, "--dataset_name", data, "--output_dir", out),
        *("--dataset_test_split", split, "--eval_rows", rows),
    )
    return out / "model"


def state_f1(folder: Path) -> float:
    return read_result(folder).metrics["state_f1"].value


def compared(before: Sequence[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Each metric after, its interval, and the paired difference to `before` with an interval over people."""
    after = read_samples(folder / "model")
    assert [row["id"] for row in before] == [row["id"] for row in after]
    groups = [row["group"] for row in after]
    metric = metric_of("persona_tree")
    first, second = (
        counts_matrix([row["counts"] for row in rows], [row["compliant"] for row in rows]) for rows in (before, after)
    )
    width = first.shape[1]
    totals = resampled_totals(np.hstack([first, second]), groups)
    found: dict[str, Any] = {}
    for name in METRICS:
        value = [float(metric(rows.sum(axis=0))[name]) for rows in (first, second)]
        spread = [(metric(total[:width])[name], metric(total[width:])[name]) for total in totals]
        found[name] = {
            "value": value[1],
            "interval": percentiles([new for _, new in spread]),
            "difference": value[1] - value[0],
            "difference_interval": percentiles([new - old for old, new in spread]),
            "n": len(after),
        }
    found["components"] = {"before": components(before), "after": components(after)}
    return found


def components(samples: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Means of the reward's parts on held-out rows, where they apply."""
    rows = {row.id: row for row in read_rows(QUICKSTART / "operations/test.jsonl", EXTRACTOR)}
    sums: dict[str, list[float]] = {}
    for sample in samples:
        row = rows[sample["id"]]
        said = sample["text"] if sample["text"] is not None else ""
        reward = process_reward(row.input, row.gold, said, EXTRACTOR)
        for name, value in {**reward.components, "reward": reward.value}.items():
            if value is not None:
                sums.setdefault(name, []).append(value)
    return {name: sum(values) / len(values) for name, values in sums.items()}


def show(found: dict[int, dict[str, Any]]) -> None:
    print(
        "\n| seed | arm | s | state F1 | difference to the start | value F1 | grounding |\n|---|---|---|---|---|---|---|"
    )
    for seed, each in found.items():
        for arm, one in each["arms"].items():
            score, low_high = one["state_f1"], one["state_f1"]["difference_interval"]
            print(
                f"| {seed} | {arm} | {one['seconds']:.0f} | {score['value']:.3f} | {score['difference']:+.3f} "
                f"[{low_high[0]:+.3f}, {low_high[1]:+.3f}] | {one['value_f1']['value']:.3f} "
                f"({one['value_f1']['difference']:+.3f}) | {one['components']['after']['grounding']:.3f} "
                f"({one['components']['after']['grounding'] - one['components']['before']['grounding']:+.3f}) |"
            )


def keep(found: dict[int, dict[str, Any]], args: argparse.Namespace) -> None:
    where = {
        "command": f"python tests/benchmarks/memlistener_rl.py seeds --steps {args.steps} --learning-rate {args.learning_rate}",
        "data": "simulated persona world, held-out people",
        "model": "SmolLM2-135M, SFT until dev stopped improving",
    }
    names = {"rl": "sft_rl", "sft_more": "sft_more", "rft": "rft"}
    for seed, each in found.items():
        for arm, name in names.items():
            score = each["arms"][arm]["state_f1"]
            record(
                f"memlistener.state_f1.{name}.seed{seed}",
                score["value"],
                n=score["n"],
                interval=score["interval"],
                **where,
            )
    gains = [each["arms"]["rl"]["state_f1"]["difference"] > 0 for each in found.values()]
    record(
        "memlistener.rl_gain_seeds", float(sum(gains)), n=len(gains), **where, note="seeds in which RL beats its start"
    )


def command(*words: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mnemosmith", *map(str, words)], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}")


def run_record(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return data


if __name__ == "__main__":
    sys.exit(main())
