"""The real corpora, where they are at hand: every loader finds the published counts in them."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data_synthesis.corpora import corpus_folder, halumem, load_dialogues
from data_synthesis.corpora.personamem import history
from data_synthesis.corpora.shared import shared_pairs, without_shared
from data_synthesis.dialogues import Loaded
from data_synthesis.roles import split_by_role
from extractors.contract import InputError


@pytest.fixture(scope="module")
def real() -> Callable[[str], Loaded]:
    read: dict[str, Loaded] = {}

    def load(corpus: str) -> Loaded:
        try:
            corpus_folder(corpus)
        except InputError as error:
            pytest.skip(f"the real {corpus} is not at hand: {error}")
        if corpus not in read:
            read[corpus] = load_dialogues(corpus)
        return read[corpus]

    return load


def size(loaded: Loaded) -> tuple[int, int, int]:
    """Dialogues, sessions, turns."""
    sessions = [session for dialogue in loaded.dialogues for session in dialogue.sessions]
    return len(loaded.dialogues), len(sessions), sum(len(session.turns) for session in sessions)


def test_real_locomo(real: Callable[[str], Loaded]) -> None:
    loaded = real("locomo")
    assert size(loaded) == (10, 272, 5_882)
    questions = [q for d in loaded.dialogues for q in d.labels["questions"]]
    assert Counter(q["category"] for q in questions) == {1: 282, 2: 321, 3: 96, 4: 841, 5: 446}
    assert sum(1 for q in questions if q["category"] < 5 and q["evidence"]) in range(1_530, 1_541)
    assert all(session.date for d in loaded.dialogues for session in d.sessions)
    assert dict(loaded.bad) == {"evidence that names no turn (its question stays)": 3}
    assert {d.id: len([q for q in d.labels["questions"] if q["category"] < 5]) for d in loaded.dialogues[:2]} == {
        "conv-26": 152,
        "conv-30": 81,
    }


def test_real_msc(real: Callable[[str], Loaded]) -> None:
    loaded = real("msc")
    assert size(loaded) == (1_001, 4_004, 49_834)
    assert Counter(d.labels["split"] for d in loaded.dialogues) == {"valid": 500, "test": 501}
    assert sum("persona_text" in turn.labels for d in loaded.dialogues for turn in d.turns()) == 32_829
    assert all(set(d.labels["gaps"]) == {"2", "3"} for d in loaded.dialogues)
    assert loaded.bad_rows() == {}


def test_real_personamem(real: Callable[[str], Loaded]) -> None:
    loaded = real("personamem")
    assert size(loaded) == (37, 195, 6_462)
    assert len({d.group for d in loaded.dialogues}) == 20
    asked = [(d, q) for d in loaded.dialogues for q in d.labels["questions"]]
    assert len(asked) == 589
    assert loaded.bad_rows() == {}
    where: Counter[tuple[str, str]] = Counter()
    for dialogue in loaded.dialogues:
        said = list(dialogue.turns())
        ends = [q["end_index_in_shared_context"] for q in dialogue.labels["questions"]]
        assert max(ends) == len(said) - 1, "an inclusive end would never leave the last message out"
    for dialogue, question in asked:
        cut = list(history(dialogue, question).turns())
        end = question["end_index_in_shared_context"]
        assert [turn.id for turn in cut] == [f"m{n}" for n in range(end)]
        message = list(dialogue.turns())[end]
        where[question["type"], "asked at the end index"] += question["question"][:60] in message.text
        where[question["type"], "asked before it"] += question["question"][:60] in cut[-1].text
    assert {key: n for key, n in where.items() if n} == {
        ("track_full_preference_evolution", "asked at the end index"): 139,
        ("recalling_the_reasons_behind_previous_updates", "asked before it"): 64,
    }


def test_real_halumem(real: Callable[[str], Loaded]) -> None:
    loaded = real("halumem")
    assert size(loaded) == (2, 29 + 25, 1_334 + 1_020)
    points = [p for d in loaded.dialogues for found in d.labels["memory_points"].values() for p in found]
    assert Counter(p["memory_source"] for p in points) == {"secondary": 422, "interference": 101, "system": 88}
    assert loaded.bad_rows() == {}
    stages = halumem.events()
    directions = Counter(turn.labels["update_direction"] for d in stages.dialogues for turn in d.turns())
    assert directions == {"Modify": 470, "Delete": 212}
    assert len(stages.dialogues) == 20
    assert all(d.labels["initial"] for d in stages.dialogues)
    roles = split_by_role([*loaded.dialogues, *stages.dialogues], "persona_tree")
    assert {role: len(members) for role, members in roles.items() if members} == {"train": 16, "dev": 2, "test": 4}


def test_real_tiage(real: Callable[[str], Loaded]) -> None:
    loaded = real("tiage")
    assert Counter(d.labels["split"] for d in loaded.dialogues) == {"train": 300, "dev": 100, "test": 100}
    utterances: Counter[str] = Counter()
    shifts: Counter[str] = Counter()
    for dialogue in loaded.dialogues:
        for turn in dialogue.turns():
            utterances[dialogue.labels["split"]] += 1
            shifts[dialogue.labels["split"]] += turn.labels["shift"] or 0
    assert utterances == {"train": 4_692, "dev": 1_546, "test": 1_564}
    assert shifts == {"train": 887, "dev": 311, "test": 315}
    assert loaded.bad_rows() == {}


def test_real_memochat(real: Callable[[str], Loaded]) -> None:
    loaded = real("memochat")
    assert Counter(d.id.split("-")[0] for d in loaded.dialogues) == {"dialogsum": 114, "topiocqa": 192}
    for dialogue in loaded.dialogues:
        shifts = sum(turn.labels["shift"] or 0 for turn in dialogue.turns())
        assert shifts == len(dialogue.labels["segments"]) - 1
    assert loaded.bad_rows() == {}


def test_real_longmemeval(real: Callable[[str], Loaded]) -> None:
    loaded = real("longmemeval")
    assert len(loaded.dialogues) == 22
    assert Counter(d.labels["questions"][0]["abstention"] for d in loaded.dialogues) == {False: 17, True: 5}
    assert loaded.bad_rows() == {}
    path = corpus_folder("longmemeval") / "vectorize_s_questions" / "queries.json.gz"
    known = {query["id"] for query in json.loads(gzip.decompress(path.read_bytes()))}
    assert {d.group for d in loaded.dialogues} <= known


def test_real_personaext_is_one_turn_dialogues_with_the_split_that_prepare_makes(real: Callable[[str], Loaded]) -> None:
    loaded = real("personaext")
    assert size(loaded) == (22_566, 22_566, 22_566)
    assert Counter(d.labels["split"] for d in loaded.dialogues) == {"train": 18_059, "dev": 2_254, "test": 2_253}
    assert all(turn.labels["triplets"] for d in loaded.dialogues for turn in d.turns())


def test_real_corpora_made_from_personachat_share_what_the_documentation_says(real: Callable[[str], Loaded]) -> None:
    dialogues = [d for corpus in ("tiage", "personaext", "msc") for d in real(corpus).dialogues]
    found: dict[tuple[str, str], list[Any]] = {}
    for pair in shared_pairs(dialogues):
        found.setdefault((pair.one[0], pair.other[0]), []).append(pair)
    assert {names: (len(p), len({x.one for x in p}), len({x.other for x in p})) for names, p in found.items()} == {
        ("tiage", "personaext"): (1_008, 427, 1_007),
        ("tiage", "msc"): (229, 229, 229),
        ("personaext", "msc"): (1_092, 1_091, 435),
    }
    roles = split_by_role([d for d in dialogues if d.corpus != "personaext"], "continuity")
    kept, report = without_shared(roles)
    assert report == {"train": {"count": 71, "first_id": "tiage/train/8"}}
    assert without_shared(kept)[1] == {}


def test_a_copy_of_a_real_corpus_is_read_from_a_path(real: Callable[[str], Loaded], tmp_path: Path) -> None:
    loaded = real("tiage")
    shutil.copytree(corpus_folder("tiage"), tmp_path / "copy")
    assert load_dialogues("tiage", str(tmp_path / "copy")).dialogues == loaded.dialogues
