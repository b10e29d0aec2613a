"""Bootstrap intervals: what a reader of a report relies on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.bootstrap import interval, resampled_totals


def ratio(total: np.ndarray) -> float:
    return float(total[0] / total[1]) if total[1] else 0.0


def rows_of(hits: list[int]) -> np.ndarray:
    return np.array([[hit, 1] for hit in hits])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 1), min_size=10, max_size=200))
def test_the_interval_holds_the_point_estimate(hits: list[int]) -> None:
    low, high = interval(rows_of(hits), ratio)
    assert low <= sum(hits) / len(hits) <= high


def test_the_interval_of_a_share_is_the_one_that_theory_gives() -> None:
    hits = [1] * 300 + [0] * 700
    low, high = interval(rows_of(hits), ratio, n_resamples=4000)
    spread = 1.96 * math.sqrt(0.3 * 0.7 / 1000)
    assert low == pytest.approx(0.3 - spread, abs=0.004)
    assert high == pytest.approx(0.3 + spread, abs=0.004)


def test_rows_that_are_all_alike_have_an_interval_without_width() -> None:
    assert interval(rows_of([1] * 20), ratio) == (1.0, 1.0)


def test_one_row_or_one_person_gives_no_interval() -> None:
    assert all(math.isnan(end) for end in interval(rows_of([1]), ratio))
    assert all(math.isnan(end) for end in interval(rows_of([1, 0, 1]), ratio, groups=["mia"] * 3))


def test_rows_that_are_copies_within_a_person_do_not_narrow_the_interval() -> None:
    hits = [1] * 12 + [0] * 18
    groups = [f"p{i}" for i in range(30)]
    low, high = interval(rows_of(hits), ratio, groups)
    many_low, many_high = interval(rows_of(hits * 10), ratio, groups * 10)
    naive_low, naive_high = interval(rows_of(hits * 10), ratio)
    assert (many_low, many_high) == (low, high)
    assert many_high - many_low > 2 * (naive_high - naive_low)


def test_the_order_of_rows_within_groups_does_not_matter() -> None:
    hits, groups = [1, 0, 0, 1, 1, 0], ["a", "a", "b", "b", "c", "c"]
    order = [5, 3, 1, 0, 2, 4]
    mixed = interval(rows_of([hits[i] for i in order]), ratio, [groups[i] for i in order])
    assert mixed == interval(rows_of(hits), ratio, groups)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    counts = rows_of([1, 0, 1, 1, 0, 0, 1, 0] * 9)
    assert interval(counts, ratio, seed=3) == interval(counts, ratio, seed=3)
    assert not np.array_equal(resampled_totals(counts, seed=3), resampled_totals(counts, seed=4))


def test_every_resample_draws_as_many_rows_as_there_are() -> None:
    totals = resampled_totals(rows_of([1, 0, 1, 0, 0]), n_resamples=50)
    assert totals.shape == (50, 2) and set(totals[:, 1]) == {5}


def test_many_rows_are_resampled_in_blocks_with_the_same_shape() -> None:
    totals = resampled_totals(np.ones((50_000, 1), dtype=int), n_resamples=170)
    assert totals.shape == (170, 1) and set(totals[:, 0]) == {50_000}


def test_counts_that_are_no_matrix_and_labels_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="rows, fields"):
        resampled_totals(np.ones(3))
    with pytest.raises(ValueError, match="2 group labels were given for 3 rows"):
        resampled_totals(rows_of([1, 0, 1]), ["a", "b"])
