"""The persona world as a dataset: what the splits may share, what is gold, and that a seed is a folder."""

from __future__ import annotations

import filecmp
import json
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from data_synthesis.card import read_card, stale_files
from data_synthesis.simulate import simulate
from data_synthesis.splits import normalise
from data_synthesis.world import wordings
from data_synthesis.world.values import KINDS, SPLITS, deal
from extractors.rows import read_rows
from extractors.triplets import TripletExtractor

ROOT = Path(__file__).parents[2]
NO_FACT = {"void", "doubt", "denied", "ended", "small_talk"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("world")
    simulate(out, people=240, seed=0)
    return out


@pytest.fixture(scope="module")
def rows(folder):
    return {split: _lines(folder / f"{split}.jsonl") for split in SPLITS}


@pytest.fixture(scope="module")
def dialogues(folder):
    return {dialogue["id"]: dialogue for dialogue in _lines(folder / "dialogues.jsonl")}


def _lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _turns(row: dict) -> list[dict]:
    return row["input"]["context"] + row["input"]["turns"]


# -- size and shape --------------------------------------------------------------------------------------------------


def test_the_quickstart_size_gives_enough_rows_of_every_kind(rows):
    assert len(rows["train"]) >= 3000 and len(rows["dev"]) >= 150 and len(rows["test"]) >= 300
    for split in ("train", "test"):
        sizes = [len(row["gold"]) for row in rows[split]]
        assert 0.14 <= sizes.count(0) / len(sizes) <= 0.21
        assert sum(size > 1 for size in sizes) / len(sizes) >= 0.25
        assert 1.1 <= sum(sizes) / len(sizes) <= 1.5 and max(sizes) <= 6
        assert {g["relation"] for row in rows[split] for g in row["gold"]} == set(wordings.RELATIONS)
        assert all(len(row["input"]["context"]) <= 2 and 1 <= len(row["input"]["turns"]) <= 2 for row in rows[split])


def test_every_row_is_read_by_the_triplet_extractor_with_its_closed_vocabulary(folder, rows):
    extractor = TripletExtractor(relations=list(wordings.RELATIONS), closed=True)
    for split in SPLITS:
        assert len(read_rows(folder / f"{split}.jsonl", extractor)) == len(rows[split])


# -- the same seed is the same folder --------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bytes_whatever_the_hash_seed(tmp_path):
    simulate(tmp_path / "a", people=30, seed=5)
    subprocess.run(
        [sys.executable, "-m", "data_synthesis.simulate", "--out", tmp_path / "b", "--people", "30", "--seed", "5"],
        check=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "7"},
        capture_output=True,
    )
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["README.md", "card.json", "dev.jsonl", "dialogues.jsonl", "test.jsonl", "train.jsonl"]
    assert filecmp.cmpfiles(tmp_path / "a", tmp_path / "b", names, shallow=False) == (names, [], [])


def test_another_seed_gives_other_rows(tmp_path):
    for seed in (1, 2):
        simulate(tmp_path / str(seed), people=6, seed=seed)
    assert (tmp_path / "1" / "train.jsonl").read_bytes() != (tmp_path / "2" / "train.jsonl").read_bytes()


# -- what the splits may share ---------------------------------------------------------------------------------------


def test_no_person_and_no_name_stands_in_two_splits(dialogues):
    people = {split: set() for split in SPLITS}
    for dialogue in dialogues.values():
        for person in dialogue["people"]:
            people[dialogue["split"]] |= {person["name"], *(relative["name"] for relative in person["relatives"])}
    for a, b in combinations(SPLITS, 2):
        assert people[a] and not people[a] & people[b]


def test_no_object_value_stands_in_two_splits(rows):
    values = {split: {normalise(g["object"]) for row in rows[split] for g in row["gold"]} for split in SPLITS}
    for a, b in combinations(SPLITS, 2):
        assert values[a] and not values[a] & values[b]


def test_every_value_is_dealt_to_exactly_one_split_even_across_kinds():
    home: dict[str, str] = {}
    for kind, by_split in deal().items():
        assert sorted(head for heads in by_split.values() for head in heads) == sorted(set(KINDS[kind].heads))
        for split, heads in by_split.items():
            assert heads, f"{kind} has no value for {split}"
            for head in heads:
                assert home.setdefault(normalise(head), split) == split


def test_no_utterance_template_of_train_comes_back_in_test(rows):
    """The templates are found again from the text alone, by masking every value that the inventories can compose."""
    mask = _value_masker()
    train = {mask(turn["text"]) for row in rows["train"] for turn in _turns(row)}
    again = [turn["text"] for row in rows["test"] for turn in _turns(row) if mask(turn["text"]) in train]
    assert again == []


