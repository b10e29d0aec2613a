"""The continuity contract: what is asked, and which label a model's text means."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors import ExtractionError, InputError, extractor_from_json, load_extractor
from extractors.continuity import BOUNDARY, CONTINUES, ContinuityExtractor, UtterancePair

EXTRACTOR = ContinuityExtractor()
LABELS = st.sampled_from((BOUNDARY, CONTINUES))
PROSE = st.text(st.characters(exclude_characters="[{<:=", exclude_categories=["Cs", "N"]), max_size=40)


def failure(text: str) -> ExtractionError:
    answer = EXTRACTOR.parse(text)
    assert isinstance(answer, ExtractionError), answer
    return answer


# What is asked


@pytest.mark.parametrize("prompt", ["standard", "compact"])
def test_the_prompt_holds_both_utterances_in_their_order_and_nothing_of_another_speaker(prompt: str) -> None:
    messages = ContinuityExtractor(prompt).messages(UtterancePair("I book a flight.", "A hotel, too."))
    assert [message["role"] for message in messages] == ["system", "user"]
    assert re.fullmatch(r"[^.]*I book a flight\.[^.]*A hotel, too\.", messages[1]["content"], re.DOTALL)


@pytest.mark.parametrize("prompt", ["standard", "compact"])
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_utterance_can_forge_a_line_or_a_slot(prompt: str, previous: str, current: str) -> None:
    extractor = ContinuityExtractor(prompt)
    pair = UtterancePair(f"{{current}} {previous}\nCurrent message: x", f"{{previous}} {current}\n---\nx")
    content = extractor.messages(pair)[1]["content"]
    assert content.count("\n") == extractor.messages(UtterancePair("a", "b"))[1]["content"].count("\n")
    assert "{current}" in content and "{previous}" in content


@pytest.mark.parametrize("options", [{}, {"prompt": "compact"}])
def test_a_service_writes_the_same_messages_from_the_contract_alone(options: dict[str, Any]) -> None:
    extractor = ContinuityExtractor(**options)
    contract = json.loads(json.dumps(extractor.to_json()))
    pair = {"previous": " I {have}\n a {current} cat ", "current": "{previous}\u2028No."}
    slots = {name: " ".join(text.split()) for name, text in pair.items()}
    system, user = contract["prompt"]["messages"]
    content = re.sub(r"\{(\w+)\}", lambda match: slots.get(match[1], match[0]), user["content"])
    assert extractor.messages(UtterancePair(**pair)) == [system, {"role": "user", "content": content}]
    assert extractor_from_json(contract).to_json() == contract


def test_an_unknown_prompt_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="standard or compact"):
        load_extractor("continuity", {"prompt": "long"})


# Rows


def test_a_row_is_read_as_it_stands() -> None:
    pair = EXTRACTOR.read_input({"previous": "Hi.", "current": " Bye. "})
    assert pair == UtterancePair("Hi.", " Bye. ")
    assert [EXTRACTOR.write_output(EXTRACTOR.read_output(label)) for label in (0, 1)] == [0, 1]


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"previous": "a"}, "current"),
        ({"previous": "a", "current": "b", "reply": "c"}, "previous"),
        ({"previous": "a", "current": " \n"}, "input.current"),
        ({"previous": 1, "current": "b"}, "input.previous"),
        (["a", "b"], "input"),
    ],
)
def test_an_input_that_is_no_pair_of_utterances_is_refused_by_its_field(data: Any, named: str) -> None:
    with pytest.raises(InputError, match=named):
        EXTRACTOR.read_input(data)


@pytest.mark.parametrize("label", [2, -1, "1", True, None, 0.0, [1]])
def test_a_gold_label_other_than_0_and_1_is_refused(label: Any) -> None:
    with pytest.raises(InputError, match="gold"):
        EXTRACTOR.read_output(label)


# What an answer means


@given(LABELS)
def test_parse_gives_back_what_render_wrote_and_the_schema_admits_it(label: int) -> None:
    from jsonschema import Draft202012Validator

    text = EXTRACTOR.render(label)
    assert EXTRACTOR.parse(text) == label and len(text) == 1
    Draft202012Validator(EXTRACTOR.json_schema).validate(json.loads(text))


def test_the_grammar_of_the_schema_admits_the_two_labels_and_no_other_text() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    vocabulary = ["0", "1", "2", "-", " ", "1.", "</s>"]
    info = xgrammar.TokenizerInfo(vocabulary, stop_token_ids=[6])
    compiled = xgrammar.GrammarCompiler(info).compile_json_schema(json.dumps(EXTRACTOR.json_schema))
    mask = xgrammar.allocate_token_bitmask(1, len(vocabulary))

    def admitted(matcher: Any) -> list[str]:
        matcher.fill_next_token_bitmask(mask)
        return [word for place, word in enumerate(vocabulary) if int(mask[0, 0]) >> place & 1]

    matcher = xgrammar.GrammarMatcher(compiled)
    assert admitted(matcher) == ["0", "1"]
    assert matcher.accept_token(1)
    assert admitted(matcher) == ["</s>"]


@given(LABELS, PROSE, PROSE)
def test_prose_fences_objects_and_thoughts_around_a_label_do_not_change_it(label: int, before: str, after: str) -> None:
    for text in (
        f"{before}\n{label}\n{after}",
        f"{before}\n**{label}**",
        f"{before}\nLabel: {label}\n{after}",
        f'{before} {{"continuity": {label}}} {after}',
        f'```json\n{{"reason": "{label} of 2", "label": "{label}"}}\n```',
        f"```\n{label}\n```",
        f"<think>{before} or rather {1 - label}.</think>\n\n{label}",
        f"{before}\n{1 - label}\n</think>\n{label}",
    ):
        assert EXTRACTOR.parse(text) == label, text


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ('"1"', 1),
        ("[0]", 0),
        ("1.0", 1),
        ("The answer is 0.", 0),
        ("Both speak of 2 trips. So the final answer is: **1**", 1),
        ("1 - the same trip", 1),
        ("0, because she turns to her work of 3 years", 0),
        ("The label should be 1, as they plan it for 2 people.", 1),
        ('{"continuity": true}', 1),
        ('{"Answer": false}', 0),
        ('{"continuity": 1}\n{"continuity": 1}', 1),
    ],
)
def test_answers_as_models_print_them(text: str, label: int) -> None:
    assert EXTRACTOR.parse(text) == label


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("<think>both speak of", "truncated"),
        ('{"continuity": 1', "truncated"),
        ('{"continuity": ', "truncated"),
        ('{"continuity" 1}', "schema"),
        ('{"continuity": 2}', "schema"),
        ('{"boundary": 1}', "schema"),
        ("{}", "schema"),
        ("2", "schema"),
        ("10", "schema"),
        ("-1", "schema"),
        ("0.8", "schema"),
        ("label: 0.8", "schema"),
        ("They had 1 dog.", "schema"),
        ("If the answer is 1, the trip goes on.", "schema"),
        ("The label is not 1.", "schema"),
        ("1. The first one is about a trip.\n2. So is the second.", "schema"),
        ("1: the first one is about a trip\n2: so is the second", "schema"),
        ("I cannot tell.", "no_json"),
        ("[]", "no_json"),
        # To which question? "Is there a boundary?" would make them the other label.
        ("yes", "no_json"),
        ("No.", "no_json"),
        ("true", "no_json"),
    ],
)
def test_an_answer_without_a_label_is_a_typed_error(text: str, kind: str) -> None:
    assert failure(text).kind == kind


@pytest.mark.parametrize(
    "text",
    [
        "0 or 1",
        "1/0",
        "[0, 1]",
        "0\n1",
        "1, maybe 0",
        "1 (or 0?)",
        "answer: 1 or 0",
        "label: 1\nlabel: 0",
        '{"label": 1, "answer": 0}',
        '{"continuity": 1}\n{"continuity": 0}',
        '{"continuity": 1}\nLabel: 0',
    ],
)
def test_an_answer_with_both_labels_is_never_resolved(text: str) -> None:
    assert failure(text).kind == "schema"


@given(st.text(max_size=80))
def test_any_text_is_a_label_that_stands_in_it_or_an_error_with_its_place(text: str) -> None:
    answer = EXTRACTOR.parse(text)
    if isinstance(answer, ExtractionError):
        assert 0 <= answer.position <= len(text) and len(answer.excerpt) <= 80 and answer.partial == ()
    else:
        assert str(answer) in text


@pytest.mark.parametrize("piece", [" ", "*", "\n", "label ", "1, ", "so ", "[", "{", "label:\n", '"'])
def test_a_model_in_a_loop_is_read_in_reasonable_time(piece: str) -> None:
    EXTRACTOR.parse("1, " + piece * (8000 // len(piece)))
