"""A recipe means what it says, or it is refused with the key, the line, the reason and what to write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipes.keys import CHANGED, METHODS, RENAMED, known_keys, methods_with
from recipes.loader import RecipeError, describe_key, load_recipe, unknown_key_message

BASE = {
    "method": "sft",
    "extractor": "triplets",
    "dataset_name": "outputs/data/world",
    "model_name_or_path": "Qwen/Qwen3-8B",
    "output_dir": "outputs/run",
}


def write(folder: Path, text: str, without: tuple[str, ...] = ()) -> Path:
    """A recipe of BASE's keys (5 lines where nothing is left out) followed by `text`."""
    path = folder / "recipe.yaml"
    base = "".join(f"{key}: {value}\n" for key, value in BASE.items() if key not in without)
    path.write_text(base + text, encoding="utf-8")
    return path


def errors(folder: Path, text: str, overrides: list[str] | None = None, without: tuple[str, ...] = (), **kwargs) -> str:
    with pytest.raises(RecipeError) as caught:
        load_recipe(write(folder, text, without), overrides or [], **{"environ": {}, **kwargs})
    return str(caught.value)


def values(folder: Path, text: str, overrides: list[str] | None = None) -> dict:
    return load_recipe(write(folder, text), overrides or [], environ={}).values


# What a good recipe gives


def test_recipe_divides_its_values_between_trl_s_classes_and_ours(tmp_path):
    recipe = load_recipe(write(tmp_path, "learning_rate: 1.0e-4\nlora_r: 8\nuse_peft: true\n"), environ={})
    assert recipe.trainer_values() == {"output_dir": "outputs/run", "learning_rate": 1e-4}
    assert recipe.model_values() == {"model_name_or_path": "Qwen/Qwen3-8B", "lora_r": 8, "use_peft": True}
    assert (recipe.method, recipe.extractor, recipe.extractor_options) == ("sft", "triplets", {})
    ours = {
        name: recipe.values[name]
        for name in ("dataset_train_split", "dataset_test_split", "overlong_rows", "eval_rows")
    }
    assert ours == {
        "dataset_train_split": "train",
        "dataset_test_split": "dev",
        "overlong_rows": "refuse",
        "eval_rows": None,
    }


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("learning_rate: 2e-5", "learning_rate", 2e-5),  # PyYAML reads this as text
        ('learning_rate: "0.001"', "learning_rate", 0.001),
        ("learning_rate: 1", "learning_rate", 1),
        ('max_length: "512"', "max_length", 512),
        ("max_length: null", "max_length", None),
        ("eval_strategy: no", "eval_strategy", "no"),  # YAML reads this as false
        ("save_strategy: no", "save_strategy", "no"),
        ('packing: "false"', "packing", False),
        ("max_steps: -1", "max_steps", -1),
        ("warmup_steps: 0.03", "warmup_steps", 0.03),
        ("report_to: [wandb, tensorboard]", "report_to", ["wandb", "tensorboard"]),
        ("resume_from_checkpoint: true", "resume_from_checkpoint", True),
        ("resume_from_checkpoint: outputs/run/checkpoint-4", "resume_from_checkpoint", "outputs/run/checkpoint-4"),
        ("resume_from_checkpoint: null", "resume_from_checkpoint", None),
        (
            "gradient_checkpointing_kwargs: {use_reentrant: false}",
            "gradient_checkpointing_kwargs",
            {"use_reentrant": False},
        ),
    ],
)
def test_value_is_read_as_its_key_means_it(tmp_path, text, key, value):
    result = values(tmp_path, text)[key]
    assert result == value and type(result) is type(value)


def test_one_module_name_stands_for_a_list_of_one(tmp_path):
    text = "use_peft: true\nlora_target_modules: all-linear\n"
    assert values(tmp_path, text)["lora_target_modules"] == ["all-linear"]


def test_mixture_keeps_its_fractions_and_rows(tmp_path):
    path = write(tmp_path, "datasets: [{path: a}, {path: b, fraction: '0.5'}, {path: c, rows: 100}]", ("dataset_name",))
    datasets = load_recipe(path, environ={}).values["datasets"]
    assert datasets == [{"path": "a"}, {"path": "b", "fraction": 0.5}, {"path": "c", "rows": 100}]


