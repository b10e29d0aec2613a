"""Quality gates: which of the rows that a teacher produced are kept, and why the others are not.

    samples agree? -> lengths in range? -> grounded in the dialogue? -> old things kept? -> no repeat? -> no label too frequent
    -> not too many empty

Each gate takes the rows of one split and returns those it keeps, in their order, and a `Reject` for every other.
`run_gates` runs all of them. Whether two splits overlap is asked afterwards, by `data_synthesis.overlap`; whether an
answer keeps to the contract, before, by the extractor's parser.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data_synthesis.grounding import ungrounded_value
from data_synthesis.overlap import THRESHOLD, repeats
from data_synthesis.splits import Rows, input_text, states_nothing
from extractors.contract import InputError
from extractors.grounding import content_words
from extractors.triplets.score import normalise

Samples = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Reject:
    """A row that a gate refused. reason: to count by; detail: what is wrong with this one."""

    row: dict[str, Any]
    reason: str
    detail: str

    def to_json(self) -> dict[str, Any]:
        """A line of `rejected.jsonl`."""
        row = self.row
        return {
            "id": row["id"],
            "reason": self.reason,
            "detail": self.detail,
            "input": row["input"],
            "output": row["gold"],
        }


Gated = tuple[Rows, list[Reject]]


@dataclass(frozen=True)
class Limits:
    """What a row must pass; None turns a gate off.

    min_agreement: of a row's samples, see `consistent`. input_words, output_words: smallest and largest number of words.
    min_grounded: share of a value's words that its source must hold, see `data_synthesis.grounding`. min_kept: see
    `keeps_old`. near_duplicate: Jaccard similarity from which a row repeats an earlier one. max_empty_share: of all rows;
    max_label_share: of the rows with gold.
    """

    min_agreement: float | None = 0.5
    input_words: tuple[int, int] = (1, 400)
    output_words: tuple[int, int] = (0, 400)
    min_grounded: float | None = 0.5
    min_kept: float | None = None
    near_duplicate: float | None = THRESHOLD
    max_empty_share: float | None = 0.2
    max_label_share: float | None = None


def run_gates(rows: Rows, extractor: str, limits: Limits, samples: Samples | None = None) -> Gated:
    """Every gate that `limits` leaves on, in the order of the module. extractor: its name, for the grounding.

    samples: by row id, the JSON outputs of several samples; such a row's gold becomes what most of them say. No row is
    made, and every row given is either kept or rejected once. Raises InputError for limits that cannot hold.
    """
    rejects: list[Reject] = []

    def keep(gated: Gated) -> Rows:
        rejects.extend(gated[1])
        return gated[0]

    if samples is not None and limits.min_agreement is not None:
        rows = keep(consistent(rows, samples, limits.min_agreement))
    rows = keep(right_length(rows, limits.input_words, limits.output_words))
    if limits.min_grounded is not None:
        rows = keep(grounded(rows, extractor, limits.min_grounded))
    if limits.min_kept is not None:
        rows = keep(keeps_old(rows, limits.min_kept))
    if limits.near_duplicate is not None:
        rows = keep(without_repeats(rows, limits.near_duplicate))
    if limits.max_label_share is not None:
        rows = keep(cap_labels(rows, limits.max_label_share))
    if limits.max_empty_share is not None:
        rows = keep(cap_empty(rows, limits.max_empty_share))
    return list(rows), rejects


def count_rejects(rejects: Sequence[Reject]) -> dict[str, Any]:
    """The rejects as a card states them: {reason: {"count", "first_id"}}."""
    counts: dict[str, Any] = {}
    for reject in rejects:
        entry = counts.setdefault(reject.reason, {"count": 0, "first_id": reject.row["id"]})
        entry["count"] += 1
    return counts


# -- self-consistency ------------------------------------------------------------------------------------------------


def consistent(rows: Rows, samples: Samples, min_agreement: float) -> Gated:
    """What most samples say becomes the gold; a row on which they do not agree is rejected ("inconsistent").

    A row without samples passes as it is. See `agree` for what they agree on and how much.
    """
    kept, rejects = [], []
    for row in rows:
        if row["id"] not in samples:
            kept.append(row)
            continue
        gold, agreement = agree(samples[row["id"]])
        if agreement >= min_agreement:
            kept.append({**row, "gold": gold})
        else:
            detail = f"agreement {agreement:.2f} of {len(samples[row['id']])} samples, {min_agreement:g} is due"
            rejects.append(Reject(row, "inconsistent", detail))
    return kept, rejects


def agree(outputs: Sequence[Any]) -> tuple[Any, float]:
    """The majority of several outputs of one request, and the agreement with it, from 0 to 1.

    Of lists, the items that at least half of the samples hold, in the order in which they first come (item by item:
    Wang et al., arXiv 2203.11171, vote on whole answers); the agreement is the mean Jaccard similarity of a sample's
    items with them, 1 where both are empty. So samples that name facts, each another one, have no majority for [] but
    an agreement of 0. Of other outputs the most frequent one (the earliest of equals) and its share. Items are compared
    normalised: case, punctuation and articles do not count; the most frequent spelling is kept.
    """
    if not outputs:
        raise InputError("a row has no sample: leave it out of `samples`.")
    if not all(isinstance(output, list) for output in outputs):
        votes = Counter(_plain(output) for output in outputs)
        key, count = votes.most_common(1)[0]
        return _usual([output for output in outputs if _plain(output) == key]), count / len(outputs)
    keys = [list(dict.fromkeys(map(_plain, output))) for output in outputs]
    votes = Counter(key for sample in keys for key in sample)
    chosen = {key for key, count in votes.items() if 2 * count >= len(outputs)}
    spellings: dict[str, list[Any]] = {key: [] for sample in keys for key in sample if key in chosen}
    for item in (item for output in outputs for item in output):
        if (key := _plain(item)) in chosen:
            spellings[key].append(item)
    agreement = sum(
        len(chosen & set(sample)) / len(chosen | set(sample)) if chosen or sample else 1.0 for sample in keys
    )
    return [_usual(items) for items in spellings.values()], agreement / len(outputs)


def _usual(items: Sequence[Any]) -> Any:
    written = Counter(json.dumps(item, sort_keys=True) for item in items)
    usual = written.most_common(1)[0][0]
    return next(item for item in items if json.dumps(item, sort_keys=True) == usual)


def _plain(item: Any) -> str:
    """An item's JSON form with normalised strings; evidence, which names turns, is no part of what is said."""

    def plain(value: Any) -> Any:
        if isinstance(value, str):
            return normalise(value)
        if isinstance(value, list):
            return [plain(part) for part in value]
        if isinstance(value, dict):
            return {key: plain(part) for key, part in value.items() if key != "evidence"}
        return value

    return json.dumps(plain(item), sort_keys=True, ensure_ascii=False)


