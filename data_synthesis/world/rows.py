"""From dialogues to dataset rows: one short window per move, its gold, and the full dialogues for other extractors."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date
from typing import Any

from data_synthesis.world.grammar import Text, finish
from data_synthesis.world.life import Fact, Lives, Person, session_days
from data_synthesis.world.script import Script
from data_synthesis.world.telling import Mention, Move
from data_synthesis.world.values import Values

MAX_CONTEXT = 2
EARLIER_CONTEXT = 0.4  # how often a window without context of its own takes along what was said just before


@dataclass(frozen=True)
class Window:
    """One row, the skeletons of its utterances (context too, for the check between splits), and how many of its facts
    are stated by an ellipsis ("same here", "Ghent in my case").

    The row's tags: phrasing (seen; unseen: a reserved phrasing states some of the gold; none: no gold), unseen_gold
    (places of the gold items that reserved phrasings state), kind (of move), session (number).
    """

    row: dict[str, Any]
    skeletons: tuple[str, ...]
    elliptical: int


@dataclass
class Conversation:
    """A pair's dialogue in its JSON form and the rows cut from it."""

    record: dict[str, Any]
    windows: list[Window]


def converse(
    split: str, number: int, lives: Lives, values: Values, rng: random.Random, sessions: int, moves: int
) -> Conversation:
    """Let two people live and talk. number: of the pair, in its split."""
    group = f"{split}-{number:05d}"
    days = session_days(rng, sessions)
    people = lives.pair((f"{group}a", f"{group}b"), days)
    used = {value.casefold() for p in people for value in _values_of(p)}
    script = Script(people, used, values, rng)
    conversation = Conversation(
        {
            "id": group,
            "split": split,
            "people": [_person(p) for p in people],
            "sessions": [],
            "facts": [],
            "events": _events(people),
        },
        [],
    )
    support: dict[str, list[str]] = {}
    retraction: dict[str, list[str]] = {}
    for index, day in enumerate(days):
        turns: list[dict[str, Any]] = []
        session: dict[str, Any] = {"id": f"{group}-s{index}", "date": day.isoformat(), "turns": turns}
        conversation.record["sessions"].append(session)
        skeletons: list[str] = []
        for number_of_move, move in enumerate(script.session(day, days[index - 1] if index else None, moves)):
            texts = [finish(text) for _, text in move.turns]
            start = len(turns)
            for (who, _), text in zip(move.turns, texts, strict=True):
                turn_id = f"{group}-s{index}-t{len(turns):03d}"
                turns.append({"id": turn_id, "speaker": people[who].name, "text": text.plain, "move": number_of_move})
                skeletons.append(text.skeleton)
            ids = [turn["id"] for turn in turns[start:]]
            gold = _gold(move, texts, ids)
            for mention, item in gold:
                turns[start + mention.evidence[-1]].setdefault("gold", []).append(item)
                support.setdefault(mention.fact.id, []).extend(item["evidence"])
            for fact, at in move.ended:
                retraction.setdefault(fact.id, []).append(ids[at])
            first = start
            if move.focus == 0 and not move.role_only and rng.random() < EARLIER_CONTEXT:
                first = max(0, start - rng.choice((1, 1, 2)))
            first = max(first, start + move.focus - MAX_CONTEXT)
            context = turns[first : start + move.focus]
            in_row = _distinct([(m, item) for m, item in gold if m.in_row])
            unseen = [place for place, (mention, _) in enumerate(in_row) if mention.phrasing.reserved]
            row = {
                "id": f"{group}-s{index}-r{len(conversation.windows):04d}",
                "group": group,
                "input": {
                    "context": [_bare(t) for t in context],
                    "turns": [_bare(t) for t in turns[start + move.focus :]],
                },
                "gold": [item for _, item in in_row],
                "tags": {
                    "phrasing": "none" if not in_row else "unseen" if unseen else "seen",
                    "unseen_gold": unseen,
                    "kind": move.kind,
                    "session": index,
                },
            }
            elliptical = sum(m.phrasing.form == "ellipsis" for m, _ in in_row)
            conversation.windows.append(Window(row, tuple(skeletons[first:]), elliptical))
    for person in people:
        for fact in _all_facts(person):
            conversation.record["facts"].append(_fact(fact, person, support, retraction))
    return conversation


