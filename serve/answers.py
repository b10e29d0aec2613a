"""What a model answered: the one place where a server's or a generator's reply becomes an output or a typed failure.

A reply that is empty, cut off, withheld or unreadable is a failure and counted as one. It is never an empty list of
memories: "nothing to remember" is an answer that the model has to give.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from extractors.contract import ExtractionError, Extractor, Input, Message, Output
from extractors.jsontext import excerpt

SEPARATORS = (",", ":")  # between the JSON tokens of `render`; guided decoding admits no other white space


@dataclass(frozen=True)
class Answer(Generic[Output]):
    """One reply. text: as the model wrote it, without special tokens; value: the output, or why there is none;
    finish_reason: "stop", "length", … or "error" where no reply came; token counts are 0 where the server gave none."""

    text: str
    value: Output | ExtractionError
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int

    @property
    def ok(self) -> bool:
        return not isinstance(self.value, ExtractionError)


def read_answer(
    extractor: Extractor[Any, Output],
    content: str | None,
    finish_reason: str | None,
    *,
    reasoning: str | None = None,
    prompt_tokens: int = 0,
    completion_tokens: int = 0,
) -> Answer[Output]:
    """A reply as an Answer. reasoning: the text that a server's reasoning parser split off; it is read where
    `content` is empty, since such parsers move a guided JSON answer there when the model does not think."""
    text = content if content and content.strip() else reasoning or content or ""
    reason = finish_reason or "unknown"
    value = extractor.parse(text)
    if reason == "length":
        partial = value.partial if isinstance(value, ExtractionError) else value
        detail = "the answer was cut off" + (f" after {completion_tokens} tokens" if completion_tokens else "")
        value = ExtractionError("truncated", len(text), excerpt(text, len(text)), detail, partial=partial)
    elif reason == "content_filter":
        value = ExtractionError("content_filter", 0, excerpt(text, 0), "the server withheld the answer")
    return Answer(text, value, reason, prompt_tokens, completion_tokens)


def failed_request(detail: str, prompt_tokens: int = 0) -> Answer[Any]:
    """The Answer of a row that the model never replied to."""
    return Answer("", ExtractionError("request", 0, "", detail), "error", prompt_tokens, 0)


def chat_messages(
    extractor: Extractor[Input, Output], value: Input, shots: Sequence[tuple[Input, Output]] = ()
) -> list[Message]:
    """The contract's messages for `value`; each of `shots` stands before them as a user turn and its rendered
    answer."""
    messages = extractor.messages(value)
    examples: list[Message] = []
    for shot, output in shots:
        examples += [message for message in extractor.messages(shot) if message["role"] != "system"]
        examples.append({"role": "assistant", "content": extractor.render(output)})
    first = next(place for place, message in enumerate(messages) if message["role"] != "system")
    return [*messages[:first], *examples, *messages[first:]]


def count_failures(answers: Iterable[Answer[Any]]) -> Counter[str]:
    """How many answers failed, by kind of error."""
    return Counter(answer.value.kind for answer in answers if isinstance(answer.value, ExtractionError))
