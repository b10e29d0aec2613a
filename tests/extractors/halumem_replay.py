"""HaluMem's pilot slices as operations on a tree, by a plain rule: a memory goes to the leaf whose name and meaning share
most words with it. It is not what the memories mean; it is real text in real order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from extractors.persona_tree import NO_OP, Operation, Schema

_WORD = re.compile(r"[a-z]{4,}")


def words_of_leaves(schema: Schema) -> dict[str, set[str]]:
    """Words of each leaf's name, aliases and meaning."""
    return {
        leaf.path: set(_WORD.findall(f"{leaf.path.rpartition('.')[2]} {leaf.meaning} {' '.join(leaf.aliases)}".lower()))
        for leaf in schema.leaves.values()
    }


def nearest_leaf(text: str, words: dict[str, set[str]]) -> tuple[str, int]:
    """The leaf that shares most words with a text, and how many."""
    said = set(_WORD.findall(text.lower()))
    path = max(words, key=lambda name: len(words[name] & said))
    return path, len(words[path] & said)


def sessions_as_operations(path: Path, schema: Schema) -> Iterator[tuple[str, list[Operation]]]:
    """For every session its start time, and one operation or two for each memory of it that counts: ADD for a new one,
    UPDATE for a changed one, and DELETE of the leaf that the old memory was at if that is another. A value repeats what
    its leaf was given before, as the operations' rules want it."""
    words = words_of_leaves(schema)

    def leaf_for(text: str) -> str:
        return nearest_leaf(text, words)[0]

    given: dict[str, str] = {}
    with path.open(encoding="utf-8") as file:
        for line in file:
            for session in json.loads(line)["sessions"]:
                operations = []
                for memory in session["memory_points"]:
                    if memory["memory_source"] == "interference":
                        continue
                    text = memory["memory_content"]
                    leaf, changed = leaf_for(text), memory["is_update"] == "True"
                    old = leaf_for(memory["original_memories"][0]) if changed and memory["original_memories"] else leaf
                    if old != leaf:
                        operations.append(Operation("DELETE", old))
                        given.pop(old, None)
                    given[leaf] = f"{given.get(leaf, '')} {text}".strip()
                    operations.append(Operation("UPDATE" if changed else "ADD", leaf, given[leaf]))
                yield session["start_time"], operations or [NO_OP]
