"""From a wording to a sentence: person and number, articles, and marks around every value.

A wording is a clause with slots. About whom it speaks is decided when it is realised, so one wording serves "I live in
Ghent", "you live in Ghent" and "my sister Ana lives in Ghent":

    {I} {me} {my} {Im} {Ive}   the person: I / you / my sister Ana, then she; {Im} = I'm, {Ive} = I've
    {am} {was} {have} {do} {dont} {havent} {wasnt}   agree with that person
    {live} {work} {keep} ...   any other lower-case verb, with -s in the third person
    {o} {a}                    the object; the object with its indefinite article ({o2} {a2}: a second object)
    {is} {it}                  agree with the object: is / are, it / them

Values stand between private-use characters until the turn is complete. `Text` then knows the plain text, the skeleton
(every value replaced by one sign, for the check that splits share no template) and where each marked value stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from data_synthesis.splits import normalise
from data_synthesis.world.values import article, is_plural

_OPEN, _BAR, _CLOSE = "\ue000", "\ue001", "\ue002"
_VALUE = re.compile(f"{_OPEN}([^{_BAR}]*){_BAR}([^{_CLOSE}]*){_CLOSE}")
_SLOT = re.compile(r"\{(\w+)\}")

PERSON_SLOTS = frozenset(("I", "me", "my", "Im", "Ive"))
_IRREGULAR = {
    "am": ("am", "are", "is"),
    "was": ("was", "were", "was"),
    "have": ("have", "have", "has"),
    "do": ("do", "do", "does"),
    "dont": ("don't", "don't", "doesn't"),
    "havent": ("haven't", "haven't", "hasn't"),
    "wasnt": ("wasn't", "weren't", "wasn't"),
}
_SPEAKER = {"I": "I", "me": "me", "my": "my", "Im": "I'm", "Ive": "I've"}
_ADDRESSEE = {"I": "you", "me": "you", "my": "your", "Im": "you're", "Ive": "you've"}
_PRONOUNS = {
    "she": {"I": "she", "me": "her", "my": "her", "Im": "she's", "Ive": "she's"},
    "he": {"I": "he", "me": "him", "my": "his", "Im": "he's", "Ive": "he's"},
}


@dataclass(frozen=True)
class Reference:
    """Whom a clause speaks about, seen from its speaker: "I", "you", or a third person.

    noun: the third person's noun phrase, marked values included ("my sister Ana"); pronoun: "she" or "he";
    known: the noun phrase was said already, so a pronoun does.
    """

    person: str
    noun: str = ""
    pronoun: str = "she"
    known: bool = False

    def again(self) -> Reference:
        return replace(self, known=True)


SPEAKER = Reference("I")
ADDRESSEE = Reference("you")


def mark(value: str, key: str = "") -> str:
    """A value as it stands in an unfinished text. key names the mention (empty: a value that nothing refers to)."""
    return f"{_OPEN}{key}{_BAR}{value}{_CLOSE}"


def realise(wording: str, about: Reference, values: Mapping[str, str]) -> str:
    """The clause, lower-case at its beginning, with marked values. values: slot name -> marked value."""
    row = {"I": 0, "you": 1}.get(about.person, 2)
    known = about.known

    def fill(match: re.Match[str]) -> str:
        nonlocal known
        slot = match.group(1)
        if slot in values:
            return values[slot]
        if slot in ("a", "a2"):
            return _with_article(values["o" + slot[1:]])
        if slot in ("is", "it"):
            plural = is_plural(plain(values["o"]))
            return {"is": ("is", "are"), "it": ("it", "them")}[slot][plural]
        if slot in PERSON_SLOTS:
            if row < 2:
                return (_SPEAKER, _ADDRESSEE)[row][slot]
            if known:
                return _PRONOUNS[about.pronoun][slot]
            known = True
            return about.noun + {"I": "", "me": "", "my": "'s", "Im": " is", "Ive": " has"}[slot]
        if slot in _IRREGULAR:
            return _IRREGULAR[slot][row]
        return _third(slot) if row == 2 else slot

    return _SLOT.sub(fill, wording)


def _third(verb: str) -> str:
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def _with_article(marked: str) -> str:
    """Indefinite article before every coordinated value: "a ferret and an iguana"."""
    return _VALUE.sub(lambda m: article(m.group(2)).removesuffix(m.group(2)) + m.group(0), marked)


def plain(text: str) -> str:
    return _VALUE.sub(lambda m: m.group(2), text)


def names_speaker(wording: str) -> bool:
    """Whether a wording says I / my / me in so many words, and so cannot be turned to another person."""
    return re.search(r"(?<![{\w])(I|I'm|I've|I'd|I'll|my|me|we|our|us|myself)(?![\w}])", wording) is not None


def sentence(clause: str) -> str:
    """Capital at the beginning (inside a leading value too) and a full stop unless the clause ends in a mark."""
    match = re.match(f"[^A-Za-z{_OPEN}]*(?:{_OPEN}[^{_BAR}]*{_BAR})?", clause)
    start = match.end() if match else 0
    clause = clause[:start] + clause[start : start + 1].upper() + clause[start + 1 :]
    return clause if clause.rstrip(_CLOSE).endswith((".", "?", "!", "…")) else clause + "."


@dataclass(frozen=True)
class Text:
    """A finished turn. spans: mention key -> (offset in `plain`, the value as it stands there)."""

    plain: str
    skeleton: str
    spans: dict[str, tuple[int, str]]


_NEXT_SENTENCE = re.compile(f"(?<=[.?!]) (?:{_OPEN}[^{_BAR}]*{_BAR})?[a-z]")


def finish(marked: str) -> Text:
    """Take the marks off, noting where every keyed value stands; every sentence begins with a capital."""
    marked = _NEXT_SENTENCE.sub(lambda m: m.group(0)[:-1] + m.group(0)[-1].upper(), marked)
    pieces: list[str] = []
    spans: dict[str, tuple[int, str]] = {}
    length = position = 0
    for match in _VALUE.finditer(marked):
        before = marked[position : match.start()]
        length += len(before)
        pieces += [before, match.group(2)]
        if match.group(1):
            spans.setdefault(match.group(1), (length, match.group(2)))
        length += len(match.group(2))
        position = match.end()
    pieces.append(marked[position:])
    # Articles belong to their value: "a ferret" and "an iguana" are one template.
    skeleton = normalise(re.sub(r"\b[Aa]n? (?=\x00)", "", _VALUE.sub("\x00", marked)).replace("\x00", " slotvalue "))
    return Text("".join(pieces), skeleton, spans)
