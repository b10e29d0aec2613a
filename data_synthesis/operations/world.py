"""The simulated persona world as walks: what its people tell about themselves, and the ends of what they told.

Of a dialogue each of the two people has a walk, over the same turns. Recorded is what is said about that person, whoever
says it: first mentions, further things of a kind, names for pets and kin that were there without, new values in the place of
old ones, and ends. Facts about third persons belong to other memories. A slip that is put right in the same breath, a
rumour, a denial and a joke change nothing.

A row's tag `about` says whose facts its chunk holds: the person's, only those of others, nobody's.

A memory seldom begins empty: a walk starts with a share of what held before the first session, and with whatever is
said to have ended later on. Without that, nearly all operations would be ADD.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from data_synthesis.corpora import load_dialogues
from data_synthesis.dialogues import Dialogue, Loaded
from data_synthesis.operations import Change, Step, Walk, operations_for
from data_synthesis.world.life import KIN, TRAITS
from extractors.triplets import Turn

LEAVES = {
    "allergy_to": "Biological.Physiological_Status.Allergies",
    "scared_of": "Psychological.Psychological_State.Fears",
    "want_do": "Identity.Motivations_and_Goals.Wishes",
    "place_origin": "Identity.Social_Identity.Origin",
    "live_in_citystatecountry": "Identity.Social_Identity.Residence",
    "has_profession": "Identity.Social_Identity.Occupation",
    "employed_by_company": "Identity.Social_Identity.Employer",
    "previous_profession": "Identity.Social_Identity.Past_Occupations",
    "attend_school": "Identity.Social_Identity.School",
    "has_degree": "Identity.Social_Identity.Degree",
    "member_of": "Identity.Social_Identity.Memberships",
    "relationship": "Identity.Family_System.Partner",
    "have_children": "Identity.Family_System.Children",
    "have_sibling": "Identity.Family_System.Siblings",
    "have_family": "Identity.Family_System.Relatives",
    "have_pet": "Identity.Family_System.Pets",
    "like_food": "Behavioural.Lifestyle.Liked_Food",
    "dislike_food": "Behavioural.Lifestyle.Disliked_Food",
    "has_hobby": "Behavioural.Interests_and_Skills.Hobbies",
    "collect": "Behavioural.Interests_and_Skills.Collections",
    "favorite_color": "Behavioural.Interests_and_Skills.Favourite_Colour",
    "own": "Behavioural.Material_Security.Possessions",
    "have_vehicle": "Behavioural.Material_Security.Vehicle",
    "like_music": "Behavioural.Knowledge_Base.Music",
    "favorite_movie": "Behavioural.Knowledge_Base.Films_and_Series",
}
KNOWN_BEFORE = 0.25  # of what held before the first session and never ends
SINGLE = frozenset(relation for relation, trait in TRAITS.items() if trait.single) | {"relationship"}


def load(source: str | None = None) -> Loaded:
    return load_dialogues("world", source)


def walks(dialogue: Dialogue, moves: int = 3) -> Iterator[Walk]:
    """The walks of both people of a world dialogue. moves: exchanges to a chunk; none crosses a session."""
    for person in dialogue.labels["people"]:
        told = changes(dialogue, person)
        steps: list[Step] = []
        for session in dialogue.sessions:
            numbers = sorted({turn.labels["move"] for turn in session.turns})
            for start in range(0, len(numbers), moves):
                wanted = set(numbers[start : start + moves])
                turns = [turn for turn in session.turns if turn.labels["move"] in wanted]
                told_here = tuple(change for turn in turns for change in told.get(turn.id, ()))
                other = any(turn.labels["gold"] for turn in turns)
                steps.append(
                    Step(
                        f"{person['id']}-c{len(steps):03d}",
                        tuple(Turn(turn.speaker, turn.text, turn.id) for turn in turns),
                        told_here,
                        {"about": "the person" if told_here else "others" if other else "nobody"},
                    )
                )
        yield Walk(person["id"], dialogue.group, person["name"], tuple(steps), known_before(dialogue, person))


def known_before(dialogue: Dialogue, person: Mapping[str, Any]) -> dict[str, str]:
    """Values by leaf path before the first session; which of the facts, the hash of their ids decides."""
    first = dialogue.sessions[0].date
    facts = [
        fact
        for fact in dialogue.labels["facts"]
        if fact["subject"] == person["id"] and fact["relation"] in LEAVES and fact["valid_from"] < first
        if fact["valid_to"] is None or fact["valid_to"] > first
        if fact["retracted_in"] or _share(fact["id"]) < KNOWN_BEFORE
    ]
    begun = (Change(LEAVES[f["relation"]], f["object"], None, f["relation"] in SINGLE) for f in facts)
    return {o.path: o.value for o in operations_for(begun, {}) if o.value is not None}


def _share(name: str) -> float:
    """A number from 0 to 1 that is a name's own, the same on every run."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) / 2**64


def changes(dialogue: Dialogue, person: Mapping[str, Any]) -> dict[str, list[Change]]:
    """By turn id, what is said there about a person (an entry of `labels["people"]`): ends before beginnings."""
    found: dict[str, list[Change]] = {}
    pets = {f"{person['name']}'s {pet['species']}": pet["species"] for pet in person["pets"]}
    roles = {relative["name"]: relative["role"] for relative in person["relatives"]}
    for fact in dialogue.labels["facts"]:
        if fact["subject"] == person["id"] and fact["relation"] in LEAVES:
            for turn_id in fact["retracted_in"]:
                found.setdefault(turn_id, []).append(Change(LEAVES[fact["relation"]], None, fact["object"]))
    texts = {turn.id: turn.text for turn in dialogue.turns()}
    for turn in dialogue.turns():
        for item in turn.labels["gold"]:
            subject, relation, value = item["subject"], item["relation"], item["object"]
            if relation == "name" and subject in pets:
                change = Change(LEAVES["have_pet"], f"{pets[subject]} {value}", pets[subject])
            elif subject != person["name"] or relation not in LEAVES:
                continue
            elif relation in KIN:
                role = roles.get(value, "")
                said = " ".join(texts[name] for name in item["evidence"])
                named = f"{role} {value}" if role and re.search(rf"\b{role}\b", said) else value
                # A name without the role adds nothing to "brother Gustav"; the role adds to a bare name.
                change = Change(LEAVES[relation], named, value if named != value else None, relation in SINGLE)
            else:
                change = Change(LEAVES[relation], value, None, relation in SINGLE)
            found.setdefault(turn.id, []).append(change)
    return found
