"""`mnemosmith data show`: what a person sees of a dataset folder."""

from __future__ import annotations

import argparse
import base64
import re
from pathlib import Path
from typing import Any

import pytest

from data_synthesis import show
from data_synthesis.card import write_card
from data_synthesis.corpora import jsonl
from data_synthesis.gates import Limits, count_rejects, run_gates
from data_synthesis.simulate import simulate
from extractors.rows import write_rows


def command(*arguments: Any) -> int:
    parser = argparse.ArgumentParser(prog="mnemosmith data")
    show.add_arguments(parser)
    return show.run(parser.parse_args([str(argument) for argument in arguments]))


def row(name: str, text: str, gold: Any) -> dict[str, Any]:
    turns = [{"id": f"{name}-t", "speaker": "Mia", "text": text}]
    return {"id": name, "group": name, "input": {"turns": turns}, "gold": gold}


def likes(thing: str) -> list[dict[str, str]]:
    return [{"subject": "Mia", "relation": "like_drink", "object": thing}]


@pytest.fixture()
def synthesised(tmp_path: Path) -> Path:
    rows = [row(f"r{n}", f"I like tea number {n} <b>", likes("tea")) for n in range(12)]
    bad = [row("bad1", "I like milk", likes("whisky")), row("bad2", "I like rum", likes("<i>gin"))]
    kept, rejects = run_gates([*rows, *bad], "triplets", Limits())
    folder = tmp_path / "made"
    write_rows(folder / "train.jsonl", kept)
    write_rows(folder / "test.jsonl", [])
    write_rows(folder / "rejected.jsonl", [reject.to_json() for reject in rejects])
    synthesis = {
        "model": "some-teacher",
        "requests": 1500,
        "answered": 1490,
        "failed": {"length": {"count": 10, "first_id": "r77"}},
        "prompt_tokens": 1_234_567,
        "completion_tokens": 89_000,
        "cost": 3.25,
        "currency": "EUR",
    }
    write_card(
        folder,
        name="triplets from a teacher",
        version="1",
        source="MSC",
        licence="MIT",
        seed=0,
        splits={"train": kept, "test": []},
        details={"rejected": count_rejects(rejects), "synthesis": synthesis, "windows": 2_000},
    )
    return folder


def test_a_synthesised_folder_shows_rows_labels_rejects_with_examples_and_cost(
    synthesised: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("show", synthesised, "--examples", 2) == 0
    out = capsys.readouterr().out
    assert re.search(r"train +12 +12 +12 +0 +0 +6, 6", out) and re.search(r"test +0 ", out)
    assert re.search(r"like_drink +█+ 12 / 0", out)
    assert "2 rows rejected" in out and "not grounded (first: bad1)" in out
    assert "bad1: object 'whisky': 0 of 1 content words are said" in out and "Mia: I like milk" in out
    assert "1,500, of which answered 1,490" in out and "3.2500 EUR" in out and "10: length (first: r77)" in out
    assert "1,234,567 in prompts, 89,000 in answers" in out and re.search(r"windows +2,000", out)
    assert out.count("-> (Mia, like_drink, tea)") == 2
    assert "no longer describes" not in out


def test_a_file_that_changed_after_the_card_was_written_is_named(
    synthesised: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (synthesised / "train.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n")
    (synthesised / "test.jsonl").unlink()
    assert command("show", synthesised) == 0
    assert "no longer describes these files (their bytes changed, or they are gone): test.jsonl, train.jsonl" in (
        capsys.readouterr().out
    )


def test_the_page_holds_its_pictures_and_escapes_what_people_said(
    synthesised: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "new" / "page.html"
    assert command("show", synthesised, "--html", page) == 0
    html = page.read_text(encoding="utf-8")
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    assert len(pictures) == 4  # splits, labels, lengths, rejects
    assert all(base64.b64decode(picture).startswith(b"\x89PNG") for picture in pictures)
    assert "&lt;i&gt;gin" in html and "<i>gin" not in html and "3.2500 EUR" in html
    assert not re.search(r'(?:src|href)="(?!data:)', html)
    assert str(page) in capsys.readouterr().out


def test_a_world_and_own_rows_can_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulate(tmp_path / "world", people=12, seed=1)
    write_rows(tmp_path / "mine.jsonl", [row(f"m{n}", f"I like tea and {n} cups", likes("tea")) for n in range(9)])
    assert jsonl.main(["--in", str(tmp_path / "mine.jsonl"), "--out", str(tmp_path / "own")]) == 0
    for folder in ("world", "own"):
        capsys.readouterr()
        assert command("show", tmp_path / folder) == 0
        out = capsys.readouterr().out
        assert "rejected" not in out.split("in card.json too")[0] and re.search(r"train +\d", out)
        assert command("show", tmp_path / folder, "--html", tmp_path / f"{folder}.html") == 0


def test_pairs_with_a_number_as_gold_can_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"id": f"c{n}", "group": "g", "input": {"previous": "I am packing.", "current": "Done!"}, "gold": n % 2}
        for n in range(4)
    ]
    write_rows(tmp_path / "dev.jsonl", rows)
    write_card(
        tmp_path, name="pairs", version="1", source="s", licence="MIT", seed=None, splits={"dev": rows}, details={}
    )
    assert command("show", tmp_path, "--examples", 1) == 0
    assert "previous: I am packing.\n   current: Done!\n-> " in capsys.readouterr().out
    assert command("show", tmp_path, "--html", tmp_path / "page.html") == 0


@pytest.mark.parametrize(
    ("card", "said"),
    [(None, "carries the card"), ("{", "cannot be read"), ('{"name": "x"}', "has no `splits`")],
)
def test_a_folder_without_a_usable_card_is_an_error_that_says_what_to_do(
    card: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if card is not None:
        (tmp_path / "card.json").write_text(card)
    assert command("show", tmp_path) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and said in err and "card.json" in err


def test_a_missing_folder_and_a_broken_row_are_errors(
    synthesised: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("show", tmp_path / "nowhere") == 2
    assert "nowhere is no folder" in capsys.readouterr().err
    (synthesised / "train.jsonl").write_text('{"id": "a"}\n{"id"\n')
    assert command("show", synthesised) == 2
    assert "train.jsonl, line 2" in capsys.readouterr().err


def test_the_corpora_are_listed_with_what_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    from data_synthesis.corpora import CORPORA

    assert command("corpora") == 0
    out = capsys.readouterr().out
    assert all(name in out and description.split()[0] in out for name, description in CORPORA.items())
