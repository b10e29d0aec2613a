"""The teacher: chat requests to any OpenAI-compatible endpoint, each asked until it has a usable answer, once.

    wait for a place (concurrency, rate limits, a pause that the server asked for)
    -> send -> store the reply in the run folder -> usable? done : try again, up to `max_attempts`

The SDK does the authentication, the transport and the error types; its own retries are off, so that attempts do not
multiply. Requests go through the SDK's generic `post`: its typed `create` validates every reply by pydantic, which at
hundreds of requests a second costs more than all else here. Nothing that is logged or stored holds the key, a header or,
outside the run folder, a prompt.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from data_synthesis.run_folder import Record, RunFolder, request_key
from extractors.contract import InputError, Message
from extractors.endpoint import retry_after

SILENT_ATTEMPTS = 3  # of one request, to a server that has never answered
LONGEST_WAIT = 120.0  # seconds between two attempts, whatever Retry-After asks for
RETRIED = frozenset({408, 409, 425, 429})  # and every 5xx
CHARACTERS_PER_TOKEN = 4.0  # where a request's tokens must be known before its answer says them
# Not "billing": the text of an ordinary rate limit may point to the billing page.
_QUOTA = re.compile(
    r"insufficient_quota|insufficient balance|exceeded your current quota|quota exhausted|credit balance is too low",
    re.I,
)
_THINK = re.compile(r"\A\s*<think>(.*?)</think>", re.S)
_DEGRADABLE = {  # parameter: words by which a server that does not know it names it
    "response_format": ("response_format", "json_schema", "structured", "guided", "grammar", "schema"),
    "seed": ("seed",),
    "chat_template_kwargs": ("chat_template_kwargs",),
}

Usable = Callable[[str], str | None]  # why a text cannot be used, None where it can


class TeacherError(RuntimeError):
    """No request can succeed: key refused, quota exhausted, model unknown, server not there. Says what to change."""


class BudgetReached(Exception):
    """The budget is spent; what was in flight has been finished and stored."""


@dataclass(frozen=True)
class Prices:
    """Price of a million tokens."""

    prompt: float = 0.0
    completion: float = 0.0
    currency: str = "USD"

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


@dataclass(frozen=True)
class TeacherSettings:
    """Where the teacher is and how it is asked. sampling: sent with every request (temperature, top_p, max_tokens, …);
    seed: sent as `seed` + sample index, None sends none; requests_per_minute, tokens_per_minute, budget: None for no
    limit; timeout: seconds for one attempt."""

    model: str
    base_url: str
    api_key: str = field(repr=False)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = 0
    concurrency: int = 64
    max_attempts: int = 8
    timeout: float = 300.0
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    prices: Prices = Prices()
    budget: float | None = None


@dataclass(frozen=True)
class Reply:
    """A usable answer. text: without its reasoning; stored: whether it was in the run folder already."""

    text: str
    reasoning: str
    stored: bool
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class Failed:
    """A request that was given up. reason: a short word to count by; detail: what the last attempt met."""

    reason: str
    detail: str
    attempts: int


@dataclass
class Tally:
    """What a run has done so far. reused: answered from the run folder; reasked: sent by an earlier process that ended
    before the answer came, and sent again; faults: attempts that failed, by reason."""

    answered: int = 0
    reused: int = 0
    reasked: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    notes: list[str] = field(default_factory=list)


class Teacher:
    """Asks the endpoint of `settings` and remembers in `folder`. An async context manager.

    retry_failed: ask again what an earlier run gave up; otherwise it stays failed. on_change is called after every
    request that is answered or given up.
    """

    def __init__(
        self,
        settings: TeacherSettings,
        folder: RunFolder,
        *,
        retry_failed: bool = False,
        on_change: Callable[[Tally], None] | None = None,
    ):
        self.settings = settings
        self.folder = folder
        self.tally = Tally()
        self._retry_failed = retry_failed
        self._on_change = on_change
        self._without: set[str] = set()
        self._heard = False
        self._gate = _Gate(settings.concurrency)
        self._spent_before = settings.prices.cost(*_stored_tokens(folder))
        self._stopped: BaseException | None = None
        self._api: Any = None
        self._limits: list[tuple[Any, bool]] = []

    async def __aenter__(self) -> Teacher:
        import httpx
        import openai
        from aiolimiter import AsyncLimiter

        s = self.settings
        pool = httpx.Limits(max_connections=s.concurrency, max_keepalive_connections=s.concurrency)
        self._api = openai.AsyncOpenAI(
            base_url=s.base_url,
            api_key=s.api_key,
            max_retries=0,
            timeout=s.timeout,
            http_client=openai.DefaultAioHttpClient(
                limits=pool, timeout=s.timeout, trust_env=not _loopback(s.base_url)
            ),
        )
        # Small buckets: one that held a whole minute's worth would let twice the limit through in the first minute.
        if s.requests_per_minute:
            self._limits.append((AsyncLimiter(1, 60 / s.requests_per_minute), False))
        if s.tokens_per_minute:
            self._limits.append((AsyncLimiter(s.tokens_per_minute * 0.95 / 20, 3), True))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._api.close()

    @property
    def spent(self) -> float:
        """What the run has cost, earlier processes included."""
        return self._spent_before + self.tally.cost

    def sampling(self, sample: int, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Every parameter that is sent beside model and messages."""
        parameters = {**self.settings.sampling, **(extra or {})}
        if self.settings.seed is not None:
            parameters["seed"] = self.settings.seed + sample
        return parameters

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        contract: str,
        usable: Usable,
        sample: int = 0,
        extra: Mapping[str, Any] | None = None,
    ) -> Reply | Failed:
        """The teacher's answer, from the run folder where it holds a usable one.

        contract: name and version of what the answer must be (`triplets 1`); usable: its parser; sample: which of
        several answers to the same messages; extra: further parameters (`response_format`). Raises TeacherError where
        no request can succeed, BudgetReached where nothing more may be asked.
        """
        parameters = self.sampling(sample, extra)
        key = request_key(self.settings.model, messages, parameters, sample, contract)
        for record in self.folder.responses.get(key, ()):
            if _fault_of(record, usable) is None:
                self.tally.reused += 1
                self._changed()
                return _reply(record, stored=True)
        if key in self.folder.failed and not self._retry_failed:
            record = self.folder.failed[key]
            self.tally.failed[record["reason"]] += 1
            self._changed()
            return Failed(record["reason"], record["detail"], record["attempts"])
        self.tally.reasked += key in self.folder.asked_before and key not in self.folder.failed
        try:
            result = await self._until_usable(key, messages, parameters, usable)
        except BaseException as error:
            self._stopped = self._stopped or error
            self._gate.open_for_all()
            raise
        if isinstance(result, Failed):
            self.tally.failed[result.reason] += 1
            self.folder.fail(key, {"reason": result.reason, "detail": result.detail, "attempts": result.attempts})
        else:
            self.tally.answered += 1
        self._changed()
        return result

    async def _until_usable(
        self, key: str, messages: Sequence[Message], parameters: Mapping[str, Any], usable: Usable
    ) -> Reply | Failed:
        body = {"model": self.settings.model, "messages": list(messages), **parameters}
        attempt = 0
        while True:
            await self._admit(body)
            try:
                self.folder.asked(key)
                record = await self._send(body, attempt + 1)
            except _Attempt as fault:
                if degraded := self._degraded(fault, body):
                    body = degraded
                    continue
                reason, detail, wait, again = fault.reason, str(fault), fault.wait, fault.again
            else:
                self.folder.respond(key, record)
                self._count(record)
                if (why := _fault_of(record, usable)) is None:
                    return _reply(record, stored=False)
                (reason, detail), wait, again = why, 0.0, True
            finally:
                self._gate.leave()
            attempt += 1
            self.tally.faults[reason] += 1
            if reason == "connection" and not self._heard and attempt >= SILENT_ATTEMPTS:
                raise TeacherError(
                    f"{self.settings.base_url} cannot be reached ({detail}): is the server running there?"
                )
            if attempt >= self.settings.max_attempts or not again:
                return Failed(reason, detail, attempt)
            if wait is None:
                wait = min(LONGEST_WAIT, 0.25 * 2**attempt) * random.uniform(0.5, 1.0)
            if wait:
                await asyncio.sleep(wait)

    async def _admit(self, body: Mapping[str, Any]) -> None:
        """Wait until one more request may be under way. Raises what stopped the run, or BudgetReached."""
        for limit, in_tokens in self._limits:
            amount = _expected_tokens(body) + self._mean_completion() if in_tokens else 1.0
            await limit.acquire(min(limit.max_rate, amount))
        await self._gate.enter()
        try:
            if self._stopped is not None:
                raise self._stopped
            budget, done = self.settings.budget, self.tally.answered + sum(self.tally.failed.values())
            per_request = self.tally.cost / done if done else self.settings.prices.cost(_expected_tokens(body), 0)
            if budget is not None and self.spent + self._gate.running * per_request > budget:
                raise BudgetReached
        except BaseException:
            self._gate.leave()
            raise

    async def _send(self, body: Mapping[str, Any], attempt: int) -> Record:
        """One attempt: the record of a reply. Raises _Attempt, or TeacherError where every request would fail."""
        import httpx
        import openai

        started = time.monotonic()
        try:
            response = await self._api.post("/chat/completions", body=body, cast_to=httpx.Response)
            record = _record(response.content)
        except openai.APIStatusError as error:
            self._heard = True
            raise self._refused(error) from None
        except (openai.APIConnectionError, httpx.HTTPError, TimeoutError) as error:
            # The transport reports a refused or a dropped connection as a timeout too; its cause tells.
            causes = list(_causes(error))
            if any(isinstance(cause, TimeoutError) for cause in causes):
                raise _Attempt("timeout", f"no answer within {self.settings.timeout:g} s") from None
            raise _Attempt("connection", self._clean(str(causes[-1]) or type(causes[-1]).__name__)) from None
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise _Attempt("protocol", f"the reply is not a chat completion ({type(error).__name__})") from None
        self._heard = True
        record["attempt"] = attempt
        record["seconds"] = round(time.monotonic() - started, 3)
        if self._without:
            record["without"] = sorted(self._without)
        self._gate.went_well()
        return record

    def _refused(self, error: Any) -> Exception:
        """What an HTTP error means. Everything that the server said is cleaned of the key."""
        status, text = error.status_code, self._clean(_server_text(error))
        s = self.settings
        if status == 402 or (status in (403, 429) and _QUOTA.search(text)):
            return TeacherError(
                f"{s.base_url} says that the quota is exhausted ({status}: {text}). Everything that was answered is "
                "stored: raise the quota and start the same command again."
            )
        if status in (401, 403):
            return TeacherError(
                f"{s.base_url} refused the API key ({status}): check the variable that `api_key_env` names."
            )
        if status == 404:
            return TeacherError(f"{s.base_url} answers 404 ({text}): check `base_url` and `model` ({s.model}).")
        if status == 429:
            wait = retry_after(error.response.headers.get("retry-after"), LONGEST_WAIT)
            self._gate.slow_down(wait)
            return _Attempt("rate_limit", f"HTTP 429: {text}", wait=0.0 if wait is not None else None)
        again = status in RETRIED or status >= 500
        wait = retry_after(error.response.headers.get("retry-after"), LONGEST_WAIT) if again else None
        return _Attempt(
            "server" if again else "refused", f"HTTP {status}: {text}", wait=wait, again=again, status=status
        )

    def _degraded(self, fault: _Attempt, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """The body without the parameter that the server does not know, None where that is not the fault."""
        if fault.status not in (400, 422):
            return None
        said = str(fault).casefold()
        for name, words in _DEGRADABLE.items():
            if name in body and any(word in said for word in words):
                if name not in self._without:
                    self._without.add(name)
                    self.tally.notes.append(f"the server refused `{name}` ({fault}); it is asked without it")
                return {key: value for key, value in body.items() if key != name}
        return None

    def _count(self, record: Record) -> None:
        prompt, completion = record["prompt_tokens"], record["completion_tokens"]
        self.tally.prompt_tokens += prompt
        self.tally.completion_tokens += completion
        self.tally.cost += self.settings.prices.cost(prompt, completion)

    def _mean_completion(self) -> float:
        return self.tally.completion_tokens / self.tally.answered if self.tally.answered else 0.0

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self.tally)

    def _clean(self, text: str) -> str:
        """Some servers repeat the key in their error text; nothing that is stored or printed may hold it."""
        return " ".join(text.replace(self.settings.api_key, "***").split())[:300]


