"""PersonaTrees over whole real histories: does anything raise, is anything lost, and how many tokens does a tree cost?

    MNEMOSMITH_DATA=… python tests/benchmarks/tree_replays.py [--record]

All 37 contexts of PersonaMem (32k) and the two pilot slices of HaluMem are replayed through the executor with the full schema.
No model is asked; the operations are gold-like, by a plain rule:

- PersonaMem, a chunk of three exchanges: each sentence of the user about itself ("I", "my") goes to the leaf whose name, aliases
  and meaning share most words with it, at least two; the sentence is put before what the leaf holds, and the executor shortens
  that to the leaf's budget. So a tree is as full as what was said allows.
- HaluMem, a session: `tests/extractors/halumem_replay.py`.

`tree.tokens` is the mean, over contexts, of the tokens that the recorded leaves take in the standard prompt after the last
chunk. The paper has 2.2k to 2.6k for trees over dialogues of 32k tokens.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from data_synthesis.corpora import corpus_folder, personamem  # noqa: E402
from data_synthesis.dialogues import Dialogue  # noqa: E402
from eval.results import record  # noqa: E402
from extractors.persona_tree import NO_OP, Operation, PersonaTree, PersonaTreeExtractor, execute  # noqa: E402
from recipes.models import SMOLLM2_NAME, resolve_model  # noqa: E402
from tests.extractors.halumem_replay import nearest_leaf, sessions_as_operations, words_of_leaves  # noqa: E402

EXCHANGES = 3
_SENTENCE = re.compile(r"[^.!?]+[.!?]?")
_SELF = re.compile(r"\b(?:i|i'm|i've|my|me)\b", re.IGNORECASE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    from transformers import AutoTokenizer

    extractor = PersonaTreeExtractor()
    tokenizer = AutoTokenizer.from_pretrained(str(resolve_model(SMOLLM2_NAME)))
    counts, reasons = Counter[str](), Counter[str]()
    trees: list[PersonaTree] = []
    dialogue_tokens = []
    started = time.monotonic()
    for dialogue in personamem.load().dialogues:
        tree = PersonaTree(extractor.schema)
        for operations in context_as_operations(dialogue, extractor):
            tree = step(tree, operations(tree), counts, reasons)
        trees.append(tree)
        dialogue_tokens.append(
            length(tokenizer, "\n".join(turn.text for turn in dialogue.turns() if turn.role != "system"))
        )
    for path in sorted(corpus_folder("halumem").glob("pilot_slices/*.jsonl")):
        tree = PersonaTree(extractor.schema)
        for _, some in sessions_as_operations(path, extractor.schema):
            tree = step(tree, some, counts, reasons)
        counts["halumem users"] += 1
    tokens = [length(tokenizer, "\n".join(f"{path}: {text}" for path, text in tree.values.items())) for tree in trees]
    index = length(
        tokenizer, extractor.messages(extractor.read_input({"turns": [{"speaker": "x", "text": "x"}]}))[0]["content"]
    )
    print(
        f"{len(trees)} contexts of PersonaMem and {counts['halumem users']} users of HaluMem, {counts['chunks']} chunks, "
        f"{counts['operations']} operations: {counts['applied']} applied, {counts['rejected']} rejected "
        f"({', '.join(f'{reason} {n}' for reason, n in reasons.most_common()) or 'none'}), none raised, none unreported "
        f"({time.monotonic() - started:.0f} s)"
    )
    print(
        f"tree of a PersonaMem context: {fmean(len(tree.values) for tree in trees):.0f} leaves, {fmean(tokens):.0f} tokens "
        f"({min(tokens)} to {max(tokens)}) against {fmean(dialogue_tokens):.0f} of dialogue; "
        f"rules and index of the prompt: {index}"
    )
    if args.record:
        record(
            "tree.tokens",
            fmean(tokens),
            n=len(tokens),
            command="python tests/benchmarks/tree_replays.py --record",
            data="all contexts of PersonaMem 32k, operations by a word-overlap rule",
            model="none; tokens of SmolLM2's tokenizer",
            note=f"leaves alone, {min(tokens)} to {max(tokens)}; the prompt's rules and index of paths: {index}; "
            f"the dialogues: {fmean(dialogue_tokens):.0f}",
        )
    return 0


def context_as_operations(dialogue: Dialogue, extractor: PersonaTreeExtractor) -> Iterator[Any]:
    """For each chunk a function from the tree to operations on it."""
    words = words_of_leaves(extractor.schema)
    turns = [turn for turn in dialogue.turns() if turn.role in ("user", "assistant")]
    for start in range(0, len(turns), 2 * EXCHANGES):
        said = " ".join(turn.text for turn in turns[start : start + 2 * EXCHANGES] if turn.role == "user")
        found: dict[str, list[str]] = {}
        for sentence in (" ".join(each.split()) for each in _SENTENCE.findall(said)):
            path, shared = nearest_leaf(sentence, words)
            if _SELF.search(sentence) and shared >= 2:
                found.setdefault(path, []).append(sentence)

        def operations(tree: PersonaTree, found: dict[str, list[str]] = found) -> list[Operation]:
            return [
                Operation("UPDATE" if path in tree.values else "ADD", path, " ".join([*new, tree.values.get(path, "")]))
                for path, new in found.items()
            ] or [NO_OP]

        yield operations


def step(tree: PersonaTree, operations: list[Operation], counts: Counter[str], reasons: Counter[str]) -> PersonaTree:
    done = execute(tree, operations)
    assert len(done.applied) + len(done.rejected) == len(operations), "an operation is unreported"
    assert set(done.tree.values) <= set(tree.schema.leaves)
    counts.update(chunks=1, operations=len(operations), applied=len(done.applied), rejected=len(done.rejected))
    reasons.update(each.reason for each in done.rejected)
    return done.tree


def length(tokenizer: Any, text: str) -> int:
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


if __name__ == "__main__":
    sys.exit(main())
