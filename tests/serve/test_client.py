"""The client against real servers: one on the loopback interface that misbehaves by a script, and `transformers
serve`."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from extractors import load_extractor
from extractors.contract import ExtractionError, InputError
from extractors.triplets.extractor import Dialogue, Triplet, Turn
from serve.client import ExtractorClient, ServerError, folder_extractor
from serve.generate import Generator
from serve.local import ServerFailed, free_port, local_server, running
from tests.serve.scripted_server import Log, Reply, chat, refusal, scripted_server
from tests.tiny import make_tiny_chat_model

EXTRACTOR = load_extractor("triplets", {"prompt": "compact"})
TEXT = EXTRACTOR.render((Triplet("Mia", "have_pet", "cat"),))
VALUE = (Triplet("Mia", "have_pet", "cat"),)
SECRET = "sk-very-secret-key"


def dialogue(text: str = "I have a cat") -> Dialogue:
    return Dialogue((Turn("Mia", text),))


def ask(log: Log, count: int = 1, **options: Any) -> tuple[list[Any], ExtractorClient[Any, Any]]:
    client: ExtractorClient[Any, Any] = ExtractorClient(log.url, EXTRACTOR, **options)
    return client.extract_all([dialogue(f"text {number}") for number in range(count)]), client


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits are recorded and not waited for."""
    waits: list[float] = []
    sleep = asyncio.sleep

    async def short(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr("serve.client.asyncio.sleep", short)
    return waits


# what is sent


def test_the_request_is_the_contract() -> None:
    with scripted_server(lambda number, body: chat(TEXT)) as log:
        [answer], client = ask(log)
    [sent] = log.requests
    assert answer.value == VALUE and answer.ok and (answer.prompt_tokens, answer.completion_tokens) == (11, 5)
    assert sent["model"] == "extractor"
    assert sent["messages"] == EXTRACTOR.messages(dialogue("text 0"))
    assert sent["temperature"] == 0 and sent["max_tokens"] == EXTRACTOR.decoding.max_tokens
    assert sent["chat_template_kwargs"] == {"enable_thinking": False}
    assert sent["response_format"]["type"] == "json_schema"
    assert sent["response_format"]["json_schema"]["schema"] == EXTRACTOR.json_schema
    assert sent["response_format"]["json_schema"]["strict"] is True
    assert client.notes == []


def test_shots_are_sent_as_earlier_turns() -> None:
    with scripted_server(lambda number, body: chat("[]")) as log:
        client: ExtractorClient[Any, Any] = ExtractorClient(log.url, EXTRACTOR)
        client.extract_all([dialogue()], shots=[(dialogue("I own a cat"), VALUE)])
    assert [message["role"] for message in log.requests[0]["messages"]] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_the_address_may_be_written_in_any_usual_way(suffix: str) -> None:
    assert ExtractorClient("http://127.0.0.1:8000" + suffix, EXTRACTOR).url == "http://127.0.0.1:8000/v1"
    assert ExtractorClient("localhost:8000" + suffix, EXTRACTOR).url == "http://localhost:8000/v1"


def test_many_rows_keep_their_order_and_the_bound_on_concurrency() -> None:
    def answer(number: int, body: dict[str, Any]) -> Reply:
        time.sleep(0.02 * (number % 3))
        said = body["messages"][-1]["content"].rpartition(" ")[2]
        return chat(EXTRACTOR.render((Triplet("Mia", "said", said),)))

    seen: list[tuple[int, int]] = []
    with scripted_server(answer) as log:
        client: ExtractorClient[Any, Any] = ExtractorClient(log.url, EXTRACTOR, concurrency=4)
        rows = [dialogue(f"text {number}") for number in range(40)]
        answers = client.extract_all(rows, on_progress=lambda done, total: seen.append((done, total)))
    assert [answer.value[0].object for answer in answers] == [str(number) for number in range(40)]
    assert 2 <= log.most_open <= 4
    assert seen == [(number, 40) for number in range(1, 41)]


def test_a_server_with_two_models_has_to_be_told_which() -> None:
    with scripted_server(lambda number, body: chat("[]"), models=("a", "b")) as log:
        with pytest.raises(ServerError, match=r"2 models \(a, b\)"):
            ask(log)
        ask(log, model="b")
    assert log.requests[0]["model"] == "b"


def test_it_runs_inside_an_event_loop_and_twice() -> None:
    async def twice(client: ExtractorClient[Any, Any]) -> list[Any]:
        return [*await client.extract([dialogue()]), *await client.extract([dialogue()])]

    with scripted_server(lambda number, body: chat("[]")) as log:
        answers = asyncio.run(twice(ExtractorClient(log.url, EXTRACTOR)))
    assert [answer.value for answer in answers] == [(), ()]


# what comes back


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (chat(""), "empty"),
        (chat(None), "empty"),
        (chat(" \n" * 200), "empty"),
        (chat("[\n" + " \n" * 200, "length"), "truncated"),
        (chat("[]", "length"), "truncated"),
        (chat(None, "content_filter"), "content_filter"),
        (chat("{{"), "truncated"),
        (chat("no facts here"), "no_json"),
        (Reply({"id": "c", "object": "chat.completion", "choices": []}), "request"),
        (Reply("<html>a proxy's page</html>"), "request"),
        (refusal(400, "the prompt is too long: 9000 tokens"), "request"),
    ],
)
def test_a_failure_is_typed_and_its_neighbour_unharmed(reply: Reply, kind: str) -> None:
    with scripted_server(lambda number, body: reply if "text 0" in str(body) else chat(TEXT)) as log:
        (bad, good), _ = ask(log, 2, concurrency=1, model="extractor")
    assert isinstance(bad.value, ExtractionError) and bad.value.kind == kind
    assert good.value == VALUE


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("content", [None, ""])
def test_an_answer_that_a_reasoning_parser_took_is_read(name: str, content: str | None) -> None:
    with scripted_server(lambda number, body: chat(content, **{name: TEXT})) as log:
        [answer], _ = ask(log)
    assert answer.value == VALUE


