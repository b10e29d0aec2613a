"""A synthesis recipe: one small flat YAML that says which corpora a teacher reads, how it is asked, what it may cost
and what a row must pass. Read strictly, before anything heavy is imported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from data_synthesis.teacher import Prices
from recipes.flat import FlatRecipe, read_flat
from recipes.keys import EXTRACTORS, Key
from recipes.loader import RecipeError, in_order
from recipes.values import show

SPLITS = ("train", "dev", "test")
STRUCTURED = ("json_schema", "json_object", "none")

KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        # Task
        Key("extractor", "synthesis", ("str",), None, "The memory task that the teacher does.", EXTRACTORS),
        Key("extractor_options", "synthesis", ("dict",), {}, "Options of the extractor, as the model will be trained with."),
        # Corpora
        Key(
            "corpora", "synthesis", ("list",), None,
            "What the teacher reads: a list of {name, source (a folder, a file or hub:owner/name; null: "
            "$MNEMOSMITH_DATA), dialogues (at most so many; null: all)}.",
        ),
        Key("splits", "synthesis", ("list[str]",), ["train", "dev"], "Which splits to make.", SPLITS),
        Key(
            "role_override", "synthesis", ("str", "null"), None,
            "An exception of data_synthesis/roles.yaml, by name; what it spoils stands in the card.",
        ),
        Key(
            "max_turns", "synthesis", ("int",), 2,
            "Turns to extract from, in one row (triplets; persona_tree: 6 are the paper's 3 exchanges).", low=1, high=16,
        ),
        Key("context_turns", "synthesis", ("int",), 2, "Turns before them that are only read along (triplets).", low=0, high=16),
        Key("rows", "synthesis", ("int", "null"), None, "Make at most so many rows per split; null: all.", low=1),
        # Teacher
        Key("model", "synthesis", ("str",), None, "The teacher's name at its endpoint."),
        Key("base_url", "synthesis", ("str",), None, "An OpenAI-compatible endpoint, with its /v1."),
        Key("api_key_env", "synthesis", ("str",), "OPENAI_API_KEY", "The environment variable that holds the key."),
        Key(
            "structured_output", "synthesis", ("str",), "json_schema",
            "What binds the answer; none: the prompt alone.", STRUCTURED,
        ),
        Key("temperature", "synthesis", ("float",), 0.7, "As the paper samples.", low=0, high=2),
        Key("top_p", "synthesis", ("float",), 0.9, "As the paper samples.", low=0, low_allowed=False, high=1),
        Key("max_tokens", "synthesis", ("int",), 2048, "Cap of an answer, reasoning included; a longer one is a failure.", low=1),
        Key("seed", "synthesis", ("int", "null"), 0, "Sent with each request, plus its sample; null sends none.", low=0),
        Key("extra_body", "synthesis", ("dict",), {}, "Further parameters of the endpoint, sent as they stand."),
        # Limits
        Key("concurrency", "synthesis", ("int",), 64, "Requests under way at once; fewer after a 429.", low=1, high=4096),
        Key("max_attempts", "synthesis", ("int",), 8, "Attempts per request before it is given up.", low=1, high=100),
        Key("timeout", "synthesis", ("float",), 300.0, "Seconds for one attempt.", low=0, low_allowed=False),
        Key("requests_per_minute", "synthesis", ("float", "null"), None, "null: no limit.", low=0, low_allowed=False),
        Key("tokens_per_minute", "synthesis", ("float", "null"), None, "null: no limit.", low=0, low_allowed=False),
        # Cost
        Key("prices", "synthesis", ("dict",), {}, "Per million tokens: {prompt, completion, currency}."),
        Key("budget", "synthesis", ("float", "null"), None, "Stop cleanly before the run costs more; null: no cap.", low=0),
        Key(
            "expected_completion_tokens", "synthesis", ("int",), 120,
            "For `--estimate`, until stored answers tell the mean.", low=1,
        ),
        # Gates
        Key("samples", "synthesis", ("int",), 1, "Answers per request; above 1 what most of them hold is kept.", low=1, high=64),
        Key(
            "min_grounded", "synthesis", ("float", "null"), 0.5,
            "Least share of a value's words found in its source; null: off.", low=0, high=1,
        ),
        Key(
            "min_kept", "synthesis", ("float", "null"), None,
            "persona_tree: least share of a leaf's things that an UPDATE keeps, where it held two or more; null: off.",
            low=0, high=1,
        ),
        Key("max_empty_share", "synthesis", ("float", "null"), 0.2, "Most rows without any gold; null: no cap.", low=0, high=1),
        Key("max_label_share", "synthesis", ("float", "null"), None, "Most rows of one label; null: no cap.", low=0, high=1),
        Key("max_words", "synthesis", ("int",), 400, "Longest input of a row.", low=1),
        # Results
        Key("output_dir", "synthesis", ("str",), None, "The dataset folder; the run lies beside it, as `<output_dir>-run`."),
    )
}  # fmt: skip
_RENAMED = {
    "model_name_or_path": "model", "teacher": "model", "url": "base_url", "endpoint": "base_url", "api_base": "base_url",
    "api_key": "api_key_env", "key": "api_key_env", "openai_api_key": "api_key_env", "max_new_tokens": "max_tokens",
    "num_samples": "samples", "n": "samples", "max_retries": "max_attempts", "retries": "max_attempts",
    "max_concurrent_requests": "concurrency", "num_workers": "concurrency", "rpm": "requests_per_minute",
    "tpm": "tokens_per_minute", "max_cost": "budget", "cost_limit": "budget", "dataset": "corpora", "corpus": "corpora",
    "response_format": "structured_output", "out": "output_dir", "limit": "rows", "task": "extractor",
}  # fmt: skip


@dataclass(frozen=True)
class CorpusChoice:
    """One corpus of a recipe. dialogues: at most so many, the first ones; None for all."""

    name: str
    source: str | None = None
    dialogues: int | None = None


@dataclass(frozen=True)
class SynthesisRecipe:
    """A valid synthesis recipe; the fields are the keys of KEYS."""

    extractor: str
    corpora: tuple[CorpusChoice, ...]
    model: str
    base_url: str
    output_dir: str
    extractor_options: Mapping[str, Any] = field(default_factory=dict)
    splits: tuple[str, ...] = ("train", "dev")
    role_override: str | None = None
    max_turns: int = 2
    context_turns: int = 2
    rows: int | None = None
    api_key_env: str = "OPENAI_API_KEY"
    structured_output: str = "json_schema"
    temperature: float = 0.7
    top_p: float = 0.9
    max_tokens: int = 2048
    seed: int | None = 0
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    concurrency: int = 64
    max_attempts: int = 8
    timeout: float = 300.0
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    prices: Prices = Prices()
    budget: float | None = None
    expected_completion_tokens: int = 120
    samples: int = 1
    min_grounded: float | None = 0.5
    min_kept: float | None = None
    max_empty_share: float | None = 0.2
    max_label_share: float | None = None
    max_words: int = 400

    def sampling(self) -> dict[str, Any]:
        """What is sent with each request beside model, messages and seed."""
        return {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
            **self.extra_body,
        }

    def to_json(self) -> dict[str, Any]:
        """The resolved recipe. It holds the name of the key's variable, never the key."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["corpora"] = [{f.name: getattr(c, f.name) for f in fields(c)} for c in self.corpora]
        values["prices"] = {f.name: getattr(self.prices, f.name) for f in fields(self.prices)}
        for name in ("splits", "extractor_options", "extra_body"):
            values[name] = list(values[name]) if name == "splits" else dict(values[name])
        return values

    def to_yaml(self) -> str:
        """The resolved recipe, itself a recipe."""
        return str(yaml.safe_dump(self.to_json(), sort_keys=False, allow_unicode=True))


