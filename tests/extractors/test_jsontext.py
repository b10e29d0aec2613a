from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from extractors.contract import ExtractionError
from extractors.jsontext import Found, excerpt, find_json

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)
CONTAINERS = st.lists(VALUES, max_size=4) | st.dictionaries(st.text(), VALUES, max_size=4)
PLAIN = st.text(st.characters(exclude_characters="[{<", exclude_categories=["Cs"]))


def anything(value: Any) -> bool:
    return True


def is_list_of_objects(value: Any) -> bool:
    items = [value] if isinstance(value, dict) else value
    return all(isinstance(item, dict) and "a" in item for item in items)


def found(text: str, fits: Any = anything) -> Any:
    answer = find_json(text, fits)
    assert isinstance(answer, Found), answer
    return answer.value


def error(text: str, fits: Any = anything) -> ExtractionError:
    answer = find_json(text, fits)
    assert isinstance(answer, ExtractionError), answer
    return answer


@given(CONTAINERS, st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_every_json_container_is_read_as_the_json_module_reads_it(value: Any, ascii_only: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert found(text) == json.loads(text)


@given(CONTAINERS, PLAIN, PLAIN)
@example([{"a": "</think>[]"}], "", " </thin")
def test_prose_around_a_value_changes_neither_the_value_nor_its_place(value: Any, before: str, after: str) -> None:
    text = json.dumps(value)
    answer = find_json(before + text + after, anything)
    assert answer == Found(json.loads(text), len(before), len(before) + len(text))


@given(CONTAINERS, st.data())
def test_a_text_that_ends_inside_a_value_is_an_error(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=False)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    assert error(cut).kind in ("truncated", "schema")


@given(st.text() | st.text(alphabet="[]{}\"'\\,:.-0aut nl<>/think\n"))
def test_arbitrary_text_gives_a_value_or_an_error_and_never_raises(text: str) -> None:
    answer = find_json(text, lambda value: isinstance(value, list))
    if isinstance(answer, ExtractionError):
        assert 0 <= answer.position <= len(text)
        assert answer.excerpt in text and len(answer.excerpt) <= 80
    else:
        assert text[answer.start] in "[{" and text[answer.end - 1] in "]}"


@pytest.mark.parametrize("opening", ["[", "[[", "[{", '{"a":', '[{"a": ['])
@pytest.mark.parametrize("closing", ["", "]" * 100_000, "}" * 100_000, "x"])
def test_endless_nesting_is_an_error(opening: str, closing: str) -> None:
    assert error(opening * 100_000 + closing, is_list_of_objects)


@pytest.mark.parametrize("opening", ["{", "['", '["', "[1,", "['a', ", "[null"])
@pytest.mark.parametrize("closing", ["", "]" * 5_000, "x"])
def test_endless_brackets_that_open_nothing_do_not_raise(opening: str, closing: str) -> None:
    find_json(opening * 5_000 + closing, is_list_of_objects)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2,]", [1, 2]),
        ('{"a": 1,}', {"a": 1}),
        ("{'a': 'it's', 'b': \"c\"}", {"a": "it's", "b": "c"}),
        ("{'a': True, 'b': None, 'c': false}", {"a": True, "b": None, "c": False}),
        ('[{"a": 1} {"a": 2}]', [{"a": 1}, {"a": 2}]),
        (r'["\x41 \u12 \uzzzz \'"]', [r"\x41 \u12 \uzzzz '"]),
        (r'["\ud83d\ude00"]', ["😀"]),
        (r'["\ud83d", "a\ude00b"]', ["\ufffd", "a\ufffdb"]),
        ('["line\nbreak\ttab"]', ["line\nbreak\ttab"]),
        ("[\ufeff1\u00a0,\u20032 ]", [1, 2]),
        ("[-1.5e3, 0, 12]", [-1500.0, 0, 12]),
    ],
)
def test_slips_that_leave_the_meaning_whole_are_read(text: str, value: Any) -> None:
    assert found(text) == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        (" \n\u2003\ufeff\t", "empty"),
        ("<think>\n\n</think>\n\n", "empty"),
        ("<think> [1]", "truncated"),
        ("  <think> [1] </think> <think> [2]", "truncated"),
        ("There is nothing here.", "no_json"),
        ("null", "no_json"),
        ("{about travel}", "no_json"),
        ("[007]", "no_json"),
        ("[NaN]", "no_json"),
        ("[1e999]", "no_json"),
        ("[" + "9" * 5000 + "]", "no_json"),
        ("{ \n \n \n", "truncated"),
        ("[", "truncated"),
        ("[tru", "truncated"),
        ("[1", "truncated"),
        ('["a\\', "truncated"),
        ('[{"a": 1}, {"a" 2}]', "schema"),
        ('[{"a": 1}, ...]', "schema"),
        ('{"a": 1 "b": 2}', "schema"),
        ('{"a": 1, "a": 2}', "schema"),
        ("[{a: 1}]", "schema"),
    ],
)
def test_each_way_to_fail_has_its_kind(text: str, kind: str) -> None:
    assert error(text).kind == kind


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('[] means none; here: [{"a": 1}] and not {x} or [2]', [{"a": 1}]),
        ('{about travel}, here is: [{"a": 1}]', [{"a": 1}]),
        ('[this: [{"a": 1}]', [{"a": 1}]),
        ('The form is [{"a": …}]. Answer: [{"a": 1}]', [{"a": 1}]),
        ('[{"a": 1}]\nExplanation: [{"a": …}]', [{"a": 1}]),
        ('[{"a": 1}]\nAnd then: [{"a": 2', [{"a": 1}]),
        ('{"a": 1}\n{"a": 2}', [{"a": 1}, {"a": 2}]),
        ('1. {"a": 1}\n2. {"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ('Say [{"a": 1}] first? No.</think>[{"a": 2}]', [{"a": 2}]),
        ('a draft {"a": …</think>\n\n[{"a": "</think>"}]', [{"a": "</think>"}]),
        ("[1] is a citation, the answer is []", []),
    ],
)
def test_the_answer_is_told_from_brackets_around_it(text: str, value: Any) -> None:
    assert found(text, is_list_of_objects) == value


