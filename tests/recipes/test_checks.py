"""Combinations of keys that would waste a run are refused with what to write instead."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recipes.checks import cpu_has_bf16, cross_field_problems
from recipes.keys import known_keys
from recipes.loader import RecipeError, load_recipe

GOOD = {"method": "sft", "extractor": "triplets", "dataset_name": "d", "model_name_or_path": "m", "output_dir": "o"}
QLORA = {"use_peft": True, "load_in_4bit": True, "dtype": "bfloat16"}


def problems(environ=None, cpu_bf16=False, **changed):
    found = cross_field_problems({**GOOD, **changed}, known_keys(), environ=environ or {}, cpu_bf16=cpu_bf16)
    return dict(found)


def test_good_settings_have_no_problem():
    assert problems() == {}
    assert problems(**QLORA) == {}


@pytest.mark.parametrize("dtype", ["float32", "auto", None])
def test_4_bit_without_bfloat16_on_a_gpu_is_refused(dtype):
    message = problems(**{**QLORA, "dtype": dtype})["load_in_4bit"]
    shown = "null" if dtype is None else dtype
    assert message == (
        f"`load_in_4bit` is true but `dtype` is {shown}: on a GPU the 4-bit layers would compute in fp32, several "
        "times slower. Set `dtype: bfloat16`, or `load_in_4bit: false`."
    )


def test_4_bit_with_no_dtype_at_all_is_the_same_error_and_names_trl_s_default():
    message = problems(use_peft=True, load_in_4bit=True)["load_in_4bit"]
    assert "`dtype` is not set (TRL's default is float32)" in message and "Set `dtype: bfloat16`" in message


def test_4_bit_with_float32_is_right_on_a_cpu():
    assert problems(use_peft=True, load_in_4bit=True, dtype="float32", use_cpu=True, bf16=False) == {}


def test_bfloat16_on_a_cpu_is_refused_where_the_cpu_has_no_bf16():
    message = problems(use_cpu=True, dtype="bfloat16", bf16=False)["dtype"]
    assert "`dtype` is bfloat16" in message and "fp32 is right on this CPU: set `dtype: float32`" in message
    assert problems(use_cpu=True, dtype="bfloat16", bf16=False, cpu_bf16=True) == {}


@pytest.mark.parametrize("cpu_bf16", [False, True])
def test_float16_on_a_cpu_is_refused_on_every_cpu(cpu_bf16):
    assert "set `dtype: float32`" in problems(use_cpu=True, dtype="float16", bf16=False, cpu_bf16=cpu_bf16)["dtype"]
    assert "Set `fp16: false`" in problems(use_cpu=True, fp16=True, cpu_bf16=cpu_bf16)["fp16"]


def test_bf16_mixed_precision_on_a_cpu_is_refused_also_where_trl_turns_it_on_by_default():
    assert "`bf16` is true" in problems(use_cpu=True, bf16=True)["bf16"]
    message = problems(use_cpu=True)["use_cpu"]
    assert "`bf16` is not set, and TRL then turns bf16 mixed precision on" in message and "set `bf16: false`" in message
    assert problems(use_cpu=True, cpu_bf16=True) == {}


def test_cpu_flags_decide_about_bf16(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text("processor : 0\nflags\t\t: fpu sse avx512f amx_bf16 amx_tile\n")
    assert cpu_has_bf16(file)
    file.write_text("flags : fpu avx512_bf16\n")
    assert cpu_has_bf16(file)
    file.write_text("model name : amx_bf16\nflags : fpu avx2 avx512f\n")
    assert not cpu_has_bf16(file)
    assert not cpu_has_bf16(tmp_path / "nothing")


def test_the_loader_asks_this_machine_s_cpu(tmp_path):
    path = tmp_path / "recipe.yaml"
    text = "".join(f"{key}: {value}\n" for key, value in GOOD.items()) + "use_cpu: true\ndtype: bfloat16\n"
    path.write_text(text + "bf16: false\n")
    if cpu_has_bf16():
        assert load_recipe(path, environ={}).values["dtype"] == "bfloat16"
    else:
        with pytest.raises(RecipeError, match="line 7: `use_cpu` is true but `dtype` is bfloat16"):
            load_recipe(path, environ={})


@pytest.mark.parametrize("attention", [None, "sdpa", "eager", "flex_attention"])
@pytest.mark.parametrize("key", ["packing", "eval_packing", "padding_free"])
def test_packing_without_flash_attention_is_refused(attention, key):
    message = problems(**{key: True, "attn_implementation": attention})[key]
    assert f"`{key}` is true but `attn_implementation` is {attention or 'null'}" in message
    assert "`attn_implementation: flash_attention_2`" in message and "kernels-community/flash-attn2" in message
    assert f"or `{key}: false`" in message


@pytest.mark.parametrize(
    "attention",
    ["flash_attention_2", "flash_attention_3", "kernels-community/flash-attn2", "kernels-community/vllm-flash-attn3"],
)
def test_packing_with_flash_attention_is_allowed_but_never_wrapped(attention):
    assert problems(packing=True, attn_implementation=attention) == {}
    wrapped = problems(packing=True, attn_implementation=attention, packing_strategy="wrapped")
    assert "`packing_strategy: bfd`" in wrapped["packing_strategy"]


def test_4_bit_with_zero3_is_refused_when_launched_by_accelerate():
    environ = {"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3"}
    message = problems(environ, **QLORA)["load_in_4bit"]
    assert "ZeRO-3" in message and "recipes/accelerate/zero2.yaml" in message and "`load_in_4bit: false`" in message
    assert problems({**environ, "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2"}, **QLORA) == {}
    assert problems({**environ, "ACCELERATE_USE_DEEPSPEED": "false"}, **QLORA) == {}
    assert problems(environ, dtype="bfloat16", use_peft=True) == {}
    assert "ZeRO-3" in problems(environ, use_peft=True, load_in_8bit=True)["load_in_8bit"]


def test_4_bit_with_zero3_is_refused_when_the_recipe_s_deepspeed_says_so(tmp_path):
    config = {"zero_optimization": {"stage": 3}}
    file = tmp_path / "ds.json"
    file.write_text(json.dumps(config))
    for deepspeed in (config, json.dumps(config), str(file)):
        assert "ZeRO-3" in problems(**QLORA, deepspeed=deepspeed)["load_in_4bit"]
    assert "ZeRO-3" in problems({"ACCELERATE_DEEPSPEED_CONFIG_FILE": str(file)}, **QLORA)["load_in_4bit"]
    file.write_text(json.dumps({"zero_optimization": {"stage": 2}}))
    assert problems(**QLORA, deepspeed=str(file)) == {}
    assert problems(**QLORA, deepspeed=str(tmp_path / "nothing.json")) == {}


def test_4_bit_with_fsdp_needs_quantised_weights_stored_in_the_model_s_dtype():
    environ = {"ACCELERATE_USE_FSDP": "true"}
    assert "Set `bnb_4bit_quant_storage: bfloat16`" in problems(environ, **QLORA)["load_in_4bit"]
    assert problems(environ, **QLORA, bnb_4bit_quant_storage="bfloat16") == {}


def test_push_to_hub_needs_a_token_and_a_name(tmp_path):
    nothing = {"HF_HOME": str(tmp_path)}
    message = problems(nothing, push_to_hub=True)["push_to_hub"]
    assert "`hub_model_id: <user>/<name>`" in message and "HF_TOKEN" in message and "`push_to_hub: false`" in message
    assert "HF_TOKEN" in problems(nothing, push_to_hub=True, hub_model_id="me/it")["push_to_hub"]
    assert "token" not in problems({"HF_TOKEN": "x"}, push_to_hub=True)["push_to_hub"]


@pytest.mark.parametrize("environ", [{"HF_TOKEN": "x"}, {"HUGGING_FACE_HUB_TOKEN": "x"}])
def test_push_to_hub_with_a_token_in_the_environment_is_allowed(environ):
    assert problems(environ, push_to_hub=True, hub_model_id="me/it") == {}


def test_push_to_hub_finds_the_token_file_where_the_hub_client_keeps_it(tmp_path):
    (tmp_path / "token").write_text("x")
    (tmp_path / "home" / ".cache" / "huggingface").mkdir(parents=True)
    (tmp_path / "home" / ".cache" / "huggingface" / "token").write_text("x")
    for environ in (
        {"HF_HOME": str(tmp_path)},
        {"HF_TOKEN_PATH": str(tmp_path / "token")},
        {"HOME": str(tmp_path / "home")},
    ):
        assert problems(environ, push_to_hub=True, hub_model_id="me/it") == {}
    (tmp_path / "token").write_text("")
    assert "HF_TOKEN" in problems({"HF_HOME": str(tmp_path)}, push_to_hub=True, hub_model_id="me/it")["push_to_hub"]


def test_two_quantisations_at_once_are_refused():
    assert "set `load_in_8bit: false`" in problems(**QLORA, load_in_8bit=True)["load_in_8bit"]


@pytest.mark.parametrize("key", ["load_in_4bit", "load_in_8bit"])
def test_quantisation_without_an_adapter_is_refused(key):
    message = problems(**{key: True}, dtype="bfloat16")[key]
    assert "`use_peft` is not set (TRL's default is false)" in message and "Set `use_peft: true`" in message


def test_lora_keys_without_use_peft_are_refused_by_name():
    message = problems(lora_r=8, lora_alpha=16, use_dora=True, use_peft=False)["lora_r"]
    assert "(`lora_r`, `lora_alpha`, `use_dora`)" in message and "Set `use_peft: true`" in message


def test_two_precisions_at_once_are_refused():
    assert "Set `fp16: false`" in problems(fp16=True, bf16=True)["fp16"]
    assert "`dtype` is float16" in problems(bf16=True, dtype="float16")["bf16"]
    assert "`bf16` is not set (TRL then turns it on)" in problems(dtype="float16")["dtype"]
    assert "`dtype` is bfloat16" in problems(fp16=True, dtype="bfloat16")["fp16"]
    assert problems(fp16=True, dtype="float16") == {}


def test_data_is_one_folder_or_one_mixture():
    assert "both set" in problems(datasets=[{"path": "a"}])["datasets"]
    assert "write `dataset_name: <dataset folder>`" in problems(dataset_name=None)["dataset_name"]
    assert problems(dataset_name=None, datasets=[{"path": "a"}]) == {}


def test_evaluation_needs_a_split_of_its_own():
    message = problems(eval_strategy="steps", dataset_test_split=None)["eval_strategy"]
    assert "Write `dataset_test_split: dev`, or `eval_strategy: no`" in message
    assert problems(dataset_test_split=None) == {}
    assert (
        "must not be evaluated on the rows it was trained on"
        in problems(dataset_test_split="train")["dataset_test_split"]
    )


def test_best_model_needs_evaluations_that_are_saved():
    best = {"load_best_model_at_end": True}
    assert "Set `eval_strategy: steps`" in problems(**best)["load_best_model_at_end"]
    message = problems(**best, eval_strategy="epoch")["load_best_model_at_end"]
    assert "`save_strategy` is steps" in message and "Set `save_strategy: epoch`" in message
    message = problems(**best, eval_strategy="steps", eval_steps=200, save_steps=300)["save_steps"]
    assert "Set `save_steps: 200`" in message
    assert "save_steps" in problems(**best, eval_strategy="steps", eval_steps=0.1, save_steps=300)
    assert problems(**best, eval_strategy="steps", eval_steps=100, save_steps=300) == {}
    assert problems(**best, eval_strategy="steps", eval_steps=0.1, save_steps=0.3) == {}
    assert problems(**best, eval_strategy="epoch", save_strategy="epoch") == {}
    assert problems(**best, eval_strategy="epoch", save_strategy="best") == {}
    assert problems(eval_strategy="steps") == {}  # eval_steps falls back on logging_steps


def test_plateau_schedule_needs_evaluations():
    assert "`eval_strategy: steps`" in problems(lr_scheduler_type="reduce_lr_on_plateau")["lr_scheduler_type"]


def test_a_rule_is_silent_about_a_key_whose_own_value_is_already_reported(tmp_path):
    path = tmp_path / "recipe.yaml"
    base = "".join(f"{key}: {value}\n" for key, value in GOOD.items())
    path.write_text(base + "use_peft: true\nload_in_4bit: true\ndtype: bf16\n")
    with pytest.raises(RecipeError) as caught:
        load_recipe(path, environ={})
    assert len(caught.value.problems) == 1 and "Write `dtype: bfloat16`" in str(caught.value)
    path.write_text(base + "use_peft: true\nload_in_4bit: true\ntorch_dtype: bfloat16\n")
    with pytest.raises(RecipeError) as caught:
        load_recipe(path, environ={})
    assert len(caught.value.problems) == 1


def test_cross_field_errors_carry_the_line_of_their_key(tmp_path):
    path = tmp_path / "recipe.yaml"
    base = "".join(f"{key}: {value}\n" for key, value in GOOD.items())
    path.write_text(base + "use_peft: true\nload_in_4bit: true\npacking: true\n")
    with pytest.raises(RecipeError) as caught:
        load_recipe(path, environ={})
    assert [problem.split("`")[0] for problem in caught.value.problems] == ["line 7: ", "line 8: "]


# Reinforcement learning: batches of whole groups, how completions are made

GRPO = {"method": "grpo", "extractor": "persona_tree", "dataset_name": "data"}


def grpo_problems(environ: dict[str, str] | None = None, **changed: Any) -> str:
    return "\n".join(
        message for _, message in cross_field_problems({**GRPO, **changed}, known_keys("grpo"), environ=environ or {})
    )


@pytest.mark.parametrize(
    ("environ", "changed", "expected"),
    [
        (
            {},
            {"per_device_train_batch_size": 3, "gradient_accumulation_steps": 4},
            "(3) x `gradient_accumulation_steps` (4) on 1 process are 12 completions, no multiple of `num_generations` (8). "
            "Write `gradient_accumulation_steps: 8`, 16 or 24.",
        ),
        (
            {"WORLD_SIZE": "2"},
            {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 2},
            "on 2 processes are 4 completions, no multiple of `num_generations` (8). "
            "Write `gradient_accumulation_steps: 4`, 8 or 12.",
        ),
        ({}, {"generation_batch_size": 12}, "need a multiple of 8. Write 8, 16 or 24."),
        ({}, {"generation_batch_size": 16, "steps_per_generation": 2}, "say the same thing twice"),
        ({}, {"epsilon": 0.28, "epsilon_high": 0.2}, "`epsilon_high` is 0.2, less than `epsilon` (0.28)"),
        (
            {},
            {"use_vllm": True, "use_peft": True, "load_in_4bit": True, "dtype": "bfloat16"},
            "Merge the SFT adapter (`mnemosmith export RUN OUT`), train a bf16 LoRA on OUT (`load_in_4bit: false`)",
        ),
        ({}, {"vllm_mode": "server"}, "`vllm_mode` set, but `use_vllm` is not set (TRL's default is false)"),
        ({}, {"use_vllm": True, "use_cpu": True, "bf16": False}, "TRL hands weights to vLLM on a GPU only"),
        (
            {},
            {"use_vllm": True, "vllm_mode": "server", "vllm_gpu_memory_utilization": 0.4},
            "`vllm_gpu_memory_utilization` is set but `vllm_mode` is server: it is an option of the server's own command",
        ),
        ({}, {"use_vllm": True, "vllm_server_port": 8000}, "`vllm_server_port` is set but `vllm_mode` is colocate"),
        (
            {"WORLD_SIZE": "4"},
            {"use_vllm": True, "vllm_tensor_parallel_size": 3},
            "`vllm_tensor_parallel_size` is 3, but 4 processes cannot be divided by it. Write a divisor of 4.",
        ),
        (
            {"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3"},
            {"use_vllm": True, "use_peft": True},
            "could not be restored bit by bit and would drift",
        ),
        ({}, {"extractor": "triplets"}, "Write `extractor: persona_tree`, or `method: sft`."),
        (
            {},
            {"load_best_model_at_end": True, "eval_strategy": "steps", "save_strategy": "steps", "eval_steps": 500},
            "an evaluation by answers has no loss. Write `metric_for_best_model: eval_state_f1`",
        ),
    ],
)
def test_grpo_settings_that_cannot_work_are_refused_with_what_to_write(environ, changed, expected):
    assert expected in grpo_problems(environ, **changed)


@pytest.mark.parametrize(
    ("environ", "changed"),
    [
        ({}, {}),
        ({"WORLD_SIZE": "2"}, {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 8}),
        ({}, {"per_device_train_batch_size": 4, "generation_batch_size": 16}),
        ({}, {"use_vllm": True, "vllm_gpu_memory_utilization": 0.4, "use_peft": True}),
        ({}, {"use_vllm": True, "vllm_mode": "server", "vllm_server_port": 8000}),
        ({}, {"load_in_4bit": True, "use_peft": True, "dtype": "bfloat16"}),
    ],
)
def test_grpo_settings_that_work_are_accepted(environ, changed):
    assert grpo_problems(environ, **changed) == ""
