"""Quality gates: rows that must be kept, rows that must be refused, and what the card can say about them."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_synthesis.corpora import corpus_folder, personaext
from data_synthesis.gates import (
    Limits,
    agree,
    cap_empty,
    cap_labels,
    consistent,
    count_rejects,
    grounded,
    label_tail,
    labels,
    right_length,
    run_gates,
    without_repeats,
)
from data_synthesis.grounding import ungrounded_value
from data_synthesis.simulate import simulate
from extractors.contract import InputError
from extractors.grounding import content_words

Row = dict[str, Any]
OFF = Limits(None, (0, 10_000), (0, 10_000), None, None, None, None)


def fact(subject: str, relation: str, value: str) -> dict[str, str]:
    return {"subject": subject, "relation": relation, "object": value}


def row(name: str, turns: list[tuple[str, str]], gold: Any, context: list[tuple[str, str]] = ()) -> Row:  # type: ignore[assignment]
    def said(part: list[tuple[str, str]]) -> list[dict[str, str]]:
        return [{"id": f"{name}-{i}", "speaker": s, "text": t} for i, (s, t) in enumerate(part)]

    data = {"turns": said(turns)} | ({"context": said(context)} if context else {})
    return {"id": name, "group": name, "input": data, "gold": gold, "tags": {}}


# -- grounding -------------------------------------------------------------------------------------------------------

SAID = [
    ("Speaker A", "My mom teaches at two schools in Porto, and I've been hiking with my three kids since 1998!"),
    ("Speaker B", "Nice. My wives' tale: I used to run 25 miles."),
]


@pytest.mark.parametrize(
    ("subject", "value"),
    [
        ("Speaker A", "hike"),
        ("speaker a", "Hikes"),
        ("Speaker A", "a hiker"),
        ("Speaker A", "3 children"),
        ("Speaker A's mother", "teacher"),
        ("my mom", "2 schools"),
        ("Speaker A", "PORTO"),
        ("Speaker A", "since 1998"),
        ("Speaker B", "twenty-five miles"),
        ("Speaker B", "running"),
        ("Speaker B", "wife"),
        ("Speaker A", "Speaker B"),
        ("Speaker A", "one school"),
    ],
)
def test_a_value_in_other_words_forms_or_digits_is_grounded(subject: str, value: str) -> None:
    assert ungrounded_value(row("r", SAID, [fact(subject, "x", value)]), "triplets") == ""


@pytest.mark.parametrize(
    ("subject", "value", "why"),
    [
        ("Speaker A", "chess", "object 'chess': 0 of 1"),
        ("Speaker A", "grey parrot named Kiwi", "0 of 4"),
        ("Speaker A", "four kids", "the number 4 is not said"),
        ("Speaker A", "26 miles", "the number 26"),
        ("Speaker A", "5 miles", "the number 5"),
        ("Speaker C", "hiking", "subject 'Speaker C'"),
        ("Speaker", "hiking", "subject 'Speaker'"),
        ("Mia", "hiking", "subject 'Mia'"),
        ("Speaker A's sister", "hiking", "subject"),
        ("I", "hiking", "it has no content word"),
        ("Speaker A", "it", "it has no content word"),
    ],
)
def test_a_value_that_nobody_said_is_refused_with_the_reason(subject: str, value: str, why: str) -> None:
    kept, rejects = grounded([row("r", SAID, [fact(subject, "x", value)])], "triplets", 0.5)
    assert kept == [] and rejects[0].reason == "not grounded" and why in rejects[0].detail


def test_the_context_grounds_a_value_too() -> None:
    asked = [("Ben", "Do you have any brothers?")]
    assert (
        ungrounded_value(row("r", [("Mia", "Yes, two.")], [fact("Mia", "x", "two brothers")], asked), "triplets") == ""
    )
    assert ungrounded_value(row("r", [("Mia", "Yes, two.")], [fact("Mia", "x", "brother")]), "triplets") != ""


def test_one_speakers_label_may_be_shortened_where_no_other_label_has_the_word() -> None:
    turns = [("Mia Novak", "I like tea."), ("Tom Novak", "Me too.")]
    assert ungrounded_value(row("r", turns, [fact("Mia", "like_drink", "tea")]), "triplets") == ""
    assert "subject" in ungrounded_value(row("r", turns, [fact("Novak", "like_drink", "tea")]), "triplets")


def test_a_script_without_spaces_is_searched_as_a_whole() -> None:
    turns = [("小明", "我有一只猫")]
    assert ungrounded_value(row("r", turns, [fact("小明", "have_pet", "猫")]), "triplets") == ""
    assert ungrounded_value(row("r", turns, [fact("小明", "have_pet", "狗")]), "triplets") != ""


def test_continuity_has_nothing_to_ground_and_an_unknown_extractor_is_an_error() -> None:
    pair = {"id": "c", "group": "c", "input": {"previous": "a", "current": "b"}, "gold": 1}
    assert ungrounded_value(pair, "continuity") == ""
    with pytest.raises(InputError, match="no rule says what grounds the values of 'tree'"):
        ungrounded_value(pair, "tree")


def test_numbers_are_read_alike_as_words_and_as_digits() -> None:
    assert content_words("twenty-five, two hundred, 1,000, 2nd, 8am") == ["25", "200", "1000", "2", "8"]
    assert content_words("25; 200; 1000; second; eight") == ["25", "200", "1000", "2", "8"]


PRINTED = st.characters(exclude_categories=("C", "M", "S"))  # marks and signs may melt into what stands before them


@given(st.text(PRINTED, max_size=80), st.text(PRINTED, max_size=20))
def test_any_text_can_be_tested_and_what_was_said_is_grounded(text: str, value: str) -> None:
    data = row("r", [("Mia", f"{text} {value} {text}")], [fact("Mia", "x", value)])
    why = ungrounded_value(data, "triplets", 0.5)
    assert why == "" or "no content word" in why or "number" in why  # digits may join those beside them


def passing(rows: list[Row]) -> tuple[float, int]:
    """Share of gold triplets that are grounded, and their number."""
    single = [{**r, "gold": [item]} for r in rows for item in r["gold"]]
    return sum(not ungrounded_value(r, "triplets") for r in single) / len(single), len(single)


def exchanged(rows: list[Row]) -> tuple[float, int]:
    """Share that is refused of triplets whose objects were exchanged between random rows, and their number."""
    single = [(r, item) for r in rows for item in r["gold"]]
    objects = [item["object"] for _, item in single]
    random.Random(0).shuffle(objects)
    wrong = [
        {**r, "gold": [{**item, "object": other}]}
        for (r, item), other in zip(single, objects, strict=True)
        if other != item["object"]
    ]
    return sum(bool(ungrounded_value(r, "triplets")) for r in wrong) / len(wrong), len(wrong)


def read(folder: Path) -> list[Row]:
    return [
        json.loads(line)
        for split in ("train", "dev", "test")
        for line in (folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder = tmp_path_factory.mktemp("world")
    simulate(folder, people=60, seed=3)
    return read(folder)


@pytest.fixture(scope="module")
def persona_rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    try:
        source = corpus_folder("personaext")
    except InputError as error:
        pytest.skip(f"PersonaExt is not at hand: {error}")
    folder = tmp_path_factory.mktemp("personaext")
    personaext.prepare(folder, source)
    return read(folder)


def test_the_worlds_gold_is_grounded_and_exchanged_objects_are_refused(world: list[Row]) -> None:
    (share, n), (refused, m) = passing(world), exchanged(world)
    print(f"world: {share:.4f} of {n} gold triplets pass, {refused:.4f} of {m} exchanged ones are refused")
    assert n > 500 and share >= 0.99 and refused >= 0.9


def test_personaexts_gold_is_grounded_and_exchanged_objects_are_refused(persona_rows: list[Row]) -> None:
    (share, n), (refused, m) = passing(persona_rows), exchanged(persona_rows)
    print(f"PersonaExt: {share:.4f} of {n} gold triplets pass, {refused:.4f} of {m} exchanged ones are refused")
    assert share >= 0.97 and refused >= 0.9


def test_what_personaext_loses_are_values_without_content(persona_rows: list[Row]) -> None:
    _, rejects = grounded(persona_rows, "triplets", 0.5)
    assert all("no content word" in reject.detail for reject in rejects)


# -- self-consistency ------------------------------------------------------------------------------------------------


def test_triplets_that_half_of_the_samples_hold_are_kept_in_their_order_and_most_usual_spelling() -> None:
    cat, dog, tea = fact("Mia", "have_pet", "cat"), fact("Mia", "have_pet", "dog"), fact("Mia", "like_drink", "tea")
    the_cat = fact("mia", "have_pet", "a cat")
    gold, agreement = agree([[cat, dog], [the_cat, tea], [dog, cat], [cat]])
    assert gold == [cat, dog]
    assert agreement == pytest.approx((1 + 1 / 3 + 1 + 1 / 2) / 4)


def test_samples_that_each_name_another_fact_do_not_agree_on_nothing() -> None:
    outputs = [[fact("Mia", "like_food", food)] for food in ("rice", "soup", "eggs")]
    assert agree(outputs) == ([], 0.0)
    assert agree([[], [], [fact("Mia", "like_food", "rice")]]) == ([], pytest.approx(2 / 3))
    assert agree([[], []]) == ([], 1.0)


@pytest.mark.parametrize("outputs", [[1, 0, 1], ["same", "other", "Same"]])
def test_the_majority_of_labels_wins_and_its_share_is_the_agreement(outputs: list[Any]) -> None:
    assert agree(outputs) == (outputs[0], pytest.approx(2 / 3))


def test_a_row_on_which_samples_disagree_is_rejected_and_one_without_samples_stays() -> None:
    rows = [row(name, [("Mia", "Hi.")], 1) for name in ("a", "b", "c")]
    kept, rejects = consistent(rows, {"a": [1, 0, 0], "b": [1, 0, 1, 0]}, min_agreement=0.6)
    assert [(r["id"], r["gold"]) for r in kept] == [("a", 0), ("c", 1)]
    assert [(r.row["id"], r.reason) for r in rejects] == [("b", "inconsistent")]
    assert rows[0]["gold"] == 1  # the rows that were given are left as they are


@given(st.lists(st.lists(st.sampled_from("abcde"), max_size=4), min_size=1, max_size=6))
def test_agreed_items_come_from_the_samples_once_each_and_the_agreement_is_a_share(outputs: list[list[str]]) -> None:
    gold, agreement = agree(outputs)
    assert len(gold) == len(set(gold)) and 0 <= agreement <= 1
    for item in {item for output in outputs for item in output}:
        # "a" is an article, but where it is the whole text it stays.
        assert (item in gold) == (2 * sum(item in output for output in outputs) >= len(outputs))
    assert agree([outputs[0]] * 3)[1] == 1.0


# -- lengths, repeats, balance ---------------------------------------------------------------------------------------


def test_each_limit_of_length_has_its_own_reason() -> None:
    rows = [
        row("short", [("Mia", "Hm.")], []),
        row("long", [("Mia", "word " * 30)], []),
        row("talkative", [("Mia", "I like tea")], [fact("Mia", "like", "tea " * 20)]),
        row("empty", [("Mia", "I like tea")], []),
        row("good", [("Mia", "I like tea")], [fact("Mia", "like", "tea")]),
    ]
    kept, rejects = right_length(rows, (2, 20), (1, 10))
    assert [r["id"] for r in kept] == ["good"]
    assert {r.row["id"]: r.reason for r in rejects} == {
        "short": "input too short",
        "long": "input too long",
        "talkative": "output too long",
        "empty": "output too short",
    }
    assert "30 words, 2 to 20 are due" in rejects[1].detail


def test_a_near_duplicate_is_rejected_with_the_id_of_the_row_that_stays() -> None:
    text = "On Sundays my brother and I take the old boat out on the lake and fish for pike until dark"
    rows = [row("a", [("Mia", text)], []), row("b", [("Mia", text + ", always")], []), row("c", [("Mia", "Hi!")], [])]
    kept, rejects = without_repeats(rows, 0.8)
    assert [r["id"] for r in kept] == ["a", "c"] and "like 'a'" in rejects[0].detail


def labelled(counts: dict[str, int], prefix: str = "") -> list[Row]:
    return [
        row(f"{prefix}{label}-{n}", [("Mia", "x")], [fact("Mia", label, "x")])
        for label, c in counts.items()
        for n in range(c)
    ]


def empties(count: int) -> list[Row]:
    return [row(f"empty-{n}", [("Mia", "x")], []) for n in range(count)]


@pytest.mark.parametrize(("share", "room"), [(0.2, 25), (0.5, 100), (0.0, 0), (1.0, 120)])
def test_empty_rows_are_capped_at_a_share_of_what_remains(share: float, room: int) -> None:
    kept, rejects = cap_empty([*labelled({"a": 100}), *empties(120)], share)
    assert sum(r["gold"] == [] for r in kept) == room and len(rejects) == 120 - room


def test_more_rows_keep_every_empty_row_that_was_kept_before() -> None:
    before, _ = cap_empty([*labelled({"a": 40}), *empties(50)], 0.2)
    after, _ = cap_empty([*labelled({"a": 90}), *empties(50)], 0.2)
    assert {r["id"] for r in before} <= {r["id"] for r in after} and len(after) > len(before) + 50


def test_no_label_stands_in_more_than_its_share_and_rare_labels_lose_nothing() -> None:
    rows = [*labelled({"often": 300, "also": 60, "rare": 30, "seldom": 30}), *empties(10)]
    kept, rejects = cap_labels(rows, 0.4)
    counts = Counter(label for r in kept for label in labels(r))
    assert counts == {"often": 80, "also": 60, "rare": 30, "seldom": 30}
    assert {r.reason for r in rejects} == {"label too frequent"} and "'often'" in rejects[0].detail
    assert sum(r["gold"] == [] for r in kept) == 10


def test_the_rows_of_a_frequent_label_are_chosen_by_their_ids_alone() -> None:
    rows = labelled({"often": 90, "other": 30, "third": 30})
    shuffled = random.Random(1).sample(rows, len(rows))
    one, other = cap_labels(rows, 0.5)[0], cap_labels(shuffled, 0.5)[0]
    assert {r["id"] for r in one} == {r["id"] for r in other}
    more = cap_labels([*rows, *labelled({"other": 10}, "new-")], 0.5)[0]
    assert {r["id"] for r in one} <= {r["id"] for r in more}


def test_numbers_are_labels_too() -> None:
    pairs = [{"id": f"p{n}", "group": "g", "input": {}, "gold": int(n < 80)} for n in range(100)]
    kept, _ = cap_labels(pairs, 0.5)
    assert Counter(r["gold"] for r in kept) == {0: 20, 1: 20}


def test_a_share_that_no_choice_of_rows_keeps_is_an_error() -> None:
    with pytest.raises(InputError, match=r"`max_label_share` is 0\.3.* at least 0\.50"):
        cap_labels(labelled({"yes": 30, "no": 30}), 0.3)
    with pytest.raises(InputError, match="`max_empty_share` is 1.2"):
        cap_empty(empties(2), 1.2)


def test_the_tail_lists_rare_labels_with_their_rows() -> None:
    assert label_tail(labelled({"a": 9, "b": 2, "c": 1}), 5) == {"c": 1, "b": 2}


# -- all of them -----------------------------------------------------------------------------------------------------


def test_every_gate_of_the_run_rejects_its_row_and_the_counts_name_the_first() -> None:
    text = "On Sundays my brother and I take the old boat out on the lake and fish for pike until dark"
    pike = [fact("Mia", "like_activity", "fishing")]
    rows = [
        row("good", [("Mia", text)], pike),
        row("split", [("Mia", "I like tea and rice")], [fact("Mia", "like_drink", "tea")]),
        row("short", [("Mia", "Tea")], [fact("Mia", "like_drink", "tea")]),
        row("made-up", [("Mia", "I like tea a lot")], [fact("Mia", "have_pet", "cat")]),
        row("made-up-2", [("Mia", "I like rice a lot")], [fact("Tom", "like_food", "rice")]),
        row("again", [("Mia", text + ".")], pike),
        row("empty", [("Mia", "How are you today?")], []),
    ]
    samples = {"split": [[fact("Mia", "like_drink", "tea")], [], [fact("Mia", "like_food", "rice")]]}
    kept, rejects = run_gates(rows, "triplets", Limits(input_words=(2, 60)), samples)
    assert [r["id"] for r in kept] == ["good"]
    assert count_rejects(rejects) == {
        "inconsistent": {"count": 1, "first_id": "split"},
        "input too short": {"count": 1, "first_id": "short"},
        "not grounded": {"count": 2, "first_id": "made-up"},
        "near-duplicate": {"count": 1, "first_id": "again"},
        "too many empty": {"count": 1, "first_id": "empty"},
    }
    assert rejects[1].to_json() == {
        "id": "short",
        "reason": "input too short",
        "detail": "1 words, 2 to 60 are due",
        "input": rows[2]["input"],
        "output": rows[2]["gold"],
    }


def test_the_world_passes_all_gates_but_those_of_balance(world: list[Row]) -> None:
    kept, rejects = run_gates(world, "triplets", Limits(max_empty_share=None))
    assert {reject.reason for reject in rejects} <= {"near-duplicate"}
    assert len(kept) >= 0.98 * len(world)


items = st.builds(
    fact,
    st.sampled_from(["Mia", "Tom", "I"]),
    st.sampled_from(["like", "own", "name"]),
    st.sampled_from(["tea", "rice"]),
)
said = st.lists(st.sampled_from(["tea", "rice", "boat", "two", "lake", "old", "a"]), min_size=1, max_size=16).map(
    " ".join
)
made = st.lists(st.tuples(said, st.lists(items, max_size=3)), max_size=25)


@settings(max_examples=100, deadline=None)
@given(made, st.sampled_from([None, 0.0, 0.2, 1.0]), st.sampled_from([None, 0.6, 0.9]), st.booleans())
def test_every_row_is_kept_or_rejected_once_in_its_order_and_none_is_made(
    content: list[tuple[str, list[dict[str, str]]]], empty: float | None, label: float | None, sampled: bool
) -> None:
    rows = [row(f"r{i}", [("Mia", text)], gold) for i, (text, gold) in enumerate(content)]
    samples = {r["id"]: [r["gold"], r["gold"][:1], []] for r in rows[::2]} if sampled else None
    limits = Limits(input_words=(2, 12), max_empty_share=empty, max_label_share=label)
    try:
        kept, rejects = run_gates(rows, "triplets", limits, samples)
    except InputError as error:
        assert "`max_label_share`" in str(error)  # a few rows with one label
        return
    ids = [r["id"] for r in rows]
    assert sorted([r["id"] for r in kept] + [r.row["id"] for r in rejects]) == sorted(ids)
    assert [r["id"] for r in kept] == [name for name in ids if name in {r["id"] for r in kept}]
    assert sum(entry["count"] for entry in count_rejects(rejects).values()) == len(rejects)
    for r in kept:
        given_row = rows[ids.index(r["id"])]
        assert r["input"] == given_row["input"]
        assert all(item in given_row["gold"] for item in r["gold"])


def test_gates_that_are_off_change_nothing(world: list[Row]) -> None:
    assert run_gates(world, "triplets", OFF) == (world, [])
