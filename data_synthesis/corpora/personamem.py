"""PersonaMem (Jiang et al., 2025; 32k): long chats of 20 personas with an assistant, and multiple-choice questions. A
benchmark.

Licence: that of github.com/bowen-upenn/PersonaMem (check it there; the copies this was written against state none). Counts of
the 32k set: 589 questions, 37 contexts, 20 personas, 6,462 messages.

Layout: `questions_32k.csv`, and the contexts either as published (`shared_contexts_32k.jsonl`: per line {context id:
messages}) or as agent-memory-benchmark cuts them (`documents.json.gz`: per session the messages as text, each behind
"[SYSTEM] ", "[USER] " or "[ASSISTANT] ").

Traps:
- `end_index_in_shared_context` is exclusive: a question may be answered from messages 0 to end - 1 (`history`). The message
  at the end index belongs to what follows: in all 139 questions about how a preference evolved it is the question itself, and
  in 64 of 99 about reasons it answers the question, which is then the last message of the history. It is never beyond the
  context; its largest value is the number of messages less one, in each of the 37 contexts.
- The two contexts of a persona share sessions, in another order (16 of the 17 personas that have two): only whole personas may
  be split (`group`).
- `all_options` is JSON in 286 questions and a Python list in 303.
- Most messages, and some questions, begin with "User: " or "Assistant: "; that is taken off, since it repeats the role.
- Roles do not alternate strictly; ids count messages (`m0`, `m1`, …), which is what end indices count.
- The longest option is right in about half of the questions: report such a baseline beside any result.

A context becomes one Dialogue, with a session from each system message to the next. `Dialogue.labels`: `questions`, each {id,
type, topic, question, options, answer, end_index_in_shared_context}.
"""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from data_synthesis.corpora import corpus_folder
from data_synthesis.corpora.files import BadRow, attempt, find, finished, json_lines, list_of, read_list
from data_synthesis.dialogues import Dialogue, Loaded, Role, Session, Turn
from extractors.contract import InputError

Message = tuple[Role, str]

_ADVICE = "name a folder with questions_32k.csv and shared_contexts_32k.jsonl or documents.json.gz."
_MESSAGE = re.compile(r"(?:\A|\n\n)\[(SYSTEM|USER|ASSISTANT)\] ")
_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}


def load(source: Path | None = None) -> Loaded:
    """source: a folder that holds the questions and the contexts. Raises InputError where no context can be read."""
    source = source or corpus_folder("personamem")
    tables = find(source, ["questions_32k.csv"], _ADVICE)
    contexts = find(source, ["shared_contexts_32k.jsonl", "documents.json.gz", "documents.json"], _ADVICE)
    # Where both forms are there, one is enough.
    contexts = {name: path for name, path in contexts.items() if path.name == next(iter(contexts.values())).name}
    loaded = Loaded("personamem", files=[*tables, *contexts])
    questions: dict[str, list[dict[str, Any]]] = {}
    for name, path in tables.items():
        for place, row in _table(path, name):
            if question := attempt(loaded, place, "a question of PersonaMem", _question, row):
                questions.setdefault(question.pop("context"), []).append(question)
    for place, context, messages in _contexts(contexts, loaded):
        asked = questions.pop(context, [])
        if dialogue := attempt(loaded, place, "a context", _dialogue, context, messages, asked, loaded):
            loaded.dialogues.append(dialogue)
    for context, left in questions.items():
        for question in left:
            loaded.reject("a question about a context that is not there", f"{question['id']} ({context})")
    return finished(loaded, source)


def history(dialogue: Dialogue, question: Mapping[str, Any]) -> Dialogue:
    """The dialogue as it stood when `question` (one of its labels) was asked: messages 0 to end index - 1.

    The sessions' last one is cut short; labels, which tell of later questions, are left out. Raises InputError for an end
    index outside the dialogue.
    """
    end: int = question["end_index_in_shared_context"]
    count = sum(1 for _ in dialogue.turns())
    if not 0 < end <= count:
        raise InputError(
            f"question {question.get('id')!r} ends at message {end}, but {dialogue.id} has {count}: is it its question?"
        )
    sessions = []
    for session in dialogue.sessions:
        if end > 0:
            sessions.append(replace(session, turns=session.turns[:end]))
        end -= len(session.turns)
    return replace(dialogue, sessions=tuple(sessions), labels={})


