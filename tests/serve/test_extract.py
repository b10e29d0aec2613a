"""`mnemosmith extract` as a person or a shell script meets it."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from extractors import load_extractor
from extractors.contract import InputError
from extractors.triplets.extractor import Triplet
from serve.extract import add_arguments, read_dialogue, run
from tests.serve.scripted_server import chat, refusal, scripted_server
from tests.tiny import make_tiny_chat_model

EXTRACTOR = load_extractor("triplets", {"prompt": "compact"})
MIA = "Mia: I have a cat"
TEXT = EXTRACTOR.render((Triplet("Mia", "have_pet", "cat"), Triplet("Mia", "live_in_general", "Lisbon")))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def extract(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args(arguments))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in for an export: random weights that happen to finish their answer to MIA within the grammar."""
    from serve.generate import Generator

    for seed in range(30):
        path = make_tiny_chat_model(tmp_path_factory.mktemp("export"), seed=seed)
        [answer] = Generator(path, EXTRACTOR, max_tokens=20).generate([EXTRACTOR.read_input(read_dialogue([MIA]))])
        if answer.ok:
            (path / "extractor.json").write_text(json.dumps(EXTRACTOR.to_json()))
            return path
    raise AssertionError("no seed finishes its answer")


def test_it_is_mounted_without_importing_torch_or_openai() -> None:
    code = "import sys, serve.extract; print([name for name in ('torch', 'openai', 'transformers') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_folder_runs_in_process(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert extract(str(folder), "--text", MIA) == 0
    shown = capsys.readouterr()
    row = json.loads(shown.out)
    assert row["id"] == "text" and row["ok"] and row["finish_reason"] == "stop" and isinstance(row["output"], list)
    assert "1 row: 1 extracted" in shown.err


def test_rows_from_a_file_give_json_lines_and_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"id": "p1-s1-01", "group": "p1", "input": {"turns": [{"speaker": "Mia", "text": "one"}]}, "gold": []},
        {"turns": [{"speaker": "Mia", "text": "two"}]},
        {"turns": [{"speaker": "Mia", "text": "three"}]},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    replies = {"one": chat(TEXT), "two": chat("[]"), "three": chat(TEXT, "length")}
    with scripted_server(lambda number, body: replies[body["messages"][-1]["content"].split(": ")[1]]) as log:
        status = extract(log.url, "--input", str(path))
    shown = capsys.readouterr()
    first, second, third = (json.loads(line) for line in shown.out.splitlines())
    assert status == 0
    assert first["id"] == "p1-s1-01" and first["output"][0] == {
        "subject": "Mia",
        "relation": "have_pet",
        "object": "cat",
    }
    assert second == {"id": "line 2", "ok": True, "output": [], "finish_reason": "stop"}
    assert third["ok"] is False and set(third["error"]) == {"kind", "position", "excerpt", "detail"}
    assert third["error"]["kind"] == "truncated" and third["finish_reason"] == "length"
    assert shown.err.strip() == "3 rows: 2 extracted (2 triplets), 1 failed (truncated 1)"


def test_a_terminal_gets_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    with scripted_server(lambda number, body: chat(TEXT)) as log:
        assert extract(log.url, "--text", "Mia: I have a cat", "--text", "Tom: And I") == 0
        sent = log.requests[0]["messages"][-1]["content"]
    assert "Mia: I have a cat\nTom: And I" in sent
    lines = out.getvalue().splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["subject", "relation", "object"],
        ["Mia", "have_pet", "cat"],
        ["Mia", "live_in_general", "Lisbon"],
    ]
    assert lines[2].index("have_pet") == lines[3].index("live_in_general")


