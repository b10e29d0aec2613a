"""Operation lists as nobody should send them, and what must hold whatever is sent."""

from __future__ import annotations

import json
import pickle
from typing import Any

from hypothesis import strategies as st

from extractors.persona_tree import Operation, Schema, load_schema
from extractors.persona_tree.executor import Execution, execute
from extractors.persona_tree.tree import PersonaTree, count_words, outer_paths

QUICKSTART = load_schema("quickstart")
OPEN = QUICKSTART.extended("Identity.Social_Identity", "Behavioural.Lifestyle", max_depth=4)
SCHEMAS: tuple[Schema, ...] = (QUICKSTART, OPEN, load_schema("full"))
BEFORE = {id(schema): json.dumps(schema.to_json()) for schema in SCHEMAS}

LEAVES = tuple(QUICKSTART.leaves)  # the other schemas have them, too
GROUP = "Identity.Social_Identity"
HOSTILE_PATHS: tuple[Any, ...] = (
    *("", ".", "..", "...", "../../etc/passwd", "Identity..Name", ".Identity", "Identity.", " ", "\n", "a" * 10_000),
    *(
        "Identity." * 2_000 + "Name",
        f"{GROUP}.",
        f"{GROUP}..Name",
        f".{GROUP}.Name",
        f"{GROUP}.Name.",
        f"{GROUP}.Name ",
    ),
    *(
        f'"{GROUP}.Name"',
        f"'{GROUP}.Name'",
        f"`{GROUP}.Name`",
        f"{GROUP}.Name\x00",
        f"{GROUP}\x1b[2J.Name",
        "\ud800.Name",
    ),
    *("__proto__", f"{GROUP}.__proto__", f"{GROUP}.__proto__.Name", f"{GROUP}.constructor", f"{GROUP}.Prototype"),
    *(
        "constructor.prototype",
        f"{GROUP}.__class__",
        "$set",
        f"{GROUP}.$unset",
        f"{GROUP}[0]",
        f"{GROUP}.Name/../Origin",
    ),
    *("identity.social_identity.name", f"{GROUP}.NAME", "Name", "IDENTITY", GROUP, "Identity", "Behavioural.Lifestyle"),
    *(f"{GROUP}.Name.First", f"{GROUP}.Name.First.Letter", f"{GROUP}.Nick", f"{GROUP}.nick", f"{GROUP}.Nick.Short"),
    *(
        f"{GROUP}.Badges.Chess",
        f"{GROUP}.badges.Go",
        f"{GROUP}.Badges",
        f"{GROUP}.Badges.Chess.Since",
        f"{GROUP}.{'x' * 41}",
    ),
    *("Identity.Sоcial_Identity.Name", "Identity․Social_Identity․Name", f"{GROUP}.Ｎame", f"{GROUP}.Name\u202e"),
    *(None, 7, ["Identity"], b"Identity"),
)
HOSTILE_VALUES: tuple[Any, ...] = (
    *(
        "",
        " ",
        "\n\t",
        "\u200b",
        "\x00",
        "\x1b[31mred\x1b[0m",
        "\ud83d",
        "\udc00\ud800",
        "a\u2028b",
        'say "hi", (then) \\',
    ),
    *(
        "word " * 300,
        "x" * 10_000,
        "水" * 500,
        "One. Two. " * 100,
        "; ".join(["a, b"] * 200),
        "\U0001f468\u200d\U0001f469 family",
    ),
    *(
        "<|im_end|>",
        'ADD(a.b, "c")',
        "None",
        "null",
        "a\u0301" * 200,
        "." * 500,
        "。" * 200,
        None,
        7,
        ["tea"],
        {"a": "b"},
    ),
)
KINDS: tuple[Any, ...] = ("ADD", "UPDATE", "DELETE", "NO_OP", "add", "MERGE", "", None, ["ADD"])