class _Attempt(Exception):
    """One attempt that brought no reply. wait: seconds until the next (None: back off); again: whether there is one."""

    def __init__(self, reason: str, detail: str, wait: float | None = None, again: bool = True, status: int = 0):
        super().__init__(detail)
        self.reason, self.wait, self.again, self.status = reason, wait, again, status


class _Gate:
    """How many requests may be under way: `most`, fewer after a 429 (a quarter less, at most once a second), and one
    more for every full round of answers until it is `most` again. While a pause is on, none is sent."""

    def __init__(self, most: int):
        self.most = most
        self.limit = float(most)
        self.running = 0
        self._resume_at = 0.0
        self._slowed_at = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._open = False

    async def enter(self) -> None:
        while not self._open:
            if (pause := self._resume_at - time.monotonic()) > 0:
                await asyncio.sleep(pause * random.uniform(1.0, 1.1) + 0.001)
            elif self.running < int(self.limit):
                break
            else:
                turn = asyncio.get_running_loop().create_future()
                self._waiting.append(turn)
                try:
                    await turn
                except asyncio.CancelledError:
                    if turn.done() and not turn.cancelled():
                        self._wake()
                    raise
        self.running += 1

    def leave(self) -> None:
        self.running -= 1
        self._wake()

    def _wake(self) -> None:
        room = int(self.limit) - self.running
        while self._waiting and room > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                room -= 1

    def went_well(self) -> None:
        self.limit = min(float(self.most), self.limit + 1 / self.limit)

    def slow_down(self, pause: float | None) -> None:
        now = time.monotonic()
        if pause:
            self._resume_at = max(self._resume_at, now + pause)
        if now - self._slowed_at > 1.0:
            self._slowed_at = now
            self.limit = max(1.0, self.limit * 0.75)

    def open_for_all(self) -> None:
        """The run has stopped: everybody who waits may come and see why."""
        self._open = True
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and what it was raised from, down to the first cause."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _record(content: bytes) -> Record:
    """What is stored of a chat completion. Raises ValueError, KeyError, TypeError or IndexError for another JSON."""
    reply = json.loads(content)
    choice = reply["choices"][0]
    message, usage = choice["message"], reply.get("usage") or {}
    text = message.get("content") or ""
    reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
    if not isinstance(text, str) or not isinstance(reasoning, str):
        raise TypeError("content is not text")
    if thought := _THINK.match(text):
        reasoning, text = reasoning or thought.group(1).strip(), text[thought.end() :].lstrip()
    return {
        "text": text,
        **({"reasoning": reasoning} if reasoning else {}),
        "finish_reason": choice.get("finish_reason"),
        "model": reply.get("model"),
        "prompt_tokens": int(usage.get("prompt_tokens") or 0),
        "completion_tokens": int(usage.get("completion_tokens") or 0),
    }


