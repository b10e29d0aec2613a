"""A simulated persona world (`mnemosmith simulate`) as dialogues: the project's own people, Apache-2.0.

Reads the `dialogues.jsonl` of a world folder. Each dialogue carries the split that its people belong to, its facts with
their validity, and per turn the gold triplets and the number of the move (what one exchange is about).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from data_synthesis.dialogues import Dialogue, Loaded, Session, Turn
from extractors.contract import InputError

FILE = "dialogues.jsonl"


def load(source: Path | None = None) -> Loaded:
    """source: a world folder. Raises InputError for a folder without `dialogues.jsonl`, or without a usable line."""
    if source is None or not (source / FILE).is_file():
        raise InputError(
            f"{source or '`source`'} is no world folder: name one that `mnemosmith simulate` wrote (it holds {FILE})."
        )
    loaded = Loaded("world", files=[FILE])
    with (source / FILE).open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                loaded.dialogues.append(_dialogue(json.loads(line)))
            except (ValueError, KeyError, TypeError):
                loaded.reject("not a dialogue of a simulated world", f"{FILE}:{number}")
    if not loaded.dialogues:
        raise InputError(f"{source / FILE} holds no dialogue of a simulated world.")
    return loaded


def _dialogue(data: dict[str, Any]) -> Dialogue:
    sessions = tuple(
        Session(
            s["id"],
            s["date"],
            tuple(
                Turn(t["id"], t["speaker"], t["text"], labels={"move": t["move"], "gold": t.get("gold", [])})
                for t in s["turns"]
            ),
        )
        for s in data["sessions"]
    )
    labels = {key: data[key] for key in ("split", "people", "facts", "events")}
    return Dialogue(data["id"], "world", data["id"], sessions, labels)
