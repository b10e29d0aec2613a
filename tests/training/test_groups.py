"""Groups of completions: advantages, flat groups, credit of operations, and where new prompts come from."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.groups import PromptStream, advantages, credit_advantages, is_flat, operation_lines, spread

REWARDS = st.lists(st.none() | st.floats(-1, 1), min_size=2, max_size=8)


def test_advantages_are_standard_scores_within_the_group() -> None:
    # mean 0.5, sample variance (4 x 0.25) / 3
    score = 0.5 / math.sqrt(1 / 3)
    assert advantages([[1.0, 0.0, 0.0, 1.0]])[0] == pytest.approx([score, -score, -score, score])


def test_an_unscorable_completion_has_no_advantage_and_counts_in_no_mean() -> None:
    assert advantages([[1.0, None, 0.0]])[0] == pytest.approx([math.sqrt(0.5), 0.0, -math.sqrt(0.5)])
    assert advantages([[None, None], [1.0, None]]) == [[0.0, 0.0], [0.0, 0.0]]


def test_advantages_can_be_divided_by_the_batch_or_not_at_all() -> None:
    groups = [[1.0, 0.0], [0.5, 0.25]]
    assert advantages(groups, "none") == [[0.5, -0.5], [0.125, -0.125]]
    whole = spread([1.0, 0.0, 0.5, 0.25])
    assert advantages(groups, "batch")[1] == pytest.approx([0.125 / whole, -0.125 / whole])


def test_a_group_closer_than_the_least_spread_is_flat_and_stays_at_zero() -> None:
    close = [0.50, 0.51, 0.50, 0.51]  # its std is 0.0058
    assert is_flat(close, 0.02) and not is_flat(close, 0.0)
    assert advantages([close], min_std=0.02) == [[0.0] * 4]
    assert is_flat([0.1 + 0.2, 0.3], 0.0), "equal but for rounding"


@given(st.lists(REWARDS, min_size=1, max_size=4))
def test_advantages_of_a_group_sum_to_zero_with_unit_variance(groups: list[list[float | None]]) -> None:
    for rewards, found in zip(groups, advantages(groups), strict=True):
        known = [value for value, reward in zip(found, rewards, strict=True) if reward is not None]
        assert all(value == 0.0 for value, reward in zip(found, rewards, strict=True) if reward is None)
        if is_flat(rewards, 0.0):
            assert found == [0.0] * len(rewards)
        else:
            assert sum(known) == pytest.approx(0, abs=1e-5) and spread(known) == pytest.approx(1, abs=1e-5)


def test_an_operations_credit_is_held_against_the_groups_other_operations() -> None:
    # qualities 1, 0.5, 0: mean 0.5, std 0.5
    assert credit_advantages([[1.0, 0.5], [], [0.0]]) == [[1.0, 0.0], [], [-1.0]]
    assert credit_advantages([[0.7], [0.7]]) == [[0.0], [0.0]]


def test_lines_of_operations_are_found_by_their_characters() -> None:
    text = 'ADD(A.B, "x")\nsome prose\nDELETE(A.C, None)'
    assert operation_lines(text) == [(0, 14), (25, 42)]
    assert operation_lines("NO_OP()") == []
    assert operation_lines('ADD(A.B, "x"), DELETE(A.C, None)\n') == [(0, 33), (0, 33)]
    assert operation_lines('ADD(A.B, "a value\nover two lines")') == [], "lines do not tell"


@given(rows=st.integers(1, 9), seed=st.integers(0, 5), draws=st.lists(st.integers(1, 4), max_size=8))
def test_a_stream_gives_every_row_before_it_repeats_one_and_goes_on_from_its_position(
    rows: int, seed: int, draws: list[int]
) -> None:
    stream = PromptStream(rows, seed)
    given_out = [stream._next() for _ in range(3 * rows)]
    assert [sorted(given_out[start : start + rows]) for start in (0, rows, 2 * rows)] == [list(range(rows))] * 3

    whole, first = PromptStream(rows, seed), PromptStream(rows, seed)
    for count in draws:
        whole.draw(count)
        first.draw(count)
    again = PromptStream(rows, seed, first.position)
    assert whole.draw(3) == again.draw(3)


def test_a_stream_passes_over_prompts_that_the_batch_has_while_there_are_others() -> None:
    stream = PromptStream(4, seed=1)
    for _ in range(10):
        assert set(stream.draw(2, without=[0, 3])) == {1, 2}
    assert set(stream.draw(4, without=[2])[:3]) == {0, 1, 3}
    assert sorted(set(PromptStream(2, 1).draw(5, without=[0, 1]))) == [0, 1], "all are taken, so any will do"