# -- single rows -----------------------------------------------------------------------------------------------------


def right_length(rows: Rows, input_words: tuple[int, int], output_words: tuple[int, int]) -> Gated:
    """Rejects rows whose input ("input too short", "input too long") or output has too few or too many words.

    Words of the input are those of all its texts, speakers left out; of the output, those of all its values.
    """
    kept, rejects = [], []
    for row in rows:
        lengths = {
            "input": (len(input_text(row).split()), input_words),
            "output": (sum(len(text.split()) for text in _strings(row["gold"])), output_words),
        }
        for side, (words, (least, most)) in lengths.items():
            if not least <= words <= most:
                how = "short" if words < least else "long"
                rejects.append(Reject(row, f"{side} too {how}", f"{words} words, {least} to {most} are due"))
                break
        else:
            kept.append(row)
    return kept, rejects


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            if key != "evidence":
                yield from _strings(part)


def grounded(rows: Rows, extractor: str, min_share: float) -> Gated:
    """Rejects rows with a value that the dialogue does not hold ("not grounded"); see `data_synthesis.grounding`."""
    kept, rejects = [], []
    for row in rows:
        if found := ungrounded_value(row, extractor, min_share):
            rejects.append(Reject(row, "not grounded", found))
        else:
            kept.append(row)
    return kept, rejects


def keeps_old(rows: Rows, min_share: float) -> Gated:
    """Rejects rows with an UPDATE that throws away more of what its leaf held than it may ("old things lost").

    A leaf holds things one after the other, with semicolons between; a thing is kept where the new value has one of its
    content words. Of a leaf with one thing nothing is asked: a correction replaces it.
    """
    kept, rejects = [], []
    for row in rows:
        lost = ""
        for item in row["gold"]:
            old = [thing for thing in row["input"]["tree"].get(item.get("path"), "").split(";") if thing.strip()]
            if item["op"] != "UPDATE" or len(old) < 2:
                continue
            new = set(content_words(item["value"]))
            stays = [thing for thing in old if new & set(content_words(thing))]
            if len(stays) < min_share * len(old) - 1e-9:
                lost = f"{item['path']} keeps {len(stays)} of {len(old)} things"
        if lost:
            rejects.append(Reject(row, "old things lost", lost))
        else:
            kept.append(row)
    return kept, rejects