def _value_masker():
    surfaces = set()
    for kind in KINDS.values():
        ends = [kind.joint + tail for tail in kind.tails] or [""]
        surfaces |= {tuple(normalise(head + end).split()) for head in kind.heads for end in ends}
    longest = max(map(len, surfaces))

    def mask(text: str) -> str:
        words, out, at = normalise(text).split(), [], 0
        while at < len(words):
            size = next((n for n in range(longest, 0, -1) if tuple(words[at : at + n]) in surfaces), 0)
            out.append("<>" if size else words[at])
            at += size or 1
        return re.sub(r"\ban? (?=<>)", "", " ".join(out))

    return mask


def test_reserved_phrasings_are_said_in_the_test_split_alone(rows):
    said = {split: "\n".join(turn["text"] for row in rows[split] for turn in _turns(row)) for split in SPLITS}
    reserved = [p for items in wordings.phrasings().values() for p in items if p.reserved]
    found, others = Counter(), _open_to_train()
    for phrasing in reserved:
        for text in (phrasing.question, phrasing.text):
            # The longest stretch of plain words names a phrasing, where no seen phrasing of any relation has it too.
            stretch = max((piece.strip() for piece in re.split(r"\{\w+\}", text)), key=len)
            if len(stretch) < 14 or any(stretch in other for other in others):
                continue
            for split in SPLITS:
                found[split] += stretch in said[split]
    assert found["test"] > 20 and found["train"] == found["dev"] == 0


def _open_to_train():
    """Everything that train may say about a value: seen phrasings, endings, and sentences that state nothing."""
    seen = [p.question + p.text for items in wordings.phrasings().values() for p in items if not p.reserved]
    return seen + [line for wording in wordings.WORDINGS.values() for line in wording.end + wording.void]


# -- what the card says ----------------------------------------------------------------------------------------------


def test_the_unseen_share_of_the_card_is_the_share_of_the_rows(folder, rows):
    card = read_card(folder)
    for split in SPLITS:
        total = sum(len(row["gold"]) for row in rows[split])
        unseen = sum(len(row["tags"]["unseen_gold"]) for row in rows[split])
        stated = card["details"]["gold_by_phrasing"][split]
        assert stated["seen"] + stated["unseen"] == total and stated["unseen"] == unseen
        assert stated["unseen_share"] == round(unseen / total, 3)
        assert card["splits"][split]["phrasing"] == Counter(row["tags"]["phrasing"] for row in rows[split])
    assert card["details"]["gold_by_phrasing"]["train"]["unseen"] == 0
    assert 0.3 <= card["details"]["gold_by_phrasing"]["test"]["unseen_share"] <= 0.45


def test_about_two_fifths_of_the_phrasings_of_every_relation_are_reserved(folder):
    inventory = read_card(folder)["details"]["phrasings"]
    assert set(inventory["by_relation"]) == set(wordings.RELATIONS)
    for relation, counts in inventory["by_relation"].items():
        assert counts["all"] >= 14, relation
        assert 0.35 <= counts["share"] <= 0.46, relation


def test_the_tag_names_the_gold_that_reserved_phrasings_state(rows):
    for split in SPLITS:
        for row in rows[split]:
            unseen = row["tags"]["unseen_gold"]
            assert row["tags"]["phrasing"] == ("none" if not row["gold"] else "unseen" if unseen else "seen")
            assert all(0 <= place < len(row["gold"]) for place in unseen)


def test_a_changed_file_is_told_from_the_card(tmp_path):
    simulate(tmp_path, people=6, seed=0)
    assert stale_files(tmp_path) == []
    (tmp_path / "dev.jsonl").write_text("{}\n", encoding="utf-8")
    assert stale_files(tmp_path) == ["dev.jsonl"]


# -- what is gold ----------------------------------------------------------------------------------------------------


def test_every_object_stands_in_the_row_and_every_subject_can_be_read_from_it(rows):
    for split in SPLITS:
        for row in rows[split]:
            text = "\n".join(turn["text"] for turn in _turns(row))
            labels = {turn["speaker"] for turn in _turns(row)}
            for gold in row["gold"]:
                assert gold["object"] in text, row["id"]
                owner, _, thing = gold["subject"].partition("'s ")
                if thing:  # "Mia's sister": Mia speaks or is named, and the role stands in the text
                    assert (owner in labels or owner in text) and thing in text, row["id"]
                else:
                    assert owner in labels or owner in text, row["id"]


