"""How far loss and gradient of reinforcement learning are from the paper's formula, computed anew in float64.

    python tests/benchmarks/grpo_objective.py [--record]

A tiny random Qwen3 with a LoRA, two groups of eight answers of unequal length, one cut and one unscorable in each, a KL term; on
policy and with both sides of the clip at work, without and with credit for single operations.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from eval.results import record  # noqa: E402
from tests.tiny import make_tiny_chat_model  # noqa: E402
from tests.training.grpo_objective import objective_errors  # noqa: E402
from tests.training.grpo_runs import write_rows  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the largest error into docs/results.json")
    args = parser.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, data = make_tiny_chat_model(folder / "model", "qwen3", template="qwen3"), write_rows(folder / "data")
        for stale in (False, True):
            for credit in (0.0, 0.5):
                found = objective_errors(folder / f"{stale}-{credit}", model, data, stale, credit)
                print(f"stale {stale}, operation_credit {credit}: loss {found.loss:.1e}, gradient {found.gradient:.1e}")
                worst = max(worst, found.gradient)
    print(f"largest error of a gradient, as a share of the largest gradient: {worst:.1e}")
    if args.record:
        record(
            "grpo.gradient_max_error",
            worst,
            n=4,
            command="python tests/benchmarks/grpo_objective.py",
            data="two groups of eight known completions",
            model="tiny random Qwen3 with a LoRA, fp32",
            note="largest difference from float64, as a share of the largest gradient; n settings",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
