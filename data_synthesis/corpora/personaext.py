"""PersonaExt (PAED, Zhu et al., ACL 2023): utterances of ConvAI2, each with one persona triplet given by token indices.

The published files are the dev and test parts of 15 zero-shot splits, which overlap. This loader takes their union and
makes one split of its own by normalised utterance, so that no utterance is trained on and tested on.

What is changed on the way from tokens to a row:
- Text: the source is lower-cased and tokenised. Punctuation goes back to the word before it, and the contractions that
  lost their apostrophe get it back (`i m` to `i'm`, `don t` to `don't`). Case stays lower: it cannot be known.
- Object: the tokens that the annotators named, in their order. Where they are adjacent, the object stands in the
  utterance letter by letter; about 6 % were composed from words that stand apart ("two children" from "two young children",
  "red hair" from "my hair is red"). They stay as they were composed, because the words in between are not part of the fact.
- Subject: a first-person word becomes the speaker's label, as G-Long's format has it; "my dad", "dog" keep their text.
- Relation: `normalise_relation` (`have_chidren` becomes `have_children`).

    python -m data_synthesis.corpora.personaext --out outputs/data/personaext
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data_synthesis.card import write_card
from data_synthesis.corpora import SPLITS, corpus_folder, split_groups
from data_synthesis.dialogues import Dialogue, Loaded, Session, Turn
from data_synthesis.roles import assert_role
from data_synthesis.splits import assert_disjoint_groups, normalise
from extractors.contract import InputError
from extractors.rows import write_rows
from extractors.triplets import PERSONAEXT, Triplet, normalise_relation

VERSION = "1"
SPEAKER = "Speaker A"
FIRST_PERSON = frozenset(["i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves"])
# What the complete published corpus holds; other counts are reported, since a user may hold a part or a later version.
PUBLISHED = {"files": 30, "lines": 51_448, "pairs": 22_566, "source_relations": 76}

_CLOSING = frozenset([".", ",", "!", "?", ";", ":", ")", "]", "%"])
_NEGATED = frozenset(
    [
        "don",
        "doesn",
        "didn",
        "isn",
        "aren",
        "wasn",
        "weren",
        "haven",
        "hasn",
        "hadn",
        "can",
        "won",
        "couldn",
        "shouldn",
        "wouldn",
        "mustn",
        "needn",
        "ain",
    ]
)
_PRONOUNS = frozenset(["i", "you", "he", "she", "it", "we", "they", "that"])


@dataclass
class _Read:
    """What was read: per utterance (its tokens) the distinct triplets, and the counts for the card."""

    files: list[str] = field(default_factory=list)
    utterances: dict[tuple[str, ...], list[tuple[Triplet, bool]]] = field(default_factory=dict)
    source_relations: set[str] = field(default_factory=set)
    other_subjects: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    first_bad: dict[str, str] = field(default_factory=dict)
    lines: int = 0
    repeats: int = 0


def prepare(out: Path, source: Path | None = None, seed: int = 0) -> dict[str, Any]:
    """Read PersonaExt and write a dataset folder: train.jsonl, dev.jsonl, test.jsonl, card.json. Returns the card.

    source: the corpus folder, or any folder above its `dev.jsonl` and `test.jsonl` files; by default `corpus_folder`.
    Rows that cannot be read are left out, counted by reason and named in the card. Raises InputError when the folder
    has no such file, or when no row of it can be used.
    """
    for split in SPLITS:
        assert_role("personaext", "triplets", split)
    read, rows = _read_all(source if source is not None else corpus_folder("personaext"))
    home = split_groups((row["group"] for row in rows), seed)
    splits = {split: [row for row in rows if home[row["group"]] == split] for split in SPLITS}
    assert_disjoint_groups(splits)
    for split, members in splits.items():
        write_rows(out / f"{split}.jsonl", members)
    return write_card(
        out,
        name="personaext",
        version=VERSION,
        source="PersonaExt, github.com/Cyn7hia/PAED: dev and test files of its zero-shot splits",
        licence="none stated for the annotation; dialogue text ConvAI2 / PersonaChat. Not for redistribution",
        seed=seed,
        splits=splits,
        details=_details(read, rows, len(read.files)),
    )


def load(source: Path | None = None) -> Loaded:
    """Each utterance as a Dialogue of one turn, whose label `triplets` is its gold; `labels["split"]` is the split that
    `prepare` gives it with seed 0. Raises InputError as `prepare` does."""
    read, rows = _read_all(source if source is not None else corpus_folder("personaext"))
    home = split_groups((row["group"] for row in rows), seed=0)
    dialogues = []
    for row in rows:
        (turn,) = row["input"]["turns"]
        turns = (Turn(turn["id"], turn["speaker"], turn["text"], labels={"triplets": row["gold"]}),)
        labels = {"split": home[row["group"]]}
        dialogues.append(Dialogue(row["id"], "personaext", row["group"], (Session("s0", "", turns),), labels))
    return Loaded("personaext", dialogues, read.files, read.bad, read.first_bad)


def _read_all(source: Path) -> tuple[_Read, list[dict[str, Any]]]:
    files = sorted(path for path in source.rglob("*.jsonl") if path.name in ("dev.jsonl", "test.jsonl"))
    if not files:
        raise InputError(
            f"{source} holds no dev.jsonl or test.jsonl: name the folder of PersonaExt (PAED's `outputs/data`)."
        )
    read = _Read(files=[path.relative_to(source).as_posix() for path in files])
    for path, name in zip(files, read.files, strict=True):
        _read_file(path, name, read)
    if not read.utterances:
        raise InputError(f"no row of {source} can be used: {json.dumps(_bad(read))}")
    # Ids are hashes, so this order is arbitrary but fixed: the first n rows of a file are a fair sample of it.
    return read, sorted((_row(tokens, found) for tokens, found in read.utterances.items()), key=lambda row: row["id"])


def _read_file(path: Path, name: str, read: _Read) -> None:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            read.lines += 1
            try:
                entries = json.loads(line)["triplets"]
                if not isinstance(entries, list) or not entries:
                    raise InputError("`triplets` is empty or not a list")
                for entry in entries:
                    _read_entry(entry, read)
            except json.JSONDecodeError:
                _reject(read, "not JSON", f"{name}:{number}")
            except (KeyError, TypeError):
                _reject(read, "not a PersonaExt row (triplets, tokens, head, tail, label)", f"{name}:{number}")
            except InputError as error:
                _reject(read, str(error), f"{name}:{number}")


def _reject(read: _Read, reason: str, place: str) -> None:
    read.bad[reason] += 1
    read.first_bad.setdefault(reason, place)


def _read_entry(entry: dict[str, Any], read: _Read) -> None:
    tokens, label = entry["tokens"], entry["label"]
    if not isinstance(tokens, list) or not tokens or not all(isinstance(t, str) and t.split() == [t] for t in tokens):
        raise InputError("`tokens` is not a list of words")
    for side in ("head", "tail"):
        places = entry[side]
        if (
            not isinstance(places, list)
            or not places
            or not all(type(p) is int and 0 <= p < len(tokens) for p in places)
        ):
            raise InputError(f"`{side}` is empty or points outside the tokens")
    if not isinstance(label, str) or not (relation := normalise_relation(label, PERSONAEXT)):
        raise InputError("`label` is not a relation name")
    subject, _ = _span(tokens, entry["head"])
    if subject.casefold() in FIRST_PERSON:
        subject = SPEAKER
    written, adjacent = _span(tokens, entry["tail"])
    triplet = Triplet(subject, relation, written)
    found = read.utterances.setdefault(tuple(tokens), [])
    read.source_relations.add(label)
    if any(triplet == other for other, _ in found):
        read.repeats += 1
        return
    found.append((triplet, adjacent))
    if subject != SPEAKER:
        read.other_subjects[subject] += 1


def detokenise(tokens: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Natural spacing for tokens, and each token's (start, end) in the text; no character of a token is changed.

    `["i", "m", "not", "sure", "."]` gives "i'm not sure.".
    """
    text, spans = "", []
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else ""
        text += (
            "" if not place or token in _CLOSING or before in ("(", "[") else "'" if _contracted(before, token) else " "
        )
        spans.append((len(text), len(text) + len(token)))
        text += token
    return text, spans


