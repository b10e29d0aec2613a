"""What the offline teacher knows: every turn of a simulated world, with the gold that its making left behind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_synthesis.corpora.world import load
from data_synthesis.operations import Change
from data_synthesis.operations.world import changes
from data_synthesis.world.life import KIN
from extractors.contract import InputError
from extractors.text import one_line
from extractors.triplets import Triplet

FILE = "dialogues.jsonl"
# A speaker talks about one field of life at a time; relations that are not listed are a field of their own.
FIELDS: dict[str, str] = {
    relation: field
    for field, relations in {
        "home": ("live_in_citystatecountry", "place_origin"),
        "work": ("employed_by_company", "has_profession", "previous_profession"),
        "studies": ("attend_school", "has_degree"),
        "food": ("like_food", "dislike_food", "allergy_to"),
        "leisure": ("has_hobby", "member_of", "collect", "like_music", "favorite_movie"),
        "belongings": ("own", "have_vehicle"),
    }.items()
    for relation in relations
}


@dataclass(frozen=True)
class Spoken:
    """One turn; its texts as `key` makes them. gold: the facts that it states; topics: what its move is about, which is
    a third person or pet as a whole, or one field of a speaker's life (`mia/food`)."""

    line: str
    speaker: str
    text: str
    move: int
    gold: tuple[Triplet, ...]
    topics: frozenset[str]


class World:
    """An index of a world folder. Raises InputError where the folder holds no world.

    sessions: the turns of each dated session of each dialogue; told: by session, turn and name, what the turn changes in what
    is known of that person; lines: for every `speaker: text` where it was said, as
    (session, turn); texts: the same for the text alone, by session; objects: of all gold triplets.
    """

    def __init__(self, folder: Path):
        path = folder / FILE
        if not path.is_file():
            raise InputError(f"{path} does not exist: name a folder that `mnemosmith simulate` made.")
        self.sessions: list[tuple[Spoken, ...]] = []
        self.told: dict[tuple[int, int, str], list[Change]] = {}
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    self.sessions += _sessions(json.loads(line))
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise InputError(f"{path}, line {number} is no dialogue of a world ({error!r}).") from None
        if not self.sessions:
            raise InputError(f"{path} holds no dialogue.")
        self.lines: dict[str, list[tuple[int, int]]] = {}
        self.texts: dict[str, dict[int, list[int]]] = {}
        self.objects: list[str] = []
        for session, turns in enumerate(self.sessions):
            for place, turn in enumerate(turns):
                self.lines.setdefault(turn.line, []).append((session, place))
                self.texts.setdefault(turn.text, {}).setdefault(session, []).append(place)
                self.objects += [triplet.object for triplet in turn.gold]
        self._note_what_is_told(folder)

    def _note_what_is_told(self, folder: Path) -> None:
        sessions = [(dialogue, session) for dialogue in load(folder).dialogues for session in dialogue.sessions]
        for number, (dialogue, session) in enumerate(sessions):
            for person in dialogue.labels["people"]:
                by_turn = changes(dialogue, person)
                for place, said in enumerate(session.turns):
                    self.told[number, place, key(person["name"])] = by_turn.get(said.id, [])


def key(text: str) -> str:
    """How texts are compared: as a contract's prompt shows them, case-folded."""
    return one_line(text).casefold()


def _sessions(dialogue: Mapping[str, Any]) -> Iterator[tuple[Spoken, ...]]:
    speakers = {person["name"] for person in dialogue["people"]}
    names = _names(dialogue["people"])
    ended: dict[str, list[tuple[str, str, str]]] = {}  # facts that a turn takes back
    for fact in dialogue["facts"]:
        for turn_id in fact["retracted_in"]:
            entry = (names.get(fact["subject"], fact["subject"]), fact["relation"], fact["object"])
            ended.setdefault(turn_id, []).append(entry)
    for session in dialogue["sessions"]:
        moves: dict[int, set[str]] = {}
        for turn in session["turns"]:
            facts = [(g["subject"], g["relation"], g["object"]) for g in turn.get("gold", ())]
            moves.setdefault(turn["move"], set()).update(_topics([*facts, *ended.get(turn["id"], ())], speakers))
        yield tuple(
            Spoken(
                line=key(f"{turn['speaker']}: {turn['text']}"),
                speaker=key(turn["speaker"]),
                text=key(turn["text"]),
                move=turn["move"],
                gold=tuple(Triplet(g["subject"], g["relation"], g["object"]) for g in turn.get("gold", ())),
                topics=frozenset(moves[turn["move"]]),
            )
            for turn in session["turns"]
        )


def _names(people: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Names by id, as the gold writes them."""
    names = {}
    for person in people:
        names[person["id"]] = person["name"]
        names |= {relative["id"]: relative["name"] for relative in person["relatives"]}
        names |= {pet["id"]: f"{person['name']}'s {pet['species']}" for pet in person["pets"]}
    return names


def _topics(facts: Iterable[tuple[str, str, str]], speakers: set[str]) -> Iterator[str]:
    for subject, relation, value in facts:
        if relation in KIN:
            yield value.casefold()
        elif subject in speakers:
            yield f"{subject}/{FIELDS.get(relation, relation)}".casefold()
        else:
            yield subject.casefold()
