"""LongMemEval (Wu et al., ICLR 2025): one user's chats with an assistant, and a question about them. A benchmark.

Licence: MIT. Source: github.com/xiaowu0162/LongMemEval; 500 questions of six types, 30 of them abstentions (id ends with `_abs`).
Histories at hand: 2 questions in the original schema, and 16 + 4 in a merged one.

Layouts, told apart by what a file holds:
- original (`longmemeval_{oracle,s,m}*.json`): a list of {question_id, question_type, question, answer, question_date,
  haystack_dates, haystack_session_ids, haystack_sessions, answer_session_ids}; evidence turns have `has_answer`.
- merged: {data: [{id, question_type, conversation: [{role, content, date}], questions: [{id, question, answer}]}]}. It has lost
  session ids, evidence and the question's date; turns of one date are one session here.
Files of questions alone (without histories) are no dialogues and are rejected.

Traps:
- Every question has its own history, with sessions shared between questions: nothing here may be trained on.
- The same question stands in oracle, s and m with other histories: an id is `file/question`, the group is the question.
- Sessions are not always in the order of their dates; they stay as they stand. An answer may be a number.
- The merged schema puts a cut type before its ids (`temporal-rea-gpt4_2c50253f`).

`Dialogue.labels`: `questions`, a list of one: {id, type, question, answer, date, answer_session_ids, abstention}.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from data_synthesis.corpora import corpus_folder
from data_synthesis.corpora.files import BadRow, attempt, find, finished, iso, list_of, read_json, text_of
from data_synthesis.dialogues import Dialogue, Loaded, Role, Session, Turn

_TIME = "%Y/%m/%d (%a) %H:%M"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}


def load(source: Path | None = None) -> Loaded:
    """source: a folder above `longmemeval*.json`, or one file. Raises InputError where no history can be read."""
    source = source or corpus_folder("longmemeval")
    pattern = "*" if source.is_file() else "longmemeval*.json"
    files = find(source, [pattern], "name longmemeval_oracle.json, or a folder that holds it.")
    loaded = Loaded("longmemeval", files=list(files))
    for name, path in files.items():
        for place, row in enumerate(attempt(loaded, name, "a list of questions", _rows, path) or []):
            kind = "a question with its history"
            if dialogue := attempt(loaded, f"{name}[{place}]", kind, _dialogue, row, path.stem):
                loaded.dialogues.append(dialogue)
    return finished(loaded, source)


def _rows(path: Path) -> list[Any]:
    data = read_json(path)
    return list_of(data["data"] if isinstance(data, dict) else data, "questions")


def _dialogue(row: dict[str, Any], stem: str) -> Dialogue:
    if "conversation" in row:
        name, question, sessions = _merged(row)
    elif "haystack_sessions" in row:
        name, question, sessions = _original(row)
    else:
        raise BadRow("a question without its history")
    if not sessions:
        raise BadRow("no session with a turn")
    question["abstention"] = name.endswith("_abs")
    return Dialogue(f"{stem}/{name}", "longmemeval", name, tuple(sessions), {"questions": [question]})


def _original(row: dict[str, Any]) -> tuple[str, dict[str, Any], list[Session]]:
    histories = zip(row["haystack_session_ids"], row["haystack_dates"], row["haystack_sessions"], strict=True)
    sessions = [
        Session(name, iso(date, _TIME), _turns(number, turns))
        for number, (name, date, turns) in enumerate(histories)
        if turns
    ]
    question = {
        "id": row["question_id"],
        "type": row["question_type"],
        "question": row["question"],
        "answer": row["answer"],
        "date": iso(row["question_date"], _TIME),
        "answer_session_ids": row.get("answer_session_ids", []),
    }
    return row["question_id"], question, sessions


def _merged(row: dict[str, Any]) -> tuple[str, dict[str, Any], list[Session]]:
    by_date = groupby(list_of(row["conversation"], "conversation"), key=lambda turn: turn["date"])
    sessions = [
        Session(f"session_{number}", iso(date, _TIME), _turns(number, list(turns)))
        for number, (date, turns) in enumerate(by_date)
    ]
    (asked,) = row["questions"]
    name = row["id"].rsplit("-", 1)[-1]
    question = {"id": name, "type": row["question_type"], "question": asked["question"], "answer": asked["answer"]}
    return name, {**question, "date": "", "answer_session_ids": []}, sessions


def _turns(session: int, turns: list[dict[str, Any]]) -> tuple[Turn, ...]:
    read = []
    for place, turn in enumerate(turns):
        if turn["role"] not in _ROLES:
            raise BadRow("a role other than user and assistant")
        role = _ROLES[turn["role"]]
        labels = {"has_answer": turn["has_answer"]} if "has_answer" in turn else {}
        read.append(Turn(f"{session}:{place}", role.capitalize(), text_of(turn["content"]), role, labels))
    return tuple(read)
