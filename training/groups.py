"""Groups of completions, pure: how far apart their rewards are, what each is better than the others, and where new prompts
come from. A group is the completions of one prompt; none of this knows a model.

Advantages: Shao et al., DeepSeekMath (arXiv 2402.03300), as DAPO (arXiv 2503.14476) and Inside Out use them:
A_i = (R_i - mean) / std over the group. The std is the sample's (n - 1), as in TRL, verl and ms-swift; theirs add 1e-4 to
it, which is left out: a group whose rewards are equal has advantages of exactly 0 by rule.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from typing import Literal

from extractors.persona_tree.operations import read

EQUAL = 1e-9  # rewards that differ by less are the same number, computed twice
Scale = Literal["group", "batch", "none"]
Rewards = Sequence[float | None]


def spread(values: Rewards) -> float:
    """Standard deviation (n - 1) of those that are not None; 0.0 for fewer than two."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return 0.0
    mean = math.fsum(known) / len(known)
    found = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (len(known) - 1))
    return found if found > EQUAL else 0.0


def is_flat(rewards: Rewards, min_std: float) -> bool:
    """Whether a group teaches nothing: its rewards are equal, or closer than `min_std`."""
    found = spread(rewards)
    return found == 0.0 or found < min_std


def advantages(groups: Sequence[Rewards], scale: Scale = "group", min_std: float = 0.0) -> list[list[float]]:
    """Advantage of each completion, by group. Exactly 0.0 in a flat group, and for a reward of None, which counts in no mean
    either. scale: divide by the std of the group, of the batch, or not at all (TRL's `scale_rewards`)."""
    batch = spread([reward for rewards in groups for reward in rewards])
    found = []
    for rewards in groups:
        known = [reward for reward in rewards if reward is not None]
        if is_flat(rewards, min_std):
            found.append([0.0] * len(rewards))
            continue
        mean = math.fsum(known) / len(known)
        divisor = {"group": spread(rewards), "batch": batch, "none": 1.0}[scale]
        found.append([0.0 if reward is None else (reward - mean) / divisor for reward in rewards])
    return found


def credit_advantages(credits: Sequence[Sequence[float]]) -> list[list[float]]:
    """Of one group: how much better each operation is than the group's operations, (q - mean) / std over all of them. Zeros
    where they are all alike."""
    values = [value for each in credits for value in each]
    divisor = spread(values)
    if not divisor:
        return [[0.0] * len(each) for each in credits]
    mean = math.fsum(values) / len(values)
    return [[(value - mean) / divisor for value in each] for each in credits]


def operation_lines(text: str) -> list[tuple[int, int]]:
    """Character ranges of the operations of a completion, in their order, each with its line break; NO_OP is none. A line
    with several operations appears once for each. Empty where lines alone do not tell (a value with a line break in it)."""
    ranges: list[tuple[int, int]] = []
    start = 0
    for line in text.splitlines(keepends=True):
        found = [operation for operation in read(line).operations if operation.kind != "NO_OP"]
        ranges += [(start, start + len(line))] * len(found)
        start += len(line)
    whole = [operation for operation in read(text).operations if operation.kind != "NO_OP"]
    return ranges if len(ranges) == len(whole) else []


class PromptStream:
    """The rows that replace those whose group is flat: one shuffle of all rows after another, from a seed of its own, so that
    the trainer's order of prompts stays what it would be without. Where it stands is one number, `position`."""

    def __init__(self, rows: int, seed: int, position: int = 0):
        self.rows, self.seed, self.position = rows, seed, position
        self._shuffle: tuple[int, list[int]] = (-1, [])

    def draw(self, count: int, without: Collection[int] = ()) -> list[int]:
        """The next `count` rows, passing over those in `without`, and over each other, as long as there are others."""
        avoid, drawn = set(without), list[int]()
        while len(drawn) < count:
            if len(avoid) >= self.rows:
                avoid = set()
            row = self._next()
            if row not in avoid:
                drawn.append(row)
                avoid.add(row)
        return drawn

    def _next(self) -> int:
        number, place = divmod(self.position, self.rows)
        if self._shuffle[0] != number:
            order = list(range(self.rows))
            random.Random(f"refill {self.seed} {number}").shuffle(order)
            self._shuffle = (number, order)
        self.position += 1
        return self._shuffle[1][place]
