"""HaluMem (2511.03506): users who talk to an assistant over years, with the memories that each session should leave.

Licence: CC BY-NC-ND 4.0: nothing derived from it may be passed on. Source: github.com/MemTensor/HaluMem. Dialogues come from
`HaluMem-Medium.jsonl`, `HaluMem-Long.jsonl` or slices of them in the same schema (at hand: users 0 and 3 of Medium, cut to 29
and 25 sessions with 1,334 and 1,020 turns). The stages of its making (`stage*.jsonl`, 20 users) have no dialogues, but 682
preference events with their operations (470 Modify, 212 Delete): `events`.

Layout: a line is a user: `uuid`, `persona_info`, `sessions` (each `start_time`, `dialogue`, `memory_points`, at times
`questions`); or, in `stage3_2_preference_events.jsonl`, `uuid` and `event_list`.

Traps:
- `is_update` is the text "True" or "False"; here it is a truth value.
- Memory points of source `interference` are false: the assistant said them and the user did not. They must not be learnt.
- User 3 of Medium is the eleventh user of the stages: only `uuid` tells who is who, so it is the group.
- `changed_index` counts in the whole preference list of a type, while `before_preference` holds just the one that changes.
  A deleted preference stands in `after_preference` with `deleted: true`.
- `token_cost` and the like are left out.

`Dialogue.labels`: `persona_info`; `memory_points` and `questions`, each by session id. `Turn.labels`: `timestamp`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from data_synthesis.corpora import corpus_folder
from data_synthesis.corpora.files import BadRow, attempt, find, finished, iso, json_lines, list_of, text_of
from data_synthesis.dialogues import Dialogue, Loaded, Role, Session, Turn

_TIME = "%b %d, %Y, %H:%M:%S"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
EVENTS = "stage3_2_preference_events.jsonl"
INITIAL = "stage3_3_init_events.jsonl"


def load(source: Path | None = None) -> Loaded:
    """The users' dialogues. source: a folder (stages are passed over) or a file. Raises InputError where no user is left.

    A user who stands in several files is taken from the first one: Medium, then Long, then slices.
    """
    source = source or corpus_folder("halumem")
    patterns = ["HaluMem-Medium*.jsonl", "HaluMem-Long*.jsonl", "pilot_slice*.jsonl"]
    if source.is_file():
        patterns = ["*"]
    files = find(source, patterns, "name HaluMem-Medium.jsonl, or a folder with it or with pilot_slice*.jsonl.")
    loaded = Loaded("halumem", files=list(files))
    for name, path in files.items():
        for place, data in json_lines(path, name, loaded):
            if dialogue := attempt(loaded, place, "a user of HaluMem", _user, data, place, loaded):
                loaded.dialogues.append(dialogue)
    return finished(loaded, source)


def events(source: Path | None = None) -> Loaded:
    """The preference events of the intermediate stages: a Dialogue per user, a session of one turn per event, in order.

    The turn's text is the event as the user tells it; its labels are the event's own keys (`update_direction` Modify or
    Delete, `preference_type`, `before_preference`, `after_preference`, `changed_index`, `update_reason`, …).
    `Dialogue.labels["initial"]` holds the preferences before all events, by type, where `stage3_3_init_events.jsonl` is
    there. Raises InputError where no user can be read.
    """
    source = source or corpus_folder("halumem")
    files = find(source, [EVENTS], f"name a folder with HaluMem's {EVENTS}.")
    loaded = Loaded("halumem", files=list(files))
    initial: dict[str, Any] = {}
    if not source.is_file():
        for path in sorted(source.rglob(INITIAL)):
            name = path.relative_to(source).as_posix()
            loaded.files.append(name)
            for place, data in json_lines(path, name, loaded):
                if read := attempt(loaded, place, "a user's initial events", _initial, data):
                    initial[read[0]] = read[1]
    for name, path in files.items():
        for place, data in json_lines(path, name, loaded):
            dialogue = attempt(loaded, place, "a user's preference events", _events, data, place, initial, loaded)
            if dialogue:
                loaded.dialogues.append(dialogue)
    return finished(loaded, source)


def _user(data: dict[str, Any], place: str, loaded: Loaded) -> Dialogue:
    sessions: list[Session] = []
    points: dict[str, Any] = {}
    questions: dict[str, Any] = {}
    for number, raw in enumerate(list_of(data["sessions"], "sessions")):
        name, where = f"s{number}", f"{place} sessions[{number}]"
        session = attempt(loaded, where, "a session of HaluMem", _session, raw, name)
        if session is None:
            continue
        sessions.append(session)
        points[name] = attempt(loaded, where, "memory points", _points, raw) or []
        questions[name] = raw.get("questions", [])
    if not sessions:
        raise BadRow("no session that can be used")
    labels = {"persona_info": data.get("persona_info", ""), "memory_points": points, "questions": questions}
    return Dialogue(data["uuid"], "halumem", data["uuid"], tuple(sessions), labels)


def _session(raw: dict[str, Any], name: str) -> Session:
    turns = []
    for number, said in enumerate(list_of(raw["dialogue"], "dialogue")):
        if said["role"] not in _ROLES:
            raise BadRow("a role other than user and assistant")
        role, labels = _ROLES[said["role"]], {"timestamp": iso(said["timestamp"], _TIME)}
        turns.append(Turn(f"{name}:{number}", role.capitalize(), text_of(said["content"]), role, labels))
    return Session(name, iso(raw["start_time"], _TIME), tuple(turns))


def _points(raw: dict[str, Any]) -> list[dict[str, Any]]:
    points = raw.get("memory_points", [])
    if any(not isinstance(p["memory_content"], str) or str(p["is_update"]) not in ("True", "False") for p in points):
        raise BadRow("a memory point without memory_content or is_update (its session stays, without any)")
    return [{**point, "is_update": str(point["is_update"]) == "True"} for point in points]


def _initial(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    (found,) = [e["initial_preference"] for e in data["event_list"] if e["event_type"] == "initial_preference"]
    return data["uuid"], {kind: preferences["memory_points"] for kind, preferences in found.items()}


def _events(data: dict[str, Any], place: str, initial: dict[str, Any], loaded: Loaded) -> Dialogue:
    sessions = []
    for number, raw in enumerate(list_of(data["event_list"], "event_list")):
        where = f"{place} event_list[{number}]"
        if session := attempt(loaded, where, "a preference event", _event, raw):
            sessions.append(session)
    if not sessions:
        raise BadRow("no event that can be used")
    name = data["uuid"]
    labels = {"initial": initial[name]} if name in initial else {}
    return Dialogue(f"{name}/preferences", "halumem", name, tuple(sessions), labels)


def _event(raw: dict[str, Any]) -> Session:
    if raw["update_direction"] not in ("Modify", "Delete", "Add"):
        raise BadRow("an update_direction other than Modify, Delete and Add")
    for side in ("before_preference", "after_preference"):
        if not isinstance(raw[side]["memory_points"], list):
            raise BadRow(f"no memory points in {side}")
    name = f"event_{raw['event_id']}"
    labels = {key: value for key, value in raw.items() if key != "event_description"}
    return Session(name, "", (Turn(name, "User", text_of(raw["event_description"]), "user", labels),))
