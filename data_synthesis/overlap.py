"""Leak gates: no row of one split may stand, word for word or nearly, in another.

Two rows are *identical* when their normalised input texts are equal, and *near-duplicates* when the Jaccard similarity
of their sets of three-word shingles reaches a threshold. The search is exact: it misses no such row, by the prefix
filter of Bayardo et al. ("Scaling up all pairs similarity search", WWW 2007): two sets that are that similar share one
of the rarest shingles of each, so only rows that share one are compared. 28,000 rows of 60 words take a few seconds.

Short texts are compared with care. One changed word changes three shingles, so below NEAR_WORDS words two texts would
be near-duplicates only by a different first or last word, which may well be the fact ("I have a dog named Max"): they
count when they are identical. And small talk ("Hello, how are you doing today? / I am well, how are you?") is said in
every corpus: where neither gold states facts (a list that is neither empty nor NO_OP), texts below SMALL_TALK_WORDS words
do not count.

At the threshold of 0.8 no row of PersonaExt (22,566 rows) or of a simulated world (5,640 rows) is a near-duplicate of a
row in another split, nor is any of the 34,987 pairs of neighbouring utterances in MSC's sessions 1 to 3 or of the 7,302
in TIAGE, where without the rule for small talk one each would be. At 0.7 three rows of PersonaExt are ("that is awesome,
i do not know what i want to do after high school."); at 0.5 it is 23, with "i have cats.. six of them" among them, taken
for "i have cats and dogs".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data_synthesis.splits import Rows, input_text, normalise, states_nothing
from extractors.contract import InputError

THRESHOLD = 0.8  # of the Jaccard similarity
SHINGLE_WORDS = 3
NEAR_WORDS = 10
SMALL_TALK_WORDS = 15


@dataclass(frozen=True)
class Pair:
    """Two rows that are too alike, the one of the earlier split first. similarity: Jaccard; 1.0 for identical texts."""

    split: str
    id: str
    other_split: str
    other_id: str
    similarity: float

    def __str__(self) -> str:
        how = "identical to" if self.similarity == 1.0 else f"{self.similarity:.2f} like"
        return f"{self.split} {self.id!r} is {how} {self.other_split} {self.other_id!r}"


def overlaps(splits: Mapping[str, Rows], threshold: float = THRESHOLD) -> list[Pair]:
    """The rows that are identical to, or near-duplicates of, a row in a later split: one pair for each of them.

    splits: in the order train, dev, test. threshold: of the similarity, above 0 and at most 1. Pairs stand in the order
    of their first rows.
    """
    rows = [(split, row) for split, members in splits.items() for row in members]
    index = _Index([row for _, row in rows], threshold)
    pairs: list[Pair] = []
    end = len(rows)
    for members in reversed(list(splits.values())):
        # A split is asked against the splits after it, and only then joins them.
        places = range(end - len(members), end)
        for place in reversed(places):
            if match := index.match(place):
                (split, row), (other_split, other) = rows[place], rows[match[0]]
                pairs.append(Pair(split, row["id"], other_split, other["id"], match[1]))
        for place in places:
            index.add(place)
        end -= len(members)
    return pairs[::-1]


def assert_no_overlap(splits: Mapping[str, Rows], threshold: float = THRESHOLD) -> None:
    """Raise InputError, naming the first five pairs and how many there are, when two splits overlap (`overlaps`)."""
    pairs = overlaps(splits, threshold)
    if pairs:
        shown = "\n  ".join(str(pair) for pair in pairs[:5])
        between = Counter(f"{pair.split} and {pair.other_split}" for pair in pairs)
        counted = ", ".join(f"{n} between {names}" for names, n in between.items())
        raise InputError(
            f"{len(pairs)} rows stand in a later split too ({counted}), identical or at least {threshold:g} alike:\n"
            f"  {shown}\nSplit by group before cutting rows, or take them out with remove_overlap."
        )


def remove_overlap(splits: Mapping[str, Rows], threshold: float = THRESHOLD) -> tuple[dict[str, Rows], dict[str, Any]]:
    """Remove from each split what overlaps with a later one: train loses to dev and test, dev to test.

    Returns the kept rows and a report for the card: per split `identical` and `near_duplicate`, each {"count",
    "first_id"}. Afterwards `assert_no_overlap` passes. (`splits.refuse_duplicates` decides the other way round, for
    corpora whose train split must not be thinned.)
    """
    gone = {(pair.split, pair.id): pair.similarity for pair in overlaps(splits, threshold)}
    kept = {split: [row for row in rows if (split, row["id"]) not in gone] for split, rows in splits.items()}
    report = {
        split: {
            "identical": _counted(gone, split, identical=True),
            "near_duplicate": _counted(gone, split, identical=False),
        }
        for split in splits
    }
    return kept, report


def _counted(gone: Mapping[tuple[str, str], float], split: str, identical: bool) -> dict[str, Any]:
    ids = [row_id for (where, row_id), likeness in gone.items() if where == split and (likeness == 1.0) is identical]
    return {"count": len(ids), "first_id": ids[0] if ids else None}


def repeats(rows: Sequence[dict[str, Any]], threshold: float = THRESHOLD) -> dict[str, tuple[str, float]]:
    """Rows that say again what an earlier row of the same split said: id to (id of that row, similarity).

    Only with rows that are not repeats themselves is compared, so a chain of small changes does not remove its far end.
    """
    index = _Index(rows, threshold)
    found: dict[str, tuple[str, float]] = {}
    for place, row in enumerate(rows):
        if match := index.match(place):
            found[row["id"]] = (rows[match[0]]["id"], match[1])
        else:
            index.add(place)
    return found


class _Index:
    """Rows by their whole texts, and by the rarest shingles of their texts."""

    def __init__(self, rows: Sequence[dict[str, Any]], threshold: float):
        if not 0 < threshold <= 1:
            raise InputError(f"`threshold` is {threshold!r}: write a similarity above 0 and at most 1.")
        self._threshold = threshold
        self._texts = [normalise(input_text(row)) for row in rows]
        self._small_talk = [
            len(text.split()) < SMALL_TALK_WORDS and (states_nothing(row) or not isinstance(row["gold"], list))
            for text, row in zip(self._texts, rows, strict=True)
        ]
        self._shingles = _shingles(self._texts)
        self._by_text: dict[str, int] = {}
        self._by_shingle: dict[int, list[int]] = {}

    def add(self, place: int) -> None:
        """Let the row at `place` be found from now on. Of identical texts one is enough, the one that states facts."""
        first = self._by_text.setdefault(self._texts[place], place)
        if self._small_talk[first] and not self._small_talk[place]:
            self._by_text[self._texts[place]] = place
        if first == place:
            for shingle in self._prefix(place):
                self._by_shingle.setdefault(shingle, []).append(place)

    def match(self, place: int) -> tuple[int, float] | None:
        """An added row that is identical, else the first one that is a near-duplicate, and its similarity."""
        same = self._by_text.get(self._texts[place])
        if same is not None and not self._both_small_talk(place, same):
            return same, 1.0
        mine = set(self._shingles[place])
        for other in sorted({one for part in self._prefix(place) for one in self._by_shingle.get(part, ())}):
            theirs = self._shingles[other]
            if self._both_small_talk(place, other):
                continue
            if min(len(mine), len(theirs)) >= self._threshold * max(len(mine), len(theirs)) - 1e-9:
                shared = sum(shingle in mine for shingle in theirs)
                likeness = shared / (len(mine) + len(theirs) - shared)
                if likeness >= self._threshold:
                    return other, likeness
        return None

    def _both_small_talk(self, one: int, other: int) -> bool:
        return self._small_talk[one] and self._small_talk[other]

    def _prefix(self, place: int) -> list[int]:
        """Shingles of which a near-duplicate must hold one: all but those that it could do without."""
        shingles = self._shingles[place]
        return shingles[: len(shingles) - math.ceil(self._threshold * len(shingles) - 1e-9) + 1] if shingles else []


def _shingles(texts: Sequence[str]) -> list[list[int]]:
    """The distinct shingles of each text as numbers, the rarest of all texts first; none for a text that is too short."""
    numbers: dict[tuple[str, ...], int] = {}
    found: list[set[int]] = []
    counts: Counter[int] = Counter()
    for text in texts:
        words = text.split()
        parts = [words[start:] for start in range(SHINGLE_WORDS)] if len(words) >= NEAR_WORDS else []
        found.append({numbers.setdefault(shingle, len(numbers)) for shingle in zip(*parts, strict=False)})
        counts.update(found[-1])
    rank = {shingle: place for place, (shingle, _) in enumerate(sorted(counts.items(), key=lambda c: (c[1], c[0])))}
    return [sorted(rank[shingle] for shingle in shingles) for shingles in found]
