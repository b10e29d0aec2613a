"""Operations as text: one form that is printed, and what a model's text means."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from extractors import ExtractionError, InputError
from extractors.persona_tree.operations import (
    KINDS,
    NO_OP,
    Operation,
    clean_value,
    operation_to_json,
    operations_from_json,
    parse,
    read,
    render,
)

SEGMENT = st.from_regex(r"[A-Za-z0-9_]{1,12}", fullmatch=True)
PATH = st.lists(SEGMENT, min_size=1, max_size=5).map(".".join)
FRAGMENTS = ['"', "'", "\\", ")", "(", ", ", '")', '", None)', "\n", "\r\n", "\t", "\x00", "\x7f", "\x85", "\u2028"]
FRAGMENTS += [
    "ADD(a.b, ",
    "DELETE(a.b, None)",
    "NO_OP()",
    "</think>",
    "<think>",
    "```",
    "“",
    "”",
    "😀",
    "漢字",
    "\\n",
    "\\u12",
]
VALUE = (
    st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), min_size=1, max_size=8)
    .map("".join)
    .map(clean_value)
    .filter(bool)
)
WRITE = st.builds(Operation, st.sampled_from(["ADD", "UPDATE"]), PATH, VALUE)
OPERATIONS = st.lists(WRITE | st.builds(Operation, st.just("DELETE"), PATH), min_size=1, max_size=4).map(
    tuple
) | st.just((NO_OP,))
PROSE = st.text(st.characters(categories=["L", "N", "Zs"], include_characters=" ,.-!?"), max_size=40)

TEA = Operation("ADD", "a.b", "tea")


def failure(text: str) -> ExtractionError:
    answer = parse(text)
    assert isinstance(answer, ExtractionError), answer
    return answer


# The one form


def test_every_kind_of_operation_has_its_line() -> None:
    operations = (
        Operation("ADD", "a.b", 'says "hi", (twice)\nand\\or'),
        Operation("UPDATE", "c", "Zoë\x07"),
        Operation("DELETE", "d.e_1"),
    )
    assert render(operations) == (
        'ADD(a.b, "says \\"hi\\", (twice)\\nand\\\\or")\nUPDATE(c, "Zoë\\u0007")\nDELETE(d.e_1, None)'
    )
    assert render((NO_OP,)) == "NO_OP()"


@given(OPERATIONS)
def test_parse_gives_back_what_render_wrote(operations: tuple[Operation, ...]) -> None:
    text = render(operations)
    assert parse(text) == operations
    assert len(text.splitlines()) == len(operations)


@pytest.mark.parametrize(
    ("operations", "named"),
    [
        ((), "NO_OP"),
        ((TEA, NO_OP), "alone"),
        ((Operation("ADD", "a..b", "x"),), "path"),
        ((Operation("ADD", "a b", "x"),), "path"),
        ((Operation("ADD", "", "x"),), "path"),
        ((Operation("ADD", "a"),), "value"),
        ((Operation("UPDATE", "a", " \n"),), "value"),
        ((Operation("DELETE", "a", "x"),), "DELETE"),
        ((Operation("NO_OP", "a"),), "NO_OP"),
        ((Operation("MERGE", "a", "x"),), "op"),  # type: ignore[arg-type]
    ],
)
def test_a_list_that_has_no_form_is_refused(operations: tuple[Operation, ...], named: str) -> None:
    with pytest.raises(InputError, match=named):
        render(operations)


# What models print


@given(OPERATIONS, PROSE, PROSE)
def test_prose_fences_and_thoughts_around_the_operations_do_not_change_them(
    operations: tuple[Operation, ...], before: str, after: str
) -> None:
    # Last words that begin the name of an operation are one that was cut off.
    assume(not after or not any(f"{kind}(".startswith(after) for kind in KINDS))
    answer = render(operations)
    for text in (
        f"{before}\n{answer}\n{after}",
        f"{before}\n```\n{answer}\n```\n{after}",
        f"```python\n{answer}\n```",
        f'<think>{before} ADD(x.y, "draft")</think>\n\n{answer}',
        f'{before}\nADD(x.y, "draft")\n</think>{answer}',
        answer.replace("\n", "\r\n"),
        answer.replace("\n", "\n\n") + "\n",
        "\n".join(f"{number}. {line}" for number, line in enumerate(answer.split("\n"), start=1)),
        "\n".join(f"- `{line}`;" for line in answer.split("\n")),
        "\n".join(f"* **{line}**," for line in answer.split("\n")),
        ", ".join(answer.split("\n")) + ".",
    ):
        assert parse(text) == operations, text


@pytest.mark.parametrize(
    "text",
    [
        'ADD(a.b,"tea")',
        'ADD( a.b , "tea" )',
        'add(a.b, "tea")',
        "ADD(a.b, 'tea')",
        "ADD(a.b, “tea”)",
        "ADD(‘a.b’, ‘tea’)",
        'ADD("a.b", "tea")',
        'ADD(`a.b`, "tea")',
        'ADD(a . b, "tea")',
        'ADD (a.b, "tea",);',
        'Operation 1: ADD(a.b, "tea")',
        '> - [ADD(a.b, "tea")],',
        'ADD(a.b, " tea ")  # new',
        'ADD(a.b, "tea") - she said so',
        '\ufeffADD(a.b, "tea")',
        'ADD（a.b, "tea"）',
        '[{"op": "ADD", "path": "a.b", "value": "tea"}]',
        'Here: {"op": "ADD", "path": "a.b", "value": "tea"}',
    ],
)
def test_slips_of_form_leave_an_addition_whole(text: str) -> None:
    assert parse(text) == (TEA,)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ADD(a.b, 'it's late, isn't it')", "it's late, isn't it"),
        ('ADD(a.b, "she said "hi" (x), ok")', 'she said "hi" (x), ok'),
        ('ADD(a.b, "tea (green), no milk")', "tea (green), no milk"),
        ('ADD(a.b, "first\nsecond")', "first\nsecond"),
        (r'ADD(a.b, "caf\u00e9 \x \/ \ud83d\ude00")', "café \\x / 😀"),
        (r'ADD(a.b, "\ud83d")', "\ufffd"),
    ],
)
def test_quotes_brackets_breaks_and_escapes_within_a_value_are_read(text: str, value: str) -> None:
    assert parse(text) == (Operation("ADD", "a.b", value),)


@pytest.mark.parametrize(
    "text",
    [
        *[
            "DELETE(a.b)",
            "DELETE(a.b, None)",
            'DELETE(a.b, "")',
            "DELETE(a.b, null)",
            "DELETE(a.b,)",
            "delete('a.b', '')",
        ],
        *['DELETE(a.b, "tea")', '[{"op": "DELETE", "path": "a.b", "value": null}]'],
    ],
)
def test_a_deletion_needs_no_value(text: str) -> None:
    assert parse(text) == (Operation("DELETE", "a.b"),)


@pytest.mark.parametrize(
    "text",
    [
        *["NO_OP()", "NO_OP", "no_op()", "NOOP()", "NO-OP", "NO_OP(None)", "- NO_OP", "**NO_OP()**", "`NO_OP`."],
        *["NO_OP()\nNO_OP()", "NO_OP() # small talk", "Nothing new.\n\nNO_OP", '[{"op": "NO_OP"}]', "Answer: NO_OP"],
    ],
)
def test_an_explicit_no_op_is_one(text: str) -> None:
    assert parse(text) == (NO_OP,)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        (" \n\ufeff", "empty"),
        ("<think>ADD(a.b, ", "truncated"),
        ("Nothing has changed.", "no_json"),
        ("[]", "no_json"),
        ("I would use NO_OP here", "no_json"),
        ("ADD operations are not needed.", "no_json"),
        ('ADD(a.b, "tea', "truncated"),
        ("ADD(a.b,", "truncated"),
        ("ADD(a.", "truncated"),
        ("ADD(", "truncated"),
        ('ADD(a.b, "tea"', "truncated"),
        ("NO_OP(", "truncated"),
        ("ADD(a.b, tea)", "schema"),
        ("ADD(a.b)", "schema"),
        ('ADD(a.b, "")', "schema"),
        ("ADD(a.b, None)", "schema"),
        ('ADD(.., "tea")', "schema"),
        ('ADD(a/b, "tea")', "schema"),
        ('ADD a.b = "tea"', "schema"),
        ('MERGE(a.b, "tea")', "schema"),
        ("NO_OP(a.b)", "schema"),
        ('[{"op": "ADD", "path": "a.b"}]', "schema"),
        ('[{"op": "NO_OP"}, {"op": "DELETE", "path": "a"}]', "schema"),
        ('[{"op": "ADD", "path": "a.b", "va', "truncated"),
    ],
)
def test_an_answer_without_readable_operations_is_a_typed_error(text: str, kind: str) -> None:
    assert failure(text).kind == kind


def test_every_faulty_line_is_named_and_the_good_ones_are_kept() -> None:
    text = 'Sure:\nADD(a.b, "tea")\nMERGE(a.c, "x")\nUPDATE(a.d, x)\n\nDELETE(e, None)\nADD(.., "x")\nADD(a.f, "cof'
    reading = read(text)
    assert reading.operations == (TEA, Operation("DELETE", "e"))
    assert [(error.line, error.kind) for error in reading.errors] == [
        (3, "operation"),
        (4, "value"),
        (7, "path"),
        (8, "truncated"),
    ]
    error = failure(text)
    assert error.kind == "truncated" and error.partial == reading.operations
    assert "line 3" in error.detail and "3 more" in error.detail


def test_a_value_that_is_never_closed_does_not_swallow_the_next_operation() -> None:
    reading = read('ADD(a.c, "never\nADD(a.b, "tea")\nNO_OP')
    assert reading.operations == (TEA,)
    assert [(error.line, error.kind) for error in reading.errors] == [(1, "value"), (3, "mixed")]


def test_no_op_beside_operations_is_never_resolved() -> None:
    for text in ('ADD(a.b, "tea")\nNO_OP()', 'NO_OP()\nADD(a.b, "tea")', 'NO_OP() ADD(a.b, "tea")'):
        error = failure(text)
        assert error.kind == "schema" and "mixed" in error.detail and error.partial == (TEA,)
    assert failure("NO_OP()\nADD(a.b, tea)").partial == ()


def test_lines_after_a_value_with_raw_breaks_keep_their_numbers() -> None:
    assert [error.line for error in read('ADD(a.b, "x\ny\nz")\nADD(a, )').errors] == [4]


@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=6), max_size=12).map("".join))
def test_any_text_is_operations_that_can_be_written_or_an_error_with_its_place(text: str) -> None:
    answer = parse(text)
    if isinstance(answer, ExtractionError):
        assert 0 <= answer.position <= len(text) and len(answer.excerpt) <= 80
        assert not answer.partial or render(answer.partial)
    else:
        assert parse(render(answer)) == answer


def test_the_end_of_a_thought_counts_between_operations_and_not_within_a_value() -> None:
    assert parse('ADD(x, "draft")</think>ADD(a.b, "tea")') == (TEA,)
    assert parse('ADD(x, "dra\n</think>\nADD(a.b, "tea")') == (TEA,)
    error = failure('ADD(a.b, "tea")\nADD(x, "</think>NO_OP()')
    assert error.kind == "truncated" and error.partial == (TEA,)


@given(OPERATIONS.filter(lambda operations: operations != (NO_OP,)), st.data())
def test_an_answer_that_breaks_off_keeps_its_finished_lines_and_is_never_a_whole_answer(
    operations: tuple[Operation, ...], data: st.DataObject
) -> None:
    text = render(operations)
    cut = data.draw(st.integers(text.rfind("\n") + 2, len(text) - 1))
    error = failure(text[:cut])
    assert error.kind == "truncated" and error.partial == operations[:-1]


@pytest.mark.parametrize(
    "piece", ['ADD(a.b, "', "ADD(", '"', "\\", "- ", "NO_OP ", "ADD(a.b, 'x\n", "a.", "x: ", "1. "]
)
def test_a_model_in_a_loop_is_read_in_reasonable_time(piece: str) -> None:
    parse(piece * (6000 // len(piece)))


# JSON form


@given(OPERATIONS)
def test_operations_survive_their_json_form(operations: tuple[Operation, ...]) -> None:
    assert operations_from_json([operation_to_json(each) for each in operations]) == operations


def test_an_empty_list_in_a_row_is_no_op() -> None:
    assert operations_from_json([]) == (NO_OP,)


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ("NO_OP", "list"),
        ([{"op": "ADD", "path": "a"}], r"\[0\].*value"),
        ([{"op": "DELETE", "path": "a"}, {"op": "SET", "path": "a", "value": "x"}], r"\[1\].*SET"),
        ([{"op": "ADD", "path": "a", "value": 3}], "text"),
        ([{"op": "ADD", "path": "a", "value": "x", "why": ""}], "why"),
        ([{"op": "NO_OP"}, {"op": "DELETE", "path": "a"}], "alone"),
    ],
)
def test_gold_that_is_no_list_of_operations_is_refused_by_its_place(data: Any, named: str) -> None:
    with pytest.raises(InputError, match=named):
        operations_from_json(data)
