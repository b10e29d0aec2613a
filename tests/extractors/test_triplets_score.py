"""Triplet metrics on rows written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.contract import ExtractionError
from extractors.triplets import Dialogue, Triplet, Turn
from extractors.triplets.score import Counts, count, metrics, normalise

CAT = Triplet("Mia", "have_pet", "a cat")
NURSE = Triplet("Tom", "has_profession", "nurse")
SAID = Dialogue((Turn("Mia", "I finally adopted a cat, Pixel."), Turn("Tom", "As a nurse I have no time for one.")))
FAILURE = ExtractionError("truncated", 3, "[{", "the text ends inside the JSON", partial=(CAT,))


def score(gold: list[Triplet], answer: list[Triplet] | ExtractionError) -> dict[str, float]:
    return metrics(count(SAID, gold, answer))


def test_a_right_answer_scores_one_everywhere_and_invents_nothing() -> None:
    found = score([CAT, NURSE], [NURSE, CAT])
    assert (
        found["f1"]
        == found["exact_f1"]
        == found["relation_accuracy"]
        == found["exact_rows"]
        == found["right_rows"]
        == 1.0
    )
    assert found["parse_failure_rate"] == found["hallucinated_object_rate"] == 0.0


def test_articles_case_and_punctuation_count_for_the_exact_metrics_only() -> None:
    found = score([CAT], [Triplet("mia", "have_pet", "Cat.")])
    assert (found["f1"], found["right_rows"]) == (1.0, 1.0)
    assert (found["exact_f1"], found["exact_rows"]) == (0.0, 0.0)


def test_an_answer_that_cannot_be_read_misses_all_gold_even_where_a_part_was_readable() -> None:
    found = score([CAT], FAILURE)
    assert (found["recall"], found["f1"], found["right_rows"], found["parse_failure_rate"]) == (0.0, 0.0, 0.0, 1.0)


def test_an_empty_answer_is_right_on_a_row_without_gold_and_a_failure_there_is_not() -> None:
    assert score([], [])["right_rows"] == score([], [])["relation_accuracy"] == 1.0
    found = score([], FAILURE)
    assert (found["right_rows"], found["exact_rows"], found["relation_accuracy"]) == (0.0, 0.0, 0.0)


def test_precision_and_recall_of_a_partly_right_answer() -> None:
    found = score([CAT, NURSE], [CAT, Triplet("Mia", "have_pet", "dog"), Triplet("Tom", "has_hobby", "chess")])
    assert (found["precision"], found["recall"], found["f1"]) == (pytest.approx(1 / 3), 0.5, 0.4)
    assert found["relation_accuracy"] == 0.0


def test_a_triplet_printed_twice_is_one_hit_and_one_false_positive() -> None:
    found = score([CAT], [CAT, CAT])
    assert (found["precision"], found["recall"]) == (0.5, 1.0)


def test_object_match_looks_only_at_pairs_of_subject_and_relation_that_were_found() -> None:
    found = score([CAT, NURSE], [Triplet("Mia", "have_pet", "dog"), NURSE])
    assert found["object_match"] == 0.5
    assert score([CAT], [NURSE])["object_match"] == 0.0


def test_relation_accuracy_needs_the_whole_multiset_of_relations() -> None:
    assert score([CAT, CAT], [CAT])["relation_accuracy"] == 0.0
    assert score([CAT], [Triplet("Tom", "have_pet", "dog")])["relation_accuracy"] == 1.0


def test_object_words_that_nobody_said_are_hallucinated_and_spoken_ones_are_not() -> None:
    assert score([], [Triplet("Mia", "have_pet", "grey cat")])["hallucinated_object_rate"] == 0.5
    assert score([], [Triplet("Mia", "have_pet", "the cat")])["hallucinated_object_rate"] == 0.0
    assert score([], [Triplet("Mia", "know", "Tom")])["hallucinated_object_rate"] == 0.0  # a speaker's name was given


def test_text_without_a_word_is_compared_as_it_stands() -> None:
    assert normalise("🐈") != normalise("🐕")
    found = score([Triplet("Mia", "like_animal", "🐈")], [Triplet("Mia", "like_animal", "🐕")])
    assert found["f1"] == 0.0


def test_composed_and_decomposed_accents_are_the_same_word() -> None:
    assert normalise("Caf\u00e9") == normalise("cafe\u0301")


def test_the_metrics_of_no_rows_are_zero() -> None:
    assert set(metrics(Counts()).values()) == {0.0}


TRIPLETS = st.lists(st.builds(Triplet, *[st.sampled_from(["Mia", "Tom", "a cat", "cat"])] * 3), max_size=5)


@given(st.lists(st.tuples(TRIPLETS, TRIPLETS), min_size=1, max_size=5))
def test_every_metric_lies_between_zero_and_one_and_exact_never_exceeds_normalised(
    rows: list[tuple[list[Triplet], list[Triplet]]],
) -> None:
    total = sum((count(SAID, gold, answer) for gold, answer in rows), Counts())
    found = metrics(total)
    assert all(0.0 <= value <= 1.0 for value in found.values())
    assert found["exact_f1"] <= found["f1"] and found["exact_rows"] <= found["right_rows"]
    assert total.objects <= total.pairs <= min(total.gold, total.predicted)
