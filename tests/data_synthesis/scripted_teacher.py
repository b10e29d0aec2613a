"""A real chat endpoint on loopback that answers by a script: what the tests of the teacher's client talk to."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

ANSWER = '[{"subject":"Mia","relation":"like_music","object":"jazz"}]'


@dataclass
class Call:
    """One request as it came in: at what time, with which body and key."""

    at: float
    body: dict[str, Any]
    key: str


@dataclass
class ScriptedTeacher:
    url: str = ""
    calls: list[Call] = field(default_factory=list)


def answer(text: str | None = ANSWER, finish_reason: str = "stop", **message: Any) -> web.Response:
    """A chat completion of 100 prompt and 20 completion tokens."""
    return web.json_response(
        {
            "id": "x",
            "object": "chat.completion",
            "model": "scripted",
            "choices": [{"index": 0, "finish_reason": finish_reason, "message": {"content": text, **message}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20},
        }
    )


def refusal(status: int, message: str, code: str = "", **headers: str) -> web.Response:
    return web.json_response({"error": {"message": message, "code": code}}, status=status, headers=headers)


@contextmanager
def scripted_teacher(script: Callable[[Call, int], web.Response | None]) -> Iterator[ScriptedTeacher]:
    """script(call, number of the call, from 1) -> the response, or None to drop the connection."""
    teacher = ScriptedTeacher()
    ready, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def handle(request: web.Request) -> web.Response:
        call = Call(time.monotonic(), json.loads(await request.read()), request.headers.get("Authorization", ""))
        teacher.calls.append(call)
        response = script(call, len(teacher.calls))
        if response is None:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        return response

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        teacher.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield teacher
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