def test_evidence_names_turns_of_the_row_and_the_gold_comes_in_the_order_of_the_text(rows):
    for split in SPLITS:
        for row in rows[split]:
            ids = [turn["id"] for turn in row["input"]["turns"]]
            assert len(set(turn["id"] for turn in _turns(row))) == len(_turns(row))
            for gold in row["gold"]:
                assert gold["evidence"] and set(gold["evidence"]) <= set(ids), row["id"]
            if len(row["input"]["turns"]) == 1 and row["tags"]["kind"] != "deflected":
                text = row["input"]["turns"][0]["text"]
                places = [text.rfind(g["object"]) for g in row["gold"] if text.count(g["object"]) == 1]
                assert places == sorted(places), row["id"]


def test_whatever_is_gold_is_true_of_that_life_on_that_day(rows, dialogues):
    """So nothing that is denied, supposed, dreamt, over or put right can be gold: its values are facts of nobody."""
    for split in SPLITS:
        for row in rows[split]:
            dialogue = dialogues[row["group"]]
            day = dialogue["sessions"][row["tags"]["session"]]["date"]
            truth = {
                (subject, fact["relation"], normalise(fact["object"]))
                for fact in dialogue["facts"]
                if fact["valid_from"] <= day and (fact["valid_to"] is None or day < fact["valid_to"])
                for subject in _labels(dialogue, fact)
            }
            for gold in row["gold"]:
                assert (gold["subject"], gold["relation"], normalise(gold["object"])) in truth, row["id"]


def _labels(dialogue: dict, fact: dict) -> list[str]:
    """What the subject of a fact may be called."""
    person = next(p for p in dialogue["people"] if p["id"] == fact["owner"])
    if fact["subject"] == person["id"]:
        return [person["name"]]
    for relative in person["relatives"]:
        if relative["id"] == fact["subject"]:
            return [relative["name"], f"{person['name']}'s {relative['role']}"]
    pet = next(pet for pet in person["pets"] if pet["id"] == fact["subject"])
    return [f"{person['name']}'s {pet['species']}"]


def test_moves_that_state_nothing_have_no_gold_and_slips_have_one_value_only(rows):
    kinds = Counter()
    for split in SPLITS:
        for row in rows[split]:
            kind = row["tags"]["kind"]
            kinds[kind] += 1
            if kind in NO_FACT:
                assert row["gold"] == [], row["id"]
            if kind in ("slip", "repair", "objection"):
                assert len(row["gold"]) == 1, row["id"]
    assert all(kinds[kind] for kind in NO_FACT | {"slip", "repair", "objection", "agreement", "deflected", "told"})


def test_a_role_stands_for_a_relative_only_where_the_row_does_not_name_them(rows, dialogues):
    for split in SPLITS:
        for row in rows[split]:
            people = dialogues[row["group"]]["people"]
            names = {f"{p['name']}'s {r['role']}": r["name"] for p in people for r in p["relatives"]}
            text = " ".join(turn["text"] for turn in _turns(row))
            for gold in row["gold"]:
                if gold["subject"] in names:
                    assert names[gold["subject"]] not in text.split(), row["id"]


# -- the dialogues ---------------------------------------------------------------------------------------------------


def test_facts_point_to_the_turns_that_say_them_and_turns_to_their_gold(dialogues):
    supported = 0
    for dialogue in dialogues.values():
        texts = {turn["id"]: turn["text"] for session in dialogue["sessions"] for turn in session["turns"]}
        dates = [session["date"] for session in dialogue["sessions"]]
        assert dates == sorted(dates) and len(dates) == 3
        for fact in dialogue["facts"]:
            supported += bool(fact["support"])
            assert set(fact["support"]) <= set(texts) and set(fact["retracted_in"]) <= set(texts)
            assert not fact["retracted_in"] or fact["valid_to"] is not None
        for session in dialogue["sessions"]:
            for turn in session["turns"]:
                for gold in turn.get("gold", []):
                    assert turn["id"] in gold["evidence"] and set(gold["evidence"]) <= set(texts)
    assert supported > 1000


def test_a_life_has_one_home_and_one_employer_on_every_day_and_events_move_the_facts(dialogues):
    moved = 0
    for dialogue in dialogues.values():
        facts = {fact["id"]: fact for fact in dialogue["facts"]}
        for person in dialogue["people"]:
            for relation in ("live_in_citystatecountry", "employed_by_company", "has_profession", "place_origin"):
                spans = sorted(
                    (fact["valid_from"], fact["valid_to"])
                    for fact in facts.values()
                    if fact["subject"] == person["id"] and fact["relation"] == relation
                )
                assert spans and spans[-1][1] is None
                assert all(before[1] == after[0] for before, after in zip(spans, spans[1:], strict=False)), person["id"]
        for event in dialogue["events"]:
            moved += event["kind"] == "moved"
            assert event["ended"] or event["began"]
            assert all(facts[fact_id]["valid_to"] == event["date"] for fact_id in event["ended"])
            assert all(facts[fact_id]["valid_from"] == event["date"] for fact_id in event["began"])
    assert moved > 5