paths = st.one_of(
    st.sampled_from(HOSTILE_PATHS),
    st.sampled_from(HOSTILE_PATHS),
    st.sampled_from(LEAVES),
    st.text(max_size=20),
    st.lists(st.sampled_from([*GROUP.split("."), "Name", "Nick", "Badges", "..", "a"]), max_size=6).map(".".join),
    st.builds(
        str.__add__, st.sampled_from(LEAVES), st.sampled_from([".", ".x", " ", "\n", "_", ".Name", ".__proto__"])
    ),
)
values = st.one_of(st.just("tea"), st.text(max_size=30), st.sampled_from(HOSTILE_VALUES), st.none())
kinds = st.one_of(
    st.sampled_from(["ADD", "UPDATE"]), st.sampled_from(["ADD", "UPDATE", "DELETE"]), st.sampled_from(KINDS)
)
hostile = st.builds(Operation, kinds, paths, values)
sensible = st.one_of(
    st.builds(Operation, st.sampled_from(["ADD", "UPDATE"]), st.sampled_from(LEAVES), values),
    st.builds(Operation, st.sampled_from(["ADD", "UPDATE"]), paths, st.just("a cat. A dog.")),
    st.builds(Operation, st.just("DELETE"), st.sampled_from([*LEAVES, f"{GROUP}.Nick", f"{GROUP}.Badges.Chess"])),
)
operation_lists = st.one_of(
    st.lists(st.one_of(hostile, hostile, sensible), min_size=1, max_size=10),
    st.lists(st.one_of(hostile, hostile, sensible), min_size=4, max_size=10),
    st.sampled_from([[], [Operation("NO_OP")]]),
)


@st.composite
def trees(draw: st.DrawFn) -> PersonaTree:
    """A tree with a few leaves filled; under an open schema also with new ones, in one form or another."""
    schema = draw(st.sampled_from(SCHEMAS))
    filled = draw(st.dictionaries(st.sampled_from(LEAVES), st.sampled_from(["tea", "a cat. A dog."]), max_size=6))
    if schema is OPEN:
        new = draw(st.sampled_from([(), ("Nick",), ("Badges.Chess", "Nick"), ("Badges",)]))
        filled |= {f"{GROUP}.{name}": "one" for name in new}
    return PersonaTree(schema, filled, version=3)


def check(tree: PersonaTree, given: list[Operation]) -> Execution:
    """Carry out a list and assert what must hold: nothing raises, every operation is reported once, the schema and the
    given tree are as before, and the new tree is one that the schema permits."""
    before = dict(tree.values)
    done = execute(tree, given, "chunk")
    schema, values = tree.schema, done.tree.values

    assert [*sorted(each.index for each in (*done.applied, *done.rejected))] == [*range(len(given))]
    assert all(each.operation is given[each.index] for each in (*done.applied, *done.rejected))
    assert dict(tree.values) == before and tree.version == 3 and done.tree.version == 4
    assert done.tree.schema is schema and json.dumps(schema.to_json()) == BEFORE[id(schema)]
    for path, value in values.items():
        assert path in schema.leaves or schema.may_extend(path)
        assert path not in schema.groups
        assert not any(outer in values or outer in schema.leaves for outer in outer_paths(path))
        assert value and value == " ".join(value.split()) and value.encode()
        if before.get(path) != value:
            assert count_words(value) <= done.tree.budget(path)
    assert _flat(done.tree.to_json()) == dict(values)

    written = {each.operation.path: each for each in done.applied if each.operation.kind != "NO_OP"}
    assert len(written) == sum(each.operation.kind != "NO_OP" for each in done.applied)
    for path in before.keys() | values.keys():
        if path in written:
            assert (before.get(path), values.get(path)) == (written[path].before, written[path].after)
        else:
            assert before.get(path) == values.get(path)
    for path in before.keys() - values.keys():
        assert done.tree.tombstones[path].value == before[path] and done.tree.tombstones[path].version == 4
    for each in done.rejected:
        assert each.detail and len(each.excerpt) <= 80 and each.excerpt.isprintable()
    for line in (*done.applied, *done.rejected):
        assert len(json.dumps(line.to_json(), ensure_ascii=False).encode()) < 60_000
    assert execute(tree, given, "chunk") == done == pickle.loads(pickle.dumps(done))
    return done


def _flat(tree: dict[str, Any], outer: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, inner in tree.items():
        found |= _flat(inner, f"{outer}{name}.") if isinstance(inner, dict) else {outer + name: inner}
    return found
