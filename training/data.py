"""From dataset folders to token rows: load, encode, check, count. Shared by every training method and by the dry run.

Deviation from TRL: prompt and completion are tokenised apart. TRL renders the whole conversation and cuts it at the
prompt's length, which trains Qwen3's closed think block as part of the completion, and breaks where the template renders
the last turn differently. At inference a model continues exactly `prompt_ids`, so that is what it is trained to continue.
"""

from __future__ import annotations

import random
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extractors.chat import end_of_turn
from extractors.contract import Extractor, InputError
from extractors.rows import Row, read_rows, sha256

IGNORED = -100


@dataclass(frozen=True)
class Source:
    """One file that rows came from: its path, split, digest, how many of its rows were taken, and the corpora that their
    tags name: whoever measures an export on a benchmark can see whether it was trained on it."""

    path: str
    split: str
    sha256: str
    rows: int
    of: int
    corpora: tuple[str, ...] = ()


@dataclass(frozen=True)
class Example:
    """A row as tokens: prompt_ids as a server renders them, completion_ids with the end-of-turn token last."""

    id: str
    prompt_ids: list[int]
    completion_ids: list[int]

    def __len__(self) -> int:
        return len(self.prompt_ids) + len(self.completion_ids)

    @property
    def labels(self) -> list[int]:
        return [IGNORED] * len(self.prompt_ids) + self.completion_ids


@dataclass(frozen=True)
class Encoded:
    """Examples that fit, and the ids of those that do not."""

    examples: list[Example]
    dropped: list[str]


def load_split(
    values: Mapping[str, Any], extractor: Extractor[Any, Any], split: str
) -> tuple[list[Row[Any, Any]], list[Source]]:
    """Rows of one split of a recipe's `dataset_name`, or of its `datasets` mixture (`fraction` or `rows` of each, drawn
    with the recipe's seed). Raises InputError for bad rows, and for an id that two datasets share."""
    parts = values.get("datasets") or [{"path": values["dataset_name"]}]
    rows: list[Row[Any, Any]] = []
    sources: list[Source] = []
    owner: dict[str, str] = {}
    for part in parts:
        path = Path(part["path"]) / f"{split}.jsonl"
        read = read_rows(path, extractor)
        wanted = min(part.get("rows") or len(read), round(part.get("fraction", 1.0) * len(read)))
        if wanted < 1:
            raise InputError(f"`datasets`: {path} would give no row; raise its `fraction` or `rows`.")
        taken = read
        if wanted < len(read):
            kept = sorted(random.Random(int(values.get("seed") or 42)).sample(range(len(read)), wanted))
            taken = [read[i] for i in kept]
        for row in taken:
            if row.id in owner:
                raise InputError(
                    f"row id {row.id!r} stands in {owner[row.id]} and in {path}; ids are unique in a mixture."
                )
            owner[row.id] = str(path)
        rows += taken
        corpora = sorted({str(row.tags["corpus"]) for row in taken if row.tags.get("corpus")})
        sources.append(Source(str(path), split, sha256(path), len(taken), len(read), tuple(corpora)))
    return rows, sources


def trained_end(tokenizer: Any, template_kwargs: Mapping[str, Any]) -> int:
    """Id of the token that closes an assistant turn. Raises InputError where the template is missing, or closes a turn
    with no special token, since a model could not learn to stop."""
    end = end_of_turn(tokenizer, template_kwargs)
    if end is not None:
        return end
    if not tokenizer.chat_template:
        raise InputError(
            f"the tokenizer of {tokenizer.name_or_path} has no chat template: use an instruct model, or save a template with it."
        )
    raise InputError(
        f"the chat template of {tokenizer.name_or_path} does not close an assistant turn with a special token, so a "
        "model trained with it would never stop: use a template that does (ChatML: `<|im_end|>`)."
    )


def prompt_ids(tokenizer: Any, extractor: Extractor[Any, Any], value: Any) -> list[int]:
    """Token ids of an input's prompt, as a server with the contract's template kwargs renders them."""
    ids = tokenizer.apply_chat_template(
        extractor.messages(value),
        add_generation_prompt=True,
        tokenize=True,
        return_dict=False,
        **extractor.decoding.chat_template_kwargs,
    )
    return list(ids)


def encode(
    rows: Sequence[Row[Any, Any]], extractor: Extractor[Any, Any], tokenizer: Any, max_length: int | None
) -> Encoded:
    """Tokenise rows. A row longer than `max_length` is never cut (half a JSON array teaches a model not to finish), it is
    set apart by its id."""
    end = trained_end(tokenizer, extractor.decoding.chat_template_kwargs)
    examples: list[Example] = []
    dropped: list[str] = []
    for row in rows:
        text = extractor.render(row.gold)
        completion = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        example = Example(row.id, prompt_ids(tokenizer, extractor, row.input), [*completion, end])
        if max_length is not None and len(example) > max_length:
            dropped.append(row.id)
        else:
            examples.append(example)
    return Encoded(examples, dropped)


def refuse_overlong(encoded: Encoded, split: str, max_length: int | None, policy: str) -> None:
    """Apply `overlong_rows`: refuse raises for the first overlong row, drop raises only when nothing is left."""
    if encoded.dropped and (policy == "refuse" or not encoded.examples):
        total = len(encoded.dropped) + len(encoded.examples)
        everything = "every row" if not encoded.examples else f"{len(encoded.dropped)} of {total} rows"
        remedy = "" if not encoded.examples else ", or `overlong_rows: drop` to leave them out (counted)"
        raise InputError(
            f"`max_length` is {max_length}, but {everything} of split {split!r} need more tokens for prompt and completion "
            f"(the first is {encoded.dropped[0]!r}): set a larger `max_length`{remedy}."
        )


def token_statistics(encoded: Encoded) -> dict[str, Any]:
    """Token counts of the rows that will be trained on: {rows, dropped, first_dropped, tokens, trained_tokens, and
    min / median / p95 / max of whole rows and of completions}."""
    lengths = sorted(len(example) for example in encoded.examples)
    completions = sorted(len(example.completion_ids) for example in encoded.examples)

    def spread(values: list[int]) -> dict[str, float]:
        return {
            "min": values[0],
            "median": statistics.median(values),
            "p95": values[min(len(values) - 1, round(0.95 * (len(values) - 1)))],
            "max": values[-1],
        }

    return {
        "rows": len(lengths),
        "truncated": 0,
        "dropped": len(encoded.dropped),
        "first_dropped": encoded.dropped[0] if encoded.dropped else None,
        "tokens": sum(lengths),
        "trained_tokens": sum(completions),
        "row_tokens": spread(lengths),
        "completion_tokens": spread(completions),
    }


def show_mask(example: Example, tokenizer: Any) -> str:
    """The row as text: the prompt as it is, the trained part between ⟦ ⟧."""
    prompt = tokenizer.decode(example.prompt_ids)
    completion = tokenizer.decode(example.completion_ids)
    indented = re.sub(r"^", "    | ", f"{prompt}⟦{completion}⟧", flags=re.MULTILINE)
    return f"  row {example.id}: {len(example.prompt_ids)} prompt tokens, {len(example.completion_ids)} trained\n{indented}"
