"""Dataset rows and dataset folders, the only thing that walks from one stage to the next.

A dataset folder holds `train.jsonl`, `dev.jsonl`, `test.jsonl` (any of them) and `card.json`. One line is one row:

    {"id": "p012-s2-07", "group": "p012",
     "input": {"turns": [{"id": "p012-s2-t14", "speaker": "Mia", "text": "I finally adopted a cat, Pixel."}]},
     "gold": [{"subject": "Mia", "relation": "have_pet", "object": "cat"}],
     "tags": {"phrasing": "unseen"}}

`id` is unique in the file; `group` is the person or conversation that splits must not divide; `input` and `gold` are the
extractor's own JSON forms; `tags` (optional) is kept for reports.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

from extractors.contract import Extractor, Input, InputError, Output


@dataclass(frozen=True)
class Row(Generic[Input, Output]):
    id: str
    group: str
    input: Input
    gold: Output
    tags: dict[str, Any] = field(default_factory=dict)


def read_rows(path: Path, extractor: Extractor[Input, Output], limit: int | None = None) -> list[Row[Input, Output]]:
    """Rows of one JSONL file, every one checked. Raises InputError that lists the faulty lines (the first ten)."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: a dataset folder holds train.jsonl, dev.jsonl and test.jsonl.")
    rows: list[Row[Input, Output]] = []
    faults: list[str] = []
    seen: dict[str, int] = {}
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            if limit is not None and len(rows) >= limit:
                break
            try:
                row = _read_row(json.loads(line), extractor)
            except json.JSONDecodeError as error:
                faults.append(f"line {number}, column {error.colno}: no JSON object ({error.msg}).")
                continue
            except InputError as error:
                faults.append(f"line {number}: {error}")
                continue
            if row.id in seen:
                faults.append(f"line {number}: id {row.id!r} stands on line {seen[row.id]} already; ids are unique.")
            seen[row.id] = number
            rows.append(row)
    if faults:
        shown = "\n  ".join(faults[:10])
        raise InputError(f"{path}: {len(faults)} of its rows cannot be used:\n  {shown}")
    if not rows:
        raise InputError(f"{path} holds no rows.")
    return rows


def _read_row(data: Any, extractor: Extractor[Input, Output]) -> Row[Input, Output]:
    if not isinstance(data, dict):
        raise InputError('a row is a JSON object with "id", "group", "input" and "gold".')
    for key in ("id", "group"):
        if not isinstance(data.get(key), str) or not data[key]:
            raise InputError(f"`{key}` is {data.get(key)!r}: write a non-empty string.")
    for key in ("input", "gold"):
        if key not in data:
            raise InputError(f"`{key}` is missing (row {data['id']!r}).")
    unknown = set(data) - {"id", "group", "input", "gold", "tags"}
    if unknown:
        raise InputError(f"unknown key {sorted(unknown)[0]!r} (row {data['id']!r}); further facts go under `tags`.")
    try:
        value, gold = extractor.read_input(data["input"]), extractor.read_output(data["gold"])
    except InputError as error:
        raise InputError(f"{error} (row {data['id']!r})") from None
    return Row(data["id"], data["group"], value, gold, dict(data.get("tags") or {}))


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write JSON rows, one a line, through a temporary file, so that a reader never sees half a file. Returns the count."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".partial")
    count = 0
    with temporary.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    temporary.replace(path)
    return count


def sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