def test_text_for_a_persona_tree_is_about_whoever_speaks_last(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted_server(lambda number, body: chat('ADD(Identity.Social_Identity.Residence, "Leeds")')) as log:
        words = ("--text", "Nora: So how was the move?", "--text", "Ben: I live in Leeds now.")
        assert extract(log.url, "--extractor", "persona_tree", *words) == 0
        assert "Recorded about Ben:" in log.requests[0]["messages"][-1]["content"]
    assert json.loads(capsys.readouterr().out)["output"][0]["value"] == "Leeds"


def test_text_is_piped_in(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Mia: I have a cat\nhello\n"))
    with scripted_server(lambda number, body: chat("[]")) as log:
        assert extract(log.url) == 0
    assert "Mia: I have a cat\nSpeaker A: hello" in log.requests[0]["messages"][-1]["content"]


def test_json_lines_are_piped_in(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"turns": [{"speaker": "Mia", "text": "hi"}]}\n'))
    with scripted_server(lambda number, body: chat("[]")) as log:
        assert extract(log.url, "--input", "-") == 0
    assert json.loads(capsys.readouterr().out)["id"] == "line 1"


@pytest.mark.parametrize("arguments", [[], ["--input", "-"]])
def test_it_never_waits_for_a_terminal(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    assert extract("http://127.0.0.1:9", *arguments) == 2
    assert '--text "Mia: I have a cat"' in capsys.readouterr().err


def test_all_rows_failed_is_exit_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted_server(lambda number, body: chat("")) as log:
        assert extract(log.url, "--text", "Mia: hi there") == 1
    assert "1 row: 0 extracted (0 triplets), 1 failed (empty 1)" in capsys.readouterr().err


def test_a_server_that_cannot_be_used_is_exit_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted_server(lambda number, body: refusal(401, "no")) as log:
        assert extract(log.url, "--text", "Mia: hi there") == 1
    shown = capsys.readouterr()
    assert "error: " in shown.err and "OPENAI_API_KEY" in shown.err and not shown.out


def test_what_a_server_refused_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted_server(
        lambda number, body: refusal(400, "response_format?") if "response_format" in body else chat("[]")
    ) as log:
        assert extract(log.url, "--text", "Mia: hi there") == 0
    assert "note: the server refused `response_format`" in capsys.readouterr().err


def test_unguided_asks_without_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted_server(lambda number, body: chat("[]")) as log:
        assert extract(log.url, "--text", "Mia: hi there", "--unguided") == 0
    assert "response_format" not in log.requests[0]


def test_a_url_takes_its_contract_from_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted_server(lambda number, body: chat("[]")) as log:
        assert extract(log.url, "--folder", str(folder), "--text", "Mia: hi there") == 0
        assert extract(log.url, "--text", "Mia: hi there") == 0
    first, second = (body["messages"][0]["content"] for body in log.requests)
    assert first == EXTRACTOR.prompt()["messages"][0]["content"]
    assert second == load_extractor("triplets").prompt()["messages"][0]["content"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-folder", "--text", "x"], "neither a folder nor an address"),
        ([".", "--text", "x"], "no extractor.json"),
        (["http://127.0.0.1:9", "--input", "no-such-file"], "no such file"),
        (["http://127.0.0.1:9", "--text", "  "], "the text is empty"),
        (["http://127.0.0.1:9", "--text", "x", "--extractor", "nope"], "this version knows"),
        (["http://127.0.0.1:9", "--text", "x", "--concurrency", "0"], "--concurrency is 0"),
        ([".", "--extractor", "triplets", "--text", "x", "--batch-size", "0"], "--batch-size is 0"),
        ([".", "--folder", ".", "--text", "x"], "--folder goes with a URL"),
    ],
)
def test_input_that_cannot_be_used_is_exit_status_2(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert extract(*arguments) == 2
    assert said in capsys.readouterr().err


def test_every_faulty_line_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"turns": [{"speaker": "Mia", "text": "hi"}]}\n{"turns": []}\nnot json\n[1]\n')
    assert extract("http://127.0.0.1:9", "--input", str(path)) == 2
    shown = capsys.readouterr().err
    assert "3 of its lines" in shown and "line 2:" in shown and "line 3:" in shown and "line 4:" in shown


def test_speakers_are_read_from_lines() -> None:
    lines = ["Mia: I have a cat", "  Dr. O'Neil : hm: yes", "I left at 10:30", "see http://x.org", "", "Zoë: ja"]
    turns = read_dialogue(lines)["turns"]
    assert [turn["speaker"] for turn in turns] == ["Mia", "Dr. O'Neil", "Speaker A", "Speaker A", "Zoë"]
    assert [turn["text"] for turn in turns][1:4] == ["hm: yes", "I left at 10:30", "see http://x.org"]
    with pytest.raises(InputError):
        read_dialogue(["", " "])
