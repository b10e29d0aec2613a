"""PersonaTree evaluation: rows through the executor, and whole replays on the model's own tree."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eval.evaluate import REQUIRED_META, Prediction, evaluate, read_result, read_samples
from eval.recipe import load_eval_recipe
from eval.replays import START, Replay, draw_replays, find_replays, read_replays, walk_replays
from eval.report import TreePicture
from eval.run import draw_shots, main
from eval.sections import drift_curve, middle_walk, replay_sections, replay_table, walk_history, walked_tree
from extractors.contract import ExtractionError, InputError
from extractors.persona_tree import NO_OP, Chunk, PersonaTreeExtractor, TreeStore
from extractors.rows import read_rows, write_rows
from recipes.loader import RecipeError
from serve.answers import Answer, read_answer
from tests.serve.scripted_server import Reply, chat, scripted_server
from tests.tiny import make_tiny_chat_model

OPTIONS = {"schema": "quickstart", "path_index": "none", "prompt": "compact"}
EXTRACTOR = PersonaTreeExtractor(**OPTIONS)
HOME, WORK, HOBBY = (
    "Identity.Social_Identity.Residence",
    "Identity.Social_Identity.Occupation",
    "Behavioural.Interests_and_Skills.Hobbies",
)
SAID = re.compile(r"I (?P<what>live in|work as|now work as|like) (?P<value>\w+)")
LEAVES = {"live in": HOME, "work as": WORK, "now work as": WORK, "like": HOBBY}


def walk(person: str, lines: Sequence[str], start: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """A replay's rows. Every line sets a leaf; small talk changes nothing."""
    tree = dict(start or {})
    rows = []
    for number, line in enumerate(lines):
        said = SAID.search(line)
        gold: list[dict[str, str]] = [{"op": "NO_OP"}]
        before = dict(tree)
        if said is not None:
            path = LEAVES[said["what"]]
            gold = [{"op": "UPDATE" if path in tree else "ADD", "path": path, "value": said["value"]}]
            tree[path] = said["value"]
        rows.append(
            {
                "id": f"{person}-{number}",
                "group": person,
                "input": {"tree": before, "turns": [{"speaker": person, "text": line}], "person": person},
                "gold": gold,
                "tags": {"operations": gold[0]["op"], "replay": f"walk {person}", "chunk": 2 * number},
            }
        )
    return rows


LINES = ["I live in Porto.", "Lovely day.", "I work as baker.", "I now work as pilot."]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    train = [row for person in ("Ana", "Ben") for row in walk(person, LINES)]
    test = walk("Mia", LINES) + walk("Tom", LINES[:3], {HOBBY: "chess"}) + walk("Eva", LINES[2:])
    write_rows(folder / "train.jsonl", train)
    write_rows(folder / "test.jsonl", test[::-1])  # walks are put in order by their chunks
    return folder


def replays_of(dataset: Path) -> list[Replay]:
    file = dataset / "test.jsonl"
    return find_replays(read_rows(file, EXTRACTOR), file)


def answer(chunk: Chunk) -> Answer[Any]:
    """A model that understands all but a change of work, which it files as a hobby."""
    said = SAID.search(chunk.turns[0].text)
    if said is None:
        return read_answer(EXTRACTOR, "NO_OP()", "stop")
    path = HOBBY if said["what"] == "now work as" else LEAVES[said["what"]]
    kind = "UPDATE" if path in chunk.tree else "ADD"
    return read_answer(EXTRACTOR, f'{kind}({path}, "{said["value"]}")', "stop")


def test_a_replay_is_walked_on_the_models_own_tree_and_scored_after_every_chunk(dataset: Path, tmp_path: Path) -> None:
    asked: list[list[Chunk]] = []

    def ask(chunks: Sequence[Chunk]) -> list[Answer[Any]]:
        asked.append(list(chunks))
        return [answer(chunk) for chunk in chunks]

    found = walk_replays(replays_of(dataset), EXTRACTOR, ask, tmp_path, {"available": 3})
    assert [len(step) for step in asked] == [3, 3, 2, 1]  # side by side, those that are done fall out
    assert found == read_replays(tmp_path) and (found["replays"], found["rows"], found["groups"]) == (3, 9, 3)
    assert [point["n"] for point in found["curve"]] == [3, 3, 2, 1]
    # Mia ends with the old work and a hobby that is none: 1 leaf right of 2 gold and 3 of the model's.
    mia = next(each for each in found["walks"] if each["group"] == "Mia")
    assert mia["final"] == {HOME: "Porto", WORK: "baker", HOBBY: "pilot"} and mia["gold"] == {
        HOME: "Porto",
        WORK: "pilot",
    }
    assert mia["state_f1"] == pytest.approx(2 * 1 / (2 + 3))
    assert found["curve"][3]["state_f1"] == mia["state_f1"] and found["curve"][0]["state_f1"] == 1.0
    tom = next(each for each in found["walks"] if each["group"] == "Tom")
    assert tom["first"] == {HOBBY: "chess"} and tom["state_f1"] == 1.0
    final = found["final"]["state_f1"]
    assert final["n"] == 3 and final["low"] <= final["value"] <= final["high"]
    assert found["operations"] == {"proposed": 7, "accepted": 7, "refused": {}} and found["unreadable"] == {}
    assert found["gold_differs"]["count"] == 0


