"""`mnemosmith synthesize` against the offline teacher, as a user runs it: the command, the files, what the server saw."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from data_synthesis.offline_teacher import OfflineTeacher, offline_teacher
from data_synthesis.simulate import simulate
from mnemosmith import main

CHECKOUT = Path(__file__).resolve().parents[2]
RECIPE = """
extractor: triplets
extractor_options: {relations: open, closed: false, prompt: compact}
splits: [train, dev]
model: offline-teacher
base_url: http://127.0.0.1:9/v1
max_tokens: 512
concurrency: 8
output_dir: unset
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    simulate(folder, people=20, seed=3)
    return folder


@pytest.fixture(scope="module")
def teacher(world: Path) -> Iterator[OfflineTeacher]:
    with offline_teacher(world, latency=0) as running:
        yield running


def command(
    folder: Path, world: Path, server: OfflineTeacher, *words: str, out: str = "taught", rows: int = 60
) -> list[str]:
    recipe = folder / "recipe.yaml"
    if not recipe.is_file():
        recipe.write_text(RECIPE + f"corpora: [{{name: world, source: {world}}}]\n", encoding="utf-8")
    where = ["--base_url", server.url, "--output_dir", str(folder / out), "--rows", str(rows)]
    return ["synthesize", str(recipe), "--quiet", *where, *words]


def rows_of(folder: Path, split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{split}.jsonl").read_text("utf-8").splitlines()]


def dataset_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ("train.jsonl", "dev.jsonl", "rejected.jsonl")}


def all_text(folder: Path) -> str:
    return "".join(path.read_text("utf-8") for path in folder.rglob("*") if path.is_file())


def test_the_dataset_holds_the_teachers_answers_split_by_people(
    tmp_path: Path, world: Path, teacher: OfflineTeacher, capsys
):
    assert main(command(tmp_path, world, teacher)) == 0
    gold = {
        turn["id"]: turn.get("gold", [])
        for line in (world / "dialogues.jsonl").read_text("utf-8").splitlines()
        for session in json.loads(line)["sessions"]
        for turn in session["turns"]
    }
    train, dev = rows_of(tmp_path / "taught", "train"), rows_of(tmp_path / "taught", "dev")
    for row in train + dev:
        due = [(g["subject"], g["relation"], g["object"]) for turn in row["input"]["turns"] for g in gold[turn["id"]]]
        assert [(g["subject"], g["relation"], g["object"]) for g in row["gold"]] == list(dict.fromkeys(due))
        assert row["tags"] == {"corpus": "world", "teacher": "offline-teacher"}
    assert train and dev and not {row["group"] for row in train} & {row["group"] for row in dev}
    card = json.loads((tmp_path / "taught/card.json").read_text("utf-8"))
    account = card["details"]["synthesis"]
    assert account["requests"] == account["answered"] > 60 and account["failed"] == {}
    rejected = rows_of(tmp_path / "taught", "rejected")
    assert len(train) + len(dev) + len(rejected) == account["answered"]
    assert Counter(line["reason"] for line in rejected) == {
        reason: entry["count"] for reason, entry in card["details"]["rejected"].items()
    }
    assert "mnemosmith data show" in capsys.readouterr().out


def test_a_killed_run_under_faults_ends_as_a_faultless_one(tmp_path: Path, world: Path, teacher: OfflineTeacher):
    assert main(command(tmp_path, world, teacher, out="plain")) == 0
    with offline_teacher(world, latency=0.03, faults=0.2, slow=0.1, retry_after=0.05) as faulty:
        words = command(tmp_path, world, faulty, out="killed")
        responses = tmp_path / "killed-run/responses.jsonl"
        for answers in (15, 40):
            process = subprocess.Popen([sys.executable, "-m", "mnemosmith", *words], cwd=CHECKOUT)
            while not responses.is_file() or responses.read_bytes().count(b"\n") < answers:
                assert process.poll() is None, "the run ended before it could be killed"
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert main(words) == 0
        by_request = faulty.stats()["by_request"].values()
    assert dataset_of(tmp_path / "killed") == dataset_of(tmp_path / "plain")
    again = sum(request["answered"] - 1 for request in by_request)
    assert again <= 2 * 8, "only what was in flight at one of the two kills may have been answered twice"


