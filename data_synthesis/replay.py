"""Sequential replays: a person's dialogue, chunk by chunk, with a state that each answer changes.

A chunk can only be asked once the state before it is known, so a person is one job and people run side by side. A chunk
that fails stops its person there (what follows would be asked about a wrong state) until the run is started again with
`--retry-failed`; everybody else goes on. On a restart the stored answers replay without a request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from data_synthesis.teacher import Failed

State = TypeVar("State")
Chunk = TypeVar("Chunk")
Output = TypeVar("Output")


@dataclass(frozen=True)
class Step(Generic[State, Output]):
    """What a chunk led to: the teacher's output, and the state after it."""

    output: Output
    state: State


@dataclass(frozen=True)
class Replay(Generic[State, Output]):
    """A replay as far as it came. states: before each chunk that was done, and after the last; stopped: the failure,
    None where every chunk was done; left: how many chunks were not."""

    outputs: tuple[Output, ...]
    states: tuple[State, ...]
    stopped: Failed | None
    left: int


async def replay(
    chunks: Sequence[Chunk],
    state: State,
    step: Callable[[State, Chunk], Awaitable[Step[State, Output] | Failed]],
) -> Replay[State, Output]:
    """Walk through `chunks` from `state`. step: asks about one chunk in the state before it."""
    outputs: list[Output] = []
    states = [state]
    for done, chunk in enumerate(chunks):
        result = await step(states[-1], chunk)
        if isinstance(result, Failed):
            return Replay(tuple(outputs), tuple(states), result, len(chunks) - done)
        outputs.append(result.output)
        states.append(result.state)
    return Replay(tuple(outputs), tuple(states), None, 0)
