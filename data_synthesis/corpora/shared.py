"""Dialogues that stand in several corpora. TIAGE, PersonaExt and session 1 of MSC are all made from PersonaChat.

An utterance counts when, normalised (`data_synthesis.splits.normalise`, then contractions written out, which the corpora do
differently), it has at least MIN_WORDS words and stands in at most MAX_DIALOGUES dialogues of each corpus: shorter and
commoner ones are small talk. Two dialogues of different corpora share text when they have MIN_SHARED such utterances in
common, or one, where one of them is a single utterance.

Measured on TIAGE (500 dialogues), PersonaExt (22,566 utterances) and MSC's valid and test episodes (1,001):

    TIAGE and MSC          229 pairs: 229 dialogues of TIAGE are session 1 of 229 of MSC's episodes
    PersonaExt and TIAGE   1,008 pairs: 1,007 utterances, in 427 dialogues
    PersonaExt and MSC     1,092 pairs: 1,091 utterances, in 435 episodes

All of it in MSC's session 1. No two corpora of MemoChat, HaluMem, LoCoMo, PersonaMem and LongMemEval share any, with each other
or with these.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from data_synthesis.dialogues import Dialogue
from data_synthesis.splits import normalise

MIN_WORDS = 8
MAX_DIALOGUES = 3
MIN_SHARED = 2

# After `normalise`, an apostrophe is a blank.
_CONTRACTIONS = [
    (re.compile(pattern), full)
    for pattern, full in (
        (r"\bi m\b", "i am"),
        (r"\bwon t\b", "will not"),
        (r"\bcan(?: ?not| t)\b", "can not"),
        (r"\b(do|does|did|is|are|was|were|have|has|had|could|should|would)n t\b", r"\1 not"),
        (r"\b(\w+) re\b", r"\1 are"),
        (r"\b(\w+) ve\b", r"\1 have"),
        (r"\b(\w+) ll\b", r"\1 will"),
        (r"\b(i|you|he|she|we|they) d\b", r"\1 would"),
        (r"\b(it|that|he|she|what|there|here|how|who|where|let) s\b", r"\1 is"),
        (r"\b(\w+) s\b", r"\1s"),
    )
]


@dataclass(frozen=True)
class SharedPair:
    """Two dialogues of different corpora that share text; each as (corpus, id), in the order they were given.
    utterances: how many they share."""

    one: tuple[str, str]
    other: tuple[str, str]
    utterances: int


def shared_pairs(dialogues: Iterable[Dialogue]) -> list[SharedPair]:
    """The pairs of dialogues, of different corpora, that share text (see the module for the rule)."""
    turns: dict[tuple[str, str], int] = {}
    holders: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
    for dialogue in dialogues:
        key = (dialogue.corpus, dialogue.id)
        turns[key] = sum(1 for _ in dialogue.turns())
        for turn in dialogue.turns():
            text = _plain(turn.text)
            if text.count(" ") >= MIN_WORDS - 1:
                holders[text][key] = None
    counts: Counter[tuple[tuple[str, str], tuple[str, str]]] = Counter()
    for keys in holders.values():
        if max(Counter(corpus for corpus, _ in keys).values()) <= MAX_DIALOGUES:
            counts.update(pair for pair in combinations(keys, 2) if pair[0][0] != pair[1][0])
    return [
        SharedPair(one, other, count)
        for (one, other), count in counts.items()
        if count >= min(MIN_SHARED, turns[one], turns[other])
    ]


def without_shared(by_role: Mapping[str, list[Dialogue]]) -> tuple[dict[str, list[Dialogue]], dict[str, Any]]:
    """Leave out what would be learnt or tuned on and tested in another corpus: train and rl lose the dialogues that share
    text with one of dev or test, dev those that share with test.

    by_role: as `data_synthesis.roles.split_by_role` returns them, over all corpora that go into one dataset. Returns the
    rest, and per role that lost any {"count", "first_id"} (ids as `corpus/id`).
    """
    rank = {"train": 0, "rl": 0, "dev": 1, "test": 2}
    home = {(d.corpus, d.id): role for role, members in by_role.items() if role in rank for d in members}
    gone: set[tuple[str, str]] = set()
    for pair in shared_pairs(d for role, members in by_role.items() if role in rank for d in members):
        one, other = sorted((pair.one, pair.other), key=lambda key: rank[home[key]])
        if rank[home[one]] < rank[home[other]]:
            gone.add(one)
    kept, report = {}, {}
    for role, members in by_role.items():
        lost = [d for d in members if (d.corpus, d.id) in gone]
        kept[role] = [d for d in members if (d.corpus, d.id) not in gone]
        if lost:
            report[role] = {"count": len(lost), "first_id": f"{lost[0].corpus}/{lost[0].id}"}
    return kept, report


def _plain(text: str) -> str:
    text = normalise(text)
    for pattern, full in _CONTRACTIONS:
        text = pattern.sub(full, text)
    return text
