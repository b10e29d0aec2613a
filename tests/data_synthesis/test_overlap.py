"""Leak gates between splits: what counts as the same text, what does not, and what a build says about it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_synthesis.overlap import assert_no_overlap, overlaps, remove_overlap, repeats
from data_synthesis.splits import normalise
from extractors.contract import InputError

LONG = "On Sundays my brother and I take the old boat out on the lake and fish for pike until it gets dark"
FACT = [{"subject": "Mia", "relation": "have_pet", "object": "dog"}]


def row(name: str, text: str, gold: Any = ()) -> dict[str, Any]:
    turns = [{"id": f"{name}-t", "speaker": "Mia", "text": text}]
    return {"id": name, "group": name, "input": {"turns": turns}, "gold": list(gold) if gold == () else gold}


def found(one: dict[str, Any], other: dict[str, Any], threshold: float = 0.8) -> list[float]:
    return [pair.similarity for pair in overlaps({"train": [one], "test": [other]}, threshold)]


def test_identical_text_in_other_case_and_punctuation_is_found() -> None:
    assert found(row("a", LONG), row("b", LONG.upper().replace(" ", "  ") + "!!")) == [1.0]


def test_a_text_with_one_word_changed_is_a_near_duplicate_and_its_similarity_is_the_jaccard_of_its_shingles() -> None:
    (likeness,) = found(row("a", LONG), row("b", LONG.replace("Sundays", "Mondays")))
    words = LONG.split()  # the changed word stands in two of the shingles
    assert likeness == pytest.approx((len(words) - 4) / (len(words)))


def test_other_texts_of_the_same_length_are_not_alike() -> None:
    assert found(row("a", LONG), row("b", " ".join(reversed(LONG.split())))) == []


def test_small_talk_does_not_fail_a_build_in_any_split() -> None:
    lines = ["How are you?", "Hello, how are you doing today? I am well, how are you?", "Thanks!"]
    for gold in ([], 1, "same"):  # no fact, or a label
        splits = {s: [row(f"{s}{i}", line, gold) for i, line in enumerate(lines)] for s in ("train", "dev", "test")}
        assert_no_overlap(splits)


def test_a_short_text_that_states_a_fact_is_a_leak() -> None:
    assert found(row("a", "I have a dog.", FACT), row("b", "i have a dog", FACT)) == [1.0]
    assert found(row("a", "I have a dog.", []), row("b", "i have a dog", FACT)) == [1.0]


def test_short_texts_that_differ_in_one_word_are_two_facts() -> None:
    assert found(row("a", "I have a dog named Max.", FACT), row("b", "I have a dog named Rex.", FACT)) == []


def test_the_context_is_part_of_what_is_compared() -> None:
    one, other = row("a", "Yes, two.", FACT), row("b", "Yes, two.", FACT)
    one["input"]["context"] = [{"id": "c", "speaker": "Ben", "text": "Do you have any brothers?"}]
    other["input"]["context"] = [{"id": "c", "speaker": "Ben", "text": "Any dogs at home?"}]
    assert found(one, other) == []


def test_the_error_counts_the_rows_and_names_the_first_five_pairs() -> None:
    texts = [f"{LONG} and number {n} of them is as big as my arm" for n in "abcdefg"]
    splits = {
        "train": [row(f"tr{i}", t) for i, t in enumerate(texts)],
        "test": [row(f"te{i}", t) for i, t in enumerate(texts)],
    }
    with pytest.raises(InputError) as caught:
        assert_no_overlap(splits)
    message = str(caught.value)
    assert "7 rows stand in a later split too (7 between train and test)" in message
    assert "train 'tr0' is identical to test 'te0'" in message and message.count("identical to") == 5
    assert "remove_overlap" in message


def test_removal_takes_from_the_earlier_split_and_is_counted_with_the_first_id() -> None:
    splits = {
        "train": [
            row("t0", "We moved to a farm with eleven geese and a very loud cockerel last spring"),
            row("t1", LONG),
        ],
        "dev": [
            row("d0", LONG + " again"),
            row("d1", "Something else was said here by somebody who knows nothing of it"),
        ],
        "test": [row("e0", LONG)],
    }
    kept, report = remove_overlap(splits)
    assert {s: [r["id"] for r in rows] for s, rows in kept.items()} == {"train": ["t0"], "dev": ["d1"], "test": ["e0"]}
    assert report["train"] == {
        "identical": {"count": 1, "first_id": "t1"},
        "near_duplicate": {"count": 0, "first_id": None},
    }
    assert report["dev"]["near_duplicate"] == {"count": 1, "first_id": "d0"}
    assert report["test"]["identical"]["count"] == report["test"]["near_duplicate"]["count"] == 0
    assert_no_overlap(kept)
    assert len(splits["train"]) == 2


@pytest.mark.parametrize("threshold", [0, -1, 1.01])
def test_a_threshold_outside_its_range_is_refused(threshold: float) -> None:
    with pytest.raises(InputError, match="`threshold` is"):
        overlaps({"train": [row("a", LONG)]}, threshold)


def test_repeats_inside_a_split_name_the_row_that_stays() -> None:
    rows = [row("a", LONG), row("b", "Hello!"), row("c", LONG + " now"), row("d", "Hello!")]
    assert repeats(rows).keys() == {"c"} and repeats(rows)["c"][0] == "a"


words = st.sampled_from([f"w{n}" for n in range(12)])
texts = st.lists(words, min_size=0, max_size=24).map(" ".join)


def jaccard(one: str, other: str) -> float:
    if normalise(one) == normalise(other):
        return 1.0
    sets = []
    for text in (one.split(), other.split()):
        sets.append({tuple(text[i : i + 3]) for i in range(len(text) - 2)} if len(text) >= 10 else set())
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1]) if sets[0] | sets[1] else 0.0


@settings(max_examples=150, deadline=None)
@given(st.lists(texts, max_size=8), st.lists(texts, max_size=8), st.sampled_from([0.3, 0.5, 0.7, 0.8, 1.0]))
def test_the_search_finds_exactly_the_rows_that_comparing_all_pairs_finds(
    train: list[str], test: list[str], threshold: float
) -> None:
    splits = {
        "train": [row(f"a{i}", t, FACT) for i, t in enumerate(train)],
        "test": [row(f"b{i}", t, FACT) for i, t in enumerate(test)],
    }
    due = [f"a{i}" for i, t in enumerate(train) if any(jaccard(t, u) >= threshold for u in test)]
    pairs = overlaps(splits, threshold)
    assert [pair.id for pair in pairs] == due
    for pair in pairs:
        assert pair.similarity == pytest.approx(jaccard(train[int(pair.id[1:])], test[int(pair.other_id[1:])]))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000))
def test_a_planted_near_duplicate_is_found_among_many_rows(seed: int) -> None:
    rng = random.Random(seed)
    vocabulary = [f"word{n}" for n in range(500)]
    train = [row(f"a{i}", " ".join(rng.choices(vocabulary, k=60))) for i in range(40)]
    place, word = rng.randrange(40), rng.randrange(60)
    planted = train[place]["input"]["turns"][0]["text"].split()
    planted[word] = "changed"
    pairs = overlaps({"train": train, "test": [row("b", " ".join(planted))]})
    assert [(pair.id, pair.other_id) for pair in pairs] == [(f"a{place}", "b")]


@settings(max_examples=50, deadline=None)
@given(st.lists(texts, max_size=12), st.lists(texts, max_size=6), st.lists(texts, max_size=6))
def test_after_removal_nothing_overlaps_no_row_is_made_and_the_counts_add_up(
    train: list[str], dev: list[str], test: list[str]
) -> None:
    splits = {
        name: [row(f"{name}{i}", t, FACT) for i, t in enumerate(part)]
        for name, part in {"train": train, "dev": dev, "test": test}.items()
    }
    kept, report = remove_overlap(splits)
    assert_no_overlap(kept)
    assert kept["test"] == splits["test"]
    for name, rows in splits.items():
        assert kept[name] == [r for r in rows if r in kept[name]]
        assert len(rows) == len(kept[name]) + sum(entry["count"] for entry in report[name].values())