def load_synthesis_recipe(path: Path, overrides: Mapping[str, str] | None = None) -> SynthesisRecipe:
    """The recipe at `path` with the command line's `overrides` on top. Raises RecipeError with every fault at once."""
    read = read_flat(path, "a synthesis recipe", KEYS, _RENAMED, overrides or {})
    read.require(
        {
            "extractor": "triplets",
            "corpora": "[{name: msc}]",
            "model": "deepseek-reasoner",
            "base_url": "https://api.deepseek.com/v1",
            "output_dir": "outputs/data/triplets-teacher",
        }
    )
    corpora, prices = _corpora(read), _prices(read)
    for name in ("api_key_env", "base_url"):
        value = str(read.values.get(name) or "")
        if name == "api_key_env" and value and not re.fullmatch(r"[A-Z][A-Z0-9_]{0,60}", value):
            # Not shown: whatever stands there may be the key itself.
            read.refuse(
                name,
                "`api_key_env` is no name of an environment variable (capitals, digits and _): write its name, never the key.",
            )
        if name == "base_url" and value and not value.startswith(("http://", "https://")):
            read.refuse(name, f"`base_url` is {show(value)}: write http(s)://HOST/v1.")
    if (
        "budget" in read.values
        and read.values["budget"] is not None
        and prices == Prices()
        and "prices" not in read.faulty
    ):
        read.refuse(
            "budget", "`budget` is set but `prices` is empty: without prices nothing is ever spent. Write both."
        )
    if read.values.get("extractor") == "persona_tree" and read.values.get("samples", 1) != 1:
        read.refuse("samples", "`samples` is above 1, but a chunk of persona_tree needs one tree before it. Write 1.")
    if read.values.get("extractor") not in (None, "persona_tree") and read.values.get("min_kept") is not None:
        read.refuse("min_kept", "`min_kept` is for persona_tree. Remove the line.")
    if len(set(read.values.get("splits", ()))) < len(read.values.get("splits", ())):
        read.refuse("splits", "`splits` names a split twice.")
    for name in ("temperature", "top_p", "max_tokens", "model", "messages", "seed", "stream", "n"):
        if name in (read.values.get("extra_body") or {}):
            read.refuse("extra_body", f"`extra_body` holds `{name}`, which this tool sets. Take it out.")
    if read.problems:
        raise RecipeError(str(path), in_order(read.problems))
    values = {**read.values, "corpora": corpora, "prices": prices}
    if "splits" in values:
        values["splits"] = tuple(split for split in SPLITS if split in values["splits"])  # in the order of leak gates
    return SynthesisRecipe(**values)


