"""The executor: the only way in which operations change a PersonaTree, and the gate that keeps it whole.

The paper's code (Inside Out, arXiv 2601.05171) assigns whatever it parsed: a path below a leaf replaces the leaf's text, a
value at a group deletes the group. Here an operation is applied or refused with a reason, and nothing else happens:

- Only leaves of the schema are written, and new ones that its extension policy permits. Paths are exact: another name or
  another case of a leaf is refused with the name to write (`PersonaTreeExtractor.parse` resolves them before).
- ADD and UPDATE both set the leaf; where ADD meets a filled leaf or UPDATE an empty one, `Applied.swapped` says so.
- A value is cleaned (`tree.clean_text`) and, where it has more words than the leaf's budget, shortened: see `shorten`. The
  executor rewrites nothing else: it merges no values and corrects none.
- Operations count in their order. Of several on one leaf the last that is admissible is applied; those before it are
  reported as superseded. `before` is the value of the version before the list.
- DELETE needs something to delete, and leaves a tombstone. NO_OP beside other operations is refused, the others count.
- A list makes exactly one new version, also if nothing was applied: a version is a chunk. The given tree stays as it is, so
  whatever raises on the way (only an injected compressor can) leaves nothing half done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from extractors.persona_tree.operations import KINDS, Operation, is_path, operation_to_json
from extractors.persona_tree.tree import PersonaTree, Tombstone, clean_text, count_words, outer_paths, word_ends
from extractors.text import paired_surrogates

Reason = Literal[
    "form",  # an unknown kind, or a field that the kind does not have
    "path_syntax",  # not words joined by dots, or too long
    "group",  # the path of a group
    "below_leaf",  # a path below a leaf
    "other_name",  # an alias or another case of a leaf
    "unknown_path",  # nothing that the schema or its extension policy permits
    "too_deep",  # a new leaf below a permitted group, with too many names in its path
    "name",  # a new leaf whose name is too long, reserved, or another case of one that is there
    "value",  # no text, or an empty one
    "nothing_to_delete",  # the leaf is empty
    "superseded",  # a later operation of the list is on the same leaf
    "no_op",  # NO_OP beside other operations
]
Effect = Literal["added", "replaced", "unchanged", "deleted", "none"]  # none: NO_OP
Compression = Literal[
    "none",
    "rule",  # by `shorten`
    "injected",  # by the compressor that was given
    "rule_after_injected",  # by `shorten`, because what the compressor returned was over the budget or no text
]
Compress = Callable[[str, int], str]  # (value, budget in words) -> a text of at most as many

LONGEST_PATH = 400  # characters
_KEPT_PATH, _KEPT_VALUE = 200, 2000  # characters of an operation in its JSON form
# As keys they would reach the prototypes of a JavaScript service that merges a tree into its own objects.
_RESERVED = re.compile(r"__\w*__|constructor|prototype", re.IGNORECASE)
_SENTENCE_ENDS = re.compile(
    r"(?<=[.!?…;])(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St|vs)\.)(?<!\b(?:Mrs|e\.g|i\.e)\.)(?<!\bProf\.)\s+|(?<=[。！？；])\s*"
)


@dataclass(frozen=True)
class Applied:
    """An operation that counts. index: its place in the list; before, after: the leaf in the versions around it."""

    index: int
    operation: Operation
    before: str | None = None
    after: str | None = None
    compression: Compression = "none"

    @property
    def effect(self) -> Effect:
        if self.operation.kind == "NO_OP":
            return "none"
        if self.before == self.after:
            return "unchanged"
        return "deleted" if self.after is None else "added" if self.before is None else "replaced"

    @property
    def swapped(self) -> bool:
        """Whether ADD met a filled leaf or UPDATE an empty one."""
        kind = self.operation.kind
        return (kind == "ADD" and self.before is not None) or (kind == "UPDATE" and self.before is None)

    def to_json(self) -> dict[str, Any]:
        """Of a path and value longer than 200 and 2,000 characters, the beginning."""
        data: dict[str, Any] = {"index": self.index, **_operation_json(self.operation), "effect": self.effect}
        if self.operation.kind == "NO_OP":
            return data
        data |= {"before": self.before, "after": self.after, "swapped": self.swapped}
        return data | ({"compression": self.compression} if self.compression != "none" else {})


@dataclass(frozen=True)
class Rejected:
    """An operation that was refused. excerpt: of what was wrong with it, printable, at most 80 characters; detail: why,
    and what would do."""

    index: int
    operation: Operation
    reason: Reason
    detail: str
    excerpt: str

    def to_json(self) -> dict[str, Any]:
        """Of a path and value longer than 200 and 2,000 characters, the beginning."""
        fields = {"reason": self.reason, "detail": self.detail, "excerpt": self.excerpt}
        return {"index": self.index, **_operation_json(self.operation), **fields}


@dataclass(frozen=True)
class Execution:
    """A list of operations, carried out. Every operation is in `applied` or in `rejected`, in their order.

    repeated: a store had this chunk already, and this is what it did then.
    """

    tree: PersonaTree
    applied: tuple[Applied, ...]
    rejected: tuple[Rejected, ...]
    chunk_id: str = ""
    repeated: bool = False


class _Refusal(Exception):
    def __init__(self, reason: Reason, detail: str, about: object):
        super().__init__(detail)
        self.reason: Reason = reason
        self.about = about


def execute(
    tree: PersonaTree, operations: Sequence[Operation], chunk_id: str = "", compress: Compress | None = None
) -> Execution:
    """The next version of `tree`, and what became of each operation. compress: shortens values that are over their leaf's
    budget, in place of `shorten`; what it raises is passed on."""
    state = dict(tree.values)
    rejected: list[Rejected] = []
    last: dict[str, Applied] = {}  # by path; "" is that of NO_OP
    for index, operation in enumerate(operations):
        try:
            _check_form(operation, alone=len(operations) == 1)
            if operation.kind == "NO_OP":
                last[""] = Applied(index, operation)
                continue
            _check_path(tree, state, operation.path)
            after: str | None = None
            compression: Compression = "none"
            if operation.kind == "DELETE":
                if operation.path not in state:
                    raise _Refusal("nothing_to_delete", "the leaf is empty: there is nothing to delete", operation.path)
            else:
                after, compression = _value(operation.value, tree.budget(operation.path), compress)
        except _Refusal as refusal:
            rejected.append(Rejected(index, operation, refusal.reason, str(refusal), printable(refusal.about)))
            continue
        if earlier := last.get(operation.path):
            detail = f"operation {index + 1} of the list is on the same leaf: the last one counts"
            rejected.append(Rejected(earlier.index, earlier.operation, "superseded", detail, printable(operation.path)))
        last[operation.path] = Applied(index, operation, tree.values.get(operation.path), after, compression)
        if after is None:
            del state[operation.path]
        else:
            state[operation.path] = after
    applied = tuple(sorted(last.values(), key=lambda each: each.index))
    rejected.sort(key=lambda each: each.index)
    values, tombstones = dict(tree.values), dict(tree.tombstones)
    carry_out(values, tombstones, applied, tree.version + 1)
    after_all = PersonaTree(tree.schema, values, tree.version + 1, tombstones)
    return Execution(after_all, applied, tuple(rejected), chunk_id)


def carry_out(
    values: dict[str, str], tombstones: dict[str, Tombstone], applied: Sequence[Applied], version: int
) -> None:
    """Do to values and tombstones, in place, what the applied operations of `version` did. A store reads a version back
    by it."""
    for each in applied:
        path = each.operation.path
        if each.after is not None:
            values[path] = each.after
            tombstones.pop(path, None)
        elif each.before is not None:
            del values[path]
            tombstones[path] = Tombstone(each.before, version)


def shorten(value: str, budget: int) -> str:
    """At most `budget` words of a value: its last whole sentences (a semicolon ends one, too), since the newest is written
    last; where the last sentence alone is too long, its first words and an ellipsis."""
    starts = [0, *(match.end() for match in _SENTENCE_ENDS.finditer(value) if match.end() < len(value))]
    words, kept = 0, len(value)
    for start, end in zip(reversed(starts), (len(value), *reversed(starts)), strict=False):
        words += count_words(value[start:end])
        if words > budget:
            break
        kept = start
    if kept < len(value):
        return value[kept:]
    sentence = value[starts[-1] :]
    ends = word_ends(sentence)
    for end in (ends[budget - 1], *ends[max(0, budget - 2) : budget - 1]):
        cut = sentence[:end].rstrip(" ,;:–—-") + "…"
        if count_words(cut) <= budget:  # the ellipsis is a word of its own after a long word or a Chinese character
            return cut
    return sentence[: ends[budget - 1]]


def printable(text: object, longest: int = 80) -> str:
    """At most `longest` characters of a text for messages and terminals: whatever cannot be printed is escaped."""
    text = text if isinstance(text, str) else repr(text)
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _check_form(operation: Operation, alone: bool) -> None:
    kind = operation.kind
    if kind not in KINDS:
        raise _Refusal("form", f"there is no such operation: {', '.join(KINDS)} are known", kind)
    if kind == "NO_OP" and (operation.path or operation.value is not None):
        raise _Refusal("form", "NO_OP has neither path nor value", operation.path or operation.value)
    if kind == "NO_OP" and not alone:
        raise _Refusal("no_op", "NO_OP stands beside other operations", kind)
    if kind == "DELETE" and operation.value is not None:
        raise _Refusal("form", "DELETE has no value", operation.value)


def _check_path(tree: PersonaTree, state: dict[str, str], path: str) -> None:
    """Refuse a path that no value may stand at. state: the values as the operations before left them."""
    schema, extension = tree.schema, tree.schema.extension
    if not isinstance(path, str) or len(path) > LONGEST_PATH or not is_path(path):
        raise _Refusal("path_syntax", f"a path is words of A-Z, a-z, 0-9 and _ with dots, at most {LONGEST_PATH}", path)
    if path in schema.leaves or path in state:
        return
    new = [leaf for leaf in state if leaf not in schema.leaves]
    if path in schema.groups or any(leaf.startswith(path + ".") for leaf in new):
        raise _Refusal("group", "this is a group: a value stands at one of its leaves", path)
    if known := schema.canonical(path):
        raise _Refusal("other_name", f"another name of {known}: write that", path)
    outer = outer_paths(path)
    for leaf in outer:
        if leaf in schema.leaves or leaf in state:
            raise _Refusal("below_leaf", f"{leaf} is a leaf: nothing stands below it", path)
    permitted = [group for group in extension.groups if path.startswith(group + ".")]
    if extension.policy == "off" or not permitted:
        where = f", nor below {', '.join(extension.groups)}" if extension.groups else ""
        raise _Refusal("unknown_path", f"no leaf of the schema {schema.name}{where}", path)
    if len(outer) + 1 > extension.max_depth:
        raise _Refusal("too_deep", f"a new leaf's path has at most {extension.max_depth} names", path)
    if not schema.may_extend(path):
        raise _Refusal("name", "a new name is too long", path)
    there = {*schema.leaves, *schema.groups, *new, *(group for leaf in new for group in outer_paths(leaf))}
    folded = {each.casefold(): each for each in there}
    for part in (*outer, path):
        if part in there:
            continue
        if _RESERVED.fullmatch(part.rpartition(".")[2]):
            raise _Refusal("name", "a new name is reserved", path)
        if part.casefold() in folded:
            raise _Refusal("name", f"{folded[part.casefold()]} is there, in another case", path)


def _value(value: str | None, budget: int, compress: Compress | None) -> tuple[str, Compression]:
    text = clean_text(value) if isinstance(value, str) else ""
    if not text:
        raise _Refusal("value", "the value is no text or empty; DELETE takes a value away", value)
    if count_words(text) <= budget:
        return text, "none"
    if compress is None:
        return shorten(text, budget), "rule"
    result = compress(text, budget)
    short = clean_text(result) if isinstance(result, str) else ""
    if short and count_words(short) <= budget:
        return short, "injected"
    return shorten(text, budget), "rule_after_injected"


def _operation_json(operation: Operation) -> dict[str, Any]:
    """The operation, shortened, in text that can be written as UTF-8 whatever a caller made of it."""
    path, value = _text(operation.path, _KEPT_PATH), operation.value
    kept = None if value is None else _text(value, _KEPT_VALUE)
    data = operation_to_json(Operation(operation.kind, path, kept))
    return data | {"op": _text(operation.kind, _KEPT_PATH)}


def _text(data: object, longest: int) -> str:
    text = data if isinstance(data, str) else repr(data)
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return paired_surrogates(text)
