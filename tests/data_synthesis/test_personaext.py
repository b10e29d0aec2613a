"""PersonaExt loader: small files in the published format, and the real corpus where it is at hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from data_synthesis.corpora import corpus_folder, personaext
from data_synthesis.corpora.personaext import detokenise, prepare
from data_synthesis.splits import normalise
from extractors.contract import InputError
from extractors.rows import read_rows
from extractors.triplets import TripletExtractor
from extractors.triplets.score import normalise as plain

SPLITS = ("train", "dev", "test")


def line(text: str, head: Sequence[int], tail: Sequence[int], label: str = "have_pet") -> dict[str, Any]:
    return {
        "triplets": [{"tokens": text.split(" "), "head": list(head), "tail": list(tail), "label": label, "head_id": ""}]
    }


# Enough further utterances for three splits.
FILLER = [line(f"i have {n} dogs .", [0], [2, 3]) for n in range(20)]


def write(folder: Path, *files: list[Any]) -> Path:
    for number, lines in enumerate(files):
        path = folder / f"unseen_5_seed_{number}" / ("dev.jsonl" if number % 2 else "test.jsonl")
        path.parent.mkdir(parents=True)
        path.write_text("".join((item if isinstance(item, str) else json.dumps(item)) + "\n" for item in lines))
    return folder


def rows_of(out: Path) -> dict[str, list[dict[str, Any]]]:
    return {split: [json.loads(x) for x in (out / f"{split}.jsonl").read_text().splitlines()] for split in SPLITS}


def only_row(out: Path, word: str) -> dict[str, Any]:
    (row,) = [row for rows in rows_of(out).values() for row in rows if word in row["input"]["turns"][0]["text"]]
    return row


def test_a_first_person_subject_becomes_the_speakers_label_and_the_turn_is_the_evidence(tmp_path: Path) -> None:
    prepare(tmp_path / "out", write(tmp_path / "in", [line("hi ! my favorite pet is a zebra .", [2], [6, 7]), *FILLER]))
    row = only_row(tmp_path / "out", "zebra")
    turn = row["input"]["turns"][0]
    assert turn["speaker"] == "Speaker A"
    assert turn["text"] == "hi! my favorite pet is a zebra."
    expected = {"subject": "Speaker A", "relation": "have_pet", "object": "a zebra", "evidence": [turn["id"]]}
    assert row["gold"] == [expected]


def test_other_subjects_keep_their_text_and_are_counted(tmp_path: Path) -> None:
    lines = [line("my dad raises zebra foals", [0, 1], [3]), line("our llama is old", [0], [1]), *FILLER]
    card = prepare(tmp_path / "out", write(tmp_path / "in", lines))
    assert only_row(tmp_path / "out", "zebra")["gold"][0]["subject"] == "my dad"
    assert only_row(tmp_path / "out", "llama")["gold"][0]["subject"] == "Speaker A"
    assert card["details"]["other_subjects"] == {"my dad": 1}


def test_the_misspelt_relation_is_normalised(tmp_path: Path) -> None:
    lines = [line("i have twins named zoe", [0], [2], "have_chidren"), *FILLER]
    card = prepare(tmp_path / "out", write(tmp_path / "in", lines))
    assert only_row(tmp_path / "out", "zoe")["gold"][0]["relation"] == "have_children"
    assert card["details"]["source_relations"] == card["details"]["relations"] == 2


def test_an_object_of_words_that_stand_apart_keeps_the_annotators_words_and_is_marked(tmp_path: Path) -> None:
    lines = [line("i have two young zebras", [0], [2, 4]), line("my mane is red , llama", [0], [3, 1]), *FILLER]
    card = prepare(tmp_path / "out", write(tmp_path / "in", lines))
    row = only_row(tmp_path / "out", "zebras")
    assert row["gold"][0]["object"] == "two zebras"
    assert row["tags"]["object_composed"]
    assert only_row(tmp_path / "out", "llama")["gold"][0]["object"] == "red mane"
    assert card["details"]["objects_composed_of_separate_words"] == 2


def test_bad_rows_are_counted_by_reason_and_named_by_file_and_line(tmp_path: Path) -> None:
    lines = [
        *FILLER,
        line("i have a cat", [0], [4]),
        line("i have a cat", [-1], [3]),
        line("i have a cat", [0], []),
        "{not json",
        {"triplets": [{"tokens": ["i"]}]},
        {"triplets": []},
        line("i have a cat", [0], [9]),
    ]
    card = prepare(tmp_path / "out", write(tmp_path / "in", lines))
    bad = card["details"]["bad_lines"]
    assert bad["`tail` is empty or points outside the tokens"] == {"count": 3, "first": "unseen_5_seed_0/test.jsonl:21"}
    assert bad["`head` is empty or points outside the tokens"]["count"] == 1
    assert bad["not JSON"] == {"count": 1, "first": "unseen_5_seed_0/test.jsonl:24"}
    assert sum(entry["count"] for entry in bad.values()) == 7
    assert card["details"]["pairs"] == 20


def test_a_corpus_without_one_usable_row_is_an_error_that_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="points outside the tokens.*unseen_5_seed_0/test.jsonl:1"):
        prepare(tmp_path / "out", write(tmp_path / "in", [line("i have a cat", [0], [4])]))


def test_a_missing_or_empty_folder_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"no dev\.jsonl or test\.jsonl"):
        prepare(tmp_path / "out", tmp_path)
    monkeypatch.setenv("MNEMOSMITH_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="set MNEMOSMITH_DATA"):
        prepare(tmp_path / "out")
    assert personaext.main(["--out", str(tmp_path / "out")]) == 2


def test_lines_repeated_over_files_become_one_row(tmp_path: Path) -> None:
    card = prepare(tmp_path / "out", write(tmp_path / "in", FILLER, FILLER, FILLER[:7]))
    assert card["details"]["lines"] == 47
    assert card["details"]["repeats_over_files"] == 27
    assert sum(len(rows) for rows in rows_of(tmp_path / "out").values()) == 20


def test_two_facts_of_one_utterance_stand_in_one_row(tmp_path: Path) -> None:
    text = "i have a zebra and a llama"
    prepare(tmp_path / "out", write(tmp_path / "in", [line(text, [0], [3]), *FILLER], [line(text, [0], [6])]))
    assert [t["object"] for t in only_row(tmp_path / "out", "zebra")["gold"]] == ["zebra", "llama"]


def test_utterances_that_differ_in_punctuation_only_stay_in_one_split(tmp_path: Path) -> None:
    pairs = [line(f"i own {n} cats{end}", [0], [2, 3], "own") for n in range(40) for end in (" .", " !", "")]
    prepare(tmp_path / "out", write(tmp_path / "in", pairs))
    home: dict[str, set[str]] = {}
    for split, rows in rows_of(tmp_path / "out").items():
        for row in rows:
            home.setdefault(normalise(row["input"]["turns"][0]["text"]), set()).add(split)
    assert len(home) == 40
    assert all(len(splits) == 1 for splits in home.values())
    assert {len(rows) for rows in rows_of(tmp_path / "out").values()} == {96, 12}


def test_the_same_source_and_seed_give_the_same_bytes_and_another_seed_another_split(tmp_path: Path) -> None:
    source = write(tmp_path / "in", FILLER)
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        prepare(tmp_path / name, source, seed)
    a, b, c = (
        [(tmp_path / n / f).read_bytes() for f in ("train.jsonl", "dev.jsonl", "test.jsonl", "card.json")]
        for n in "abc"
    )
    assert a == b
    assert a[0] != c[0]


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("i m not sure .", "i'm not sure."),
        ("i don t , it s late ; you ll see !", "i don't, it's late; you'll see!"),
        ("the cat s name is t", "the cat's name is t"),
        ("from the u s . . .", "from the u s..."),
        ("wait . ll be back ?", "wait. ll be back?"),
    ],
)
def test_tokens_are_spaced_as_people_write_and_every_span_is_its_token(tokens: str, text: str) -> None:
    words = tokens.split()
    written, spans = detokenise(words)
    assert written == text
    assert [written[start:end] for start, end in spans] == words


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    try:
        source = corpus_folder("personaext")
    except InputError as error:
        pytest.skip(f"the real PersonaExt is not at hand: {error}")
    out = tmp_path_factory.mktemp("personaext")
    return out, prepare(out, source)


def test_the_real_corpus_has_the_published_counts(real: tuple[Path, dict[str, Any]]) -> None:
    _, card = real
    details = card["details"]
    assert details["differs_from_published"] == {}
    assert details["bad_lines"] == {}
    assert details["pairs"] == 22_566
    assert details["relations"] == 75
    assert details["relations_outside_vocabulary"] == {}
    rows = {split: card["splits"][split]["rows"] for split in SPLITS}
    assert rows == {"train": 18_059, "dev": 2_254, "test": 2_253}
    assert details["first_person_subjects"] + sum(details["other_subjects"].values()) == 22_566


def test_every_real_row_is_a_triplets_row_and_its_object_stands_in_its_text(real: tuple[Path, dict[str, Any]]) -> None:
    out, _ = real
    texts: dict[str, str] = {}
    for split in SPLITS:
        for row in read_rows(out / f"{split}.jsonl", TripletExtractor()):
            (turn,), (triplet,) = row.input.turns, row.gold
            assert texts.setdefault(normalise(turn.text), split) == split
            if row.tags["object_composed"]:
                assert set(plain(triplet.object).split()) <= set(plain(turn.text).split()), row.id
            else:
                assert triplet.object in turn.text, row.id
