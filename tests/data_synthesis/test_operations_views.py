"""HaluMem's events and MSC's personas as operation rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from data_synthesis.corpora import corpus_folder
from data_synthesis.operations import halumem, msc
from data_synthesis.operations.prepare import main
from extractors.contract import InputError
from extractors.persona_tree import PersonaTree, PersonaTreeExtractor, execute
from extractors.rows import read_rows

FILMS = "Behavioural.Knowledge_Base.Films_and_Series"
LIKED, DISLIKED = "Behavioural.Lifestyle.Liked_Food", "Behavioural.Lifestyle.Disliked_Food"


def point(item: str, kind: str = "like", **more: Any) -> dict[str, Any]:
    return {"type": kind, "specific_item": item, "reason": "because", **more}


def event(number: int, kind: str, before: list[Any], after: list[Any], direction: str = "Modify") -> dict[str, Any]:
    return {
        "event_id": number,
        "event_description": f"Something happened, number {number}.",
        "preference_type": kind,
        "update_direction": direction,
        "before_preference": {"memory_points": before},
        "after_preference": {"memory_points": after},
    }


@pytest.fixture
def stages(tmp_path: Path) -> Path:
    """Two users in the layout of HaluMem's stages, one of whom has preferences before all events."""
    tea, rhubarb, noir = point("Green tea; hot"), point("Rhubarb", "dislike"), point("Film noir")
    events = [
        event(1, "Food Preference", [rhubarb], [point("Rhubarb with custard")]),
        event(2, "Beverage Preference", [tea], [point("Iced tea")]),
        event(3, "Movie Preference", [noir], [point("Film noir", deleted=True)], "Delete"),
        event(4, "Movie Preference", [point("Westerns")], [point("Westerns", deleted=True)], "Delete"),
    ]
    initial = {"Food Preference": [rhubarb], "Beverage Preference": [tea], "Movie Preference": [noir]}
    wrapped = {kind: {"memory_points": points} for kind, points in initial.items()}
    first = {"uuid": "5c005ed8-0d18-99f8-a20e-6a776a7ea30a", "event_list": events}
    write(tmp_path / "stage3_2_preference_events.jsonl", [first])
    start = [{"event_type": "initial_preference", "initial_preference": wrapped}]
    write(tmp_path / "stage3_3_init_events.jsonl", [{"uuid": first["uuid"], "event_list": start}])
    return tmp_path