def _corpora(read: FlatRecipe) -> tuple[CorpusChoice, ...]:
    chosen: list[CorpusChoice] = []
    for place, entry in enumerate(read.values.get("corpora") or ()):
        what = f"`corpora[{place}]`"
        if isinstance(entry, str):
            entry = {"name": entry}
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            read.refuse(
                "corpora", f"{what} is {show(entry)}: write {{name: msc}}, with source and dialogues where needed."
            )
            continue
        unknown = set(entry) - {"name", "source", "dialogues"}
        if unknown:
            read.refuse(
                "corpora", f"{what} has the key `{sorted(map(str, unknown))[0]}`: it takes name, source and dialogues."
            )
            continue
        limit, source = entry.get("dialogues"), entry.get("source")
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            read.refuse("corpora", f"{what}.dialogues is {show(limit)}: write a whole number of at least 1, or null.")
        elif source is not None and not isinstance(source, str):
            read.refuse("corpora", f"{what}.source is {show(source)}: write a folder, a file or hub:owner/name.")
        else:
            if entry["name"] in {choice.name for choice in chosen}:
                read.refuse("corpora", f"{what} names {entry['name']} a second time. Put both sources into one folder.")
            chosen.append(CorpusChoice(entry["name"], source, limit))
    return tuple(chosen)


def _prices(read: FlatRecipe) -> Prices:
    table = read.values.get("prices") or {}
    unknown = set(table) - {"prompt", "completion", "currency"}
    if unknown:
        read.refuse("prices", f"`prices` has the key `{sorted(unknown)[0]}`: it takes prompt, completion and currency.")
        read.faulty.add("prices")
        return Prices()
    for name in ("prompt", "completion"):
        value = table.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            read.refuse("prices", f"`prices.{name}` is {show(value)}: write the price of a million tokens, 0 or more.")
            read.faulty.add("prices")
            return Prices()
    return Prices(float(table.get("prompt", 0)), float(table.get("completion", 0)), str(table.get("currency", "USD")))
