"""Normalised text, refused duplicates, disjoint groups; and the card."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_synthesis.card import read_card, write_card
from data_synthesis.splits import assert_disjoint_groups, input_text, normalise, refuse_duplicates
from extractors.rows import write_rows


def row(number: int, text: str, group: str = "g", gold: tuple = (), speaker: str = "Mia") -> dict:
    turns = [{"id": f"t{number}", "speaker": speaker, "text": text}]
    return {"id": f"r{number}", "group": group, "input": {"turns": turns}, "gold": list(gold)}


def test_normalise_folds_case_punctuation_and_white_space():
    assert normalise("  It's\tPORTO —  isn't_it? ") == "it s porto isn t it"


@given(st.text())
def test_normalise_twice_changes_nothing(text):
    assert normalise(normalise(text)) == normalise(text)


def test_input_text_leaves_out_ids_and_speakers():
    assert input_text(row(1, "I live in Porto.")) == "I live in Porto."


def test_a_row_of_a_later_split_is_refused_when_an_earlier_split_has_its_text():
    splits = {
        "train": [row(1, "I live in Porto."), row(2, "i live in porto", gold=({"relation": "x"},))],
        "test": [row(3, "I LIVE in Porto!", speaker="Tom"), row(4, "Hello.")],
    }
    kept, report = refuse_duplicates(splits)
    assert [r["id"] for r in kept["train"]] == ["r1"] and [r["id"] for r in kept["test"]] == ["r4"]
    assert report["train"]["repeated"] == {"count": 1, "first_id": "r2"} and report["train"]["conflicting"] == 1
    assert report["test"]["leaked"] == {"count": 1, "first_id": "r3"} and report["test"]["conflicting"] == 0
    assert len(splits["train"]) == 2


def test_equal_gold_with_other_evidence_is_no_conflict():
    one, two = ({"relation": "x", "evidence": [turn]} for turn in ("a", "b"))
    _, report = refuse_duplicates({"train": [row(1, "Hi.", gold=(one,)), row(2, "Hi", gold=(two,))]})
    assert report["train"]["conflicting"] == 0 and report["train"]["repeated"]["count"] == 1


def test_a_group_in_two_splits_is_named():
    assert_disjoint_groups({"train": [row(1, "a", "g1")], "test": [row(2, "b", "g2")]})
    with pytest.raises(ValueError, match=r"group 'g1' stands in train and in test \(row 'r2'\)"):
        assert_disjoint_groups({"train": [row(1, "a", "g1")], "test": [row(2, "b", "g1")]})


def test_a_card_counts_the_rows_and_hashes_the_files(tmp_path):
    rows = [row(1, "I live in Porto.", gold=({"relation": "live"}, {"relation": "like"})), row(2, "Hello.")]
    write_rows(tmp_path / "train.jsonl", rows)
    card = write_card(
        tmp_path, name="n", version="1", source="s", licence="MIT", seed=None, splits={"train": rows}, details={"x": 1}
    )
    assert card == read_card(tmp_path) and card["details"] == {"x": 1}
    counts = card["splits"]["train"]
    assert (counts["rows"], counts["gold_items"], counts["empty_rows"], counts["rows_with_several"]) == (2, 2, 1, 1)
    assert card["labels"]["train"] == {"like": 1, "live": 1} and set(card["files"]) == {"train.jsonl"}
    assert "| live | 1 |" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_a_card_for_rows_that_were_not_written_is_refused(tmp_path):
    call = {"name": "n", "version": "1", "source": "s", "licence": "MIT", "seed": 0, "details": {}}
    with pytest.raises(FileNotFoundError, match="write the rows before the card"):
        write_card(tmp_path, splits={"train": [row(1, "a")]}, **call)
    write_rows(tmp_path / "train.jsonl", [row(1, "a")])
    with pytest.raises(ValueError, match="holds 1 rows, the card was given 2"):
        write_card(tmp_path, splits={"train": [row(1, "a"), row(2, "b")]}, **call)
    with pytest.raises(FileNotFoundError, match="carries the card"):
        read_card(tmp_path)
