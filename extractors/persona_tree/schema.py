"""What a PersonaTree can hold: leaves by dotted path, each with its meaning, a budget in words and other names for it.

`full` is the project's own schema (`schema_full.json`): the five dimensions and 29 groups of Inside Out (arXiv 2601.05171,
appendix D) with leaves of our own. `quickstart` is a subtree of it. Any other schema is a JSON file, either in the form of
`to_json`, or a bare tree whose leaves are empty strings, such as the authors' human_tree_en.json.

A path resolves to a leaf by its exact spelling, else case-folded by another name of the leaf: an alias (in full, beside
the leaf, or on its own) or the last words of its path, where only one leaf has them. Leaves that would say the same thing
in two places (twins) exist once; the other path is an alias.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from extractors.contract import InputError
from extractors.persona_tree.operations import is_path

DEFAULT_BUDGET = 60  # words, of a leaf that states none
LONGEST_NAME = 40  # characters of a name that a model may add
_FULL = Path(__file__).with_name("schema_full.json")

# One leaf for every relation of the simulated world, and none besides.
_QUICKSTART = (
    "Biological.Physiological_Status.Allergies",
    "Psychological.Psychological_State.Fears",
    "Identity.Motivations_and_Goals.Wishes",
    *(
        f"Identity.Social_Identity.{name}"
        for name in (
            *("Name", "Origin", "Residence", "Occupation", "Employer", "Past_Occupations", "School", "Degree"),
            "Memberships",
        )
    ),
    *(f"Identity.Family_System.{name}" for name in ("Partner", "Children", "Siblings", "Relatives", "Pets")),
    *(f"Behavioural.Lifestyle.{name}" for name in ("Liked_Food", "Disliked_Food")),
    *(f"Behavioural.Interests_and_Skills.{name}" for name in ("Hobbies", "Collections", "Favourite_Colour")),
    *(f"Behavioural.Material_Security.{name}" for name in ("Possessions", "Vehicle")),
    *(f"Behavioural.Knowledge_Base.{name}" for name in ("Music", "Films_and_Series")),
)


@dataclass(frozen=True)
class Leaf:
    """A place for one value. meaning: one line; budget: words of its value; aliases: names beside it, or whole paths."""

    path: str
    meaning: str
    budget: int = DEFAULT_BUDGET
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Extension:
    """Where new leaves may be made. policy: "off", or "group": below any of `groups` (inner paths, not the top level),
    with at most `max_depth` names in the whole path."""

    policy: Literal["off", "group"] = "off"
    groups: tuple[str, ...] = ()
    max_depth: int = 5


@dataclass(frozen=True)
class Schema:
    """Leaves in the order in which they are shown. twins: paths for the same thing, the first of them being the leaf.

    Raises InputError for a path that is none, a leaf that is also a group, a name that leads to two leaves, and an
    extension below something that is no group of at least two names.
    """

    name: str
    version: str
    leaves: Mapping[str, Leaf]
    extension: Extension = field(default_factory=Extension)
    twins: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.leaves:
            raise InputError(f"the schema {self.name} has no leaf.")
        for path, leaf in self.leaves.items():
            if not is_path(path) or path != leaf.path:
                raise InputError(f"{path!r:.80} is no path: write words of A-Z, a-z, 0-9 and _ joined by dots.")
            if path in self.groups:
                raise InputError(f"{path} is a leaf and a group of the schema {self.name}: it can be one of them.")
            if isinstance(leaf.budget, bool) or not isinstance(leaf.budget, int) or leaf.budget < 1:
                raise InputError(f"`budget` of {path} is {leaf.budget!r}: write how many words the leaf may hold.")
            if not leaf.meaning or "\n" in leaf.meaning:
                raise InputError(f"`meaning` of {path} is {leaf.meaning!r:.60}: write one line.")
        self._names  # noqa: B018  # computed now, so that a name of two leaves is refused here
        policy, groups, depth = self.extension.policy, self.extension.groups, self.extension.max_depth
        if policy not in ("off", "group") or (policy == "group") != bool(groups):
            raise InputError(
                f"`extension` is {policy!r} with {len(groups)} groups: write off, or group and its groups."
            )
        for group in groups:
            if group not in self.groups or "." not in group:
                raise InputError(f"`extension.groups` holds {group!r:.80}: write groups below the top level.")
            if isinstance(depth, bool) or not isinstance(depth, int) or group.count(".") + 2 > depth:
                raise InputError(f"`extension.max_depth` is {depth!r}, which leaves no room below {group}.")

    @cached_property
    def groups(self) -> frozenset[str]:
        """All inner paths."""
        return frozenset(outer for path in self.leaves for outer in _outer(path))

    @cached_property
    def _names(self) -> dict[str, str]:
        """Every other name of a leaf, case-folded, and the leaf's path."""
        names: dict[str, str] = {}
        suffixes: dict[str, str | None] = {}

        def state(name: str, path: str) -> None:
            if names.setdefault(name.casefold(), path) != path:
                raise InputError(f"{name} leads to {names[name.casefold()]} and to {path}: a name has one leaf.")

        for path, leaf in self.leaves.items():
            state(path, path)
            parent = path.rpartition(".")[0]
            for alias in leaf.aliases:
                if not is_path(alias):
                    raise InputError(f"`aliases` of {path} holds {alias!r:.80}: write a name or a path.")
                for name in {alias, alias if "." in alias or not parent else f"{parent}.{alias}"}:
                    state(name, path)
            words = path.casefold().split(".")
            for start in range(1, len(words)):
                suffix = ".".join(words[start:])
                suffixes[suffix] = None if suffix in suffixes else path
        unique = {suffix: path for suffix, path in suffixes.items() if path is not None}
        return {**unique, **names}

    def canonical(self, path: str) -> str | None:
        """The leaf that a path, alias or twin stands for; None for one that the schema does not know."""
        return path if path in self.leaves else self._names.get(path.casefold())

    def leaf(self, path: str) -> Leaf | None:
        """The leaf of a path or of another name for it."""
        known = self.canonical(path)
        return None if known is None else self.leaves[known]

    def may_extend(self, path: str) -> bool:
        """Whether `path` is a new leaf that the extension policy permits: below a permitted group, not too deep, neither a
        group nor below a leaf, its new names of at most 40 characters."""
        extension = self.extension
        if extension.policy == "off" or path.count(".") + 1 > extension.max_depth or not is_path(path):
            return False
        if self.canonical(path) is not None or path in self.groups:
            return False
        if not any(path.startswith(group + ".") for group in extension.groups):
            return False
        outer = _outer(path)
        new = [part.rpartition(".")[2] for part in (*outer, path) if part not in self.groups]
        return not any(part in self.leaves for part in outer) and all(len(name) <= LONGEST_NAME for name in new)

    def subtree(self, *paths: str, name: str | None = None) -> Schema:
        """The leaves at and below `paths`, in this schema's order. Raises InputError for a path without a leaf."""
        kept = {path: leaf for path, leaf in self.leaves.items() if self._below(path, paths)}
        return self._part(kept, paths, name)

    def without(self, *paths: str, name: str | None = None) -> Schema:
        """All leaves but those at and below `paths`. Raises InputError for a path without a leaf."""
        kept = {path: leaf for path, leaf in self.leaves.items() if not self._below(path, paths)}
        return self._part(kept, paths, name)

    def merge(self, other: Schema, name: str | None = None) -> Schema:
        """Both schemas' leaves, this one's first. Raises InputError where they contradict each other."""
        for path in self.leaves.keys() & other.leaves.keys():
            if self.leaves[path] != other.leaves[path]:
                raise InputError(f"{path} is not the same leaf in {self.name} and in {other.name}.")
        groups = tuple(dict.fromkeys((*self.extension.groups, *other.extension.groups)))
        depth = min(each.max_depth for each in (self.extension, other.extension))
        return Schema(
            name or f"{self.name}+{other.name}",
            self.version if self.version == other.version else f"{self.version}+{other.version}",
            {**self.leaves, **other.leaves},
            Extension("group" if groups else "off", groups, depth),
            tuple(dict.fromkeys((*self.twins, *other.twins))),
        )

    def extended(self, *groups: str, max_depth: int = 5) -> Schema:
        """The same schema, with new leaves permitted below `groups`."""
        return replace(self, extension=Extension("group" if groups else "off", groups, max_depth))

    def _below(self, path: str, paths: tuple[str, ...]) -> bool:
        return any(path == outer or path.startswith(outer + ".") for outer in paths)

    def _part(self, kept: Mapping[str, Leaf], paths: tuple[str, ...], name: str | None) -> Schema:
        for path in paths:
            if path not in self.leaves and path not in self.groups:
                raise InputError(f"{path!r:.80} is no leaf or group of the schema {self.name}.")
        inner = {outer for path in kept for outer in _outer(path)}
        groups = tuple(group for group in self.extension.groups if group in inner)
        extension = Extension("group" if groups else "off", groups, self.extension.max_depth)
        twins = tuple(twin for twin in self.twins if twin[0] in kept)
        return Schema(name or f"{self.name}-part", self.version, kept, extension, twins)

    def to_json(self) -> dict[str, Any]:
        """The form of schema files: `tree` is nested, a leaf in it an object with meaning, budget and aliases."""
        tree: dict[str, Any] = {}
        for path, leaf in self.leaves.items():
            *outer, last = path.split(".")
            place = tree
            for word in outer:
                place = place.setdefault(word, {})
            place[last] = {"meaning": leaf.meaning, "budget": leaf.budget, "aliases": list(leaf.aliases)}
        extension = {
            "policy": self.extension.policy,
            "groups": list(self.extension.groups),
            "max_depth": self.extension.max_depth,
        }
        data: dict[str, Any] = {"name": self.name, "version": self.version, "extension": extension, "tree": tree}
        return data | ({"twins": [list(twin) for twin in self.twins]} if self.twins else {})

    @cached_property
    def sha256(self) -> str:
        """Hex digest of `to_json`, order included."""
        return hashlib.sha256(json.dumps(self.to_json(), ensure_ascii=False).encode()).hexdigest()


