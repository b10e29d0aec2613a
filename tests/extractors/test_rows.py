from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from extractors import InputError
from extractors.rows import read_rows, sha256, write_rows
from extractors.triplets import Triplet, TripletExtractor

TRIPLETS = TripletExtractor()


def row(id: object = "p1-01", **changes: Any) -> dict[str, Any]:
    return {
        "id": id,
        "group": "p1",
        "input": {"turns": [{"id": "t1", "speaker": "Mia", "text": "I adopted a cat, Pixel. 😀\u2028"}]},
        "gold": [{"subject": "Mia", "relation": "have_pet", "object": "cat"}],
        **changes,
    }


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "train.jsonl"
    path.write_text(
        "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), encoding="utf-8"
    )
    return path


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "train.jsonl"
    assert write_rows(path, [row("a", tags={"phrasing": "unseen"}), row("b", gold=[])]) == 2
    first, second = read_rows(path, TRIPLETS)
    assert (first.id, first.group, first.tags) == ("a", "p1", {"phrasing": "unseen"})
    assert first.input.turns[0].text == "I adopted a cat, Pixel. 😀\u2028"
    assert first.gold == (Triplet("Mia", "have_pet", "cat"),)
    assert (second.gold, second.tags) == ((), {})
    assert list(path.parent.iterdir()) == [path]


def test_blank_lines_are_passed_over_and_a_limit_stops_reading(tmp_path: Path) -> None:
    path = written(tmp_path, row("a"), "", row("b"), "this line is not reached")
    assert [r.id for r in read_rows(path, TRIPLETS, limit=2)] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2"),
        ("[]", "JSON object"),
        (row(id=""), "`id`"),
        (row(id=7), "`id`"),
        (row("b", group=None), "`group`"),
        ({"id": "b", "group": "p1", "input": {}}, "`gold` is missing .row 'b'"),
        (row("b", label="x"), "'label'.*tags"),
        (row("b", input={"turns": []}), "input.turns.*row 'b'"),
        (row("b", gold=[{"subject": "Mia"}]), r"gold\[0\].*row 'b'"),
        (row("a"), "'a' stands on line 1"),
    ],
)
def test_a_faulty_row_is_refused_with_its_line_and_its_fault(tmp_path: Path, line: Any, said: str) -> None:
    with pytest.raises(InputError, match=f"(?s)line 2.*{said}|{said}") as raised:
        read_rows(written(tmp_path, row("a"), line), TRIPLETS)
    assert "line 2" in str(raised.value)


def test_all_faulty_rows_are_counted_and_ten_are_shown(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        read_rows(written(tmp_path, *["{"] * 25), TRIPLETS)
    assert "25 of its rows" in str(raised.value) and str(raised.value).count("\n  line ") == 10


def test_a_missing_and_an_empty_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_rows(tmp_path / "none.jsonl", TRIPLETS)
    with pytest.raises(InputError, match="no rows"):
        read_rows(written(tmp_path, "", " "), TRIPLETS)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    write_rows(path, [row("a")])
    with pytest.raises(TypeError):
        write_rows(path, [row("b"), {"id": object()}])
    assert [r.id for r in read_rows(path, TRIPLETS)] == ["a"]


def test_a_hash_is_that_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    assert sha256(path) == hashlib.sha256(b"abc").hexdigest()
