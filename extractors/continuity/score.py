"""Continuity metrics, pure. Labels are those of the contract: 1 where the second utterance goes on, 0 at a boundary.

`Counts`, `count` and `metrics` are what the evaluation harness adds up row by row; the others take arrays (AUROC,
calibration error) or whole conversations (Pk, WindowDiff, builds per 100 messages), since they cannot be summed.
The class of interest of precision, recall and F1 is the boundary: most pairs go on, so that accuracy says little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from extractors.continuity.extractor import BOUNDARY, CONTINUES, UtterancePair
from extractors.contract import ExtractionError

Labels = Sequence[int]  # of the adjacent pairs of one conversation, in its order


@dataclass(frozen=True)
class Counts:
    """What one row adds to the metrics; rows are added up field by field. boundaries: in the gold; predicted: boundaries
    in the answers; hits: both."""

    rows: int = 0
    rows_right: int = 0
    boundaries: int = 0
    predicted: int = 0
    hits: int = 0
    parse_failures: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def count(pair: UtterancePair, gold: int, answer: int | ExtractionError) -> Counts:
    """Counts of one row. answer: what `ContinuityExtractor.parse` returned; a failure is never a right answer and
    predicts no boundary."""
    failed = isinstance(answer, ExtractionError)
    predicted = not failed and answer == BOUNDARY
    return Counts(
        rows=1,
        rows_right=int(not failed and answer == gold),
        boundaries=int(gold == BOUNDARY),
        predicted=int(predicted),
        hits=int(predicted and gold == BOUNDARY),
        parse_failures=int(failed),
    )


def metrics(total: Counts) -> dict[str, float]:
    """Metrics of summed counts; a ratio without a denominator is 0.0.

    precision, recall, f1: of boundaries; accuracy: rows whose label is right; boundary_rate and gold_boundary_rate: of
    all rows the share that is answered, or labelled, as a boundary.
    """
    return {
        "accuracy": _ratio(total.rows_right, total.rows),
        "precision": _ratio(total.hits, total.predicted),
        "recall": _ratio(total.hits, total.boundaries),
        "f1": _ratio(2 * total.hits, total.predicted + total.boundaries),
        "boundary_rate": _ratio(total.predicted, total.rows),
        "gold_boundary_rate": _ratio(total.boundaries, total.rows),
        "parse_failure_rate": _ratio(total.parse_failures, total.rows),
    }


def label_metrics(gold: Labels, predicted: Labels) -> dict[str, float]:
    """`metrics` of two sequences of labels of the same length."""
    _check_labels(gold, predicted)
    truth, guess = np.asarray(gold) == BOUNDARY, np.asarray(predicted) == BOUNDARY
    return metrics(
        Counts(
            rows=len(truth),
            rows_right=int((truth == guess).sum()),
            boundaries=int(truth.sum()),
            predicted=int(guess.sum()),
            hits=int((truth & guess).sum()),
        )
    )


def auroc(labels: Labels, probabilities: ArrayLike) -> float:
    """Area under the ROC curve: the chance that a pair with label 1 has a higher probability of 1 than a pair with
    label 0, ties counted half (Mann-Whitney). It is the same for either class. Raises ValueError for one class alone."""
    truth, scores = _binary(labels, probabilities)
    ones = int(truth.sum())
    zeros = len(truth) - ones
    if not ones or not zeros:
        raise ValueError(f"AUROC needs both labels; all {len(truth)} are {CONTINUES if ones else BOUNDARY}.")
    ranks = rankdata(scores)
    return float((ranks[truth].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def expected_calibration_error(labels: Labels, probabilities: ArrayLike, bins: int = 10) -> float:
    """Mean distance, weighted by the bins' rows, between a bin's mean probability of label 1 and its share of label 1.

    Bins are of equal width on [0, 1] (Naeini et al. 2015, for the positive class: a binary classifier's threshold need
    not be 0.5, so the confidence in the predicted label would depend on it).
    """
    truth, scores = _binary(labels, probabilities)
    if scores.min() < 0 or scores.max() > 1:
        raise ValueError(f"probabilities are due, not values from {scores.min():g} to {scores.max():g}.")
    places = np.minimum((scores * bins).astype(int), bins - 1)
    rows = np.bincount(places, minlength=bins)
    gaps = np.abs(np.bincount(places, scores, bins) - np.bincount(places, truth, bins))  # each times its bin's rows
    return float(gaps.sum() / rows.sum())


def pk(gold: Sequence[Labels], predicted: Sequence[Labels], k: int | None = None) -> float:
    """Pk (Beeferman et al. 1999) over conversations: of all windows, the share whose ends are in one episode by one
    segmentation and in two by the other. Lower is better.

    gold, predicted: per conversation the labels of its N - 1 adjacent pairs. k: utterances between the ends of a window;
    None takes half the mean gold episode of all conversations together, rounded, as Beeferman et al. do. Windows stay
    within a conversation; one that is no longer than k utterances gives none. Raises ValueError where no window fits.
    """
    return _windows(gold, predicted, k, lambda truth, guess: (truth > 0) != (guess > 0))


def window_diff(gold: Sequence[Labels], predicted: Sequence[Labels], k: int | None = None) -> float:
    """WindowDiff (Pevzner and Hearst 2002): as `pk`, but a window counts where the numbers of boundaries in it differ."""
    return _windows(gold, predicted, k, lambda truth, guess: truth != guess)


def window_size(gold: Sequence[Labels]) -> int:
    """Half the mean length in utterances of the gold episodes, rounded, at least 1."""
    episodes = sum(len(episode) for episode in map(episode_lengths, gold))
    return max(1, round(sum(len(labels) + 1 for labels in gold) / episodes / 2))


def episode_lengths(labels: Labels) -> list[int]:
    """Utterances per episode of one conversation of len(labels) + 1 utterances."""
    ends = [place for place, label in enumerate(labels) if label == BOUNDARY]
    return [int(length) for length in np.diff([-1, *ends, len(labels)])]


def builds_per_100_messages(predicted: Sequence[Labels], messages: int) -> float:
    """Memory constructions per 100 messages: one per episode, of which a conversation has one more than boundaries
    (the open episode is finalised at the end). messages: of user and assistant in all conversations, system messages
    excluded (QUMem's cost accounting; 27.1 on PersonaMem)."""
    if messages < 1:
        raise ValueError(f"`messages` is {messages}: write how many the conversations hold.")
    return 100 * sum(len(episode_lengths(labels)) for labels in predicted) / messages


def _windows(
    gold: Sequence[Labels],
    predicted: Sequence[Labels],
    k: int | None,
    wrong: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]],
) -> float:
    if len(gold) != len(predicted):
        raise ValueError(f"{len(predicted)} conversations were predicted for {len(gold)} of the gold.")
    for truth, guess in zip(gold, predicted, strict=True):
        _check_labels(truth, guess)
    if not gold or (k is not None and k < 1):
        raise ValueError(f"{len(gold)} conversations and k = {k}: at least one of them and a window of 1 are due.")
    width = window_size(gold) if k is None else k
    faults = windows = 0
    for truth, guess in zip(gold, predicted, strict=True):
        if len(truth) >= width:
            disagree = wrong(_boundaries_within(truth, width), _boundaries_within(guess, width))
            faults, windows = faults + int(disagree.sum()), windows + len(disagree)
    if not windows:
        raise ValueError(f"no conversation has more than k = {width} utterances, so that no window fits.")
    return faults / windows


def _boundaries_within(labels: Labels, width: int) -> NDArray[np.int64]:
    """Boundaries in every run of `width` adjacent pairs: [len(labels) - width + 1]."""
    total = np.concatenate([[0], np.cumsum(np.asarray(labels) == BOUNDARY)])
    return np.asarray(total[width:] - total[:-width], dtype=np.int64)


def _check_labels(gold: Labels, predicted: Labels) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"{len(predicted)} labels were predicted for {len(gold)} pairs.")
    if odd := {*gold, *predicted} - {BOUNDARY, CONTINUES}:
        raise ValueError(f"labels are 0 and 1, not {sorted(odd)[0]!r}.")


def _binary(labels: Labels, probabilities: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    _check_labels(labels, labels)
    scores = np.asarray(probabilities, dtype=np.float64)
    if scores.shape != (len(labels),) or not len(labels):
        raise ValueError(f"{len(labels)} labels and probabilities of shape {scores.shape}: one each is due.")
    if not np.isfinite(scores).all():
        raise ValueError("a probability is not a finite number.")
    return np.asarray(labels) == CONTINUES, scores


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
