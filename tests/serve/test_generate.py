"""The in-process generator: greedy, batched, bound to the schema, and honest about what it could not finish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_synthesis.operations.prepare import prepare
from data_synthesis.simulate import simulate
from extractors import load_extractor
from extractors.chat import end_of_turn
from extractors.contract import ExtractionError
from extractors.persona_tree import PersonaTree, PersonaTreeExtractor, execute
from extractors.text import one_line
from extractors.triplets.extractor import Dialogue, Triplet, Turn
from serve.answers import SEPARATORS, Answer, chat_messages, count_failures, read_answer
from serve.generate import Generator
from tests.tiny import chat_template, make_tiny_chat_model, make_tiny_tokenizer

EXTRACTOR = load_extractor("triplets", {"prompt": "compact"})
CLOSED = load_extractor("triplets", {"prompt": "compact", "relations": ["have_pet", "live_with"], "closed": True})
NAMES = ("Mia", "Tom", "Ana", "Nikos", "Zoë")
INPUTS = [
    Dialogue((Turn(NAMES[i % 5], "I finally adopted a cat, Pixel." + " Really, I did." * (i * 7 % 11)),))
    for i in range(13)
]


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_chat_model(tmp_path_factory.mktemp("qwen3"), seed=2)


@pytest.fixture(scope="module")
def generator(qwen3: Path) -> Generator[Any, Any]:
    return Generator(qwen3, EXTRACTOR, max_tokens=60)


def texts(answers: list[Answer[Any]]) -> list[tuple[str, str, int]]:
    return [(answer.text, answer.finish_reason, answer.completion_tokens) for answer in answers]


# the prompt


def test_the_prompt_is_the_template_with_the_contracts_arguments(generator: Generator[Any, Any]) -> None:
    ids = generator.prompt_ids(INPUTS[0])
    text = generator.tokenizer.decode(ids)
    assert text.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")  # thinking is off, so its block is closed
    assert ids == generator.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_shots_stand_between_the_system_message_and_the_input() -> None:
    shot = (Dialogue((Turn("Tom", "I have dogs."),)), (Triplet("Tom", "have_pet", "dogs"),))
    messages = chat_messages(EXTRACTOR, INPUTS[0], [shot])
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[2]["content"] == EXTRACTOR.render(shot[1])
    assert messages[3] == EXTRACTOR.messages(INPUTS[0])[1]


def test_shots_reach_the_model(generator: Generator[Any, Any]) -> None:
    shot = (Dialogue((Turn("Tom", "I have dogs."),)), (Triplet("Tom", "have_pet", "dogs"),))
    [plain], [shown] = generator.generate(INPUTS[:1]), generator.generate(INPUTS[:1], shots=[shot])
    assert shown.prompt_tokens > plain.prompt_tokens


@pytest.mark.parametrize("template", ["chatml", "qwen3", "qwen3_5_think", "qwen2_5"])
def test_the_end_of_turn_is_found_in_the_chat_template(template: str) -> None:
    tokenizer = make_tiny_tokenizer(template)
    assert end_of_turn(tokenizer, {"enable_thinking": False}) == tokenizer.convert_tokens_to_ids("<|im_end|>")


def test_a_template_that_ends_a_turn_with_another_token_than_eos_is_understood() -> None:
    tokenizer = make_tiny_tokenizer("chatml")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|eot_id|>"]})
    tokenizer.chat_template = chat_template("chatml").replace("<|im_end|>", "<|eot_id|>")
    assert end_of_turn(tokenizer, {}) == tokenizer.convert_tokens_to_ids("<|eot_id|>")


# decoding


def greedy_by_hand(generator: Generator[Any, Any], prompt: list[int], limit: int) -> list[int]:
    import torch

    ids = list(prompt)
    with torch.inference_mode():
        while len(ids) < len(prompt) + limit:
            ids.append(int(generator.model(torch.tensor([ids])).logits[0, -1].argmax()))
            if ids[-1] in generator.stop_ids:
                break
    return ids[len(prompt) :]


def test_decoding_is_greedy_although_the_models_own_config_samples(qwen3: Path) -> None:
    config = json.loads((qwen3 / "generation_config.json").read_text())
    assert config["do_sample"] is True
    generator = Generator(qwen3, EXTRACTOR, guided=False, max_tokens=24)
    for value, answer in zip(INPUTS[:4], generator.generate(INPUTS[:4]), strict=True):
        tokens = greedy_by_hand(generator, generator.prompt_ids(value), 24)
        assert answer.completion_tokens == len(tokens)
        assert answer.text == generator.tokenizer.decode(
            [token for token in tokens if token not in generator.stop_ids], skip_special_tokens=True
        )


def test_both_ends_of_the_generation_config_stop_a_row(generator: Generator[Any, Any]) -> None:
    ids = [generator.tokenizer.convert_tokens_to_ids(token) for token in ("<|im_end|>", "<|endoftext|>")]
    assert set(ids) == set(generator.stop_ids)


@pytest.mark.parametrize("guided", [True, False])
@pytest.mark.parametrize("pad_is_eos", [False, True])
def test_a_batch_answers_what_each_row_answers_alone(tmp_path: Path, guided: bool, pad_is_eos: bool) -> None:
    folder = make_tiny_chat_model(tmp_path, "llama" if pad_is_eos else "qwen3", seed=2)
    if pad_is_eos:
        for name, key in (("tokenizer_config.json", "pad_token"), ("generation_config.json", "pad_token_id")):
            data = json.loads((folder / name).read_text())
            data[key] = data["eos_token"] if key == "pad_token" else data["eos_token_id"][0]
            (folder / name).write_text(json.dumps(data))
    alone = Generator(folder, EXTRACTOR, guided=guided, batch_size=1, max_tokens=60)
    assert (alone.pad_id == alone.tokenizer.eos_token_id) == pad_is_eos
    together = Generator(folder, EXTRACTOR, guided=guided, batch_size=5, max_tokens=60)
    expected = texts(alone.generate(INPUTS))
    assert texts(together.generate(INPUTS)) == expected
    if guided:
        assert len({tokens for _, _, tokens in expected}) > 1  # some rows end while their batch goes on


def test_answers_come_in_the_order_of_the_inputs_and_progress_is_told(generator: Generator[Any, Any]) -> None:
    seen: list[tuple[int, int]] = []
    generator.batch_size = 5
    answers = generator.generate(INPUTS, on_progress=lambda done, total: seen.append((done, total)))
    assert [answer.prompt_tokens for answer in answers] == [len(generator.prompt_ids(value)) for value in INPUTS]
    assert seen == [(5, 13), (10, 13), (13, 13)]
    assert generator.generate([]) == []


def test_an_answer_that_meets_the_token_limit_is_truncated_and_never_empty_memory(
    generator: Generator[Any, Any],
) -> None:
    answers = generator.generate(INPUTS)
    cut = [answer for answer in answers if answer.finish_reason == "length"]
    assert cut and all(isinstance(answer.value, ExtractionError) for answer in cut)
    assert {answer.value.kind for answer in cut} == {"truncated"}
    assert count_failures(answers)["truncated"] == len(cut)
    assert all(answer.completion_tokens == 60 for answer in cut)


def test_a_prompt_that_fills_the_models_context_fails_alone(qwen3: Path) -> None:
    generator = Generator(qwen3, EXTRACTOR, max_tokens=4)
    long = Dialogue((Turn("Mia", "cat " * 3000),))
    first, second = generator.generate([long, INPUTS[0]])
    assert isinstance(first.value, ExtractionError) and first.value.kind == "request"
    assert "2048" in first.value.detail and second.completion_tokens > 0


def test_torchs_threads_are_left_alone(qwen3: Path) -> None:
    import torch

    before = torch.get_num_threads()
    Generator(qwen3, EXTRACTOR)
    assert torch.get_num_threads() == before


def test_an_adapter_is_put_on_top_and_its_own_chat_template_is_used(qwen3: Path, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    config = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
    get_peft_model(AutoModelForCausalLM.from_pretrained(qwen3), config).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(qwen3)
    tokenizer.chat_template = chat_template("chatml")
    tokenizer.save_pretrained(tmp_path)
    base = Generator(qwen3, EXTRACTOR, guided=False, max_tokens=12)
    adapted = Generator(qwen3, EXTRACTOR, adapter=tmp_path, guided=False, max_tokens=12)
    assert not adapted.tokenizer.decode(adapted.prompt_ids(INPUTS[0])).endswith("</think>\n\n")
    assert texts(adapted.generate(INPUTS[:3])) != texts(base.generate(INPUTS[:3]))


def test_a_base_in_nf4_answers_under_the_grammar_too(qwen3: Path) -> None:
    pytest.importorskip("bitsandbytes")
    generator = Generator(qwen3, EXTRACTOR, quantization="nf4", max_tokens=12)
    kinds = {type(module).__name__ for module in generator.model.modules()}
    assert "Linear4bit" in kinds
    assert all(answer.text.startswith("[") for answer in generator.generate(INPUTS[:2]))


# the grammar


def admits(generator: Generator[Any, Any], text: str) -> bool:
    import xgrammar

    matcher = xgrammar.GrammarMatcher(generator.grammar)
    return matcher.accept_string(text) and matcher.accept_token(generator.stop_ids[0])


@pytest.fixture(scope="module")
def closed(qwen3: Path) -> Generator[Any, Any]:
    return Generator(qwen3, CLOSED, max_tokens=60)


words = st.text(min_size=1, max_size=40).map(one_line).filter(bool)
relations = st.sampled_from(["have_pet", "live_with", "likes", "größe"])
outputs = st.lists(st.builds(Triplet, words, relations, words), max_size=4).map(tuple)


@settings(max_examples=200, deadline=None)
@given(output=outputs)
def test_every_rendered_output_is_admitted(generator: Generator[Any, Any], output: tuple[Triplet, ...]) -> None:
    assert admits(generator, EXTRACTOR.render(output))


@pytest.mark.parametrize(
    "text", ['say "hi"', "back\\slash", "a\\u0041", "Zoë 🙂", "日本", "\x7f", "\u2028x", "x" * 400, "\x07"]
)
def test_quotes_backslashes_and_any_script_are_admitted(generator: Generator[Any, Any], text: str) -> None:
    output = (Triplet(one_line(text), "likes", one_line(text)),)
    assert admits(generator, EXTRACTOR.render(output))
    assert EXTRACTOR.parse(EXTRACTOR.render(output)) == output


def test_no_other_white_space_is_admitted(generator: Generator[Any, Any]) -> None:
    rows = [{"subject": "Mia", "relation": "have_pet", "object": "cat"}] * 2
    assert admits(generator, json.dumps(rows, separators=SEPARATORS))
    other = {(", ", ": "), (",", ":"), (", ", ":"), (" , ", " : ")} - {SEPARATORS}
    variants = [json.dumps(rows, separators=pair) for pair in other] + [json.dumps(rows, indent=2)]
    rendered = json.dumps(rows, separators=SEPARATORS)
    variants += [
        " " + rendered,
        "\n" + rendered,
        rendered + " ",
        rendered[:1] + " " + rendered[1:],
        "[ ]",
        "[\n]",
        "[]\n",
    ]
    assert [text for text in variants if admits(generator, text)] == []
    assert admits(generator, "[]")


def test_other_shapes_are_not_admitted(generator: Generator[Any, Any]) -> None:
    one = {"subject": "Mia", "relation": "have_pet", "object": "cat"}
    wrong = [
        one,
        [dict(reversed(one.items()))],
        [one | {"extra": "x"}],
        [{"subject": "Mia"}],
        [one | {"object": 3}],
        [one] * 65,
    ]
    assert [value for value in wrong if admits(generator, json.dumps(value, separators=SEPARATORS))] == []


def test_a_closed_vocabulary_holds_in_the_grammar(closed: Generator[Any, Any]) -> None:
    assert admits(closed, CLOSED.render((Triplet("Mia", "have_pet", "cat"),)))
    assert not admits(closed, EXTRACTOR.render((Triplet("Mia", "likes", "cat"),)))


@pytest.mark.parametrize("which", ["open", "closed"])
def test_whatever_a_random_model_finishes_parses(
    which: str, generator: Generator[Any, Any], closed: Generator[Any, Any]
) -> None:
    chosen = generator if which == "open" else closed
    finished = [answer for answer in chosen.generate(INPUTS) if answer.finish_reason == "stop"]
    for answer in finished:
        assert isinstance(json.loads(answer.text, strict=False), list)
        assert answer.ok or answer.value.kind == "schema"  # a field of white space alone is JSON, and no triplet


# what an answer means


@pytest.mark.parametrize(
    ("content", "reason", "kind"),
    [
        ("[]", "length", "truncated"),
        ('[{"subject":"Mia","relation":"likes","object":"tea"}]', "length", "truncated"),
        ('[{"subject":"Mia","rela', "length", "truncated"),
        ('[{"subject":"Mia","rela', "stop", "truncated"),
        ("[ \n \n" + " " * 500, "length", "truncated"),
        ("[ \n \n" + " " * 500, "stop", "truncated"),
        ("", "stop", "empty"),
        (None, "stop", "empty"),
        (" \n\t " * 50, "stop", "empty"),
        (" \n\t " * 50, "length", "truncated"),
        ("[]", "content_filter", "content_filter"),
        (None, "content_filter", "content_filter"),
        ("There is nothing.", "stop", "no_json"),
        ('[{"a": 1}]', "stop", "schema"),
    ],
)
def test_a_failure_is_never_taken_for_nothing_to_remember(content: str | None, reason: str, kind: str) -> None:
    answer = read_answer(EXTRACTOR, content, reason)
    assert isinstance(answer.value, ExtractionError) and answer.value.kind == kind and not answer.ok


def test_what_was_complete_before_the_cut_is_kept_as_partial() -> None:
    done = '[{"subject":"Mia","relation":"likes","object":"tea"}'
    for text in (done + "]", done + ',{"subject":"To'):
        answer = read_answer(EXTRACTOR, text, "length")
        assert isinstance(answer.value, ExtractionError)
        assert answer.value.partial == (Triplet("Mia", "likes", "tea"),)


@pytest.mark.parametrize("content", [None, "", "\n\n"])
def test_json_in_the_reasoning_field_is_read_where_content_is_empty(content: str | None) -> None:
    assert read_answer(EXTRACTOR, content, "stop", reasoning="[]").value == ()
    assert read_answer(EXTRACTOR, "[]", "stop", reasoning="I think [1, 2]").value == ()


def test_an_empty_list_is_a_success() -> None:
    answer = read_answer(EXTRACTOR, "[]", "stop")
    assert answer.ok and answer.value == ()


def test_an_extractor_with_a_grammar_of_its_own_is_held_to_it_even_untrained(qwen3: Path) -> None:
    extractor = load_extractor("persona_tree", {"schema": "quickstart", "prompt": "compact"})
    chunk = extractor.read_input({"tree": {}, "turns": [{"speaker": "Mia", "text": "I adopted a cat."}]})
    [answer] = Generator(qwen3, extractor, max_tokens=60).generate([chunk])
    assert extractor.admits(answer.text) or answer.finish_reason == "length"
    lines = answer.text.splitlines()
    assert lines and all(line.split("(")[0] in ("ADD", "UPDATE", "DELETE", "NO_OP") for line in lines[:-1] or lines)


@pytest.mark.parametrize("extend", [[], ["Identity.Family_System", "Behavioural.Lifestyle"]])
def test_an_untrained_model_answers_each_tree_with_what_the_executor_takes(tmp_path: Path, extend: list[str]) -> None:
    """Held-out people of the simulated world. Every answer ends by itself, whatever the weights."""
    folder = make_tiny_chat_model(tmp_path / "tiny", seed=4)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 8192}))
    extractor = PersonaTreeExtractor(schema="quickstart", prompt="compact", extend=extend)
    simulate(tmp_path / "world", people=10, seed=5)
    prepare("world", str(tmp_path / "world"), tmp_path / "rows", schema="quickstart", exchanges=1)
    lines = (tmp_path / "rows" / "test.jsonl").read_text("utf-8").splitlines()
    chunks = [extractor.read_input(json.loads(line)["input"]) for line in lines[:12]]
    assert len(chunks) == 12 and any(chunk.tree for chunk in chunks)
    answers = Generator(folder, extractor, max_tokens=6000, batch_size=12).generate(chunks)
    taken = 0
    for chunk, answer in zip(chunks, answers, strict=True):
        assert not isinstance(answer.value, ExtractionError), answer.value
        done = execute(PersonaTree(extractor.schema, chunk.tree), answer.value)
        assert not done.rejected, answer.text
        taken += len(done.applied)
    assert taken > len(chunks)  # several operations in some answers
