"""LoCoMo (Maharana et al., ACL 2024): ten very long conversations between two people, with questions. A benchmark.

Licence: CC BY-NC 4.0. Source: github.com/snap-research/locomo, `data/locomo10.json`: 10 conversations, 272 sessions,
5,882 turns, 1,986 questions (categories 1 to 5: 282, 321, 96, 841, 446).

Layout: a list of conversations, each with `sample_id`, `conversation` (`speaker_a`, `speaker_b`, and per session
`session_N` and `session_N_date_time`), `qa`, and summaries that a model wrote (`event_summary`, `observation`,
`session_summary`).

Traps:
- One conversation has dates for 16 sessions that it does not have; they are no sessions here.
- Evidence is written by hand: several ids in one string, a zero too many (`D30:05`), and three that name no turn at all. Those
  are counted as rejected; their questions stay, with the evidence that is left.
- Category 5 (adversarial) has `adversarial_answer`, the answer that must not be given; `answer` is missing or an integer in
  places. Both are kept as they stand.
- A turn may share a picture. Its caption is a label of the turn (`blip_caption`), not part of its text.

`Dialogue.labels`: `speakers`; `questions`, each {id, question, answer, adversarial_answer, category, evidence}; and the
three summaries under their own names.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from data_synthesis.corpora import corpus_folder
from data_synthesis.corpora.files import BadRow, attempt, find, finished, iso, read_list, text_of
from data_synthesis.dialogues import Dialogue, Loaded, Session, Turn

_TIME = "%I:%M %p on %d %B, %Y"
_SESSION = re.compile(r"session_(\d+)")
_DIA_ID = re.compile(r"D:?(\d+):0*(\d+)")
_SUMMARIES = ("event_summary", "observation", "session_summary")
_TURN_LABELS = ("blip_caption", "query", "img_url")


def load(source: Path | None = None) -> Loaded:
    """source: the corpus folder or its `locomo10.json`. Raises InputError where no conversation can be read."""
    source = source or corpus_folder("locomo")
    files = find(source, ["locomo*.json"], "name the folder of locomo10.json.")
    loaded = Loaded("locomo", files=list(files))
    for name, path in files.items():
        for place, data in enumerate(attempt(loaded, name, "a list", read_list, path) or []):
            if dialogue := attempt(loaded, f"{name}[{place}]", "a LoCoMo conversation", _dialogue, data, loaded):
                loaded.dialogues.append(dialogue)
    return finished(loaded, source)


def _dialogue(data: dict[str, Any], loaded: Loaded) -> Dialogue:
    name, conversation = data["sample_id"], data["conversation"]
    numbers = sorted(int(match[1]) for key in conversation if (match := _SESSION.fullmatch(key)))
    sessions = tuple(
        session for number in numbers if (session := _session(name, conversation, number, loaded)) is not None
    )
    if not sessions:
        raise BadRow("no session")
    known = {turn.id for session in sessions for turn in session.turns}
    questions = []
    for place, qa in enumerate(data.get("qa", [])):
        question_id = f"{name}-q{place}"
        if question := attempt(loaded, question_id, "a question", _question, qa, question_id, known, loaded):
            questions.append(question)
    labels = {
        "speakers": [conversation["speaker_a"], conversation["speaker_b"]],
        "questions": questions,
        **{key: data[key] for key in _SUMMARIES if key in data},
    }
    return Dialogue(name, "locomo", name, sessions, labels)


def _session(name: str, conversation: dict[str, Any], number: int, loaded: Loaded) -> Session | None:
    place = f"{name} session_{number}"
    # A session whose date cannot be read is still a session.
    date = attempt(loaded, place, "a date", iso, conversation.get(f"session_{number}_date_time"), _TIME) or ""
    turns = []
    for data in conversation[f"session_{number}"]:
        if turn := attempt(loaded, place, "a turn (speaker, dia_id, text)", _turn, data):
            turns.append(turn)
    return Session(f"session_{number}", date, tuple(turns)) if turns else None


def _turn(data: dict[str, Any]) -> Turn:
    labels = {key: data[key] for key in _TURN_LABELS if key in data}
    return Turn(data["dia_id"], data["speaker"], text_of(data["text"]), labels=labels)


def _question(qa: dict[str, Any], name: str, known: set[str], loaded: Loaded) -> dict[str, Any]:
    evidence = []
    for written in qa.get("evidence", []):
        ids = [f"D{int(session)}:{int(turn)}" for session, turn in _DIA_ID.findall(written)]
        evidence += [turn for turn in ids if turn in known]
        if not ids or not known.issuperset(ids):
            loaded.reject("evidence that names no turn (its question stays)", name)
    kept: dict[str, Any] = {key: qa[key] for key in ("answer", "adversarial_answer") if key in qa}
    return {"id": name, "question": qa["question"], **kept, "category": qa["category"], "evidence": evidence}
