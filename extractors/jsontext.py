"""Find the JSON value in what a model printed: prose, fences, <think>, trailing commas, bad escapes, cut-off text.

A strict `json.loads` fails on all of these, and a repairing parser is too kind: it also "repairs" a truncated or broken
answer into a shorter one, which would turn a failure into "nothing more to remember". This reader accepts slips that
leave the meaning whole; an answer that breaks off or falls apart is an error, which holds what was complete until then.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from extractors.contract import ErrorKind, ExtractionError
from extractors.text import paired_surrogates

_DEEPEST = 32  # brackets within brackets; a model that opens more of them is in a loop
_THINK = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_START = re.compile(r"[\[{]|</think>")
# How an answer begins, even a broken one; prose has brackets too, but hardly these: [{  [[  ["subject":  {"
_ANSWER = re.compile(r"""\[[\s\ufeff]*(?:[\[{]|"[^"]*"\s*:)|\{[\s\ufeff]*["']""")
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]|</think>', re.DOTALL)
_WHITE = re.compile(r"[\s\ufeff]*")
_BARE = re.compile(r"[-+.\w]+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
# A quote that closes a Python-style string; an apostrophe is followed by more of its word.
_SINGLE_QUOTE_CLOSES = re.compile(r"'[\s\ufeff]*(?:[,:\]}]|\Z)")


@dataclass(frozen=True)
class Found:
    """A JSON value and where it stands in the text: value, start and end (character offsets)."""

    value: Any
    start: int
    end: int


class _Stop(Exception):
    """No value can be read: the text ends inside it (`cut`), or another character is due at `position`.

    `complete` holds the finished items of the outermost open array.
    """

    def __init__(self, position: int, cut: bool = False):
        self.position = position
        self.cut = cut
        self.complete: list[Any] = []


def excerpt(text: str, position: int, width: int = 80) -> str:
    """At most `width` characters of `text` around `position`."""
    start = max(0, min(position - width // 2, len(text) - width))
    return text[start : start + width]


def after_thoughts(text: str) -> int:
    """Where a text goes on behind the <think> blocks that it begins with."""
    start = 0
    while thought := _THINK.match(text, start):
        start = thought.end()
    return start


def find_json(text: str, fits: Callable[[Any], bool]) -> Found | ExtractionError:
    """The JSON value that a model meant. `fits` says whether a value has the wanted shape.

    The longest value that fits and holds something wins (prose may hold a small `[]` or `{x}`); objects that also fit
    as a list are one list, since models number their answers or print one object a line. Without such a value, a
    truncated or malformed one is an error, one of another shape comes back for the caller to refuse, and only then does
    an empty one count. Errors: empty, no_json, truncated, schema (malformed).
    """
    body_start = after_thoughts(text)
    first = _skip_white(text, body_start)
    if first == len(text):
        return ExtractionError("empty", body_start, excerpt(text, body_start), "the answer is empty")
    if text.startswith("<think>", first):
        return ExtractionError("truncated", len(text), excerpt(text, len(text)), "the <think> block never ends")

    found: list[Found] = []
    broken: ExtractionError | None = None
    broken_object = False
    position = first
    while match := _START.search(text, position):
        start = match.start()
        if match.group() == "</think>":  # the prompt had the opening tag: all until here was thought, drafts included
            found, broken, broken_object, position = [], None, False, match.end()
            continue
        try:
            value, position = _value(text, start, 0)
            found.append(Found(value, start, position))
        except _Stop as stop:
            if not stop.cut and not _ANSWER.match(text, start):
                position = start + 1
                continue
            kind: ErrorKind = "truncated" if stop.cut else "schema"
            detail = "the text ends inside the JSON" if stop.cut else "the JSON is malformed"
            broken = broken or ExtractionError(kind, stop.position, excerpt(text, stop.position), detail, stop.complete)
            broken_object = broken_object or text[start] == "{"
            position = len(text) if stop.cut else _end_of_brackets(text, start)

    objects = [item for item in found if isinstance(item.value, dict) and fits(item.value)]
    values = [item.value for item in objects]
    if objects and fits(values):
        if broken and broken_object:  # one line of several is lost, so the rest is not the answer
            found = [item for item in found if item not in objects]
            broken.partial = [*values, *broken.partial]
        elif len(objects) > 1:
            found = [item for item in found if item not in objects]
            found.append(Found(values, objects[0].start, objects[-1].end))

    def rank(item: Found) -> tuple[int, int]:
        empty = not item.value or (isinstance(item.value, dict) and not any(item.value.values()))
        nested = isinstance(item.value, dict) or any(isinstance(inner, (dict, list)) for inner in item.value)
        full = 0 if empty else 3 if fits(item.value) else 2 if nested else 0
        return full or int(fits(item.value)), item.end - item.start

    best = max(found, key=rank, default=None)
    if best is not None and (broken is None or rank(best)[0] == 3):
        return best
    return broken or ExtractionError("no_json", first, excerpt(text, first), "there is no JSON value in the answer")


def _value(text: str, i: int, depth: int) -> tuple[Any, int]:
    i = _next(text, i)
    char = text[i]
    if char in "[{":
        if depth == _DEEPEST:
            raise _Stop(i)
        return (_array if char == "[" else _object)(text, i, depth + 1)
    if char in "\"'":
        return _string(text, i)
    bare = _BARE.match(text, i)
    if bare is None:
        raise _Stop(i)
    if bare.end() == len(text):
        raise _Stop(bare.end(), cut=True)
    if bare.group() in _WORDS:
        return _WORDS[bare.group()], bare.end()
    if not _NUMBER.fullmatch(bare.group()):
        raise _Stop(i)
    try:
        number = json.loads(bare.group())
    except ValueError:  # 007, or more digits than an int may have
        raise _Stop(i) from None
    if isinstance(number, float) and math.isinf(number):
        raise _Stop(i)
    return number, bare.end()


def _skip_white(text: str, i: int) -> int:
    white = _WHITE.match(text, i)
    return white.end() if white else i  # it always matches, if only nothing


def _next(text: str, i: int) -> int:
    i = _skip_white(text, i)
    if i == len(text):
        raise _Stop(i, cut=True)
    return i


def _array(text: str, i: int, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    try:
        i = _next(text, i + 1)
        while text[i] != "]":
            item, i = _value(text, i, depth)
            items.append(item)
            i = _next(text, i)
            if text[i] == ",":
                i = _next(text, i + 1)  # a comma before `]` is a slip, not a fault
            elif text[i] not in "]{":  # so is none between } and {
                raise _Stop(i)
    except _Stop as stop:
        stop.complete = items or stop.complete
        raise
    return items, i + 1


def _object(text: str, i: int, depth: int) -> tuple[dict[str, Any], int]:
    fields: dict[str, Any] = {}
    i = _next(text, i + 1)
    while text[i] != "}":
        if text[i] not in "\"'":
            raise _Stop(i)
        key_start = i
        key, i = _string(text, i)
        i = _next(text, i)
        if text[i] != ":" or key in fields:  # a key that comes twice would lose a value
            raise _Stop(key_start if key in fields else i)
        fields[key], i = _value(text, i + 1, depth)  # {"triplets": [ … cut: the array says what is complete
        i = _next(text, i)
        if text[i] == ",":
            i = _next(text, i + 1)
        elif text[i] != "}":
            raise _Stop(i)
    return fields, i + 1


def _string(text: str, i: int) -> tuple[str, int]:
    quote = text[i]
    parts: list[str] = []
    i += 1
    while i < len(text):
        char = text[i]
        if char == quote and (quote == '"' or _SINGLE_QUOTE_CLOSES.match(text, i)):
            return paired_surrogates("".join(parts)), i + 1
        if char != "\\":
            parts.append(char)
            i += 1
            continue
        if i + 1 >= len(text):
            break
        escape = text[i + 1]
        digits = text[i + 2 : i + 6]
        if escape == "u" and re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            parts.append(chr(int(digits, 16)))
            i += 6
        elif escape in _ESCAPES:
            parts.append(_ESCAPES[escape])
            i += 2
        else:  # \x, \u12: keep what was printed, it is text and not an escape
            parts.append("\\" + escape)
            i += 2
    raise _Stop(len(text), cut=True)


def _end_of_brackets(text: str, start: int) -> int:
    """Where the bracket at `start` is closed again; where the thought ends, or the text, if it never is."""
    opened: list[str] = []
    count = {"[": 0, "{": 0}
    for match in _BRACKET.finditer(text, start):
        token = match.group()
        opener = {"]": "[", "}": "{"}.get(token)
        if token == "</think>":
            return match.start()
        if token in count:
            opened.append(token)
            count[token] += 1
        elif opener and count[opener]:  # else a closing bracket without its opening one: part of what is broken
            closed = ""
            while closed != opener:
                closed = opened.pop()
                count[closed] -= 1
            if not opened:
                return match.end()
    return len(text)
