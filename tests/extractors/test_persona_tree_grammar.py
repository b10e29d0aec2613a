"""The grammar admits what `render` prints about a schema's paths, and nothing else."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.persona_tree import NO_OP, Leaf, Operation, Schema, load_schema
from extractors.persona_tree.grammar import admits, grammar
from extractors.persona_tree.operations import clean_value, parse, render

xgrammar = pytest.importorskip("xgrammar")

GROUP = "Identity.Family_System"
PLAIN = load_schema("full")
EXTENDED = PLAIN.extended(GROUP, "Behavioural.Lifestyle", max_depth=4)
NASTY = [
    '"',
    "\\",
    "\n",
    "\t",
    "\b",
    "\x00",
    "\x0b",
    "\x1c",
    "\x7f",
    "\x85",
    "\x9f",
    "\xa0",
    "\u2003",
    "\u2028",
    "\u3000",
]
NASTY += ['")', "\\n", "\\u0007", "😀", "é", " ", "x"]
VALUE = (
    st.lists(st.sampled_from(NASTY) | st.text(max_size=3), min_size=1, max_size=8)
    .map("".join)
    .map(clean_value)
    .filter(bool)
)
NEW = st.lists(st.from_regex(r"[A-Za-z0-9_]{1,40}", fullmatch=True), min_size=1, max_size=2).map(
    lambda names: ".".join((GROUP, *names))
)


def operations(schema: Schema) -> st.SearchStrategy[tuple[Operation, ...]]:
    path = st.sampled_from(sorted(schema.leaves))
    if schema.extension.groups:
        path = path | NEW.filter(schema.may_extend)
    write = st.builds(Operation, st.sampled_from(["ADD", "UPDATE"]), path, VALUE)
    some = st.lists(write | st.builds(Operation, st.just("DELETE"), path), min_size=1, max_size=3).map(tuple)
    return some | st.just((NO_OP,))


@lru_cache
def compiled(text: str) -> Any:
    info = xgrammar.TokenizerInfo(["a", "</s>"], stop_token_ids=[1])
    return xgrammar.GrammarCompiler(info).compile_grammar(text)


def accepts(schema: Schema, text: str) -> bool:
    matcher = xgrammar.GrammarMatcher(compiled(grammar(schema)))
    return bool(matcher.accept_string(text) and matcher.is_completed())


@pytest.mark.parametrize("schema", [PLAIN, EXTENDED, load_schema("quickstart")], ids=["full", "extended", "quickstart"])
@given(st.data())
def test_whatever_render_prints_is_admitted(schema: Schema, data: st.DataObject) -> None:
    text = render(data.draw(operations(schema)))
    assert accepts(schema, text), text
    assert admits(schema, text)


@given(operations(PLAIN).filter(lambda some: some != (NO_OP,)), st.data())
def test_a_text_with_one_character_more_less_or_other_is_admitted_only_if_it_is_a_list_itself(
    some: tuple[Operation, ...], data: st.DataObject
) -> None:
    text = render(some)
    place = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from(list('ab_.,"\\ \n()1\x85\u2028é')))
    for changed in (text[:place] + text[place + 1 :], text[:place] + letter + text[place:], text[:place]):
        assert accepts(PLAIN, changed) == admits(PLAIN, changed), changed


@given(operations(EXTENDED).filter(lambda some: some != (NO_OP,)), st.data())
def test_a_changed_path_is_admitted_only_if_it_is_a_leaf_or_a_permitted_new_one(
    some: tuple[Operation, ...], data: st.DataObject
) -> None:
    path = some[0].path
    place = data.draw(st.integers(0, len(path)))
    letter = data.draw(st.sampled_from([*"aA_.", ""]))
    changed = path[:place] + letter + path[place + 1 :]
    text = f"DELETE({changed}, None)"
    if admits(EXTENDED, text):
        assert accepts(EXTENDED, text)
    if accepts(EXTENDED, text):  # a new name may also be another spelling of a known one
        assert EXTENDED.canonical(changed) is not None or EXTENDED.may_extend(changed)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NO_OP",
        "NO_OP()\n",
        "NO_OP()\nNO_OP()",
        'ADD(Identity.Family_System.Pets, "cat")\nNO_OP()',
        'NO_OP()\nADD(Identity.Family_System.Pets, "cat")',
        'ADD(Identity.Family_System.Pets, "")',
        'ADD(Identity.Family_System.Pets, " cat")',
        'ADD(Identity.Family_System.Pets, "cat\\n")',
        'ADD(Identity.Family_System.Pets, "\\u0041")',
        'ADD(Identity.Family_System.Pets,"cat")',
        'ADD(Identity.Family_System.Pets, "cat")\n\nDELETE(Identity.Family_System.Pets, None)',
        'ADD(Identity.Family_System.Pets, "cat") ',
        "ADD(Identity.Family_System.Pets, None)",
        'DELETE(Identity.Family_System.Pets, "cat")',
        'ADD(Identity.Family_System, "cat")',
        'ADD(Pets, "cat")',
        'ADD(identity.Family_System.Pets, "cat")',
        'ADD(Identity.Family_System.Pets.Cat, "Pixel")',
        'ADD(Identity.Family_System.Godchildren, "Tom")',
    ],
)
def test_other_paths_and_other_white_space_are_not_admitted(text: str) -> None:
    assert not accepts(PLAIN, text) and not admits(PLAIN, text)


def test_new_names_are_admitted_where_the_policy_permits_them() -> None:
    def add(path: str) -> str:
        return f'ADD({path}, "x")'

    for path in (
        "Godchildren",
        "Pet",
        "Petsy",
        "P",
        "Parents_In_Law",
        "Friends.Tom",
        "Relatives_",
        "x" * 40,
        "Par" + "x" * 37,
    ):
        assert accepts(EXTENDED, add(f"{GROUP}.{path}")), path
    for path in ("Pets.Cat", "A.B.C", "x" * 41, "Par" + "x" * 38, "", "A.", "A b"):
        assert not accepts(EXTENDED, add(f"{GROUP}.{path}")), path
    for path in ("Identity.New", "New", "Identity.Social_Identity.New", "Biological.Lifestyle.New"):
        assert not accepts(EXTENDED, add(path)), path


def test_names_that_begin_alike_and_leaves_beside_groups_keep_apart() -> None:
    paths = ["a.b", "a.bc", "a.bcd.e", "b", "ab"]
    schema = Schema("odd", "1", {path: Leaf(path, "x") for path in paths})
    for path in paths:
        assert accepts(schema, f"DELETE({path}, None)")
    for path in ("a", "a.bcd", "a.bcd.e.f", "bc", "a.bc.e"):
        assert not accepts(schema, f"DELETE({path}, None)")


def test_every_text_that_the_grammar_leads_to_is_a_list_of_operations() -> None:
    """A model without any sense, which takes a random admitted token at each step, stops with readable operations."""
    import random

    schema = load_schema("quickstart")
    vocabulary = [
        *(chr(code) for code in range(32, 127)),
        "\n",
        "é",
        "\u2003",
        "ADD(",
        "NO_OP()",
        "Identity.",
        '")',
        "</s>",
    ]
    info = xgrammar.TokenizerInfo(vocabulary, stop_token_ids=[len(vocabulary) - 1])
    grammars = xgrammar.GrammarCompiler(info).compile_grammar(grammar(schema))
    mask = xgrammar.allocate_token_bitmask(1, len(vocabulary))
    rng = random.Random(0)
    finished = 0
    for _ in range(20):
        matcher, text = xgrammar.GrammarMatcher(grammars), ""
        for _ in range(600):
            matcher.fill_next_token_bitmask(mask)
            admitted = [place for place in range(len(vocabulary)) if int(mask[0, place // 32]) >> place % 32 & 1]
            closing = [place for place in admitted if vocabulary[place] in ('")', "</s>")]
            token = rng.choice(closing if closing and rng.random() < 0.2 else admitted)
            assert matcher.accept_token(token)
            if vocabulary[token] == "</s>":
                finished += 1
                assert admits(schema, text) and isinstance(parse(text), tuple), text
                break
            text += vocabulary[token]
    assert finished >= 15
