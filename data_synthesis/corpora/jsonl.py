"""Rows that a user brings: plain JSONL, checked, freed of duplicates, split by group, written as a dataset folder.

One line is one row, the dialogue and its gold, as `extractors.rows` describes it (details in docs/data.md):

    {"id": "chat7-12", "group": "chat7",
     "input": {"turns": [{"id": "t12", "speaker": "Mia", "text": "I adopted a cat."}], "context": []},
     "gold": [{"subject": "Mia", "relation": "have_pet", "object": "cat", "evidence": ["t12"]}]}

`group` is the person or conversation that must stay in one split. A row that comes from a known corpus says so in
`"tags": {"corpus": "locomo"}`; then `roles.yaml` decides whether it may be used.

    python -m data_synthesis.corpora.jsonl --in my.jsonl --out outputs/data/mine
    python -m data_synthesis.corpora.jsonl --train a.jsonl --dev b.jsonl --test c.jsonl --out outputs/data/mine
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from data_synthesis.card import write_card
from data_synthesis.corpora import SPLITS, split_groups
from data_synthesis.roles import assert_role
from data_synthesis.splits import Rows, assert_disjoint_groups, refuse_duplicates
from extractors.contract import Extractor, InputError
from extractors.rows import read_rows, sha256, write_rows
from extractors.triplets import TripletExtractor

VERSION = "1"


def prepare(
    files: Path | Mapping[str, Path], out: Path, extractor: Extractor[Any, Any], seed: int = 0
) -> dict[str, Any]:
    """Check JSONL rows and write them as a dataset folder. Returns its card.

    files: one file, which is split 80/10/10 by group with `seed`, or a file for each split (train, and dev and test as
    far as there are any), which stay as they are. Rows whose normalised input stands in an earlier row (of the same or
    an earlier split: train, dev, test) are refused and counted in the card under `duplicates`.
    Raises InputError for rows that do not fit the extractor, for ids or groups that stand in two splits, for corpora
    that `roles.yaml` bars, and when a split has no rows left.
    """
    if isinstance(files, Path):
        sources = {"all": files}
    else:
        if not files or set(files) - set(SPLITS):
            raise InputError(f"`files` names {', '.join(files) or 'no split'}: write {', '.join(SPLITS)}.")
        sources = {split: files[split] for split in SPLITS if split in files}
    splits: dict[str, Rows] = {split: _raw_rows(path, extractor) for split, path in sources.items()}
    read = {split: len(rows) for split, rows in splits.items()}
    _assert_unique_ids(splits)
    splits, duplicates = refuse_duplicates(splits)
    if isinstance(files, Path):
        home = split_groups((row["group"] for row in splits["all"]), seed)
        splits = {split: [row for row in splits["all"] if home[row["group"]] == split] for split in SPLITS}
    try:
        assert_disjoint_groups(splits)
    except ValueError as error:
        raise InputError(str(error)) from None
    for split, rows in splits.items():
        if not rows:
            raise InputError(
                f"{sources[split]}: no row is left for {split}, all {read[split]} are duplicates of earlier rows."
            )
        for row in rows:
            _assert_allowed(row, extractor.name, split)
    for split, rows in splits.items():
        write_rows(out / f"{split}.jsonl", rows)
    for split in set(SPLITS) - set(splits):
        (out / f"{split}.jsonl").unlink(missing_ok=True)  # of an earlier run: the card would describe it
    return write_card(
        out,
        name="own rows",
        version=VERSION,
        source=", ".join(f"{path.name} (sha256 {sha256(path)[:12]})" for path in sources.values()),
        licence="the owner's",
        seed=seed if isinstance(files, Path) else None,
        splits=splits,
        details={"extractor": extractor.name, "read": read, "duplicates": duplicates},
    )


def _raw_rows(path: Path, extractor: Extractor[Any, Any]) -> Rows:
    """The rows as they stand in the file (evidence and further keys of the gold stay), after the extractor's check."""
    read_rows(path, extractor)
    with path.open(encoding="utf-8") as file:
        rows: Rows = [json.loads(line) for line in file if line.strip()]
    for row in rows:
        try:
            json.dumps(row, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise InputError(
                f"{path}: row {row['id']!r} holds half a surrogate pair, which no UTF-8 file can: mend it."
            ) from None
    return rows


def _assert_unique_ids(splits: Mapping[str, Rows]) -> None:
    home: dict[str, str] = {}
    for split, rows in splits.items():
        for row in rows:
            owner = home.setdefault(row["id"], split)
            if owner != split:
                raise InputError(f"id {row['id']!r} stands in {owner} and in {split}: ids are unique in a dataset.")


def _assert_allowed(row: dict[str, Any], extractor: str, split: str) -> None:
    corpus = str((row.get("tags") or {}).get("corpus", "own"))
    try:
        assert_role(corpus, extractor, split)
    except InputError as error:
        raise InputError(f"row {row['id']!r}: {error}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line. Exit code 2 when the rows cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m data_synthesis.corpora.jsonl", description="JSONL rows to a dataset"
    )
    parser.add_argument("--in", dest="single", type=Path, metavar="FILE", help="one file, to be split by group")
    for split in SPLITS:
        parser.add_argument(f"--{split}", type=Path, metavar="FILE", help=f"rows of the {split} split")
    parser.add_argument("--out", type=Path, required=True, help="dataset folder to write")
    parser.add_argument("--seed", type=int, default=0, help="seed of the split")
    options = parser.parse_args(arguments)
    given = {split: getattr(options, split) for split in SPLITS if getattr(options, split) is not None}
    if (options.single is None) == (not given):
        parser.error("give either --in FILE, or --train FILE (with --dev and --test)")
    try:
        card = prepare(options.single or given, options.out, TripletExtractor(), options.seed)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{card['source']} -> {options.out}")
    for split, counts in card["splits"].items():
        print(f"  {split:<6}{counts['rows']} rows, {counts['groups']} groups, {counts['gold_items']} gold items")
    for split, report in card["details"]["duplicates"].items():
        for kind in ("leaked", "repeated"):
            if report[kind]["count"]:
                print(
                    f"  {split}: {report[kind]['count']} duplicates refused ({kind}; first: {report[kind]['first_id']})"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
