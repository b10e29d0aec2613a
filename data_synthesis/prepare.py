"""A corpus, or your own JSONL, as a dataset folder.

mnemosmith prepare personaext --out outputs/data/personaext     from $MNEMOSMITH_DATA, or --source FOLDER
mnemosmith prepare jsonl --in my.jsonl --out outputs/data/mine  rows as docs/data.md describes them
mnemosmith prepare operations world --source outputs/data/world --out outputs/data/persona-tree-world
                                                                PersonaTree operations that a corpus implies, without a teacher
"""

from __future__ import annotations

import argparse
import importlib

TAKES_OVERRIDES = True
# module of each, with a `main`
WRITERS = {
    "personaext": "data_synthesis.corpora.personaext",
    "jsonl": "data_synthesis.corpora.jsonl",
    "operations": "data_synthesis.operations.prepare",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("corpus", choices=WRITERS)


def run(args: argparse.Namespace) -> int:
    return int(importlib.import_module(WRITERS[args.corpus]).main(args.overrides))
