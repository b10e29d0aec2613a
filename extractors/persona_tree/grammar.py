r"""The grammar for guided decoding: what `operations.render` prints about the paths of a schema, and nothing else.

It is EBNF in llama.cpp's dialect (GBNF), which xgrammar in process and vLLM's structured outputs (xgrammar or guidance)
read as it stands. Under it a model can name neither an unknown path nor print a line that has to be repaired. It cannot
know what a tree holds: an operation that the schema admits may still be refused by the executor. `grammar_for` knows one
tree and leads to nothing that is refused.

A value begins and ends with "ink", a character that is no white space, since trees hold values without outer white
space; escapes are those of `operations.quote`, one per character. New leaves (`Schema.extension`) are any name that the
group does not have yet: the complement of its names, letter by letter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from extractors.persona_tree.operations import parse, render
from extractors.persona_tree.schema import LONGEST_NAME, Schema

LONGEST_WORD = 100  # characters in a row without a space, in `grammar_for`
# In character classes: what a JSON string of ours never holds as it is, and the white space that it does.
_NEVER = r"\"\\\x00-\x1f\x7f-\x9f\u2028\u2029"
_SPACES = r" \xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
# Format characters and private use: a value of these alone is none. Guidance reads no \u below 1000, hence not all of them.
_UNSEEN = r"\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ue000-\uf8ff\ufeff\ufff9-\ufffb"
# Escapes by what they stand for: Python's str.strip counts 09 to 0d, 1c to 1f, 85, 2028 and 2029 as white space.
_INK_ESCAPE = r'"\\" (["\\b] | "u00" ("0" [0-7ef] | "1" [0-9ab] | "7f" | "8" [0-46-9a-f] | "9" [0-9a-f]))'
_SPACE_ESCAPE = r'"\\" ([ntrf] | "u000b" | "u001" [c-f] | "u0085" | "u202" [89])'
_VALUE = {
    "value": r'"\"" ink (space* ink)* "\""',
    "ink": rf"[^{_NEVER}{_SPACES}] | {_INK_ESCAPE}",
    "space": rf"[{_SPACES}] | {_SPACE_ESCAPE}",
}
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"


def grammar(schema: Schema) -> str:
    """The EBNF for `schema` and its extension policy; the rule `root` is the whole answer."""
    rules = {
        "root": r'"NO_OP()" | op ("\n" op)*',
        "op": '("ADD(" | "UPDATE(") path ", " value ")" | "DELETE(" path ", None)"',
        **_VALUE,
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
    return _printed(rules)


def grammar_for(schema: Schema, filled: Collection[str]) -> str:
    """The part of `grammar` that the executor accepts on a tree with values at the paths `filled`: each leaf at most once,
    which takes an order, the schema's; DELETE only of what is there; values as a tree holds them (`clean_text`), which begin
    with something visible, have at most the leaf's budget of words, and words of at most 100 characters. So every answer
    has an end, also that of a weak model, which would come back to a leaf, or go on with a value, for ever. With an extension
    policy it is all of `grammar`: whether a name is new, and not another spelling of one that is there, is the executor's
    to say.
    """
    if schema.extension.groups:
        return grammar(schema)
    rules = {"root": '"NO_OP()" | first0'}
    for place, path in enumerate(schema.leaves):
        last = place + 1 == len(schema.leaves)
        rest = "" if last else f" then{place + 1}"
        rules[f"first{place}"] = f"op{place}{rest}" + ("" if last else f" | first{place + 1}")
        if place:
            rules[f"then{place}"] = f'"" | "\\n" next{place}'
            rules[f"next{place}"] = f"op{place}{rest}" + ("" if last else f" | next{place + 1}")
        delete = f' | "DELETE({path}, None)"' if path in filled else ""
        rules[f"op{place}"] = f'("ADD(" | "UPDATE(") "{path}, " value{schema.leaves[path].budget} ")"{delete}'
    for budget in {leaf.budget for leaf in schema.leaves.values()}:
        more = f' (" " word){{0,{budget - 1}}}' if budget > 1 else ""
        rules[f"value{budget}"] = f'"\\"" seen ink{{0,{LONGEST_WORD - 1}}}{more} "\\""'
    rules["word"] = f"ink{{1,{LONGEST_WORD}}}"
    rules["ink"] = rf'[^{_NEVER}{_SPACES}] | "\\" ["\\]'
    rules["seen"] = rf'[^{_NEVER}{_SPACES}{_UNSEEN}] | "\\" ["\\]'
    return _printed(rules)


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


def _printed(rules: Mapping[str, str]) -> str:
    return "".join(f"{name} ::= {body}\n" for name, body in rules.items())


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
