"""Small flat recipes beside the training ones (evaluation, synthesis): the same strictness, with keys of their own."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from recipes.keys import Key
from recipes.loader import COMMAND_LINE, Problem, read_yaml
from recipes.values import BadValue, check_value, show


@dataclass
class FlatRecipe:
    """What was read: `values` that are valid; `lines` of every key; `problems` so far; `faulty` keys, of which a
    further rule must not complain again."""

    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int | str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    faulty: set[str] = field(default_factory=set)

    def refuse(self, name: str, message: str) -> None:
        """Report a rule between keys, unless `name` is already reported."""
        if name not in self.faulty:
            self.problems.append((self.lines.get(name), message))

    def require(self, examples: Mapping[str, str]) -> None:
        """Report every key that is missing. examples: a value to write, by key."""
        for name, example in examples.items():
            if not self.values.get(name) and name not in self.faulty:
                self.problems.append((None, f"`{name}` is missing. Write for example `{name}: {example}`."))


def read_flat(
    path: Path, what: str, keys: Mapping[str, Key], renamed: Mapping[str, str], overrides: Mapping[str, str]
) -> FlatRecipe:
    """The recipe at `path` with the command line's `overrides` (values as typed; known keys) on top. what: "an eval
    recipe" in messages; renamed: what people write by habit, and the key they mean. Raises nothing but OSError's kin
    that `read_yaml` raises."""
    raw, lines, problems = read_yaml(path)
    read = FlatRecipe(lines={**lines}, problems=list(problems))
    for name, text in overrides.items():
        raw[name] = _typed(keys[name], text)
        read.lines[name] = COMMAND_LINE
    for name, value in raw.items():
        if name not in keys:
            near = renamed.get(name) or next(iter(difflib.get_close_matches(name, keys, n=1, cutoff=0.6)), None)
            advice = f"Did you mean `{near}`?" if near else f"The keys are {', '.join(keys)}."
            read.problems.append((read.lines[name], f"`{name}` is not a key of {what}. {advice}"))
            read.faulty |= {near} if near else set()
            continue
        try:
            read.values[name] = check_value(keys[name], value)
        except BadValue as error:
            read.problems.append((read.lines[name], f"`{name}` is {show(value)}{error}"))
            read.faulty.add(name)
    return read


def _typed(key: Key, text: str) -> Any:
    """A command-line value as YAML reads it, except that a key of text takes 123 as text: a shell has no quotes
    left."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return text if set(key.types) <= {"str", "null"} and value is not None else value