# The command line


def test_overrides_win_over_the_file_and_are_read_as_yaml(tmp_path):
    overrides = [
        "--learning_rate",
        "1e-4",
        "--packing=false",
        "--max_steps",
        "-1",
        "--run_name",
        "123",
        "--eval_strategy=no",
    ]
    result = values(tmp_path, "learning_rate: 1.0e-3\nmax_steps: 7\n", overrides)
    assert result["learning_rate"] == 1e-4 and result["packing"] is False and result["max_steps"] == -1
    assert result["run_name"] == "123" and result["eval_strategy"] == "no"


def test_override_replaces_a_wrong_value_of_the_file(tmp_path):
    assert values(tmp_path, "lora_r: 16.5\nuse_peft: true\n", ["--lora_r", "16"])["lora_r"] == 16


def test_mapping_and_list_overrides_are_yaml(tmp_path):
    overrides = ["--extractor_options", "{relations: open}", "--report_to", "[wandb]"]
    result = values(tmp_path, "", overrides)
    assert result["extractor_options"] == {"relations": "open"} and result["report_to"] == ["wandb"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--learning_rat", "1e-4"], "Did you mean `learning_rate`?"),
        (["--learn", "1e-4"], "`learn` is not a recipe key"),  # no prefix abbreviations
        (["--learning-rate", "1e-4"], "Write `learning_rate: 1e-4`"),
        (["--packing"], "`--packing` has no value: write `--packing <value>`, for a switch `--packing true`"),
        (["--packing", "--bf16=true"], "`--packing` has no value"),
        (["learning_rate=1e-4"], "write `--key value`"),
        (["--seed", "1", "--seed", "2"], "`--seed` is given twice"),
        (["--extractor_options.closed", "true"], "write the whole mapping, `extractor_options: {closed: true}`"),
        (["--lora_r=16.5"], "write `lora_r: 16`"),
        (["--hub_token", "hf_secret"], "HF_TOKEN"),
    ],
)
def test_wrong_override_is_refused_with_what_to_write(tmp_path, arguments, expected):
    message = errors(tmp_path, "", arguments)
    assert "command line: " in message and expected in message and "hf_secret" not in message


# Files that are no recipe


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("learning_rate: 1\n  lora_r: 8\n", "line 2, column 9: not valid YAML"),
        ("a: [1, 2\n", "line 2, column 1: not valid YAML"),
        ("\tmethod: sft\n", "line 1, column 1: not valid YAML"),
        ("a: 1\n--- \nb: 2\n", "line 2"),
        ("x: !!python/object:os.system {}\n", "line 1, column 4: not valid YAML"),
        ("- method: sft\n", "1 error\n  the file is not a mapping"),
        ("just text\n", "1 error\n  the file is not a mapping"),
        ("# nothing\n", "1 error\n  the file is empty"),
        ("d: 2026-13-45\n", "not valid YAML"),
    ],
)
def test_what_is_no_mapping_is_refused_with_its_place(tmp_path, text, expected):
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(RecipeError) as caught:
        load_recipe(path, environ={})
    assert expected in str(caught.value)


def test_missing_file_names_a_shipped_recipe_that_is_spelled_alike(tmp_path):
    with pytest.raises(RecipeError, match=r"there is no such file.*triplets/qwen3-8b-qlora\.yaml"):
        load_recipe(Path("recipes/triplets/qwen3-8b-qlra.yaml"), environ={})


