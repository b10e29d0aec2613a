"""`mnemosmith memory inspect` as a person meets it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from extractors.persona_tree import Operation, Schema, TreeStore, load_schema
from mnemosmith import main

WORK, HOME = "Identity.Social_Identity.Occupation", "Identity.Social_Identity.Residence"


def fill(folder: Path, person: str, schema: Schema) -> None:
    day = datetime(2026, 1, 8, 12, tzinfo=UTC)
    with TreeStore(folder, person, schema) as store:
        store.apply("c1", [Operation("ADD", WORK, "nurse"), Operation("ADD", HOME, "Porto")], time=day)
        store.apply("c2", [Operation("UPDATE", WORK, "head nurse"), Operation("ADD", "Moon", "x")], time=day)
        store.apply("c3", [Operation("DELETE", HOME)], time=day)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill(tmp_path / "stores", "mia", load_schema("quickstart"))
    return tmp_path / "stores"


def inspect(*arguments: str | Path) -> int:
    return main(["memory", "inspect", *map(str, arguments)])


def test_the_only_persons_tree_is_shown_as_it_is_now(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(folder) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Version 3, schema quickstart 1: 1 of ") and "    Occupation: head nurse\n" in shown
    assert "Porto" not in shown


def test_versions_history_leaves_and_differences_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, parts in (
        (("--version", "1"), ("Version 1,", "Occupation: nurse", "Residence: Porto")),
        (("--deleted",), ("Residence: deleted in version 3, was Porto",)),
        (("--meanings",), (f"Occupation ({load_schema('quickstart').leaves[WORK].meaning}): head nurse",)),
        (("--history",), ("Version 2, 2026-01-08T12:00:00Z, chunk c2", "refused ADD Moon: unknown_path")),
        (("--leaf", "occupation"), (f"{WORK}\n", "Version 1,", "head nurse")),
        (("--diff", "1", "3"), (f"~ {WORK}: nurse -> head nurse", f"- {HOME}: Porto")),
    ):
        assert inspect(folder, *arguments) == 0
        shown = capsys.readouterr().out
        assert all(part in shown for part in parts), shown


def test_of_several_persons_one_is_to_be_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(folder, "Tom Ó", load_schema("quickstart"))
    assert inspect(folder) == 2
    assert "choose one with --user (Tom Ó, mia)" in capsys.readouterr().err
    assert inspect(folder, "--user", "Tom Ó") == 0
    assert inspect(folder, "--user", "ana") == 2
    assert "no tree of 'ana': there are Tom Ó, mia" in capsys.readouterr().err


def test_a_schema_of_ones_own_lies_beside_the_trees_or_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = load_schema("full").extended("Identity.Social_Identity")
    folder = tmp_path / "stores"
    fill(folder, "mia", schema)
    assert inspect(folder) == 2
    assert "written with the schema full 1, which is none of full, quickstart: name its file" in capsys.readouterr().err
    file = tmp_path / "own.json"
    file.write_text(json.dumps(schema.to_json()), encoding="utf-8")
    assert inspect(folder, "--schema", file) == 0
    file.rename(folder / "schema.json")
    assert inspect(folder) == 0


def test_what_is_not_there_is_said_with_exit_status_2(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, said in (
        ((tmp_path / "nowhere",), "is no folder"),
        ((tmp_path / "empty",), "holds no tree"),
        ((folder, "--version", "9"), "there is no version 9 of this tree: it has 0 to 3"),
        ((folder, "--leaf", "Moon"), "'Moon' is no leaf of the schema quickstart"),
        ((folder, "--diff", "0", "7"), "there is no version 7"),
        ((folder, "--history", "--deleted"), "--deleted shows more of a tree"),
        ((folder, "--schema", "fulll"), "write full, quickstart"),
    ):
        assert inspect(*arguments) == 2
        assert said in capsys.readouterr().err


def test_arguments_that_exclude_each_other_and_a_missing_action_end_with_2(folder: Path) -> None:
    for arguments in (["memory"], ["memory", "inspect", str(folder), "--history", "--version", "1"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2


def test_an_unfinished_last_line_is_passed_over_and_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (folder / "mia.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"version": 4, "chu')
    assert inspect(folder) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("Version 3,") and "19 bytes of an unfinished last line" in shown.err
