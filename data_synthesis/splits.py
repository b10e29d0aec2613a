"""What keeps the splits of a dataset apart: normalised text, refused duplicates, disjoint groups.

Rows here are JSON rows as `extractors.rows` documents them. Splits are ordered: a row that stands in an earlier
split is refused in a later one, so training data is never thinned to save a test row.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from extractors.contract import InputError

Rows = list[dict[str, Any]]

_PUNCTUATION = re.compile(r"[^\w\s]+|_+")
_SPACE = re.compile(r"\s+")


def normalise(text: str) -> str:
    """Case-folded NFKC text without punctuation, runs of white space as one blank."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return _SPACE.sub(" ", _PUNCTUATION.sub(" ", text)).strip()


def states_nothing(row: Mapping[str, Any]) -> bool:
    """Whether a row's gold is an empty list, or NO_OP."""
    gold = row["gold"]
    return isinstance(gold, list) and (not gold or gold == [{"op": "NO_OP"}])


def input_text(row: dict[str, Any]) -> str:
    """All the text of a row's input that a model reads: every string below `input`, ids and speakers left out, in
    order."""
    return "\n".join(_strings(row["input"]))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in ("id", "speaker"):
                yield from _strings(item)


def refuse_duplicates(splits: dict[str, Rows]) -> tuple[dict[str, Rows], dict[str, Any]]:
    """Keep the first row of every normalised input text.

    A row is refused when its text stands in an earlier split (a leak) or earlier in its own split (a repeat).
    Returns the kept rows and a report: per split `leaked` and `repeated`, each {"count", "first_id"}, and
    `conflicting`, the number of refused rows whose gold differs from that of the row that was kept (a sign of noisy
    labels).
    """
    home: dict[str, tuple[str, str]] = {}
    kept: dict[str, Rows] = {}
    report: dict[str, Any] = {}
    for split, rows in splits.items():
        kept[split] = []
        counts: dict[str, Any] = {
            "leaked": {"count": 0, "first_id": None},
            "repeated": {"count": 0, "first_id": None},
            "conflicting": 0,
        }
        for row in rows:
            text = normalise(input_text(row))
            if text not in home:
                home[text] = (split, _gold_key(row))
                kept[split].append(row)
                continue
            owner, gold = home[text]
            entry = counts["repeated" if owner == split else "leaked"]
            entry["count"] += 1
            entry["first_id"] = entry["first_id"] or row["id"]
            counts["conflicting"] += gold != _gold_key(row)
        report[split] = counts
    return kept, report


def _gold_key(row: dict[str, Any]) -> str:
    gold = row["gold"]
    if isinstance(gold, list):
        # Evidence carries turn ids, which differ between two otherwise equal rows.
        gold = [{k: v for k, v in g.items() if k != "evidence"} if isinstance(g, dict) else g for g in gold]
    return json.dumps(gold, sort_keys=True, ensure_ascii=False)


def assert_disjoint_groups(splits: dict[str, Rows]) -> None:
    """Raise InputError, naming the group and both splits, when one person or conversation stands in two splits."""
    home: dict[str, str] = {}
    for split, rows in splits.items():
        for row in rows:
            owner = home.setdefault(row["group"], split)
            if owner != split:
                raise InputError(
                    f"group {row['group']!r} stands in {owner} and in {split} (row {row['id']!r}): "
                    "split by group before cutting rows."
                )
