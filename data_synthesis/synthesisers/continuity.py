"""Continuity pairs (QUMem's classifier, PAPERS: data recipe unpublished): two utterances of one user, and whether the
second goes on with the event of the first. The teacher labels every pair; what kind a pair is decides what it is for.

    adjacent          neighbours in one session: the natural distribution
    session_boundary  the last of a session and the first of the next: mostly boundaries, but a story may go on
    same_entity       from two sessions, sharing a rare word: hard negatives, kept where the teacher says 0
    digression        with one utterance between them, which has less in common with the first than the second has: hard
                      positives, kept where the teacher says 1 and calls the one between a boundary

Deviation from QUMem, whose pairs come from one user's chat: between two people each is taken as the user in turn. The
train split is balanced to one to one by leaving out pairs of the more frequent label, the easy kinds first and within a kind
by the hash of their ids; dev and test keep the natural distribution.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from data_synthesis.dialogues import Dialogue, Turn
from data_synthesis.recipe import SynthesisRecipe
from data_synthesis.splits import normalise
from data_synthesis.synthesisers import Answered, Item, Left, Row, Synthesiser

HARD_SHARE = 0.25  # candidates for each kind of hard pair, of the number of adjacent pairs
EASIEST_FIRST = ("adjacent", "session_boundary", "same_entity", "digression")  # in which order balance leaves pairs out
RARE = 3  # a word that at most so many utterances of the user hold
_WORD = re.compile(r"\w{4,}")

Place = tuple[int, Turn]  # number of the session, the turn


def items(dialogue: Dialogue, split: str, recipe: SynthesisRecipe) -> Iterator[Item]:
    """The pairs of a dialogue, of each of its users in turn."""
    places = [
        (number, turn)
        for number, session in enumerate(dialogue.sessions)
        for turn in session.turns
        if turn.role in ("user", "") and turn.text.strip()
    ]
    for user in dict.fromkeys(turn.speaker for _, turn in places):
        said = [place for place in places if place[1].speaker == user]
        for first, second, kind in _pairs(said):
            group = f"{dialogue.corpus}/{dialogue.group}"
            name = f"{dialogue.corpus}/{dialogue.id}/{said[first][1].id}+{said[second][1].id}"
            data = {"previous": said[first][1].text, "current": said[second][1].text}
            tags = {"corpus": dialogue.corpus, "kind": kind}
            if kind == "digression":
                middle = said[first + 1][1].id
                tags["through"] = f"{dialogue.corpus}/{dialogue.id}/{said[first][1].id}+{middle}"
            yield Item(name, group, split, data, tags)


def _pairs(said: list[Place]) -> Iterator[tuple[int, int, str]]:
    words = [_content(turn.text) for _, turn in said]
    for place in range(len(said) - 1):
        same = said[place][0] == said[place + 1][0]
        yield place, place + 1, "adjacent" if same else "session_boundary"
    most = max(1, round(HARD_SHARE * (len(said) - 1)))
    digressions = [
        place
        for place in range(len(said) - 2)
        if said[place][0] == said[place + 2][0]
        and len(words[place] & words[place + 2]) > len(words[place] & words[place + 1])
    ]
    yield from ((place, place + 2, "digression") for place in digressions[:most])
    frequency = Counter(word for found in words for word in found)
    entities = [
        (first, second)
        for second in range(len(said))
        for first in range(second)
        if said[first][0] != said[second][0]
        and any(1 < frequency[word] <= RARE for word in words[first] & words[second])
        and second > first + 1
    ]
    yield from ((first, second, "same_entity") for first, second in entities[:most])


def _content(text: str) -> set[str]:
    return set(_WORD.findall(normalise(text)))


def rows(answered: list[Answered], recipe: SynthesisRecipe) -> tuple[list[tuple[Row, Answered]], list[Left]]:
    """Rows with their answers, and the answered pairs that are left out: hard pairs that are none, and the rest of the
    more frequent label of the train split."""
    label = {a.item.id: a.outputs[0] for a in answered}
    kept, left = [], []
    for a in answered:
        kind = a.item.tags["kind"]
        if kind == "same_entity" and label[a.item.id] == 1:
            left.append(Left(a, "not_hard", "the teacher sees one event: no hard negative"))
        elif kind == "digression" and (label[a.item.id] == 0 or label.get(a.item.tags["through"]) != 0):
            left.append(Left(a, "not_hard", "no digression that comes back: no hard positive"))
        else:
            kept.append(a)
    surplus = _surplus([a for a in kept if a.item.split == "train"], label)
    for a in kept:
        if a.item.id in surplus:
            left.append(Left(a, "balance", f"the label {label[a.item.id]} has more pairs than the other"))
    return [(a.row(label[a.item.id]), a) for a in kept if a.item.id not in surplus], left


def _surplus(train: list[Answered], label: dict[str, Any]) -> set[str]:
    counts = Counter(label[a.item.id] for a in train)
    if len(counts) < 2:
        return set()
    frequent, rare = counts.most_common()[0], counts.most_common()[-1]
    spare = [a.item for a in train if label[a.item.id] == frequent[0]]
    spare.sort(key=lambda item: (EASIEST_FIRST.index(item.tags["kind"]), hashlib.sha256(item.id.encode()).digest()))
    return {item.id for item in spare[: frequent[1] - rare[1]]}


SYNTHESISER = Synthesiser(items, rows)
