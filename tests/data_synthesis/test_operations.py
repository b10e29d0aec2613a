"""Operation rows from what a corpus knows: what a chunk does to a tree, walks of the simulated world, the dataset folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_synthesis.corpora.world import load
from data_synthesis.operations import Change, Step, Walk, balanced, operations_for, rows_of
from data_synthesis.operations.prepare import main
from data_synthesis.operations.world import LEAVES, walks
from data_synthesis.simulate import simulate
from extractors.contract import InputError
from extractors.persona_tree import NO_OP, Operation, PersonaTree, PersonaTreeExtractor, execute, load_schema
from extractors.rows import read_rows
from extractors.triplets import Turn

HOBBIES = "Behavioural.Interests_and_Skills.Hobbies"
HOME = "Identity.Social_Identity.Residence"
PETS = "Identity.Family_System.Pets"


@pytest.mark.parametrize(
    ("tree", "changes", "due"),
    [
        ({}, [Change(HOBBIES, "chess")], [Operation("ADD", HOBBIES, "chess")]),
        ({HOBBIES: "chess"}, [Change(HOBBIES, "Chess")], [NO_OP]),
        ({HOBBIES: "chess"}, [Change(HOBBIES, "rowing")], [Operation("UPDATE", HOBBIES, "chess; rowing")]),
        ({HOBBIES: "chess; rowing"}, [Change(HOBBIES, None, "chess")], [Operation("UPDATE", HOBBIES, "rowing")]),
        ({HOBBIES: "chess"}, [Change(HOBBIES, None, "chess")], [Operation("DELETE", HOBBIES)]),
        ({}, [Change(HOBBIES, None, "chess")], [NO_OP]),
        ({HOBBIES: "chess"}, [Change(HOBBIES, "go", "chess")], [Operation("UPDATE", HOBBIES, "go")]),
        ({HOME: "Porto"}, [Change(HOME, "Ghent", single=True)], [Operation("UPDATE", HOME, "Ghent")]),
        ({HOME: "Porto"}, [Change(HOME, "porto", single=True)], [NO_OP]),
        ({PETS: "cat; ferret"}, [Change(PETS, "ferret Pim", "ferret")], [Operation("UPDATE", PETS, "cat; ferret Pim")]),
        ({PETS: "ferret Pim"}, [Change(PETS, "ferret")], [NO_OP]),
        ({PETS: "ferret Pim"}, [Change(PETS, None, "ferret")], [Operation("DELETE", PETS)]),
        ({}, [Change(HOBBIES, "go"), Change(HOBBIES, None, "go")], [NO_OP]),
        ({}, [], [NO_OP]),
    ],
)
def test_what_a_statement_does_to_the_tree(tree, changes, due):
    assert list(operations_for(changes, tree)) == due


LEAF_CHANGES = st.builds(
    Change,
    st.sampled_from([HOBBIES, PETS, HOME]),
    st.none() | st.sampled_from(["go", "chess", "ferret", "ferret Pim"]),
    st.none() | st.sampled_from(["go", "chess", "ferret"]),
    st.booleans(),
)


@given(st.lists(st.lists(LEAF_CHANGES, max_size=4), max_size=6))
def test_the_executor_accepts_every_operation_and_saying_the_same_again_changes_nothing(chunks):
    tree = PersonaTree(load_schema("quickstart"))
    for changes in chunks:
        tree_before, operations = tree, operations_for(changes, tree.values)
        done = execute(tree, operations)
        assert not done.rejected
        assert all(each.effect != "unchanged" and not each.swapped for each in done.applied)
        tree = done.tree
        assert (tree.values != tree_before.values) == (operations != (NO_OP,))


def test_a_row_holds_the_tree_that_the_rows_before_it_led_to_and_what_the_budget_leaves():
    budget = load_schema("quickstart").leaves[HOBBIES].budget
    many = [f"pastime number {n}" for n in range(budget)]
    steps = tuple(Step(f"c{n}", (Turn("Mia", f"I like {h}."),), (Change(HOBBIES, h),)) for n, h in enumerate(many))
    rows = list(rows_of(Walk("w", "g", "Mia", steps), PersonaTreeExtractor(schema="quickstart")))
    assert [row["tags"]["chunk"] for row in rows] == list(range(budget))
    for before, after in zip(rows, rows[1:], strict=False):
        assert after["input"]["tree"] == {HOBBIES: before["gold"][0]["value"]}
    last = rows[-1]["gold"][0]["value"]
    assert len(last.split()) <= budget and last.endswith(many[-1])


def test_a_view_that_names_a_leaf_which_the_schema_lacks_is_an_error_with_the_row():
    walk = Walk("w", "g", "Mia", (Step("c0", (Turn("Mia", "Hi."),), (Change("Identity.Nothing", "x"),)),))
    with pytest.raises(ValueError, match=r"c0: no leaf of the schema quickstart.*Identity\.Nothing"):
        list(rows_of(walk, PersonaTreeExtractor(schema="quickstart")))


@given(st.lists(st.sampled_from(["", "nobody", "others", "the person"]), max_size=60), st.sampled_from([0.0, 0.2, 0.5]))
def test_rows_that_change_nothing_are_at_most_a_share_and_no_other_row_is_lost(empty, share):
    rows = [
        {"id": n, "gold": [{"op": "NO_OP" if about else "ADD"}], "tags": {"about": about}}
        for n, about in enumerate(empty)
    ]
    kept, left_out = balanced(rows, share)
    none = [row for row in kept if row["gold"][0]["op"] == "NO_OP"]
    assert len(kept) + left_out == len(rows)
    assert [row for row in kept if row not in none] == [row for row in rows if row["gold"][0]["op"] == "ADD"]
    assert len(none) <= share * len(kept) + 1e-9
    assert [row["id"] for row in kept] == sorted(row["id"] for row in kept)


def test_rows_that_change_nothing_are_kept_evenly_over_why_they_do():
    kinds = ["others"] * 40 + ["nobody"] * 30 + ["the person"] * 3
    rows = [{"id": n, "gold": [{"op": "NO_OP"}], "tags": {"about": about}} for n, about in enumerate(kinds)]
    rows += [{"id": n, "gold": [{"op": "ADD"}], "tags": {"about": "the person"}} for n in range(73, 133)]
    kept, left_out = balanced(rows, 0.25)
    about = [row["tags"]["about"] for row in kept if row["gold"] == [{"op": "NO_OP"}]]
    assert (about.count("the person"), about.count("nobody"), about.count("others"), left_out) == (3, 8, 9, 53)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    simulate(folder, people=60, seed=3, sessions=4)
    return folder


def test_the_world_has_corrections_refinements_ends_and_values_that_were_said(world: Path):
    extractor = PersonaTreeExtractor(schema="quickstart", path_index="none", prompt="compact")
    kinds: dict[str, int] = {}
    for dialogue in load(world).dialogues:
        for walk in walks(dialogue, moves=1):
            for row in rows_of(walk, extractor):
                said = " ".join(turn["text"] for turn in row["input"]["turns"]).casefold()
                for item in row["gold"]:
                    kinds[item["op"]] = kinds.get(item["op"], 0) + 1
                    old = row["input"]["tree"].get(item.get("path"), "").casefold()
                    for part in item.get("value", "").casefold().split("; "):
                        assert all(word in said or word in old for word in part.split()), (row["id"], part)
    assert kinds["ADD"] > kinds["UPDATE"] > kinds["DELETE"] > 0 and kinds["NO_OP"] > 0


def test_every_relation_of_the_world_has_a_leaf_of_both_schemas():
    for name in ("quickstart", "full"):
        assert set(LEAVES.values()) <= set(load_schema(name).leaves)


def test_a_walk_keeps_the_people_of_a_dialogue_apart(world: Path):
    dialogue = load(world).dialogues[0]
    first, second = walks(dialogue)
    assert {first.person, second.person} == {person["name"] for person in dialogue.labels["people"]}
    assert [step.turns for step in first.steps] == [step.turns for step in second.steps]
    gold = {turn.id: turn.labels["gold"] for turn in dialogue.turns()}
    pets = {f"{person['name']}'s {pet['species']}" for person in dialogue.labels["people"] for pet in person["pets"]}
    for walk in (first, second):
        for step in walk.steps:
            about = [
                item
                for turn in step.turns
                for item in gold[turn.id]
                if item["subject"] == walk.person
                or (item["subject"] in pets and item["subject"].startswith(walk.person) and item["relation"] == "name")
            ]
            told = [change.now for change in step.changes if change.now is not None]
            assert len(told) == len(about)
            assert all(now.endswith(item["object"]) for now, item in zip(told, about, strict=True))


def test_prepare_writes_a_dataset_that_the_extractor_reads_with_its_account(world: Path, tmp_path: Path, capsys):
    out = tmp_path / "operations"
    assert main(["world", "--source", str(world), "--out", str(out), "--schema", "quickstart", "--exchanges", "1"]) == 0
    card = json.loads((out / "card.json").read_text())
    extractor = PersonaTreeExtractor(schema="quickstart")
    groups = []
    for split in ("train", "dev", "test"):
        rows = read_rows(out / f"{split}.jsonl", extractor)
        groups.append({row.group for row in rows})
        empty = sum(row.gold == (NO_OP,) for row in rows)
        assert 0.15 <= empty / len(rows) <= 0.2
        assert card["details"]["operations"][split]["NO_OP"] == empty
        assert card["details"]["no_op_rows_left_out"][split] > 0
    assert not groups[0] & groups[1] and not groups[0] & groups[2] and not groups[1] & groups[2]
    assert str(out) in capsys.readouterr().out


def test_prepare_refuses_what_cannot_be(world: Path, tmp_path: Path, capsys):
    arguments = ["world", "--source", str(world), "--out", str(tmp_path)]
    assert main([*arguments, "--exchanges", "0"]) == 2
    assert main([*arguments, "--schema", "nowhere.json"]) == 2
    error = capsys.readouterr().err
    assert "`--exchanges` is 0" in error and "nowhere.json" in error
    with pytest.raises(InputError):
        load(tmp_path)