def test_bytes_that_are_no_utf8_are_refused(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_bytes(b"run_name: \xff\n")
    with pytest.raises(RecipeError, match="not UTF-8"):
        load_recipe(path, environ={})


def test_duplicates_are_refused_with_both_lines_at_any_depth(tmp_path):
    message = errors(tmp_path, "seed: 1\nseed: 2\nextractor_options:\n  closed: true\n  closed: false\n")
    assert "line 7: `seed` is written twice (lines 6 and 7). Keep one." in message
    assert "line 10: `closed` is written twice (lines 9 and 10). Keep one." in message


def test_key_that_yaml_does_not_read_as_text_is_refused(tmp_path):
    assert "the key true is not text" in errors(tmp_path, "on: 1\n")


# Keys

DIALECT = [
    ("torch_dtype: bfloat16", "Write `dtype: bfloat16`"),
    ("max_seq_length: 512", "Write `max_length: 512`"),
    ("cutoff_len: 512", "Write `max_length: 512`"),
    ("sequence_len: 512", "Write `max_length: 512`"),
    ("max_len: 512", "Write `max_length: 512`"),
    ("warmup_ratio: 0.1", "Write `warmup_steps: 0.1`"),
    ("micro_batch_size: 4", "Write `per_device_train_batch_size: 4`"),
    ("lora_rank: 8", "Write `lora_r: 8`"),
    ("lora_target: [q_proj]", "Write `lora_target_modules: [q_proj]`"),
    ("lora_target_linear: true", "Write `lora_target_modules: all-linear`"),
    ("quantization_bit: 4", "Write `load_in_4bit: true`"),
    ("quant_bits: 4", "Write `load_in_4bit: true`"),
    ("quantizaton: 4bit", "Write `load_in_4bit: true`"),
    ("quantization: 4bit", "Write `load_in_4bit: true`"),
    ("evaluation_strategy: steps", "Write `eval_strategy: steps`"),
    ("sample_packing: true", "Write `packing: true`"),
    ("neat_packing: true", "Write `packing: true`"),
    ("eval_sample_packing: true", "Write `eval_packing: true`"),
    ("num_epochs: 3", "Write `num_train_epochs: 3`"),
    ("epochs: 3", "Write `num_train_epochs: 3`"),
    ("use_flash_attention_2: true", "Write `attn_implementation: flash_attention_2`"),
    ("flash_attention: true", "Write `attn_implementation: flash_attention_2`"),
    ("bnb_4bit_use_double_quant: true", "Write `use_bnb_nested_quant: true`"),
    ("bnb_4bit_compute_dtype: bfloat16", "Write `dtype: bfloat16`"),
    ("max_new_tokens: 64", "Remove it"),
    ("overwrite_output_dir: true", "Remove it, and write another `output_dir`"),
    ("logging_dir: logs", "TENSORBOARD_LOGGING_DIR"),
    ("group_by_length: true", "Write `train_sampling_strategy: group_by_length`"),
    ("save_safetensors: true", "Remove it"),
    ("max_prompt_length: 100", "Remove it"),
    ("tokenizer: x", "`processing_class`"),
    ("num_sample_generations: 8", "`num_generations`"),
    ("base_model: x", "Write `model_name_or_path: x`"),
    ("model: x", "Write `model_name_or_path: x`"),
    ("gradient_checkpoint: true", "Write `gradient_checkpointing: true`"),
    ("lr_scheduler: cosine", "Write `lr_scheduler_type: cosine`"),
    ("lr: 1e-4", "Write `learning_rate: 1e-4`"),
    ("adapter: lora", "Write `use_peft: true`"),
    ("template: qwen3", "chat template is the model's own"),
    ("no_cuda: true", "Write `use_cpu: true`"),
    ("push_to_hub_token: x", "HF_TOKEN"),
    ("include_tokens_per_second: true", "Remove it"),
    ("dataset: folder", "Write `dataset_name: folder`"),
    ("val_set_size: 0.1", "`dataset_test_split: dev`"),
    ("max_samples: 100", "`datasets: [{path: <dataset folder>, rows: 100}]`"),
    ("wandb_project: x", "WANDB_PROJECT"),
    ("num-epochs: 3", "Write `num_train_epochs: 3`"),
    ("learning-rate: 1e-3", "Write `learning_rate: 1e-3`"),
    ("Learning_Rate: 1e-3", "Write `learning_rate: 1e-3`"),
    ("per-device-train-batch-size: 4", "Write `per_device_train_batch_size: 4`"),
    ("lerning_rate: 1e-3", "Did you mean `learning_rate`?"),
    ("gradient_acumulation_steps: 4", "Did you mean `gradient_accumulation_steps`?"),
    ("lora_rnk: 4", "Did you mean `lora_r`?"),
    ("xyzzy: 1", "Remove it"),
]


@pytest.mark.parametrize(("line", "advice"), DIALECT, ids=[line.split(":")[0] for line, _ in DIALECT])
def test_key_of_another_dialect_is_refused_with_the_right_key(tmp_path, line, advice):
    message = errors(tmp_path, line + "\n")
    key = line.split(":")[0]
    assert f"line 6: `{key}` is not a recipe key. " in message
    assert advice in message


def test_every_hint_names_keys_that_exist_and_is_needed():
    assert [new for new in RENAMED.values() if not methods_with(new)] == []
    assert [new for keys, _ in CHANGED.values() for new in keys if not methods_with(new)] == []
    assert [old for old in (*RENAMED, *CHANGED) if methods_with(old)] == []
    assert [old for old in RENAMED if old in CHANGED] == []
    for old in (*RENAMED, *CHANGED):
        for method in METHODS:
            assert "{value}" not in unknown_key_message(old, 4, method)


@pytest.mark.parametrize(
    "key", ["num_generations", "reward_weights", "reward_funcs", "use_vllm", "beta", "max_completion_length", "reward"]
)
def test_grpo_key_in_an_sft_recipe_is_refused(tmp_path, key):
    assert f"`{key}` is not a recipe key. It belongs to `method: grpo`" in errors(tmp_path, f"{key}: 1\n")


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("packing: true", "It belongs to `method: sft`; this recipe's is grpo. Remove it."),
        ("max_seq_length: 512", "It belongs to `method: sft`, where it is called `max_length`"),
        ("group_size: 8", "Write `num_generations: 8`."),
        ("kl_coef: 0.001", "Write `beta: 0.001`."),
        ("epsilon_hihg: 0.28", "Did you mean `epsilon_high`?"),
        ("max_resample_times: 3", "Write `dynamic_sampling_max_tries: 3`."),
        ("dynamic_sample: true", "Write `dynamic_sampling_max_tries: 3`, or 0 for none."),
        ("num_generations: 1", "must be at least 2"),
        ("loss_type: nll", "dapo, grpo"),
        ("reward: rouge", "process, judge"),
    ],
)
def test_grpo_recipe_knows_its_own_keys_and_their_other_names(tmp_path, line, advice):
    text = f"method: grpo\n{line}\n"
    assert advice in errors(tmp_path, text, without=("method",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("training: {learning_rate: 1e-4}", "recipes are flat: move `learning_rate` to the top level"),
        ("training: {num_epochs: 3}", "write `num_epochs` as `num_train_epochs` at the top level"),
        ("model: {model_name_or_path: x}", "recipes are flat: move `model_name_or_path` to the top level"),
        ("model: {name: x}", "write `name` as `model_name_or_path` at the top level"),
        ("lora: {r: 8, alpha: 16}", "write `r` as `lora_r` at the top level; write `alpha` as `lora_alpha`"),
        ("trainer: {lerning_rate: 1}", "write `lerning_rate` as `learning_rate`"),
        ("training: {}", "`training` is not a recipe key: recipes are flat."),
        ("training.learning_rate: 1e-4", "recipes are flat. Write `learning_rate: 1e-4`"),
    ],
)
def test_nested_section_is_told_to_move_its_keys_to_the_top(tmp_path, text, expected):
    assert expected in errors(tmp_path, text + "\n")


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("hub_token", "HF_TOKEN"),
        ("do_train", "Remove it"),
        ("local_rank", "launcher"),
        ("parallelism_config", "accelerate"),
    ],
)
def test_key_of_trl_that_has_no_place_in_a_recipe_is_refused(tmp_path, key, advice):
    message = errors(tmp_path, f"{key}: secret\n")
    assert f"`{key}` may not be set" in message and advice in message and "secret" not in message


