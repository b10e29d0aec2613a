"""Operation rows of a corpus, as a dataset folder for the `persona_tree` extractor.

    mnemosmith prepare operations world --source outputs/data/world --out outputs/data/persona-tree-world
    mnemosmith prepare operations world --source … --out … --schema quickstart --exchanges 1

Walks of train, dev and test come from the corpus's roles (data_synthesis/roles.yaml); conversations for reinforcement
learning become `rl.jsonl`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data_synthesis.card import write_card
from data_synthesis.corpora import CORPORA
from data_synthesis.operations import NO_OP_SHARE, balanced, rows_of
from data_synthesis.roles import split_by_role
from data_synthesis.splits import Rows, assert_disjoint_groups
from extractors.contract import InputError
from extractors.persona_tree import PersonaTreeExtractor
from extractors.rows import write_rows

VERSION = "1"
SPLITS = ("train", "dev", "test", "rl")
VIEWS = ("world", "halumem", "msc")


def prepare(
    corpus: str,
    source: str | None,
    out: Path,
    schema: str = "full",
    exchanges: int = 3,
    no_op_share: float = NO_OP_SHARE,
) -> dict[str, Any]:
    """Write the dataset folder `out` and return its card.

    corpus: one of VIEWS; source: as `load_dialogues` takes it; schema: as the extractor takes it; exchanges: of a chunk;
    no_op_share: most rows of a split that change nothing. Raises InputError for a corpus without a usable walk.
    """
    if exchanges < 1:
        raise InputError(f"`--exchanges` is {exchanges}: write how many exchanges make a chunk, 1 at least.")
    if not 0 <= no_op_share < 1:
        raise InputError(f"`--no-op-share` is {no_op_share}: write a share from 0 to below 1.")
    extractor = PersonaTreeExtractor(schema=schema)
    view = importlib.import_module(f"data_synthesis.operations.{corpus}")
    loaded = view.load(source)
    rows: dict[str, Rows] = {}
    left_out: dict[str, int] = {}
    walks: Counter[str] = Counter()
    unplaced: list[str] = []
    for split, dialogues in split_by_role(loaded.dialogues, "persona_tree").items():
        if split not in SPLITS or not dialogues:
            continue
        made: Rows = []
        for dialogue in dialogues:
            for walk in view.walks(dialogue, exchanges):
                walks[split] += 1
                unplaced += walk.left_out
                try:
                    made += rows_of(walk, extractor)
                except ValueError as error:
                    raise InputError(
                        f"{corpus} writes leaves that the schema {schema!r:.80} does not have: {error}"
                    ) from None
        rows[split], left_out[split] = balanced(made, no_op_share)
    rows = {split: rows[split] for split in SPLITS if rows.get(split)}
    if not rows:
        raise InputError(
            f"{corpus} has no conversation from which operations may be learnt (data_synthesis/roles.yaml)."
        )
    assert_disjoint_groups(rows)
    out.mkdir(parents=True, exist_ok=True)
    for split in rows:
        write_rows(out / f"{split}.jsonl", rows[split])
    details = {
        "corpus": corpus,
        "files": loaded.files,
        "bad_rows": loaded.bad_rows(),
        "schema": {
            "name": extractor.schema.name,
            "version": extractor.schema.version,
            "sha256": extractor.schema.sha256,
        },
        "exchanges": exchanges,
        "walks": dict(walks),
        "operations": {
            split: dict(Counter(item["op"] for row in made for item in row["gold"])) for split, made in rows.items()
        },
        "no_op_rows_left_out": left_out,
        "chunks_left_out": {
            "count": len(unplaced),
            "first": unplaced[:5],
            "why": "the view has no leaf for a fact in them",
        },
    }
    return write_card(
        out,
        name=f"{corpus}-operations",
        version=VERSION,
        source=f"what {corpus} says about its people, as operations by data_synthesis.operations.{corpus}",
        licence=CORPORA[corpus],
        seed=None,
        splits=rows,
        details=details,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="mnemosmith prepare operations", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", choices=VIEWS)
    parser.add_argument("--source", help="the corpus's folder; by default below $MNEMOSMITH_DATA")
    parser.add_argument("--out", type=Path, required=True, help="dataset folder to be made")
    parser.add_argument("--schema", default="full", help="full, quickstart, or the path of a JSON file")
    parser.add_argument("--exchanges", type=int, default=3, help="exchanges to a chunk (default 3, as in the paper)")
    parser.add_argument("--no-op-share", type=float, default=NO_OP_SHARE, help="most rows without a change, per split")
    args = parser.parse_args(arguments)
    try:
        prepare(args.corpus, args.source, args.out, args.schema, args.exchanges, args.no_op_share)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print((args.out / "README.md").read_text(encoding="utf-8"))
    print(f"written to {args.out}")
    return 0
