"""MemoChat's writing instructions (Lu et al., 2023): conversations cut into topics, with the line where each begins and ends.

Licence: MIT; its conversations are joined dialogues of DialogSum (CC BY-NC-SA 4.0) or come from TopiOCQA. Source:
github.com/LuJunru/MemoChat, `data/memochat_instructions/{train_1k,train_10k,test_402}.json`; `train_1k.json` has 1,000 rows, of
which 306 are of type `writing_*` (114 DialogSum, 192 TopiOCQA). The others (retrieval, chatting) are no conversations and are
passed over.

Layout: rows {id, type, conversations: [{from: human, value: the prompt}, {from: gpt, value: the answer}]}. The conversation
stands in the prompt, a line being "(line N) user: …"; the answer is JSON, [{topic, summary, start, end}], lines from 1.
TopiOCQA rows have no summary.

Traps:
- A few conversations have a third speaker, "#Person3#", in the middle of user and bot.
- Boundaries are made, not judged: DialogSum dialogues are joined end to end, TopiOCQA changes its Wikipedia page.
- DialogSum dialogues between people were put into the mouths of "user" and "bot".

`Dialogue.labels`: `split` (train or test, by the file's name) and `segments`, as the corpus has them. `Turn.labels`: `shift`, 1
on a topic's first turn, 0 on the others, None on the conversation's first, as in TIAGE.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from data_synthesis.corpora import corpus_folder
from data_synthesis.corpora.files import BadRow, attempt, find, finished, list_of, read_list, text_of
from data_synthesis.dialogues import Dialogue, Loaded, Role, Session, Turn

_CONVERSATION = re.compile(r"Task Conversation:\n(.*?)\n```", re.DOTALL)
_LINE = re.compile(r"^\(line (\d+)\) (user|bot|#\w+#): ?", re.MULTILINE)
_ROLES: dict[str, Role] = {"user": "user", "bot": "assistant"}


def load(source: Path | None = None) -> Loaded:
    """source: a folder above `train*.json` and `test*.json`, or one file. Raises InputError where no row can be used."""
    source = source or corpus_folder("memochat")
    files = find(source, ["train*.json", "test*.json"], "name the folder of MemoChat's train_1k.json.")
    loaded = Loaded("memochat", files=list(files))
    for name, path in files.items():
        split = "test" if path.name.startswith("test") else "train"
        for place, row in enumerate(attempt(loaded, name, "a list", read_list, path) or []):
            if isinstance(row, dict) and not str(row.get("type", "writing")).startswith("writing"):
                continue
            if dialogue := attempt(loaded, f"{name}[{place}]", "a writing row of MemoChat", _dialogue, row, split):
                loaded.dialogues.append(dialogue)
    return finished(loaded, source)


def _dialogue(row: dict[str, Any], split: str) -> Dialogue:
    prompt, answer = (part["value"] for part in row["conversations"])
    body = _CONVERSATION.search(prompt)
    if body is None:
        raise BadRow("no Task Conversation in the prompt")
    lines = list(_LINE.finditer(body[1]))
    if [int(line[1]) for line in lines] != list(range(1, len(lines) + 1)):
        raise BadRow("lines that are not numbered 1, 2, …")
    segments = _segments(answer, len(lines))
    starts = {segment["start"] for segment in segments}
    ends = [line.start() for line in lines[1:]] + [len(body[1])]
    turns = []
    for number, (line, end) in enumerate(zip(lines, ends, strict=True), start=1):
        speaker, text = line[2].strip("#"), body[1][line.end() : end].strip()
        shift = None if number == 1 else int(number in starts)
        turns.append(Turn(f"t{number}", speaker, text_of(text), _ROLES.get(speaker, ""), {"shift": shift}))
    name = f"{row['type'].removeprefix('writing_')}-{row['id']}"
    return Dialogue(name, "memochat", name, (Session("s0", "", tuple(turns)),), {"split": split, "segments": segments})


def _segments(answer: str, lines: int) -> list[dict[str, Any]]:
    try:
        segments = list_of(json.loads(answer), "segments")
    except ValueError:
        raise BadRow("an answer that is not JSON") from None
    due = 1
    for segment in segments:
        if segment["start"] != due or segment["end"] < due or not isinstance(segment["topic"], str):
            raise BadRow("segments that do not join end to end")
        due = segment["end"] + 1
    if due != lines + 1:
        raise BadRow("segments that do not end with the conversation")
    return segments