def test_missing_keys_are_named_but_not_those_that_another_dialect_s_key_stands_for(tmp_path):
    message = errors(tmp_path, "seed: 1\n", without=tuple(BASE))
    for key in ("method", "extractor", "model_name_or_path", "output_dir"):
        assert f"`{key}` is missing. Write for example `{key}: " in message
    assert "there is no data" in message
    message = errors(tmp_path, "base_model: x\ndataset: y\n", without=("model_name_or_path", "dataset_name"))
    assert "is missing" not in message and "no data" not in message and ": 2 errors" in message


@pytest.mark.parametrize("method", ["classifier"])
def test_method_that_does_not_exist_yet_is_refused(tmp_path, method):
    message = errors(tmp_path, f"method: {method}\n", without=("method",))
    assert f"`method` is {method}, which is not in this version. Write `method: sft`." in message


# Values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lora_r: 16.5", "`lora_r` is 16.5 but must be a whole number: write `lora_r: 16`."),
        ("lora_r: true", "`lora_r` is true but must be a whole number"),
        ("lora_r: '8.5'", "write `lora_r: 8`"),
        ("lora_r: 0", "`lora_r` is 0 but must be at least 1"),
        ("learning_rate: fast", "`learning_rate` is fast but must be a number"),
        ("learning_rate: 0", "`learning_rate` is 0 but must be greater than 0"),
        ("learning_rate: -1e-4", "must be greater than 0"),
        ("learning_rate: .nan", "must be a finite number"),
        ("learning_rate: inf", "must be a number"),
        ("learning_rate: null", "or remove the line for the default"),
        ("learning_rate: [1e-4]", "must be a number"),
        ("learning_rate: yes", "`learning_rate` is true but must be a number"),
        ("num_train_epochs: 0", "must be greater than 0"),
        ("lora_dropout: 1", "must be at least 0 and less than 1"),
        ("lora_dropout: -0.1", "must be at least 0 and less than 1"),
        ("max_length: 0", "must be at least 1"),
        ("per_device_train_batch_size: 0", "must be at least 1"),
        ("gradient_accumulation_steps: 0", "must be at least 1"),
        ("max_steps: 0", "must be -1"),
        ("max_steps: -5", "must be at least -1"),
        ("eval_rows: 0", "must be at least 1"),
        ("packing: maybe", "`packing` is maybe but must be true or false"),
        ("packing: 1", "`packing` is 1 but must be true or false"),
        ("truncation_mode: keep_middle", "must be one of: keep_end, keep_start"),
        ("dtype: bf16", "must be one of: auto, bfloat16, float16, float32. Write `dtype: bfloat16`."),
        ("bnb_4bit_quant_type: int4", "must be one of: fp4, nf4. Write `bnb_4bit_quant_type: nf4`."),
        ("bnb_4bit_quant_storage: bf16", "Write `bnb_4bit_quant_storage: bfloat16`"),
        ("lr_scheduler_type: cosin", "must be one of: linear, cosine"),
        ("eval_strategy: true", "must be one of: no, steps, epoch"),
        ("eval_strategy: step", "Write `eval_strategy: steps`"),
        ("report_to: tensorbord", "must be one of: none, all"),
        ("report_to: [wandb, x]", "must be one of: none, all"),
        ("overlong_rows: truncate", "must be one of: refuse, drop"),
        ("run_name: 123", 'Put it in quotes: `run_name: "123"`'),
        ("run_name: 2026-11-30", 'Put it in quotes: `run_name: "2026-11-30"`'),
        ("model_revision: 12345678", "Put it in quotes"),
        ("lora_target_modules: q_proj, v_proj", "write `lora_target_modules: [q_proj, v_proj]`"),
        ("lora_target_modules: [1]", "a list of texts, and 1 is none"),
        ("extractor_options: compact", "must be a mapping"),
        ("extractor_options: {1: 2}", "its keys must be texts, and 1 is none"),
    ],
)
def test_wrong_value_is_refused_with_its_line_and_what_is_allowed(tmp_path, text, expected):
    message = errors(tmp_path, text + "\n")
    assert f"line 6: `{text.split(':')[0]}` is " in message
    assert expected in message


