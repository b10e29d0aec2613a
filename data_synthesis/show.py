"""Look at dataset folders, and at the corpora that can be read.

mnemosmith data show FOLDER               rows, labels, what was rejected and why, cost, a few rows
mnemosmith data show FOLDER --html FILE   the same as one page with plots
mnemosmith data corpora                   names to write in a recipe

"""

from __future__ import annotations

import argparse
import json
import random
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_synthesis.card import read_card, stale_files
from data_synthesis.splits import input_text
from extractors.contract import InputError

LABELS = 20  # shown singly; the others are summed up
REJECTS = 2  # examples of each reason
BAR = 32  # characters of the longest bar
KNOWN_DETAILS = ("rejected", "synthesis")


@dataclass(frozen=True)
class Dataset:
    """A dataset folder as it is shown. rows: of the splits whose files are there; rejected: lines of rejected.jsonl;
    stale: files that are not those that the card describes."""

    folder: Path
    card: Mapping[str, Any]
    rows: Mapping[str, list[dict[str, Any]]]
    rejected: list[dict[str, Any]]
    stale: list[str]

    def labels(self) -> dict[str, dict[str, int]]:
        """Label to its count in every split, the most frequent first."""
        counts = self.card["labels"]
        total = sum((Counter(split) for split in counts.values()), Counter())
        order = sorted(total, key=lambda label: (-total[label], label))
        return {label: {split: counts[split].get(label, 0) for split in counts} for label in order}

    def examples(self, count: int) -> list[tuple[str, dict[str, Any]]]:
        """Rows drawn at random, always the same ones, from the first split that has any."""
        for split, rows in self.rows.items():
            if rows:
                return [(split, row) for row in random.Random(0).sample(rows, min(count, len(rows)))]
        return []


def read_dataset(folder: Path) -> Dataset:
    """Read a folder, its rows unchecked. Raises InputError where it is no dataset folder or a file cannot be read."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: name a dataset folder, such as outputs/data/personaext.")
    try:
        card = read_card(folder)
        missing = [key for key in ("name", "splits", "labels", "files", "details") if key not in card]
        if missing:
            raise InputError(
                f"{folder / 'card.json'} has no `{missing[0]}`: write the dataset again with this version."
            )
        stale = stale_files(folder)
    except FileNotFoundError as error:
        raise InputError(f"{error} A folder of your own rows gets one by `mnemosmith prepare jsonl`.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{folder / 'card.json'} cannot be read: {error}.") from None
    rows = {split: _read_lines(folder / f"{split}.jsonl") for split in card["splits"]}
    return Dataset(folder, card, rows, _read_lines(folder / "rejected.jsonl"), stale)


def _read_lines(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise InputError(f"{path}, line {number}: {error}.") from None
    return rows


# -- as text ---------------------------------------------------------------------------------------------------------


def as_text(data: Dataset, examples: int = 3) -> str:
    """Everything for a terminal, one section after the other."""
    return "\n\n".join("\n".join(section) for section in _sections(data, examples) if section)


def _sections(data: Dataset, examples: int) -> Iterator[list[str]]:
    card = data.card
    yield [
        f"{card['name']} (version {card.get('version')}, seed {card.get('seed')}) in {data.folder}",
        *_wrapped("source", card.get("source")),
        *_wrapped("licence", card.get("licence")),
    ]
    if data.stale:
        yield [
            "! The card no longer describes these files (their bytes changed, or they are gone): "
            + ", ".join(data.stale),
            "  The figures below are the card's. Write the dataset again before you train on it.",
        ]
    header, *cells = split_table(card)
    widths = [max(len(row[place]) for row in (header, *cells)) for place in range(len(header))]
    yield [
        "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in (header, *cells)
    ]
    yield _label_bars(data)
    yield _reject_lines(data)
    yield _columns(cost_pairs(card))
    plain, named = other_details(card)
    yield _columns(plain) + ([*_wrapped("in card.json too", ", ".join(named))] if named else [])
    shown = []
    for split, row in data.examples(examples):
        shown += [
            f"{split} {row['id']}",
            *_indented(written_input(row["input"])),
            *_indented(written(row["gold"]), "-> "),
        ]
    yield ["Some rows, drawn at random", *shown] if shown else []


def split_table(card: Mapping[str, Any]) -> list[list[str]]:
    """Header and one line a split, cells as text."""
    table = [["split", "rows", "groups", "gold items", "without gold", "with several", "words (median, most)"]]
    for split, counts in card["splits"].items():
        words = counts.get("input_words") or {}
        table.append(
            [
                split,
                *(
                    f"{counts.get(key, 0):,}"
                    for key in ("rows", "groups", "gold_items", "empty_rows", "rows_with_several")
                ),
                f"{words['median']}, {words['max']}" if words else "-",
            ]
        )
    return table


def _label_bars(data: Dataset) -> list[str]:
    found = data.labels()
    if not found:
        return []
    splits = list(data.card["labels"])
    totals = {label: sum(counts.values()) for label, counts in found.items()}
    shown = list(found)[:LABELS]
    most, width = totals[shown[0]], max(len(label) for label in shown)
    lines = [f"{len(found)} labels, {sum(totals.values()):,} in all ({' / '.join(splits)})"]
    for label in shown:
        bar = "█" * max(1, round(BAR * totals[label] / most))
        lines.append(f"{label:<{width}}  {bar} {' / '.join(f'{found[label][split]:,}' for split in splits)}")
    rest = list(found)[LABELS:]
    if rest:
        lines.append(f"and {len(rest)} more with {sum(totals[label] for label in rest):,}")
    return lines + [tail_note(data)]


def tail_note(data: Dataset) -> str:
    """How many labels the first split hardly knows."""
    split, found = next(iter(data.card["labels"])), data.labels()
    rare = [label for label in found if found[label][split] < 10]
    shown = ", ".join(rare[:6]) + (", …" if len(rare) > 6 else "")
    return f"{len(rare)} labels have fewer than 10 in {split}" + (f": {shown}" if rare else "")


def _reject_lines(data: Dataset) -> list[str]:
    rejected = data.card["details"].get("rejected") or {}
    if not rejected:
        return []
    lines = [f"{sum(entry['count'] for entry in rejected.values()):,} rows rejected"]
    for reason, entry in rejected.items():
        lines.append(f"{entry['count']:>8,}  {reason} (first: {entry['first_id']})")
        for line in [line for line in data.rejected if line["reason"] == reason][:REJECTS]:
            lines += [f"{'':10}{line['id']}: {line['detail']}"]
            lines += _indented(written_input(line["input"]), f"{'':12}", most=3)
            lines += _indented(written(line["output"]), f"{'':12}-> ", most=3)
    return lines


def cost_pairs(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the synthesis took, as (name, value); empty for a folder that no teacher made."""
    facts = card["details"].get("synthesis")
    if not facts:
        return []
    failed = facts.get("failed") or {}
    tokens = f"{facts.get('prompt_tokens', 0):,} in prompts, {facts.get('completion_tokens', 0):,} in answers"
    pairs = [
        ("teacher", str(facts.get("model"))),
        ("requests", f"{facts.get('requests', 0):,}, of which answered {facts.get('answered', 0):,}"),
        ("tokens", tokens),
        ("cost", f"{facts.get('cost', 0):,.4f} {facts.get('currency', '')}".strip()),
    ]
    return pairs + [
        ("not answered", f"{entry['count']:,}: {why} (first: {entry['first_id']})") for why, entry in failed.items()
    ]


