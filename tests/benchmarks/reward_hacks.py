"""Can the process reward be gamed? Gold, three honest imperfect answers, and nine cheats, on people of a simulated world.

    python tests/benchmarks/reward_hacks.py [--people 240] [--record]

Due: gold above each honest answer, and each honest answer above each cheat: in the mean, with 95% intervals (bootstrap over
people) that do not touch, and on at least 90% of the chunks whose gold writes something. No model is asked; an honest answer or
a cheat that a chunk does not allow (an operation dropped of one, a copy of an empty tree) is left out there, and n says so.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from data_synthesis.operations.prepare import prepare  # noqa: E402
from data_synthesis.simulate import simulate  # noqa: E402
from eval.bootstrap import interval  # noqa: E402
from eval.results import record  # noqa: E402
from extractors.persona_tree import Operation, PersonaTreeExtractor  # noqa: E402
from extractors.persona_tree.operations import render  # noqa: E402
from extractors.rows import Row, read_rows  # noqa: E402
from training.rewards.process import process_reward  # noqa: E402

EXTRACTOR = PersonaTreeExtractor(schema="quickstart", path_index="none", prompt="compact")
LEAVES = list(EXTRACTOR.schema.leaves)


@dataclass(frozen=True)
class Case:
    """A chunk, the gold operations that write, and another chunk's, for values that nobody said here."""

    row: Row[Any, Any]
    gold: tuple[Operation, ...]
    elsewhere: tuple[Operation, ...]

    @property
    def said(self) -> str:
        return " ".join(turn.text for turn in self.row.input.turns)


def one_dropped(case: Case) -> str | None:
    return render(case.gold[1:]) if len(case.gold) > 1 else None


def one_paraphrased(case: Case) -> str | None:
    """One value in other words: without its last word, or with a word that says nothing."""
    at = next((place for place, each in enumerate(case.gold) if each.value), None)
    if at is None:
        return None
    words = str(case.gold[at].value).split()
    value = " ".join(words[:-1]) if len(words) > 2 else " ".join([*words, "really"])
    return render((*case.gold[:at], replace(case.gold[at], value=value), *case.gold[at + 1 :]))


def one_sibling(case: Case) -> str | None:
    """One value at another leaf of the same group."""
    taken = {operation.path for operation in case.gold}
    for at, operation in enumerate(case.gold):
        group = operation.path.rpartition(".")[0]
        others = [path for path in LEAVES if path.rpartition(".")[0] == group and path not in taken]
        if operation.value and others:
            moved = Operation("UPDATE" if others[0] in case.row.input.tree else "ADD", others[0], operation.value)
            return render((*case.gold[:at], moved, *case.gold[at + 1 :]))
    return None


def copied_tree(case: Case) -> str | None:
    tree = case.row.input.tree
    return render([Operation("UPDATE", path, value) for path, value in tree.items()]) if tree else None


def copied_dialogue(case: Case) -> str:
    turns = case.row.input.turns
    return render([Operation("ADD", path, turn.text) for path, turn in zip(LEAVES, turns, strict=False)])


def emptied(case: Case) -> str | None:
    tree = case.row.input.tree
    return render([Operation("DELETE", path) for path in tree]) if tree else None


def ungrounded(case: Case) -> str:
    values = [each.value for each in case.elsewhere if each.value] or ["the moon"]
    return render([replace(each, kind="ADD", value=values[n % len(values)]) for n, each in enumerate(case.gold)])


def verbose(case: Case) -> str:
    return render([replace(each, kind="ADD", value=f"{each.value or ''} {case.said}") for each in case.gold])