def test_an_interrupted_run_says_how_to_go_on_and_does(tmp_path: Path, world: Path):
    with offline_teacher(world, latency=0.2) as slow:
        words = command(tmp_path, world, slow)
        process = subprocess.Popen(
            [sys.executable, "-m", "mnemosmith", *words],
            cwd=CHECKOUT,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
        )
        responses = tmp_path / "taught-run/responses.jsonl"
        while not responses.is_file() or not responses.read_bytes():
            assert process.poll() is None, "the run ended before it could be interrupted"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        assert process.returncode == 1 and "the same command goes on from there" in said and "Traceback" not in said
        assert main(words) == 0


def test_other_gates_read_the_stored_answers_and_ask_nothing(tmp_path: Path, world: Path, teacher: OfflineTeacher):
    assert main(command(tmp_path, world, teacher)) == 0
    before = teacher.stats()["requests"]
    assert main(command(tmp_path, world, teacher, "--max_words", "25")) == 0
    assert teacher.stats()["requests"] == before
    assert "input too long" in {line["reason"] for line in rows_of(tmp_path / "taught", "rejected")}


def test_shards_put_together_are_the_whole(tmp_path: Path, world: Path, teacher: OfflineTeacher, capsys):
    assert main(command(tmp_path, world, teacher, out="whole")) == 0
    for shard in ("1/2", "2/2"):
        assert main(command(tmp_path, world, teacher, "--shard", shard)) == 0
    assert not (tmp_path / "taught").exists()
    runs = [str(tmp_path / f"taught-run-{n}-of-2") for n in (1, 2)]
    asked = [len((Path(run) / "responses.jsonl").read_text("utf-8").splitlines()) for run in runs]
    assert all(asked) and main(command(tmp_path, world, teacher, "--merge", *runs)) == 0
    for split in ("train", "dev"):
        assert rows_of(tmp_path / "taught", split) == rows_of(tmp_path / "whole", split)
    capsys.readouterr()
    assert main(command(tmp_path, world, teacher, "--merge", runs[0], out="half")) == 2
    assert "shard 2 is missing" in capsys.readouterr().err


def test_values_that_nobody_said_are_rejected_and_counted(tmp_path: Path, world: Path, capsys):
    with offline_teacher(world, latency=0, fault={"hallucinated": 0.3}) as inventive:
        assert main(command(tmp_path, world, inventive)) == 0
        invented = inventive.stats()["faults"]["hallucinated"]
    rejected = [line for line in rows_of(tmp_path / "taught", "rejected") if line["reason"] == "not grounded"]
    assert len(rejected) >= 0.9 * invented > 0
    assert "not grounded" in capsys.readouterr().out


def test_several_samples_are_brought_to_what_most_of_them_say(tmp_path: Path, world: Path, teacher: OfflineTeacher):
    assert main(command(tmp_path, world, teacher, out="plain", rows=30)) == 0
    with offline_teacher(world, latency=0, vary=0.25) as wavering:
        assert main(command(tmp_path, world, wavering, "--samples", "5", out="voted", rows=30)) == 0
        assert wavering.stats()["answers"] > 4 * teacher.stats()["answers"] / 10

    def facts(folder: str) -> dict[str, set[tuple[str, ...]]]:
        rows = rows_of(tmp_path / folder, "train")
        return {row["id"]: {(g["subject"], g["relation"], g["object"]) for g in row["gold"]} for row in rows}

    plain, voted = facts("plain"), facts("voted")
    shared = plain.keys() & voted.keys()
    assert len(shared) > 15 and sum(plain[name] == voted[name] for name in shared) >= 0.95 * len(shared)


def test_an_estimate_asks_nothing_and_then_learns_from_the_answers(
    tmp_path: Path, world: Path, teacher: OfflineTeacher, capsys
):
    prices = ["--prices", "{prompt: 1.0, completion: 2.0}"]
    before = teacher.stats()["requests"]
    assert main(command(tmp_path, world, teacher, "--estimate", *prices)) == 0
    first = capsys.readouterr().out
    assert teacher.stats()["requests"] == before and not (tmp_path / "taught-run").exists()
    assert "characters / 4" in first and "USD" in first
    assert main(command(tmp_path, world, teacher, *prices)) == 0
    capsys.readouterr()
    assert main(command(tmp_path, world, teacher, "--estimate", *prices)) == 0
    assert "stored answers" in capsys.readouterr().out


