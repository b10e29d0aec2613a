"""Every file under recipes/ is read by the reader that a run would use."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from extractors import EXTRACTORS, load_extractor
from recipes.checks import cross_field_problems
from recipes.keys import EXTRACTORS as KNOWN_EXTRACTORS
from recipes.keys import known_keys, snapshot
from recipes.loader import RECIPES, find_recipes, load_recipe

TRAINING = {
    "persona_tree/qwen2.5-7b-dapo.yaml",
    "persona_tree/qwen2.5-7b-qlora.yaml",
    "persona_tree/qwen3-8b-dapo-lora.yaml",
    "persona_tree/qwen3-8b-dapo.yaml",
    "persona_tree/qwen3-8b-full.yaml",
    "persona_tree/qwen3-8b-qlora.yaml",
    "quickstart/persona-tree-dapo-smollm2-135m.yaml",
    "quickstart/persona-tree-smollm2-135m.yaml",
    "quickstart/triplets-smollm2-135m.yaml",
    "triplets/llama3.1-8b-qlora.yaml",
    "triplets/qwen3-8b-qlora-8gpu.yaml",
    "triplets/qwen3-8b-qlora.yaml",
    "triplets/smollm2-135m-full-cpu.yaml",
    "triplets/smollm2-135m-lora-cpu.yaml",
}
ACCELERATE = {"single.yaml", "ddp.yaml", "zero2.yaml", "zero3.yaml", "zero3_offload.yaml", "fsdp2.yaml"}
NO_TRAINING = {"accelerate"}  # folders whose YAML files other programs read


def recipe_id(path: Path) -> str:
    return str(path.relative_to(RECIPES))


def test_the_tree_holds_exactly_the_recipes_that_the_readme_lists():
    found = {recipe_id(path) for path in find_recipes()}
    assert found == TRAINING and len(found) == 14
    readme = (RECIPES / "README.md").read_text(encoding="utf-8")
    assert [name for name in sorted(found) if f"`{name}`" not in readme] == []


def test_no_file_that_looks_like_a_training_recipe_escapes_the_search():
    """A recipe that forgot `method` would otherwise never be read by these tests."""
    found = set(find_recipes())
    for path in RECIPES.rglob("*.y*ml"):
        if path in found or path.relative_to(RECIPES).parts[0] in NO_TRAINING:
            continue
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert "learning_rate" not in (data or {}), f"{path} has no `method`"


@pytest.mark.parametrize("path", find_recipes(), ids=recipe_id)
def test_shipped_recipe_is_valid_and_builds_its_extractor(path):
    recipe = load_recipe(path, environ={})
    extractor = load_extractor(recipe.extractor, recipe.extractor_options)
    assert extractor.name == recipe.extractor


@pytest.mark.parametrize("path", find_recipes(), ids=recipe_id)
@pytest.mark.parametrize("cpu_bf16", [False, True])
def test_shipped_recipe_is_valid_on_cpus_with_and_without_bf16(path, cpu_bf16):
    recipe = load_recipe(path, environ={})
    assert cross_field_problems(recipe.values, known_keys(recipe.method), environ={}, cpu_bf16=cpu_bf16) == []


@pytest.mark.parametrize("path", find_recipes(), ids=recipe_id)
def test_shipped_recipe_names_its_own_launch_line_and_what_is_not_measured(path):
    header = path.read_text(encoding="utf-8").split("\n\n")[0]
    assert f"--config recipes/{recipe_id(path)}" in header
    assert "Hardware:" in header
    assert "Not measured yet" in header or "reports what it measured" in header


@pytest.mark.parametrize("path", find_recipes(), ids=recipe_id)
def test_shipped_recipe_is_accepted_by_trl_itself(path):
    from trl import GRPOConfig, ModelConfig, SFTConfig

    recipe = load_recipe(path, environ={})
    config = {"sft": SFTConfig, "grpo": GRPOConfig}[recipe.method]
    ours = {"num_generations_eval": 1} if recipe.method == "grpo" else {}  # as training.grpo sets it
    # TRL refuses bf16 where it sees no GPU; everything else of the recipe is handed over as it is.
    trainer = config(**{**recipe.trainer_values(), **ours, "use_cpu": True})
    model = ModelConfig(**recipe.model_values())
    assert trainer.learning_rate == recipe.values["learning_rate"]
    assert model.model_name_or_path == recipe.values["model_name_or_path"]


@pytest.mark.parametrize("path", find_recipes(), ids=recipe_id)
def test_resolved_recipe_is_itself_the_same_recipe(path, tmp_path):
    recipe = load_recipe(path, ["--learning_rate", "3e-4", "--run_name", "123"], environ={})
    written = tmp_path / "recipe.yaml"
    written.write_text(recipe.to_yaml(), encoding="utf-8")
    assert load_recipe(written, environ={}).values == recipe.values
    assert "# Task" in written.read_text() and "# Trainer" in written.read_text()


def test_qwen3_recipes_train_as_the_paper_says_with_an_effective_batch_of_16():
    for name, processes in (("qwen3-8b-qlora", 1), ("llama3.1-8b-qlora", 1), ("qwen3-8b-qlora-8gpu", 8)):
        values = load_recipe(RECIPES / "triplets" / f"{name}.yaml", environ={}).values
        batch = values["per_device_train_batch_size"] * values["gradient_accumulation_steps"] * processes
        assert batch == 16
        assert (values["lora_r"], values["lora_alpha"], values["num_train_epochs"]) == (32, 32, 10)
        assert values["learning_rate"] == 2e-4
        assert (values["bnb_4bit_quant_type"], values["use_bnb_nested_quant"], values["dtype"]) == (
            "nf4",
            True,
            "bfloat16",
        )
        assert len(values["lora_target_modules"]) == 7


def test_every_accelerate_configuration_is_read_by_accelerate():
    from accelerate.commands.config.config_args import load_config_from_file

    files = sorted((RECIPES / "accelerate").glob("*.yaml"))
    assert {path.name for path in files} == ACCELERATE and len(files) == 6
    expected = {
        "single.yaml": ("NO", 1),
        "ddp.yaml": ("MULTI_GPU", 8),
        "zero2.yaml": ("DEEPSPEED", 8),
        "zero3.yaml": ("DEEPSPEED", 8),
        "zero3_offload.yaml": ("DEEPSPEED", 2),
        "fsdp2.yaml": ("FSDP", 8),
    }
    for path in files:
        config = load_config_from_file(str(path))
        kind = getattr(config.distributed_type, "value", config.distributed_type)
        assert (kind, config.num_processes) == expected[path.name]
        assert config.mixed_precision == "bf16" and config.use_cpu is False
    for name in ("zero3.yaml", "zero3_offload.yaml"):
        zero3 = load_config_from_file(str(RECIPES / "accelerate" / name))
        assert zero3.deepspeed_config["zero_stage"] == 3 and zero3.deepspeed_config["zero3_save_16bit_model"] is True


def test_the_faithful_recipe_of_reinforcement_learning_is_the_papers():
    """Inside Out's training script; batch sizes count completions."""
    values = load_recipe(RECIPES / "persona_tree" / "qwen3-8b-dapo.yaml", environ={"WORLD_SIZE": "2"}).values
    paper = {
        "loss_type": "dapo", "epsilon": 0.2, "epsilon_high": 0.28, "beta": 0.001, "num_generations": 8,
        "dynamic_sampling_max_tries": 3, "learning_rate": 1e-6, "warmup_steps": 0.01, "max_grad_norm": 1.0,
        "temperature": 1.0, "top_p": 0.9, "top_k": 50, "num_train_epochs": 1, "max_completion_length": 512,
        "vllm_max_model_length": 11264, "vllm_gpu_memory_utilization": 0.4, "vllm_mode": "colocate",
        "per_device_train_batch_size": 1, "gradient_accumulation_steps": 8, "shuffle_dataset": False,
        "save_steps": 20, "eval_steps": 20, "use_peft": False, "dtype": "bfloat16",
    }  # fmt: skip
    assert {name: values[name] for name in paper} == paper
    for name in ("qwen3-8b-dapo", "qwen3-8b-dapo-lora", "qwen2.5-7b-dapo"):
        values = load_recipe(RECIPES / "persona_tree" / f"{name}.yaml", environ={}).values
        assert values["use_bias_correction_kl"] is False and values["mask_truncated_completions"] is True