def other_details(card: Mapping[str, Any]) -> tuple[list[tuple[str, str]], list[str]]:
    """The card's other details: those that are one number or word, and the names of those that are more."""
    others = {
        name: value for name, value in card["details"].items() if name not in KNOWN_DETAILS and value not in ({}, [])
    }
    plain = [(name, _figure(value)) for name, value in others.items() if not isinstance(value, dict | list)]
    return plain, [name for name, value in others.items() if isinstance(value, dict | list)]


def _figure(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def written_input(value: Any) -> str:
    """An input as a person reads it: turns as `Speaker: text`, context in brackets, other fields by their names."""
    if not isinstance(value, dict):
        return str(value)
    lines = []
    for name in sorted(value, key=lambda key: key != "context"):  # what was said before comes first
        part = value[name]
        if isinstance(part, list) and all(isinstance(turn, dict) and "text" in turn for turn in part):
            said = [f"{turn.get('speaker', '')}: {turn['text']}" for turn in part]
            lines += [f"({line})" for line in said] if name == "context" else said
        else:
            lines.append(f"{name}: {part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)}")
    return "\n".join(lines)


def written(gold: Any) -> str:
    """An output as a person reads it: one item a line."""
    if gold == []:
        return "nothing"
    if not isinstance(gold, list):
        return gold if isinstance(gold, str) else json.dumps(gold, ensure_ascii=False)
    return "\n".join(
        f"({', '.join(str(v) for k, v in item.items() if k != 'evidence')})" if isinstance(item, dict) else str(item)
        for item in gold
    )


def _columns(pairs: list[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in pairs), default=0)
    return [f"{name:<{width}}  {value}" for name, value in pairs]


def _wrapped(name: str, value: Any) -> list[str]:
    return textwrap.wrap(f"{name}: {value}", 118, subsequent_indent="  ")


def _indented(text: str, first: str = "   ", most: int = 8) -> list[str]:
    lines = [textwrap.shorten(line, 160, placeholder=" …") for line in text.splitlines()]
    cut = [f"… {len(lines) - most} more"] if len(lines) > most else []
    return [(first if place == 0 else " " * len(first)) + line for place, line in enumerate(lines[:most] + cut)]


def input_lengths(data: Dataset) -> dict[str, list[int]]:
    """Words of every input, by split."""
    return {split: [len(input_text(row).split()) for row in rows] for split, rows in data.rows.items() if rows}


# -- the command -----------------------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="what", required=True, metavar="show | corpora")
    show = commands.add_parser("show", help="what is in a dataset folder")
    show.add_argument("folder", type=Path, help="a folder with a card.json")
    show.add_argument("--html", type=Path, metavar="FILE", help="write one page with plots instead")
    show.add_argument("--examples", type=int, default=3, metavar="N", help="rows to print (default: 3)")
    commands.add_parser("corpora", help="the corpora that a recipe can name")


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 done, 2 for a folder that is no dataset."""
    if args.what == "corpora":
        from data_synthesis.corpora import CORPORA

        width = max(map(len, CORPORA))
        for name, description in CORPORA.items():
            print(f"{name:<{width}}  {description}")
        return 0
    try:
        if args.examples < 0:
            raise InputError(f"`--examples` is {args.examples}: write 0 or more.")
        data = read_dataset(args.folder)
        if args.html is None:
            print(as_text(data, args.examples))
            return 0
        from data_synthesis.page import write_page

        write_page(args.html, data, args.examples)
        print(f"written to {args.html}")
        return 0
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
