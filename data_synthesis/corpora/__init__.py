"""Corpus loaders: each reads a corpus the user has, and writes a dataset folder (JSONL splits and a card).

No corpus text ships with the project. A loader finds its corpus below the folder that `MNEMOSMITH_DATA` names.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from pathlib import Path

from extractors.contract import InputError

SPLITS = ("train", "dev", "test")


def corpus_folder(name: str) -> Path:
    """The folder of one corpus: `$MNEMOSMITH_DATA/<name>`, by default `../shared/data/<name>` beside the checkout.

    Raises InputError with advice when it is not there.
    """
    root = os.environ.get("MNEMOSMITH_DATA") or Path(__file__).resolve().parents[2].parent / "shared" / "data"
    folder = Path(root) / name
    if not folder.is_dir():
        raise InputError(
            f"{folder} does not exist: set MNEMOSMITH_DATA to the folder that holds {name}/, or name its path."
        )
    return folder


def split_groups(groups: Iterable[str], seed: int) -> dict[str, str]:
    """A split for every group: 80 % train, 10 % dev, 10 % test (by groups, at least one each), drawn with `seed`.

    Depends on the set of groups alone, not on their order. Raises InputError for fewer than three groups.
    """
    names = sorted(set(groups))
    if len(names) < 3:
        raise InputError(
            f"{len(names)} group(s) cannot be split three ways: give `train`, `dev` and `test` files instead."
        )
    random.Random(seed).shuffle(names)
    tenth = max(1, len(names) // 10)
    bounds = {"test": names[:tenth], "dev": names[tenth : 2 * tenth], "train": names[2 * tenth :]}
    return {name: split for split, members in bounds.items() for name in members}