def schema_from_json(data: Any, name: str = "tree") -> Schema:
    """A schema of its file's data: the form of `to_json`, or a bare tree of empty strings. Raises InputError."""
    if not isinstance(data, Mapping):
        raise InputError("a schema is a JSON object: a tree of empty strings, or name, version and tree.")
    if not isinstance(data.get("tree"), Mapping) or not isinstance(data.get("name"), str):
        return _bare(data, name)
    unknown = set(data) - {"name", "version", "extension", "tree", "twins"}
    if unknown:
        raise InputError(f"the schema has an unknown key {sorted(unknown)[0]!r}.")
    leaves = {}
    for path, value in _walk(data["tree"]):
        aliases = value.get("aliases", []) if isinstance(value, Mapping) else None
        if (
            not isinstance(value, Mapping)
            or set(value) - {"meaning", "budget", "aliases"}
            or not isinstance(aliases, list)
        ):
            raise InputError(f'{path} is due as {{"meaning": …, "budget": …, "aliases": […]}}, not {value!r:.60}.')
        budget = value.get("budget", DEFAULT_BUDGET)
        leaves[path] = Leaf(path, str(value.get("meaning") or ""), budget, tuple(map(str, aliases)))
    extension = data.get("extension") or {}
    if not isinstance(extension, Mapping) or set(extension) - {"policy", "groups", "max_depth"}:
        raise InputError('`extension` is due as {"policy": "off" or "group", "groups": […], "max_depth": 5}.')
    return Schema(
        data["name"],
        str(data.get("version", "1")),
        leaves,
        Extension(extension.get("policy", "off"), tuple(extension.get("groups", ())), extension.get("max_depth", 5)),
        tuple(tuple(twin) for twin in data.get("twins", ())),
    )


