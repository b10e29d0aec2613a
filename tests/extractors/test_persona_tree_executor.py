"""The safety gate: what is applied, what is refused and why, and that nothing else ever happens."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extractors.persona_tree import NO_OP, Operation, load_schema
from extractors.persona_tree.executor import Execution, Reason, execute, shorten
from extractors.persona_tree.tree import PersonaTree, Tombstone, count_words
from tests.extractors.halumem_replay import sessions_as_operations
from tests.extractors.hostile import (
    BEFORE,
    GROUP,
    HOSTILE_PATHS,
    HOSTILE_VALUES,
    OPEN,
    QUICKSTART,
    check,
    operation_lists,
    trees,
)

NAME, WORK, FOOD = f"{GROUP}.Name", f"{GROUP}.Occupation", "Behavioural.Lifestyle.Liked_Food"
TREE = PersonaTree(QUICKSTART, {NAME: "Mia", WORK: "nurse"}, version=3)
DATA = Path(os.environ.get("MNEMOSMITH_DATA", Path(__file__).resolve().parents[2] / "../shared/data"))
SLICES = DATA / "halumem" / "pilot_slices"


def add(path: str, value: str) -> Operation:
    return Operation("ADD", path, value)


def update(path: str, value: str) -> Operation:
    return Operation("UPDATE", path, value)


def delete(path: str) -> Operation:
    return Operation("DELETE", path)


def reasons(done: Execution) -> list[tuple[int, Reason]]:
    return [(each.index, each.reason) for each in done.rejected]


@settings(max_examples=300)
@given(trees(), operation_lists)
def test_whatever_a_list_holds_the_tree_stays_one_of_the_schema_and_every_operation_is_reported(
    tree: PersonaTree, operations: list[Operation]
) -> None:
    check(tree, operations)


@pytest.mark.parametrize("path", HOSTILE_PATHS, ids=lambda path: repr(path)[:40])
def test_a_hostile_path_is_refused_with_a_reason_where_nothing_may_be_added(path: str) -> None:
    done = check(TREE, [Operation("ADD", path, "x"), Operation("DELETE", path)])
    assert not done.applied and done.tree.values == TREE.values
    assert all(len(each.excerpt) <= 80 for each in done.rejected)


@pytest.mark.parametrize("value", HOSTILE_VALUES, ids=lambda value: repr(value)[:40])
def test_a_hostile_value_is_held_as_one_short_line_or_refused(value: str) -> None:
    check(TREE, [Operation("UPDATE", NAME, value)])


def test_a_list_makes_one_new_version_and_leaves_the_old_one_alone() -> None:
    done = execute(TREE, [update(WORK, "head nurse"), add(FOOD, "sushi"), delete(NAME)], chunk_id="c4")
    assert dict(done.tree.values) == {WORK: "head nurse", FOOD: "sushi"} and done.tree.version == 4
    assert [each.effect for each in done.applied] == ["replaced", "added", "deleted"]
    assert (done.chunk_id, done.rejected) == ("c4", ())
    assert dict(TREE.values) == {NAME: "Mia", WORK: "nurse"} and TREE.version == 3


def test_a_chunk_without_change_is_a_version_too() -> None:
    for operations in ([NO_OP], [], [add("Nowhere", "x")]):
        done = execute(TREE, operations)
        assert done.tree.values == TREE.values and done.tree.version == 4
    assert [each.effect for each in execute(TREE, [NO_OP]).applied] == ["none"]


def test_add_on_a_filled_leaf_and_update_on_an_empty_one_set_it_and_say_so() -> None:
    done = execute(TREE, [add(WORK, "teacher"), update(FOOD, "sushi"), update(NAME, "Mia S.")])
    assert dict(done.tree.values) == {NAME: "Mia S.", WORK: "teacher", FOOD: "sushi"}
    assert [(each.effect, each.swapped) for each in done.applied] == [
        ("replaced", True),
        ("added", True),
        ("replaced", False),
    ]


def test_a_delete_leaves_a_tombstone_until_the_leaf_is_filled_again() -> None:
    gone = execute(TREE, [delete(WORK)]).tree
    assert gone.tombstones == {WORK: Tombstone("nurse", 4)}
    later = execute(gone, [NO_OP]).tree
    assert later.tombstones == {WORK: Tombstone("nurse", 4)}
    assert reasons(execute(later, [delete(WORK)])) == [(0, "nothing_to_delete")]
    assert execute(later, [add(WORK, "teacher")]).tree.tombstones == {}


def test_of_several_operations_on_a_leaf_the_last_admissible_one_counts() -> None:
    done = execute(TREE, [update(WORK, "teacher"), update(WORK, "pilot"), update(WORK, " ")])
    assert done.tree.values[WORK] == "pilot" and [each.before for each in done.applied] == ["nurse"]
    assert reasons(done) == [(0, "superseded"), (2, "value")]

    moved = execute(TREE, [delete(WORK), add(WORK, "pilot")])
    assert moved.tree.values[WORK] == "pilot" and not moved.tree.tombstones
    taken_back = execute(TREE, [add(FOOD, "sushi"), delete(FOOD)])
    assert taken_back.tree.values == TREE.values and not taken_back.tree.tombstones
    assert reasons(taken_back) == [(0, "superseded")] and taken_back.applied[0].effect == "unchanged"


def test_no_op_beside_other_operations_is_refused_and_they_count() -> None:
    done = execute(TREE, [NO_OP, add(FOOD, "sushi")])
    assert reasons(done) == [(0, "no_op")] and done.tree.values[FOOD] == "sushi"


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (Operation("MERGE", NAME, "x"), "form"),  # type: ignore[arg-type]
        (Operation("DELETE", NAME, "Mia"), "form"),
        (Operation("NO_OP", NAME), "form"),
        (add(f"{GROUP}..Name", "x"), "path_syntax"),
        (add(f'"{NAME}"', "x"), "path_syntax"),
        (add("a." * 300 + "b", "x"), "path_syntax"),
        (add(GROUP, "x"), "group"),
        (delete("Identity"), "group"),
        (add(f"{NAME}.First", "x"), "below_leaf"),
        (add(NAME.lower(), "x"), "other_name"),
        (add("Name", "x"), "other_name"),
        (add(f"{GROUP}.Nick", "x"), "unknown_path"),
        (add("__proto__", "x"), "unknown_path"),
        (add(NAME, "\x00\u200b"), "value"),
        (Operation("ADD", NAME), "value"),
        (delete(FOOD), "nothing_to_delete"),
    ],
)
def test_a_refusal_has_a_reason_and_says_what_would_do(operation: Operation, reason: Reason) -> None:
    done = execute(TREE, [operation])
    assert reasons(done) == [(0, reason)] and not done.applied and done.rejected[0].operation is operation
    assert done.rejected[0].to_json()["reason"] == reason
    if reason == "other_name":
        assert "write that" in done.rejected[0].detail and NAME in done.rejected[0].detail


def test_new_leaves_go_below_permitted_groups_to_the_depth_that_is_permitted() -> None:
    tree = PersonaTree(OPEN, {NAME: "Mia"})
    operations = [
        add(f"{GROUP}.Nick", "Mi"),
        add(f"{GROUP}.Badges.Chess", "since 2019"),
        add("Behavioural.Material_Security.Boat", "Ada"),
        add(f"{GROUP}.Badges.Chess.Rank", "3rd"),
        add(f"{GROUP}.A.B.C", "x"),
        add(f"{GROUP}.Nick.Short", "M"),
        add(f"{GROUP}.Badges", "many"),
        add(f"{GROUP}.nick", "Mimi"),
        add(f"{GROUP}.badges.Go", "x"),
        add(f"{GROUP}.__proto__", "x"),
        add(f"{GROUP}.{'x' * 41}", "x"),
        add("Identity.Motto", "x"),
    ]
    done = execute(tree, operations)
    assert done.tree.extensions == (f"{GROUP}.Badges.Chess", f"{GROUP}.Nick")
    assert [reason for _, reason in reasons(done)] == [
        *(
            "unknown_path",
            "below_leaf",
            "too_deep",
            "below_leaf",
            "group",
            "name",
            "name",
            "name",
            "name",
            "unknown_path",
        )
    ]
    gone = execute(done.tree, [delete(f"{GROUP}.Badges.Chess"), add(f"{GROUP}.Badges", "many")]).tree
    assert gone.values[f"{GROUP}.Badges"] == "many"


def test_a_value_over_its_budget_keeps_its_last_whole_sentences() -> None:
    assert shorten("Mia lives in Oslo. She has a cat. She works for Dr. Berg.", 8) == "She works for Dr. Berg."
    assert (
        shorten("Mia lives in Oslo. She has a cat. She works for Dr. Berg.", 9)
        == "She has a cat. She works for Dr. Berg."
    )
    assert shorten("climbing; pottery; chess on Sundays", 4) == "pottery; chess on Sundays"
    assert shorten("我住在北京。我喜欢寿司。", 7) == "我喜欢寿司。"
    assert shorten("She has a cat. She works as a nurse, mostly at night", 5) == "She works as a nurse…"
    done = execute(TREE, [update(NAME, "One. " * 80)])
    assert (
        count_words(done.tree.values[NAME]) == QUICKSTART.leaves[NAME].budget and done.applied[0].compression == "rule"
    )


@given(st.text(alphabet="ab .;。水…,\n", max_size=300), st.integers(1, 20))
def test_a_shortened_value_keeps_to_any_budget(value: str, budget: int) -> None:
    value = " ".join(value.split())
    if count_words(value) > budget:
        assert 0 < count_words(shorten(value, budget)) <= budget


def test_an_injected_compressor_is_used_where_its_result_keeps_to_the_budget() -> None:
    long = update(NAME, "word " * 100 + "end")
    asked: list[int] = []

    def good(value: str, budget: int) -> str:
        asked.append(budget)
        return "Mia,\nin short"

    done = execute(TREE, [long, update(WORK, "pilot")], compress=good)
    assert done.tree.values[NAME] == "Mia, in short" and asked == [QUICKSTART.leaves[NAME].budget]
    assert [each.compression for each in done.applied] == ["injected", "none"]
    for wrong in (lambda value, budget: value, lambda value, budget: "", lambda value, budget: None):
        done = execute(TREE, [long], compress=wrong)  # type: ignore[arg-type, return-value]
        assert done.applied[0].compression == "rule_after_injected"
        assert done.tree.values[NAME] == execute(TREE, [long]).tree.values[NAME]


def test_a_compressor_that_raises_leaves_nothing_half_done() -> None:
    def broken(value: str, budget: int) -> str:
        raise RuntimeError("no model")

    with pytest.raises(RuntimeError, match="no model"):
        execute(TREE, [update(WORK, "pilot"), update(NAME, "word " * 100)], compress=broken)
    assert dict(TREE.values) == {NAME: "Mia", WORK: "nurse"} and TREE.version == 3


def test_the_schema_is_what_it_was_before_all_this() -> None:
    assert json.dumps(QUICKSTART.to_json()) == BEFORE[id(QUICKSTART)]


@pytest.mark.skipif(not SLICES.is_dir(), reason="the HaluMem pilot slices are not under MNEMOSMITH_DATA")
@pytest.mark.parametrize("schema_name", ["quickstart", "full"])
def test_sessions_of_halumem_replay_and_only_repeats_and_empty_leaves_are_refused(schema_name: str) -> None:
    schema = load_schema(schema_name)
    chunks = 0
    for path in sorted(SLICES.glob("*.jsonl")):
        tree = PersonaTree(schema)
        for _, operations in sessions_as_operations(path, schema):
            done = execute(tree, operations)
            assert len(done.applied) + len(done.rejected) == len(operations)
            assert {each.reason for each in done.rejected} <= {"superseded", "nothing_to_delete"}
            tree, chunks = done.tree, chunks + 1
        assert len(tree.values) >= 10 and all(count <= tree.budget(leaf) for leaf, count in tree.words.items())
    assert chunks == 54
