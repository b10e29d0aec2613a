"""What the loaders share: finding a corpus's files, reading them, and keeping account of rows that cannot be used."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from data_synthesis.dialogues import Dialogue, Loaded
from extractors.contract import InputError

T = TypeVar("T")


class BadRow(ValueError):
    """A row that cannot be used; the message is the reason to count it by."""


def find(source: Path, patterns: Sequence[str], advice: str) -> dict[str, Path]:
    """Files below `source` (or `source` itself) that fit one of the patterns: name relative to the source, to path.

    In the order of the patterns, then of the names. Raises InputError, with `advice`, when there is none.
    """
    if not source.exists():
        raise InputError(f"{source} does not exist: {advice}")
    found: dict[str, Path] = {}
    for pattern in patterns:
        if source.is_file():
            found |= {source.name: source} if source.match(pattern) else {}
        else:
            found |= {path.relative_to(source).as_posix(): path for path in sorted(source.rglob(pattern))}
    if not found:
        raise InputError(f"{source} holds no {' or '.join(patterns)}: {advice}")
    return found


def read_json(path: Path) -> Any:
    """The JSON value in a file, gzipped or not. Raises BadRow."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return json.loads(raw.decode("utf-8"))
    except (ValueError, OSError, EOFError):
        raise BadRow("not a JSON file") from None


def json_lines(path: Path, name: str, loaded: Loaded) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSONL file, each with its place (`name:line`); other lines are rejected."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            place = f"{name}:{number}"
            try:
                value = json.loads(line)
            except ValueError:
                loaded.reject("not JSON", place)
                continue
            if isinstance(value, dict):
                yield place, value
            else:
                loaded.reject("not a JSON object", place)


def attempt(loaded: Loaded, place: str, kind: str, read: Callable[..., T], *data: Any) -> T | None:
    """What `read(*data)` returns; None, and one more rejected row, where the data has not the shape of a `kind`."""
    try:
        return read(*data)
    except BadRow as error:
        loaded.reject(str(error), place)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        loaded.reject(f"not {kind}", place)
    return None


def text_of(value: Any) -> str:
    """A turn's text. Raises BadRow for what is none."""
    if not isinstance(value, str) or not value.strip():
        raise BadRow("a turn without text")
    return value


def read_list(path: Path) -> list[Any]:
    """The JSON list in a file. Raises BadRow for another value, or an empty list."""
    return list_of(read_json(path), "list")


def list_of(value: Any, what: str) -> list[Any]:
    """Raises BadRow unless `value` is a list with something in it."""
    if not isinstance(value, list) or not value:
        raise BadRow(f"no {what}")
    return value


def iso(text: Any, form: str) -> str:
    """`2023-05-08T13:56` for a time that is written in `form` (as `datetime.strptime` has it). Raises BadRow."""
    try:
        return datetime.strptime(text, form).strftime("%Y-%m-%dT%H:%M")
    except (TypeError, ValueError):
        raise BadRow("a date that cannot be read") from None


def finished(loaded: Loaded, source: Path) -> Loaded:
    """The corpus without dialogues whose id an earlier one has (those are rejected). Raises InputError where no dialogue
    is left, naming the source and the first reason."""
    seen: set[str] = set()
    kept: list[Dialogue] = []
    for dialogue in loaded.dialogues:
        if dialogue.id in seen:
            loaded.reject("an id that an earlier dialogue has", dialogue.id)
        else:
            seen.add(dialogue.id)
            kept.append(dialogue)
    loaded.dialogues = kept
    if not kept:
        reason = next(iter(loaded.bad), "its files are empty")
        where = f", first at {loaded.first_bad[reason]}" if reason in loaded.first_bad else ""
        raise InputError(f"no row of {source} can be used as {loaded.corpus}: {reason}{where}.")
    return loaded
