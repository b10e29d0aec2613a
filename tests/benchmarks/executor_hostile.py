"""The executor against operation lists as nobody should send them: does anything raise, is anything lost, does the schema
hold?

    python tests/benchmarks/executor_hostile.py [--lists 10000] [--record]

Hypothesis draws trees of three schemas (one of them open for new leaves) and lists of operations on them, with hostile
paths, values and kinds among sensible ones; every list is checked as `tests/extractors/hostile.py` says.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402

from eval.results import record  # noqa: E402
from extractors.persona_tree import Operation  # noqa: E402
from extractors.persona_tree.tree import PersonaTree  # noqa: E402
from tests.extractors.hostile import check, operation_lists, trees  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=int, default=10_000)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()

    @settings(
        max_examples=args.lists,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(trees(), operation_lists)
    def tried(tree: PersonaTree, operations: list[Operation]) -> None:
        done = check(tree, operations)
        counts.update(lists=1, operations=len(operations), applied=len(done.applied), rejected=len(done.rejected))
        reasons.update(each.reason for each in done.rejected)

    started = time.monotonic()
    tried()  # raises at the first list with which something does not hold
    print(
        f"{counts['lists']} lists, {counts['operations']} operations: {counts['applied']} applied, "
        f"{counts['rejected']} rejected, none raised, none unreported ({time.monotonic() - started:.0f} s)"
    )
    print("rejected: " + ", ".join(f"{reason} {count}" for reason, count in reasons.most_common()))
    if args.record:
        record(
            "executor.hostile_lists",
            float(counts["lists"]),
            n=counts["operations"],
            command=f"python tests/benchmarks/executor_hostile.py --lists {args.lists} --record",
            data="random operation lists (hypothesis)",
            model="none",
            note=f"none raised, every one of {counts['rejected']} rejected operations was reported; n counts operations",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