def _contracted(before: str, token: str) -> bool:
    if token == "t":
        return before in _NEGATED
    if token == "m":
        return before == "i"
    if token in ("ll", "ve", "re", "d"):
        return before in _PRONOUNS
    return token == "s" and len(before) > 1 and before.isalpha()


def _span(tokens: Sequence[str], places: Sequence[int]) -> tuple[str, bool]:
    """Text of the named tokens, and whether they are adjacent (then it is a piece of the utterance)."""
    text, spans = detokenise(tokens)
    if list(places) == list(range(places[0], places[0] + len(places))):
        return text[spans[places[0]][0] : spans[places[-1]][1]], True
    return detokenise([tokens[place] for place in places])[0], False


def _row(tokens: tuple[str, ...], found: list[tuple[Triplet, bool]]) -> dict[str, Any]:
    text, _ = detokenise(tokens)
    row_id = "pe-" + hashlib.sha1(" ".join(tokens).encode()).hexdigest()[:12]
    turn = {"id": f"{row_id}-t0", "speaker": SPEAKER, "text": text}
    return {
        "id": row_id,
        "group": "pe-group-" + hashlib.sha1(normalise(text).encode()).hexdigest()[:12],
        "input": {"turns": [turn]},
        "gold": [
            {"subject": t.subject, "relation": t.relation, "object": t.object, "evidence": [turn["id"]]}
            for t, _ in found
        ],
        "tags": {"corpus": "personaext", "object_composed": any(not adjacent for _, adjacent in found)},
    }


