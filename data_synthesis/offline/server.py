"""The endpoint: chat completions as an OpenAI-compatible server gives them, with faults.

    POST /v1/chat/completions   GET /v1/models   GET /health   GET /stats

An answer depends on the request alone: on a hash of its whole body, and for sampled answers on the number of the
sample. Tokens are counted as one per four characters, begun ones included.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from aiohttp import web

from data_synthesis.offline.faults import STILL_RIGHT, Faults, distort
from data_synthesis.offline.tasks import Asked, Unanswerable, recognise
from data_synthesis.offline.world import World

CHARACTERS_PER_TOKEN = 4
LARGEST_BODY = 64 * 2**20
MOST_CHOICES = 128
Body = dict[str, Any]


@dataclass(frozen=True)
class ServerSettings:
    """latency: seconds until an answer; slow: seconds on top of it for a slow one; retry_after: seconds that a 429 asks
    to wait; quota: answers until nothing more is given, None for no end; vary: share of sampled answers (temperature
    above 0) that differ a little from the gold; reasoning: whether `reasoning_content` comes with an answer; log: a
    JSON line per attempt goes here, without prompt or key."""

    model: str = "offline-teacher"
    latency: float = 0.2
    slow: float = 5.0
    retry_after: float = 1.0
    quota: int | None = None
    vary: float = 0.0
    reasoning: bool = False
    seed: int = 0
    log: Path | None = None


@dataclass
class _Seen:
    """What happened to one request. answered: replies that a client can use, sent in full; faults: by kind."""

    asked: int = 0
    answered: int = 0
    faults: Counter[str] = field(default_factory=Counter)


class _Refusal(Exception):
    """An HTTP error: status, OpenAI's `code`, and what to say."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None):
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers


