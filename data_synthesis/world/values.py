"""Values dealt to the splits: every value (normalised) belongs to train, dev or test, whatever the seed of a run.

The deal depends on the words alone (a stable hash), not on the seed, so a model trained on one world may be tested on
another one without having met its values. Composed values ("Halden Freight") are dealt by their invented head.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from data_synthesis.splits import normalise
from data_synthesis.world import inventories as raw

SPLITS = ("train", "dev", "test")
SHARES = (0.60, 0.14, 0.26)


@dataclass(frozen=True)
class Kind:
    """One kind of value: `heads` are dealt to the splits, `tails` (if any) are shared and completed to `head +
    tail`."""

    heads: Sequence[str]
    tails: Sequence[str] = ()
    joint: str = " "


KINDS: dict[str, Kind] = {
    "female_name": Kind(raw.FEMALE_NAMES),
    "male_name": Kind(raw.MALE_NAMES),
    "surname": Kind(raw.SURNAME_HEADS, raw.SURNAME_TAILS, ""),
    "pet_name": Kind(raw.PET_NAMES),
    "employer": Kind(raw.EMPLOYER_HEADS, raw.EMPLOYER_TAILS),
    "school": Kind(raw.SCHOOL_HEADS, raw.SCHOOL_TAILS),
    "club": Kind(raw.CLUB_HEADS, raw.CLUB_TAILS),
    "invented_town": Kind(raw.TOWN_HEADS, raw.TOWN_TAILS, ""),
    "real_town": Kind(raw.REAL_TOWNS),
    "band": Kind(raw.BAND_HEADS, raw.BAND_TAILS),
    "genre": Kind(raw.GENRES),
    "film": Kind(raw.FILM_HEADS, raw.FILM_TAILS),
    "job": Kind(raw.JOBS),
    "pet": Kind(raw.PETS),
    "food": Kind(raw.FOODS),
    "hobby": Kind(raw.HOBBIES),
    "plain_vehicle": Kind(raw.VEHICLE_HEADS),
    "thing": Kind(raw.THINGS),
    "collection": Kind(raw.COLLECTIONS),
    "degree": Kind(raw.DEGREES),
    "allergen": Kind(raw.ALLERGENS),
    "fear": Kind(raw.FEARS),
    "colour": Kind(raw.COLOURS),
    "wish": Kind(
        [f"learn {tongue}" for tongue in raw.TONGUES]
        + [f"visit {place}" for place in raw.TRIPS]
        + [f"open {venture}" for venture in raw.VENTURES]
        + list(raw.FEATS)
    ),
}


@cache
def deal() -> dict[str, dict[str, tuple[str, ...]]]:
    """kind -> split -> heads. A head that two kinds share (waffles the food, Waffles the cat) keeps its first split."""
    home: dict[str, str] = {}
    dealt: dict[str, dict[str, tuple[str, ...]]] = {}
    for kind, inventory in KINDS.items():
        ordered = sorted(set(inventory.heads), key=lambda head: hashlib.sha256(head.encode()).hexdigest())
        parts: dict[str, list[str]] = {split: [] for split in SPLITS}
        for head in ordered:
            split = home.get(normalise(head))
            if split is None:
                # The split that lags furthest behind its share takes the next value.
                split = min(SPLITS, key=lambda s: (len(parts[s]) + 0.5) / SHARES[SPLITS.index(s)])
                home[normalise(head)] = split
            parts[split].append(head)
        dealt[kind] = {split: tuple(heads) for split, heads in parts.items()}
    return dealt


class Values:
    """The values of one split, drawn with a run's own random numbers."""

    def __init__(self, split: str):
        self.split = split
        self._heads = {kind: by_split[split] for kind, by_split in deal().items()}

    def draw(self, rng: random.Random, kind: str) -> str:
        """One value. "town", "music" and "vehicle" mix two kinds."""
        if kind == "town":
            kind = "real_town" if rng.random() < 0.25 else "invented_town"
        elif kind == "music":
            kind = "band" if rng.random() < 0.4 else "genre"
        elif kind == "vehicle":
            return self._vehicle(rng)
        inventory = KINDS[kind]
        head = rng.choice(self._heads[kind])
        return head + inventory.joint + rng.choice(inventory.tails) if inventory.tails else head

    def _vehicle(self, rng: random.Random) -> str:
        head, shape = rng.choice(self._heads["plain_vehicle"]), rng.random()
        if shape < 0.4:
            return head
        return f"{rng.choice(raw.VEHICLE_MARKS if shape < 0.7 else raw.VEHICLE_LOOKS)} {head}"

    def size(self, kind: str) -> int:
        """How many distinct values of a kind this split owns."""
        return len(self._heads[kind]) * max(1, len(KINDS[kind].tails))


def article(noun: str) -> str:
    """The noun with its indefinite article; "suit of armour" and "unicorn costume" included."""
    sounded_as_consonant = ("uni", "uku", "euro", "one")
    vowel = noun[0].lower() in "aeiou" and not noun.lower().startswith(sounded_as_consonant)
    return f"{'an' if vowel else 'a'} {noun}"


def is_plural(noun: str) -> bool:
    """Whether a value takes "are": olives, snow globes, frogs' legs, liver and onions."""
    last = noun.split()[-1].lower()
    singular = ("ss", "us", "is", "koi", "classics", "couscous", "haggis", "bagpipes")
    uncountable = (
        "physics",
        "mathematics",
        "economics",
        "genetics",
        "robotics",
        "linguistics",
        "statistics",
        "logistics",
        "classics",
        "studies",
        "relations",
        "disco",
        "bravas",
        "mango",
        "chips",
        "stairs",
    )
    if last in ("mice", "geese", "dice", "fish"):
        return True
    if " and " in noun:
        return noun not in ("mac and cheese", "drum and bass")
    return last.endswith("s") and not last.endswith(singular) and last not in uncountable