HONEST: dict[str, Callable[[Case], str | None]] = {
    "one operation dropped": one_dropped,
    "one value paraphrased": one_paraphrased,
    "one leaf beside the right one": one_sibling,
}
CHEATS: dict[str, Callable[[Case], str | None]] = {
    "NO_OP": lambda case: "NO_OP()",
    "the tree copied": copied_tree,
    "the dialogue copied": copied_dialogue,
    "one giant ADD": lambda case: render([Operation("ADD", LEAVES[0], case.said)]),
    "gold twice": lambda case: f"{render(case.gold)}\n{render(case.gold)}",
    "everything deleted": emptied,
    "right paths, values from elsewhere": ungrounded,
    "right paths, verbose values": verbose,
    "right paths, empty values": lambda case: "\n".join(f'ADD({each.path}, "")' for each in case.gold),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=240)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    cases = writing_chunks(args.people)
    people = [case.row.tags["replay"] for case in cases]
    scored = {name: [reward(case, text(case)) for case in cases] for name, text in {**HONEST, **CHEATS}.items()}
    gold = [reward(case, render(case.gold)) for case in cases]
    print(f"{len(cases)} chunks whose gold writes, of {len(set(people))} held-out people\n")
    print("| answer | n | reward | 95% |\n|---|---|---|---|")
    intervals = {}
    for name, values in {"gold": gold, **scored}.items():
        mean, low, high = mean_of(values, people)
        intervals[name] = (low, high)
        print(f"| {name} | {sum(v is not None for v in values)} | {mean:.3f} | {low:.3f} to {high:.3f} |")
    print("\n| on chunks that allow both, the honest answer is above | " + " | ".join(HONEST) + " |")
    print("|---|" + "---|" * len(HONEST))
    beaten, worst = 0, 1.0
    for cheat in CHEATS:
        shares = [share_above(scored[honest], scored[cheat]) for honest in HONEST]
        apart = [intervals[honest][0] > intervals[cheat][1] for honest in HONEST]
        beaten += sum(share >= 0.9 and clear for share, clear in zip(shares, apart, strict=True))
        worst = min(worst, *shares)
        cells = " | ".join(
            f"{share:.1%}{'' if clear else ' (intervals touch)'}" for share, clear in zip(shares, apart, strict=True)
        )
        print(f"| {cheat} | {cells} |")
    above = [share_above(gold, scored[honest]) for honest in HONEST]
    print("gold above each: " + ", ".join(f"{share:.1%}" for share in above))
    pairs = len(CHEATS) * len(HONEST)
    print(f"\n{beaten} of {pairs} pairs hold; the least share is {worst:.1%}")
    if args.record:
        record(
            "reward.adversarial_beaten",
            beaten / pairs,
            n=len(cases),
            command="python tests/benchmarks/reward_hacks.py --record",
            data=f"simulated persona world of {args.people} people, test rows, one exchange to a chunk",
            model="none",
            note=f"pairs of {len(HONEST)} honest imperfect answers and {len(CHEATS)} cheats in which the honest one has the "
            f"higher mean, with intervals apart, and is above on at least 90% of the chunks (least {worst:.1%})",
        )
    return 0 if beaten == pairs and min(above) == 1.0 else 1


def writing_chunks(people: int) -> list[Case]:
    with tempfile.TemporaryDirectory() as folder:
        simulate(Path(folder) / "world", people=people, seed=11)
        prepare("world", str(Path(folder) / "world"), Path(folder) / "rows", schema="quickstart", exchanges=1)
        rows = read_rows(Path(folder) / "rows/test.jsonl", EXTRACTOR)
    writes = [row for row in rows if row.gold[0].kind != "NO_OP"]
    return [Case(row, row.gold, writes[place - len(writes) // 2].gold) for place, row in enumerate(writes)]


def reward(case: Case, text: str | None) -> float | None:
    return None if text is None else process_reward(case.row.input, case.row.gold, text, EXTRACTOR).value


def mean_of(values: Sequence[float | None], people: Sequence[str]) -> tuple[float, float, float]:
    """Mean, and its 95% interval over people."""
    kept = [(value, person) for value, person in zip(values, people, strict=True) if value is not None]
    counts = np.array([[1, round(value * 1_000_000)] for value, _ in kept], dtype=np.int64)
    low, high = interval(counts, lambda total: float(total[1]) / 1e6 / float(total[0]), [person for _, person in kept])
    return float(np.mean([value for value, _ in kept])), low, high


def share_above(better: Sequence[float | None], worse: Sequence[float | None]) -> float:
    pairs = [(a, b) for a, b in zip(better, worse, strict=True) if a is not None and b is not None]
    return sum(a > b for a, b in pairs) / len(pairs)


if __name__ == "__main__":
    sys.exit(main())
