"""Extraction through any OpenAI-compatible server: the contract's prompt, greedy, bound to its schema or grammar
where the server can.

A service needs none of this, the exported folder carries all that the client reads; this is the client to copy
from.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic
from urllib.parse import urlsplit, urlunsplit

from extractors import extractor_from_json
from extractors.contract import Extractor, Input, InputError, Output
from extractors.endpoint import binding, retry_after
from serve.answers import Answer, chat_messages, failed_request, read_answer

ATTEMPTS = 5
LONGEST_WAIT = 60.0  # seconds between two attempts, whatever Retry-After asks for
_RETRIED = {408, 409, 425, 429}  # and every 5xx
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_NAMES_SCHEMA = ("response_format", "json_schema", "structured", "guided", "grammar", "schema")


class ServerError(RuntimeError):
    """A server that cannot be used at all: not there, key refused, model unknown. Says what to change."""


class ExtractorClient(Generic[Input, Output]):
    """Sends inputs to the chat endpoint at `url` and reads the answers by the extractor's contract.

    url: http://host:port or …/v1; model: None takes the only one that the server lists; api_key: None takes
    $OPENAI_API_KEY, which a server on this machine may do without; max_tokens: None takes the contract's; timeout:
    seconds for one request. `notes` says what the server did not accept.
    """

    def __init__(
        self,
        url: str,
        extractor: Extractor[Input, Output],
        *,
        model: str | None = None,
        api_key: str | None = None,
        guided: bool = True,
        concurrency: int = 16,
        max_tokens: int | None = None,
        timeout: float = 120.0,
    ):
        self.extractor = extractor
        self.model = model
        self.guided = guided
        self.concurrency = max(1, concurrency)
        self.max_tokens = max_tokens or extractor.decoding.max_tokens
        self.timeout = timeout
        self.notes: list[str] = []
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"{url!r} is no server address: write http://HOST:PORT.")
        if parts.username or parts.password:
            raise InputError(
                "the server address holds a user name or password: give the key as OPENAI_API_KEY instead."
            )
        path = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
        self.url = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        self._loopback = parts.hostname in _LOOPBACK
        key = api_key or os.environ.get("OPENAI_API_KEY") or ("EMPTY" if self._loopback else "")
        if not key:
            raise InputError(
                f"{self.url} needs an API key: set OPENAI_API_KEY (any word, where the server asks for none)."
            )
        self._key = key
        self._template_kwargs = dict(extractor.decoding.chat_template_kwargs)
        self._answered = False

    def extract_all(
        self,
        inputs: Sequence[Input],
        shots: Sequence[tuple[Input, Output]] = (),
        on_progress: Callable[[int, int], None] | None = None,
    ) -> list[Answer[Output]]:
        """`extract` for callers without an event loop."""
        return asyncio.run(self.extract(inputs, shots, on_progress))

    async def extract(
        self,
        inputs: Sequence[Input],
        shots: Sequence[tuple[Input, Output]] = (),
        on_progress: Callable[[int, int], None] | None = None,
    ) -> list[Answer[Output]]:
        """Answers in the order of `inputs`, at most `concurrency` requests at a time. A request that fails after its
        retries is an Answer whose error is `request`. Raises ServerError where no row can succeed."""
        import openai

        answers: dict[int, Answer[Output]] = {}
        rows = iter(enumerate(inputs))
        # A proxy of the environment is meant for the world outside, not for a server on this machine.
        transport = openai.DefaultAsyncHttpxClient(trust_env=not self._loopback, timeout=self.timeout)
        async with openai.AsyncOpenAI(
            base_url=self.url, api_key=self._key, max_retries=0, timeout=self.timeout, http_client=transport
        ) as api:
            model = self.model or await self._only_model(api)

            async def worker() -> None:
                for place, value in rows:  # shared by all workers: each takes the next row that is left
                    answers[place] = await self._ask(api, model, value, shots)
                    if on_progress is not None:
                        on_progress(len(answers), len(inputs))

            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self.concurrency, len(inputs))):
                        group.create_task(worker())
            except BaseExceptionGroup as failed:
                raise failed.exceptions[0] from None
        return [answers[place] for place in range(len(inputs))]

    async def _only_model(self, api: Any) -> str:
        try:
            names = [entry.id for entry in (await self._retrying(api.models.list)).data]
        except _RequestFailed as failure:
            raise ServerError(
                f"{self.url} does not list its models ({failure}): check the address, or name the model."
            ) from None
        if len(names) != 1:
            listed = ", ".join(names[:10]) or "none"
            raise ServerError(f"{self.url} serves {len(names)} models ({listed}): say which one to use as `model`.")
        return str(names[0])

    async def _ask(self, api: Any, model: str, value: Input, shots: Sequence[tuple[Input, Output]]) -> Answer[Output]:
        messages = chat_messages(self.extractor, value, shots)
        decoding = self.extractor.decoding
        while True:
            guided, template_kwargs = self.guided, self._template_kwargs
            request: dict[str, Any] = {
                "model": model,
                "messages": messages,
                "temperature": decoding.temperature,
                "max_tokens": self.max_tokens,
            }
            if decoding.stop:
                request["stop"] = list(decoding.stop)
            bound = binding(self.extractor, self.extractor.grammar_for(value)) if guided else {}
            if template_kwargs:
                bound = {**bound, "chat_template_kwargs": template_kwargs}
            if bound:
                request["extra_body"] = bound
            try:
                reply = await self._retrying(api.chat.completions.create, **request)
            except _RequestFailed as failure:
                refused = str(failure).casefold() if failure.status in (400, 422) else ""
                if guided and any(name in refused for name in _NAMES_SCHEMA):
                    self._go_without(next(iter(bound)), failure, self.guided)
                    self.guided = False
                elif template_kwargs and "chat_template_kwargs" in refused:
                    self._go_without("chat_template_kwargs", failure, bool(self._template_kwargs))
                    self._template_kwargs = {}
                elif failure.status == 0 and not self._answered:
                    raise ServerError(
                        f"{self.url} cannot be reached ({failure}): is the server running there?"
                    ) from None
                else:
                    return failed_request(str(failure))
                continue
            self._answered = True
            return self._read(reply)

    def _go_without(self, what: str, failure: _RequestFailed, first: bool) -> None:
        """Other requests may be under way with the same field: only the first refusal is worth a note."""
        if first:
            self.notes.append(f"the server refused `{what}` ({failure}): asked without it from then on")

    def _read(self, reply: Any) -> Answer[Output]:
        choices = getattr(reply, "choices", None)
        if not choices:
            return failed_request("the server's reply holds no choices")
        message, extra = choices[0].message, choices[0].message.model_extra or {}
        reasoning = extra.get("reasoning_content") or extra.get("reasoning")
        usage = reply.usage
        return read_answer(
            self.extractor,
            message.content,
            choices[0].finish_reason,
            reasoning=reasoning if isinstance(reasoning, str) else None,
            prompt_tokens=(usage.prompt_tokens if usage else 0) or 0,
            completion_tokens=(usage.completion_tokens if usage else 0) or 0,
        )

    async def _retrying(self, send: Callable[..., Any], **request: Any) -> Any:
        """One request, repeated with growing waits while the fault may pass. Raises _RequestFailed, or ServerError
        where every other request would fail too."""
        import openai

        for attempt in range(1, ATTEMPTS + 1):
            wait = min(LONGEST_WAIT, 0.25 * 2**attempt * random.uniform(0.5, 1.0))
            try:
                return await send(**request)
            except openai.APIStatusError as error:
                status, detail = error.status_code, self._clean(_server_text(error))
                if status in (401, 403):
                    raise ServerError(
                        f"{self.url} refused the API key ({status}): set OPENAI_API_KEY to a valid one."
                    ) from None
                if status == 404:
                    raise ServerError(
                        f"{self.url} answers 404 ({detail}): check the address and the model's name."
                    ) from None
                failure = _RequestFailed(status, f"HTTP {status}: {detail}")
                if status not in _RETRIED and status < 500:
                    raise failure from None
                asked = retry_after(error.response.headers.get("retry-after"), LONGEST_WAIT)
                wait = wait if asked is None else asked
            except openai.APITimeoutError:
                failure = _RequestFailed(0, f"no answer within {self.timeout:g} s")
            except openai.APIConnectionError as error:
                failure = _RequestFailed(0, self._clean(str(error.__cause__ or error)))
            except (openai.APIError, json.JSONDecodeError) as error:  # a reply that is not the protocol's
                raise _RequestFailed(-1, f"the reply cannot be read: {self._clean(str(error))}") from None
            if attempt == ATTEMPTS:
                raise failure from None
            await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    def _clean(self, text: str) -> str:
        """Some servers repeat the key in their error text; nothing that we print may hold it."""
        text = " ".join(text.split())[:300]
        return text if self._key == "EMPTY" else text.replace(self._key, "***")


class _RequestFailed(Exception):
    """status: of HTTP, 0 where the server could not be reached, -1 for a reply that makes no sense."""

    def __init__(self, status: int, detail: str):
        super().__init__(detail)
        self.status = status


def folder_extractor(folder: Path) -> Extractor[Any, Any]:
    """The extractor of an exported folder. Raises InputError for a folder without, or with an unknown, contract."""
    path = folder / "extractor.json"
    if not path.is_file():
        raise InputError(
            f"{folder} is no exported folder: it has no extractor.json (`mnemosmith export RUN OUT` makes one)."
        )
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is not JSON: {error}.") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} holds no JSON object.")
    return extractor_from_json(data)


def _server_text(error: Any) -> str:
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        inner = inner if isinstance(inner, dict) else {"message": inner}
        text = inner.get("message") or inner.get("detail") or json.dumps(body)
        return f"{text} (param {inner['param']})" if inner.get("param") else str(text)
    return str(body or error.response.reason_phrase or "no text")
