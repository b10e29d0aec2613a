"""HaluMem's preference events as walks: what a user comes to like, likes no more, or likes in another way, event by event.

Of each user the preferences before all events are the tree that the walk begins with. An event is a chunk of one turn, the
user telling it, and its annotation says which preference gives way to which: the gold is the corpus's own (470 changes and
212 ends for 20 users), all of it has a leaf, and none of it comes from a later event. An end seldom empties a leaf, so that
most operations are UPDATEs; 93 events change nothing, because the leaf's budget had no room for what they are about.

Licence: CC BY-NC-ND 4.0: train on the rows, but pass them on to nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from data_synthesis.corpora import halumem
from data_synthesis.dialogues import Dialogue, Loaded
from data_synthesis.operations import SEPARATOR, Change, Step, Walk, operations_for
from extractors.triplets import Turn

# Of a type of preference the leaf of what is liked, and that of what is not.
LEAVES = {
    "Food Preference": ("Behavioural.Lifestyle.Liked_Food", "Behavioural.Lifestyle.Disliked_Food"),
    "Beverage Preference": ("Behavioural.Lifestyle.Liked_Food", "Behavioural.Lifestyle.Disliked_Food"),
    "Pet Preference": ("Identity.Family_System.Pets",) * 2,
    "Sports Preference": ("Behavioural.Interests_and_Skills.Sports",) * 2,
    "Game Preference": ("Behavioural.Interests_and_Skills.Games",) * 2,
    "Travel Preference": ("Behavioural.Lifestyle.Travel",) * 2,
    "Clothing Preference": ("Behavioural.Behavioural_Habits.Clothing",) * 2,
    "Music Preference": ("Behavioural.Knowledge_Base.Music",) * 2,
    "Movie Preference": ("Behavioural.Knowledge_Base.Films_and_Series",) * 2,
    "Reading Preference": ("Behavioural.Knowledge_Base.Books",) * 2,
}


def load(source: str | None = None) -> Loaded:
    """The events. source: a folder with HaluMem's stages."""
    return halumem.events(None if source is None else Path(source).expanduser())


def walks(dialogue: Dialogue, exchanges: int = 1) -> Iterator[Walk]:
    """The walk of a user. exchanges: has no meaning here, an event is a chunk."""
    start = [
        Change(*_place(kind, point)) for kind, points in dialogue.labels.get("initial", {}).items() for point in points
    ]
    steps = []
    for turn in dialogue.turns():
        kind, labels = turn.labels["preference_type"], turn.labels
        before = _points(labels["before_preference"]["memory_points"])
        after = _points(labels["after_preference"]["memory_points"])
        steps.append(
            Step(
                f"{dialogue.group}-{turn.id}",
                (Turn(turn.speaker, turn.text, turn.id),),
                tuple(_changes(kind, before, after)),
                {"about": "the person", "preference": kind},
            )
        )
    known = {each.path: each.value for each in operations_for(start, {}) if each.value is not None}
    yield Walk(dialogue.group, dialogue.group, "User", tuple(steps), known)


def _points(points: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [point for point in points if not point.get("deleted")]


def _changes(kind: str, before: list[Mapping[str, Any]], after: list[Mapping[str, Any]]) -> Iterator[Change]:
    """Each preference gives way to the one in its place; one that moves to the other leaf ends here and begins there."""
    for old, new in zip(before, [*after, *[None] * (len(before) - len(after))], strict=False):
        leaf, value = _place(kind, old)
        now = None if new is None else _place(kind, new)
        if now is None or now[0] != leaf:
            yield Change(leaf, None, value)
        if now is not None:
            yield Change(now[0], now[1], value if now[0] == leaf else None)
    for new in after[len(before) :]:
        yield Change(*_place(kind, new))


def _place(kind: str, point: Mapping[str, Any]) -> tuple[str, str]:
    liked, disliked = LEAVES[kind]
    text = " ".join(point["specific_item"].replace(SEPARATOR.strip(), ",").split())
    if point["type"] != "dislike":
        return liked, text
    return disliked, text if disliked != liked else f"dislikes {text}"
