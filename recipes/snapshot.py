"""Writes `trl_keys.json`: every key of the installed TRL's SFTConfig, GRPOConfig and ModelConfig, as the recipe loader
sees it.

    python -m recipes.snapshot

The loader must answer before torch is imported, so it reads this file in place of the dataclasses. Run this after a
change of the TRL or transformers version; a test compares the file with what is installed.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing
from typing import Any

from recipes.keys import SNAPSHOT_FILE

SIMPLE_TYPES = {bool: "bool", int: "int", float: "float", str: "str", dict: "dict", list: "list", type(None): "null"}


def take_snapshot() -> dict[str, Any]:
    """`{"versions": {...}, "SFTConfig": {key: {"types", "choices", "default", "help"}}, "GRPOConfig": …, "ModelConfig":
    …}`."""
    import transformers
    import trl
    from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK
    from trl import GRPOConfig, ModelConfig, SFTConfig  # type: ignore[attr-defined]

    snapshot: dict[str, Any] = {"versions": {"trl": trl.__version__, "transformers": transformers.__version__}}
    for config in (SFTConfig, GRPOConfig, ModelConfig):
        snapshot[config.__name__] = {f.name: _describe(f) for f in dataclasses.fields(config) if f.init}
    for config_name in (
        "SFTConfig",
        "GRPOConfig",
    ):  # the annotation is a bare str; a wrong name fails only after the model loads
        snapshot[config_name]["report_to"]["choices"] = ["none", "all", *sorted(INTEGRATION_TO_CALLBACK)]
    return snapshot


def _describe(field: dataclasses.Field[Any]) -> dict[str, Any]:
    kinds, choices = _kinds(field.type)
    if field.metadata.get("choices") is not None:
        choices = list(field.metadata["choices"])
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    if isinstance(default, enum.Enum):
        default = default.value
    return {
        "types": kinds,
        "choices": choices or None,
        "default": default,
        "help": " ".join(str(field.metadata.get("help", "")).replace("%%", "%").split()),
    }


def _kinds(annotation: Any) -> tuple[list[str], list[Any]]:
    """The YAML types that an annotation admits, and its choices where they are closed (an Enum, or nothing but
    Literals)."""
    kinds: list[str] = []
    choices: list[Any] = []
    for part in _parts(annotation):
        origin = typing.get_origin(part) or part
        if origin is typing.Literal:
            choices += typing.get_args(part)
            kinds += [SIMPLE_TYPES[type(value)] for value in typing.get_args(part)]
        elif isinstance(origin, type) and issubclass(origin, enum.Enum):
            choices += [member.value for member in origin]
            kinds.append("str")
        elif origin in (list, dict):
            item = typing.get_args(part)
            kinds.append("list[str]" if origin is list and item == (str,) else SIMPLE_TYPES[origin])
        else:
            kinds.append(SIMPLE_TYPES.get(origin, "object"))  # "object": cannot be written in YAML
    enums = any(isinstance(part, type) and issubclass(part, enum.Enum) for part in _parts(annotation))
    closed = enums or all(
        typing.get_origin(part) is typing.Literal or part is type(None) for part in _parts(annotation)
    )
    return list(dict.fromkeys(kinds)), choices if closed else []


def _parts(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def main() -> None:
    snapshot = take_snapshot()
    SNAPSHOT_FILE.write_text(json.dumps(snapshot, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    counts = ", ".join(f"{name} {len(keys)}" for name, keys in snapshot.items() if name != "versions")
    print(f"{SNAPSHOT_FILE}: {counts} keys, {snapshot['versions']}")


if __name__ == "__main__":
    main()
