"""Compare two result folders on the same rows: the paired difference of every metric, with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.evaluate import Result, Score, counts_matrix, metric_of, read_result, read_samples, score_counts
from extractors.contract import InputError


@dataclass(frozen=True)
class Difference:
    """One metric: first and second folder's value, and second minus first with its interval."""

    first: float
    second: float
    difference: Score


def compare(first: Path, second: Path, n_resamples: int = 1000) -> dict[str, Difference]:
    """Metric by metric, second minus first, over the groups that both resample together (paired cluster bootstrap).

    Raises InputError where the folders hold other rows, another gold answer, or another extractor.
    """
    results = _result(first), _result(second)
    names = [result.meta["extractor"]["name"] for result in results]
    if names[0] != names[1]:
        raise InputError(f"{first} scores {names[0]!r} and {second} scores {names[1]!r}: nothing to compare.")
    ours = {sample["id"]: sample for sample in read_samples(first)}
    theirs = {sample["id"]: sample for sample in read_samples(second)}
    only = [
        (a, b, sorted(x.keys() - y.keys()))
        for a, b, x, y in ((first, second, ours, theirs), (second, first, theirs, ours))
    ]
    for a, b, missing in only:
        if missing:
            raise InputError(
                f"{len(missing)} rows of {a} are not in {b} (the first is {missing[0]!r}): compare results on the same "
                "rows, scored with the same `dataset_name`, `dataset_test_split`, `eval_rows` and `seed`."
            )
    changed = [name for name in ours if ours[name]["gold"] != theirs[name]["gold"]]
    if changed:
        raise InputError(
            f"{len(changed)} rows have another gold answer in {second} than in {first} (the first is {changed[0]!r}): "
            "score both on the same version of the dataset."
        )

    metric = metric_of(names[0])
    sides = [_matrix([samples[name] for name in ours]) for samples in (ours, theirs)]
    width = sides[0].shape[1]

    def difference(total: NDArray[np.int64]) -> dict[str, float]:
        a, b = metric(total[:width]), metric(total[width:])
        return {name: b[name] - a[name] for name in a if name in b}

    groups = [sample["group"] for sample in ours.values()]
    scores = score_counts(np.hstack(sides), groups, difference, n_resamples)
    first_values, second_values = (metric(side.sum(axis=0)) for side in sides)
    return {name: Difference(first_values[name], second_values[name], score) for name, score in scores.items()}


def comparison_table(differences: dict[str, Difference], first: str, second: str) -> str:
    """The differences as text; a star marks an interval without zero in it."""
    lines = [f"first:  {first}", f"second: {second}", ""]
    lines.append(f"{'metric':<26}{'first':>9}{'second':>9}{'second - first':>17}   95% interval")
    for name, found in differences.items():
        score = found.difference
        interval, mark = "too few persons to tell", ""
        if score.low is not None and score.high is not None:
            interval = f"[{score.low:+.3f}, {score.high:+.3f}]"
            mark = " *" if score.low > 0 or score.high < 0 else ""
        lines.append(f"{name:<26}{found.first:>9.3f}{found.second:>9.3f}{score.value:>+17.3f}   {interval}{mark}")
    n = next(iter(differences.values())).difference.n
    return "\n".join([*lines, "", f"n = {n} rows; * the interval of the paired difference does not hold 0"])


def _result(folder: Path) -> Result:
    for name in ("result.json", "samples.jsonl"):
        if not (folder / name).is_file():
            raise InputError(
                f"{folder} has no {name}: name a result folder, such as outputs/eval/triplets-world/model."
            )
    return read_result(folder)


def _matrix(samples: list[dict[str, Any]]) -> NDArray[np.int64]:
    return counts_matrix([sample["counts"] for sample in samples], [sample["compliant"] for sample in samples])
