"""Does a small model learn real PersonaExt better than classic baselines do on the same rows? About 75 minutes on 2 cores.

    python tests/benchmarks/personaext.py --rows 5000 --epochs 2 [--record]

SmolLM2-135M-Instruct is trained by `training.sft` on `--rows` training rows of the corpus (split by normalised utterance,
seed 0), answers every test row under the contract's closed vocabulary, and stands beside two baselines fitted on exactly
the same rows: TF-IDF + logistic regression with linear token taggers, and MiniLM nearest neighbour copying its triplet.
Each step is skipped where its result is already there, so a stopped run goes on.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from eval.baselines import NearestNeighbour, TfidfLinear  # noqa: E402
from eval.evaluate import Prediction, Result, evaluate, read_result  # noqa: E402
from eval.results import record  # noqa: E402
from extractors import load_extractor  # noqa: E402
from extractors.rows import read_rows, sha256  # noqa: E402
from recipes.checks import cpu_has_bf16  # noqa: E402
from recipes.loader import load_recipe  # noqa: E402
from training.data import load_split  # noqa: E402

RECIPE = ROOT / "recipes/triplets/smollm2-135m-full-cpu.yaml"
FIGURES = {"relation_accuracy": "personaext.relation_accuracy", "exact_rows": "personaext.exact_triplet"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000, help="training rows, for the model and the baselines alike")
    parser.add_argument("--epochs", type=float, default=2.0)
    parser.add_argument("--test-rows", type=int, default=None, help="default: all of the test split")
    parser.add_argument("--out", type=Path, default=ROOT / "outputs/bench/personaext")
    parser.add_argument("--record", action="store_true", help="write the figures into docs/results.json")
    args = parser.parse_args()

    data = args.out / "data"
    if not (data / "card.json").is_file():
        from data_synthesis.corpora.personaext import prepare

        prepare(data)
    mixture = f"[{{path: {data}, rows: {args.rows}}}]"
    run = args.out / f"run-{args.rows}x{args.epochs:g}"
    overrides = [
        "--dataset_name",
        "null",
        "--datasets",
        mixture,
        "--num_train_epochs",
        str(args.epochs),
        "--output_dir",
        str(run),
    ]
    if cpu_has_bf16():  # mixed precision: fp32 weights, bf16 matrix products, twice as fast where the CPU has them
        overrides += ["--bf16", "true"]
    recipe = load_recipe(RECIPE, overrides)
    extractor = load_extractor(recipe.extractor, recipe.extractor_options)
    train, _ = load_split(recipe.values, extractor, "train")
    test = read_rows(data / "test.jsonl", extractor, args.test_rows)
    inputs = [row.input for row in test]
    print(f"{len(train)} training rows, {len(test)} test rows", flush=True)

    def scored(name: str, predict: Any) -> Result:
        folder = args.out / f"{name}-{args.rows}-{len(test)}"
        if not (folder / "result.json").is_file():
            started = time.monotonic()
            answers, model, adapter = predict()
            meta = {
                "model": model,
                "adapter": adapter,
                "dataset": str(data / "test.jsonl"),
                "dataset_sha256": sha256(data / "test.jsonl"),
                "template_sha256": None,
                "seed": 0,
                "seconds": time.monotonic() - started,
            }
            evaluate(answers, test, extractor, folder, meta)
        result = read_result(folder)
        shown = ", ".join(
            f"{m} {result.metrics[m].value:.3f} [{result.metrics[m].low:.3f}, {result.metrics[m].high:.3f}]"
            for m in FIGURES
        )
        print(f"{name}: {shown}", flush=True)
        return result

    def baseline(model: Any) -> Any:
        return lambda: ([Prediction(v) for v in model.fit(train).predict(inputs)], type(model).__name__, None)

    def trained() -> Any:
        from serve.generate import Generator
        from training.sft import train as train_recipe

        record_path = run / "run.json"
        if not record_path.is_file() or '"status": "finished"' not in record_path.read_text(encoding="utf-8"):
            train_recipe(recipe, extractor)
        generator: Any = Generator(
            run,
            extractor,
            batch_size=32,
            max_tokens=96,
        )
        answers = generator.generate(inputs, on_progress=lambda done, total: print(f"  {done}/{total}", flush=True))
        return answers, recipe.values["model_name_or_path"], None

    results = {
        "tfidf": scored("tfidf", baseline(TfidfLinear())),
        "minilm_nn": scored("minilm_nn", baseline(NearestNeighbour(slot_filling=False))),
        "model": scored(f"model-{args.epochs:g}", trained),
    }
    if args.record:
        for name, result in results.items():
            for metric, figure in FIGURES.items():
                score = result.metrics[metric]
                record(
                    figure if name == "model" else f"{figure}.{name}",
                    score.value,
                    n=score.n,
                    interval=(score.low, score.high),
                    command=f"python tests/benchmarks/personaext.py --rows {args.rows} --epochs {args.epochs:g} --record",
                    data=f"PersonaExt, {len(train)} training rows, test split by utterance",
                    model=f"SmolLM2-135M-Instruct, full fine-tuning, {args.epochs:g} epochs"
                    if name == "model"
                    else name,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
