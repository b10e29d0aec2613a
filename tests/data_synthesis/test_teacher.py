"""The teacher's client against a real endpoint: what is asked, how often, what is kept, and when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from data_synthesis.run_folder import FAILED, RESPONSES, RunFolder
from data_synthesis.synthesize import side_by_side
from data_synthesis.teacher import (
    BudgetReached,
    Failed,
    Prices,
    Reply,
    Tally,
    Teacher,
    TeacherError,
    TeacherSettings,
)
from extractors.endpoint import retry_after
from tests.data_synthesis.scripted_teacher import ANSWER, answer, refusal, scripted_teacher

KEY = "sk-very-secret-0123456789"


def ask(
    folder: Path,
    url: str,
    prompts: list[str],
    *,
    usable: Callable[[str], str | None] = lambda text: None if text.startswith("[") else "no list",
    retry_failed: bool = False,
    **settings: Any,
) -> tuple[list[Reply | Failed | None], Tally, Exception | None]:
    """Ask every prompt; replies in the order of the prompts, None where the run had stopped."""
    values = {"model": "scripted", "api_key": KEY, "concurrency": 4, "timeout": 5.0, "max_attempts": 3, **settings}
    replies: list[Reply | Failed | None] = [None] * len(prompts)
    extra = values.pop("extra", None)

    async def everything() -> tuple[Tally, Exception | None]:
        with RunFolder(folder) as run:
            async with Teacher(TeacherSettings(base_url=url, **values), run, retry_failed=retry_failed) as teacher:

                async def one(place: int) -> None:
                    messages = [{"role": "user", "content": prompts[place]}]
                    replies[place] = await teacher.ask(messages, contract="t 1", usable=usable, extra=extra)

                stopped = await side_by_side((one(place) for place in range(len(prompts))), values["concurrency"])
                return teacher.tally, stopped

    tally, stopped = asyncio.run(everything())
    return replies, tally, stopped


def contents(folder: Path) -> str:
    return "".join(path.read_text("utf-8") for path in folder.iterdir())


def test_what_was_answered_is_never_asked_again(tmp_path: Path):
    with scripted_teacher(lambda call, n: answer()) as server:
        ask(tmp_path / "run", server.url, ["a", "b"])
        replies, tally, _ = ask(tmp_path / "run", server.url, ["a", "b", "c"])
    assert sorted(call.body["messages"][0]["content"] for call in server.calls) == ["a", "b", "c"]
    assert [reply.stored for reply in replies] == [True, True, False]
    assert (tally.reused, tally.answered) == (2, 1)


def test_a_request_carries_model_sampling_seed_and_key_and_nothing_that_was_not_asked_for(tmp_path: Path):
    with scripted_teacher(lambda call, n: answer()) as server:
        ask(tmp_path / "run", server.url, ["a"], sampling={"temperature": 0.7, "top_p": 0.9}, seed=5)
    assert server.calls[0].body == {
        "model": "scripted",
        "messages": [{"role": "user", "content": "a"}],
        "temperature": 0.7,
        "top_p": 0.9,
        "seed": 5,
    }
    assert server.calls[0].key == f"Bearer {KEY}"


def test_retry_after_is_waited_for(tmp_path: Path):
    def script(call: Any, n: int) -> web.Response:
        return refusal(429, "slow down", **{"Retry-After": "0.4"}) if n == 1 else answer()

    with scripted_teacher(script) as server:
        replies, tally, _ = ask(tmp_path / "run", server.url, ["a"])
    assert isinstance(replies[0], Reply) and tally.faults["rate_limit"] == 1
    assert server.calls[1].at - server.calls[0].at >= 0.4


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (lambda: refusal(500, "broken"), "server"),
        (lambda: refusal(503, "overloaded"), "server"),
        (lambda: web.Response(text="not a completion"), "protocol"),
        (lambda: web.json_response({"choices": []}), "protocol"),
        (lambda: answer('[{"subject"', finish_reason="length"), "length"),
        (lambda: answer("", finish_reason="content_filter"), "content_filter"),
        (lambda: answer(None), "empty"),
        (lambda: answer("  \n "), "empty"),
        (lambda: answer("I cannot help with that."), "unreadable"),
    ],
)
def test_a_fault_that_stays_is_given_up_after_max_attempts_and_no_more(tmp_path: Path, response, reason: str):
    with scripted_teacher(lambda call, n: response()) as server:
        replies, tally, stopped = ask(tmp_path / "run", server.url, ["a"], max_attempts=2)
        assert isinstance(replies[0], Failed) and (replies[0].reason, replies[0].attempts) == (reason, 2)
        assert len(server.calls) == 2 and stopped is None and tally.failed == {reason: 1}
        again, _, _ = ask(tmp_path / "run", server.url, ["a"], max_attempts=2)
        assert isinstance(again[0], Failed) and len(server.calls) == 2, "a failed request waits for --retry-failed"
        ask(tmp_path / "run", server.url, ["a"], max_attempts=2, retry_failed=True)
        assert len(server.calls) == 4
    assert f'"reason":"{reason}"' in (tmp_path / "run" / FAILED).read_text("utf-8")


def test_a_dropped_connection_is_tried_again(tmp_path: Path):
    with scripted_teacher(lambda call, n: None if n == 1 else answer()) as server:
        replies, tally, _ = ask(tmp_path / "run", server.url, ["a"])
    assert isinstance(replies[0], Reply) and tally.faults["connection"] == 1


def test_an_answer_that_a_better_parser_reads_needs_no_call(tmp_path: Path):
    with scripted_teacher(lambda call, n: answer("jazz, I think")) as server:
        ask(tmp_path / "run", server.url, ["a"], max_attempts=1)
        replies, _, _ = ask(tmp_path / "run", server.url, ["a"], usable=lambda text: None)
        assert len(server.calls) == 1
    assert isinstance(replies[0], Reply) and replies[0].text == "jazz, I think"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_stored_apart_from_the_answer(tmp_path: Path, field: str):
    with scripted_teacher(lambda call, n: answer(**{field: "she says it"})) as server:
        replies, _, _ = ask(tmp_path / "run", server.url, ["a"])
    assert (replies[0].text, replies[0].reasoning) == (ANSWER, "she says it")


def test_a_think_block_is_reasoning_too(tmp_path: Path):
    with scripted_teacher(lambda call, n: answer(f"<think>\nhm [1]\n</think>\n\n{ANSWER}")) as server:
        replies, _, _ = ask(tmp_path / "run", server.url, ["a"])
    assert (replies[0].text, replies[0].reasoning) == (ANSWER, "hm [1]")


# -- where no request can succeed --------------------------------------------------------------------------------------


def test_an_exhausted_quota_stops_the_run_at_once(tmp_path: Path):
    def script(call: Any, n: int) -> web.Response:
        return answer() if n <= 3 else refusal(429, "You exceeded your current quota", code="insufficient_quota")

    with scripted_teacher(script) as server:
        replies, tally, stopped = ask(tmp_path / "run", server.url, [str(n) for n in range(50)], concurrency=1)
    assert isinstance(stopped, TeacherError) and "quota is exhausted" in str(stopped)
    assert len(server.calls) == 4 and tally.answered == 3
    assert len((tmp_path / "run" / RESPONSES).read_text("utf-8").splitlines()) == 3


def test_a_rate_limit_that_mentions_billing_is_no_exhausted_quota(tmp_path: Path):
    message = "Rate limit reached. Visit your billing page to add a payment method and raise it."
    with scripted_teacher(lambda call, n: refusal(429, message) if n == 1 else answer()) as server:
        replies, _, stopped = ask(tmp_path / "run", server.url, ["a"])
    assert stopped is None and isinstance(replies[0], Reply)


@pytest.mark.parametrize(
    ("status", "says"),
    [(401, "refused the API key"), (403, "refused the API key"), (404, "check `base_url` and `model`")],
)
def test_a_bad_key_or_model_stops_the_run_at_once(tmp_path: Path, status: int, says: str):
    with scripted_teacher(lambda call, n: refusal(status, f"no such thing for {KEY}")) as server:
        _, _, stopped = ask(tmp_path / "run", server.url, ["a", "b", "c"], concurrency=1)
    assert isinstance(stopped, TeacherError) and says in str(stopped)
    assert len(server.calls) == 1 and KEY not in str(stopped) + contents(tmp_path / "run")


def test_a_server_that_is_not_there_is_said_to_be_not_there(tmp_path: Path):
    _, _, stopped = ask(tmp_path / "run", "http://127.0.0.1:9/v1", ["a"])
    assert isinstance(stopped, TeacherError) and "cannot be reached" in str(stopped)


def test_the_key_stands_in_no_file_even_where_the_server_repeats_it(tmp_path: Path):
    with scripted_teacher(lambda call, n: refusal(400, f"bad request with {call.key}")) as server:
        replies, _, _ = ask(tmp_path / "run", server.url, ["a"])
    assert replies[0].reason == "refused" and "***" in replies[0].detail
    assert KEY not in contents(tmp_path / "run") and KEY not in repr(TeacherSettings("m", server.url, KEY))


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_budget_stops_cleanly_and_a_higher_one_goes_on(tmp_path: Path):
    prices = Prices(prompt=1000, completion=1000)  # 0.12 a request
    with scripted_teacher(lambda call, n: answer()) as server:
        prompts = [str(n) for n in range(20)]
        _, tally, stopped = ask(tmp_path / "run", server.url, prompts, prices=prices, budget=0.99, concurrency=2)
        assert isinstance(stopped, BudgetReached)
        assert tally.cost == pytest.approx(0.96) and len(server.calls) == 8
        _, tally, stopped = ask(tmp_path / "run", server.url, prompts, prices=prices, budget=5, concurrency=2)
    assert stopped is None and (tally.reused, tally.answered) == (8, 12) and len(server.calls) == 20


def test_no_more_than_concurrency_requests_are_under_way(tmp_path: Path):
    under_way: list[int] = []
    running = 0

    async def slow(request: web.Request) -> web.Response:
        nonlocal running
        running += 1
        under_way.append(running)
        await asyncio.sleep(0.02)
        running -= 1
        return answer()

    async def everything() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", slow)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        with RunFolder(tmp_path / "run") as run:
            async with Teacher(TeacherSettings("m", url, KEY, concurrency=3), run) as teacher:
                messages = [[{"role": "user", "content": str(n)}] for n in range(30)]
                await asyncio.gather(*(teacher.ask(m, contract="t 1", usable=lambda text: None) for m in messages))
        await runner.cleanup()

    asyncio.run(everything())
    assert max(under_way) == 3 and len(under_way) == 30


def test_requests_per_minute_are_kept(tmp_path: Path):
    with scripted_teacher(lambda call, n: answer()) as server:
        ask(tmp_path / "run", server.url, [str(n) for n in range(13)], requests_per_minute=1200)
    assert server.calls[-1].at - server.calls[0].at >= 11 * 0.05


def test_tokens_per_minute_are_kept(tmp_path: Path):
    prompts = [f"{n} " + "word " * 2400 for n in range(30)]  # 3,000 tokens each, 90,000 in all
    with scripted_teacher(lambda call, n: answer()) as server:
        ask(tmp_path / "run", server.url, prompts, tokens_per_minute=1_200_000)
    assert server.calls[-1].at - server.calls[0].at >= 1.5


def test_fewer_requests_are_under_way_after_a_429_and_more_again_when_it_goes_well():
    from data_synthesis.teacher import _Gate

    gate = _Gate(100)
    gate.slow_down(None)
    assert gate.limit == 75
    gate.slow_down(None)
    assert gate.limit == 75, "one burst of 429s is one sign"
    for _ in range(75):
        gate.went_well()
    assert 75.9 < gate.limit < 76.1
    for _ in range(10_000):
        gate.went_well()
    assert gate.limit == 100


@pytest.mark.parametrize(
    ("word", "body"),
    [
        ("response_format", {"response_format": {"type": "json_schema"}}),
        ("chat_template_kwargs", {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_a_parameter_that_the_server_does_not_know_is_left_out_and_noted_once(tmp_path: Path, word: str, body):
    def script(call: Any, n: int) -> web.Response:
        return refusal(400, f"unknown parameter {word}") if word in call.body else answer()

    with scripted_teacher(script) as server:
        replies, tally, _ = ask(tmp_path / "run", server.url, ["a", "b"], extra=body, concurrency=1)
    assert all(isinstance(reply, Reply) for reply in replies)
    assert len(tally.notes) == 1 and word in tally.notes[0] and not tally.faults
    assert f'"without":["{word}"]' in contents(tmp_path / "run")


@pytest.mark.parametrize(
    ("header", "seconds"), [(None, None), ("3", 3.0), ("-2", 0.0), ("1e9", 120.0), ("soon", None), ("nan", None)]
)
def test_retry_after_is_read_as_seconds(header: str | None, seconds: float | None):
    assert retry_after(header, 120.0) == seconds


def test_retry_after_is_read_as_a_date():
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT", 120.0) == 0.0
