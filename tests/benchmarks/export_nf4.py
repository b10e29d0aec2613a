"""What merging costs a QLoRA model: task F1 of the NF4 base + adapter beside the merged, unquantised folder, same rows.

    python tests/benchmarks/export_nf4.py [--steps 60] [--record]       about 15 minutes on one CPU core

An adapter learns against a 4-bit base, and is merged into the unquantised one; the difference is small but not nothing.
SmolLM2-135M-Instruct is trained in true 4 bit (NF4, double quantisation) on the simulated world, exported with all its
proofs, and both answer the same 200 dev rows under the contract's schema.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from data_synthesis.simulate import simulate  # noqa: E402
from eval.results import record  # noqa: E402
from extractors import load_extractor  # noqa: E402
from recipes.loader import load_recipe  # noqa: E402
from serve.export import export  # noqa: E402
from training.sft import train  # noqa: E402

RECIPE = ROOT / "recipes/triplets/smollm2-135m-lora-cpu.yaml"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        simulate(folder / "world", people=150, seed=0, shares={"train": 0.62, "dev": 0.08, "test": 0.30})
        changed = {
            "dataset_name": folder / "world",
            "output_dir": folder / "run",
            "extractor_options": "{relations: open, closed: false, prompt: compact}",
            "load_in_4bit": "true",
            "use_bnb_nested_quant": "true",
            "bnb_4bit_quant_type": "nf4",
            "per_device_train_batch_size": 8,
            "max_steps": args.steps,
            "eval_strategy": "no",
        }
        recipe = load_recipe(RECIPE, [word for name, value in changed.items() for word in (f"--{name}", str(value))])
        train(recipe, load_extractor(recipe.extractor, recipe.extractor_options))
        report = export(folder / "run", folder / "export", rows=folder / "world/dev.jsonl", compare_rows=200)
    proof = report["proof"]
    print(json.dumps(proof, indent=2))
    if args.record:
        notes = {
            "f1_drop_from_nf4": f"NF4 base + adapter {proof['f1_nf4_adapter']:.3f}, merged {proof['f1_merged']:.3f}",
            "max_logit_diff": f"merged folder against unquantised base + adapter, computed in {proof['computed_in']}",
        }
        for name, note in notes.items():
            record(
                f"export.{name}",
                proof[name],
                n=200 if name == "f1_drop_from_nf4" else proof["rows"],
                command=f"python tests/benchmarks/export_nf4.py --steps {args.steps} --record",
                data="simulated persona world, dev rows",
                model="SmolLM2-135M-Instruct, NF4 QLoRA",
                note=note,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
