"""Whether a source holds what a value states: shared by the gates of synthesis and the reward of training.

A value is taken apart into content words: case, articles, pronouns, auxiliaries and prepositions are dropped, endings of
plurals and verbs cut ("hiking", "hikes", "hiker" are one word), irregular forms and the family's short names replaced
("children", "mom"), numbers read ("twenty-five" is 25, "2nd" is 2). It is grounded when

- at least `min_share` of its content words stand in the dialogue (turns and context),
- every number above one does, since a wrong number is a wrong fact, and
- it has a content word at all: "it" or "me" tells nothing.

A speaker's label is known as a whole ("Speaker A"), and by those of its words that no other label has: with Speaker A
and Speaker B in the dialogue, neither "Speaker C" nor "Speaker" is anyone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from extractors.triplets.score import words

_EMPTY = """
a an the my his her their our your its some any i you he she it we they me him us them mine ours yours
and or but of in on at to for with from by as about into
is am are was were be been being has have had having do does did will would s t m re ve ll d
this that these those there here very really so too just also
"""
_EMPTY_WORDS = frozenset(_EMPTY.split())
_FORMS = """
child children kid kids / man men / woman women / person people / foot feet / tooth teeth / mouse mice / goose geese
go went gone / eat ate eaten / drink drank drunk / drive drove driven / write wrote written / teach taught / buy bought
sing sang sung / run ran / swim swam / sell sold / make made / grow grew grown / get got gotten / see saw seen
take took taken / give gave given / know knew known / come came / become became / begin began begun / leave left
lose lost / meet met / pay paid / ride rode ridden / say said / send sent / sleep slept / speak spoke spoken
spend spent / tell told / think thought / win won / wear wore worn / keep kept / feel felt / find found / build built
break broke broken / bring brought / catch caught / choose chose chosen / fly flew flown / hold held / lead led
mother mom mum mommy mummy / father dad daddy / grandmother grandma / grandfather grandpa
"""
_IRREGULAR = {
    form: base for base, *forms in (line.split() for line in _FORMS.replace("\n", "/").split("/") if line.split())
    for form in forms
}  # fmt: skip
_COUNTED = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
twenty thirty forty fifty sixty seventy eighty ninety
"""
_ONES, _TENS = _COUNTED.split()[:20], _COUNTED.split()[20:]
_NUMBERS = {
    **{word: value for value, word in enumerate(_ONES)},
    **{word: 20 + 10 * place for place, word in enumerate(_TENS)},
    **{word[:-1] + "ies": 20 + 10 * place for place, word in enumerate(_TENS)},
    "first": 1, "second": 2, "third": 3, "fifth": 5, "once": 1, "twice": 2,
}  # fmt: skip


class Source:
    """What a value must be found in: who spoke, and what was said."""

    def __init__(self, speakers: Sequence[str], texts: Sequence[str]):
        labels = list(dict.fromkeys(" ".join(words(speaker)) for speaker in speakers))
        self._labels = [label.split() for label in sorted(labels, key=len, reverse=True) if label]
        parts = [word for label in self._labels for word in set(label)]
        own = [word for word in parts if parts.count(word) == 1]
        self._words = {key for text in (*texts, *own) for key in content_words(text)}
        # Scripts without spaces give one run of letters, in which a value is looked for.
        self._text = " ".join(" ".join(words(text)) for text in texts)

    def lacks(self, value: str, min_share: float) -> str:
        """Why the value is not grounded (number, share or no content word at all), "" when it is."""
        keys, names_a_speaker = self._keys(value)
        missing = [key for key in keys if not self._has(key)]
        if not keys:
            return "" if names_a_speaker else "it has no content word"
        for key in missing:
            if key.isdecimal() and int(key) > 1:
                return f"the number {key} is not said"
        found = len(keys) - len(missing)
        return "" if found >= min_share * len(keys) - 1e-9 else f"{found} of {len(keys)} content words are said"

    def _keys(self, value: str) -> tuple[list[str], bool]:
        """Distinct content words of a value without the speakers' labels in it, and whether there was one."""
        rest, found = words(value), False
        for label in self._labels:
            for start in range(len(rest) - len(label), -1, -1):
                if rest[start : start + len(label)] == label:
                    rest[start : start + len(label)] = []
                    found = True
        return list(dict.fromkeys(content_words(" ".join(rest)))), found

    def _has(self, key: str) -> bool:
        return key in self._words or (not key.isascii() and key in self._text)


def content_words(text: str) -> list[str]:
    """The content words of a text in comparable form, numbers as digits; see the module."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)  # 1,000
    text = re.sub(r"(?<=\d)(?=[^\W\d_])|(?<=[^\W\d_])(?=\d)", " ", text)  # 8am, 2nd
    found: list[str] = []
    open_tens = False  # the last word was "twenty", so that "five" makes it 25
    for word in words(text):
        value = int(word) if word.isascii() and word.isdecimal() and len(word) < 20 else _NUMBERS.get(word)
        if value is None and word in ("st", "nd", "rd", "th") and found and found[-1].isdecimal():
            continue
        if value is not None and open_tens and 0 < value < 10 and word in _ONES:
            found[-1] = str(int(found[-1]) + value)
        elif value is not None:
            found.append(str(value))
        elif word == "hundred" and found and found[-1].isdecimal() and int(found[-1]) < 100:
            found[-1] = str(100 * int(found[-1]))
        elif word not in _EMPTY_WORDS:
            found.append(_stem(word))
        open_tens = word in _TENS
    return found


@cache
def _stem(word: str) -> str:
    """A word without the endings of plurals, verbs and agents. Crude, but the same on both sides of a comparison."""
    word = _IRREGULAR.get(word, word)
    if len(word) > 3:
        if word.endswith(("ies", "ied")):
            word = word[:-3] + "i"
        elif verb := re.fullmatch(r"(.*[aeiouy].*?)(?:ing|ed|er)s?", word):
            word = verb[1]
        elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    word = _IRREGULAR.get(word, word)
    if len(word) > 2:
        word = word.removesuffix("e")
        word = word[:-1] + {"y": "i", "v": "f"}.get(word[-1], word[-1])  # try, tries; wives, wife
        if len(word) > 2 and word[-1] == word[-2]:
            word = word[:-1]  # running
    return word
