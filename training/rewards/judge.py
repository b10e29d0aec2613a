"""The paper's reward: an LLM judge compares an answer with gold and gives one score from -1 to 1 (Inside Out, its appendix).

For comparison with the paper; `process` is the default. As published, the judge sees neither dialogue nor tree, so it cannot
tell a correct operation that gold lacks from an invented one. Where it fails, after its retries, or its score cannot be read,
the reward is None, to be masked: the published code takes 0 there, which is better than most answers.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from extractors.jsontext import Found, find_json
from extractors.persona_tree import Operation
from extractors.persona_tree.operations import render
from training.rewards.process import Reward

_SYSTEM = (
    "Two lists of operations edit a person's memory, a tree of short texts: a reference and a candidate. Say how well the "
    "candidate does what the reference does. Compare kind, path and value of each operation; a value counts by its meaning, "
    "a path near the right one counts in part, missing and superfluous operations count against it. 1: as good as the "
    "reference. 0.7: mostly right. 0.5: usable. 0.3: half of it. 0: little is right. -0.3: vaguely related. -0.5: mostly "
    'wrong. -0.7: broken. -1: nonsense. Answer with JSON and nothing else: {"score": a number from -1 to 1}.'
)


@dataclass
class Judge:
    """A judge behind any OpenAI-compatible endpoint. sampling: sent with each request (the paper: temperature 0.7, top_p 0.8,
    presence_penalty 1.05); attempts: per answer; failed: how many answers were given up, by reason."""

    base_url: str
    model: str
    api_key: str
    sampling: dict[str, Any] = field(default_factory=lambda: {"temperature": 0.7, "top_p": 0.8})
    attempts: int = 3
    concurrency: int = 16
    timeout: float = 120.0
    failed: dict[str, int] = field(default_factory=dict)

    def score_all(self, pairs: Sequence[tuple[Sequence[Operation], str]]) -> list[Reward]:
        """A reward for each (gold, completion), in their order."""
        return asyncio.run(self._score_all(pairs))

    async def _score_all(self, pairs: Sequence[tuple[Sequence[Operation], str]]) -> list[Reward]:
        import openai

        places = asyncio.Semaphore(self.concurrency)
        async with openai.AsyncOpenAI(
            base_url=self.base_url, api_key=self.api_key, timeout=self.timeout, max_retries=self.attempts - 1
        ) as api:

            async def one(gold: Sequence[Operation], completion: str) -> Reward:
                async with places:
                    return await self._score(api, gold, completion)

            return list(await asyncio.gather(*(one(gold, completion) for gold, completion in pairs)))

    async def _score(self, api: Any, gold: Sequence[Operation], completion: str) -> Reward:
        import openai

        asked = f"Reference:\n{render(gold)}\n\nCandidate:\n{completion.strip() or '(nothing)'}"
        messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": asked}]
        why = "no score"
        for _ in range(self.attempts):
            try:
                reply = await api.chat.completions.create(model=self.model, messages=messages, **self.sampling)
            except (openai.APIError, json.JSONDecodeError) as error:
                why = type(error).__name__
                break
            score = read_score(reply.choices[0].message.content if reply.choices else None)
            if score is not None:
                return Reward(score, {"judge": score})
        self.failed[why] = self.failed.get(why, 0) + 1
        return Reward(None, {})


def read_score(text: str | None) -> float | None:
    """The score of a judge's reply, None for anything else."""
    found = find_json(text or "", lambda value: isinstance(value, dict) and "score" in value)
    score = found.value.get("score") if isinstance(found, Found) and isinstance(found.value, dict) else None
    if (
        isinstance(score, bool)
        or not isinstance(score, int | float)
        or not math.isfinite(score)
        or not -1 <= score <= 1
    ):
        return None
    return float(score)
