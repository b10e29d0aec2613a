"""Sequential replays: each chunk sees the state that the chunks before it made, and a failure stops its person alone."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_synthesis.replay import Replay, Step, replay
from data_synthesis.teacher import Failed

LOST = Failed("server", "HTTP 500", 8)


def walk(chunks: list[str], fails_at: str | None = None) -> Replay[tuple[str, ...], int]:
    async def step(state: tuple[str, ...], chunk: str) -> Step[tuple[str, ...], int] | Failed:
        return LOST if chunk == fails_at else Step(len(state), (*state, chunk))

    return asyncio.run(replay(chunks, (), step))


@given(chunks=st.lists(st.text(), max_size=8))
def test_every_chunk_sees_the_state_before_it(chunks: list[str]):
    done = walk(chunks)
    assert done.outputs == tuple(range(len(chunks))) and done.states[-1] == tuple(chunks)
    assert (done.stopped, done.left) == (None, 0)


@pytest.mark.parametrize(("fails_at", "outputs", "left"), [("a", (), 3), ("b", (0,), 2), ("c", (0, 1), 1)])
def test_a_failed_chunk_stops_the_replay_there(fails_at: str, outputs: tuple[int, ...], left: int):
    done = walk(["a", "b", "c"], fails_at)
    assert (done.outputs, done.stopped, done.left) == (outputs, LOST, left)
    assert len(done.states) == len(outputs) + 1