def test_prose_fences_and_a_think_block_are_read_from_a_server_that_ignores_the_schema() -> None:
    text = f"<think>\nA cat [maybe].\n</think>\nHere it is:\n```json\n{TEXT}\n```"
    with scripted_server(lambda number, body: chat(text)) as log:
        [answer], _ = ask(log)
    assert answer.value == VALUE


# servers that refuse a field


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_refuses_response_format_is_asked_without_it(status: int) -> None:
    def answer(number: int, body: dict[str, Any]) -> Reply:
        if "response_format" in body:
            return refusal(status, "Unsupported parameter: 'response_format'")
        return chat(TEXT)

    with scripted_server(answer) as log:
        answers, client = ask(log, 20, concurrency=4)
    assert all(answer.value == VALUE for answer in answers)
    assert len(client.notes) == 1 and "response_format" in client.notes[0]
    assert sum("response_format" in body for body in log.requests) <= 4  # those that were under way


def test_a_server_that_refuses_template_arguments_is_asked_without_them() -> None:
    def answer(number: int, body: dict[str, Any]) -> Reply:
        if "chat_template_kwargs" in body:
            return refusal(400, "Unrecognized request argument supplied: chat_template_kwargs")
        return chat(TEXT)

    with scripted_server(answer) as log:
        [answer_], client = ask(log)
    assert answer_.value == VALUE and "chat_template_kwargs" in client.notes[0]
    assert "response_format" in log.requests[-1]


def test_a_refusal_that_stays_is_the_rows_failure_and_does_not_loop() -> None:
    with scripted_server(lambda number, body: refusal(400, "response_format is bad")) as log:
        [answer], client = ask(log)
    assert answer.value.kind == "request" and "response_format is bad" in answer.value.detail
    assert len(log.requests) == 2 and len(client.notes) == 1


# faults that pass, and faults that stay


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
def test_a_fault_that_passes_is_retried(status: int, quick_retries: list[float]) -> None:
    with scripted_server(lambda number, body: refusal(status, "busy") if number < 3 else chat(TEXT)) as log:
        [answer], _ = ask(log)
    assert answer.value == VALUE and len(log.requests) == 4
    assert len(quick_retries) == 3 and quick_retries[2] > quick_retries[0]


def test_a_dropped_connection_is_retried(quick_retries: list[float]) -> None:
    with scripted_server(lambda number, body: Reply(status=0) if number < 2 else chat(TEXT)) as log:
        [answer], _ = ask(log)
    assert answer.value == VALUE and len(log.requests) == 3


def test_retry_after_is_honoured_in_seconds_and_as_a_date_and_is_bounded(quick_retries: list[float]) -> None:
    headers = ["7", formatdate(time.time() + 30, usegmt=True), "86400", "soon"]
    with scripted_server(
        lambda number, body: refusal(429, "slow down", Retry_After=headers[number]) if number < 4 else chat(TEXT)
    ) as log:
        [answer], _ = ask(log)
    assert answer.value == VALUE
    assert quick_retries[0] == 7.0 and 25 < quick_retries[1] <= 30 and quick_retries[2] == 60.0
    assert 0 < quick_retries[3] <= 60


def test_a_retry_after_is_really_waited_for() -> None:
    with scripted_server(
        lambda number, body: refusal(429, "slow down", Retry_After="0.4") if number < 1 else chat(TEXT)
    ) as log:
        start = time.monotonic()
        [answer], _ = ask(log)
    assert answer.ok and time.monotonic() - start >= 0.4


def test_a_fault_that_stays_fails_its_row_alone_after_five_attempts(quick_retries: list[float]) -> None:
    with scripted_server(
        lambda number, body: refusal(500, "out of memory") if "text 0" in str(body) else chat(TEXT)
    ) as log:
        (bad, good), _ = ask(log, 2, concurrency=1)
    assert (
        bad.value.kind == "request" and "HTTP 500: out of memory" in bad.value.detail and bad.finish_reason == "error"
    )
    assert good.value == VALUE and len(log.requests) == 6