def test_unknown_extractor_is_refused(tmp_path):
    message = errors(tmp_path, "extractor: tripets\n", without=("extractor",))
    assert (
        "`extractor` is tripets but the extractors of this version are: triplets, continuity, persona_tree." in message
    )


@pytest.mark.parametrize(
    ("mixture", "expected"),
    [
        ("[]", "must name at least one dataset folder"),
        ("[folder]", "write `- path: folder`"),
        ("[3]", "item 1 must be a mapping"),
        ("[{path: a}, {fraction: 0.5}]", "item 2 has no `path`"),
        ("[{path: a, weight: 0.5}]", "item 1 has the unknown key `weight`. Write `fraction`."),
        ("[{path: a, fraction: 0.5, rows: 3}]", "both `fraction` and `rows`"),
        ("[{path: a, fraction: 0}]", "`fraction` of item 1 is 0 but must be greater than 0 and at most 1"),
        ("[{path: a, fraction: 1.5}]", "must be greater than 0 and at most 1"),
        ("[{path: a, rows: 0}]", "must be at least 1"),
        ("[{path: 3}]", "Put it in quotes"),
        ("folder", "must be a list"),
    ],
)
def test_wrong_mixture_is_refused_with_the_position_of_its_item(tmp_path, mixture, expected):
    assert expected in errors(tmp_path, f"datasets: {mixture}\n", without=("dataset_name",))