def _gold(move: Move, texts: list[Text], ids: list[str]) -> list[tuple[Mention, dict[str, Any]]]:
    """Gold items in order of mention; an object that only an earlier turn holds comes where it is taken up."""
    placed = []
    for order, mention in enumerate(move.mentions):
        spans = [
            (number, *text.spans[mention.key])
            for number, text in enumerate(texts)
            if mention.key and mention.key in text.spans
        ]
        if spans:
            turn, offset, value = spans[0]
        else:  # "same here": the object as it is written in the turn that it refers to
            turn, offset, value = mention.evidence[-1], 0, _as_written(mention.fact.object, texts)
        item = {
            "subject": mention.subject,
            "relation": mention.fact.relation,
            "object": value,
            "evidence": [ids[number] for number in mention.evidence],
        }
        placed.append((turn, offset, order, mention, item))
    placed.sort(key=lambda entry: entry[:3])
    return [(mention, item) for _, _, _, mention, item in placed]


def _as_written(value: str, texts: list[Text]) -> str:
    for text in texts:
        at = text.plain.casefold().find(value.casefold())
        if at >= 0:
            return text.plain[at : at + len(value)]
    raise ValueError(f"{value!r} stands in none of the turns that refer to it.")


def _distinct(items: list[tuple[Mention, dict[str, Any]]]) -> list[tuple[Mention, dict[str, Any]]]:
    """The first mention of every triplet."""
    first: dict[tuple[str, str, str], tuple[Mention, dict[str, Any]]] = {}
    for mention, item in items:
        first.setdefault((item["subject"], item["relation"], item["object"]), (mention, item))
    return list(first.values())


def _bare(turn: dict[str, Any]) -> dict[str, str]:
    return {key: turn[key] for key in ("id", "speaker", "text")}


def _all_facts(person: Person) -> list[Fact]:
    facts = person.facts + [f for r in person.relatives for f in r.facts] + [p.naming for p in person.pets]
    return sorted(facts, key=lambda fact: fact.id)


def _values_of(person: Person) -> list[str]:
    return [person.name, *(r.name for r in person.relatives), *(f.object for f in _all_facts(person))]


def _person(person: Person) -> dict[str, Any]:
    return {
        "id": person.id,
        "name": person.name,
        "surname": person.surname,
        "pronoun": person.pronoun,
        "relatives": [
            {"id": r.id, "name": r.name, "role": r.role, "pronoun": r.pronoun, "kin": r.kin.relation if r.kin else None}
            for r in person.relatives
        ],
        "pets": [
            {"id": p.id, "name": p.naming.object, "species": p.fact.object, "pronoun": p.pronoun} for p in person.pets
        ],
    }


def _events(people: tuple[Person, Person]) -> list[dict[str, Any]]:
    events = sorted((e for p in people for e in p.events), key=lambda e: (e.date, e.person))
    return [
        {"date": e.date.isoformat(), "kind": e.kind, "person": e.person, "ended": list(e.ended), "began": list(e.began)}
        for e in events
    ]


def _fact(
    fact: Fact, person: Person, support: dict[str, list[str]], retraction: dict[str, list[str]]
) -> dict[str, Any]:
    def day(value: date | None) -> str | None:
        return value.isoformat() if value else None

    return {
        "id": fact.id,
        "owner": person.id,
        "subject": fact.subject,
        "relation": fact.relation,
        "object": fact.object,
        "valid_from": day(fact.valid_from),
        "valid_to": day(fact.valid_to),
        "support": list(dict.fromkeys(support.get(fact.id, []))),
        "retracted_in": retraction.get(fact.id, []),
    }
