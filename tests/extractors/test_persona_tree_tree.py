"""The tree type: what it holds, what it refuses, and its JSON form."""

from __future__ import annotations

import dataclasses
import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extractors import InputError
from extractors.persona_tree import load_schema
from extractors.persona_tree.schema import schema_from_json
from extractors.persona_tree.tree import Change, PersonaTree, Tombstone, clean_text, count_words, tree_from_json
from tests.extractors.hostile import trees

SCHEMA = load_schema("quickstart")
NAME, WORK, FOOD = (
    "Identity.Social_Identity.Name",
    "Identity.Social_Identity.Occupation",
    "Behavioural.Lifestyle.Liked_Food",
)


def test_a_tree_keeps_its_values_in_the_order_of_the_schema_and_cannot_be_changed() -> None:
    given_values = {FOOD: "sushi", NAME: "Mia"}
    tree = PersonaTree(SCHEMA, given_values)
    given_values[WORK] = "nurse"
    assert list(tree.values.items()) == [(NAME, "Mia"), (FOOD, "sushi")]
    with pytest.raises(TypeError):
        tree.values[NAME] = "Max"  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        tree.version = 7  # type: ignore[misc]


def test_the_json_form_is_nested_and_holds_filled_leaves_alone() -> None:
    tree = PersonaTree(SCHEMA, {FOOD: "sushi", NAME: "Mia"})
    assert tree.to_json() == {
        "Identity": {"Social_Identity": {"Name": "Mia"}},
        "Behavioural": {"Lifestyle": {"Liked_Food": "sushi"}},
    }
    assert PersonaTree(SCHEMA).to_json() == {}


@settings(max_examples=50)
@given(trees())
def test_a_tree_comes_back_from_its_json_form_and_from_pickle(tree: PersonaTree) -> None:
    assert tree_from_json(tree.schema, json.loads(json.dumps(tree.to_json())), tree.version) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree


def test_trees_are_equal_by_schema_values_version_and_tombstones() -> None:
    tree = PersonaTree(SCHEMA, {NAME: "Mia"}, 2)
    assert tree == PersonaTree(SCHEMA, {NAME: " Mia\n"}, 2)
    assert tree != PersonaTree(SCHEMA, {NAME: "Max"}, 2)
    assert tree != PersonaTree(SCHEMA, {NAME: "Mia"}, 3)
    assert tree != PersonaTree(SCHEMA, {NAME: "Mia"}, 2, {WORK: Tombstone("nurse", 2)})
    assert tree != PersonaTree(load_schema("full"), {NAME: "Mia"}, 2)


def test_a_difference_names_each_leaf_with_both_values() -> None:
    old, new = PersonaTree(SCHEMA, {NAME: "Mia", WORK: "nurse"}), PersonaTree(SCHEMA, {NAME: "Mia S.", FOOD: "sushi"})
    assert old.diff(new) == (Change(NAME, "Mia", "Mia S."), Change(WORK, "nurse", None), Change(FOOD, None, "sushi"))
    assert old.diff(old) == ()


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("Identity.Social_Identity", "no leaf"),
        ("identity.social_identity.name", f"write {NAME}"),
        (f"{NAME}.First", "no leaf"),
    ],
)
def test_a_path_that_is_no_leaf_is_refused_with_the_name_to_write(path: str, hint: str) -> None:
    with pytest.raises(InputError, match=hint):
        PersonaTree(SCHEMA, {path: "x"})


@pytest.mark.parametrize("value", ["", " \n", "\x00", 7, None, {"First": "Mia"}])
def test_a_value_that_is_no_text_or_empty_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="write text"):
        PersonaTree(SCHEMA, {NAME: value})


def test_new_leaves_are_those_that_the_extension_policy_permits() -> None:
    open_schema, nick = SCHEMA.extended("Identity.Social_Identity"), "Identity.Social_Identity.Nick"
    tree = PersonaTree(open_schema, {nick: "Mi", FOOD: "sushi"})
    assert tree.extensions == (nick,) and list(tree.values) == [FOOD, nick]
    assert tree.budget(nick) == 60 and tree.budget(NAME) == SCHEMA.leaves[NAME].budget
    with pytest.raises(InputError, match="no leaf"):
        PersonaTree(SCHEMA, {nick: "Mi"})
    with pytest.raises(InputError, match="lies below"):
        PersonaTree(open_schema, {nick: "Mi", f"{nick}.Since": "2020"})


def test_reading_a_nested_tree_leaves_out_what_is_empty_and_brings_twins_together() -> None:
    schema = schema_from_json({"Body": {"Life_Stage": "", "Age": ""}, "Life": {"Life_Stage": "", "Events": ""}})
    tree = tree_from_json(
        schema, {"Body": {"Life_Stage": "", "Age": "30"}, "Life": {"Life_Stage": "adult", "Events": None}}
    )
    assert dict(tree.values) == {"Body.Life_Stage": "adult", "Body.Age": "30"}
    with pytest.raises(InputError, match="filled twice"):
        tree_from_json(schema, {"Body": {"Life_Stage": "adult"}, "Life": {"Life_Stage": "young"}})
    deep: Any = "x"
    for _ in range(500):
        deep = {"a": deep}
    for wrong in (deep, ["a"], {"Body": "text"}, {"Body": {"Age": ["30"]}}):
        with pytest.raises(InputError):
            tree_from_json(schema, wrong)


def test_words_are_counted_by_leaf_and_a_text_without_spaces_is_no_single_word() -> None:
    assert dict(PersonaTree(SCHEMA, {NAME: "Mia Sorensen", FOOD: "sushi"}).words) == {NAME: 2, FOOD: 1}
    assert count_words("x" * 300) == 10 and count_words("我喜欢寿司") == 5 and count_words(" ") == 0


@given(st.text())
def test_a_cleaned_text_stays_as_it_is_and_can_be_written(text: str) -> None:
    clean = clean_text(text)
    assert clean_text(clean) == clean and clean.encode().decode() == clean
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 or char in "\u2028\u2029" for char in clean)