def _reply(record: Record, stored: bool) -> Reply:
    tokens = record["prompt_tokens"], record["completion_tokens"]
    return Reply(record["text"], record.get("reasoning", ""), stored, *tokens)


def _fault_of(record: Record, usable: Usable) -> tuple[str, str] | None:
    """(reason, detail) why a stored reply is no answer, None where it is one."""
    if record["finish_reason"] in ("length", "content_filter"):
        return record[
            "finish_reason"
        ], f"finish_reason is {record['finish_reason']} after {len(record['text'])} characters"
    if not record["text"].strip():
        return "empty", "the answer is empty" + (", only reasoning came" if record.get("reasoning") else "")
    why = usable(record["text"])
    return None if why is None else ("unreadable", why)


def _stored_tokens(folder: RunFolder) -> tuple[int, int]:
    records = [record for replies in folder.responses.values() for record in replies]
    return sum(r.get("prompt_tokens", 0) for r in records), sum(r.get("completion_tokens", 0) for r in records)


def _expected_tokens(body: Mapping[str, Any]) -> float:
    return sum(len(message["content"]) for message in body["messages"]) / CHARACTERS_PER_TOKEN + 1


def _server_text(error: Any) -> str:
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        inner = inner if isinstance(inner, dict) else {"message": inner}
        words = [inner.get(name) for name in ("code", "type", "message", "detail", "param")]
        return " ".join(str(word) for word in words if word) or json.dumps(body)
    return str(body or error.response.reason_phrase or "no text")


def _loopback(url: str) -> bool:
    return re.match(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:|/|$)", url) is not None


def api_key(base_url: str, variable: str, environ: Mapping[str, str] | None = None) -> str:
    """The key in the environment `variable`; a server on this machine may do without. Raises InputError."""
    key = (os.environ if environ is None else environ).get(variable, "").strip()
    if not key and not _loopback(base_url):
        raise InputError(f"{base_url} needs an API key: set the environment variable {variable} (`api_key_env`).")
    return key or "EMPTY"
