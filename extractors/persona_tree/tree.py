"""The PersonaTree: one version of what is known about a person, as texts at the leaves of a schema.

A tree cannot be changed. `executor.execute` makes the next version, `store.TreeStore` keeps them all. Paths are those of
the schema, or of new leaves that its extension policy permits; another name of a leaf is for parsers to resolve.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from extractors.contract import InputError
from extractors.persona_tree.schema import DEFAULT_BUDGET, Schema
from extractors.text import one_line

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # kana and Chinese characters
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]{{1,30}}")


def clean_text(text: str) -> str:
    """A value as a tree holds it: one line, no control characters, U+FFFD for a lone surrogate; "" for a text without a
    single visible character."""
    text = one_line(_CONTROL.sub(" ", text))
    return text if any(char.isprintable() and char != " " for char in text) else ""


def word_ends(text: str) -> list[int]:
    """Where the words of a text end (character offsets). A word is a run without white space, or 30 characters of a longer
    one, or a single Chinese or Japanese character: a budget in words must bind a text without spaces, too."""
    return [match.end() for match in _WORD.finditer(text)]


def count_words(text: str) -> int:
    """Number of words, as budgets count them (see `word_ends`)."""
    return len(word_ends(text))


def outer_paths(path: str) -> list[str]:
    """The inner paths above a path, from the top: a, a.b of a.b.c."""
    words = path.split(".")
    return [".".join(words[:end]) for end in range(1, len(words))]


@dataclass(frozen=True)
class Tombstone:
    """What a leaf held when it was emptied, and the first version without it."""

    value: str
    version: int


@dataclass(frozen=True)
class Change:
    """A leaf that differs between two trees; None where a tree has no value there."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class PersonaTree:
    """values: non-empty texts by leaf path, in the schema's order, new leaves last; version: how many chunks made it, 0
    for a tree that nothing was written to; tombstones: the leaves that were emptied and are still empty.

    Two trees are equal when schema, values, version and tombstones are. Values are cleaned (`clean_text`). Raises
    InputError for a path that the schema does not permit and for a value that is no text or empty.
    """

    schema: Schema = field(repr=False)
    values: Mapping[str, str] = field(default_factory=dict)
    version: int = 0
    tombstones: Mapping[str, Tombstone] = field(default_factory=dict)

    def __post_init__(self) -> None:
        clean: dict[str, str] = {}
        for path, value in self.values.items():
            self._check_path(path)
            if not isinstance(value, str) or not clean_text(value):
                raise InputError(f"{path} holds {value!r:.60}: write text, or leave the leaf out.")
            clean[path] = clean_text(value)
        for path in self.tombstones:
            self._check_path(path)
        new = sorted(path for path in clean if path not in self.schema.leaves)
        for path in new:
            for outer in outer_paths(path):
                if outer in clean:
                    raise InputError(f"{path} lies below {outer}, which holds a value: a leaf has no leaves below it.")
        ordered = {path: clean[path] for path in (*self.schema.leaves, *new) if path in clean}
        object.__setattr__(self, "values", MappingProxyType(ordered))
        object.__setattr__(self, "tombstones", MappingProxyType(dict(self.tombstones)))

    def _check_path(self, path: str) -> None:
        if not isinstance(path, str) or (path not in self.schema.leaves and not self.schema.may_extend(path)):
            known = self.schema.canonical(path) if isinstance(path, str) else None
            hint = f": write {known}" if known else ""
            raise InputError(f"{path!r:.80} is no leaf of the schema {self.schema.name}{hint}.")

    def __reduce__(self) -> tuple[Any, ...]:  # a mapping proxy cannot be pickled
        return type(self), (self.schema, dict(self.values), self.version, dict(self.tombstones))

    @property
    def extensions(self) -> tuple[str, ...]:
        """Paths of the filled leaves that the extension policy permitted: they do not stand in the schema."""
        return tuple(path for path in self.values if path not in self.schema.leaves)

    def budget(self, path: str) -> int:
        """How many words the leaf may hold."""
        leaf = self.schema.leaves.get(path)
        return DEFAULT_BUDGET if leaf is None else leaf.budget

    @property
    def words(self) -> Mapping[str, int]:
        """Words of each value by path; their sum is the size of the tree."""
        return {path: count_words(value) for path, value in self.values.items()}

    def diff(self, other: PersonaTree) -> tuple[Change, ...]:
        """What `other` has that this tree has not, in the order of this schema, other leaves last. Versions and
        tombstones do not count."""
        paths = dict.fromkeys((*self.schema.leaves, *sorted(self.values.keys() | other.values.keys())))
        both = ((path, self.values.get(path), other.values.get(path)) for path in paths)
        return tuple(Change(path, before, after) for path, before, after in both if before != after)

    def to_json(self) -> dict[str, Any]:
        """The non-empty leaves as nested objects; `values` is the flat form."""
        tree: dict[str, Any] = {}
        for path, value in self.values.items():
            *outer, last = path.split(".")
            place = tree
            for word in outer:
                place = place.setdefault(word, {})
            place[last] = value
        return tree


def tree_from_json(schema: Schema, data: Any, version: int = 0) -> PersonaTree:
    """The tree of `PersonaTree.to_json`, or of any nested tree of texts; empty ones are left out. Another name of a leaf
    (a twin, say) becomes its path. Raises InputError for what is no such tree and for a leaf that is filled twice."""
    if not isinstance(data, Mapping):
        raise InputError("a tree is a JSON object of groups with text at their leaves.")
    values: dict[str, str] = {}
    for path, value in _walk(data):
        if value is None or value == "":
            continue
        known = schema.canonical(path) or path
        if known in values:
            raise InputError(f"{known} is filled twice, also as {path:.80}.")
        values[known] = value
    return PersonaTree(schema, values, version)


def _walk(tree: Mapping[str, Any], outer: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        path = (*outer, str(key))
        if isinstance(value, Mapping):
            if len(path) > 16:
                raise InputError(f"{'.'.join(path):.80} is nested too deeply.")
            yield from _walk(value, path)
        else:
            yield ".".join(path), value
