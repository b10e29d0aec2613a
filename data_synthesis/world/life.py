"""A life that changes: people, the facts that hold for them and from when to when, and the events that change them.

Facts are kept apart from any wording. Every fact has a validity interval [valid_from, valid_to), `valid_to` None
while it holds; an event says which facts it ended and which it began. What is said about a fact in which turn is the
script's part.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import date, timedelta

from data_synthesis.world.values import KINDS, Values, deal

FIRST_DAY = date(2022, 1, 1)


@dataclass(frozen=True)
class Trait:
    """How a relation behaves in a life. kind: of its values; count: least and most at the start; single: a new value
    ends the old one; counted: the value takes an article; relatives: whether it is also told about third persons."""

    kind: str
    count: tuple[int, int]
    single: bool = False
    counted: bool = False
    relatives: bool = True


TRAITS: dict[str, Trait] = {
    "live_in_citystatecountry": Trait("town", (1, 1), single=True),
    "place_origin": Trait("town", (1, 1), single=True),
    "employed_by_company": Trait("employer", (1, 1), single=True),
    "has_profession": Trait("job", (1, 1), single=True, counted=True),
    "previous_profession": Trait("job", (0, 1), counted=True),
    "attend_school": Trait("school", (0, 1), single=True),
    "has_degree": Trait("degree", (0, 1)),
    "member_of": Trait("club", (0, 1)),
    "have_vehicle": Trait("vehicle", (0, 1), single=True, counted=True),
    "own": Trait("thing", (1, 2), counted=True),
    "collect": Trait("collection", (0, 2)),
    "want_do": Trait("wish", (0, 2)),
    "like_food": Trait("food", (1, 3)),
    "dislike_food": Trait("food", (1, 2)),
    "like_music": Trait("music", (1, 2)),
    "has_hobby": Trait("hobby", (1, 3)),
    "favorite_color": Trait("colour", (0, 1), single=True, relatives=False),
    "favorite_movie": Trait("film", (0, 1), single=True),
    "allergy_to": Trait("allergen", (0, 2)),
    "scared_of": Trait("fear", (0, 2)),
    "have_pet": Trait("pet", (0, 2), counted=True),
}
SHAREABLE = ("like_food", "dislike_food", "like_music", "scared_of", "has_hobby", "allergy_to", "collect")

# Roles by kin relation; None: close to the person, but no relation of the vocabulary.
ROLES: dict[str | None, dict[str, tuple[str, ...]]] = {
    "have_sibling": {"she": ("sister",), "he": ("brother",)},
    "have_children": {"she": ("daughter",), "he": ("son",)},
    "have_family": {
        "she": ("mother", "aunt", "grandmother", "niece", "cousin"),
        "he": ("father", "uncle", "grandfather", "nephew", "cousin"),
    },
    "relationship": {"she": ("wife", "girlfriend", "fiancée"), "he": ("husband", "boyfriend", "fiancé")},
    None: {
        "she": ("friend", "flatmate", "colleague", "neighbour"),
        "he": ("friend", "flatmate", "colleague", "neighbour"),
    },
}
KIN = ("have_sibling", "have_children", "have_family", "relationship")
CHILDLESS_TRAITS = ("like_food", "dislike_food", "has_hobby", "scared_of", "allergy_to", "want_do", "collect")


# What an event does to the facts of its person; the other kinds of event are written out in `Lives._happen`.
REPLACED = {
    "moved": "live_in_citystatecountry",
    "changed employer": "employed_by_company",
    "replaced the vehicle": "have_vehicle",
}
GAINED: dict[str, tuple[str, ...]] = {
    "found a taste": ("like_food", "like_music", "dislike_food"),
    "took up a hobby": ("has_hobby",),
    "bought something": ("own",),
    "joined a club": ("member_of",),
    "made a plan": ("want_do",),
    "became allergic": ("allergy_to",),
}
LOST: dict[str, tuple[str, ...]] = {
    "gave up a hobby": ("has_hobby",),
    "gave something away": ("own", "collect"),
    "left a club": ("member_of",),
    "stopped studying": ("attend_school",),
    "dropped a plan": ("want_do",),
    "overcame a fear": ("scared_of",),
    "lost a pet": ("have_pet",),
}
OTHER_EVENTS = (
    "changed career",
    "got a pet",
    "went off a food",
    "started studying",
    "had a baby",
    "found a partner",
    "split up",
)
EVENTS = (*REPLACED, *GAINED, *LOST, *OTHER_EVENTS)


@dataclass
class Fact:
    """One fact. subject: id of a person, relative or pet."""

    id: str
    subject: str
    relation: str
    object: str
    valid_from: date
    valid_to: date | None = None

    def holds(self, day: date) -> bool:
        return self.valid_from <= day and (self.valid_to is None or day < self.valid_to)


@dataclass
class Pet:
    """A pet with a name. fact: the owner's have_pet fact; naming: the fact that says its name."""

    id: str
    fact: Fact
    naming: Fact
    pronoun: str


