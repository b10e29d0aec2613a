"""PersonaTree operations: a person's dialogue chunk by chunk (w = 3 exchanges in Inside Out, `max_turns: 6`), each asked with
the tree that the teacher's own operations have made so far.

In an assistant's chat the person is the user; between two people each has a walk over the same turns. Only what the executor
accepts is carried out and becomes gold; what it refuses is counted, and an answer of which it accepts nothing makes no row. A
chunk never sees what comes after it, no gold takes part, and an answer is asked for again only where it cannot be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from data_synthesis.dialogues import Dialogue, Turn
from data_synthesis.operations import kinds_of
from data_synthesis.recipe import SynthesisRecipe
from data_synthesis.synthesisers import Answered, Item, Left, Row, Synthesiser
from extractors import load_extractor
from extractors.contract import Extractor
from extractors.persona_tree import NO_OP, Execution, PersonaTree, PersonaTreeExtractor, execute
from extractors.persona_tree.operations import operations_from_json


def items(dialogue: Dialogue, split: str, recipe: SynthesisRecipe) -> Iterator[Item]:
    """The chunks of each person of a dialogue, in order; none crosses a session. Their trees come with the answers."""
    spoken = [turn for turn in dialogue.turns() if turn.role in ("user", "") and turn.text.strip()]
    for person in dict.fromkeys(_label(turn) for turn in spoken):
        walk = f"{dialogue.corpus}/{dialogue.id}/{person}"
        number = 0
        for session in dialogue.sessions:
            turns = [turn for turn in session.turns if turn.role != "system" and turn.text.strip()]
            for start in range(0, len(turns), recipe.max_turns):
                window = turns[start : start + recipe.max_turns]
                said = [{"id": turn.id, "speaker": _label(turn), "text": turn.text} for turn in window]
                yield Item(
                    f"{walk}/{number:04d}",
                    f"{dialogue.corpus}/{dialogue.group}",
                    split,
                    {"tree": {}, "turns": said, "person": person},
                    {"corpus": dialogue.corpus, "replay": walk, "chunk": number},
                    chain=walk,
                )
                number += 1


def follow(extractor: Extractor[Any, Any], item: Item, output: Any) -> Mapping[str, Any]:
    """What an answer changes in the input of the person's next chunk: the tree."""
    assert isinstance(extractor, PersonaTreeExtractor)
    return {"tree": dict(_carried_out(extractor, item, output).tree.values)}


def rows(answered: list[Answered], recipe: SynthesisRecipe) -> tuple[list[tuple[Row, Answered]], list[Left]]:
    """A row for each answer of which the executor accepts something, or which is NO_OP. Tag `refused`: why it refused what."""
    extractor = load_extractor(recipe.extractor, recipe.extractor_options)
    assert isinstance(extractor, PersonaTreeExtractor)
    made, left = [], []
    for each in answered:
        done = _carried_out(extractor, each.item, each.outputs[0])
        refused = [one.reason for one in done.rejected]
        gold = [
            replace(one.operation, value=one.after) for one in done.applied if one.effect not in ("unchanged", "none")
        ]
        if refused and not done.applied:
            left.append(Left(each, "refused by the executor", ", ".join(refused)))
            continue
        operations = extractor.in_order(gold) or (NO_OP,)
        row = each.row(extractor.write_output(operations))
        row["tags"]["operations"] = kinds_of(operations)
        if refused:
            row["tags"]["refused"] = refused
        made.append((row, each))
    return made, left


def details(made: list[tuple[Row, Answered]]) -> dict[str, Any]:
    """For the card: operations that the executor refused in rows that were made, by reason."""
    found = Counter(reason for row, _ in made for reason in row["tags"].get("refused", ()))
    return {"operations_refused": dict(found)}


def _carried_out(extractor: PersonaTreeExtractor, item: Item, output: Any) -> Execution:
    chunk = extractor.read_input(item.input)
    return execute(PersonaTree(extractor.schema, chunk.tree), operations_from_json(output), item.id)


def _label(turn: Turn) -> str:
    return turn.speaker.replace(":", " ").strip() or "Speaker"


# Both people of a dialogue have rows over the same turns.
SYNTHESISER = Synthesiser(items, rows, follow, details, near_duplicate=None)