def write(path: Path, rows: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_a_preference_gives_way_to_the_one_in_its_place_and_an_end_empties_its_leaf(
    stages: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert main(["halumem", "--source", str(stages), "--out", str(out), "--no-op-share", "0.5"]) == 0
    rows = read_rows(out / "test.jsonl", PersonaTreeExtractor())  # this user is one of those who are held out
    assert rows[0].input.tree == {FILMS: "Film noir", DISLIKED: "Rhubarb", LIKED: "Green tea, hot"}
    said = [PersonaTreeExtractor().render(row.gold) for row in rows]
    assert said == [
        f'UPDATE({LIKED}, "Green tea, hot; Rhubarb with custard")\nDELETE({DISLIKED}, None)',
        f'UPDATE({LIKED}, "Iced tea; Rhubarb with custard")',
        f"DELETE({FILMS}, None)",
        "NO_OP()",  # nothing was known of the Westerns
    ]
    assert rows[1].input.tree == {FILMS: "Film noir", LIKED: "Green tea, hot; Rhubarb with custard"}


@pytest.mark.parametrize(
    ("sentence", "leaf", "value"),
    [
        ("I have two dogs named Rex and Max", "Identity.Family_System.Pets", "two dogs named Rex and Max"),
        ("I am a nurse", "Identity.Social_Identity.Occupation", "nurse"),
        ("i live in Ohio", "Identity.Social_Identity.Residence", "in Ohio"),
        ("My brother lives in Ohio", "Identity.Family_System.Siblings", "My brother lives in Ohio"),
        ("I am 24 years old", "Biological.Physiological_Status.Age", "24"),
        ("I love pepperoni pizza", LIKED, "pepperoni pizza"),
        ("I hate seafood", DISLIKED, "seafood"),
        ("I want to see Rome", "Identity.Motivations_and_Goals.Wishes", "see Rome"),
    ],
)
def test_a_sentence_of_an_annotator_goes_to_its_leaf(sentence: str, leaf: str, value: str) -> None:
    found = msc.leaf_of(sentence)
    assert found is not None and (found[0], found[2]) == (leaf, value)


@pytest.mark.parametrize("sentence", ["I feel about shipping her off", "I have a", "dogs", "You are a nurse"])
def test_a_sentence_of_no_common_form_has_no_leaf(sentence: str) -> None:
    assert msc.leaf_of(sentence) is None


def test_every_leaf_that_a_view_writes_is_one_of_the_full_schema() -> None:
    leaves = PersonaTreeExtractor().schema.leaves
    assert {rule[0] for rule in msc.rules()} | {leaf for pair in halumem.LEAVES.values() for leaf in pair} <= set(
        leaves
    )


def episode(folder: Path) -> None:
    def said(who: int, text: str, persona: str = "") -> dict[str, Any]:
        return {"id": f"bot_{who}", "text": text} | ({"problem_data": {"persona": persona}} if persona else {})

    talk = [
        said(0, "I'm a nurse. You?", "I am a nurse."),
        said(1, "I just adopted a puppy.", "I have a puppy."),
        said(0, "Sweet! I'd be odd about that.", "I feel about shipping her off."),
        said(1, "Ha."),
        said(0, "I moved on: I teach now.", "I am a teacher."),
        said(1, "Good for you."),
    ]
    write(
        folder / "msc_personasummary/session_1/test.txt",
        [{"initial_data_id": "e1", "dialog": talk, "init_personachat": {"init_personas": []}}],
    )


def test_a_chunk_with_a_fact_that_has_no_leaf_is_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    episode(tmp_path / "msc")
    out = tmp_path / "out"
    arguments = [
        "msc",
        "--source",
        str(tmp_path / "msc"),
        "--out",
        str(out),
        "--exchanges",
        "1",
        "--no-op-share",
        "0.9",
    ]
    assert main(arguments) == 0
    rows = read_rows(out / "test.jsonl", PersonaTreeExtractor())
    assert [(row.tags["replay"], PersonaTreeExtractor().render(row.gold)) for row in rows] == [
        ("e1-1", 'ADD(Identity.Social_Identity.Occupation, "nurse")'),
        ("e1-1", 'UPDATE(Identity.Social_Identity.Occupation, "nurse; teacher")'),
        ("e1-2", 'ADD(Identity.Family_System.Pets, "puppy")'),
        ("e1-2", "NO_OP()"),
        ("e1-2", "NO_OP()"),
    ]
    left = json.loads((out / "card.json").read_text(encoding="utf-8"))["details"]["chunks_left_out"]
    assert (left["count"], left["first"]) == (1, ["e1-1-session_1-01"])
    assert main([*arguments[:4], str(tmp_path / "no"), "--schema", "quickstart", "--exchanges", "1"]) == 0
    short = ["halumem", "--source", str(tmp_path / "nowhere"), "--out", str(out)]
    assert main(short) == 2 and "error: " in capsys.readouterr().err


def test_a_view_that_needs_more_leaves_than_the_schema_has_says_so(stages: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.json"
    small.write_text(json.dumps({"Identity": {"Name": ""}}), encoding="utf-8")
    from data_synthesis.operations.prepare import prepare

    with pytest.raises(InputError, match="halumem writes leaves that the schema .* does not have: .*Food"):
        prepare("halumem", str(stages), tmp_path / "out", schema=str(small))


@pytest.mark.parametrize(("name", "view"), [("halumem", halumem), ("msc", msc)])
def test_rows_of_the_real_corpus_are_what_the_executor_takes_on_their_own_trees(
    name: str, view: Any, tmp_path: Path
) -> None:
    try:
        folder = corpus_folder(name)
    except InputError as error:
        pytest.skip(str(error))
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there: set MNEMOSMITH_DATA")
    extractor = PersonaTreeExtractor()
    from data_synthesis.operations import rows_of

    seen = 0
    for dialogue in view.load(None).dialogues[:20]:
        for walk in view.walks(dialogue, 1):
            for row in rows_of(walk, extractor):
                chunk = extractor.read_input(row["input"])
                assert not execute(
                    PersonaTree(extractor.schema, chunk.tree), extractor.read_output(row["gold"])
                ).rejected
                seen += 1
    assert seen > 100
