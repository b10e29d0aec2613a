"""Triplets: windows of consecutive turns, with a few turns before them as context.

Deviation from G-Long, which trains on single utterances: windows hold several turns where the recipe says so, since one
answer of a teacher then brings several facts, and pronouns find what they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator

from data_synthesis.dialogues import Dialogue, Turn
from data_synthesis.recipe import SynthesisRecipe
from data_synthesis.synthesisers import Answered, Item, Left, Row, Synthesiser


def items(dialogue: Dialogue, split: str, recipe: SynthesisRecipe) -> Iterator[Item]:
    """The windows of a dialogue. They do not overlap, and none crosses a session; system messages stay out."""
    for session in dialogue.sessions:
        turns = [turn for turn in session.turns if turn.role != "system" and turn.text.strip()]
        for start in range(0, len(turns), recipe.max_turns):
            window = turns[start : start + recipe.max_turns]
            context = turns[max(0, start - recipe.context_turns) : start]
            data = {"turns": [_json(turn) for turn in window]}
            if context:
                data["context"] = [_json(turn) for turn in context]
            name = f"{dialogue.corpus}/{dialogue.id}/{session.id}/{window[0].id}"
            yield Item(name, f"{dialogue.corpus}/{dialogue.group}", split, data, {"corpus": dialogue.corpus})


def rows(answered: list[Answered], recipe: SynthesisRecipe) -> tuple[list[tuple[Row, Answered]], list[Left]]:
    """A row per answered item; its gold is the first sample's until the samples are compared."""
    return [(a.row(a.outputs[0]), a) for a in answered], []


def _json(turn: Turn) -> dict[str, str]:
    return {"id": turn.id, "speaker": turn.speaker.replace(":", " ").strip() or "Speaker", "text": turn.text}


SYNTHESISER = Synthesiser(items, rows)
