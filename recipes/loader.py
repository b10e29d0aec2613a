"""The one strict loader. A recipe is one flat YAML of TRL's and transformers' own keys plus a few of ours.

    read the file -> add the command line's overrides -> every key known? -> every value right? -> do the keys agree?

All errors are collected and raised together as one RecipeError, each with its key, value, line, reason and remedy.
Nothing here imports torch, transformers or trl: what TRL's keys are stands in `trl_keys.json` (see `recipes.snapshot`).
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from recipes.checks import cross_field_problems
from recipes.keys import (
    CHANGED,
    METHODS,
    OUR_KEYS,
    REFUSED,
    RENAMED,
    SECTION_TITLES,
    SECTIONS,
    TRAINER_CONFIGS,
    known_keys,
    methods_with,
    nearest,
    normalise,
    replacements,
)
from recipes.values import BadValue, check_value, show

RECIPES = Path(__file__).parent
COMMAND_LINE = "command line"
Problem = tuple[int | str | None, str]  # line number, COMMAND_LINE, or None for the recipe as a whole; the message
REQUIRED = {
    "method": "method: sft",
    "extractor": "extractor: triplets",
    "model_name_or_path": "model_name_or_path: Qwen/Qwen3-8B",
    "output_dir": "output_dir: outputs/<name of the run>",
}


class RecipeError(ValueError):
    """A recipe that cannot be used. str() lists every error; `problems` holds them one by one."""

    def __init__(self, source: str, problems: Sequence[str]):
        self.source = source
        self.problems = tuple(problems)
        count = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
        super().__init__("\n".join([f"{source}: {count}", *(f"  {problem}" for problem in problems)]))


@dataclass(frozen=True)
class Recipe:
    """A valid recipe: `values` holds what it sets (command line included) and every key of ours, by default where
    unset; a TRL key that is absent keeps TRL's default."""

    path: Path
    values: dict[str, Any]

    @property
    def method(self) -> str:
        return str(self.values["method"])

    @property
    def extractor(self) -> str:
        return str(self.values["extractor"])

    @property
    def extractor_options(self) -> dict[str, Any]:
        return dict(self.values["extractor_options"])

    def trainer_values(self) -> dict[str, Any]:
        """The keyword arguments for the method's TRL config class (SFTConfig for `sft`)."""
        return self._of_config(TRAINER_CONFIGS[self.method])

    def model_values(self) -> dict[str, Any]:
        """The keyword arguments for TRL's ModelConfig."""
        return self._of_config("ModelConfig")

    def _of_config(self, config: str) -> dict[str, Any]:
        keys = known_keys(self.method)
        return {name: value for name, value in self.values.items() if config in keys[name].configs}

    def to_yaml(self) -> str:
        """The resolved recipe, itself a recipe: our defaults written out, its keys grouped under comment banners."""
        keys = known_keys(self.method)
        parts = []
        for section in SECTIONS:
            lines = [
                yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True, width=10_000)
                for name, value in self.values.items()
                if keys[name].section == section and not (name in OUR_KEYS and value is OUR_KEYS[name].default is None)
            ]
            if lines:
                parts.append(f"# {SECTION_TITLES[section]}\n" + "".join(lines))
        return "\n".join(parts)


