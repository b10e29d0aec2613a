"""The tree and its history as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from extractors.persona_tree import Operation, load_schema
from extractors.persona_tree.show import show_diff, show_history, show_leaf, show_tree
from extractors.persona_tree.store import TreeStore
from extractors.persona_tree.tree import PersonaTree

SCHEMA = load_schema("quickstart").extended("Identity.Social_Identity")
NAME, WORK, NICK = (f"Identity.Social_Identity.{name}" for name in ("Name", "Occupation", "Nick"))


def store(folder: Path) -> TreeStore:
    made = TreeStore(folder, "mia", SCHEMA)
    day = datetime(2026, 1, 8, 12, tzinfo=UTC)
    made.apply("c1", [Operation("ADD", NAME, "Mia"), Operation("ADD", WORK, "nurse")], time=day)
    made.apply("c2", [Operation("UPDATE", WORK, "head nurse"), Operation("ADD", "Moon", "x")], time=day.replace(day=9))
    made.apply("c3", [Operation("DELETE", WORK), Operation("ADD", NICK, "Mi")], time=day.replace(day=10))
    made.apply("c4", [Operation("NO_OP")], time=day.replace(day=11))
    return made


def test_a_tree_is_shown_by_groups_with_filled_leaves_alone(tmp_path: Path) -> None:
    tree = store(tmp_path).tree
    assert show_tree(tree) == (
        f"Version 4, schema quickstart 1: 1 of {len(SCHEMA.leaves)} leaves and 1 added, 2 words\n"
        "Identity\n  Social_Identity\n    Name: Mia\n    Nick +: Mi\n"
    )
    assert "    Occupation: deleted in version 3, was head nurse\n" in show_tree(tree, deleted=True)
    assert f"    Name ({SCHEMA.leaves[NAME].meaning}): Mia\n" in show_tree(tree, meanings=True)
    assert (
        show_tree(PersonaTree(SCHEMA)) == f"Version 0, schema quickstart 1: 0 of {len(SCHEMA.leaves)} leaves, 0 words\n"
    )


def test_an_added_leaf_stands_in_its_group_though_others_follow_it() -> None:
    tree = PersonaTree(SCHEMA, {NAME: "Mia", NICK: "Mi", "Behavioural.Lifestyle.Liked_Food": "sushi"})
    names = [line.strip().partition(":")[0] for line in show_tree(tree).splitlines()[1:]]
    assert names == ["Identity", "Social_Identity", "Name", "Nick +", "Behavioural", "Lifestyle", "Liked_Food"]


def test_the_history_of_a_tree_tells_what_every_chunk_did_and_what_was_refused(tmp_path: Path) -> None:
    text = show_history(store(tmp_path).records)
    assert text.splitlines()[:5] == [
        "Version 1, 2026-01-08T12:00:00Z, chunk c1",
        f"  + {NAME}: Mia",
        f"  + {WORK}: nurse",
        "Version 2, 2026-01-09T12:00:00Z, chunk c2",
        f"  ~ {WORK}: nurse -> head nurse",
    ]
    assert "  refused ADD Moon: unknown_path, no leaf of the schema quickstart" in text
    assert f"  - {WORK}: head nurse\n" in text and text.endswith("chunk c4\n  nothing changed\n")
    assert show_history([]) == "no chunk yet\n"


def test_the_history_of_a_leaf_tells_its_values_oldest_first(tmp_path: Path) -> None:
    made = store(tmp_path)
    assert show_leaf(WORK, made.history(WORK)).splitlines() == [
        *(WORK, "  Version 1, 2026-01-08T12:00:00Z, chunk c1", "    nurse"),
        *("  Version 2, 2026-01-09T12:00:00Z, chunk c2", "    head nurse"),
        *("  Version 3, 2026-01-10T12:00:00Z, chunk c3", "    deleted"),
    ]
    assert "never written" in show_leaf("x", ())


def test_a_difference_of_versions_is_one_line_a_leaf(tmp_path: Path) -> None:
    made = store(tmp_path)
    assert show_diff(made.diff(1, 3)) == f"- {WORK}: nurse\n+ {NICK}: Mi\n"
    assert show_diff(made.diff(3, 4)) == "no difference\n"


def test_a_shortened_value_is_marked(tmp_path: Path) -> None:
    made = TreeStore(tmp_path, "max", SCHEMA)
    made.apply("c1", [Operation("ADD", NAME, "word " * 100)])
    budget = SCHEMA.leaves[NAME].budget
    assert f"[shortened to {budget} words]" in show_history(made.records)


def test_nothing_in_a_history_can_steer_a_terminal(tmp_path: Path) -> None:
    made = TreeStore(tmp_path, "eve", SCHEMA)
    made.apply("c\x1b[2J", [Operation("ADD", "\x1b]0;x\x07", "a\x1b[31mb"), Operation("ADD", NAME, "a\x1b[31mb\u202e")])
    for text in (show_history(made.records), show_tree(made.tree), show_leaf(NAME, made.history(NAME))):
        assert all(char.isprintable() or char == "\n" for char in text)
