"""The grammar admits what `render` prints about a schema's paths, and nothing else."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from extractors.persona_tree import (
    NO_OP,
    Leaf,
    Operation,
    PersonaTree,
    PersonaTreeExtractor,
    Schema,
    execute,
    load_schema,
)
from extractors.persona_tree.grammar import admits, grammar, grammar_for
from extractors.persona_tree.operations import clean_value, parse, render
from extractors.persona_tree.tree import clean_text

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


FEW = load_schema("quickstart")
IN_ORDER = PersonaTreeExtractor(schema="quickstart")


@given(operations(FEW), st.sets(st.sampled_from(sorted(FEW.leaves))))
def test_the_grammar_for_a_tree_admits_a_list_in_order_exactly_where_the_executor_takes_all_of_it(
    some: tuple[Operation, ...], filled: set[str]
) -> None:
    values = [each.value for each in some if each.value is not None]
    assume(all(value == clean_text(value) and value[0].isprintable() for value in values))  # short enough, too
    matcher = xgrammar.GrammarMatcher(compiled(grammar_for(FEW, filled)))
    admitted = matcher.accept_string(IN_ORDER.render(some)) and matcher.is_completed()
    assert admitted == (not execute(PersonaTree(FEW, dict.fromkeys(filled, "x")), some).rejected)


def test_a_value_for_a_tree_ends_within_ten_characters_for_each_word_of_its_leafs_budget() -> None:
    path, leaf = next(iter(FEW.leaves.items()))
    for value, due in (
        (" ".join(["tea"] * leaf.budget), True),
        (" ".join(["x" * 10] * leaf.budget), True),
        ("x" * 10 * leaf.budget, True),
        ("x" * (10 * leaf.budget + 1), False),
        ('a "b" \\ 😀 茶', True),
        ("a  b", False),
    ):
        matcher = xgrammar.GrammarMatcher(compiled(grammar_for(FEW, ())))
        text = render((Operation("ADD", path, value),))
        assert bool(matcher.accept_string(text) and matcher.is_completed()) == due, value


def test_a_list_for_a_tree_ends_with_eight_operations_wherever_they_stand() -> None:
    for schema in (FEW, PLAIN):
        leaves = list(schema.leaves)
        for chosen in (leaves[:9], leaves[-9:], leaves[:: len(leaves) // 9][:9]):
            for count in (1, 8, 9):
                matcher = xgrammar.GrammarMatcher(compiled(grammar_for(schema, ())))
                text = render([Operation("ADD", path, "tea") for path in chosen[:count]])
                assert bool(matcher.accept_string(text) and matcher.is_completed()) == (count <= 8), text


@pytest.mark.parametrize("value", ["\x08", "\u200b", "\ufeff\ufeff", "\ue000"])
def test_a_value_that_nobody_sees_is_not_admitted_for_a_tree(value: str) -> None:
    some = (Operation("ADD", next(iter(FEW.leaves)), value),)
    matcher = xgrammar.GrammarMatcher(compiled(grammar_for(FEW, ())))
    assert execute(PersonaTree(FEW), some).rejected and not matcher.accept_string(render(some))


def test_another_order_is_not_admitted_for_a_tree() -> None:
    first, second = list(FEW.leaves)[:2]
    text = render((Operation("ADD", second, "x"), Operation("ADD", first, "x")))
    assert accepts(FEW, text)
    matcher = xgrammar.GrammarMatcher(compiled(grammar_for(FEW, ())))
    assert not (matcher.accept_string(text) and matcher.is_completed())


def admits_for(schema: Schema, filled: tuple[str, ...], some: tuple[Operation, ...]) -> bool:
    matcher = xgrammar.GrammarMatcher(compiled(grammar_for(schema, filled)))
    return bool(matcher.accept_string(render(some)) and matcher.is_completed())


THERE = (f"{GROUP}.Godchildren", f"{GROUP}.In_Laws.Tom")  # new leaves that a tree has
OTHER_CASE = st.sampled_from(["Pets", "In_Laws", "Godchildren", "constructor", "Constructors", "__x__", "Pet"]).flatmap(
    lambda name: st.sampled_from(
        [name, name.lower(), name.upper(), f"{name}.Tom", f"{name}.prototype", f"In_Laws.{name}"]
    )
)


@given(st.sampled_from(["ADD", "UPDATE", "DELETE"]), NEW | OTHER_CASE.map(lambda name: f"{GROUP}.{name}"))
def test_the_grammar_for_a_tree_admits_a_new_leaf_only_where_the_executor_takes_it(kind: Any, path: str) -> None:
    some = (Operation(kind, path, None if kind == "DELETE" else "x"),)
    taken = not execute(PersonaTree(EXTENDED, dict.fromkeys(THERE, "x")), some).rejected
    admitted = admits_for(EXTENDED, THERE, some)
    assert not admitted or taken
    own = ".".join(path.split(".")[:3])
    if taken and EXTENDED.canonical(own) is None and not any(name.startswith("_") for name in path.split(".")):
        assert admitted  # what is left out: names below another name of a leaf, and those that begin with _


def test_a_list_for_a_tree_takes_one_new_leaf_for_each_group() -> None:
    first, second = Operation("ADD", f"{GROUP}.Friends.Ana", "x"), Operation("ADD", f"{GROUP}.In_Laws.Ida", "x")
    known = Operation("DELETE", THERE[1])
    for some, due in (
        ((known, first, second), True),
        ((first, Operation("ADD", f"{GROUP}.Neighbours", "x")), False),
        ((first, first), False),
        ((first, known), False),
    ):
        assert admits_for(EXTENDED, THERE, some) == due, some
    assert not execute(PersonaTree(EXTENDED, dict.fromkeys(THERE, "x")), (known, first, second)).rejected


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
    """A model without any sense, which takes a random admitted token at each step, stops with operations that the executor
    takes."""
    import random

    schema = load_schema("quickstart")
    filled = dict.fromkeys(list(schema.leaves)[::3], "x")
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
    grammars = xgrammar.GrammarCompiler(info).compile_grammar(grammar_for(schema, filled))
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
                done = execute(PersonaTree(schema, filled), parse(text))
                assert admits(schema, text) and done.applied and not done.rejected, text
                break
            text += vocabulary[token]
    assert finished >= 15
