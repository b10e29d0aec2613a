"""Continuity metrics against values that were worked out by hand, and against the textbook's definitions."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.continuity import UtterancePair
from extractors.continuity.score import (
    Counts,
    auroc,
    builds_per_100_messages,
    count,
    episode_lengths,
    expected_calibration_error,
    label_metrics,
    metrics,
    pk,
    window_diff,
    window_size,
)
from extractors.contract import ExtractionError

PAIR = UtterancePair("a", "b")
FAILURE = ExtractionError("no_json", 0, "yes")
LABELS = st.lists(st.sampled_from((0, 1)), min_size=1, max_size=12)
PAIRED = st.lists(st.tuples(st.sampled_from((0, 1)), st.sampled_from((0, 1))), min_size=1, max_size=12).map(
    lambda pairs: ([gold for gold, _ in pairs], [answer for _, answer in pairs])
)


# Rows


def test_boundary_precision_recall_and_f1_of_a_small_set() -> None:
    # gold boundaries at 0, 2, 4; answered ones at 0, 1, 4, 5: two hits
    found = label_metrics([0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 0, 0])
    assert (found["precision"], found["recall"]) == (0.5, pytest.approx(2 / 3))
    assert found["f1"] == pytest.approx(4 / 7)
    assert found["accuracy"] == 0.5
    assert (found["boundary_rate"], found["gold_boundary_rate"]) == (pytest.approx(4 / 6), 0.5)


def test_always_going_on_is_accurate_and_finds_nothing() -> None:
    found = label_metrics([1, 1, 1, 0], [1, 1, 1, 1])
    assert (found["accuracy"], found["precision"], found["recall"], found["f1"]) == (0.75, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("gold", [0, 1])
def test_an_answer_that_cannot_be_read_is_wrong_and_no_boundary(gold: int) -> None:
    counts = count(PAIR, gold, FAILURE)
    assert (counts.rows_right, counts.predicted, counts.parse_failures) == (0, 0, 1)
    assert metrics(counts)["accuracy"] == 0.0 and metrics(counts)["parse_failure_rate"] == 1.0


@given(PAIRED)
def test_rows_added_up_one_by_one_score_as_the_whole(labels: tuple[list[int], list[int]]) -> None:
    gold, predicted = labels
    total = sum((count(PAIR, truth, guess) for truth, guess in zip(gold, predicted, strict=True)), Counts())
    assert metrics(total) == label_metrics(gold, predicted)


def test_labels_of_another_length_or_value_are_refused() -> None:
    with pytest.raises(ValueError, match="2 labels were predicted for 1"):
        label_metrics([1], [1, 0])
    with pytest.raises(ValueError, match="not 2"):
        label_metrics([1, 0], [1, 2])


# Probabilities


def test_auroc_counts_the_pairs_in_the_right_order_and_half_of_the_ties() -> None:
    # ones at .9, .5, .2; zeros at .5, .1: .9 beats both, .5 beats one and ties with one, .2 beats one: 4.5 of 6
    assert auroc([1, 0, 1, 0, 1], [0.9, 0.5, 0.5, 0.1, 0.2]) == pytest.approx(4.5 / 6)


def test_auroc_of_one_label_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="both labels"):
        auroc([1, 1], [0.2, 0.4])


@given(st.lists(st.tuples(st.sampled_from((0, 1)), st.floats(0, 1)), min_size=2, max_size=15))
def test_auroc_is_the_chance_of_the_right_order_and_the_same_for_either_class(rows: list[tuple[int, float]]) -> None:
    ones, zeros = ([p for label, p in rows if label == which] for which in (1, 0))
    if not ones or not zeros:
        return
    wins = [(a > b) + 0.5 * (a == b) for a, b in product(ones, zeros)]
    labels, scores = zip(*rows, strict=True)
    value = auroc(labels, scores)
    assert value == pytest.approx(np.mean(wins))
    assert value == pytest.approx(auroc([1 - label for label in labels], [-p for p in scores]))


def test_calibration_error_by_hand() -> None:
    # bin [.2, .3): mean .25, half are 1, gap .25 over 2 rows; bin [.9, 1]: mean .95, all are 1, gap .05 over 2 rows
    assert expected_calibration_error([1, 0, 1, 1], [0.25, 0.25, 0.9, 1.0]) == pytest.approx((2 * 0.25 + 2 * 0.05) / 4)
    assert expected_calibration_error([0, 1], [0.0, 1.0]) == 0.0
    assert expected_calibration_error([1, 0], [0.0, 1.0]) == 1.0


@pytest.mark.parametrize("scores", [[0.5], [0.5, 1.5], [0.5, float("nan")]])
def test_probabilities_that_are_none_are_refused(scores: list[float]) -> None:
    with pytest.raises(ValueError):
        expected_calibration_error([0, 1], scores)


# Conversations


def test_pk_and_window_diff_by_hand() -> None:
    # 6 utterances, gold episodes 3 + 3, answered 2 + 4; k = 2: windows over gaps 01, 12, 23, 34
    gold, predicted = [[1, 1, 0, 1, 1]], [[1, 0, 1, 1, 1]]
    # gold has a boundary in 12, 23; the answer in 01, 12: windows 01 and 23 disagree
    assert pk(gold, predicted, k=2) == window_diff(gold, predicted, k=2) == 0.5
    # one more boundary beside a right one is unseen by Pk in the window that holds both
    assert pk([[1, 0, 1, 1]], [[1, 0, 0, 1]], k=3) == 0.0
    assert window_diff([[1, 0, 1, 1]], [[1, 0, 0, 1]], k=3) == 1.0


def test_the_window_is_half_the_mean_gold_episode() -> None:
    assert window_size([[1, 1, 1, 0, 1, 1, 1]]) == 2  # 8 utterances, 2 episodes
    assert window_size([[1, 1, 1], [0]]) == 1  # 6 utterances, 3 episodes
    assert pk([[1, 1, 1, 0, 1, 1, 1]], [[1] * 7]) == pytest.approx(2 / 6)


def test_windows_stay_within_a_conversation_and_short_ones_give_none() -> None:
    assert pk([[1, 1, 1], [0]], [[1, 1, 1], [1]], k=2) == 0.0
    with pytest.raises(ValueError, match="no window fits"):
        pk([[0], [1]], [[1], [1]], k=2)


@given(PAIRED, st.integers(1, 4))
def test_pk_and_window_diff_agree_with_their_definitions(labels: tuple[list[int], list[int]], k: int) -> None:
    gold, predicted = labels
    if len(gold) < k:
        return
    numbers = [np.cumsum([0, *(1 - label for label in side)]) for side in (gold, predicted)]  # episode of an utterance
    ends = [[(side[i], side[i + k]) for i in range(len(side) - k)] for side in numbers]
    apart = [[a != b for a, b in side] for side in ends]
    crossed = [[b - a for a, b in side] for side in ends]
    assert pk([gold], [predicted], k) == pytest.approx(np.mean(np.not_equal(*apart)))
    assert window_diff([gold], [predicted], k) == pytest.approx(np.mean(np.not_equal(*crossed)))
    assert pk([gold], [predicted], k) <= window_diff([gold], [predicted], k)
    assert pk([gold], [gold], k) == window_diff([gold], [gold], k) == 0.0


@given(LABELS)
def test_episodes_cover_every_utterance_once(labels: list[int]) -> None:
    lengths = episode_lengths(labels)
    assert sum(lengths) == len(labels) + 1 and min(lengths) >= 1 and len(lengths) == labels.count(0) + 1
    starts = [0, *(place + 1 for place, label in enumerate(labels) if label == 0), len(labels) + 1]
    assert lengths == [b - a for a, b in pairwise(starts)]


def test_builds_per_100_messages_count_the_open_episode_of_each_conversation() -> None:
    # 3 user messages in 2 episodes and 1 user message in one episode; with replies 8 messages
    assert builds_per_100_messages([[1, 0], []], 8) == pytest.approx(100 * 3 / 8)
    with pytest.raises(ValueError, match="messages"):
        builds_per_100_messages([[1]], 0)