def test_what_a_model_wrote_wrongly_is_in_the_tree_that_it_is_asked_with_next(dataset: Path, tmp_path: Path) -> None:
    asked: list[Chunk] = []

    def ask(chunks: Sequence[Chunk]) -> list[Answer[Any]]:
        asked.extend(chunks)
        return [read_answer(EXTRACTOR, f'ADD({HOBBY}, "chess")', "stop")] * len(chunks)

    mia = [each for each in replays_of(dataset) if each.group == "Mia"]
    walk_replays(mia, EXTRACTOR, ask, tmp_path, {"available": 1})
    assert [dict(chunk.tree) for chunk in asked] == [{}, *([{HOBBY: "chess"}] * 3)]


def test_refused_operations_and_unreadable_answers_are_counted_with_their_rows(dataset: Path, tmp_path: Path) -> None:
    texts = iter([f'DELETE({HOME}, None)\nADD({WORK}, "a")\nADD({WORK}, "b")', "no idea", "NO_OP()", 'ADD(Moon, "x")'])

    def ask(chunks: Sequence[Chunk]) -> list[Answer[Any]]:
        return [read_answer(EXTRACTOR, next(texts), "stop") for _ in chunks]

    mia = [each for each in replays_of(dataset) if each.group == "Mia"]
    found = walk_replays(mia, EXTRACTOR, ask, tmp_path, {"available": 1})
    assert found["operations"] == {
        "proposed": 4,
        "accepted": 1,
        "refused": {
            "nothing_to_delete": {"count": 1, "first_ids": ["Mia-0"]},
            "superseded": {"count": 1, "first_ids": ["Mia-0"]},
            "unknown_path": {"count": 1, "first_ids": ["Mia-3"]},
        },
    }
    assert found["unreadable"] == {"no_json": {"count": 1, "first_ids": ["Mia-1"]}}
    assert found["final"]["state_f1"]["low"] is None  # one group has no interval


def test_each_walk_is_a_store_with_the_rows_as_chunks_and_a_second_run_replaces_it(
    dataset: Path, tmp_path: Path
) -> None:
    def ask(chunks: Sequence[Chunk]) -> list[Answer[Any]]:
        return [answer(chunk) for chunk in chunks]

    for _ in range(2):
        found = walk_replays(replays_of(dataset), EXTRACTOR, ask, tmp_path, {"available": 3})
    for each in found["walks"]:
        store = TreeStore(tmp_path / "stores", each["replay"], EXTRACTOR.schema, read_only=True)
        assert store.tree.values == each["final"] and store.path == tmp_path / each["store"]
        start = [START] if each["first"] else []
        assert [record.chunk_id for record in store.records] == [
            *start,
            *(f"{each['group']}-{i}" for i in range(each["rows"])),
        ]


def test_rows_left_out_of_a_replay_that_changed_its_tree_are_told(dataset: Path, tmp_path: Path) -> None:
    file = tmp_path / "test.jsonl"
    write_rows(file, [row for row in walk("Mia", LINES) if row["id"] != "Mia-0"])
    replays = find_replays(read_rows(file, EXTRACTOR), file)
    replays = [Replay(each.id, each.group, each.rows[:1] + each.rows[2:]) for each in replays]  # without chunk 2 of 4
    found = walk_replays(
        replays, EXTRACTOR, lambda chunks: [Prediction((NO_OP,))] * len(chunks), tmp_path, {"available": 1}
    )
    assert found["gold_differs"] == {"count": 1, "first_ids": ["Mia-3"]}