def test_all_errors_of_file_and_command_line_come_together_in_order(tmp_path):
    message = errors(
        tmp_path,
        "lora_r: 16.5\ntorch_dtype: float32\nlearning_rate: fast\n",
        ["--max_len", "5"],
        without=("output_dir",),
    )
    lines = message.splitlines()
    assert lines[0].endswith("recipe.yaml: 5 errors")
    starts = [line.strip().split("`")[0] + line.split("`")[1] for line in lines[1:]]
    assert starts == [
        "line 5: lora_r",
        "line 6: torch_dtype",
        "line 7: learning_rate",
        "command line: max_len",
        "output_dir",
    ]


# Speed and purity


def test_broken_recipe_is_refused_without_torch_transformers_or_trl(tmp_path):
    path = write(tmp_path, "lr: 1\nload_in_4bit: true\n")
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from recipes.loader import RecipeError, find_recipes, load_recipe, describe_key\n"
        "for recipe in find_recipes():\n"
        "    load_recipe(recipe, environ={})\n"
        "describe_key('learning_rate')\n"
        "try:\n"
        f"    load_recipe(Path({str(path)!r}))\n"
        "except RecipeError as error:\n"
        "    print(error)\n"
        "heavy = {'torch', 'transformers', 'trl', 'peft', 'datasets', 'accelerate', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 2)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "Write `learning_rate: 1`" in done.stdout and "Set `dtype: bfloat16`" in done.stdout


# show-key


def test_describe_key_tells_section_type_range_default_and_help():
    text = describe_key("lora_dropout")
    assert "TRL's ModelConfig" in text and "type: float" in text and "less than 1" in text and "default: 0.05" in text
    assert "Mnemosmith's own" in describe_key("overlong_rows") and "one of: refuse, drop" in describe_key(
        "overlong_rows"
    )
    assert "required" in describe_key("output_dir")


def test_describe_key_answers_for_another_tool_s_key_and_refuses_nonsense():
    assert "Write `dtype: <value>`" in describe_key("torch_dtype")
    assert "HF_TOKEN" in describe_key("hub_token")
    with pytest.raises(RecipeError, match="Did you mean `learning_rate`"):
        describe_key("lerning_rate")


# Properties

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-5, 5000), st.floats(), st.text(max_size=12))
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(st.text(max_size=6), SCALARS, max_size=3))
KEYS = st.one_of(st.sampled_from(sorted([*known_keys(), *RENAMED, *CHANGED])), st.text(min_size=1, max_size=16))


@settings(max_examples=300, deadline=None)
@given(extra=st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_yaml_gives_a_recipe_that_survives_its_own_text_or_a_recipe_error(tmp_path_factory, extra):
    import yaml

    path = tmp_path_factory.mktemp("any") / "recipe.yaml"
    path.write_text(yaml.safe_dump({**BASE, **extra}, allow_unicode=True), encoding="utf-8")
    try:
        recipe = load_recipe(path, environ={})
    except RecipeError as error:
        assert error.problems and all(problem.endswith((".", "?")) for problem in error.problems)
        return
    path.write_text(recipe.to_yaml(), encoding="utf-8")
    assert load_recipe(path, environ={}).values == recipe.values


@settings(max_examples=200, deadline=None)
@given(
    arguments=st.lists(st.text(max_size=12) | st.sampled_from(["--seed", "--run_name=", "--packing", "--"]), max_size=5)
)
def test_any_command_line_gives_values_or_a_recipe_error(tmp_path_factory, arguments):
    path = write(tmp_path_factory.mktemp("any"), "")
    try:
        assert set(load_recipe(path, arguments, environ={}).values) <= set(known_keys())
    except RecipeError as error:
        assert error.problems
