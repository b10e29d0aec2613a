"""Continuity (QUMem, arXiv 2608.16168): does a user's utterance go on with what the one before it was about?

Input: two adjacent utterances of the user, without the assistant's reply between them. Output: 1 where both belong to
the same event, task or decision process, 0 where an episode ends between them. N utterances make N - 1 decisions.

The paper publishes neither prompt nor training data; the wording is ours. The answer is one digit, so that a language
model's probability of either label is that of one token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from extractors.contract import Decoding, ErrorKind, ExtractionError, Extractor, InputError, Message
from extractors.jsontext import after_thoughts, excerpt, find_json
from extractors.text import HOW_TO_CLEAN, fill, one_line, spoken

BOUNDARY, CONTINUES = 0, 1
FIELDS = ("previous", "current")


@dataclass(frozen=True)
class UtterancePair:
    """Two utterances of one user, the earlier one first; whatever was said between them by others is left out."""

    previous: str
    current: str


_PROMPTS: dict[str, dict[str, str]] = {
    "standard": {
        "system": (
            "You read a user's side of a conversation and find where one episode ends and the next one begins. Given are "
            "two messages that the user sent one after the other; what the assistant said in between is left out. Answer "
            "1 if the current message goes on with the event, task or decision of the previous one: it adds to it, reacts "
            "to what came of it, changes its mind about it, or comes back to it from an aside. Answer 0 if it begins "
            "another event, task or decision, even where the same person, place or thing is mentioned again. Answer with "
            "that one digit and nothing else."
        ),
        "user": "Previous message: {previous}\nCurrent message: {current}",
    },
    "compact": {
        "system": "Answer 1 if the second message goes on with the first one's event, task or decision, else 0.",
        "user": "{previous}\n---\n{current}",
    },
}
_HOW = (
    f"1. In both utterances, {HOW_TO_CLEAN}. "
    "2. Fill {previous} and {current} of the user message in one pass: braces in an utterance are text. The system "
    "message is sent as it stands."
)

# What may stand around a label that has its line to itself: quotes, brackets, emphasis, code marks.
_OPEN, _CLOSE = r"[\s\ufeff*_`\"'“‘(\[]*", r"[\s\ufeff*_`\"'”’)\].]*"
_NAME = r"(?:continuity|label|answer|output|result|prediction|decision)"
_DIGIT = r"(?P<digit>[01])(?:\.0+)?"
_NAMED = (
    rf"(?:(?:so|thus|hence|therefore|the|my|final|correct),?\s+)*{_NAME}{_CLOSE}"
    rf"(?:(?:is|should be|would be)\s*[:=]?|[:=]){_OPEN}"
)
_OWN_LINE = re.compile(rf"{_OPEN}(?:{_NAMED})?{_DIGIT}{_CLOSE}", re.IGNORECASE)
# A sentence of the answer: "So the label is 1, since …" but not "If the label is 1, …" or "the label is not 1".
_SENTENCE = re.compile(rf"(?:^|[.!?:;,])[ \t*_]*{_NAMED}{_DIGIT}(?!\w|[.,]\d)", re.IGNORECASE | re.MULTILINE)
# An answer that begins with its digit ("0 - another event") and is no numbered list.
_AT_START = re.compile(rf"{_OPEN}{_DIGIT}{_CLOSE}(?:[,:;(–—]|-\s)\s*(?=[^\W\d])(?![\s\S]*\n[ \t*_]*\d)")
_ANY_DIGIT = re.compile(r"(?<![\w.,-])[01](?!\w|[.,]\d)")
_KEYS = {"continuity", "label", "answer", "output", "result", "prediction", "decision"}


class ContinuityExtractor(Extractor[UtterancePair, int]):
    """The `continuity` contract; outputs are CONTINUES (1) and BOUNDARY (0). prompt: "standard" or "compact". Raises
    InputError for another prompt."""

    name = "continuity"
    version = "1"
    decoding = Decoding(max_tokens=16)

    def __init__(self, prompt: str = "standard"):
        if prompt not in _PROMPTS:
            raise InputError(f"`prompt` is {prompt!r}: write {' or '.join(_PROMPTS)}.")
        self._prompt_name = prompt

    def options(self) -> dict[str, Any]:
        return {"prompt": self._prompt_name}

    def prompt(self) -> dict[str, Any]:
        """Templates with slots in braces, and in `how` what a service must do to fill them as `messages` does."""
        texts = _PROMPTS[self._prompt_name]
        return {"messages": [{"role": role, "content": texts[role]} for role in ("system", "user")], "how": _HOW}

    def messages(self, value: UtterancePair) -> list[Message]:
        texts = _PROMPTS[self._prompt_name]
        slots = {name: spoken(getattr(value, name)) for name in FIELDS}
        return [
            {"role": "system", "content": texts["system"]},
            {"role": "user", "content": fill(texts["user"], **slots)},
        ]

    def render(self, output: int) -> str:
        return str(output)

    def parse(self, text: str) -> int | ExtractionError:
        """The label in a model's text: in a JSON object under a name such as `continuity` or `label`, on a line of its
        own, or in a sentence that says "the label is …". Labels that contradict each other are an error, and so are
        words ("yes": to which question?), numbers in passing, and objects that name something else ("boundary")."""
        found = find_json(text, _says_label)
        if isinstance(found, ExtractionError):
            if found.kind != "no_json":
                found.partial = ()
                return found
            labels = set()
        elif _says_label(found.value):
            labels = _labels_of(found.value)
        elif _holds_object(found.value):
            return ExtractionError(
                "schema", found.start, excerpt(text, found.start), f"{found.value!r:.60} names no label 0 or 1"
            )
        else:  # [1], or brackets in prose
            labels = set()
        start = _after_thought(text)
        body = text[start:]
        lines = [_OWN_LINE.fullmatch(line) for line in body.splitlines()]
        labels |= {int(line["digit"]) for line in lines if line}
        if not labels:
            said = [*_SENTENCE.finditer(body), *filter(None, [_AT_START.match(body)])]
            # A sentence may weigh both labels; only one that speaks of a single label is an answer.
            digits = {int(match.group()) for match in _ANY_DIGIT.finditer(body)}
            labels = {int(match["digit"]) for match in said} | (digits if said else set())
        if len(labels) == 1:
            return labels.pop()
        if labels:
            return ExtractionError("schema", start, excerpt(text, start), "it speaks of both labels, 0 and 1")
        kind: ErrorKind = "schema" if any(char.isdigit() for char in body) else "no_json"
        return ExtractionError(kind, start, excerpt(text, start), "one digit is due, 1 (continues) or 0 (boundary)")

    @property
    def json_schema(self) -> dict[str, Any]:
        return {"type": "integer", "enum": [BOUNDARY, CONTINUES]}

    def read_input(self, data: Any) -> UtterancePair:
        if not isinstance(data, Mapping) or set(data) != set(FIELDS):
            raise InputError('`input` is due as {"previous": …, "current": …}, two utterances of the user.')
        for name in FIELDS:
            if not isinstance(data[name], str) or not one_line(data[name]):
                raise InputError(f"`input.{name}` is {data[name]!r:.60}: write the utterance, text that is not empty.")
        return UtterancePair(data["previous"], data["current"])

    def read_output(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int) or data not in (BOUNDARY, CONTINUES):
            raise InputError(f"`gold` is {data!r:.60}: write 1 (the same event goes on) or 0 (boundary).")
        return data

    def write_output(self, output: int) -> int:
        return output


def _says_label(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, dict) and _says_label(item) for item in value)
    return isinstance(value, dict) and bool(_labels_of(value))


def _labels_of(value: Any) -> set[int]:
    """The labels under the keys that name one; the empty set where a key's value is no label."""
    if isinstance(value, list):
        return set().union(*map(_labels_of, value))
    labels = [_label(item) for key, item in value.items() if key.strip().casefold() in _KEYS]
    return set() if None in labels else {label for label in labels if label is not None}


def _label(value: Any) -> int | None:
    if isinstance(value, str) and value.strip() in ("0", "1"):
        return int(value)
    if isinstance(value, (bool, int, float)) and value in (BOUNDARY, CONTINUES):
        return int(value)
    return None


def _holds_object(value: Any) -> bool:
    return isinstance(value, dict) or any(isinstance(item, dict) for item in value)


def _after_thought(text: str) -> int:
    """Where the answer begins: behind the <think> blocks, also where the prompt had the opening tag."""
    start = after_thoughts(text)
    closed = text.rfind("</think>")
    return max(start, closed + len("</think>")) if closed >= 0 else start
