"""Corpus loaders: each reads a corpus the user has. No corpus text ships with the project.

`load_dialogues` reads any of CORPORA as dialogues (`data_synthesis.dialogues`); which of them may be used for what,
`data_synthesis.roles` says. `personaext` and `jsonl` also write dataset folders by themselves. A loader finds its corpus
below the folder that `MNEMOSMITH_DATA` names.
"""

from __future__ import annotations

import importlib
import os
import random
from collections.abc import Iterable
from pathlib import Path

from data_synthesis.dialogues import Loaded
from extractors.contract import InputError

SPLITS = ("train", "dev", "test")

# The corpora that `load_dialogues` knows, each with what it is and its licence; the loader is the module of that name.
CORPORA = {
    "world": "a simulated persona world (`mnemosmith simulate`), people who tell each other facts; Apache-2.0",
    "own": "your own conversations, JSONL in our form or OpenAI's chat format; the owner's licence",
    "personaext": "PersonaExt, single utterances with one persona triplet each; no licence stated for the annotation, text "
    "ConvAI2 / PersonaChat (CC BY 4.0)",
    "msc": "Multi-Session Chat, two people over four sessions with the facts they told; no licence stated for the corpus",
    "tiage": "TIAGE, PersonaChat dialogues with topic shifts marked; MIT, text PersonaChat (CC BY 4.0)",
    "memochat": "MemoChat's writing instructions, conversations cut into topics; MIT, text DialogSum "
    "(CC BY-NC-SA 4.0) and TopiOCQA",
    "halumem": "HaluMem, users and an assistant with the memories each session should leave; CC BY-NC-ND 4.0, nothing derived "
    "from it may be passed on",
    "locomo": "LoCoMo, two people over many sessions, with questions; a benchmark; CC BY-NC 4.0",
    "personamem": "PersonaMem 32k, personas and an assistant, with multiple-choice questions; a benchmark; licence: see upstream",
    "longmemeval": "LongMemEval, chats with an assistant and a question on each history; a benchmark; MIT",
}
_MODULES = {"own": "chat"}


def load_dialogues(corpus: str, source: str | None = None) -> Loaded:
    """Read a corpus as dialogues.

    corpus: a name of CORPORA. source: a folder or file; `hub:owner/name`, or `hub:owner/name@revision`, for a dataset of
    the Hugging Face hub, which is downloaded first; None for the corpus's folder below `MNEMOSMITH_DATA`. Raises
    InputError for an unknown name, a source that is not there, or a corpus without one usable row.
    """
    if corpus not in CORPORA:
        raise InputError(f"corpus {corpus!r} has no loader: write one of {', '.join(CORPORA)}.")
    module = importlib.import_module(f"data_synthesis.corpora.{_MODULES.get(corpus, corpus)}")
    loaded = module.load(None if source is None else _local(source))
    assert isinstance(loaded, Loaded)
    return loaded


def _local(source: str) -> Path:
    """The folder or file that a source names, after a download where it stands on the hub."""
    if not source.startswith("hub:"):
        path = Path(source).expanduser()
        if not path.exists():
            raise InputError(f"{source} does not exist: name a folder, a file or hub:owner/name.")
        return path
    name, _, revision = source.removeprefix("hub:").partition("@")
    if name.count("/") != 1 or not all(name.split("/")):
        raise InputError(f"{source} is no dataset of the hub: write hub:owner/name or hub:owner/name@revision.")
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        # Offline, the client asks for a pinned revision all the same, unless it is told to look at its cache alone.
        offline = constants.HF_HUB_OFFLINE
        return Path(snapshot_download(name, repo_type="dataset", revision=revision or None, local_files_only=offline))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"{source} cannot be downloaded: {said[0]}") from None


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
