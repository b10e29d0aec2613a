r"""The grammar for guided decoding: what `operations.render` prints about the paths of a schema, and nothing else.

It is EBNF in llama.cpp's dialect (GBNF), which xgrammar in process and vLLM's structured outputs (xgrammar or guidance)
read as it stands. Under it a model can name neither an unknown path nor print a line that has to be repaired. It cannot
know what a tree holds: an operation that the schema admits may still be refused by the executor.

A value begins and ends with "ink", a character that is no white space, since trees hold values without outer white
space; escapes are those of `operations.quote`, one per character. New leaves (`Schema.extension`) are any name that the
group does not have yet: the complement of its names, letter by letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extractors.persona_tree.operations import parse, render
from extractors.persona_tree.schema import LONGEST_NAME, Schema

# In character classes: what a JSON string of ours never holds as it is, and the white space that it does.
_NEVER = r"\"\\\x00-\x1f\x7f-\x9f\u2028\u2029"
_SPACES = r" \xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
# Escapes by what they stand for: Python's str.strip counts 09 to 0d, 1c to 1f, 85, 2028 and 2029 as white space.
_INK_ESCAPE = r'"\\" (["\\b] | "u00" ("0" [0-7ef] | "1" [0-9ab] | "7f" | "8" [0-46-9a-f] | "9" [0-9a-f]))'
_SPACE_ESCAPE = r'"\\" ([ntrf] | "u000b" | "u001" [c-f] | "u0085" | "u202" [89])'
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"


def grammar(schema: Schema) -> str:
    """The EBNF for `schema` and its extension policy; the rule `root` is the whole answer."""
    rules = {
        "root": r'"NO_OP()" | op ("\n" op)*',
        "op": '("ADD(" | "UPDATE(") path ", " value ")" | "DELETE(" path ", None)"',
        "value": r'"\"" ink (space* ink)* "\""',
        "ink": rf"[^{_NEVER}{_SPACES}] | {_INK_ESCAPE}",
        "space": rf"[{_SPACES}] | {_SPACE_ESCAPE}",
    }
    tree: dict[str, Any] = {}
    for path in schema.leaves:
        *outer, last = path.split(".")
        place = tree
        for word in outer:
            place = place.setdefault(word, {})
        place[last] = {}
    new: dict[str, str] = {}
    rules["path"] = _paths(schema, tree, (), new)
    if new:
        rules |= new
        rules["letter"] = "[A-Za-z0-9_]"
        rules["below"] = f'"." letter{{1,{LONGEST_NAME}}}'
    return "".join(f"{name} ::= {body}\n" for name, body in rules.items())


def admits(schema: Schema, text: str) -> bool:
    """Whether `text` is, to the letter, a list of operations on leaves of `schema` or new ones that it permits."""
    operations = parse(text)
    return (
        isinstance(operations, tuple)
        and render(operations) == text
        and all(
            operation.kind == "NO_OP" or operation.path in schema.leaves or schema.may_extend(operation.path)
            for operation in operations
        )
    )


def _paths(schema: Schema, node: Mapping[str, Any], outer: tuple[str, ...], new: dict[str, str]) -> str:
    """Alternatives for what may follow the path `outer`; rules for new names are put into `new`."""
    parts = []
    for name, inner in node.items():
        parts.append(f'"{name}." ({_paths(schema, inner, (*outer, name), new)})' if inner else f'"{name}"')
    path, extension = ".".join(outer), schema.extension
    permitted = any(path == group or path.startswith(group + ".") for group in extension.groups)
    more = extension.max_depth - len(outer) - 1
    if permitted and more >= 0:
        rule = f"new{sum(name.endswith('-') for name in new)}-"
        _other_than(sorted(node), "", rule, new)
        parts.append(rule + (f" below{{0,{more}}}" if more else ""))
    return " | ".join(parts)


def _other_than(names: list[str], prefix: str, rule: str, rules: dict[str, str]) -> None:
    """Rules for the rest of a name that begins with `prefix`, is none of `names` and not longer than LONGEST_NAME."""
    room = LONGEST_NAME - len(prefix)
    longer = [name for name in names if name.startswith(prefix) and len(name) > len(prefix)]
    following = sorted({name[len(prefix)] for name in longer}) if room else []
    rules[rule] = ""  # its place in the order of rules, and in their number
    parts = []
    for place, letter in enumerate(following):
        _other_than(longer, prefix + letter, f"{rule}{place}x", rules)
        parts.append(f'"{letter}" {rule}{place}x')
    if room:
        others = "".join(letter for letter in _LETTERS if letter not in following)
        parts.append(f"[{others}]" + (f" letter{{0,{room - 1}}}" if room > 1 else ""))
    if prefix and prefix not in names:
        parts.append('""')
    rules[rule] = " | ".join(parts)
