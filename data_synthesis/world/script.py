"""The dialogue script: which facts come up in a session, in which move of the conversation, and what that makes gold.

A dialogue is a list of moves. A move is one to three turns that belong together (a question and its answer, a slip
and its repair), with the facts that its focus turns state. `rows.py` cuts one row from each move.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from data_synthesis.world import wordings
from data_synthesis.world.grammar import ADDRESSEE, SPEAKER, Reference, mark, realise, sentence
from data_synthesis.world.life import KIN, TRAITS, Fact, Pet
from data_synthesis.world.telling import SAYABLE, Impossible, Mention, Move, Teller, embeddable
from data_synthesis.world.values import article
from data_synthesis.world.wordings import PAIRS, Phrasing

# Weights of the moves; the empty ones among them make up the rows without a triplet.
MOVES: dict[str, float] = {
    # one or more facts about the speaker
    "statement": 10,
    "double": 14,
    "pair": 8,
    "pet_name": 6,
    # facts that need the other's turn
    "answer": 13,
    "turnabout": 8,
    "agreement": 6,
    "confirmed": 4,
    "told": 7,
    # third persons
    "relative": 16,
    "relative_answer": 8,
    "deflected": 5,
    # taken back, put right, over
    "slip": 6,
    "repair": 4,
    "objection": 4,
    "denied": 4,
    "ended": 4,
    "changed": 5,
    # nothing stated, or something beside what is
    "void": 7,
    "void_and_fact": 9,
    "doubt": 6,
    "doubt_and_fact": 6,
    "small_talk": 6,
}


class Script(Teller):
    """Writes the sessions of one pair. Every `_name` below is a move of `MOVES`."""

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

    # -- moves that state facts -----------------------------------------------------------------------------

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
        elif self.chance(0.25) and (near := self.relatives(first, second)):
            relative = self.rng.choice(near)
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