def test_rows_without_replays_and_chunks_without_a_place_are_refused(tmp_path: Path) -> None:
    def faulty(**tags: Any) -> list[dict[str, Any]]:
        rows = walk("Mia", LINES[:2])
        rows[1]["tags"] = {**rows[1]["tags"], **tags}
        return rows

    plain = [{**row, "tags": {}} for row in walk("Mia", LINES)]
    for rows, said in (
        (plain, "no row has the tag `replay`"),
        (faulty(chunk="two"), "'Mia-1' has the tags replay = 'walk Mia' and chunk = 'two'"),
        (faulty(chunk=0), "'Mia-0' and 'Mia-1' are both chunk 0"),
    ):
        file = tmp_path / "test.jsonl"
        write_rows(file, rows)
        with pytest.raises(InputError, match=said):
            find_replays(read_rows(file, EXTRACTOR), file)


def test_replays_are_drawn_with_the_seed_and_no_more_than_there_are(dataset: Path) -> None:
    replays = replays_of(dataset)
    assert draw_replays(replays, 2, 0) == draw_replays(replays, 2, 0) and len(draw_replays(replays, 2, 0)) == 2
    with pytest.raises(InputError, match="`replays` is 4, but the split has 3"):
        draw_replays(replays, 4, 0)


def test_an_answers_compliance_is_that_of_the_grammar_and_a_failure_executes_nothing(
    dataset: Path, tmp_path: Path
) -> None:
    rows = read_rows(dataset / "test.jsonl", EXTRACTOR)
    answers: list[Any] = [read_answer(EXTRACTOR, EXTRACTOR.render(row.gold), "stop") for row in rows]
    answers[0] = read_answer(EXTRACTOR, "Sure: " + answers[0].text, "stop")
    answers[1] = read_answer(EXTRACTOR, "hm", "stop")
    result = evaluate(answers, rows, EXTRACTOR, tmp_path, dict.fromkeys(REQUIRED_META))
    assert result.metrics["schema_compliance"].value == pytest.approx(7 / 9)
    assert result.metrics["parse_rate"].value == pytest.approx(8 / 9) and result.metrics["acceptance_rate"].value == 1.0
    assert result.metrics["state_f1"].value < 1.0 and result.metrics["state_f1"].low is not None
    assert result.breakdowns["operations"]["NO_OP"]["noop_recall"].value == 1.0
    sample = read_samples(tmp_path)[1]
    assert sample["error"]["kind"] == "no_json" and sample["counts"]["state_predicted"] == 0


def test_an_empty_shot_is_a_no_op_row(dataset: Path) -> None:
    train = read_rows(dataset / "train.jsonl", EXTRACTOR)
    for seed in range(5):
        shots = draw_shots(train, 4, seed)
        assert sum(shot.gold == (NO_OP,) for shot in shots) == 1
        assert draw_shots(train, 1, seed)[0].gold != (NO_OP,)
    with pytest.raises(InputError, match="only 6 rows with something to extract"):
        draw_shots(train, 9, 0)


