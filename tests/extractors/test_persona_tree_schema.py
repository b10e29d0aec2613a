"""What a tree can hold: the project's schema, parts of it, and any tree of empty strings."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from extractors import InputError
from extractors.persona_tree import Extension, Leaf, Schema, load_schema
from extractors.persona_tree.schema import schema_from_json

FULL = load_schema("full")
DATA = Path(os.environ.get("MNEMOSMITH_DATA", Path(__file__).resolve().parents[2] / "../shared/data"))
AUTHORS = DATA / "inside-out" / "human_tree_en.json"
GROUPS = {
    "Biological": 4,
    "Psychological": 4,
    "Personality": 4,
    "Identity": 5,
    "Behavioural": 12,
}


def small(**leaves: tuple[str, ...]) -> Schema:
    return Schema("small", "1", {path: Leaf(path, "x", aliases=names) for path, names in leaves.items()})


def test_the_full_schema_has_five_dimensions_29_groups_and_leaves_that_say_what_they_hold() -> None:
    dimensions = {path for path in FULL.groups if "." not in path}
    assert {name: sum(path.startswith(name + ".") for path in FULL.groups) for name in dimensions} == GROUPS
    assert 120 <= len(FULL.leaves) <= 180
    assert all(leaf.meaning and leaf.aliases and 10 <= leaf.budget <= 60 for leaf in FULL.leaves.values())
    assert len({leaf.meaning for leaf in FULL.leaves.values()}) == len(FULL.leaves)


def test_no_name_of_the_full_schema_stands_for_two_leaves() -> None:
    names: dict[str, str] = {}
    for path, leaf in FULL.leaves.items():
        for name in {path.rpartition(".")[2].casefold(), *(alias.casefold() for alias in leaf.aliases)}:
            assert names.setdefault(name, path) == path, name
            assert FULL.canonical(name) == path


def test_a_path_is_found_by_other_spellings_and_an_unknown_one_is_not() -> None:
    home = "Identity.Social_Identity.Residence"
    for name in (
        home,
        home.upper(),
        "Residence",
        "social_identity.residence",
        "Home_City",
        "Identity.Social_Identity.address",
    ):
        assert FULL.canonical(name) == home
        leaf = FULL.leaf(name)
        assert leaf is not None and leaf.path == home
    for name in (
        "",
        ".",
        "Identity",
        "Identity.Social_Identity",
        "Identity.Family_System.Address",
        home + ".",
        home + ".X",
    ):
        assert FULL.canonical(name) is None and FULL.leaf(name) is None


def test_the_quickstart_schema_is_a_part_of_the_full_one() -> None:
    part = load_schema("quickstart")
    assert 20 <= len(part.leaves) <= 30 and part.name == "quickstart" and part.version == FULL.version
    assert all(FULL.leaves[path] == leaf for path, leaf in part.leaves.items())


@pytest.mark.parametrize("name", ["full", "quickstart"])
def test_a_schema_survives_its_file(name: str, tmp_path: Path) -> None:
    schema = load_schema(name).extended("Identity.Family_System")
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema.to_json()), encoding="utf-8")
    again = load_schema(str(path))
    assert again == schema and again.sha256 == schema.sha256
    assert again.sha256 != load_schema(name).sha256


def test_parts_are_taken_dropped_and_put_together_again() -> None:
    identity, rest = FULL.subtree("Identity"), FULL.without("Identity")
    assert set(identity.leaves) | set(rest.leaves) == set(FULL.leaves)
    assert not set(identity.leaves) & set(rest.leaves)
    assert dict(rest.merge(identity).leaves) == dict(FULL.leaves)
    assert list(FULL.subtree("Identity.Family_System.Pets", "Biological").leaves)[-1] == "Identity.Family_System.Pets"
    for part in (FULL.subtree, FULL.without):
        with pytest.raises(InputError, match="Identity.Pets"):
            part("Identity.Pets")


def test_schemas_that_contradict_each_other_are_not_merged() -> None:
    domain = Schema("clinic", "1", {"Clinic.Ward": Leaf("Clinic.Ward", "ward", 10)})
    assert "Clinic.Ward" in FULL.merge(domain).leaves
    other = Schema("other", "1", {"Clinic.Ward": Leaf("Clinic.Ward", "another", 10)})
    with pytest.raises(InputError, match=r"Clinic\.Ward"):
        domain.merge(other)
    with pytest.raises(InputError, match="leaf and a group"):
        domain.merge(Schema("other", "1", {"Clinic": Leaf("Clinic", "clinic")}))


# New leaves


def test_new_leaves_are_permitted_below_a_group_and_nowhere_else() -> None:
    schema = FULL.extended("Identity.Family_System", max_depth=4)
    for path in ("Identity.Family_System.Godchildren", "Identity.Family_System.In_Laws.Cousin_Tom"):
        assert schema.may_extend(path) and not FULL.may_extend(path)
    for path in (
        "Identity.Family_System",
        "Identity.Family_System.Pets",  # known
        "Identity.Family_System.pets",  # known by another spelling
        "Identity.Family_System.Pets.Pixel",  # below a leaf
        "Identity.Family_System.A.B.C",  # too deep
        "Identity.Social_Identity.Rank",  # another group
        "Identity.Rank",
        "Rank",
        "Identity.Family_System." + "x" * 41,
        "Identity.Family_System..x",
        "Identity.Family_System.x y",
        "Identity.Family_System.",
    ):
        assert not schema.may_extend(path), path


@pytest.mark.parametrize(
    "extension",
    [
        Extension("group"),
        Extension("off", ("Identity.Family_System",)),
        Extension("group", ("Identity",)),
        Extension("group", ("Identity.Family_System.Pets",)),
        Extension("group", ("Identity.Family_System",), 2),
        Extension("open", ("Identity.Family_System",)),  # type: ignore[arg-type]
    ],
)
def test_an_extension_that_makes_no_sense_is_refused(extension: Extension) -> None:
    with pytest.raises(InputError, match="extension"):
        Schema(FULL.name, FULL.version, FULL.leaves, extension)


# Files


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ([], "JSON object"),
        ({}, "no leaf"),
        ({"a": {}}, "group without leaves"),
        ({"a": {"b": "filled"}}, "a.b"),
        ({"a b": ""}, "a b"),
        ({"a.b": ""}, "a.b"),
        ({"": ""}, "name in a schema"),
        ({"name": "x", "tree": {"a": {"meaning": "m", "budget": 0}}}, "budget"),
        ({"name": "x", "tree": {"a": {"meaning": "m", "colour": 1}}}, "colour"),
        ({"name": "x", "tree": {"a": ""}}, "meaning"),
        ({"name": "x", "tree": {"a": {"meaning": "m"}}, "leaves": 3}, "leaves"),
        (
            {"name": "x", "tree": {"a": {"meaning": "m", "aliases": ["c"]}, "b": {"meaning": "n", "aliases": ["C"]}}},
            "C",
        ),
        ({"name": "x", "tree": {"a": {"meaning": "m", "aliases": ["c d"]}}}, "c d"),
        ({"name": "x", "tree": {"a": {"meaning": "m", "aliases": ["b"]}, "b": {"meaning": "n"}}}, "b leads to"),
    ],
)
def test_a_file_that_is_no_schema_is_refused_with_what_is_wrong(data: Any, named: str) -> None:
    with pytest.raises(InputError, match=named):
        schema_from_json(data)


def test_an_unknown_schema_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="full, quickstart"):
        load_schema("fuller")
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="broken.json is not JSON"):
        load_schema(str(broken))


def test_twins_of_a_bare_tree_are_one_leaf_and_are_reported() -> None:
    tree = {
        "Body": {"Life_Stage": "", "Age": "", "Mood": ""},
        "Life": {"Life_Stage": "", "Events": ""},
        "Mind": {
            "Mood": "",
            "Memory": "",
            "Emotional_Expression": "",
        },  # Mood is a single word: the group tells them apart
        "Family": {
            "Talk": {"Emotional_Expression": "", "Mood": ""}
        },  # a group of namesakes alone tells them apart, too
    }
    schema = schema_from_json(tree)
    assert schema.twins == (("Body.Life_Stage", "Life.Life_Stage"),)
    assert schema.canonical("Life.Life_Stage") == schema.canonical("life_stage") == "Body.Life_Stage"
    assert "Life.Life_Stage" not in schema.leaves and "Family.Talk.Emotional_Expression" in schema.leaves
    assert schema_from_json(schema.to_json()) == schema


@pytest.mark.skipif(not AUTHORS.is_file(), reason="the authors' tree is not under MNEMOSMITH_DATA")
def test_the_authors_tree_of_305_leaves_works_as_it_is() -> None:
    schema = load_schema(str(AUTHORS))
    assert len(schema.leaves) + sum(len(twin) - 1 for twin in schema.twins) == 305
    assert [twin[0].rpartition(".")[2] for twin in schema.twins] == ["Life_Stage", "Dietary_Habits"]
    twin = "5_Behavioral_Characteristics.Lifestyle.Daily_Schedule.Dietary_Habits"
    assert schema.canonical(twin) == "5_Behavioral_Characteristics.Behavioral_Habits.Dietary_Habits"
    assert len({path for path in schema.groups if path.count(".") == 1}) == 29
