"""The process reward of MemListener: what an answer does to the tree, in parts that can be computed by hand.

Inside Out (arXiv 2601.05171) asks an LLM for one score, which sees neither dialogue nor tree, and takes 0 where the judge
fails. Here gold and answer are compared as operations, carried out on the same tree, and held against the dialogue:

    gate        share of the answer's lines that can be read and that the executor takes; none: -1. Of two operations on
                one leaf it takes the last
    operations  F1 of the best one-to-one matching (Hungarian) by the quality of a pair:
                path similarity * (0.3 kind + 0.7 value); kind 1, or 0.7 for ADD against UPDATE, which the executor treats
                alike; value its token F1; pairs below 0.2 count as none
    state       soft F1 of the leaves that changed, after execution (`score.count_state`)
    keep        of the recorded words that gold keeps in its UPDATEs, the share that the answer keeps; 1 without any
    grounding   share of the written values' content words that the chunk, or what the leaf held, says; 1 without any
    redundancy  operations beyond gold's number, as a share of it (1 at most); the paper's docstring has this formula
    overlong    the largest of three ramps from 0 to 1: words over a leaf's budget as a share of it; words over twice those
                of the matched gold value as a share of that; DAPO's soft ramp on the completion's tokens

    reward = -1 + 2 * gate * (a * operations + b * state + (c * keep + d * grounding) * operations)
             - e * redundancy - f * overlong, within [-1, 1]; a + b + c + d = 1

`keep` and `grounding` say how something was written, so they count as far as something right was: otherwise an answer that
touches nothing would have them for free. NO_OP has rules of its own: right 1; n operations where nothing changes
-min(1, n / 3); NO_OP where something does -0.8, below any honest attempt, or a model would learn to say nothing. What cannot
be scored (gold that the executor refuses) is None, to be masked, and never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from extractors.contract import ExtractionError
from extractors.grounding import Source, content_words
from extractors.persona_tree import Chunk, Operation, PersonaTree, PersonaTreeExtractor, execute
from extractors.persona_tree.operations import read
from extractors.persona_tree.score import count, count_state, path_similarity, state_metrics, value_similarity
from extractors.persona_tree.tree import count_words

Similar = Callable[[str | None, str | None], float]
LEAST_QUALITY = 0.2
ADD_FOR_UPDATE = 0.7
UNDUE_OPERATIONS = 3  # where nothing changes, so many are as bad as it gets
SILENCE = -0.8


@dataclass(frozen=True)
class Weights:
    """a to f of the module, in a recipe's order. The first four sum to 1. Raises ValueError where they do not."""

    operations: float = 0.35
    state: float = 0.30
    keep: float = 0.20
    grounding: float = 0.15
    redundancy: float = 0.2
    overlong: float = 0.2

    def __post_init__(self) -> None:
        total = self.operations + self.state + self.keep + self.grounding
        if abs(total - 1) > 1e-6 or min(asdict(self).values()) < 0:
            raise ValueError(
                f"the weights are {asdict(self)}: none may be negative, and operations, state, keep and grounding sum to "
                f"{total:g} instead of 1."
            )


@dataclass(frozen=True)
class Length:
    """DAPO's soft ramp: nothing up to `limit - cache` tokens of completion, from there linear to 1 at `limit`."""

    limit: int = 512
    cache: int = 128

    def over(self, tokens: int) -> float:
        """0 to 1."""
        return min(1.0, max(0.0, (tokens - (self.limit - self.cache)) / self.cache))


@dataclass(frozen=True)
class Reward:
    """value: in [-1, 1], None where it cannot be told. components: those of the module by name, for the log, as far as they
    were needed. credit: per operation of the answer, in its order, the quality of its pair, 0 without one."""

    value: float | None
    components: dict[str, float]
    credit: tuple[float, ...] = ()


