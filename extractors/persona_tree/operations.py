"""Operations on a PersonaTree as text (Inside Out, arXiv 2601.05171, stage b): one a line, and how models print them.

    ADD(Identity.Name_and_Origin.Name, "Mia Sorensen")
    UPDATE(Behaviour.Interests.Hobbies, "climbing; pottery since May, \\"badly\\"")
    DELETE(Identity.Work.Employer, None)

or `NO_OP()` alone where nothing changes. A path is words of A-Z, a-z, 0-9 and _ joined by dots. A value is a JSON string
on one line: quotes and backslashes are escaped, so are control characters (C0, DEL, C1) and the line separators U+2028
and U+2029; all other Unicode stands as it is. `render` prints exactly one form of a list. `parse` reads that and the
slips that leave the meaning whole; a line that is meant as an operation but cannot be read makes the whole answer an
error, which holds the operations that could be read: it is never dropped and never becomes NO_OP.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from extractors.contract import ErrorKind, ExtractionError, InputError
from extractors.jsontext import after_thoughts, excerpt, find_json
from extractors.text import paired_surrogates

Kind = Literal["ADD", "UPDATE", "DELETE", "NO_OP"]
KINDS: tuple[Kind, ...] = get_args(Kind)

LineErrorKind = Literal[
    "syntax",  # begins as an operation, but is not written as one
    "operation",  # an operation that does not exist, such as MERGE
    "path",  # not words joined by dots
    "value",  # ADD or UPDATE without a quoted value, or with an empty one
    "truncated",  # the text ends inside the operation
    "mixed",  # NO_OP beside operations
]


@dataclass(frozen=True)
class Operation:
    """One edit. NO_OP has neither path nor value, DELETE has no value. Nothing is checked here: `render`, the executor
    and `operation_from_json` refuse what cannot be."""

    kind: Kind
    path: str = ""
    value: str | None = None


NO_OP = Operation("NO_OP")


@dataclass(frozen=True)
class LineError:
    """A line that cannot be read. line: from 1; position: character offset of the fault; excerpt: at most 80 characters."""

    line: int
    kind: LineErrorKind
    excerpt: str
    detail: str
    position: int


@dataclass(frozen=True)
class Reading:
    """What stands in a text: the operations in its order, and the lines that should be operations but are none."""

    operations: tuple[Operation, ...]
    errors: tuple[LineError, ...]


_PATH = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029]")  # those that json.dumps leaves as they are


def is_path(text: str) -> bool:
    """Whether `text` is written as a path: words of A-Z, a-z, 0-9 and _ joined by dots."""
    return _PATH.fullmatch(text) is not None


def clean_value(text: str) -> str:
    """A value as trees hold it: without outer white space; a lone surrogate, which no file can hold, becomes U+FFFD."""
    return paired_surrogates(text).strip()


def quote(value: str) -> str:
    """The JSON string of a value as `render` prints it."""
    text = json.dumps(clean_value(value), ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def render(operations: Sequence[Operation]) -> str:
    """The one form of a list. Raises InputError for a list that has none: no operation, NO_OP beside others, a path
    that is none, a value missing or out of place."""
    if not operations:
        raise InputError("an empty list of operations cannot be written: NO_OP stands for no change.")
    lines = []
    for operation in operations:
        _check(operation, alone=len(operations) == 1)
        if operation.kind == "NO_OP":
            lines.append("NO_OP()")
        else:
            value = "None" if operation.value is None else quote(operation.value)
            lines.append(f"{operation.kind}({operation.path}, {value})")
    return "\n".join(lines)


def _check(operation: Operation, alone: bool) -> None:
    kind, path, value = operation.kind, operation.path, operation.value
    if kind not in KINDS:
        raise InputError(f"`op` is {kind!r:.60}: write {', '.join(KINDS)}.")
    if kind == "NO_OP":
        if path or value is not None:
            raise InputError("NO_OP has neither path nor value.")
        if not alone:
            raise InputError("NO_OP stands alone: leave it out beside other operations.")
        return
    if not is_path(path):
        raise InputError(f"`path` is {path!r:.60}: write words of A-Z, a-z, 0-9 and _ joined by dots.")
    if kind == "DELETE" and value is not None:
        raise InputError(f"DELETE of {path:.60} has a value: leave it out.")
    if kind != "DELETE" and (value is None or not clean_value(value)):
        raise InputError(f"{kind} of {path:.60} has the value {value!r}: write text that is not empty.")


# JSON form: rows' gold, result files, teachers that can be bound to a JSON schema only


def operation_to_json(operation: Operation) -> dict[str, str]:
    """{"op", "path", "value"} without the fields that the kind does not have."""
    data = {"op": str(operation.kind)}
    if operation.kind != "NO_OP":
        data["path"] = operation.path
    if operation.value is not None:
        data["value"] = operation.value
    return data


def operations_from_json(data: Any) -> tuple[Operation, ...]:
    """Operations of a list of {"op", "path", "value"}; an empty list is NO_OP. Raises InputError that names the item."""
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise InputError(f'a list of {{"op", "path", "value"}} is due, not {data!r:.60}.')
    operations = []
    for place, item in enumerate(data):
        try:
            operations.append(_from_json(item, alone=len(data) == 1))
        except InputError as error:
            raise InputError(f"[{place}]: {error}") from None
    return tuple(operations) or (NO_OP,)


def _from_json(item: Any, alone: bool) -> Operation:
    if not isinstance(item, Mapping) or set(item) - {"op", "path", "value"}:
        raise InputError(f'{item!r:.60} is no object with "op", "path" and "value".')
    path = "" if item.get("path") is None else item["path"]
    value = item.get("value")
    if not isinstance(path, str) or not (value is None or isinstance(value, str)):
        raise InputError(f"`path` and `value` are text, not {path!r:.60} and {value!r:.60}.")
    operation = Operation(item.get("op", ""), path, value if value is None else clean_value(value))
    if operation.kind in ("DELETE", "NO_OP") and not operation.value:
        operation = Operation(operation.kind, path)
    _check(operation, alone)
    return operation


# What models print

# Before an operation: quotes, bullets, emphasis, numbering, a short label ("Operation 2:").
_LEAD = r"[\s\ufeff>*•–—#`+\"'\[-]*(?:\(?\d{1,3}[.):\]]?[ \t]+)?(?:[A-Za-z][\w ]{0,30}:[ \t]*)?[*`\s]*"
_WORD = r"(?P<word>[A-Za-z][A-Za-z_-]*)"
_CALL = re.compile(rf"{_LEAD}{_WORD}[ \t]*[(（]")
_NEXT_CALL = re.compile(rf"[\s,;.|&`*]*{_WORD}[ \t]*[(（]")
_BARE_NO_OP = re.compile(rf"{_LEAD}(?:NO_OP|NOOP|NO-OP)[`*\s]*(?:$|[.,;:#–—-])")
_BARE_OTHER = re.compile(rf"{_LEAD}(?P<word>ADD|UPDATE|DELETE)\b(?=.*\w\.\w)")
_NO_OPS = {"NO_OP", "NOOP", "NO-OP"}
_QUOTES = {'"': '"”', "'": "'’", "“": '”"', "„": '“”"', "‘": "’'", "`": "`"}  # opening one: those that close it
_PATH_ARGUMENT = re.compile(r"\s*[\"'`“‘]?\s*(?P<path>[^,()\"'`“”‘’\n]*?)\s*[\"'`”’]?\s*(?P<end>[,)）]|$)")
_LOOKS_LIKE_PATH = re.compile(r"\s*[\"'`“‘]?\w+\.\w")
# After the closing quote: the bracket, then the end, a separator, a comment or the next operation, but no more of a value.
_CLOSES = re.compile(
    r"\s*,?\s*[)）](?=[\s,;.|&`*\]\"']*(?:$|#|//|\(|->|</think>|[-–—]|[A-Z][A-Z_-]+\s*[(（]))", re.MULTILINE
)
_NOTHING = re.compile(r"\s*(?:None|none|null|NULL|nil)?\s*,?\s*(?P<close>[)）])?")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\", "/": "/"}


class _Fault(Exception):
    def __init__(self, kind: LineErrorKind, position: int, detail: str):
        super().__init__(detail)
        self.kind: LineErrorKind = kind
        self.position = position


def parse(text: str) -> tuple[Operation, ...] | ExtractionError:
    """The operations that a model printed, (NO_OP,) for an explicit NO_OP, or an ExtractionError.

    Its kind is `empty`, `truncated` (the text ends inside an operation or inside <think>), `no_json` (text without any
    operation) or `schema` (a line that cannot be read); `detail` names line and fault, `partial` the good operations.
    """
    start = after_thoughts(text)
    body = text[start:]
    if not body.strip(" \t\r\n\ufeff"):
        return ExtractionError("empty", start, excerpt(text, start), "the answer is empty")
    if body.lstrip().startswith("<think>"):
        return ExtractionError("truncated", len(text), excerpt(text, len(text)), "the <think> block never ends")
    reading = read(text)
    if reading.errors:
        first = reading.errors[0]
        cut = any(error.kind == "truncated" for error in reading.errors)
        kind: ErrorKind = "truncated" if cut else "schema"
        more = f" (and {len(reading.errors) - 1} more lines)" if len(reading.errors) > 1 else ""
        detail = f"line {first.line}, {first.kind}: {first.detail}{more}"
        return ExtractionError(kind, first.position, first.excerpt, detail, partial=reading.operations)
    return reading.operations or _parse_json(text, start)


def read(text: str) -> Reading:
    """Every operation and every fault of a text, line by line; prose lines count for nothing."""
    operations: list[Operation] = []
    errors: list[LineError] = []
    no_op: LineError | None = None
    position = after_thoughts(text)
    number = text.count("\n", 0, position) + 1
    while position < len(text):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        try:
            found, after = _statements(text, position, end)
            tag = text.find("</think>", after, end)  # within a value it is text
        except _Fault as fault:
            found, after, tag = [], end, -1
            errors.append(LineError(number, fault.kind, excerpt(text, fault.position), str(fault), fault.position))
        if tag >= 0:  # the prompt had the opening tag: all until here was thought, drafts included
            operations, errors, no_op, position = [], [], None, tag + len("</think>")
            continue
        if NO_OP in found and no_op is None:
            detail = "NO_OP stands beside other operations"
            no_op = LineError(number, "mixed", excerpt(text, position), detail, position)
        operations += [operation for operation in found if operation != NO_OP]
        # A value with raw line breaks in it reaches beyond its line.
        end = end if after <= end else text.find("\n", after) if text.find("\n", after) >= 0 else len(text)
        number += text.count("\n", position, end + 1)
        position = end + 1
    if no_op is not None and (operations or errors):
        errors.append(no_op)
        errors.sort(key=lambda error: error.position)
    return Reading(tuple(operations) if operations or errors or no_op is None else (NO_OP,), tuple(errors))


def _statements(text: str, start: int, end: int) -> tuple[list[Operation], int]:
    """The operations of the line text[start:end], and where the last one ends."""
    line = text[start:end]
    if _BARE_NO_OP.match(line):
        return [NO_OP], end
    call = _CALL.match(text, start, end)
    if end == len(text) and line and any(f"{kind}(".startswith(line) for kind in KINDS):
        raise _Fault("truncated", end, "the text ends inside the name of an operation")
    if call is None or not _is_operation(call, text):
        bare = _BARE_OTHER.match(line)
        if bare is not None and (call is None or call["word"].upper() not in KINDS):
            raise _Fault("syntax", start + bare.start("word"), f"{bare['word']}(path, value) has brackets")
        return [], start
    found = []
    position = start
    while call is not None and _is_operation(call, text):
        operation, position = _operation(call["word"].upper(), text, call.start("word"), call.end())
        found.append(operation)
        line_end = text.find("\n", position)
        call = _NEXT_CALL.match(text, position, len(text) if line_end < 0 else line_end)
    return found, position


def _is_operation(call: re.Match[str], text: str) -> bool:
    """Whether a word before a bracket is meant as an operation: one of ours, or another in capitals with a path."""
    word = call["word"]
    if word.upper() in {*KINDS, *_NO_OPS}:
        return True
    return word.isupper() and len(word) > 2 and _LOOKS_LIKE_PATH.match(text, call.end()) is not None


def _operation(word: str, text: str, start: int, arguments: int) -> tuple[Operation, int]:
    """The operation whose name begins at `start` and whose arguments begin at `arguments`, and where it ends."""
    if word in _NO_OPS:
        closed = _NOTHING.match(text, arguments)
        if closed is None or closed["close"] is None:
            raise _Fault(_cut(text, arguments, "syntax"), arguments, "NO_OP() has no arguments")
        return NO_OP, closed.end()
    if word not in KINDS:
        raise _Fault("operation", start, f"there is no operation {word:.30}")
    kind: Kind = word  # type: ignore[assignment]  # one of KINDS
    line_end = text.find("\n", arguments)
    line_end = len(text) if line_end < 0 else line_end
    argument = _PATH_ARGUMENT.match(text, arguments, line_end)
    if argument is None or (argument["end"] and not is_path(_path(argument["path"]))):
        raise _Fault("path", arguments, "a path is words of A-Z, a-z, 0-9 and _ joined by dots")
    if not argument["end"]:
        raise _Fault(_cut(text, line_end, "syntax"), arguments, "the operation breaks off in its path")
    path, after = _path(argument["path"]), argument.end()
    if argument["end"] != ",":
        if kind == "DELETE":
            return Operation(kind, path), after
        raise _Fault("value", after, f"{kind} has no value")
    if kind == "DELETE" and (nothing := _NOTHING.match(text, after, line_end)) is not None and nothing["close"]:
        return Operation(kind, path), nothing.end()
    value, position = _value(text, after)
    if kind == "DELETE":  # what is deleted, said once more
        return Operation(kind, path), position
    if not value:
        raise _Fault("value", after, f"{kind} has an empty value; DELETE takes a value away")
    return Operation(kind, path, value), position


def _path(text: str) -> str:
    return re.sub(r"\s*\.\s*", ".", text)


def _value(text: str, start: int) -> tuple[str, int]:
    """The quoted value and the bracket after it. Quotes within it may be bare: the one before the bracket closes."""
    opening = start + len(text[start:]) - len(text[start:].lstrip(" \t"))
    if opening >= len(text):
        raise _Fault("truncated", len(text), "the text ends before the value")
    closing = _QUOTES.get(text[opening])
    if closing is None:
        raise _Fault(_cut(text, opening, "value"), opening, "a value in double quotes is due")
    position = opening + 1
    while position < len(text):
        char = text[position]
        if char == "\\":
            position += 2
            continue
        if char == "\n" and _begins_operation(text, position + 1):
            raise _Fault("value", opening, "the value is never closed")
        if char in closing and (closed := _CLOSES.match(text, position + 1)) is not None:
            return clean_value(_unescape(text[opening + 1 : position])), closed.end()
        position += 1
    raise _Fault("truncated", len(text), "the text ends inside the value")


def _begins_operation(text: str, start: int) -> bool:
    end = text.find("\n", start)
    line = text[start : len(text) if end < 0 else end]
    call = _CALL.match(line)
    return _BARE_NO_OP.match(line) is not None or (call is not None and call["word"].upper() in {*KINDS, *_NO_OPS})


def _unescape(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _ESCAPES.get(match[2], match.group())  # \x, \u12: text and not an escape

    return _ESCAPE.sub(one, text)


def _cut(text: str, position: int, otherwise: LineErrorKind) -> LineErrorKind:
    """`truncated` where neither a bracket nor a further line comes after `position`."""
    rest = text[position:].rstrip()
    return otherwise if ")" in rest or "\n" in rest else "truncated"


def _parse_json(text: str, start: int) -> tuple[Operation, ...] | ExtractionError:
    """The same operations as a JSON list, which is what a teacher bound to a JSON schema prints."""

    def fits(value: Any) -> bool:
        items = [value] if isinstance(value, dict) else value
        return isinstance(items, list) and all(isinstance(item, dict) and "op" in item for item in items)

    found = find_json(text, fits)
    nothing = ExtractionError("no_json", start, excerpt(text, start), "there is no operation in the answer")
    if isinstance(found, ExtractionError):
        found.partial = ()
        return nothing if found.kind == "no_json" else found
    if not found.value or not fits(found.value):  # brackets in prose; an empty list says nothing explicitly
        return nothing
    items = [found.value] if isinstance(found.value, dict) else found.value
    good = []
    for place, item in enumerate(items):
        try:
            good.append(_from_json(item, alone=len(items) == 1))
        except InputError as error:
            detail = f"item {place + 1}: {error}"
            return ExtractionError("schema", found.start, excerpt(text, found.start), detail, partial=tuple(good))
    return tuple(good)
