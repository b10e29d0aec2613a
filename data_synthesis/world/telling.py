"""What the moves of a dialogue are made of: the choice of facts and phrasings, clauses that note what they state, third
persons and the subjects they make, and the dress of a turn. `script.py` builds the moves from it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date

from data_synthesis.world import wordings
from data_synthesis.world.grammar import SPEAKER, Reference, mark, realise, sentence
from data_synthesis.world.life import KIN, TRAITS, Fact, Person, Relative
from data_synthesis.world.values import Values, article
from data_synthesis.world.wordings import Phrasing
from data_synthesis.world.wordings.talk import dealt

TEST_RESERVED = 0.3  # how often the test split reaches for a reserved phrasing
SAYABLE = tuple(TRAITS)


@dataclass
class Mention:
    """A fact as a move states it. key: the mark of its value; evidence: numbers of the turns that support it;
    in_row: false when a turn before the focus states it: true in the dialogue, but only context in the row."""

    key: str
    fact: Fact
    subject: str
    phrasing: Phrasing
    evidence: tuple[int, ...]
    in_row: bool = True


@dataclass
class Move:
    """turns: (speaker 0 or 1, unfinished text); focus: number of the first turn that is extracted from."""

    kind: str
    turns: list[tuple[int, str]]
    focus: int = 0
    mentions: list[Mention] = field(default_factory=list)
    ended: list[tuple[Fact, int]] = field(default_factory=list)
    role_only: bool = False


class Impossible(Exception):
    """This move cannot be made with these people on this day; the script picks another."""


def embeddable(phrasing: Phrasing) -> bool:
    """Whether a wording reads well after "that", about anybody."""
    return not phrasing.speaker_only and ":" not in phrasing.text and phrasing.text.startswith("{")


class Teller:
    """What two people can say to each other on a day. `me` is who has the word in the move at hand."""

    def __init__(self, people: tuple[Person, Person], used: set[str], values: Values, rng: random.Random):
        self.people, self.values, self.rng = people, values, rng
        self.split = values.split
        self.used = used
        self.introduced: set[str] = set()
        self.said: dict[str, int] = {}
        self.lines_used: dict[str, int] = {}
        self.keys = 0
        self.day = date.min
        self.since: date | None = None
        self.me, self.move = 0, Move("", [])

    @property
    def speaker(self) -> Person:
        return self.people[self.me]

    # -- small choices -----------------------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def line(self, name: str) -> str:
        """A line of one list of talk, the ones that this dialogue used less being likelier."""
        options = dealt(name, self.split)
        a, b = self.rng.choice(options), self.rng.choice(options)
        chosen = min(a, b, key=lambda text: self.lines_used.get(text, 0))
        self.lines_used[chosen] = self.lines_used.get(chosen, 0) + 1
        return chosen

    def facts(self, person: Person, relations: tuple[str, ...] = SAYABLE) -> list[Fact]:
        return [f for f in person.facts if f.relation in relations and f.holds(self.day)]

    def pick(self, facts: list[Fact]) -> Fact:
        """A fact, those that were said less often first; nothing is told more than four times."""
        facts = [f for f in facts if self.said.get(f.id, 0) < 4]
        if not facts:
            raise Impossible
        return self.rng.choices(facts, [0.25 ** self.said.get(f.id, 0) for f in facts])[0]

    def recent(self, fact: Fact) -> bool:
        return self.since is not None and fact.valid_from > self.since

    def phrasing(
        self,
        relation: str,
        forms: tuple[str, ...] = ("say",),
        fit: Callable[[Phrasing], bool] = lambda phrasing: True,
        second: str = "",
    ) -> Phrasing:
        """A phrasing of a relation, reserved ones for the test split alone."""
        options = [p for p in wordings.phrasings()[relation] if p.form in forms and p.second == second and fit(p)]
        if self.split == "test":
            wanted = self.chance(TEST_RESERVED)
            options = [p for p in options if p.reserved == wanted] or options
        else:
            options = [p for p in options if not p.reserved]
        if not options:
            raise Impossible
        return self.rng.choice(options)

    def other_value(self, relation: str) -> str:
        """A value of a relation's kind that is true of nobody here."""
        kind = self.rng.choice(("female_name", "male_name")) if relation in KIN else TRAITS[relation].kind
        for _ in range(100):
            value = self.values.draw(self.rng, kind)
            folded = value.casefold()
            if not any(folded in other or other in folded for other in self.used):
                return value
        raise Impossible

    # -- stating facts -----------------------------------------------------------------------------------------------

    def keyed(self, fact: Fact, subject: str, phrasing: Phrasing, evidence: tuple[int, ...]) -> str:
        """Note the fact as gold and give its value, marked."""
        self.keys += 1
        key = f"m{self.keys}"
        self.move.mentions.append(Mention(key, fact, subject, phrasing, evidence))
        return mark(fact.object, key)

    def clause(
        self, phrasing: Phrasing, facts: list[Fact], about: Reference, subject: str, evidence: tuple[int, ...]
    ) -> str:
        """One clause that states its facts: one, two of one relation ("a ferret and a gecko"), or one of each of
        two."""
        values = {"o": self.keyed(facts[0], subject, phrasing, evidence)}
        if phrasing.second:
            values["o2"] = self.keyed(facts[1], subject, phrasing, evidence)
        elif len(facts) > 1:
            values["o"] += " and " + self.keyed(facts[1], subject, phrasing, evidence)
        return realise(phrasing.text, about, values)

    def companion(self, fact: Fact, phrasing: Phrasing, facts: list[Fact]) -> list[Fact]:
        """A second value of the same relation, where the wording takes two."""
        slot = "{a}" if TRAITS[fact.relation].counted else "{o}"
        text = phrasing.text
        takes_two = text.count(slot) == text.count("{o}") + text.count("{a}") == 1
        takes_two &= "{is}" in text or not text.startswith(slot) or phrasing.form == "ask"
        others = [f for f in facts if f.relation == fact.relation and f is not fact]
        if fact.relation in ("live_in_citystatecountry", "want_do") or not takes_two:
            return []
        return [self.rng.choice(others)] if others and self.chance(0.35) else []

    def own_clause(self, fact: Fact, evidence: tuple[int, ...] = (0,), plain_only: bool = False) -> str:
        """The speaker states a fact about themself."""
        if fact.relation in KIN:
            return self.kin_clause(self.relative_of(fact), evidence)
        forms = ("say", "new") if self.recent(fact) else ("say",)
        phrasing = self.phrasing(fact.relation, forms)
        more = [] if plain_only else self.companion(fact, phrasing, self.facts(self.speaker, (fact.relation,)))
        return self.clause(phrasing, [fact, *more], SPEAKER, self.speaker.name, evidence)

    def kin_clause(self, relative: Relative, evidence: tuple[int, ...]) -> str:
        assert relative.kin is not None
        forms = ("say", "new") if self.recent(relative.kin) else ("say",)
        if relative.kin.relation == "have_children" and not relative.facts:  # a newborn loses no tooth yet
            if not self.recent(relative.kin):
                raise Impossible
            forms = ("new",)
        phrasing = self.phrasing(relative.kin.relation, forms)
        values = {"o": self.keyed(relative.kin, self.speaker.name, phrasing, evidence)}
        values |= {"r": relative.role, "a_r": article(relative.role)}
        return realise(phrasing.text, SPEAKER, values)

    def relative_of(self, fact: Fact) -> Relative:
        return next(r for r in self.speaker.relatives if r.kin is fact)

    def elliptical(self, relation: str) -> Phrasing:
        """The phrasing of a fact whose relation only the turn before tells; its line is of the split's own."""
        return Phrasing("ellipsis", relation, "ellipsis", "", reserved=self.split == "test")

    def finish_turn(
        self, clause: str, opener: float = 0.35, trailer: float = 0.15, filler: float = 0.16, answer: bool = False
    ) -> str:
        """A clause dressed as a turn: perhaps an opener, a trailer, a sentence about nothing before or after."""
        if self.chance(opener):
            clause = f"{self.line('ANSWER_OPENERS' if answer else 'OPENERS')} {clause}"
        elif self.chance(trailer) and not clause.endswith(("?", "!", ".")) and ". " not in clause:
            clause += self.line("TRAILERS")
        text = sentence(clause)
        if self.chance(filler):
            extra = self.line("FILLERS")
            text = f"{extra} {text}" if self.chance(0.5) else f"{text} {extra}"
        return text

    def say(self, text: str, by_me: bool = True) -> None:
        self.move.turns.append((self.me if by_me else 1 - self.me, text))

    def ask(self, question: str) -> None:
        """The other speaker's question. The test split always puts something before it: the plain question is
        train's."""
        question = sentence(question)
        if self.chance(0.5):
            question = f"{self.line('REACTIONS')} {question}"
        elif self.split == "test" or self.chance(0.4):
            question = sentence(f"{self.line('QUESTION_OPENERS')} {question[0].lower()}{question[1:]}")
        self.say(question, by_me=False)

    def hold_back(self) -> None:
        """What was stated so far becomes context."""
        self.move.focus = len(self.move.turns)
        for mention in self.move.mentions:
            mention.in_row = False

    def lead_in(self, share: float = 0.65, family: bool = False) -> int:
        """Perhaps the other speaker's prompt, as context. Returns the number of the turn that follows."""
        if self.chance(share):
            prompt = self.line("FAMILY_PROMPTS" if family and self.chance(0.7) else "PROMPTS")
            if self.chance(0.3):
                prompt = f"{self.line('REACTIONS')} {prompt}"
            self.say(prompt, by_me=False)
        self.move.focus = len(self.move.turns)
        return self.move.focus

    # -- third persons -----------------------------------------------------------------------------------------------

    def relatives(self, *relations: str) -> list[Relative]:
        """Those who are close to the speaker today (no former partner, nobody unborn) and have facts of all `relations`."""
        near = [r for r in self.speaker.relatives if r.kin is None or r.kin.holds(self.day)]
        return [r for r in near if set(relations) <= {f.relation for f in r.facts if f.holds(self.day)}]

    def relative(self) -> Relative:
        """One of them about whom there is something to tell."""
        options = [r for r in self.relatives() if any(f.holds(self.day) for f in r.facts)]
        if not options:
            raise Impossible
        return self.rng.choice(options)

    def introduce(self, relative: Relative, evidence: tuple[int, ...], wording: str = "{I}") -> tuple[Reference, str]:
        """A noun phrase for a third person, said by their relative, and the subject that it makes.

        Named in the phrase ("my sister Ana", "Ana"): the name. Only the role ("my sister"): "<Speaker>'s sister".
        """
        alone = sum(r.role == relative.role for r in self.speaker.relatives) == 1
        form = self.rng.random()
        if form < 0.25 and alone:
            self.move.role_only = True
            return Reference("third", f"my {relative.role}", relative.pronoun), f"{self.speaker.name}'s {relative.role}"
        if form < 0.45 and relative.name in self.introduced:
            return Reference("third", mark(relative.name), relative.pronoun), relative.name
        self.introduced.add(relative.name)
        if relative.kin is None:
            return Reference("third", f"my {relative.role} {mark(relative.name)}", relative.pronoun), relative.name
        # "Ana, my sister," cannot take a genitive, and reads well at the beginning only.
        apposition = wording.startswith(("{I}", "{Im}", "{Ive}"))
        phrasing = self.phrasing(relative.kin.relation, ("noun",), lambda p: apposition or not p.text.endswith(","))
        values = {"o": self.keyed(relative.kin, self.speaker.name, phrasing, evidence), "r": relative.role}
        return Reference("third", realise(phrasing.text, SPEAKER, values), relative.pronoun), relative.name

    def third_clause(
        self, relative: Relative, fact: Fact, evidence: tuple[int, ...], known: tuple[Reference, str] | None = None
    ) -> tuple[str, Reference, str]:
        phrasing = self.phrasing(fact.relation, ("say",), lambda p: not p.speaker_only)
        about, subject = known or self.introduce(relative, evidence, phrasing.text)
        return self.clause(phrasing, [fact], about, subject, evidence), about.again(), subject

    def relative_fact(self, relative: Relative, besides: Fact | None = None) -> Fact:
        return self.pick([f for f in relative.facts if f.holds(self.day) and f is not besides])
