"""A PersonaTree and its history as a person reads them: pure functions that return text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from extractors.persona_tree.executor import Applied, printable
from extractors.persona_tree.store import Edit, Record
from extractors.persona_tree.tree import Change, PersonaTree, count_words, outer_paths

_LONGEST = 1000  # characters of a value; those of the schema's leaves are far shorter


def show_tree(tree: PersonaTree, meanings: bool = False, deleted: bool = False) -> str:
    """The filled leaves, indented below their groups. meanings: what each leaf is for; deleted: also the emptied leaves,
    with what they held. A leaf that does not stand in the schema is marked with +."""
    schema = tree.schema
    words = sum(tree.words.values())
    known = len(tree.values) - len(tree.extensions)
    added = f" and {len(tree.extensions)} added" if tree.extensions else ""
    lines = [
        f"Version {tree.version}, schema {schema.name} {schema.version}: {known} of {len(schema.leaves)} leaves{added}, "
        f"{words} words"
    ]
    shown: set[str] = set()
    for path in _in_groups(tree, deleted):
        for outer in outer_paths(path):
            if outer not in shown:
                shown.add(outer)
                lines.append(_indented(outer, outer.rpartition(".")[2]))
        leaf = schema.leaves.get(path)
        name = path.rpartition(".")[2] + ("" if leaf else " +")
        if meanings and leaf:
            name += f" ({leaf.meaning})"
        if path in tree.values:
            lines.append(_indented(path, f"{name}: {_text(tree.values[path])}"))
        else:
            tombstone = tree.tombstones[path]
            lines.append(
                _indented(path, f"{name}: deleted in version {tombstone.version}, was {_text(tombstone.value)}")
            )
    return "\n".join(lines) + "\n"


def show_diff(changes: Sequence[Change]) -> str:
    """One line a leaf: + filled, - emptied, ~ changed."""
    return "".join(_change(each.path, each.before, each.after) + "\n" for each in changes) or "no difference\n"


def show_history(records: Sequence[Record]) -> str:
    """What each chunk did to the whole tree, and what was refused."""
    lines = []
    for record in records:
        lines.append(_when(record.version, record.time, record.chunk_id))
        changes = [each for each in record.applied if each.effect not in ("none", "unchanged")]
        lines += [f"  {_applied(each)}" for each in changes]
        lines += [
            f"  refused {printable(each.operation.kind)} {printable(each.operation.path)}: {each.reason}, {each.detail}"
            for each in record.rejected
        ]
        if not changes and not record.rejected:
            lines.append("  nothing changed")
    return "\n".join(lines or ["no chunk yet"]) + "\n"


def show_leaf(path: str, edits: Sequence[Edit]) -> str:
    """The history of one leaf."""
    lines = [path]
    for edit in edits:
        lines.append(f"  {_when(edit.version, edit.time, edit.chunk_id)}")
        after = edit.applied.after
        lines.append(f"    {'deleted' if after is None else _text(after)}{_shortened(edit.applied)}")
    return "\n".join(lines if edits else [*lines, "  never written"]) + "\n"


def _in_groups(tree: PersonaTree, deleted: bool) -> list[str]:
    """The paths to show, each below its group: where a group has its first leaf in the schema, its added ones follow."""
    paths = [*tree.schema.leaves, *sorted((tree.values.keys() | tree.tombstones.keys()) - tree.schema.leaves.keys())]
    place: dict[str, int] = {}
    for path in paths:
        for outer in (*outer_paths(path), path):
            place.setdefault(outer, len(place))
    wanted = [path for path in paths if path in tree.values or (deleted and path in tree.tombstones)]
    return sorted(wanted, key=lambda path: [place[part] for part in (*outer_paths(path), path)])


def _indented(path: str, text: str) -> str:
    return "  " * path.count(".") + text


def _when(version: int, time: str, chunk: str) -> str:
    return f"Version {version}, {printable(time)}, chunk {printable(chunk)}"


def _applied(each: Applied) -> str:
    return _change(each.operation.path, each.before, each.after) + _shortened(each)


def _shortened(each: Applied) -> str:
    if each.compression == "none" or each.after is None:
        return ""
    return f" [shortened to {count_words(each.after)} words]"


def _change(path: str, before: str | None, after: str | None) -> str:
    if before is None:
        return f"+ {path}: {_text(after or '')}"
    if after is None:
        return f"- {path}: {_text(before)}"
    return f"~ {path}: {_text(before)} -> {_text(after)}"


def _text(value: str) -> str:
    return printable(value, _LONGEST)
