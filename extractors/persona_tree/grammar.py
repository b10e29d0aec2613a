r"""The grammar for guided decoding: what `operations.render` prints about the paths of a schema, and nothing else.

It is EBNF in llama.cpp's dialect (GBNF), which xgrammar in process and vLLM's structured outputs (xgrammar or guidance)
read as it stands. Under it a model can name neither an unknown path nor print a line that has to be repaired. It cannot
know what a tree holds: an operation that the schema admits may still be refused by the executor. `grammar_for` knows one
tree and leads to nothing that is refused, at a price: of the full schema it is 77 KB that a server compiles for each request.

A value begins and ends with "ink", a character that is no white space, since trees hold values without outer white
space; escapes are those of `operations.quote`, one per character. New leaves (`Schema.extension`) are any name that the
group does not have yet: the complement of its names, letter by letter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from extractors.persona_tree.operations import parse, render
from extractors.persona_tree.schema import DEFAULT_BUDGET, LONGEST_NAME, Schema
from extractors.persona_tree.tree import outer_paths

MOST_OPERATIONS = 8  # of an answer, in `grammar_for`
WORD = 10  # characters of a value, spaces not counted, for each word of its leaf's budget, in `grammar_for`
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
_RESERVED = ("constructor", "prototype")  # as the executor has it
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
    """The part of `grammar` that the executor accepts on a tree with values at the paths `filled`: DELETE only of what is
    there; each leaf at most once, which takes an order, the schema's; at most 8 operations; values as a tree holds them
    (`clean_text`), which begin with something visible and have at most 10 characters, spaces not counted, for each word of
    the leaf's budget. So every answer has an end, also that of a weak model, which would come back to a leaf, or go on with
    a value, for ever. Values of many short words may be over the budget: the executor shortens them.

    ADD and UPDATE are both admitted of any leaf, as by the executor. The kind comes before the path: a model that has begun
    with ADD, bound to empty leaves, would give what it has to say of a filled one to a wrong leaf.

    New leaves (`Schema.extension`) come last: those that the tree has, by path, then at most one for each permitted group,
    whose name is no other spelling of one that is there and begins with a letter or digit.
    """
    budgets = {path: leaf.budget for path, leaf in schema.leaves.items()}
    budgets |= dict.fromkeys(sorted(set(filled) - set(budgets)), DEFAULT_BUDGET)
    operations = []
    for path, budget in budgets.items():
        delete = f' | "DELETE({path}, None)"' if path in filled else ""
        operations.append(f'("ADD(" | "UPDATE(") "{path}, " value{budget} ")"{delete}')
    names: dict[str, str] = {}
    for group, rule, more in _new_leaves(schema, budgets, names):
        path = f'"{group}." {rule} ("." free-){{0,{more}}}'
        operations.append(f'("ADD(" | "UPDATE(") {path} ", " value{DEFAULT_BUDGET} ")"')
    # f3-2: operations from the fourth place on, one or two of them. Short names, since vLLM reads a grammar slowly.
    rules = {"root": f'"NO_OP()" | f0-{MOST_OPERATIONS}'}
    last = len(operations) - 1
    for left in range(MOST_OPERATIONS, 0, -1):
        for place in range(MOST_OPERATIONS - left, last + 1):
            rest = f' ("\\n" f{place + 1}-{left - 1})?' if left > 1 and place < last else ""
            skip = f" | f{place + 1}-{left}" if place < last else ""
            rules[f"f{place}-{left}"] = f"o{place}{rest}{skip}"
    rules |= {f"o{place}": operation for place, operation in enumerate(operations)} | names
    for budget in {*budgets.values(), *([DEFAULT_BUDGET] if names else [])}:
        rules[f"value{budget}"] = f'"\\"" seen more{{0,{WORD * budget - 1}}} "\\""'
    rules["more"] = '" "? ink'
    rules["ink"] = rf'[^{_NEVER}{_SPACES}] | "\\" ["\\]'
    rules["seen"] = rf'[^{_NEVER}{_SPACES}{_UNSEEN}] | "\\" ["\\]'
    if names:
        rules["letter"] = "[A-Za-z0-9_]"
    return _printed(rules)


def _new_leaves(schema: Schema, leaves: Collection[str], rules: dict[str, str]) -> list[tuple[str, str, int]]:
    """The groups that take new leaves; the rule for a new name in each, put into `rules`; how many names may follow it."""
    extension = schema.extension
    found: list[tuple[str, str, int]] = []
    groups = {*schema.groups, *(outer for path in leaves for outer in outer_paths(path))}
    known = {path.casefold() for path in (*leaves, *schema._names)}  # aliases, too, which only a schema lists
    for group in sorted(groups):
        more = extension.max_depth - group.count(".") - 2
        if more >= 0 and any(f"{group}.".startswith(f"{permitted}.") for permitted in extension.groups):
            start = f"{group}.".casefold()
            names = {path[len(start) :].partition(".")[0] for path in known if path.startswith(start)}
            found.append((group, f"new{len(found)}-", more))
            _other_than(sorted({*names, *_RESERVED}), "", found[-1][1], rules, any_case=True)
    if found:
        _other_than(sorted(_RESERVED), "", "free-", rules, any_case=True)
    return found


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


def _other_than(names: list[str], prefix: str, rule: str, rules: dict[str, str], any_case: bool = False) -> None:
    """Rules for the rest of a name that begins with `prefix`, is none of `names` and not longer than LONGEST_NAME. any_case:
    nor another case of `names`, which are in small letters; and the whole name does not begin with _."""
    room = LONGEST_NAME - len(prefix)
    longer = [name for name in names if name.startswith(prefix) and len(name) > len(prefix)]
    letters = _LETTERS.strip("_") if any_case and not prefix else _LETTERS
    following = sorted({name[len(prefix)] for name in longer} & set(letters)) if room else []
    rules[rule] = ""  # its place in the order of rules, and in their number
    parts = []
    for place, letter in enumerate(following):
        _other_than(longer, prefix + letter, f"{rule}{place}x", rules, any_case)
        either = f"[{letter.upper()}{letter}]" if any_case and letter.isalpha() else f'"{letter}"'
        parts.append(f"{either} {rule}{place}x")
    if room:
        others = "".join(letter for letter in letters if (letter.lower() if any_case else letter) not in following)
        parts.append(f"[{others}]" + (f" letter{{0,{room - 1}}}" if room > 1 else ""))
    if prefix and prefix not in names:
        parts.append('""')
    rules[rule] = " | ".join(parts)
