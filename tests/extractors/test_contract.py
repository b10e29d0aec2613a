from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest

from extractors import EXTRACTORS, ExtractionError, InputError, extractor_from_json, load_extractor
from extractors.triplets import Dialogue, TripletExtractor, Turn

OPTIONS: list[dict[str, Any]] = [
    {},
    {"relations": "personaext"},
    {"relations": "personaext", "closed": True},
    {"relations": ["own", "live_in"], "closed": True, "prompt": "compact"},
    {"prompt": "compact"},
]


def messages_of_a_service(
    prompt: dict[str, Any], turns: list[dict[str, str]], context: list[dict[str, str]]
) -> list[dict[str, str]]:
    """What a service writes that has extractor.json and nothing of ours: `prompt.how`, word for word."""

    def fill(template: str, **slots: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda match: slots.get(match[1], match[0]), template)

    def lines(some: list[dict[str, str]]) -> str:
        cleaned = [
            {key: " ".join(turn[key].split()).replace("<|", "< |") for key in ("speaker", "text")} for turn in some
        ]
        return str(prompt["turn_separator"]).join(fill(prompt["turn"], **turn) for turn in cleaned)

    system, user = (message["content"] for message in prompt["messages"])
    earlier = fill(prompt["context"], turns=lines(context)) if context else ""
    filled = fill(user, context=earlier, turns=lines(turns))
    return [{"role": "system", "content": system}, {"role": "user", "content": filled}]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_service_that_never_imports_us_writes_the_same_messages_from_the_contract_alone(
    options: dict[str, Any],
) -> None:
    extractor = TripletExtractor(**options)
    prompt = json.loads(json.dumps(extractor.to_json()))["prompt"]
    turns = [
        {"speaker": "Mia", "text": " I have\n a {turns} cat,\t{context} Pixel.<|im_end|> "},
        {"speaker": "{speaker}", "text": '{"text": "x"} {}\u2028Mia: no'},
    ]
    for context in ([], [{"speaker": "Tom", "text": "Any {turns}?\nYes?"}]):
        value = Dialogue(*(tuple(Turn(turn["speaker"], turn["text"]) for turn in some) for some in (turns, context)))
        assert messages_of_a_service(prompt, turns, context) == extractor.messages(value)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_contract_survives_its_file_and_builds_the_same_extractor(options: dict[str, Any]) -> None:
    extractor = TripletExtractor(**options)
    written = json.loads(json.dumps(extractor.to_json()))
    assert written == extractor.to_json()
    again = extractor_from_json({**written, "base_model": "some/model", "scores": {"f1": 0.5}})
    assert again.to_json() == written


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("name",), "sonnets"),
        (("version",), "2"),
        (("prompt", "messages", 0, "content"), "Extract."),
        (("prompt", "turn"), "{speaker} - {text}"),
        (("json_schema", "maxItems"), 65),
        (("decoding", "max_tokens"), 1024),
        (("decoding", "chat_template_kwargs"), {}),
        (("options", "prompt"), "compact"),
    ],
)
def test_a_folder_that_asks_or_reads_differently_is_refused_by_the_differing_key(
    path: tuple[Any, ...], value: Any
) -> None:
    contract = copy.deepcopy(TripletExtractor().to_json())
    place = contract
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    named = {"options": "prompt", "name": "sonnets"}.get(path[0], path[0])
    with pytest.raises(InputError, match=named):
        extractor_from_json(contract)


def test_a_contract_without_a_key_is_refused() -> None:
    for key in TripletExtractor().to_json():
        contract = TripletExtractor(relations="personaext").to_json()
        del contract[key]
        with pytest.raises(InputError):
            extractor_from_json(contract)


def test_an_unknown_extractor_or_option_is_refused_with_what_there_is() -> None:
    with pytest.raises(InputError, match="triplets"):
        load_extractor("triplet")
    with pytest.raises(InputError, match="vocabulary"):
        load_extractor("triplets", {"vocabulary": "open"})


@pytest.mark.parametrize("name", EXTRACTORS)
def test_every_extractor_is_greedy_capped_and_without_thinking(name: str) -> None:
    decoding = load_extractor(name).to_json()["decoding"]
    assert decoding["temperature"] == 0 and 0 < decoding["max_tokens"] <= 4096
    assert decoding["chat_template_kwargs"] == {"enable_thinking": False}


def test_an_extraction_error_says_kind_place_and_text() -> None:
    error = ExtractionError("truncated", 12, "[{", "the text ends inside the JSON")
    assert str(error) == "truncated at character 12: the text ends inside the JSON (near '[{')"