def load_recipe(path: Path, overrides: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> Recipe:
    """The recipe at `path` with command-line `overrides` (`["--learning_rate", "1e-4", "--packing=false"]`) on top.

    `environ` stands for the process environment (the launcher's settings, the hub token). Raises RecipeError with every
    error of file and command line together.
    """
    path = Path(path)
    raw, lines, problems = read_yaml(path)
    for name, value in _read_overrides(overrides, problems).items():
        raw[name] = value
        lines[name] = COMMAND_LINE

    values: dict[str, Any] = {}
    invalid: set[str] = set()
    meant: set[str] = set()  # keys that an unknown key stood for: not to be called missing as well
    method = next(
        (known for known in METHODS if known == raw.get("method")), METHODS[0]
    )  # a wrong one is reported below
    keys = known_keys(method)
    for name, value in raw.items():
        if name not in keys or name in REFUSED:
            meant.update(_meant_by(name, value, method))
            problems.append((lines[name], unknown_key_message(name, value, method)))
            continue
        try:
            values[name] = check_value(keys[name], value)
        except BadValue as error:
            invalid.add(name)
            problems.append((lines[name], f"`{name}` is {show(value)}{error}"))
    for name, example in REQUIRED.items():
        if name not in meant and name not in invalid and values.get(name) in (None, ""):
            problems.append((None, f"`{name}` is missing. Write for example `{example}`."))
    environ = os.environ if environ is None else environ
    for name, message in cross_field_problems(values, keys, frozenset(invalid | meant), environ):
        problems.append((lines.get(name), message))
    if problems:
        raise RecipeError(str(path), in_order(problems))
    ours = {name: key.default for name, key in OUR_KEYS.items() if method in key.methods}
    return Recipe(path, {**ours, **values})


def find_recipes(root: Path = RECIPES) -> list[Path]:
    """Every training recipe under `root`: the YAML files with a top-level `method`, sorted."""
    return sorted(
        path
        for path in root.rglob("*.yaml")
        if "accelerate" not in path.relative_to(root).parts
        and re.search(r"^method\s*:", path.read_text(encoding="utf-8"), re.M)
    )


def describe_key(name: str) -> str:
    """What a key means: section, types, choices, range, default, help. For another tool's key, what to write instead.

    Raises RecipeError for a name that is neither.
    """
    methods = methods_with(name)
    if not methods or name in REFUSED:
        plain = normalise(name)
        if not (methods or methods_with(plain) or plain in RENAMED or plain in CHANGED):
            raise RecipeError("key", [unknown_key_message(name, None)])
        return unknown_key_message(name, None)
    key = known_keys(methods[0])[name]
    only = "" if methods == METHODS else f"; only with method: {', '.join(methods)}"
    origin = "TRL's " + ", ".join(key.configs) if key.configs else "Mnemosmith's own"
    text = [
        f"{key.name} ({origin}; section: {SECTION_TITLES[key.section]}{only})",
        f"  {key.help}",
        f"  type: {' | '.join(key.types)}",
    ]
    if key.choices:
        text.append(f"  one of: {', '.join(map(str, key.choices))}")
    if key.low is not None:
        text.append(f"  {'at least' if key.low_allowed else 'greater than'} {key.low:g}")
    if key.high is not None:
        text.append(f"  {'at most' if key.high_allowed else 'less than'} {key.high:g}")
    required = name in REQUIRED
    defaults = {method: show(known_keys(method)[name].default) for method in methods}
    different = ", ".join(f"{default} ({method})" for method, default in defaults.items())
    shown = different if len(set(defaults.values())) > 1 else show(key.default)
    text.append("  required" if required else f"  default: {shown}")
    return "\n".join(text)


def unknown_key_message(name: str, value: Any, method: str = "sft") -> str:
    """Why a key may not stand in a recipe of this method, and what to write in its place."""
    keys = known_keys(method)
    plain = normalise(name)
    if name in REFUSED:
        return f"`{name}` may not be set: {REFUSED[name]}"
    if isinstance(value, dict) and not methods_with(plain):
        return _nested_message(name, value, method)
    if "." in name and not name.startswith("."):
        first, _, last = name.partition(".")
        if first in keys:
            return f"`{name}` is not a key: write the whole mapping, `{first}: {{{last}: {show(value)}}}`."
        return f"`{name}` is not a key: recipes are flat. {_advice(last.rpartition('.')[2], value, method)}"
    return f"`{name}` is not a recipe key. {_advice(name, value, method)}"


def _advice(name: str, value: Any, method: str) -> str:
    plain = normalise(name)
    written = "<value>" if value is None else show(value)
    new = RENAMED.get(plain, plain)
    key = known_keys(method).get(new)
    if key is not None:
        if new == plain:
            return f"Write `{plain}: {written}`."
        try:
            check_value(key, value)
        except BadValue:
            return f"Write `{new}`."
        return f"Write `{new}: {written}`."
    if plain in CHANGED and all(each in known_keys(method) for each in CHANGED[plain][0]):
        return CHANGED[plain][1].format(value=written)
    elsewhere = methods_with(new) or methods_with(CHANGED[plain][0][0] if plain in CHANGED else "")
    if elsewhere:
        called = f", where it is called `{new}`" if new != plain else ""
        return f"It belongs to `method: {elsewhere[0]}`{called}; this recipe's is {method}. Remove it."
    near = nearest(plain, method)
    if near:
        return f"Did you mean `{near[0]}`?"
    return f"No key of TRL's {TRAINER_CONFIGS[method]} or ModelConfig or of ours is like it. Remove it."


def _nested_message(section: str, value: dict[Any, Any], method: str) -> str:
    keys = known_keys(method)
    moves = []
    for inner, inner_value in value.items():
        joined = normalise(f"{section}_{inner}")
        exact = next((name for name in (str(inner), joined) if name in keys), None)
        if exact is not None:
            moves.append(
                f"move `{exact}` to the top level"
                if exact == inner
                else f"write `{inner}` as `{exact}` at the top level"
            )
        elif replacement := replacements(joined if joined in RENAMED else str(inner), method):
            moves.append(f"write `{inner}` as `{replacement[0]}` at the top level")
        else:
            moves.append(f"`{inner}`: {_advice(str(inner), inner_value, method).rstrip('.')}")
    return f"`{section}` is not a recipe key: recipes are flat{': ' + '; '.join(moves) if moves else ''}."


def _meant_by(name: str, value: Any, method: str) -> set[str]:
    if name in REFUSED:
        return set()
    if isinstance(value, dict):
        return {new for inner in value for new in replacements(str(inner), method)} | set(replacements(name, method))
    return set(replacements(name.rpartition(".")[2], method))


def _read_overrides(arguments: Sequence[str], problems: list[Problem]) -> dict[str, Any]:
    overrides: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if not argument.startswith("--") or argument == "--":
            problems.append((COMMAND_LINE, f"{argument!r} is no override: write `--key value` or `--key=value`."))
            continue
        name, has_value, text = argument[2:].partition("=")
        if not has_value:
            if not rest or rest[0].startswith("--"):
                problems.append(
                    (COMMAND_LINE, f"`--{name}` has no value: write `--{name} <value>`, for a switch `--{name} true`.")
                )
                continue
            text = rest.pop(0)
        if name in overrides:
            problems.append((COMMAND_LINE, f"`--{name}` is given twice. Keep one."))
            continue
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            value = text
        methods = methods_with(name)
        key = known_keys(methods[0])[name] if methods else None
        if key is not None and set(key.types) <= {"str", "null"} and value is not None and not isinstance(value, str):
            value = text  # a shell has no quotes left to say that 123 or `no` is text
        overrides[name] = value
    return overrides


def read_yaml(path: Path) -> tuple[dict[str, Any], dict[str, int | str], list[Problem]]:
    """The file's top level, the line of each key, and its duplicates. Raises RecipeError where there is no mapping."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        near = difflib.get_close_matches(str(path), [str(p) for p in find_recipes()], n=1, cutoff=0.3)
        advice = f" Did you mean {near[0]}?" if near else ""
        raise RecipeError(str(path), [f"there is no such file.{advice}"]) from None
    except UnicodeDecodeError as error:
        raise RecipeError(str(path), [f"is not UTF-8 text (byte {error.start}). Save it as UTF-8."]) from None
    except OSError as error:
        raise RecipeError(str(path), [f"cannot be read: {error.strerror}."]) from None

    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        data: dict[Any, Any] = loader.construct_document(node) if isinstance(node, yaml.MappingNode) else {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        hint = " Indent with spaces, not with tabs." if mark and "\\t" in str(error.problem) else ""
        raise RecipeError(str(path), [f"{where}not valid YAML: {error.problem or error.context}.{hint}"]) from None
    except yaml.YAMLError as error:
        raise RecipeError(str(path), [f"not valid YAML: {' '.join(str(error).split())}"]) from None
    except ValueError as error:  # an impossible date, for example
        raise RecipeError(str(path), [f"not valid YAML: {error}."]) from None
    finally:
        loader.dispose()
    if not isinstance(node, yaml.MappingNode):
        what = "is empty" if node is None else "is not a mapping"
        advice = f"a recipe is a list of `key: value` lines, see {RECIPES}/README.md."
        raise RecipeError(str(path), [f"the file {what}: {advice}"])

    problems = _duplicates(node, set())
    raw: dict[str, Any] = {}
    lines: dict[str, int | str] = {}
    for key_node, _ in node.value:
        lines.setdefault(str(key_node.value), key_node.start_mark.line + 1)
    for name, value in data.items():
        if isinstance(name, str):
            raw[name] = value
            lines.setdefault(name, 1)
        else:
            problems.append(
                (None, f"the key {show(name)} is not text. A recipe's keys are names such as `learning_rate`.")
            )
    return raw, lines, problems


def _duplicates(node: yaml.Node, seen_nodes: set[int]) -> list[Problem]:
    """Keys written twice in one mapping, at any depth: YAML keeps the last without a word."""
    if id(node) in seen_nodes:  # an alias
        return []
    seen_nodes.add(id(node))
    problems: list[Problem] = []
    if isinstance(node, yaml.MappingNode):
        first: dict[Any, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if isinstance(key_node, yaml.ScalarNode):
                if key_node.value in first:
                    both = f"lines {first[key_node.value]} and {line}"
                    problems.append((line, f"`{key_node.value}` is written twice ({both}). Keep one."))
                first.setdefault(key_node.value, line)
            problems += _duplicates(value_node, seen_nodes)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            problems += _duplicates(item, seen_nodes)
    return problems


def in_order(problems: Sequence[Problem]) -> list[str]:
    """File errors by line, then those of the command line, then those of the recipe as a whole."""

    def rank(problem: Problem) -> tuple[int, int]:
        where = problem[0]
        return (0, where) if isinstance(where, int) else (1, 0) if where == COMMAND_LINE else (2, 0)

    return [
        (f"line {where}: " if isinstance(where, int) else f"{where}: " if where else "") + message
        for where, message in sorted(problems, key=rank)
    ]
