"""The faults that the offline teacher plays, and when.

A fault is drawn per attempt, from the seed, the request and the number of the attempt alone: the same run meets the
same faults, and asking again helps. `hallucinated` is drawn per request, since nobody could tell the second answer from
the first.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data_synthesis.offline.tasks import Task
from extractors.contract import InputError

KINDS: dict[str, str] = {
    "429": "rate limit, with Retry-After",
    "500": "internal error",
    "503": "overloaded",
    "slow": "the right answer, late",
    "dropped": "the connection closes before any answer",
    "cut": "the connection closes in the middle of the body",
    "prose": "the right answer in a code fence, with prose around it",
    "truncated": "the answer breaks off, finish_reason length",
    "schema": "JSON of another shape",
    "empty": "no content",
    "hallucinated": "an answer with a value that nobody said (drawn per request: asking again brings it again)",
    "quota": "429 insufficient_quota, which asking again does not mend",
}
RECOVERABLE = tuple(kind for kind in KINDS if kind not in ("hallucinated", "quota"))
STILL_RIGHT = ("slow", "prose", "hallucinated")  # the client has its answer and need not ask again


@dataclass(frozen=True)
class Faults:
    """shares: of attempts (of requests for `hallucinated`) that meet each kind. Raises InputError where they do not
    make sense together."""

    shares: Mapping[str, float]
    seed: int = 0

    def __post_init__(self) -> None:
        for kind, share in self.shares.items():
            if kind not in KINDS:
                raise InputError(f"`{kind}` is no fault: write one of {', '.join(KINDS)}.")
            if not 0 <= share <= 1:
                raise InputError(f"the share of `{kind}` is {share:g}: write a number from 0 to 1.")
        total = sum(share for kind, share in self.shares.items() if kind != "hallucinated")
        if total > 1 + 1e-9:
            raise InputError(
                f"the shares of the faults add up to {total:g}: an attempt meets one at most, write 1 or less."
            )

    def draw(self, request: str, attempt: int) -> str | None:
        """The fault of an attempt (from 1), None for a right answer."""
        left = random.Random(f"{self.seed}/{request}/{attempt}").random()
        for kind, share in self.shares.items():
            if kind != "hallucinated":
                left -= share
                if left < 0:
                    return kind
        return None

    def invents(self, request: str) -> bool:
        """Whether the answer to this request holds a value that nobody said."""
        share = self.shares.get("hallucinated", 0.0)
        return share > 0 and random.Random(f"{self.seed}/{request}/hallucinated").random() < share


def read_shares(mix: float, single: Sequence[str]) -> dict[str, float]:
    """Shares of the command line. mix: spread evenly over the kinds that a client can recover from; single: `KIND=SHARE`,
    which sets that kind's share instead. Raises InputError."""
    if not 0 <= mix <= 1:
        raise InputError(f"`--faults` is {mix:g}: write the share of faulty attempts, from 0 to 1.")
    shares = dict.fromkeys(RECOVERABLE, mix / len(RECOVERABLE)) if mix else {}
    for entry in single:
        kind, mark, share = entry.partition("=")
        try:
            shares[kind.strip()] = float(share)
        except ValueError:
            mark = ""
        if not mark:
            raise InputError(f"`--fault` is {entry!r}: write KIND=SHARE, for example 429=0.05.")
    return shares


def distort(kind: str, text: str, gold: Any, task: Task) -> tuple[str, str]:
    """What becomes of the answer `text` by a fault of content: (content, finish_reason)."""
    if kind == "prose":
        return f"Sure, here is what I found:\n\n```json\n{text}\n```\n\nTell me if you need anything else.", "stop"
    if kind == "truncated":
        return text[: len(text) // 2], "length"
    if kind == "schema":
        return task.wrong(gold), "stop"
    if kind == "empty":
        return "", "stop"
    return text, "stop"