def _bad(read: _Read) -> dict[str, Any]:
    return {reason: {"count": n, "first": read.first_bad[reason]} for reason, n in sorted(read.bad.items())}


def _details(read: _Read, rows: list[dict[str, Any]], files: int) -> dict[str, Any]:
    gold = [triplet for row in rows for triplet in row["gold"]]
    relations = Counter(triplet["relation"] for triplet in gold)
    counts = {
        "files": files,
        "lines": read.lines,
        "pairs": len(gold),
        "source_relations": len(read.source_relations),
    }
    sizes = Counter(row["group"] for row in rows)
    return {
        **counts,
        "differs_from_published": {key: [counts[key], due] for key, due in PUBLISHED.items() if counts[key] != due},
        "relations": len(relations),
        "relations_outside_vocabulary": {name: n for name, n in sorted(relations.items()) if name not in PERSONAEXT},
        "repeats_over_files": read.repeats,
        "rows_sharing_a_normalised_utterance": sum(n for n in sizes.values() if n > 1),
        "first_person_subjects": sum(triplet["subject"] == SPEAKER for triplet in gold),
        "other_subjects": dict(sorted(read.other_subjects.items(), key=lambda item: (-item[1], item[0]))),
        "objects_composed_of_separate_words": sum(
            not adjacent for found in read.utterances.values() for _, adjacent in found
        ),
        "bad_lines": _bad(read),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line. Exit code 2 when the corpus cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m data_synthesis.corpora.personaext", description="PersonaExt to a dataset"
    )
    parser.add_argument("--out", type=Path, default=Path("outputs/data/personaext"), help="dataset folder to write")
    parser.add_argument("--source", type=Path, help="corpus folder (default: $MNEMOSMITH_DATA/personaext)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the split")
    options = parser.parse_args(arguments)
    try:
        card = prepare(options.out, options.source, options.seed)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(_summary(card, options.out))
    return 0


def _summary(card: dict[str, Any], out: Path) -> str:
    details = card["details"]
    others = details["other_subjects"]
    lines = [
        f"PersonaExt -> {out}",
        f"  read      {details['files']} files, {details['lines']} lines, {details['repeats_over_files']} repeats",
        f"  pairs     {details['pairs']} utterance-triplet pairs, {details['source_relations']} relation labels "
        f"({details['relations']} after normalisation)",
        "  rows      " + ", ".join(f"{split} {card['splits'][split]['rows']}" for split in SPLITS),
        f"  subjects  {details['first_person_subjects']} first person -> {SPEAKER}, {sum(others.values())} others kept "
        f"({len(others)} forms: {', '.join(list(others)[:5])})",
        f"  objects   {details['objects_composed_of_separate_words']} composed of words that stand apart",
    ]
    if details["relations_outside_vocabulary"]:
        lines.append(f"  outside the PersonaExt vocabulary: {details['relations_outside_vocabulary']}")
    lines += [
        f"  left out  {v['count']} lines: {reason} (first: {v['first']})" for reason, v in details["bad_lines"].items()
    ]
    lines += [
        f"  note      {key} is {found}, the published corpus has {due}"
        for key, (found, due) in details["differs_from_published"].items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
