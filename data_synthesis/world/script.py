"""The dialogue script: which facts come up in a session, in which move of the conversation, and what that makes gold.

A dialogue is a list of moves. A move is one to three turns that belong together (a question and its answer, a slip
and its repair), with the facts that its focus turns state. `rows.py` cuts one row from each move.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date

from data_synthesis.world import wordings
from data_synthesis.world.grammar import ADDRESSEE, SPEAKER, Reference, mark, realise, sentence
from data_synthesis.world.life import KIN, TRAITS, Fact, Person, Pet, Relative
from data_synthesis.world.values import Values, article
from data_synthesis.world.wordings import PAIRS, Phrasing
from data_synthesis.world.wordings.talk import dealt

TEST_RESERVED = 0.28  # how often the test split reaches for a reserved phrasing
SAYABLE = tuple(TRAITS)

# Weights of the moves; the empty ones among them make up the rows without a triplet.
MOVES: dict[str, float] = {
    "statement": 15, "double": 17, "pair": 8, "answer": 13, "turnabout": 6, "agreement": 4, "relative": 14, "relative_answer": 5,
    "told": 5, "slip": 4, "repair": 3, "objection": 4, "confirmed": 4, "denied": 4, "deflected": 3, "ended": 4, "changed": 5,
    "pet_name": 6, "void": 7, "void_and_fact": 9, "doubt": 6, "doubt_and_fact": 4, "small_talk": 6,
}  # fmt: skip


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


class Script:
    """Writes the sessions of one pair."""

    def __init__(self, people: tuple[Person, Person], used: set[str], values: Values, rng: random.Random):
        self.people, self.values, self.rng = people, values, rng
        self.split = values.split
        self.used = used
        self.introduced: set[str] = set()
        self.said: dict[str, int] = {}
        self.lines_used: dict[str, int] = {}
        self.keys = 0

    # -- a session ---------------------------------------------------------------------------------------------------

    def session(self, day: date, since: date | None, moves: int) -> list[Move]:
        self.day, self.since = day, since
        kinds, weights = list(MOVES), list(MOVES.values())
        result: list[Move] = []
        while len(result) < moves:
            kind = self.rng.choices(kinds, weights)[0]
            self.me = self.rng.randrange(2)
            self.move = Move(kind, [])
            try:
                getattr(self, "_" + kind)()
            except Impossible:
                continue
            for mention in self.move.mentions:
                self.said[mention.fact.id] = self.said.get(mention.fact.id, 0) + 1
                if mention.fact.relation in KIN:
                    self.introduced.add(mention.fact.object)
            result.append(self.move)
        return result

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

    def relative(self, with_fact: bool = True, kin_only: bool = False) -> Relative:
        options = [
            r
            for r in self.speaker.relatives
            if (r.kin is None or r.kin.holds(self.day))
            and (not kin_only or r.kin is not None)
            and (not with_fact or any(f.holds(self.day) for f in r.facts))
        ]
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

    # -- moves that state facts ----------------------------------------------------------------------------------------

    def any_fact(self) -> Fact:
        """A fact of the speaker: news first, kin now and then."""
        news = [f for f in self.facts(self.speaker, SAYABLE + KIN) if self.recent(f) and not self.said.get(f.id)]
        if news and self.chance(0.6):
            return self.pick(news)
        return self.pick(self.facts(self.speaker, KIN if self.chance(0.14) else SAYABLE))

    def _statement(self) -> None:
        at = self.lead_in()
        self.say(self.finish_turn(self.own_clause(self.any_fact(), (at,))))

    def _double(self) -> None:
        at = self.lead_in(0.4)
        first = self.any_fact()
        second = self.pick([f for f in self.facts(self.speaker) if f.relation != first.relation])
        if self.chance(0.3):
            relative = self.relative()
            other, _, _ = self.third_clause(relative, self.relative_fact(relative), (at,))
            joined = self.line("CONTRASTS").format(x=self.own_clause(second, (at,), plain_only=True), y=other)
        else:
            x, y = (self.own_clause(f, (at,), plain_only=True) for f in (first, second))
            joined = self.line("JOINS").format(x=x, y=y)
        self.say(self.finish_turn(joined, opener=0.2, trailer=0, filler=0.06))

    def _pair(self) -> None:
        at = self.lead_in(0.4)
        first, second = self.rng.choice(list(PAIRS))
        if second == "name":
            pet = self.pet()
            phrasing = self.phrasing(first, ("say",), second=second)
            values = {"o": self.keyed(pet.fact, self.speaker.name, phrasing, (at,))}
            values["o2"] = self.keyed(pet.naming, f"{self.speaker.name}'s {pet.fact.object}", phrasing, (at,))
            clause = realise(phrasing.text, SPEAKER, values)
        elif self.chance(0.25) and (relative := self.relative_with(first, second)):
            phrasing = self.phrasing(first, ("say",), lambda p: not p.speaker_only, second)
            about, subject = self.introduce(relative, (at,), phrasing.text)
            facts = [next(f for f in relative.facts if f.relation == r) for r in (first, second)]
            clause = self.clause(phrasing, facts, about, subject, (at,))
        else:
            facts = [self.pick(self.facts(self.speaker, (r,))) for r in (first, second)]
            clause = self.clause(
                self.phrasing(first, ("say",), second=second), facts, SPEAKER, self.speaker.name, (at,)
            )
        self.say(self.finish_turn(clause))

    def relative_with(self, *relations: str) -> Relative | None:
        fitting = [
            r for r in self.speaker.relatives if set(relations) <= {f.relation for f in r.facts if f.holds(self.day)}
        ]
        return self.rng.choice(fitting) if fitting else None

    def _answer(self) -> None:
        """The other speaker asks; the question carries part of the content."""
        fact = self.any_fact()
        values: dict[str, str] = {}
        if fact.relation in KIN:
            relative = self.relative_of(fact)
            values = {"r": relative.role, "a_r": article(relative.role)}
        phrasing = self.phrasing(fact.relation, ("ask",))
        self.ask(realise(phrasing.question, ADDRESSEE, values))
        self.move.focus = int(self.chance(0.55))
        evidence = (1,)
        values["o"] = self.keyed(fact, self.speaker.name, phrasing, evidence)
        more = (
            self.companion(fact, phrasing, self.facts(self.speaker, (fact.relation,)))
            if fact.relation in TRAITS
            else []
        )
        if more:
            values["o"] += " and " + self.keyed(more[0], self.speaker.name, phrasing, evidence)
        answer = realise(phrasing.text, SPEAKER, values)
        if self.chance(0.12) and fact.relation not in KIN:
            second = self.pick([f for f in self.facts(self.speaker) if f.relation != fact.relation])
            answer = self.line("JOINS").format(x=answer, y=self.own_clause(second, evidence, plain_only=True))
        self.say(self.finish_turn(answer, opener=0.3, trailer=0.25, filler=0.2, answer=True))

    def _turnabout(self) -> None:
        """ "I live in Porto. And you?" "Ghent in my case." """
        relations = tuple(
            r for r in TRAITS if r not in ("want_do", "member_of", "own", "collect", "previous_profession")
        )
        fact = self.pick(self.facts(self.speaker, relations))
        clause = self.own_clause(fact, (0,), plain_only=True)
        self.say(f"{sentence(clause)} {self.line('TURNABOUTS')}")
        self.me = 1 - self.me
        answer = self.pick([f for f in self.facts(self.speaker, (fact.relation,)) if f.object != fact.object])
        if self.chance(0.4):
            self.hold_back()
        phrasing = self.elliptical(fact.relation)
        value = self.keyed(answer, self.speaker.name, phrasing, (1,))
        text = self.line("COUNTERS").format(o=self.with_article(fact.relation, value))
        self.say(self.finish_turn(text, opener=0.2, answer=True))

    def with_article(self, relation: str, value: str) -> str:
        return realise("{a}", SPEAKER, {"o": value}) if TRAITS[relation].counted else value

    def _agreement(self) -> None:
        """ "I can't stand olives." "Same here.": the object stands in the turn before."""
        mine, theirs = self.speaker, self.people[1 - self.me]
        shared = [
            (f, g)
            for f in self.facts(mine)
            for g in self.facts(theirs)
            if (f.relation, f.object) == (g.relation, g.object) and self.said.get(g.id, 0) < 3
        ]
        if not shared:
            raise Impossible
        fact, same = self.rng.choice(shared)
        clause = self.own_clause(fact, (0,), plain_only=True)
        self.say(self.finish_turn(clause, filler=0))
        if self.chance(0.5):
            self.hold_back()
        self.me = 1 - self.me
        phrasing = self.elliptical(fact.relation)
        self.move.mentions.append(Mention("", same, self.speaker.name, phrasing, (1,) if self.move.focus else (0, 1)))
        self.say(self.finish_turn(self.line("AGREEMENTS"), opener=0, trailer=0))

    def _relative(self) -> None:
        at = self.lead_in(0.5, family=True)
        relative = self.relative()
        fact = self.relative_fact(relative)
        clause, about, subject = self.third_clause(relative, fact, (at,))
        if self.chance(0.3):
            second = self.relative_fact(relative, besides=fact)
            other, _, _ = self.third_clause(relative, second, (at,), (about, subject))
            clause = self.line("JOINS").format(x=clause, y=other)
            self.say(self.finish_turn(clause, opener=0.15, trailer=0, filler=0.05))
        else:
            self.say(self.finish_turn(clause))

    def _relative_answer(self) -> None:
        """A third person is introduced, then asked about; the answer says "she", or nothing at all."""
        relative = self.relative()
        fact = self.relative_fact(relative)
        if self.chance(0.5):
            phrasing = self.phrasing(fact.relation, ("ask",), lambda p: not p.speaker_only)
            if relative.name in self.introduced and self.chance(0.5):
                noun, subject = mark(relative.name), relative.name
            elif sum(r.role == relative.role for r in self.speaker.relatives) == 1:
                noun, subject = f"your {relative.role}", f"{self.speaker.name}'s {relative.role}"
                self.move.role_only = True
            else:
                raise Impossible
            about = Reference("third", noun, relative.pronoun)
            self.ask(realise(phrasing.question, about, {}))
            self.move.focus = int(self.chance(0.5))
            value = {"o": self.keyed(fact, subject, phrasing, (1,))}
            self.say(self.finish_turn(realise(phrasing.text, about.again(), value), opener=0.3, answer=True))
            return
        about, subject = self.introduce(relative, (0,))
        talk = (
            "{I} rang yesterday",
            "{I} asked after you",
            "{I} came by on Sunday",
            "{I} sends greetings",
            "{Im} coming over later",
        )
        self.say(sentence(realise(self.rng.choice(talk), about, {})))
        self.say(self.rng.choice((f"How is {about.again().pronoun}?", self.line("REACTIONS"))), by_me=False)
        self.hold_back()
        clause, _, _ = self.third_clause(relative, fact, (2,), (about.again(), subject))
        self.say(self.finish_turn(clause, filler=0.05))

    def _told(self) -> None:
        """The other speaker states a fact about this one."""
        fact = self.pick([f for f in self.facts(self.speaker) if self.said.get(f.id)])
        subject = self.speaker.name
        phrasing = self.phrasing(fact.relation, ("say",), embeddable)
        shown = self.rng.choice(("before", "named", "after"))  # the row must show who "you" is
        if shown == "before":
            self.say(self.line("PROMPTS") if self.chance(0.6) else sentence(self.line("SMALL_TALK")))
        self.move.focus = at = len(self.move.turns)
        telling = self.line("TELLINGS").format(x=self.clause(phrasing, [fact], ADDRESSEE, subject, (at,)))
        if shown == "named":
            telling = f"{mark(subject)}, {telling}" if self.chance(0.6) else f"{telling}, {mark(subject)}"
        self.say(self.finish_turn(telling, opener=0, trailer=0, filler=0.2), by_me=False)
        if shown == "after":
            self.say(sentence(self.line("CONFIRMATIONS")))

    def pet(self) -> Pet:
        pets = [p for p in self.speaker.pets if p.fact.holds(self.day) and self.said.get(p.naming.id, 0) < 3]
        if not pets:
            raise Impossible
        return self.rng.choice(pets)

    def _pet_name(self) -> None:
        pet = self.pet()
        subject = f"{self.speaker.name}'s {pet.fact.object}"
        form = self.rng.random()
        if form < 0.4:  # "He is called Biscuit" needs the turn before.
            self.say(self.finish_turn(self.own_clause(pet.fact, (0,), plain_only=True), filler=0))
            self.say(self.line("REACTIONS"), by_me=False)
            self.hold_back()
            phrasing = self.phrasing("name", ("say",), lambda p: "of {N}" not in p.text and "on {N}" not in p.text)
            him = {"she": ("she", "her"), "he": ("he", "him")}[pet.pronoun][not phrasing.text.startswith("{N}")]
            text = realise(
                phrasing.text.replace("{N}", him), SPEAKER, {"o": self.keyed(pet.naming, subject, phrasing, (2,))}
            )
            self.say(self.finish_turn(text))
            return
        animal = mark(pet.fact.object)
        if form < 0.7:
            phrasing = self.phrasing("name", ("ask",))
            question = phrasing.question.replace("{N}", "{my} " + animal)
            self.ask(realise(question, ADDRESSEE, {}))
            self.move.focus = int(self.chance(0.5))
            text = realise(phrasing.text, SPEAKER, {"o": self.keyed(pet.naming, subject, phrasing, (1,))})
        else:
            at = self.lead_in(0.5)
            phrasing = self.phrasing("name", ("say",))
            owning = self.phrasing("have_pet", ("noun",))
            values = {"N": "my " + self.keyed(pet.fact, self.speaker.name, owning, (at,))}
            values["o"] = self.keyed(pet.naming, subject, phrasing, (at,))
            text = realise(phrasing.text, SPEAKER, values)
        self.say(self.finish_turn(text, opener=0.25, filler=0.2, answer=len(self.move.turns) == 1))

    # -- moves that take something back ------------------------------------------------------------------------------

    def last_word(self, relation: str) -> Phrasing:
        """A wording that ends in its object, so that a slip can be mended in place."""
        return self.phrasing(relation, ("say",), lambda p: p.text.endswith(("{o}", "{a}")))

    def slip_fact(self) -> Fact:
        return self.pick([f for f in self.facts(self.speaker) if f.relation != "want_do"])

    def _slip(self) -> None:
        """ "I live in Lyon, no wait, Nantes." """
        at = self.lead_in(0.5)
        fact = self.slip_fact()
        phrasing = self.last_word(fact.relation)
        wrong, right = mark(self.other_value(fact.relation)), self.keyed(fact, self.speaker.name, phrasing, (at,))
        if phrasing.text.endswith("{a}"):
            wrong, right = (self.with_article(fact.relation, v) for v in (wrong, right))
        elif fact.relation == "member_of":
            right = f"the {right}"
        mended = self.line("CORRECTIONS").format(w=wrong, o=right)
        self.say(self.finish_turn(realise(phrasing.text, SPEAKER, {"o": mended, "a": mended}), trailer=0))

    def _repair(self) -> None:
        """The same over three turns: the slip, the other's surprise, the right value."""
        fact = self.slip_fact()
        wrong = replace(fact, object=self.other_value(fact.relation))
        phrasing = self.phrasing(fact.relation)
        self.say(sentence(self.clause(phrasing, [wrong], SPEAKER, self.speaker.name, (0,))))
        self.move.mentions.clear()
        self.move.focus = 2
        elliptical = self.elliptical(fact.relation)
        marked = [mark(wrong.object), self.keyed(fact, self.speaker.name, elliptical, (2,))]
        w, o = (self.with_article(fact.relation, v) for v in marked)
        self.say(sentence(self.line("ECHOES").format(w=w)), by_me=False)
        self.say(self.finish_turn(self.line("SELF_REPAIRS").format(w=w, o=o), opener=0, trailer=0, filler=0.15))

    def _objection(self) -> None:
        """The other speaker has it wrong and is put right."""
        fact = self.slip_fact()
        wrong = replace(fact, object=self.other_value(fact.relation))
        self.say(self.lead_question(wrong), by_me=False)
        self.move.mentions.clear()
        self.move.focus = int(self.chance(0.5))
        elliptical = self.elliptical(fact.relation)
        marked = [mark(wrong.object), self.keyed(fact, self.speaker.name, elliptical, (1,))]
        w, o = (self.with_article(fact.relation, v) for v in marked)
        self.say(self.finish_turn(self.line("OBJECTIONS").format(w=w, o=o), opener=0, trailer=0.1, filler=0.2))

    def lead_question(self, fact: Fact) -> str:
        """ "Is it true that you live in Porto?"; the mention that it notes is the caller's to keep or to clear."""
        phrasing = self.phrasing(fact.relation, ("say",), embeddable)
        return sentence(
            self.line("LEADS").format(x=self.clause(phrasing, [fact], ADDRESSEE, self.speaker.name, (0, 1)))
        )

    def _confirmed(self) -> None:
        fact = self.pick(self.facts(self.speaker))
        self.say(self.lead_question(fact), by_me=False)
        if self.chance(0.5):
            self.move.focus = 1
            self.move.mentions[0].evidence = (1,)
        self.say(self.finish_turn(self.line("CONFIRMATIONS"), opener=0, trailer=0, filler=0.3))

    def _denied(self) -> None:
        relation = self.rng.choice(SAYABLE)
        fact = Fact("", self.speaker.id, relation, self.other_value(relation), self.day)
        self.say(self.lead_question(fact), by_me=False)
        self.move.mentions.clear()
        self.move.focus = int(self.chance(0.5))
        self.say(self.finish_turn(self.line("DENIALS"), opener=0, trailer=0, filler=0.3))

    def _deflected(self) -> None:
        """ "You work at Halden Freight, is that so?" "No, that's my sister Ana, not me." """
        relative = self.relative()
        fact = self.relative_fact(relative)
        self.say(self.lead_question(fact), by_me=False)
        self.move.focus = int(self.chance(0.5))
        about, subject = self.introduce(relative, (1,), "")
        self.move.mentions[0].subject = subject
        self.move.mentions[0].evidence = (1,) if self.move.focus else (0, 1)
        self.say(self.finish_turn(self.line("DEFLECTIONS").format(x=about.noun), opener=0, trailer=0, filler=0.15))

    def over(self) -> tuple[Fact, str]:
        """A fact that ended since the last session, and the clause that says so."""
        gone = [
            f
            for f in self.speaker.facts
            if f.valid_to and self.since and self.since < f.valid_to <= self.day and wordings.WORDINGS[f.relation].end
        ]
        if not gone:
            raise Impossible
        fact = self.pick(gone)
        self.said[fact.id] = self.said.get(fact.id, 0) + 1
        clause = realise(self.rng.choice(wordings.WORDINGS[fact.relation].end), SPEAKER, {"o": mark(fact.object)})
        return fact, clause

    def _ended(self) -> None:
        at = self.lead_in(0.5)
        fact, clause = self.over()
        self.move.ended.append((fact, at))
        self.say(self.finish_turn(clause))

    def _changed(self) -> None:
        """The end of one fact and the beginning of the next, in one turn."""
        at = self.lead_in(0.3)
        fact, clause = self.over()
        self.move.ended.append((fact, at))
        event = next(e for e in self.speaker.events if fact.id in e.ended)
        began = [f for f in self.facts(self.speaker) if f.id in event.began]
        other = self.own_clause(self.pick(began) if began else self.any_fact(), (at,), plain_only=True)
        self.say(self.finish_turn(self.line("JOINS").format(x=clause, y=other), opener=0.2, trailer=0, filler=0.05))

    # -- moves without a fact ----------------------------------------------------------------------------------------

    def void_line(self, relation: str | None = None) -> str:
        relation = relation or self.rng.choice([r for r in wordings.WORDINGS if wordings.WORDINGS[r].void])
        options = wordings.WORDINGS[relation].void
        return realise(self.rng.choice(options), SPEAKER, {"o": mark(self.other_value(relation))})

    def _void(self) -> None:
        self.lead_in(0.5)
        line = self.void_line()
        text = self.finish_turn(line, opener=0 if line.endswith("?") else 0.25, trailer=0, filler=0.25)
        self.say(text if self.chance(0.5) else f"{text} {sentence(self.line('REMARKS'))}")

    def _void_and_fact(self) -> None:
        at = self.lead_in(0.3)
        fact = self.any_fact()
        near = fact.relation if self.chance(0.6) and wordings.WORDINGS[fact.relation].void else None
        x, y = sentence(self.void_line(near)), sentence(self.own_clause(fact, (at,), plain_only=True))
        self.say(f"{x} {y}" if self.chance(0.6) else f"{y} {x}")

    def doubtful(self) -> str:
        """Something untrue, said as a rumour, a supposition, a dream or a joke."""
        relation = self.rng.choice(SAYABLE)
        fact = Fact("", self.speaker.id, relation, self.other_value(relation), self.day)
        phrasing = self.phrasing(relation, ("say",), embeddable)
        kept = len(self.move.mentions)
        clause = self.line("DOUBTS").format(x=self.clause(phrasing, [fact], SPEAKER, self.speaker.name, (0,)))
        del self.move.mentions[kept:]
        return sentence(clause)

    def _doubt(self) -> None:
        self.lead_in(0.5)
        text = self.doubtful()
        self.say(f"{text} {self.line('FILLERS')}" if self.chance(0.3) else text)

    def _doubt_and_fact(self) -> None:
        at = self.lead_in(0.2)
        x = self.doubtful()
        y = sentence(self.own_clause(self.any_fact(), (at,), plain_only=True))
        self.say(f"{y} {x}" if self.chance(0.5) else f"{x} {y}")

    def _small_talk(self) -> None:
        self.lead_in(0.3)
        text = sentence(self.line("SMALL_TALK"))
        if self.chance(0.5):
            text += " " + sentence(self.line("SMALL_TALK"))
        self.say(text)
        if self.chance(0.4):
            self.say(f"{self.line('REACTIONS')} {sentence(self.line('SMALL_TALK'))}", by_me=False)