@pytest.mark.parametrize(
    ("text", "kind", "partial"),
    [
        ('[{"a": 1}, {"a": 2}, {"a": ', "truncated", [{"a": 1}, {"a": 2}]),
        ('{"list": [{"a": 1}, {"a": ', "truncated", [{"a": 1}]),
        ('{"a": 1}\n{"a": ', "truncated", [{"a": 1}]),
        ('{"a": 1}\n{"a" 2}\n{"a": 3}', "schema", [{"a": 1}, {"a": 3}]),
        ('[{"a": 1}, {"a" 2}, {"a": 3}]', "schema", [{"a": 1}]),
        ('["a": 1}, {"a": 2}]', "schema", ["a"]),
        ('[{"a": 1, {"a": 2}] {"x": 1}', "schema", []),
        ('[] or rather [{"a": ', "truncated", []),
        ('[] or rather [{"a" 1}]', "schema", []),
    ],
)
def test_a_part_of_a_broken_answer_is_never_taken_for_the_answer(text: str, kind: str, partial: list[Any]) -> None:
    fault = error(text, is_list_of_objects)
    assert (fault.kind, fault.partial) == (kind, partial)


def test_an_answer_of_another_shape_is_not_hidden_by_an_empty_list_in_the_prose() -> None:
    assert found('[] if none. [{"head": "Mia", "tail": "cat"}]', is_list_of_objects) == [{"head": "Mia", "tail": "cat"}]


def test_an_excerpt_is_the_text_around_a_position() -> None:
    text = "".join(chr(65 + i % 26) for i in range(300))
    assert excerpt(text, 0) == text[:80]
    assert excerpt(text, 300) == text[220:]
    assert excerpt(text, 150) == text[110:190]
    assert excerpt("short", 3) == "short"