@lru_cache(maxsize=32)
def load_schema(name_or_path: str) -> Schema:
    """The schema `full` or `quickstart`, or that of a JSON file. Raises InputError."""
    if name_or_path == "quickstart":
        return load_schema("full").subtree(*_QUICKSTART, name="quickstart")
    path = _FULL if name_or_path == "full" else Path(name_or_path)
    if not path.is_file():
        raise InputError(f"`schema` is {name_or_path!r}: write full, quickstart, or the path of a JSON file.")
    try:
        return schema_from_json(json.loads(path.read_text(encoding="utf-8")), name=path.stem)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not JSON: {error}.") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _bare(tree: Mapping[str, Any], name: str) -> Schema:
    """The schema of a tree of empty strings. A leaf's meaning is its name.

    Twins are leaves of the same name, where the name says by itself what it means: it has two words at least, and its
    group has leaves of other names too (in a group of namesakes alone, it is the group that makes the difference).
    """
    paths = []
    for path, value in _walk(tree):
        if value != "":
            raise InputError(f"{path} is {value!r:.60}: in a bare tree every leaf is an empty string.")
        paths.append(path)
    namesakes: dict[str, list[str]] = {}
    for path in paths:
        namesakes.setdefault(path.rpartition(".")[2].casefold(), []).append(path)
    telling = {
        path.rpartition(".")[0]: None for path in paths if len(namesakes[path.rpartition(".")[2].casefold()]) == 1
    }
    twins = []
    for word, same in namesakes.items():
        alike = [path for path in same if path.rpartition(".")[0] in telling]
        if len(alike) > 1 and "_" in word:
            twins.append(tuple(alike))
    others = {twin[0]: twin[1:] for twin in twins}
    dropped = {path for paths_of_one in others.values() for path in paths_of_one}
    leaves = {
        path: Leaf(path, path.rpartition(".")[2].replace("_", " ").lower(), aliases=others.get(path, ()))
        for path in paths
        if path not in dropped
    }
    return Schema(name, "1", leaves, twins=tuple(twins))


def _walk(tree: Mapping[str, Any], outer: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Dotted paths of a nested tree and what stands there: anything but a group."""
    for key, value in tree.items():
        path = ".".join((*outer, str(key)))
        if not isinstance(key, str) or not is_path(key) or "." in key:
            raise InputError(f"{path!r:.80}: a name in a schema is made of A-Z, a-z, 0-9 and _.")
        if len(outer) > 16:
            raise InputError(f"{path:.80} is nested too deeply.")
        if isinstance(value, Mapping) and not isinstance(value.get("meaning"), str):
            if not value:
                raise InputError(f"{path} is a group without leaves.")
            yield from _walk(value, (*outer, key))
        else:
            yield path, value


def _outer(path: str) -> list[str]:
    """The inner paths above a path: a, a.b of a.b.c."""
    words = path.split(".")
    return [".".join(words[:end]) for end in range(1, len(words))]
