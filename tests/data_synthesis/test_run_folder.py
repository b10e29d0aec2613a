"""The run folder: nothing that was answered is lost, whatever ends the process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_synthesis.run_folder import RESPONSES, RunFolder, merge_runs, request_key, shard_of
from extractors.contract import InputError

MESSAGES = [{"role": "user", "content": "Mia: I love jazz."}]


def stored(folder: Path, *keys: str, shard: tuple[int, int] | None = None, digest: str = "d") -> Path:
    with RunFolder(folder) as run:
        for key in keys:
            run.asked(key)
            run.respond(key, {"text": f"answer to {key}"})
    (folder / "run.json").write_text(json.dumps({"shard": shard, "recipe_digest": digest}), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"messages": [{"role": "user", "content": "Mia: I hate jazz."}]},
        {"sampling": {"temperature": 0.6}},
        {"sampling": {"temperature": 0.7, "top_p": 0.9}},
        {"sample": 1},
        {"contract": "triplets 2"},
    ],
)
def test_whatever_may_change_an_answer_changes_its_key(change):
    request = {
        "model": "m",
        "messages": MESSAGES,
        "sampling": {"temperature": 0.7},
        "sample": 0,
        "contract": "triplets 1",
    }
    assert request_key(**request) == request_key(**request)
    assert request_key(**{**request, **change}) != request_key(**request)


def test_a_key_does_not_depend_on_the_order_of_parameters():
    first = request_key("m", MESSAGES, {"a": 1, "b": 2}, 0, "t 1")
    assert first == request_key("m", MESSAGES, {"b": 2, "a": 1}, 0, "t 1")


def test_what_was_stored_is_there_after_opening_again(tmp_path: Path):
    stored(tmp_path / "run", "one", "two")
    with RunFolder(tmp_path / "run") as run:
        assert {key: records[0]["text"] for key, records in run.responses.items()} == {
            "one": "answer to one",
            "two": "answer to two",
        }
        assert run.asked_before == {"one", "two"} and run.torn == []


def test_a_killed_process_loses_no_line_that_it_had_stored(tmp_path: Path):
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom data_synthesis.run_folder import RunFolder\n"
        "run = RunFolder(Path(sys.argv[1]))\n"
        "for number in range(500):\n    run.asked(str(number)); run.respond(str(number), {'text': 'x' * 100})\n"
        "run.asked('in flight')\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    checkout = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")], cwd=checkout, check=False)
    assert done.returncode == -signal.SIGKILL
    with RunFolder(tmp_path / "run") as run:
        assert list(run.responses) == [str(number) for number in range(500)]
        assert run.asked_before - set(run.responses) == {"in flight"}


@given(cut=st.integers(min_value=1, max_value=60))
def test_a_torn_last_line_is_cut_off_reported_and_written_again(tmp_path_factory: pytest.TempPathFactory, cut: int):
    folder = stored(tmp_path_factory.mktemp("torn") / "run", "one", "two", "three")
    path = folder / RESPONSES
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][: min(cut, len(lines[-1]) - 1)])
    with RunFolder(folder) as run:
        assert list(run.responses) == ["one", "two"] and len(run.torn) == 1
        run.respond("three", {"text": "again"})
    with RunFolder(folder) as run:
        assert list(run.responses) == ["one", "two", "three"] and run.torn == []


def test_a_broken_line_in_the_middle_is_an_error_that_names_it(tmp_path: Path):
    folder = stored(tmp_path / "run", "one", "two")
    path = folder / RESPONSES
    path.write_text("half a li\n" + path.read_text("utf-8"), encoding="utf-8")
    with pytest.raises(InputError, match=r"responses\.jsonl, line 1 is not a record"):
        RunFolder(folder)


def test_two_processes_cannot_write_to_one_folder(tmp_path: Path):
    with RunFolder(tmp_path / "run"), pytest.raises(InputError, match="in use by another process"):
        RunFolder(tmp_path / "run")


def test_text_of_any_kind_comes_back_as_it_was(tmp_path: Path):
    text = 'quotes " \\ \n new line \u2028 emoji 🦊 nul \x00'
    with RunFolder(tmp_path / "run") as run:
        run.respond("k", {"text": text})
    with RunFolder(tmp_path / "run") as run:
        assert run.responses["k"][0]["text"] == text


# -- shards ----------------------------------------------------------------------------------------------------------


def test_shards_put_together_hold_what_each_held(tmp_path: Path):
    first, second = stored(tmp_path / "a", "one", shard=(1, 2)), stored(tmp_path / "b", "two", "three", shard=(2, 2))
    assert merge_runs([second, first], tmp_path / "all")["responses"] == 3
    with RunFolder(tmp_path / "all") as run:
        assert set(run.responses) == {"one", "two", "three"}


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        ([("one", (1, 2), "d"), ("one", (2, 2), "d")], "both asked request one"),
        ([("one", (1, 2), "d"), ("two", (1, 2), "d")], "both shard 1/2"),
        ([("one", (1, 3), "d"), ("two", (3, 3), "d")], "shard 2 is missing"),
        ([("one", (1, 2), "d"), ("two", (2, 2), "other")], "different recipes"),
        ([("one", (1, 2), "d"), ("two", None, "d")], "whole run, not a shard"),
    ],
)
def test_shards_that_do_not_belong_together_are_refused(tmp_path: Path, shards, message: str):
    folders = [
        stored(tmp_path / str(n), key, shard=shard, digest=digest) for n, (key, shard, digest) in enumerate(shards)
    ]
    with pytest.raises(InputError, match=message):
        merge_runs(folders, tmp_path / "all")
    assert not (tmp_path / "all" / RESPONSES).exists()


@given(groups=st.lists(st.text(), unique=True), count=st.integers(min_value=1, max_value=9))
def test_every_group_has_one_shard(groups: list[str], count: int):
    assert all(1 <= shard_of(group, count) <= count for group in groups)
    assert [shard_of(group, count) for group in groups] == [shard_of(group, count) for group in groups]
