"""How the offline teacher answers, one task after the other: the task is recognised by its contract's system message,
and the answer is an output of that contract, taken from what the world knows."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from data_synthesis.offline.world import World, key
from data_synthesis.operations import Change, operations_for
from extractors.continuity import BOUNDARY, CONTINUES, ContinuityExtractor
from extractors.contract import Extractor
from extractors.persona_tree import NO_OP, Operation, PersonaTreeExtractor, load_schema
from extractors.triplets import Triplet, TripletExtractor

Triplets = tuple[Triplet, ...]


class Unanswerable(Exception):
    """The world does not know what is asked about. The text holds nothing of the prompt."""


@dataclass(frozen=True)
class Asked:
    """A prompt: its system message, its last user message, and the JSON schema that binds the answer, if any."""

    system: str
    user: str
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Task:
    """systems: how its contract's system messages begin; answer: the gold, or Unanswerable; vary: another sample's
    slightly different answer; invent: the same with a value that nobody said; wrong: JSON of another shape."""

    extractor: Extractor[Any, Any]
    systems: tuple[str, ...]
    answer: Callable[[World, Asked], Any]
    vary: Callable[[Any, random.Random], Any]
    invent: Callable[[Any, World, random.Random], Any]
    wrong: Callable[[Any], str]


def recognise(system: str) -> Task:
    """The task of a system message. Raises Unanswerable."""
    for task in TASKS:
        if system.startswith(task.systems):
            return task
    names = ", ".join(task.extractor.name for task in TASKS)
    raise Unanswerable(f"the system message is that of no task which the offline teacher does ({names})")


# -- triplets --------------------------------------------------------------------------------------------------------

_TRIPLET_PROMPTS = [TripletExtractor(prompt=name).prompt() for name in ("standard", "compact")]
_TRIPLET_SYSTEMS = tuple(prompt["messages"][0]["content"] for prompt in _TRIPLET_PROMPTS)


def _marks(prompt: Mapping[str, Any]) -> tuple[str, str, str]:
    """Of a triplets prompt: what stands before the turns, before the context and after the context."""
    before_turns = prompt["messages"][1]["content"].removeprefix("{context}").removesuffix("{turns}")
    before_context, after_context = prompt["context"].split("{turns}")
    return before_turns, before_context, after_context


_TRIPLET_MARKS = dict(zip(_TRIPLET_SYSTEMS, map(_marks, _TRIPLET_PROMPTS), strict=True))
_CLOSED = TripletExtractor(relations=["x"], closed=True).prompt()["messages"][0]["content"]
_CLOSED_BEFORE, _CLOSED_AFTER = _CLOSED.removeprefix(_TRIPLET_SYSTEMS[0]).split("x")


def triplets(world: World, asked: Asked) -> Triplets:
    """The gold of the turns in question, in their order, every triplet once. Where the same turns were said more than
    once, the context decides, else the first time. A closed vocabulary leaves out what it cannot name."""
    system = next(system for system in _TRIPLET_SYSTEMS if asked.system.startswith(system))
    before_turns, before_context, after_context = _TRIPLET_MARKS[system]
    context, mark, turns = asked.user.partition(after_context + before_turns)
    if not mark:
        context, turns = "", asked.user.removeprefix(before_turns)
    said = [key(line) for line in turns.split("\n")]
    earlier = [key(line) for line in context.removeprefix(before_context).split("\n")] if context else []
    for number, line in enumerate(said, start=1):
        if line not in world.lines:
            raise Unanswerable(f"turn {number} of the {len(said)} to extract from was never said in this world")

    def runs_on(session: int, start: int, lines: list[str]) -> bool:
        turns = world.sessions[session]
        return start >= 0 and [turn.line for turn in turns[start : start + len(lines)]] == lines

    places = [place for place in world.lines[said[0]] if runs_on(*place, said)]
    if places:
        with_context = (p for p in places if runs_on(p[0], p[1] - len(earlier), earlier + said))
        session, start = next(with_context, places[0])
        spoken = world.sessions[session][start : start + len(said)]
    else:  # known turns, put together anew
        spoken = tuple(world.sessions[s][t] for s, t in (world.lines[line][0] for line in said))
    gold = dict.fromkeys(triplet for turn in spoken for triplet in turn.gold)
    allowed = _allowed_relations(asked)
    return tuple(triplet for triplet in gold if allowed is None or triplet.relation in allowed)


def _allowed_relations(asked: Asked) -> frozenset[str] | None:
    """The closed vocabulary, as the schema or the prompt states it; None where any relation may be named."""
    if asked.schema is not None:
        try:
            return frozenset(asked.schema["items"]["properties"]["relation"]["enum"])
        except (KeyError, TypeError):
            pass
    return _relations_named(asked.system)


@lru_cache(maxsize=64)
def _relations_named(system: str) -> frozenset[str] | None:
    _, mark, names = system.partition(_CLOSED_BEFORE)
    return frozenset(names.removesuffix(_CLOSED_AFTER).split(", ")) if mark else None


def _vary_triplets(gold: Triplets, rng: random.Random) -> Triplets:
    """One triplet fewer, or another order."""
    if not gold:
        return gold
    some = rng.sample(gold, len(gold))
    return tuple(some[1:] if rng.random() < 0.5 else some)


def _invent_triplet(gold: Triplets, world: World, rng: random.Random) -> Triplets:
    """One object becomes another one of the world; a fact from nowhere where there is none."""
    value = rng.choice(world.objects) if world.objects else "Atlantis"
    if not gold:
        return (Triplet("someone", "own", value),)
    at = rng.randrange(len(gold))
    return (*gold[:at], Triplet(gold[at].subject, gold[at].relation, value), *gold[at + 1 :])


def _wrong_triplets(gold: Triplets) -> str:
    return json.dumps([{"head": t.subject, "type": t.relation, "tail": t.object} for t in gold] or [{"head": "nobody"}])


# -- continuity ------------------------------------------------------------------------------------------------------

_CONTINUITY = {name: ContinuityExtractor(name).prompt()["messages"] for name in ("standard", "compact")}
_CONTINUITY_SYSTEMS = tuple(messages[0]["content"] for messages in _CONTINUITY.values())
_CONTINUITY_MARKS = {
    system["content"]: tuple(user["content"].removesuffix("{current}").split("{previous}"))
    for system, user in _CONTINUITY.values()
}


def continuity(world: World, asked: Asked) -> int:
    """1 where both utterances were said in one session and belong to the same move of the conversation, or where their
    moves share a topic: the same third person or pet, or the same field of the same speaker's life. 0 otherwise, so
    always across sessions and dialogues. Where they were said more than once, the places count where one speaker said
    both, in this order, and nearest to each other."""
    system = next(system for system in _CONTINUITY_SYSTEMS if asked.system.startswith(system))
    before, between = _CONTINUITY_MARKS[system]
    previous, mark, current = asked.user.removeprefix(before).partition(between)
    if not mark:
        raise Unanswerable("the user message does not hold two utterances as the contract writes them")
    places = []
    for name, text in (("previous", previous), ("current", current)):
        if key(text) not in world.texts:
            raise Unanswerable(f"the {name} utterance was never said in this world")
        places.append(world.texts[key(text)])
    first, second = places
    shared = [session for session in min(places, key=len) if session in first and session in second]
    if not shared:
        return BOUNDARY

    def nearness(place: tuple[int, int, int]) -> tuple[bool, bool, int]:
        session, a, b = place
        turns = world.sessions[session]
        return turns[a].speaker != turns[b].speaker, a >= b, abs(a - b)

    session, a, b = min(((s, a, b) for s in shared for a in first[s] for b in second[s]), key=nearness)
    one, other = world.sessions[session][a], world.sessions[session][b]
    return CONTINUES if one.move == other.move or one.topics & other.topics else BOUNDARY


# -- persona_tree ----------------------------------------------------------------------------------------------------

_TREES = {name: PersonaTreeExtractor(prompt=name, path_index="none") for name in ("standard", "compact")}
_TREE_SYSTEMS = {extractor.prompt()["messages"][0]["content"]: extractor.prompt() for extractor in _TREES.values()}
_FULL = load_schema("full")


def persona_tree(world: World, asked: Asked) -> tuple[Operation, ...]:
    """The operations that bring the tree of the prompt up to date with what its turns say of the person. Turns that were
    said more than once count where they were first."""
    prompt = next(prompt for system, prompt in _TREE_SYSTEMS.items() if asked.system.startswith(system))
    slots = "".join(
        f"(?P<{part[1:-1]}>.*?)" if part in ("{person}", "{tree}", "{turns}") else re.escape(part)
        for part in re.split(r"(\{\w+\})", prompt["messages"][1]["content"])
    )
    found = re.fullmatch(slots, asked.user, re.DOTALL)
    if found is None:
        raise Unanswerable("the user message does not hold a person, a tree and turns as the contract writes them")
    tree: dict[str, str] = {}
    for line in found["tree"].split("\n") if found["tree"] != prompt["empty_tree"] else ():
        name, _, value = line.partition(": ")
        tree[_FULL.canonical(name) or name] = value
    told: list[Change] = []
    for number, line in enumerate(found["turns"].split("\n"), start=1):
        speaker, mark, text = line.partition(": ")
        said = key(f"{found['person'] if speaker == prompt['own_speaker'] else speaker}{mark}{text}")
        if said not in world.lines:
            raise Unanswerable(f"turn {number} was never said in this world")
        told += world.told.get((*world.lines[said][0], key(found["person"])), [])
    return operations_for(told, tree)


def _vary_operations(gold: tuple[Operation, ...], rng: random.Random) -> tuple[Operation, ...]:
    """One operation fewer, or another order."""
    some = tuple(rng.sample(gold, len(gold)))
    return some[1:] or (NO_OP,) if rng.random() < 0.5 else some


def _invent_value(gold: tuple[Operation, ...], world: World, rng: random.Random) -> tuple[Operation, ...]:
    """One value becomes an object of the world."""
    at = next((place for place, operation in enumerate(gold) if operation.value is not None), None)
    if at is None:
        return gold
    value = rng.choice(world.objects) if world.objects else "Atlantis"
    return (*gold[:at], replace(gold[at], value=value), *gold[at + 1 :])


# -- all of them -----------------------------------------------------------------------------------------------------

TASKS = (
    Task(TripletExtractor(), _TRIPLET_SYSTEMS, triplets, _vary_triplets, _invent_triplet, _wrong_triplets),
    Task(
        ContinuityExtractor(),
        _CONTINUITY_SYSTEMS,
        continuity,
        vary=lambda gold, rng: 1 - gold,
        invent=lambda gold, world, rng: 1 - gold,
        wrong=lambda gold: '{"boundary":"perhaps"}',
    ),
    Task(
        _TREES["standard"],
        tuple(_TREE_SYSTEMS),
        persona_tree,
        _vary_operations,
        _invent_value,
        wrong=lambda gold: "\n".join(f"MERGE({operation.path or 'x'})" for operation in gold),
    ),
)
