"""The dataset card: what made a dataset folder, from what, with which hashes. Every corpus writer calls `write_card`.

A card carries no time stamp and no path, so that the same source and seed give the same bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from data_synthesis.splits import states_nothing
from extractors.rows import sha256

CARD = "card.json"
README = "README.md"


def write_card(
    folder: Path,
    *,
    name: str,
    version: str,
    source: str,
    licence: str,
    seed: int | None,
    splits: dict[str, list[dict[str, Any]]],
    details: dict[str, Any],
) -> dict[str, Any]:
    """Write `card.json` and `README.md` beside the files of a dataset folder. Returns the card.

    name, version: the generator (or loader) and its version; a change that moves a row changes the version.
    source, licence: where the text comes from and under which terms it may be used (SPDX id where one exists).
    seed: of the generator or of the split; None where nothing is drawn.
    splits: the rows exactly as they stand in `<split>.jsonl`; the files must be written before the card.
    details: whatever else a reader must know (duplicates refused, conversions, phrasing inventories); JSON values.
    Raises FileNotFoundError when a split has no file, ValueError when a file holds another number of rows.
    """
    for split, rows in splits.items():
        path = folder / f"{split}.jsonl"
        if not path.is_file():
            raise FileNotFoundError(f"{path} does not exist: write the rows before the card that describes them.")
        with path.open(encoding="utf-8") as file:
            lines = sum(1 for line in file if line.strip())
        if lines != len(rows):
            raise ValueError(f"{path} holds {lines} rows, the card was given {len(rows)}.")
    card: dict[str, Any] = {
        "name": name,
        "version": version,
        "source": source,
        "licence": licence,
        "seed": seed,
        "splits": {split: _counts(rows) for split, rows in splits.items()},
        "labels": {split: _labels(rows) for split, rows in splits.items()},
        "files": {
            path.relative_to(folder).as_posix(): {"sha256": sha256(path), "bytes": path.stat().st_size}
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.relative_to(folder).as_posix() not in (CARD, README)
        },
        "details": details,
    }
    (folder / CARD).write_text(json.dumps(card, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    (folder / README).write_text(_readme(card), encoding="utf-8")
    return card


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a dataset folder. Raises FileNotFoundError with advice when the folder has none."""
    path = folder / CARD
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: a dataset folder carries the card that says what made it.")
    card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return card


def stale_files(folder: Path) -> list[str]:
    """Names of files whose bytes are no longer those that the card describes (or that are gone)."""
    files = read_card(folder)["files"]
    return [
        name
        for name, entry in files.items()
        if not (folder / name).is_file() or sha256(folder / name) != entry["sha256"]
    ]


def _counts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    words = sorted(_words(row["input"]) for row in rows)
    gold = [0 if states_nothing(row) else len(row["gold"]) if isinstance(row["gold"], list) else 1 for row in rows]
    counts: dict[str, Any] = {
        "rows": len(rows),
        "groups": len({row["group"] for row in rows}),
        "gold_items": sum(gold),
        "empty_rows": sum(n == 0 for n in gold),
        "rows_with_several": sum(n > 1 for n in gold),
        "input_words": {"min": words[0], "median": words[len(words) // 2], "max": words[-1]} if words else {},
    }
    for tag in ("phrasing", "kind"):
        values = Counter(str(row["tags"][tag]) for row in rows if tag in row.get("tags", {}))
        if values:
            counts[tag] = dict(sorted(values.items()))
    return counts


def _words(value: Any) -> int:
    """Words below every `text` key (or of a bare string input)."""
    if isinstance(value, str):
        return len(value.split())
    if isinstance(value, list):
        return sum(_words(item) for item in value)
    if isinstance(value, dict):
        return sum(_words(item) for key, item in value.items() if key not in ("id", "speaker"))
    return 0


def _labels(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Distribution of relations or kinds of operations (list gold), or of labels (gold that is one value), most frequent
    first."""
    counter: Counter[str] = Counter()
    for row in rows:
        for item in row["gold"] if isinstance(row["gold"], list) else [row["gold"]]:
            label = item.get("relation", item.get("op")) if isinstance(item, dict) else item
            if isinstance(label, str | int):
                counter[str(label)] += 1
    return dict(sorted(counter.items(), key=lambda pair: (-pair[1], pair[0])))


def _readme(card: dict[str, Any]) -> str:
    lines = [
        f"# {card['name']}",
        "",
        f"Version {card['version']}, seed {card['seed']}, licence {card['licence']}. Source: {card['source']}",
        "",
        "| split | rows | groups | gold items | empty rows | rows with several | median words |",
        "|---|---|---|---|---|---|---|",
    ]
    for split, c in card["splits"].items():
        median = c["input_words"].get("median", "-")
        lines.append(
            f"| {split} | {c['rows']} | {c['groups']} | {c['gold_items']} | {c['empty_rows']} "
            f"| {c['rows_with_several']} | {median} |"
        )
    names = list(card["splits"])
    labels = sorted({label for counts in card["labels"].values() for label in counts})
    if labels:
        lines += ["", "| label | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
        lines += [
            f"| {label} | " + " | ".join(str(card["labels"][n].get(label, 0)) for n in names) + " |" for label in labels
        ]
    lines += ["", "Hashes, and everything else that is known about this folder, stand in `card.json`.", ""]
    return "\n".join(lines)