def process_reward(
    chunk: Chunk,
    gold: Sequence[Operation],
    completion: str,
    extractor: PersonaTreeExtractor,
    *,
    weights: Weights | None = None,
    tokens: int | None = None,
    length: Length | None = None,
    similar: Similar = value_similarity,
) -> Reward:
    """The reward of one completion. tokens: of the completion, None leaves its ramp out; similar: of two values, 0 to 1 (an
    embedder, where one is at hand). Raises InputError for a tree that the schema does not permit."""
    weights, length = weights or Weights(), length or Length()
    before = PersonaTree(extractor.schema, chunk.tree)
    due = execute(before, gold)
    if due.rejected:
        return Reward(None, {"gold_refused": float(len(due.rejected))})
    truth = [operation for operation in gold if operation.kind != "NO_OP"]
    answer = extractor.parse(completion)
    said = answer.partial if isinstance(answer, ExtractionError) else answer
    guess = [operation for operation in said if operation.kind != "NO_OP"]
    overlong = 0.0 if tokens is None else length.over(tokens)
    if isinstance(answer, ExtractionError) and not guess:
        return Reward(-1.0, {"gate": 0.0, "overlong": overlong})
    lost = len(read(completion).errors) if isinstance(answer, ExtractionError) else 0
    done = execute(before, guess)
    gate = (len(guess) - len(done.rejected)) / (len(guess) + lost) if guess else 1.0
    if not truth or not guess:
        undue = len(guess) + lost
        value = SILENCE if truth else 1.0 if not undue else -min(1.0, undue / UNDUE_OPERATIONS)
        value = max(-1.0, value - weights.overlong * overlong)
        return Reward(value, {"gate": gate, "overlong": overlong}, (0.0,) * len(guess))

    pairs = _matched(truth, guess, similar)
    qualities = {answered: found for _, answered, found in pairs}
    credit = tuple(qualities.get(place, 0.0) for place in range(len(guess)))
    operations = 2 * sum(credit) / (len(truth) + len(guess))
    state = state_metrics(count_state(before.values, due.tree.values, done.tree.values))["soft_state_f1"]
    counts = count(chunk, gold, tuple(guess))
    keep = counts.kept_words / counts.old_words if counts.old_words else 1.0
    grounding = _grounding(chunk, guess)
    redundancy = min(1.0, max(0, len(guess) - len(truth)) / len(truth))
    wordy = [_wordy(truth[one].value, guess[other].value) for one, other, _ in pairs]
    overlong = max(overlong, _over_budget(guess, extractor), *wordy)
    written = weights.keep * keep + weights.grounding * grounding
    value = -1 + 2 * gate * (weights.operations * operations + weights.state * state + written * operations)
    value -= weights.redundancy * redundancy + weights.overlong * overlong
    components = {
        "gate": gate,
        "operations": operations,
        "state": state,
        "keep": keep,
        "grounding": grounding,
        "redundancy": redundancy,
        "overlong": overlong,
    }
    return Reward(max(-1.0, min(1.0, value)), components, credit)


def quality(gold: Operation, answer: Operation, similar: Similar = value_similarity) -> float:
    """How good an operation is for a gold one, 0 to 1."""
    kinds = {gold.kind, answer.kind}
    kind = 1.0 if len(kinds) == 1 else ADD_FOR_UPDATE * (kinds == {"ADD", "UPDATE"})
    found = path_similarity(gold.path, answer.path) * (0.3 * kind + 0.7 * similar(gold.value, answer.value))
    return found if found >= LEAST_QUALITY else 0.0


def _matched(gold: Sequence[Operation], answer: Sequence[Operation], similar: Similar) -> list[tuple[int, int, float]]:
    """Places in gold and in the answer of the pairs, and the quality of each."""
    table = np.array([[quality(one, other, similar) for other in answer] for one in gold])
    places = zip(*linear_sum_assignment(-table), strict=True)
    return [(int(one), int(other), float(table[one, other])) for one, other in places if table[one, other] > 0]


def _wordy(gold: str | None, answer: str | None) -> float:
    """How far an answer's value goes beyond twice the words of gold's."""
    most = 2 * count_words(gold or "")
    return min(1.0, max(0, count_words(answer or "") - most) / most) if most else 0.0


def _grounding(chunk: Chunk, answer: Sequence[Operation]) -> float:
    speakers, texts = [turn.speaker for turn in chunk.turns], [turn.text for turn in chunk.turns]
    found = total = 0
    for operation in answer:
        keys = set(content_words(operation.value or ""))
        old = chunk.tree.get(operation.path)
        source = Source(speakers, texts if old is None else [*texts, old])
        missing = sum(source.lacks(key, 1.0) != "" for key in keys)
        found, total = found + len(keys) - missing, total + len(keys)
    return found / total if total else 1.0


def _over_budget(answer: Sequence[Operation], extractor: PersonaTreeExtractor) -> float:
    """The worst share by which a value is longer than its leaf's budget, 1 at most."""
    worst = 0.0
    for operation in answer:
        leaf = extractor.schema.leaf(operation.path)
        if operation.value is not None and leaf is not None:
            worst = max(worst, (count_words(operation.value) - leaf.budget) / leaf.budget)
    return min(1.0, worst)