@pytest.mark.parametrize(
    ("config", "refused"),
    [("single", False), ("ddp", False), ("zero2", False), ("zero3", True), ("zero3_offload", True), ("fsdp2", True)],
)
def test_what_accelerate_launch_tells_its_processes_decides_whether_4_bit_is_refused(config, refused):
    """Reads the environment that accelerate really prepares for each shipped configuration."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils import prepare_deepspeed_cmd_env, prepare_multi_gpu_env, prepare_simple_launcher_cmd_env

    file = str(RECIPES / "accelerate" / f"{config}.yaml")
    arguments = launch_command_parser().parse_args(["--config_file", file, "-m", "training.sft"])
    arguments, _, _ = _validate_launch_command(arguments)
    if config.startswith("zero"):
        arguments.deepspeed_fields_from_accelerate_config = ""  # set by accelerate only where deepspeed is installed
        _, environ = prepare_deepspeed_cmd_env(arguments)
    elif config == "single":
        _, environ = prepare_simple_launcher_cmd_env(arguments)
    else:
        environ = prepare_multi_gpu_env(arguments)
    values = load_recipe(RECIPES / "triplets" / "qwen3-8b-qlora-8gpu.yaml", environ={}).values
    problems = cross_field_problems(values, known_keys(), environ=environ)
    assert bool(problems) is refused


def test_snapshot_equals_the_installed_trl():
    from recipes.snapshot import take_snapshot

    assert snapshot() == take_snapshot(), "run `python -m recipes.snapshot`"


def test_the_loader_knows_the_extractors_that_exist():
    assert set(KNOWN_EXTRACTORS) == set(EXTRACTORS)