class Endpoint:
    """Answers requests from `world`. `app` is what aiohttp serves."""

    def __init__(self, world: World, faults: Faults, settings: ServerSettings):
        self.world, self.faults, self.settings = world, faults, settings
        self.requests = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.granted = 0
        self.unsent = 0
        self.seen: dict[str, _Seen] = {}
        self.tasks: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._started = time.time()
        self._log: TextIO | None = None
        if settings.log is not None:
            self._log = settings.log.open("a", encoding="utf-8", buffering=1)
        self.app = web.Application(client_max_size=LARGEST_BODY)
        self.app.router.add_post("/v1/chat/completions", self.chat)
        self.app.router.add_get("/v1/models", self.models)
        self.app.router.add_get("/health", self.health)
        self.app.router.add_get("/stats", self.stats)

    async def health(self, _: web.Request) -> web.Response:
        return _json({"status": "ok"})

    async def models(self, request: web.Request) -> web.Response:
        try:
            _check_key(request)
        except _Refusal as refusal:
            return self._refuse(refusal)
        entry = {"id": self.settings.model, "object": "model", "created": 0, "owned_by": "mnemosmith"}
        return _json({"object": "list", "data": [entry]})

    async def stats(self, _: web.Request) -> web.Response:
        return _json(self.statistics())

    def statistics(self) -> dict[str, Any]:
        """What GET /stats says."""
        faults: Counter[str] = Counter()
        for seen in self.seen.values():
            faults.update(seen.faults)
        return {
            "requests": self.requests,
            "answers": sum(seen.answered for seen in self.seen.values()),
            "faults": dict(faults),
            "refused": dict(self.refused),
            "tasks": dict(self.tasks),
            "unsent": self.unsent,
            "in_flight": self.in_flight,
            "most_in_flight": self.most_in_flight,
            "cpu_seconds": round(time.process_time(), 3),
            "by_request": {
                name: {"asked": seen.asked, "answered": seen.answered, "faults": dict(seen.faults)}
                for name, seen in self.seen.items()
            },
        }

    async def chat(self, request: web.Request) -> web.StreamResponse:
        started = asyncio.get_running_loop().time()
        self.requests += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._chat(request, started)
        except _Refusal as refusal:
            return self._refuse(refusal)
        finally:
            self.in_flight -= 1

    async def _chat(self, request: web.Request, started: float) -> web.StreamResponse:
        _check_key(request)
        body, asked = self._read(await request.read())
        name = name_of_request(body)
        seen = self.seen.setdefault(name, _Seen())
        seen.asked += 1
        attempt = seen.asked
        fault = self.faults.draw(name, attempt)
        quota = self.settings.quota
        if fault == "quota" or (quota is not None and self.granted >= quota):
            self._note(name, seen, "quota")
            raise _Refusal(429, "insufficient_quota", "You exceeded your current quota, please check your plan.")
        if fault == "429":
            self._note(name, seen, fault)
            wait = f"{self.settings.retry_after:g}"
            raise _Refusal(
                429, "rate_limit_exceeded", f"Rate limit reached. Try again in {wait} s.", {"Retry-After": wait}
            )
        task, contents, reasons = self._answer(name, body, asked, fault)
        self.granted += fault is None or fault in STILL_RIGHT
        late = self.settings.slow if fault == "slow" else 0.0
        await asyncio.sleep(max(0.0, started + self.settings.latency + late - asyncio.get_running_loop().time()))
        transport = request.transport
        if transport is None or transport.is_closing():
            self.unsent += 1
            return web.Response()
        if fault in ("500", "503"):
            self._note(name, seen, fault)
            code = "server_error" if fault == "500" else "overloaded"
            raise _Refusal(
                int(fault), code, "The server had an error." if fault == "500" else "The server is overloaded."
            )
        if fault == "dropped":
            self._note(name, seen, fault)
            transport.close()
            return web.Response()
        data = json.dumps(self._completion(name, body, contents, reasons), ensure_ascii=False).encode()
        if fault == "cut":
            self._note(name, seen, fault)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
            transport.write(head.encode() + data[: len(data) // 2])  # type: ignore[attr-defined]
            transport.close()
            return web.Response()
        if fault is not None:
            self._note(name, seen, fault)
        if fault is None or fault in STILL_RIGHT:
            seen.answered += 1
            self.tasks[task] += 1
            if self.faults.invents(name):
                self._note(name, seen, "hallucinated")
            elif fault is None:
                self._write_log(name, seen, "answered")
        return web.Response(body=data, content_type="application/json")

    def _read(self, data: bytes) -> tuple[Body, Asked]:
        """The request's body and what it asks. Raises _Refusal for a body that no server would take."""
        try:
            body = json.loads(data)
            messages = body["messages"]
            system = next((m["content"] for m in messages if m["role"] == "system"), "")
            user = next(m["content"] for m in reversed(messages) if m["role"] == "user")
            numbers = [body.get(name) or 0 for name in ("temperature", "max_tokens", "n")]
            if not all(isinstance(text, str) for text in (system, user, body["model"])):
                raise TypeError
            if not all(isinstance(number, int | float) for number in numbers) or not 0 <= numbers[2] <= MOST_CHOICES:
                raise TypeError
        except (ValueError, KeyError, TypeError, StopIteration):
            raise _Refusal(400, "invalid_request", "a model, and messages with text of a user, are due") from None
        if body["model"] != self.settings.model:
            raise _Refusal(404, "model_not_found", f"this server has one model, {self.settings.model}")
        if body.get("stream"):
            raise _Refusal(400, "unsupported", "this server does not stream")
        form = body.get("response_format")
        bound = form.get("json_schema") if isinstance(form, dict) else None
        schema = bound.get("schema") if isinstance(bound, dict) else None
        return body, Asked(system, user, schema)

    def _answer(self, name: str, body: Body, asked: Asked, fault: str | None) -> tuple[str, list[str], list[str]]:
        """(task, content of each choice, finish reason of each)."""
        try:
            task = recognise(asked.system)
            gold = task.answer(self.world, asked)
        except Unanswerable as error:
            raise _Refusal(422, "unanswerable", f"the offline teacher cannot answer: {error}") from None
        if self.faults.invents(name):
            gold = task.invent(gold, self.world, random.Random(f"{self.settings.seed}/{name}/value"))
        contents, reasons = [], []
        for sample in range(int(body.get("n") or 1)):
            value = gold
            if self.settings.vary and (body.get("temperature", 1.0) or 0) > 0:
                rng = random.Random(f"{self.settings.seed}/{name}/{sample}")
                value = task.vary(gold, rng) if rng.random() < self.settings.vary else gold
            extractor = task.extractor
            bound = extractor.grammar is not None and asked.schema is not None
            written = json.dumps(extractor.write_output(value)) if bound else extractor.render(value)
            content, reason = distort(fault or "", written, value, task)
            most = int(body.get("max_tokens") or 0)
            if most and _tokens(content) > most:
                content, reason = content[: most * CHARACTERS_PER_TOKEN], "length"
            contents.append(content)
            reasons.append(reason)
        return task.extractor.name, contents, reasons

    def _completion(self, name: str, body: Body, contents: list[str], reasons: list[str]) -> dict[str, Any]:
        choices = []
        completion = 0
        for index, (content, reason) in enumerate(zip(contents, reasons, strict=True)):
            message = {"role": "assistant", "content": content}
            if self.settings.reasoning:
                message["reasoning_content"] = f"I look up who said what; the answer has {len(content)} characters."
                completion += _tokens(message["reasoning_content"])
            completion += _tokens(content)
            choices.append({"index": index, "message": message, "finish_reason": reason, "logprobs": None})
        prompt = sum(_tokens(m["content"]) for m in body["messages"] if isinstance(m.get("content"), str))
        return {
            "id": f"chatcmpl-{name[:24]}",
            "object": "chat.completion",
            "created": int(self._started),
            "model": self.settings.model,
            "choices": choices,
            "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
        }

    def _note(self, name: str, seen: _Seen, fault: str) -> None:
        seen.faults[fault] += 1
        self._write_log(name, seen, fault)

    def _write_log(self, name: str, seen: _Seen, outcome: str) -> None:
        if self._log is not None:
            record = {"time": round(time.time(), 3), "request": name, "attempt": seen.asked, "outcome": outcome}
            self._log.write(json.dumps(record) + "\n")

    def _refuse(self, refusal: _Refusal) -> web.Response:
        if refusal.status not in (429, 500, 503):
            self.refused[str(refusal.status)] += 1
            self._write_log("", _Seen(), f"refused {refusal.status}")
        error = {"message": str(refusal), "type": refusal.code, "param": None, "code": refusal.code}
        return _json({"error": error}, refusal.status, refusal.headers)


def _check_key(request: web.Request) -> None:
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if given.startswith("bad"):  # real servers repeat the key, too
        raise _Refusal(401, "invalid_api_key", f"Incorrect API key provided: {given}.")


def name_of_request(body: Body) -> str:
    """The name of a request in the statistics: a hash of its whole body."""
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _json(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        body=json.dumps(data, ensure_ascii=False).encode(),
        status=status,
        headers=headers,
        content_type="application/json",
    )