@dataclass
class Relative:
    """Somebody close to a person. kin: the fact that states the kinship, None for friends and colleagues."""

    id: str
    name: str
    role: str
    pronoun: str
    kin: Fact | None
    facts: list[Fact] = field(default_factory=list)


@dataclass(frozen=True)
class Event:
    """Something that happened: the facts it ended and began."""

    date: date
    kind: str
    person: str
    ended: tuple[str, ...]
    began: tuple[str, ...]


@dataclass
class Person:
    id: str
    name: str
    surname: str
    pronoun: str
    facts: list[Fact] = field(default_factory=list)
    relatives: list[Relative] = field(default_factory=list)
    pets: list[Pet] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    counter: int = 0

    def current(self, relation: str, day: date) -> list[Fact]:
        return [f for f in self.facts if f.relation == relation and f.holds(day)]


def capacity(split: str) -> int:
    """How many people a split's names can tell apart (first name and surname together)."""
    values = Values(split)
    return (values.size("female_name") + values.size("male_name")) * values.size("surname")


class Lives:
    """Makes the people of one split and lets them live. `taken` full names are never given twice."""

    def __init__(self, split: str, rng: random.Random):
        self.values = Values(split)
        self.rng = rng
        self.taken: set[tuple[str, str]] = set()

    def pair(self, ids: tuple[str, str], days: list[date]) -> tuple[Person, Person]:
        """Two people who talk on `days`; their values are distinct, apart from one to three tastes that they share."""
        used: set[str] = set()
        first, second = (self._person(person_id, used) for person_id in ids)
        for person in (first, second):
            self._settle(person, days[0], used)
        for relation in self.rng.sample(SHAREABLE, self.rng.randint(1, 3)):
            held = first.current(relation, days[0])
            if held:
                self._begin(second, second.id, relation, held[0].object, self._long_ago(days[0]))
        for before, after in zip(days, days[1:], strict=False):
            for person in (first, second):
                last = (after - before).days - 1
                count = self.rng.choice((1, 1, 2, 3))
                for offset in sorted(
                    self.rng.sample(range(1, last + 1), count)
                ):  # one event a day: no fact of no length
                    self._happen(person, before + timedelta(days=offset), used)
        return first, second

    def fresh(self, kind: str, used: set[str]) -> str | None:
        """A value that nobody of the pair has had so far (nor contains one, nor stands in one); None: none is left."""
        for _ in range(200):
            value = self.values.draw(self.rng, kind)
            folded = value.casefold()
            if not any(folded in other or other in folded for other in used):
                used.add(folded)
                return value
        return None

    def _person(self, person_id: str, used: set[str]) -> Person:
        pronoun = self.rng.choice(("she", "he"))
        name = self.fresh("female_name" if pronoun == "she" else "male_name", used)
        assert name is not None  # the first two names of a pair
        while True:
            surname = self.values.draw(self.rng, "surname")
            if (name, surname) not in self.taken:
                self.taken.add((name, surname))
                return Person(person_id, name, surname, pronoun)

    def _long_ago(self, day: date) -> date:
        return day - timedelta(days=self.rng.randint(200, 4000))

    def _begin(self, person: Person, subject: str, relation: str, value: str, day: date) -> Fact:
        person.counter += 1
        fact = Fact(f"{person.id}-f{person.counter:02d}", subject, relation, value, day)
        if subject == person.id:
            person.facts.append(fact)
        return fact

    def _settle(self, person: Person, day: date, used: set[str]) -> None:
        """Facts, pets and relatives that hold on the first day."""
        for relation, trait in TRAITS.items():
            for _ in range(self.rng.randint(*trait.count)):
                value = self.fresh(trait.kind, used)
                if value is None:
                    continue
                fact = self._begin(person, person.id, relation, value, self._long_ago(day))
                if relation == "have_pet":
                    self._name_pet(person, fact, used)
        kins: list[str | None] = ["have_sibling", "have_family", self.rng.choice(("have_children", "relationship"))]
        more: list[str | None] = [*KIN, None, None]
        kins += self.rng.choices(more, k=2)
        for kin in kins:
            if kin == "relationship" and any(r.kin and r.kin.relation == "relationship" for r in person.relatives):
                kin = "have_family"
            self._relative(person, kin, self._long_ago(day), used)

    def _name_pet(self, person: Person, fact: Fact, used: set[str]) -> None:
        pet_id, name = f"{fact.id}-pet", self.fresh("pet_name", used)
        if name is None:
            return
        naming = self._begin(person, pet_id, "name", name, fact.valid_from)
        person.pets.append(Pet(pet_id, fact, naming, self.rng.choice(("she", "he"))))

    def _relative(
        self, person: Person, kin: str | None, since: date, used: set[str], newborn: bool = False
    ) -> Relative | None:
        pronoun = self.rng.choice(("she", "he"))
        name = self.fresh("female_name" if pronoun == "she" else "male_name", used)
        if name is None:
            return None
        relative_id = f"{person.id}-r{len(person.relatives)}"
        fact = self._begin(person, person.id, kin, name, since) if kin else None
        relative = Relative(relative_id, name, self.rng.choice(ROLES[kin][pronoun]), pronoun, fact)
        relations = CHILDLESS_TRAITS if kin == "have_children" else [r for r, t in TRAITS.items() if t.relatives]
        for relation in self.rng.sample(relations, 0 if newborn else self.rng.randint(2, 4)):
            value = self.fresh(TRAITS[relation].kind, used)
            if value is not None:
                relative.facts.append(self._begin(person, relative_id, relation, value, since))
        person.relatives.append(relative)
        return relative

    def _happen(self, person: Person, day: date, used: set[str]) -> None:
        """One event: something begins, ends, or gives way to something else."""
        kind = self.rng.choice(EVENTS)
        ended: list[Fact] = []
        began: list[Fact] = []

        def end(relation: str) -> bool:
            held = person.current(relation, day)
            if held:
                gone = self.rng.choice(held)
                gone.valid_to = day
                ended.append(gone)
                for pet in person.pets:
                    if pet.fact is gone:
                        pet.naming.valid_to = day
            return bool(held)

        def begin(relation: str, value: str | None = None) -> None:
            value = value or self.fresh(TRAITS[relation].kind, used)
            if value is not None:
                began.append(self._begin(person, person.id, relation, value, day))

        if kind in REPLACED:
            end(REPLACED[kind])
            begin(REPLACED[kind])
        elif kind in GAINED:
            begin(self.rng.choice(GAINED[kind]))
        elif kind in LOST:
            end(self.rng.choice(LOST[kind]))
        elif kind == "changed career" and end("has_profession"):
            begin("previous_profession", ended[0].object)
            begin("has_profession")
        elif kind == "got a pet":
            begin("have_pet")
            for fact in began:
                self._name_pet(person, fact, used)
        elif kind == "went off a food" and end("like_food"):
            begin("dislike_food", ended[0].object)
        elif kind == "started studying" and not person.current("attend_school", day):
            begin("attend_school")
        elif kind == "had a baby" or (kind == "found a partner" and not person.current("relationship", day)):
            kin = "have_children" if kind == "had a baby" else "relationship"
            relative = self._relative(person, kin, day, used, newborn=kind == "had a baby")
            if relative and kind == "found a partner":
                relative.role = {"she": "girlfriend", "he": "boyfriend"}[relative.pronoun]
            if relative and relative.kin:
                began.append(relative.kin)
        elif kind == "split up":
            end("relationship")
        if ended or began:
            person.events.append(Event(day, kind, person.id, tuple(f.id for f in ended), tuple(f.id for f in began)))


def session_days(rng: random.Random, sessions: int) -> list[date]:
    """Ascending dates of a pair's sessions, ten days to four months apart."""
    days = [FIRST_DAY + timedelta(days=rng.randint(0, 700))]
    while len(days) < sessions:
        days.append(days[-1] + timedelta(days=rng.randint(10, 120)))
    return days


def kinds_dealt() -> dict[str, dict[str, int]]:
    """Number of value heads per kind and split, for the card."""
    return {
        kind: {split: len(heads) for split, heads in by_split.items()}
        for kind, by_split in deal().items()
        if kind in KINDS
    }