# -- rows among others -----------------------------------------------------------------------------------------------


def without_repeats(rows: Rows, threshold: float) -> Gated:
    """Rejects rows that are identical to, or near-duplicates of, an earlier row of the split ("near-duplicate").

    Small talk may repeat: see `data_synthesis.overlap` for what counts.
    """
    found = repeats(rows, threshold)
    kept = [row for row in rows if row["id"] not in found]
    rejects = [
        Reject(row, "near-duplicate", f"{found[row['id']][1]:.2f} like {found[row['id']][0]!r}")
        for row in rows
        if row["id"] in found
    ]
    return kept, rejects


def cap_labels(rows: Rows, max_share: float) -> Gated:
    """Rejects rows until no label stands in more than a share of the rows with gold that remain ("label too frequent").

    A row with several labels counts for each. It is always the most frequent label that loses a row, the one with the
    largest hash of its id, so that more rows move the choice no further than the shares demand. Raises InputError where
    no choice of rows keeps below the share, such as 0.3 with two labels.
    """
    _check_share("max_label_share", max_share)
    labelled = [row for row in rows if not states_nothing(row)]
    counts = Counter(label for row in labelled for label in labels(row))
    before = dict(counts)
    queues: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(labelled, key=_hash):
        for label in labels(row):
            queues[label].append(row)
    over: dict[str, str] = {}  # id of a row that goes: the label because of which
    while counts:
        top = min(counts, key=lambda label: (-counts[label], label))
        if counts[top] <= max_share * (len(labelled) - len(over)) + 1e-9:
            break
        row = queues[top].pop()
        if row["id"] not in over:
            over[row["id"]] = top
            counts.subtract(labels(row))
    if over and len(over) == len(labelled):
        raise InputError(
            f"`max_label_share` is {max_share:g}, which no choice of rows keeps with the labels {_shown(before)}: write "
            f"at least {1 / len(before):.2f}, or null."
        )
    kept = [row for row in rows if row["id"] not in over]
    gone = [row for row in rows if row["id"] in over]
    detail = f"in more than {max_share:g} of the rows with gold"
    return kept, [Reject(row, "label too frequent", f"{over[row['id']]!r} stands {detail}") for row in gone]


def cap_empty(rows: Rows, max_share: float) -> Gated:
    """Rejects rows without any gold beyond a share of the rows that remain ("too many empty").

    Those with the smallest hashes of their ids stay, so that more rows add to the choice and never draw it anew.
    """
    _check_share("max_empty_share", max_share)
    empty = [row for row in rows if states_nothing(row)]
    if max_share == 1 or not empty:
        return list(rows), []
    room = int(max_share * (len(rows) - len(empty)) / (1 - max_share) + 1e-9)
    over = {row["id"] for row in sorted(empty, key=_hash)[room:]}
    kept = [row for row in rows if row["id"] not in over]
    detail = f"{len(empty)} of {len(rows)} rows have no gold, there is room for {room}"
    return kept, [Reject(row, "too many empty", detail) for row in rows if row["id"] in over]


def label_tail(rows: Rows, least: int) -> dict[str, int]:
    """Labels that fewer than `least` rows hold, with their number of rows, the rarest first."""
    counts = Counter(label for row in rows for label in labels(row))
    return dict(sorted(((name, n) for name, n in counts.items() if n < least), key=lambda pair: (pair[1], pair[0])))


def labels(row: Mapping[str, Any]) -> list[str]:
    """The distinct labels of a row as text: the relations, or the kinds of operations, of list gold, or the label itself (a
    string or a number)."""
    gold = row["gold"]
    items = gold if isinstance(gold, list) else [gold]
    found = [item.get("relation", item.get("op")) if isinstance(item, dict) else item for item in items]
    return list(dict.fromkeys(str(label) for label in found if isinstance(label, str | int)))


def _hash(row: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(row["id"].encode()).digest()


def _check_share(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise InputError(f"`{name}` is {share!r}: write a share from 0 to 1, or null for no cap.")


def _shown(counts: Mapping[str, int]) -> str:
    shown = ", ".join(f"{name} ({n})" for name, n in sorted(counts.items(), key=lambda pair: -pair[1])[:5])
    return shown + (f" and {len(counts) - 5} more" if len(counts) > 5 else "")
