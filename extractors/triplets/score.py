"""Triplet metrics, pure: what eval reports, early stopping watches and a reward can use.

A row is scored by counting, a set of rows by summing the counts (micro average). An answer that could not be parsed
counts as an empty prediction: every gold triplet is missed, and a row without gold is not right either, because a
failure is never a right answer. (Precision, recall and F1 cannot see such a row, since it adds no triplet to either
side; the shares of rows and the failure rate do.) Duplicates are counted: a triplet printed twice is one hit and one
false positive.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields

from extractors.contract import ExtractionError
from extractors.triplets.extractor import Dialogue, Triplet

_ARTICLES = {"a", "an", "the", "my", "his", "her", "their", "our", "your", "some"}


def normalise(text: str) -> str:
    """Case-folded words without punctuation, articles and possessive determiners; words keep their order.

    Text without any word (an emoji) stays as it is, so that two of them are not the same.
    """
    found = words(text)
    kept = [word for word in found if word not in _ARTICLES]
    return " ".join(kept or found) or text.strip()


def words(text: str) -> list[str]:
    """Case-folded words of a text in its order; composed and decomposed accents are the same."""
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())


@dataclass(frozen=True)
class Counts:
    """What one row adds to the metrics; rows are added up field by field.

    relations: hits of the multiset of relations; pairs: gold triplets whose subject and relation were predicted,
    objects: those of them whose normalised object was right too; rows_right and rows_exact: the multiset of triplets is
    the gold one, normalised or to the letter; object_words and unsupported_words: of all predicted objects, without
    articles.
    """

    rows: int = 0
    gold: int = 0
    predicted: int = 0
    exact: int = 0
    normalised: int = 0
    relations: int = 0
    pairs: int = 0
    objects: int = 0
    rows_right: int = 0
    rows_exact: int = 0
    rows_same_relations: int = 0
    parse_failures: int = 0
    object_words: int = 0
    unsupported_words: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def count(dialogue: Dialogue, gold: Sequence[Triplet], answer: Sequence[Triplet] | ExtractionError) -> Counts:
    """Counts of one row. answer: what `TripletExtractor.parse` returned."""
    failed = isinstance(answer, ExtractionError)
    predicted: Sequence[Triplet] = () if isinstance(answer, ExtractionError) else answer

    def plain(triplet: Triplet) -> tuple[str, str, str]:
        return normalise(triplet.subject), triplet.relation, normalise(triplet.object)

    gold_plain, predicted_plain = Counter(map(plain, gold)), Counter(map(plain, predicted))
    pairs = Counter(t[:2] for t in gold_plain.elements()) & Counter(t[:2] for t in predicted_plain.elements())
    gold_relations, predicted_relations = Counter(t.relation for t in gold), Counter(t.relation for t in predicted)
    said = {word for turn in (*dialogue.context, *dialogue.turns) for word in words(turn.speaker + " " + turn.text)}
    object_words = [word for triplet in predicted for word in words(triplet.object) if word not in _ARTICLES]
    hits = (gold_plain & predicted_plain).total()
    return Counts(
        rows=1,
        gold=len(gold),
        predicted=len(predicted),
        exact=(Counter(gold) & Counter(predicted)).total(),
        normalised=hits,
        relations=(gold_relations & predicted_relations).total(),
        pairs=pairs.total(),
        objects=hits,
        rows_right=int(not failed and gold_plain == predicted_plain),
        rows_exact=int(not failed and Counter(gold) == Counter(predicted)),
        rows_same_relations=int(not failed and gold_relations == predicted_relations),
        parse_failures=int(failed),
        object_words=len(object_words),
        unsupported_words=sum(word not in said for word in object_words),
    )


def metrics(total: Counts) -> dict[str, float]:
    """Metrics of summed counts; a ratio without a denominator is 0.0, a rate of faults without cases too.

    precision, recall, f1: normalised triplets, micro; exact_*: the same on unnormalised text; relation_accuracy: rows
    whose multiset of relations is right; relation_f1: micro over relations; object_match: of the gold triplets whose
    subject and relation were found, the share whose object is right; right_rows: rows that are right as a whole,
    exact_rows: those that are right to the letter; hallucinated_object_rate: words of predicted objects that nobody
    said.
    """
    return {
        "precision": _ratio(total.normalised, total.predicted),
        "recall": _ratio(total.normalised, total.gold),
        "f1": _ratio(2 * total.normalised, total.predicted + total.gold),
        "exact_precision": _ratio(total.exact, total.predicted),
        "exact_recall": _ratio(total.exact, total.gold),
        "exact_f1": _ratio(2 * total.exact, total.predicted + total.gold),
        "relation_accuracy": _ratio(total.rows_same_relations, total.rows),
        "relation_f1": _ratio(2 * total.relations, total.predicted + total.gold),
        "object_match": _ratio(total.objects, total.pairs),
        "right_rows": _ratio(total.rows_right, total.rows),
        "exact_rows": _ratio(total.rows_exact, total.rows),
        "parse_failure_rate": _ratio(total.parse_failures, total.rows),
        "hallucinated_object_rate": _ratio(total.unsupported_words, total.object_words),
    }


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
