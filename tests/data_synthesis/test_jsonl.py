"""A user's own JSONL rows, and the roles that corpora have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from data_synthesis.card import read_card
from data_synthesis.corpora import SPLITS, jsonl, split_groups
from data_synthesis.roles import assert_role, roles
from extractors.contract import InputError
from extractors.rows import read_rows
from extractors.triplets import TripletExtractor

EXTRACTOR = TripletExtractor()


def row(number: int, group: str = "", text: str = "", **more: Any) -> dict[str, Any]:
    turn = {"id": f"t{number}", "speaker": "Mia", "text": text or f"I have {number} cats."}
    gold = [{"subject": "Mia", "relation": "have_pet", "object": f"{number} cats", "evidence": [turn["id"]]}]
    return {"id": f"r{number}", "group": group or f"g{number // 3}", "input": {"turns": [turn]}, "gold": gold, **more}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(item) + "\n" for item in rows))
    return path


def test_one_file_is_split_by_group_and_every_row_is_kept_with_its_evidence(tmp_path: Path) -> None:
    rows = [row(n) for n in range(60)]
    card = jsonl.prepare(write(tmp_path / "my.jsonl", rows), tmp_path / "out", EXTRACTOR)
    assert {split: counts["groups"] for split, counts in card["splits"].items()} == {"train": 16, "dev": 2, "test": 2}
    written = [
        json.loads(x) for split in SPLITS for x in (tmp_path / "out" / f"{split}.jsonl").read_text().splitlines()
    ]
    assert sorted(written, key=lambda r: int(r["id"][1:])) == rows
    groups = [{r.group for r in read_rows(tmp_path / "out" / f"{split}.jsonl", EXTRACTOR)} for split in SPLITS]
    assert not groups[0] & groups[1] and not groups[0] & groups[2] and not groups[1] & groups[2]
    assert read_card(tmp_path / "out") == card


def test_duplicates_are_refused_with_their_count_and_first_id(tmp_path: Path) -> None:
    rows = [row(n) for n in range(30)] + [row(40, text="i have 3 CATS!"), row(41, text="I have 4 cats")]
    card = jsonl.prepare(write(tmp_path / "my.jsonl", rows), tmp_path / "out", EXTRACTOR)
    report = card["details"]["duplicates"]["all"]
    assert report["repeated"] == {"count": 2, "first_id": "r40"}
    assert report["conflicting"] == 2
    assert sum(counts["rows"] for counts in card["splits"].values()) == 30


def test_files_given_per_split_stay_as_they_are_and_a_leaked_test_row_is_refused(tmp_path: Path) -> None:
    files = {
        "train": write(tmp_path / "a.jsonl", [row(n, "g1") for n in range(5)]),
        "test": write(tmp_path / "b.jsonl", [row(9, "g2"), row(10, "g2", text="I have 2 cats.")]),
    }
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "dev.jsonl").write_text("left over from an earlier run\n")
    card = jsonl.prepare(files, tmp_path / "out", EXTRACTOR)
    assert card["details"]["duplicates"]["test"]["leaked"] == {"count": 1, "first_id": "r10"}
    assert {split: counts["rows"] for split, counts in card["splits"].items()} == {"train": 5, "test": 1}
    assert sorted(p.name for p in (tmp_path / "out").glob("*.jsonl")) == ["test.jsonl", "train.jsonl"]


def test_a_group_or_an_id_in_two_files_is_refused_by_name(tmp_path: Path) -> None:
    train = write(tmp_path / "a.jsonl", [row(1, "ann")])
    with pytest.raises(InputError, match="group 'ann' stands in train and in test"):
        jsonl.prepare(
            {"train": train, "test": write(tmp_path / "b.jsonl", [row(2, "ann")])}, tmp_path / "out", EXTRACTOR
        )
    with pytest.raises(InputError, match="id 'r1' stands in train and in dev"):
        jsonl.prepare(
            {"train": train, "dev": write(tmp_path / "c.jsonl", [row(1, "bob")])}, tmp_path / "out", EXTRACTOR
        )
    assert not (tmp_path / "out").exists()


def test_faulty_rows_end_the_command_with_code_2_and_all_of_them_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(n) for n in range(9)]
    rows[3]["gold"] = "none"
    rows[7]["input"] = {"turns": []}
    source = write(tmp_path / "my.jsonl", rows)
    assert jsonl.main(["--in", str(source), "--out", str(tmp_path / "out")]) == 2
    message = capsys.readouterr().err
    assert "line 4" in message and "'r3'" in message
    assert "line 8" in message and "'r7'" in message


def test_rows_tagged_with_a_benchmark_are_refused(tmp_path: Path) -> None:
    rows = [row(n) for n in range(12)]
    rows[5]["tags"] = {"corpus": "locomo"}
    with pytest.raises(InputError, match="row 'r5'.*'locomo' may be used never"):
        jsonl.prepare(write(tmp_path / "my.jsonl", rows), tmp_path / "out", EXTRACTOR)


def test_half_a_surrogate_pair_is_refused_with_the_rows_id(tmp_path: Path) -> None:
    rows = [row(n) for n in range(9)]
    rows[2]["tags"] = {"note": "\ud83d"}
    with pytest.raises(InputError, match="row 'r2' holds half a surrogate pair"):
        jsonl.prepare(write(tmp_path / "my.jsonl", rows), tmp_path / "out", EXTRACTOR)


def test_fewer_than_three_groups_cannot_be_split(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2 group"):
        jsonl.prepare(write(tmp_path / "my.jsonl", [row(1), row(3)]), tmp_path / "out", EXTRACTOR)


def test_the_split_does_not_depend_on_the_order_of_the_groups() -> None:
    names = [f"p{n}" for n in range(50)]
    assert split_groups(names, seed=3) == split_groups(reversed(names), seed=3)
    assert split_groups(names, seed=3) != split_groups(names, seed=4)


def test_roles_let_personaext_train_and_no_benchmark() -> None:
    for use in ("train", "dev", "test"):
        assert_role("personaext", "triplets", use)
        assert_role("world", "triplets", use)
    for benchmark in ("locomo", "personamem", "longmemeval"):
        assert set(roles()[benchmark].values()) == {()}
        with pytest.raises(InputError, match="never"):
            assert_role(benchmark, "triplets", "train")
    with pytest.raises(InputError, match="never.*'continuity'"):
        assert_role("personaext", "continuity", "train")
    with pytest.raises(InputError, match="'squad' has no role"):
        assert_role("squad", "triplets", "train")
