"""One value of a recipe against its key: the type it must have, the strings that stand for numbers, choices and
ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import yaml

from recipes.keys import METHODS, PLANNED_METHODS, VALUE_SPELLINGS, Key

KIND_NAMES = {
    "null": "null",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "list": "a list",
    "list[str]": "a list of texts",
    "dict": "a mapping",
}


class BadValue(ValueError):
    """A value that its key does not admit. The text continues the sentence "`key` is value"."""


def show(value: Any) -> str:
    """A value as one would write it in a recipe, cut to 60 characters."""
    text: str = yaml.safe_dump(
        value, default_flow_style=True, width=10_000, allow_unicode=True, sort_keys=False
    ).strip()
    text = text.removesuffix("...").strip()
    return text if len(text) <= 60 else text[:59] + "…"


def check_value(key: Key, raw: Any) -> Any:
    """The value to use for what YAML read under `key`: `"2e-5"` becomes 2e-05 for a number, `no` becomes "no" for a
    choice.

    Raises BadValue.
    """
    value = _coerce(key, raw)
    if key.choices and value is not None:
        for item in value if isinstance(value, list) else [value]:
            _check_choice(key, item)
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_range(key, value)
    if key.name == "datasets" and value is not None:
        return _check_mixture(value)
    if key.name == "max_steps" and value == 0:
        raise BadValue(" but must be -1 (train for `num_train_epochs`) or 1 and more.")
    return value


def _coerce(key: Key, raw: Any) -> Any:
    kinds = key.types
    if raw is None:
        if "null" in kinds:
            return None
        raise BadValue(
            f" but must be {_admitted(kinds)}. Write a value, or remove the line for the default ({show(key.default)})."
        )
    if isinstance(raw, bool):
        if "bool" in kinds:
            return raw
        if raw is False and "no" in key.choices:  # YAML reads a bare `no` as false
            return "no"
    elif isinstance(raw, int):
        if "int" in kinds or "float" in kinds:
            return raw
    elif isinstance(raw, float):
        if "float" in kinds:
            if not math.isfinite(raw):
                raise BadValue(" but must be a finite number.")
            return raw
        if "int" in kinds and math.isfinite(raw):
            raise BadValue(f" but must be a whole number: write `{key.name}: {round(raw)}`.")
    elif isinstance(raw, str):
        return _from_text(key, raw)
    elif isinstance(raw, list):
        if "list[str]" in kinds:
            wrong = [item for item in raw if not isinstance(item, str)]
            if wrong:
                raise BadValue(f" but must be a list of texts, and {show(wrong[0])} is none. Put it in quotes.")
            return raw
        if "list" in kinds:
            return raw
    elif isinstance(raw, dict) and "dict" in kinds:
        wrong_keys = [name for name in raw if not isinstance(name, str)]
        if wrong_keys:
            raise BadValue(f" but its keys must be texts, and {show(wrong_keys[0])} is none. Put it in quotes.")
        return raw
    if "str" in kinds and not key.choices and not isinstance(raw, list | dict):
        raise BadValue(
            f', which YAML reads as {type(raw).__name__}, but must be text. Put it in quotes: `{key.name}: "{raw}"`.'
        )
    if key.choices:
        raise BadValue(f" but must be one of: {', '.join(map(str, key.choices))}.")
    raise BadValue(f" but must be {_admitted(kinds)}{_example(key)}.")


def _from_text(key: Key, raw: str) -> Any:
    kinds = key.types
    if "str" in kinds:
        return raw
    if "bool" in kinds and raw.strip().lower() in ("true", "false"):
        return raw.strip().lower() == "true"
    if "int" in kinds or "float" in kinds:
        try:
            number = float(raw)  # PyYAML reads 2e-4 as text, because YAML 1.1 wants a dot in a float
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            if "float" in kinds and not raw.strip().lstrip("+-").isdigit():
                return number
            if number.is_integer():
                return int(number)
            raise BadValue(f" but must be a whole number: write `{key.name}: {round(number)}`.")
    if "list[str]" in kinds:
        if "," in raw or " " in raw.strip():
            raise BadValue(f" but must be a list: write `{key.name}: [{', '.join(raw.replace(',', ' ').split())}]`.")
        return [raw]
    raise BadValue(f" but must be {_admitted(kinds)}{_example(key)}.")


def _admitted(kinds: Sequence[str]) -> str:
    names = [KIND_NAMES[kind] for kind in kinds if kind in KIND_NAMES]
    return " or ".join(dict.fromkeys(names))


def _example(key: Key) -> str:
    return "" if key.default is None else f", for example `{key.name}: {show(key.default)}`"


def _check_choice(key: Key, value: Any) -> None:
    if key.name == "method" and value in PLANNED_METHODS:
        raise BadValue(f", which is not in this version. Write `method: {METHODS[0]}`.")
    if key.name == "extractor" and value not in key.choices:
        raise BadValue(f" but the extractors of this version are: {', '.join(key.choices)}.")
    if value in key.choices:
        return
    meant = VALUE_SPELLINGS.get(str(value).lower())
    hint = f" Write `{key.name}: {meant}`." if meant in key.choices else ""
    raise BadValue(f" but must be one of: {', '.join(map(str, key.choices))}.{hint}")


def _check_range(key: Key, value: float) -> None:
    too_low = key.low is not None and (value < key.low or (value == key.low and not key.low_allowed))
    too_high = key.high is not None and (value > key.high or (value == key.high and not key.high_allowed))
    if not too_low and not too_high:
        return
    bounds = []
    if key.low is not None:
        bounds.append(f"{'at least' if key.low_allowed else 'greater than'} {key.low:g}")
    if key.high is not None:
        bounds.append(f"{'at most' if key.high_allowed else 'less than'} {key.high:g}")
    raise BadValue(f" but must be {' and '.join(bounds)}{_example(key)}.")


def _check_mixture(items: list[Any]) -> list[dict[str, Any]]:
    """`datasets`: what each item may hold, said with the item's position (from 1)."""
    if not items:
        raise BadValue(" but must name at least one dataset folder: `datasets: [{path: <dataset folder>}]`.")
    fields = {
        "path": Key("path", "data", ("str",), None, ""),
        "fraction": Key("fraction", "data", ("float",), 0.5, "", low=0, low_allowed=False, high=1),
        "rows": Key("rows", "data", ("int",), 1000, "", low=1),
    }
    checked: list[dict[str, Any]] = []
    for position, item in enumerate(items, start=1):
        if isinstance(item, str):
            raise BadValue(f" but item {position} must be a mapping: write `- path: {item}`.")
        if not isinstance(item, dict):
            raise BadValue(f" but item {position} must be a mapping: `- path: <dataset folder>`.")
        for name in item:
            if name not in fields:
                meant = {"weight": "fraction", "ratio": "fraction", "name": "path", "max_samples": "rows"}.get(
                    str(name)
                )
                advice = f"Write `{meant}`." if meant else "Write `path`, and `fraction` or `rows`."
                raise BadValue(f" but item {position} has the unknown key `{name}`. {advice}")
        if "path" not in item:
            raise BadValue(f" but item {position} has no `path`: write the dataset folder.")
        if "fraction" in item and "rows" in item:
            raise BadValue(f" but item {position} has both `fraction` and `rows`. Write one of them.")
        values = {}
        for name, value in item.items():
            try:
                values[name] = check_value(fields[name], value)
            except BadValue as error:
                raise BadValue(f", where `{name}` of item {position} is {show(value)}{error}") from None
        checked.append(values)
    return checked
