"""A corpus, or your own JSONL, as a dataset folder.

mnemosmith prepare personaext --out outputs/data/personaext     from $MNEMOSMITH_DATA, or --source FOLDER
mnemosmith prepare jsonl --in my.jsonl --out outputs/data/mine  rows as docs/data.md describes them

"""

from __future__ import annotations

import argparse
import importlib

TAKES_OVERRIDES = True
CORPORA = ("personaext", "jsonl")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("corpus", choices=CORPORA)


def run(args: argparse.Namespace) -> int:
    return int(importlib.import_module(f"data_synthesis.corpora.{args.corpus}").main(args.overrides))