def recipe_file(folder: Path, text: str) -> Path:
    path = folder / "eval.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("extractor: triplets\nmodel: x\nreplays: 3", "only persona_tree has any"),
        ("extractor: persona_tree\nbaselines: [no_op]\nreplays: 3", "`replays` is 3 but `model` is null"),
        ("extractor: persona_tree\nbaselines: [tfidf_linear]", "`baselines` holds tfidf_linear, which is none for"),
        ("extractor: triplets\nbaselines: [no_op]", "`baselines` holds no_op, which is none for triplets"),
        ("extractor: persona_tree\nmodel: x\nreplays: 0", "`replays` is 0 but must be at least 1"),
    ],
)
def test_keys_of_another_extractor_are_refused(tmp_path: Path, lines: str, said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        load_eval_recipe(recipe_file(tmp_path, f"{lines}\ndataset_name: d\noutput_dir: o\n"))


def test_a_served_model_is_scored_walked_and_reported(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def reply(_: int, body: dict[str, Any]) -> Reply:
        tree, _, turns = body["messages"][-1]["content"].partition("\n---\n")
        recorded = {path: "" for path in LEAVES.values() if f"{path}: " in tree}
        chunk = Chunk(recorded, EXTRACTOR.read_input({"turns": [{"speaker": "x", "text": turns}]}).turns)
        return chat(answer(chunk).text)

    out = tmp_path / "out"
    with scripted_server(reply) as log:
        path = recipe_file(
            tmp_path,
            f"extractor: persona_tree\nextractor_options: {json.dumps(OPTIONS)}\nmodel: {log.url}\neval_rows: 6\n"
            f"replays: 3\nbaselines: [no_op]\ndataset_name: {dataset}\noutput_dir: {out}\nshots: 1\n",
        )
        assert main([str(path)]) == 0
        assert len(log.requests) == 6 + 9 and all(len(body["messages"]) == 4 for body in log.requests)  # the shot, too
    printed = capsys.readouterr().out
    assert "model: state F1 " in printed and "NO_OP F1" in printed and "no_op: state F1 " in printed
    model, floor = read_result(out / "model"), read_result(out / "no_op")
    assert model.metrics["schema_compliance"].value == 1.0 and floor.metrics["noop_recall"].value == 1.0
    assert "acceptance_rate" not in floor.metrics
    replays = read_replays(out / "model")
    assert replays is not None and (replays["rows"], replays["available"]) == (9, 3)
    page = (out / "report.html").read_text(encoding="utf-8")
    for part in ("Whole replays", "operation F1", "How it came about", "Replays at their end", "By operations"):
        assert part in page, part
    assert "By chunk" not in page and "triplet" not in page
    # Scored again without replays, nothing of the old walks stays beside the new scores.
    with scripted_server(reply) as log:
        assert main([str(path), "--replays", "null", "--model", log.url]) == 0
    assert read_replays(out / "model") is None and not (out / "model" / "stores").exists()


def test_a_model_in_process_walks_too(dataset: Path, tmp_path: Path) -> None:
    model = make_tiny_chat_model(tmp_path / "tiny")
    path = recipe_file(
        tmp_path,
        f"extractor: persona_tree\nextractor_options: {json.dumps(OPTIONS)}\nmodel: {model}\nguided: false\nmax_tokens: 8\n"
        f"eval_rows: 1\nreplays: 2\ndataset_name: {dataset}\noutput_dir: {tmp_path / 'out'}\n",
    )
    assert main([str(path)]) == 0
    replays = read_replays(tmp_path / "out" / "model")
    assert replays is not None and replays["replays"] == 2
    assert sum(each["count"] for each in replays["unreadable"].values()) == replays["rows"]  # random weights


def test_a_dataset_without_replays_is_refused_before_anything_is_asked(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = tmp_path / "plain"
    write_rows(plain / "test.jsonl", [{**row, "tags": {}} for row in walk("Mia", LINES)])
    path = recipe_file(
        tmp_path,
        "extractor: persona_tree\nextractor_options: {schema: quickstart}\nmodel: http://127.0.0.1:9\nreplays: 1\n"
        f"dataset_name: {plain}\noutput_dir: {tmp_path / 'out'}\n",
    )
    assert main([str(path)]) == 2
    assert "or write `replays: null`" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_the_report_draws_the_middle_tree_and_marks_what_differs_from_gold(dataset: Path, tmp_path: Path) -> None:
    rows = read_rows(dataset / "test.jsonl", EXTRACTOR)
    result = evaluate([answer(row.input) for row in rows], rows, EXTRACTOR, tmp_path, dict.fromkeys(REQUIRED_META))
    assert replay_sections(result) == []
    replays = walk_replays(
        replays_of(dataset), EXTRACTOR, lambda chunks: [answer(chunk) for chunk in chunks], tmp_path, {"available": 3}
    )
    assert len(replay_sections(result)) == 4
    mia = next(each for each in replays["walks"] if each["group"] == "Mia")
    assert middle_walk(replays)["state_f1"] == sorted(each["state_f1"] for each in replays["walks"])[1]
    picture = walked_tree(result, mia)
    assert isinstance(picture, TreePicture)
    assert {line.text: (line.mark, line.gold) for line in picture.lines if line.mark != "group"} == {
        "Residence: Porto": ("right", ""),
        "Occupation: baker": ("wrong", "pilot"),
        "Hobbies: pilot": ("extra", ""),
    }
    assert [line.text for line in picture.lines if line.mark == "group"][:2] == ["Identity", "Social_Identity"]
    ((_, history), (_, command)) = walk_history(result, mia).pairs
    assert f"+ {WORK}: baker" in history and "chunk Mia-3" in history and "memory inspect" in command
    assert drift_curve(replays, "t").lines[0][1][0] == (1.0, 1.0)
    assert ["operations accepted by the executor", "7 of 7"] in list(replay_table(replays).rows)


def test_a_failed_request_is_an_unreadable_answer_of_its_row(dataset: Path, tmp_path: Path) -> None:
    failed = Prediction(ExtractionError("request", 0, "", "down"))
    found = walk_replays(
        replays_of(dataset), EXTRACTOR, lambda chunks: [failed] * len(chunks), tmp_path, {"available": 3}
    )
    assert found["unreadable"]["request"]["count"] == 9
    assert found["final"]["state_f1"]["value"] == pytest.approx(found["final"]["untouched_f1"]["value"])