def test_a_refused_key_stops_the_run_and_stands_nowhere(
    tmp_path: Path, world: Path, teacher: OfflineTeacher, monkeypatch, capsys
):
    key = "bad-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert main(command(tmp_path, world, teacher)) == 1
    said = capsys.readouterr()
    assert "refused the API key" in said.err
    assert key not in said.out + said.err + all_text(tmp_path)


def test_no_prompt_and_no_key_is_printed_on_the_way(tmp_path: Path, world: Path, monkeypatch, capsys):
    key = "sk-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with offline_teacher(world, latency=0, faults=0.3, slow=0.1, retry_after=0.05) as faulty:
        assert main(command(tmp_path, world, faulty)) == 0
    said = capsys.readouterr()
    prompt = rows_of(tmp_path / "taught", "train")[0]["input"]["turns"][0]["text"]
    assert prompt not in said.out + said.err
    assert key not in said.out + said.err + all_text(tmp_path)


def test_a_budget_ends_the_run_with_what_to_do(tmp_path: Path, world: Path, teacher: OfflineTeacher, capsys):
    prices = ["--prices", "{prompt: 1000.0, completion: 1000.0}"]
    assert main(command(tmp_path, world, teacher, *prices, "--budget", "2")) == 1
    said = capsys.readouterr()
    assert "the budget of 2 USD is reached" in said.err and "raise `budget`" in said.err
    assert not (tmp_path / "taught").exists()
    assert main(command(tmp_path, world, teacher, *prices, "--budget", "2000")) == 0


def test_what_was_given_up_is_asked_again_on_demand(tmp_path: Path, world: Path, teacher: OfflineTeacher, capsys):
    with offline_teacher(world, latency=0, fault={"empty": 0.5}) as faulty:
        assert main(command(tmp_path, world, faulty, "--max_attempts", "1")) == 0
    card = json.loads((tmp_path / "taught/card.json").read_text("utf-8"))
    lost = card["details"]["synthesis"]["failed"]["empty"]["count"]
    assert lost > 10 and f"{lost} empty" in capsys.readouterr().out
    before = teacher.stats()["requests"]
    assert main(command(tmp_path, world, teacher, "--retry-failed")) == 0
    assert teacher.stats()["requests"] - before == lost
    card = json.loads((tmp_path / "taught/card.json").read_text("utf-8"))
    assert card["details"]["synthesis"]["failed"] == {}


def test_continuity_pairs_are_balanced_in_training_and_natural_in_dev(
    tmp_path: Path, world: Path, teacher: OfflineTeacher
):
    words = command(tmp_path, world, teacher, "--extractor", "continuity", "--extractor_options", "{}", rows=2000)
    assert main([*words, "--max_empty_share", "null"]) == 0
    train, dev = rows_of(tmp_path / "taught", "train"), rows_of(tmp_path / "taught", "dev")
    counts = Counter(row["gold"] for row in train)
    assert set(counts) == {0, 1} and counts[0] <= 1.2 * counts[1]
    assert {"adjacent", "session_boundary", "same_entity"} <= {row["tags"]["kind"] for row in train + dev}
    assert "same_entity" in {row["tags"]["kind"] for row in train if row["gold"] == 0}, "the hard ones stay"
    assert all(row["gold"] == 0 for row in train + dev if row["tags"]["kind"] == "same_entity")
    assert all(row["gold"] == 1 for row in train + dev if row["tags"]["kind"] == "digression")
    natural = Counter(row["gold"] for row in dev if row["tags"]["kind"] == "adjacent")
    assert natural[0] > 3 * natural[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--shard", "3/2"], "`--shard` is '3/2'"),
        (["--splits", "[test]", "--corpora", "[{name: world, source: /nowhere}]"], "does not exist"),
        (["--corpora", "[{name: wrld}]"], "wrld"),
        (["--extractor_options", "{closed: true}"], "`closed` is true"),
    ],
)
def test_bad_input_is_named_and_nothing_is_asked(
    tmp_path: Path, world: Path, teacher: OfflineTeacher, words, says: str, capsys
):
    before = teacher.stats()["requests"]
    assert main(command(tmp_path, world, teacher, *words)) == 2
    assert says in capsys.readouterr().err
    assert teacher.stats()["requests"] == before
