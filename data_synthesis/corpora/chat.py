"""Your own conversations (`own`): JSONL, a dialogue a line, in our form or as OpenAI's chat format has it.

Our form; what is in brackets may be left out:

    {"id": "chat7", ["group": "mia",] ["labels": {…},]
     "sessions": [{["id": "s1",] ["date": "2024-05-01",]
                   "turns": [{["id": "t1",] "speaker": "Mia", "text": "I adopted a cat.", ["role": "user",]
                              ["labels": {…}]}]}]}

`group` is the person or conversation that must stay in one split; by default the dialogue itself. `date` is ISO 8601
(`2024-05-01` or `2024-05-01T13:56`). `role` is user, assistant, system or "" (between people); with a role, `speaker` may be
missing. `turns` in place of `sessions` is one session. Ids count up where they are missing; turn ids are unique in a dialogue.

OpenAI's chat format (fine-tuning files, logs of a server):

    {"messages": [{"role": "user", "content": "I adopted a cat."}, …], ["id": …,] ["group": …,] ["date": …]}

`content` is a text or a list of parts, of which the texts are joined by line breaks. `developer` counts as system, `name` is
the speaker where it is given. Messages of tools, those without any text (tool calls) and parts that are no text (images,
audio) are left out and counted. Licence: the owner's.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from data_synthesis.corpora.files import BadRow, attempt, find, finished, json_lines, list_of, text_of
from data_synthesis.dialogues import Dialogue, Loaded, Role, Session, Turn
from extractors.contract import InputError

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_TEXTS = ("text", "input_text", "output_text")


def load(source: Path | None = None) -> Loaded:
    """source: a JSONL file, or a folder of them. Raises InputError where there is none, or no line can be used."""
    if source is None:
        raise InputError("`own` has no folder of its own: name your JSONL file, or the folder of them, as `source`.")
    files = find(source, ["*" if source.is_file() else "*.jsonl"], "name a JSONL file with a dialogue a line.")
    loaded = Loaded("own", files=list(files))
    for name, path in files.items():
        for place, data in json_lines(path, name, loaded):
            kind = "a dialogue (sessions, turns or messages)"
            if dialogue := attempt(loaded, place, kind, _dialogue, data, place, loaded):
                loaded.dialogues.append(dialogue)
    return finished(loaded, source)


def _dialogue(data: dict[str, Any], place: str, loaded: Loaded) -> Dialogue:
    name = _name(data, "id", place)
    if "messages" in data:
        turns = tuple(_messages(list_of(data["messages"], "messages"), place, loaded))
        if not turns:
            raise BadRow("no message with text")
        sessions = [Session("s1", _date(data), turns)]
    else:
        raw = data["sessions"] if "sessions" in data else [{"turns": data["turns"], "date": data.get("date", "")}]
        sessions = []
        for number, session in enumerate(list_of(raw, "sessions"), start=1):
            before = sum(len(done.turns) for done in sessions)
            read = tuple(
                _turn(turn, before + count) for count, turn in enumerate(list_of(session["turns"], "turns"), start=1)
            )
            sessions.append(Session(_name(session, "id", f"s{number}"), _date(session), read))
    ids = [turn.id for session in sessions for turn in session.turns]
    if len(ids) != len(set(ids)):
        raise BadRow("a turn id that another turn has")
    labels = data.get("labels", {})
    if not isinstance(labels, dict):
        raise BadRow("`labels` that are no object")
    return Dialogue(name, "own", _name(data, "group", name), tuple(sessions), labels)


def _name(data: dict[str, Any], key: str, default: str) -> str:
    value = data.get(key, default)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise BadRow(f"a `{key}` that is neither a text nor a number")
    return str(value)


def _date(data: dict[str, Any]) -> str:
    date = data.get("date") or ""
    try:
        if date:
            datetime.fromisoformat(date)
    except (TypeError, ValueError):
        raise BadRow("a `date` that is not ISO 8601 (2024-05-01 or 2024-05-01T13:56)") from None
    return str(date)


def _turn(turn: dict[str, Any], number: int) -> Turn:
    role = turn.get("role", "")
    if role and role not in _ROLES:
        raise BadRow("a role other than user, assistant, system and developer")
    speaker = turn.get("speaker") or _ROLES.get(role, "").capitalize()
    if not isinstance(speaker, str) or not speaker:
        raise BadRow("a turn without speaker")
    labels = turn.get("labels", {})
    return Turn(_name(turn, "id", f"t{number}"), speaker, text_of(turn["text"]), _ROLES.get(role, ""), dict(labels))


def _messages(messages: list[Any], place: str, loaded: Loaded) -> list[Turn]:
    turns: list[Turn] = []
    for number, message in enumerate(messages, start=1):
        where, role, content = f"{place} messages[{number - 1}]", message["role"], message.get("content")
        if role in ("tool", "function"):
            loaded.reject("a tool's message (left out)", where)
            continue
        if role not in _ROLES:
            raise BadRow("a role other than user, assistant, system, developer and tool")
        if isinstance(content, list):
            texts = [part["text"] for part in content if part["type"] in _TEXTS]
            if len(texts) < len(content):
                loaded.reject("a part that is no text (left out)", where)
            content = "\n".join(texts)
        if content is None or not content.strip():
            loaded.reject("a message without text (left out)", where)
            continue
        speaker = message.get("name") or _ROLES[role].capitalize()
        turns.append(Turn(f"t{number}", speaker, content, _ROLES[role]))
    return turns