def test_a_server_that_goes_away_later_fails_only_the_rows_that_are_left(quick_retries: list[float]) -> None:
    with scripted_server(lambda number, body: chat(TEXT) if number < 3 else Reply(status=0)) as log:
        answers, _ = ask(log, 5, concurrency=1)
    assert [answer.ok for answer in answers] == [True, True, True, False, False]
    assert answers[3].value.kind == "request"


def test_no_server_at_all_is_one_clear_error(quick_retries: list[float]) -> None:
    with scripted_server(lambda number, body: chat(TEXT)) as log:
        pass
    with pytest.raises(ServerError, match=r"127\.0\.0\.1:\d+/v1 does not list its models"):
        ask(log, 50)
    with pytest.raises(ServerError, match="cannot be reached"):
        ask(log, 50, model="extractor")


def test_an_unknown_model_is_one_clear_error() -> None:
    error = pytest.raises(ServerError, match="does not exist.*check the address and the model's name")
    with scripted_server(lambda number, body: refusal(404, "The model `m` does not exist.")) as log, error:
        ask(log, 50, model="m")
    assert len(log.requests) <= 16


# the key


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_stops_everything_and_is_never_shown(
    status: int, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    error = pytest.raises(ServerError, match="refused the API key.*OPENAI_API_KEY")
    told = f"Incorrect API key provided: {SECRET}"
    with scripted_server(lambda number, body: refusal(status, told)) as log, error as caught:
        ask(log, 100, concurrency=2, api_key=SECRET)
    assert log.keys[0] == f"Bearer {SECRET}" and len(log.requests) <= 2
    shown = caplog.text + "".join(capsys.readouterr()) + repr(caught.getrepr(chain=True, showlocals=False))
    assert SECRET not in shown and SECRET not in str(caught.value)


def test_a_key_in_a_servers_error_text_is_blotted_out(quick_retries: list[float]) -> None:
    with scripted_server(lambda number, body: refusal(400, f"quota of {SECRET} is spent")) as log:
        [answer], _ = ask(log, api_key=SECRET)
    assert "quota of *** is spent" in answer.value.detail and SECRET not in str(answer)


def test_the_key_comes_from_the_environment_and_only_loopback_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        ExtractorClient("https://models.example.com", EXTRACTOR)
    with scripted_server(lambda number, body: chat("[]")) as log:
        ask(log)
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        ask(log)
    assert log.keys == ["Bearer EMPTY", f"Bearer {SECRET}"]


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://user:pass@localhost:1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InputError):
        ExtractorClient(url, EXTRACTOR)


# the contract of a folder


def test_the_contract_is_read_from_an_exported_folder(tmp_path: Path) -> None:
    (tmp_path / "extractor.json").write_text(json.dumps(EXTRACTOR.to_json()))
    assert folder_extractor(tmp_path).to_json() == EXTRACTOR.to_json()


def test_a_folder_without_or_with_another_contract_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no extractor.json"):
        folder_extractor(tmp_path)
    (tmp_path / "extractor.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        folder_extractor(tmp_path)
    (tmp_path / "extractor.json").write_text(json.dumps(EXTRACTOR.to_json() | {"version": "0"}))
    with pytest.raises(InputError, match="`version`"):
        folder_extractor(tmp_path)


# a real OpenAI-compatible server


def test_transformers_serve_answers_as_the_generator_does(tmp_path: Path) -> None:
    folder = make_tiny_chat_model(tmp_path / "tiny", seed=2)
    rows = [dialogue("I have a cat" + ", and a dog" * number) for number in range(4)]
    expected = Generator(folder, EXTRACTOR, guided=False, max_tokens=24).generate(rows)
    with local_server(folder, threads=1) as server:
        assert server.model == "tiny"
        client: ExtractorClient[Any, Any] = ExtractorClient(server.url, EXTRACTOR, model=server.model, max_tokens=24)
        answers = client.extract_all(rows)
    # this server strips white space at both ends of an answer
    assert [answer.text for answer in answers] == [answer.text.strip() for answer in expected]
    assert [answer.finish_reason for answer in answers] == [answer.finish_reason for answer in expected]
    assert [answer.prompt_tokens for answer in answers] == [answer.prompt_tokens for answer in expected]


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no memory left for the weights'); raise SystemExit(3)"]
    said = pytest.raises(ServerFailed, match="exit status 3(?s:.*)no memory left")
    with said, running(command, free_port(), ready_within=60):
        raise AssertionError("it cannot be ready")
    with pytest.raises(InputError, match="revision"), local_server(tmp_path / "a@b"):
        raise AssertionError("it cannot be ready")


def test_a_server_is_stopped_when_its_block_fails() -> None:
    port = free_port()
    serving = [sys.executable, "-c", HEALTHY.format(port=port)]
    with pytest.raises(ZeroDivisionError), running(serving, port, ready_within=60) as (_, log):
        assert log.is_file()
        raise ZeroDivisionError
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


HEALTHY = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", {port}), Handler).serve_forever()
"""
