"""The exported template and generation config: a plain request gets training's prompt and greedy decoding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.models import SMOLLM2_NAME, ModelError, resolve_model
from serve.merge import ExportError
from serve.template import with_defaults, write_generation_config, write_tokenizer
from tests.tiny import chat_template, make_tiny_tokenizer

MESSAGES = [
    {"role": "system", "content": "Extract triplets."},
    {"role": "user", "content": "Mia: I have a cat."},
    {"role": "assistant", "content": "[]"},
    {"role": "user", "content": "Mia: I {% if x %} have a {{ dog }}."},
]
QWEN = ("qwen3", "qwen3_5_think", "qwen3_5_nothink", "qwen3_6", "qwen3_8", "qwen3_training")


def render(template: str, **kwargs: Any) -> str:
    from transformers.utils.chat_template_utils import render_jinja_template

    rendered, _ = render_jinja_template([MESSAGES], chat_template=template, add_generation_prompt=True, **kwargs)
    return str(rendered[0])


def test_qwen3_thinks_by_default_until_the_export_sets_its_default() -> None:
    template = chat_template("qwen3")
    assert not render(template).endswith("<think>\n\n</think>\n\n")
    assert render(with_defaults(template, {"enable_thinking": False})).endswith("<think>\n\n</think>\n\n")


@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("name", QWEN)
def test_plain_request_renders_as_in_training_and_a_request_can_say_otherwise(name: str, thinking: bool) -> None:
    template = chat_template(name)
    exported = with_defaults(template, {"enable_thinking": thinking})
    assert render(exported) == render(template, enable_thinking=thinking)
    for asked in (False, True):
        assert render(exported, enable_thinking=asked) == render(template, enable_thinking=asked)


@pytest.mark.parametrize("name", ["qwen3", "qwen3_5_think", "qwen3_8"])
def test_vllm_still_sees_the_variable_among_those_a_request_may_set(name: str) -> None:
    import jinja2.ext
    import jinja2.meta
    import jinja2.sandbox

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(extensions=[jinja2.ext.loopcontrols])
    exported = environment.parse(with_defaults(chat_template(name), {"enable_thinking": False}))
    assert "enable_thinking" in jinja2.meta.find_undeclared_variables(exported)


@pytest.mark.parametrize("name", ["chatml", "llama3_1", "qwen2_5"])
def test_template_that_does_not_read_the_variable_stays_as_it_is(name: str) -> None:
    assert with_defaults(chat_template(name), {"enable_thinking": False}) == chat_template(name)


@pytest.mark.parametrize("start", ["  {% if true %}x{% endif %}", "\n\ntext", "  text", "{{- '  x' }}"])
def test_white_space_at_the_start_of_a_template_is_kept_as_it_was(start: str) -> None:
    template = start + "{{ style }}"
    assert render(with_defaults(template, {"style": "a"})) == render(template, style="a")


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.floats(allow_nan=False, allow_infinity=False)))
def test_any_scalar_default_reaches_the_template_unchanged(value: Any) -> None:
    template = "[{{ style }}]{{ style is none }}{{ style is boolean }}{{ style is string }}"
    try:
        str(value).encode("utf-8")
    except UnicodeEncodeError:
        return
    assert render(with_defaults(template, {"style": value})) == render(template, style=value)


def test_default_that_a_template_cannot_hold_is_refused() -> None:
    with pytest.raises(ExportError, match="tools_in_use"):
        with_defaults("{{ tools_in_use }}", {"tools_in_use": ["a"]})


def exported(tmp_path: Path, template: str, kwargs: dict[str, Any]) -> tuple[Path, Path, list[str]]:
    run, out = tmp_path / "run", tmp_path / "out"
    make_tiny_tokenizer(template).save_pretrained(run)
    out.mkdir()
    _, warnings = write_tokenizer(run, out, kwargs)
    return run, out, warnings


def test_both_places_where_servers_look_hold_the_same_template(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    _, out, warnings = exported(tmp_path, "qwen3", {"enable_thinking": False})
    in_file = (out / "chat_template.jinja").read_text("utf-8")
    assert json.loads((out / "tokenizer_config.json").read_text("utf-8"))["chat_template"] == in_file
    assert AutoTokenizer.from_pretrained(out).chat_template == in_file
    (out / "chat_template.jinja").unlink()  # a server that only reads tokenizer_config.json
    assert AutoTokenizer.from_pretrained(out).chat_template == in_file
    assert warnings == []


@pytest.mark.parametrize("template", ["qwen3", "qwen3_5_think", "chatml"])
def test_prompt_ids_of_a_plain_request_equal_training(template: str, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    run, out, _ = exported(tmp_path, template, {"enable_thinking": False})

    def ids(folder: Path, **kwargs: Any) -> Any:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        return tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True, return_dict=True, **kwargs)[
            "input_ids"
        ]

    trained = ids(run, enable_thinking=False)
    assert ids(out) == trained == ids(out, enable_thinking=False)


def test_smollm2_keeps_its_template_and_gives_training_prompts(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    try:
        base = Path(resolve_model(SMOLLM2_NAME))
    except ModelError as error:
        pytest.skip(str(error))
    out = tmp_path / "out"
    out.mkdir()
    write_tokenizer(base, out, {"enable_thinking": False})
    config = write_generation_config(base, base, out, {"enable_thinking": False}, 512)
    trained, served = AutoTokenizer.from_pretrained(base), AutoTokenizer.from_pretrained(out)
    assert served.chat_template == trained.chat_template
    asked: dict[str, Any] = {"add_generation_prompt": True, "return_dict": True}
    ids = trained.apply_chat_template(MESSAGES, enable_thinking=False, **asked)["input_ids"]
    assert served.apply_chat_template(MESSAGES, **asked)["input_ids"] == ids
    assert config["eos_token_id"] == [trained.convert_tokens_to_ids("<|im_end|>")]


def test_template_edited_after_training_is_refused(tmp_path: Path) -> None:
    make_tiny_tokenizer("qwen3").save_pretrained(tmp_path / "run")
    (tmp_path / "out").mkdir()
    with pytest.raises(ExportError, match="edited after training"):
        write_tokenizer(tmp_path / "run", tmp_path / "out", {}, trained_sha256="0" * 64)


def test_template_that_prints_the_date_is_warned_about(tmp_path: Path) -> None:
    tokenizer = make_tiny_tokenizer("chatml")
    tokenizer.chat_template = "{{ strftime_now('%d %b %Y') }}" + tokenizer.chat_template
    tokenizer.save_pretrained(tmp_path / "run")
    (tmp_path / "out").mkdir()
    _, warnings = write_tokenizer(tmp_path / "run", tmp_path / "out", {})
    assert "today's date" in warnings[0]


def test_generation_config_is_greedy_ends_with_the_turn_and_keeps_nothing_of_the_base(tmp_path: Path) -> None:
    from transformers import GenerationConfig

    run, out, _ = exported(tmp_path, "qwen3", {"enable_thinking": False})
    base = tmp_path / "base"
    base.mkdir()
    sampling = {
        "do_sample": True,
        "temperature": 0.6,
        "top_k": 20,
        "top_p": 0.95,
        "repetition_penalty": 1.1,
        "eos_token_id": 0,
    }
    (base / "generation_config.json").write_text(json.dumps(sampling))
    (base / "config.json").write_text("{}")
    write_generation_config(run, base, out, {"enable_thinking": False}, 512)
    tokenizer = make_tiny_tokenizer("qwen3")
    loaded = GenerationConfig.from_pretrained(out)
    # What vLLM takes as the defaults of a request: to_diff_dict() of what transformers loads.
    defaults = loaded.to_diff_dict()
    assert defaults["temperature"] == 0.0 and defaults["max_new_tokens"] == 512
    assert not {"top_k", "top_p", "min_p", "repetition_penalty"} & set(defaults)
    assert loaded.do_sample is False
    assert loaded.eos_token_id == [tokenizer.convert_tokens_to_ids("<|im_end|>"), 0]
    assert loaded.pad_token_id == tokenizer.convert_tokens_to_ids("<|endoftext|>")


def test_base_model_that_ends_texts_but_not_turns_gets_the_end_of_turn(tmp_path: Path) -> None:
    run, out, _ = exported(tmp_path, "chatml", {})
    base = tmp_path / "base"
    base.mkdir()
    (base / "config.json").write_text(json.dumps({"eos_token_id": 0}))
    config = write_generation_config(run, base, out, {}, 64)
    assert config["eos_token_id"] == [make_tiny_tokenizer("chatml").convert_tokens_to_ids("<|im_end|>"), 0]
