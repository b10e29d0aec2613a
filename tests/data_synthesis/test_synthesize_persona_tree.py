"""`mnemosmith synthesize` for PersonaTrees against the offline teacher: walks, stops, restarts, gates."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from data_synthesis.gates import Limits, run_gates
from data_synthesis.offline_teacher import offline_teacher
from data_synthesis.simulate import simulate
from extractors.persona_tree import PersonaTree, PersonaTreeExtractor, execute
from mnemosmith import main
from tests.serve.scripted_server import Reply, chat, scripted_server

EXTRACTOR = PersonaTreeExtractor(schema="quickstart", path_index="none", prompt="compact")
RECIPE = """
extractor: persona_tree
extractor_options: {schema: quickstart, path_index: none, prompt: compact}
splits: [train, dev]
max_turns: 6
model: offline-teacher
base_url: http://127.0.0.1:9/v1
structured_output: none
max_tokens: 512
concurrency: 8
max_empty_share: null
output_dir: unset
"""
PETS, HOME = "Identity.Family_System.Pets", "Identity.Social_Identity.Residence"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    simulate(folder, people=12, seed=4)
    return folder


def command(folder: Path, world: Path, url: str, *words: str, out: str = "taught") -> list[str]:
    recipe = folder / "recipe.yaml"
    if not recipe.is_file():
        recipe.write_text(RECIPE + f"corpora: [{{name: world, source: {world}}}]\n", encoding="utf-8")
    return ["synthesize", str(recipe), "--quiet", "--base_url", url, "--output_dir", str(folder / out), *words]


def rows_of(folder: Path, split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{split}.jsonl").read_text("utf-8").splitlines()]


def card(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "card.json").read_text("utf-8"))
    return data


def test_each_chunk_is_asked_with_the_tree_that_the_answers_before_it_made(world: Path, tmp_path: Path) -> None:
    with offline_teacher(world, latency=0) as teacher:
        assert main(command(tmp_path, world, teacher.url, "--min_grounded", "null")) == 0
        asked = teacher.stats()["answers"]
    rows = rows_of(tmp_path / "taught", "train") + rows_of(tmp_path / "taught", "dev")
    walks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        walks[row["tags"]["replay"]].append(row)
    assert len(rows) == asked and len(walks) >= 8
    for walk in walks.values():
        tree = PersonaTree(EXTRACTOR.schema)
        assert [row["tags"]["chunk"] for row in walk] == list(range(len(walk)))
        for row in walk:
            assert row["input"]["tree"] == tree.values, row["id"]
            done = execute(tree, EXTRACTOR.read_output(row["gold"]))
            assert not done.rejected
            tree = done.tree
        assert len(tree.values) >= 3


def test_a_restart_asks_nothing_twice_and_ends_row_for_row_alike(world: Path, tmp_path: Path) -> None:
    with offline_teacher(world, latency=0) as teacher:
        assert main(command(tmp_path, world, teacher.url)) == 0
        first = teacher.stats()["answers"]
        kept = (tmp_path / "taught/train.jsonl").read_bytes()
        run = tmp_path / "taught-run/responses.jsonl"
        lines = run.read_bytes().splitlines(keepends=True)
        run.write_bytes(b"".join(lines[: len(lines) // 2]))  # as if it had been killed half way
        assert main(command(tmp_path, world, teacher.url)) == 0
        assert teacher.stats()["answers"] == first + len(lines) - len(lines) // 2
    assert (tmp_path / "taught/train.jsonl").read_bytes() == kept


def test_shards_merge_to_the_dataset_of_one_run(world: Path, tmp_path: Path) -> None:
    with offline_teacher(world, latency=0) as teacher:
        assert main(command(tmp_path, world, teacher.url)) == 0
        for shard in ("1/2", "2/2"):
            assert main(command(tmp_path, world, teacher.url, "--shard", shard, out="parts")) == 0
        parts = [str(tmp_path / f"parts-run-{n}-of-2") for n in (1, 2)]
        asked = teacher.stats()["answers"]
        assert main(command(tmp_path, world, teacher.url, "--merge", *parts, out="parts")) == 0
        assert teacher.stats()["answers"] == asked
    assert (tmp_path / "parts/train.jsonl").read_bytes() == (tmp_path / "taught/train.jsonl").read_bytes()


def test_a_limit_takes_whole_walks_and_the_beginning_of_the_last(world: Path, tmp_path: Path) -> None:
    with offline_teacher(world, latency=0) as teacher:
        arguments = command(
            tmp_path, world, teacher.url, "--rows", "25", "--splits", "[train]", "--min_grounded", "null"
        )
        assert main(arguments) == 0
    rows = rows_of(tmp_path / "taught", "train")
    walks: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        walks[row["tags"]["replay"]].append(row["tags"]["chunk"])
    assert len(rows) == 25 and all(chunks == list(range(len(chunks))) for chunks in walks.values())


def tree_of(body: dict[str, Any]) -> tuple[str, str]:
    """Person and tree of a compact prompt."""
    person, _, rest = body["messages"][-1]["content"].partition("\n")
    return person, rest.partition("\n---\n")[0]


def test_a_chunk_that_fails_stops_its_person_alone_and_a_retry_goes_on_from_there(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people: list[str] = []
    broken = True

    def reply(_: int, body: dict[str, Any]) -> Reply:
        person, tree = tree_of(body)
        if person not in people:
            people.append(person)
        if broken and person == people[0] and tree != "(nothing)":
            return chat("I would rather not.")
        return chat(f'ADD({PETS}, "cat")' if tree == "(nothing)" else "NO_OP()")

    with scripted_server(reply) as server:
        arguments = command(tmp_path, world, server.url, "--max_attempts", "1", "--min_grounded", "null")
        assert main(arguments) == 0
        printed = capsys.readouterr().out
        account = card(tmp_path / "taught")["details"]["synthesis"]
        assert sum(entry["count"] for entry in account["failed"].values()) == 1
        assert f"not reached: {account['not_reached']['count']} that come after one that failed" in printed
        stopped = [row for row in every(tmp_path) if row["input"]["person"] == people[0]]
        assert len(stopped) == 1 and len({row["tags"]["replay"] for row in every(tmp_path)}) > 5
        broken = False
        assert main([*arguments, "--retry-failed"]) == 0
    account = card(tmp_path / "taught")["details"]["synthesis"]
    assert account["failed"] == {} and "not_reached" not in account
    assert len([row for row in every(tmp_path) if row["input"]["person"] == people[0]]) > 2


def every(folder: Path) -> list[dict[str, Any]]:
    return rows_of(folder / "taught", "train") + rows_of(folder / "taught", "dev")


def test_what_the_executor_refuses_is_no_gold_and_is_counted(world: Path, tmp_path: Path) -> None:
    def reply(_: int, body: dict[str, Any]) -> Reply:
        person, tree = tree_of(body)
        if tree == "(nothing)":
            return chat(f'ADD({PETS}, "cat")\nDELETE({HOME}, None)')
        return chat(f"DELETE({HOME}, None)" if "Pets: cat" in tree else "NO_OP()")

    with scripted_server(reply) as server:
        assert main(command(tmp_path, world, server.url, "--min_grounded", "null")) == 0
    details = card(tmp_path / "taught")["details"]
    rows = every(tmp_path)
    assert {json.dumps(row["gold"]) for row in rows} == {json.dumps([{"op": "ADD", "path": PETS, "value": "cat"}])}
    assert details["operations_refused"] == {"nothing_to_delete": len(rows)}
    assert rows[0]["tags"]["refused"] == ["nothing_to_delete"]
    assert details["rejected"]["refused by the executor"]["count"] == details["synthesis"]["answered"] - len(rows)


def row(number: int, gold: list[dict[str, Any]], tree: dict[str, str], text: str) -> dict[str, Any]:
    turns = [{"speaker": "Mia", "text": text}]
    return {
        "id": f"r{number}",
        "group": "g",
        "input": {"tree": tree, "turns": turns, "person": "Mia"},
        "gold": gold,
        "tags": {},
    }


def test_gates_know_values_from_the_chunk_and_the_leaf_and_what_an_update_throws_away() -> None:
    two = {PETS: "cat Pixel; parrot Coco"}
    rows = [
        row(1, [{"op": "ADD", "path": PETS, "value": "cat Pixel"}], {}, "I adopted a cat, Pixel."),
        row(2, [{"op": "ADD", "path": PETS, "value": "a greyhound"}], {}, "I adopted a pet."),
        row(3, [{"op": "UPDATE", "path": PETS, "value": "cat Pixel; parrot Coco; dog"}], two, "And we got a dog."),
        row(4, [{"op": "UPDATE", "path": PETS, "value": "dog"}], two, "And we got a dog."),
        row(5, [{"op": "UPDATE", "path": HOME, "value": "Porto"}], {HOME: "Leeds"}, "I moved to Porto."),
        row(6, [{"op": "DELETE", "path": PETS}], two, "We gave them all away."),
        *(row(number, [{"op": "NO_OP"}], {}, f"Hello, number {number}.") for number in range(7, 12)),
    ]
    limits = Limits(min_kept=0.5, max_empty_share=0.5, near_duplicate=None)
    kept, rejects = run_gates(rows, "persona_tree", limits)
    assert {reject.row["id"]: reject.reason for reject in rejects if reject.reason != "too many empty"} == {
        "r2": "not grounded",
        "r4": "old things lost",
    }
    assert sum(reject.reason == "too many empty" for reject in rejects) == 1
    assert len(kept) == 8
    limits = Limits(max_label_share=0.5, max_empty_share=None, near_duplicate=None)
    kept, rejects = run_gates([*rows[:1], rows[4], *rows[6:]], "persona_tree", limits)
    assert rejects == []  # NO_OP is no label, and of the others there is one each


def test_samples_above_one_and_the_gate_of_another_extractor_are_refused(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(tmp_path, world, "http://127.0.0.1:9/v1", "--samples", "3")) == 2
    assert "needs one tree before it. Write 1." in capsys.readouterr().err
    other = ["--extractor", "triplets", "--extractor_options", "{}", "--min_kept", "0.5"]
    assert main(command(tmp_path, world, "http://127.0.0.1:9/v1", *other)) == 2
    assert "`min_kept` is for persona_tree" in capsys.readouterr().err


def test_a_bound_teacher_answers_in_the_json_form_and_the_rows_are_the_same(world: Path, tmp_path: Path) -> None:
    with offline_teacher(world, latency=0) as teacher:
        assert main(command(tmp_path, world, teacher.url, out="taught")) == 0
        assert main(command(tmp_path, world, teacher.url, "--structured_output", "json_schema", out="bound")) == 0
    answers = (tmp_path / "bound-run/responses.jsonl").read_text("utf-8").splitlines()
    assert all(json.loads(line)["text"].startswith("[") for line in answers)
    assert (tmp_path / "bound/train.jsonl").read_bytes() == (tmp_path / "taught/train.jsonl").read_bytes()
