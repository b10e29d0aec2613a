"""Training itself, on tiny random models of real architectures: what moves, what is saved, what resumes, what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from extractors import load_extractor
from recipes.loader import load_recipe
from tests.tiny import make_tiny_chat_model
from tests.training.test_data import write_split
from training.record import RunError
from training.sft import main, train

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_chat_model(tmp_path_factory.mktemp("tiny") / "model", "qwen3", template="qwen3")


@pytest.fixture
def recipe(tmp_path: Path, tiny: Path) -> dict[str, Any]:
    data = write_split(tmp_path / "data", 16)
    write_split(data, 4, "d", "dev")
    return {
        "method": "sft",
        "extractor": "triplets",
        "extractor_options": {"prompt": "compact"},
        "dataset_name": str(data),
        "model_name_or_path": str(tiny),
        "dtype": "float32",
        "output_dir": str(tmp_path / "run"),
        "use_cpu": True,
        "bf16": False,
        "use_peft": True,
        "lora_r": 4,
        "lora_alpha": 8,
        "lora_target_modules": ["q_proj", "down_proj"],
        "learning_rate": 1e-2,
        "max_steps": 4,
        "per_device_train_batch_size": 2,
        "gradient_checkpointing": False,
        "logging_steps": 1,
        "save_steps": 2,
        "report_to": "none",
        "seed": 1,
    }


def run(values: dict[str, Any], folder: Path, *arguments: str) -> int:
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return main(["--config", str(path), *arguments])


def train_recipe(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    loaded = load_recipe(path)
    return train(loaded, load_extractor(loaded.extractor, loaded.extractor_options))


def losses(output: Path) -> list[float]:
    log = [json.loads(line) for line in (output / "train_log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [entry["loss"] for entry in log if "loss" in entry]


def adapter(output: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(output / "adapter_model.safetensors")


def test_lora_moves_the_adapter_alone_and_the_record_says_what_was_done(recipe: dict[str, Any], tmp_path: Path):
    record = train_recipe(recipe | {"eval_strategy": "steps", "eval_steps": 2}, tmp_path)
    weights = adapter(tmp_path / "run")
    assert {name.split(".")[-3] for name in weights} == {"q_proj", "down_proj"}
    assert all(weights[name].abs().sum() > 0 for name in weights if "lora_B" in name)
    saved = json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))
    assert saved == json.loads(json.dumps(record))
    assert (saved["status"], saved["steps"], saved["tokens"]["rows"]) == ("finished", 4, 16)
    assert saved["extractor"] == load_extractor("triplets", {"prompt": "compact"}).to_json()
    assert saved["dataset"][0]["rows"] == 16 and len(saved["dataset"][0]["sha256"]) == 64
    assert saved["eval_loss"] > 0 and saved["figures"]["tokens_per_s"] > 0
    for name in ("recipe.yaml", "README.md", "tokenizer.json", "train_log.jsonl", "adapter_config.json"):
        assert (tmp_path / "run" / name).is_file(), name


def test_full_fine_tuning_moves_every_weight_and_saves_a_whole_model(
    recipe: dict[str, Any], tmp_path: Path, tiny: Path
):
    from safetensors.torch import load_file

    plain = {k: v for k, v in recipe.items() if not k.startswith("lora") and k != "use_peft"}
    train_recipe(plain, tmp_path)
    before, after = load_file(tiny / "model.safetensors"), load_file(tmp_path / "run/model.safetensors")
    assert [name for name in before if before[name].equal(after[name])] == []


def test_the_short_way_on_a_cpu_gives_trls_loss_gradients_and_metrics(tiny: Path, tmp_path: Path):
    import torch
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    from training.trainer import GuardedSFTTrainer

    rows = [{"prompt": "Mia: I love jazz." * n, "completion": '[{"relation":"like_music"}]' * n} for n in (1, 2, 3, 4)]
    seen = []
    for trainer_class in (SFTTrainer, GuardedSFTTrainer):
        arguments = SFTConfig(
            output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to="none", gradient_checkpointing=False
        )
        trainer = trainer_class(str(tiny), args=arguments, train_dataset=Dataset.from_list(rows))
        batch = trainer.data_collator([trainer.train_dataset[place] for place in range(4)])
        trainer.model.train()
        loss = trainer.compute_loss(trainer.model, dict(batch), num_items_in_batch=torch.tensor(50))
        loss.backward()
        gradients = {name: p.grad.clone() for name, p in trainer.model.named_parameters()}
        seen.append((loss.detach(), gradients, {name: value[-1] for name, value in trainer._metrics["train"].items()}))
    (theirs, their_gradients, their_metrics), (ours, our_gradients, our_metrics) = seen
    torch.testing.assert_close(ours, theirs)
    for name, gradient in their_gradients.items():
        torch.testing.assert_close(our_gradients[name], gradient, rtol=1e-3, atol=1e-5)
    assert our_metrics == pytest.approx(their_metrics, rel=1e-4) and set(our_metrics) >= {"entropy", "num_tokens"}


def test_true_four_bit_training_on_a_cpu_moves_the_adapter(recipe: dict[str, Any], tmp_path: Path):
    pytest.importorskip("bitsandbytes", reason="4-bit layers come from bitsandbytes")
    record = train_recipe(recipe | {"load_in_4bit": True, "use_bnb_nested_quant": True, "max_steps": 2}, tmp_path)
    assert record["quantization"] == "nf4"
    assert all(w.abs().sum() > 0 for name, w in adapter(tmp_path / "run").items() if "lora_B" in name)


def test_four_steps_equal_two_and_a_resume_for_two_more(recipe: dict[str, Any], tmp_path: Path):
    straight = recipe | {"output_dir": str(tmp_path / "straight"), "lr_scheduler_type": "constant"}
    train_recipe(straight, tmp_path)
    halves = straight | {"output_dir": str(tmp_path / "halves")}
    train_recipe(halves | {"max_steps": 2}, tmp_path)
    record = train_recipe(halves, tmp_path)
    assert record["steps"] == 4
    assert losses(tmp_path / "halves") == losses(tmp_path / "straight")
    one, two = adapter(tmp_path / "straight"), adapter(tmp_path / "halves")
    assert all(one[name].equal(two[name]) for name in one)


def test_resuming_with_another_rank_is_refused_and_names_both(recipe: dict[str, Any], tmp_path: Path, capsys):
    assert run(recipe | {"max_steps": 2}, tmp_path) == 0
    assert run(recipe | {"lora_r": 8}, tmp_path) == 2
    assert "`lora_r` was 4 and is 8" in capsys.readouterr().err


@pytest.mark.parametrize("key, value", [("assistant_only_loss", True), ("completion_only_loss", False)])
def test_a_key_that_would_change_nothing_is_refused(
    recipe: dict[str, Any], tmp_path: Path, capsys, key: str, value: bool
):
    assert run(recipe | {key: value}, tmp_path) == 2
    assert f"`{key}`" in capsys.readouterr().err


def test_resuming_on_other_rows_is_refused(recipe: dict[str, Any], tmp_path: Path, capsys):
    assert run(recipe | {"max_steps": 2}, tmp_path) == 0
    write_split(tmp_path / "data", 17)
    assert run(recipe, tmp_path) == 2
    assert "split 'train' has changed since" in capsys.readouterr().err


def test_a_checkpoint_that_does_not_exist_is_an_error_and_not_a_fresh_start(
    recipe: dict[str, Any], tmp_path: Path, capsys
):
    assert run(recipe, tmp_path, "--resume_from_checkpoint", str(tmp_path / "run/checkpoint-7")) == 2
    assert "is no checkpoint folder" in capsys.readouterr().err


def test_a_fresh_start_over_an_earlier_runs_checkpoints_is_refused(recipe: dict[str, Any], tmp_path: Path, capsys):
    assert run(recipe | {"max_steps": 2}, tmp_path) == 0
    assert run(recipe, tmp_path, "--resume_from_checkpoint", "false") == 2
    assert "checkpoint-2 of an earlier run" in capsys.readouterr().err


def test_a_run_that_diverges_stops_and_leaves_no_weights(recipe: dict[str, Any], tmp_path: Path, tiny: Path, capsys):
    from safetensors.torch import load_file, save_file

    broken = Path(shutil.copytree(tiny, tmp_path / "broken"))
    weights = load_file(broken / "model.safetensors")
    weights["model.layers.1.mlp.up_proj.weight"][0, 0] = float("nan")
    save_file(weights, broken / "model.safetensors", {"format": "pt"})
    assert run(recipe | {"model_name_or_path": str(broken)}, tmp_path) == 1
    assert re.search(r"`(loss|grad_norm)` is nan at step 1: the run has diverged", capsys.readouterr().err)
    assert not (tmp_path / "run/adapter_model.safetensors").exists()
    assert json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))["status"] == "running"


def test_an_adapter_that_matches_no_module_is_an_error(recipe: dict[str, Any], tmp_path: Path):
    with pytest.raises((ValueError, RunError), match="nothing_proj"):
        train_recipe(recipe | {"lora_target_modules": ["nothing_proj"]}, tmp_path)


def test_two_processes_equal_one_with_two_accumulated_steps(recipe: dict[str, Any], tmp_path: Path):
    # Plain SGD: Adam divides by the gradient's size, which turns rounding noise of near-zero gradients into whole steps.
    # No dropout: two processes draw other masks than one.
    same = {"optim": "sgd", "learning_rate": 0.1, "lora_dropout": 0.0, "max_steps": 2, "lr_scheduler_type": "constant"}
    common = recipe | same
    train_recipe(common | {"output_dir": str(tmp_path / "one"), "gradient_accumulation_steps": 2}, tmp_path)
    (tmp_path / "two.yaml").write_text(
        yaml.safe_dump(common | {"output_dir": str(tmp_path / "two"), "ddp_backend": "gloo"}), encoding="utf-8"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [*command, "-m", "training.sft", "--config", str(tmp_path / "two.yaml")],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads((tmp_path / "two/run.json").read_text(encoding="utf-8"))
    assert record["world_size"] == 2
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-5)
    one, two = adapter(tmp_path / "one"), adapter(tmp_path / "two")
    for name in one:
        assert (one[name] - two[name]).abs().max() < 1e-5, name


def test_a_dry_run_shows_mask_tokens_and_steps_and_writes_nothing(recipe: dict[str, Any], tmp_path: Path, capsys):
    assert run(recipe | {"num_train_epochs": 2, "max_steps": -1}, tmp_path, "--dry-run") == 0
    shown = capsys.readouterr().out
    assert '⟦[{"subject":"Mia","relation":"own","object":"0 cats"}]<|im_end|>⟧' in shown
    assert "rows: 16" in shown and "dropped: 0" in shown
    assert "16 = 8 an epoch x 2" in shown
    assert "total:" in shown and "GiB" in shown
    assert not (tmp_path / "run").exists()


def test_a_dry_run_of_a_broken_recipe_answers_without_importing_torch(recipe: dict[str, Any], tmp_path: Path):
    path = tmp_path / "broken.yaml"
    path.write_text(yaml.safe_dump(recipe | {"lora_rank": 8, "learning_rate": "fast"}), encoding="utf-8")
    script = (
        "import sys, mnemosmith\n"
        f"code = mnemosmith.main(['train', {str(path)!r}, '--dry-run'])\n"
        "heavy = {'torch', 'transformers', 'trl', 'peft', 'datasets', 'openai'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else code)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "`lora_rank`" in done.stderr and "`lora_r: 8`" in done.stderr and "`learning_rate`" in done.stderr


def test_the_command_line_helps_without_importing_torch():
    script = (
        "import sys, mnemosmith\n"
        "code = mnemosmith.main(['--help'])\n"
        "sys.exit(code or int('torch' in sys.modules or 'openai' in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "quickstart" in done.stdout
