"""Percentile bootstrap over rows, or over the persons that the rows come from.

Rows of one person are not independent (they share facts, names and wordings), so resampling rows would claim more
certainty than there is. With `groups`, whole groups are resampled (cluster bootstrap; Davison and Hinkley, Bootstrap
Methods, 3.8).

A metric here is a function of summed integer counts, so a resample is a weighted sum: one matrix product makes all of
them. A paired difference needs nothing more: put the counts of both systems side by side in one row, and let the metric
subtract.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 4_000_000  # resampled weights held at once (32 MB)


def resampled_totals(
    counts: NDArray[Any], groups: Sequence[str] | None = None, n_resamples: int = 1000, seed: int = 0
) -> NDArray[np.int64]:
    """Summed counts of each resample: integers [n_resamples, fields]. counts: integers [rows, fields]; groups: one
    label a row.

    The rows of a group are summed first and the groups are drawn with replacement, as many as there are.
    """
    units = np.asarray(
        counts, dtype=np.float64
    )  # sums of counts stay whole far below 2**53, and BLAS multiplies floats
    if units.ndim != 2 or not len(units):
        raise ValueError(f"counts have shape {units.shape}: an array [rows, fields] with at least one row is due.")
    if groups is not None:
        if len(groups) != len(units):
            raise ValueError(f"{len(groups)} group labels were given for {len(units)} rows.")
        labels, places = np.unique(np.asarray(groups), return_inverse=True)
        summed = np.zeros((len(labels), units.shape[1]))
        np.add.at(summed, places, units)
        units = summed
    generator = np.random.default_rng(seed)
    n = len(units)
    block = max(1, _BLOCK // n)
    totals = [
        generator.multinomial(n, np.full(n, 1 / n), size=min(block, n_resamples - done)).astype(np.float64) @ units
        for done in range(0, n_resamples, block)
    ]
    return np.rint(np.concatenate(totals)).astype(np.int64)


def percentiles(values: NDArray[np.float64] | Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """The central interval that holds `level` of the resampled values."""
    low, high = np.quantile(np.asarray(values, dtype=np.float64), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def interval(
    counts: NDArray[Any],
    metric: Callable[[NDArray[np.int64]], float],
    groups: Sequence[str] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[float, float]:
    """Confidence interval (low, high) of `metric(summed counts [fields])` for integer counts [rows, fields].

    A single row or group says nothing about the spread: the interval is then (nan, nan). When all rows are alike (every
    row right) it has no width; it then speaks of these rows, not of the chance that the next one fails.
    """
    if len(counts) < 2 or (groups is not None and len(set(groups)) < 2):
        return math.nan, math.nan
    totals = resampled_totals(counts, groups, n_resamples, seed)
    return percentiles([metric(total) for total in totals], level)
