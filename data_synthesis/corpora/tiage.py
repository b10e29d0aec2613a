"""TIAGE (Xie et al., Findings of EMNLP 2021): PersonaChat dialogues in which people marked where the topic shifts.

Licence: MIT; the dialogues are PersonaChat's (CC BY 4.0). Source: github.com/HuiyuanXie/tiage, `data/personachat/
anno_{train,dev,test}.json`: 300 + 100 + 100 dialogues, 4,692 + 1,546 + 1,564 utterances, 887 + 311 + 315 shifts.

Layout: {number: [[utterance, label], …]}; the label is "1" where the utterance begins a new topic, "0" where it does not, "-1" on
the first one.

Traps:
- Numbers start anew in each file, so an id is `train/1`. The two people alternate and have no names here.
- Text is lower-cased and tokenised ("i am a dog person , i have two"), contractions are written out. It stays so.
- Labels are about neighbouring utterances of both people, not about those of one user.
- "No shift" is right in four of five pairs, so accuracy says nothing.
- 229 of the 500 dialogues stand in session 1 of MSC as well: `data_synthesis.corpora.shared`.

`Dialogue.labels`: `split`. `Turn.labels`: `shift`, 0, 1, or None for the first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from data_synthesis.corpora import corpus_folder
from data_synthesis.corpora.files import BadRow, attempt, find, finished, list_of, read_json, text_of
from data_synthesis.dialogues import Dialogue, Loaded, Session, Turn

_SHIFTS = {"0": 0, "1": 1}


def load(source: Path | None = None) -> Loaded:
    """source: a folder above `anno_*.json`, or one such file. Raises InputError where no dialogue can be read."""
    source = source or corpus_folder("tiage")
    patterns = [f"anno_{split}.json" for split in ("train", "dev", "test")]
    files = find(source, patterns, "name the folder of TIAGE's anno_train.json, anno_dev.json and anno_test.json.")
    loaded = Loaded("tiage", files=list(files))
    for name, path in files.items():
        split = path.stem.removeprefix("anno_")
        numbered = attempt(loaded, name, "{number: utterances}", _read, path) or {}
        for number, utterances in numbered.items():
            kind = "a dialogue of [utterance, label] pairs"
            if dialogue := attempt(loaded, f"{name} {number}", kind, _dialogue, number, split, utterances):
                loaded.dialogues.append(dialogue)
    return finished(loaded, source)


def _read(path: Path) -> dict[str, Any]:
    data = read_json(path)
    if not isinstance(data, dict):
        raise BadRow("not {number: utterances}")
    return data


def _dialogue(number: str, split: str, utterances: Any) -> Dialogue:
    name = f"{split}/{number}"
    turns = []
    for place, (text, label) in enumerate(list_of(utterances, "utterances")):
        if (label == "-1") != (place == 0) or (place and label not in _SHIFTS):
            raise BadRow("a label other than 0 or 1 (-1 on the first utterance)")
        turns.append(Turn(f"t{place}", f"Speaker {place % 2 + 1}", text_of(text), labels={"shift": _SHIFTS.get(label)}))
    return Dialogue(name, "tiage", name, (Session("s0", "", tuple(turns)),), {"split": split})