def _table(path: Path, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    with path.open(encoding="utf-8", newline="", errors="replace") as file:
        reader = csv.DictReader(file)
        for row in reader:
            yield f"{name}:{reader.line_num}", row


def _question(row: dict[str, Any]) -> dict[str, Any]:
    options = _options(row["all_options"])
    answer = row["correct_answer"].strip()
    if not answer or not any(option.startswith(answer) for option in options):
        raise BadRow("a correct answer that is none of the options")
    return {
        "id": row["question_id"],
        "type": row["question_type"],
        "topic": row["topic"],
        "persona": row["persona_id"],
        "question": row["user_question_or_message"].removeprefix("User:").strip(),
        "options": options,
        "answer": answer,
        "end_index_in_shared_context": int(row["end_index_in_shared_context"]),
        "context": row["shared_context_id"],
    }


def _options(written: str) -> list[str]:
    for read in (json.loads, ast.literal_eval):
        try:
            options = read(written)
        except (ValueError, SyntaxError):
            continue
        if isinstance(options, list) and options and all(isinstance(option, str) for option in options):
            return options
    raise BadRow("options that are no list of texts")


def _contexts(files: Mapping[str, Path], loaded: Loaded) -> Iterator[tuple[str, str, list[Message]]]:
    """(place, context id, messages) of every context that can be read."""
    for name, path in files.items():
        if path.suffix == ".jsonl":
            for place, data in json_lines(path, name, loaded):
                for context, raw in data.items():
                    if messages := attempt(loaded, place, "a list of messages", _published, raw):
                        yield place, context, messages
            continue
        documents = attempt(loaded, name, "a list", read_list, path) or []
        parts: dict[str, dict[int, list[Message]]] = {}
        broken: set[str] = set()
        for index, document in enumerate(documents):
            read = attempt(loaded, f"{name}[{index}]", "a document (id, content)", _document, document)
            if read:
                parts.setdefault(read[0], {})[read[1]] = read[2]
            elif isinstance(document, dict):
                broken.add(str(document.get("user_id")))
        for context, sessions in parts.items():
            # Without all of its sessions, end indices would point at other messages.
            if context in broken or sorted(sessions) != list(range(len(sessions))):
                loaded.reject("a context with a missing session", context)
            else:
                yield context, context, [message for n in sorted(sessions) for message in sessions[n]]


def _published(raw: Any) -> list[Message]:
    return [(_ROLES[m["role"]], m["content"].strip()) for m in list_of(raw, "messages")]


def _document(document: dict[str, Any]) -> tuple[str, int, list[Message]]:
    context, number = document["id"].rsplit("_", 1)
    marks = list(_MESSAGE.finditer(document["content"]))
    if not marks or marks[0].start() != 0:
        raise BadRow("a document that does not begin with a role")
    ends = [mark.start() for mark in marks[1:]] + [None]
    texts = [document["content"][mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]
    return context, int(number), [(_ROLES[m[1].lower()], text) for m, text in zip(marks, texts, strict=True)]


def _dialogue(context: str, messages: list[Message], asked: list[dict[str, Any]], loaded: Loaded) -> Dialogue:
    personas = {question.pop("persona") for question in asked}
    if len(personas) != 1:
        raise BadRow("a context of no persona, or of several: nothing says which split it belongs to")
    for question in [q for q in asked if not 0 < q["end_index_in_shared_context"] <= len(messages)]:
        loaded.reject("a question that ends outside its context", question["id"])
        asked.remove(question)
    sessions: list[list[Turn]] = []
    for number, (role, text) in enumerate(messages):
        if role == "system" or not sessions:
            sessions.append([])
        speaker = role.capitalize()
        sessions[-1].append(Turn(f"m{number}", speaker, text.removeprefix(f"{speaker}:").strip(), role))
    return Dialogue(
        context,
        "personamem",
        personas.pop(),
        tuple(Session(f"s{number}", "", tuple(turns)) for number, turns in enumerate(sessions)),
        {"questions": asked},
    )
