"""Reinforcement learning on tiny random models: the objective against its formula, the start, dynamic sampling, resuming."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from extractors import InputError
from mnemosmith import main as mnemosmith
from recipes.loader import RecipeError, load_recipe
from tests.serve.scripted_server import Reply, chat, scripted_server
from tests.tiny import make_tiny_chat_model
from tests.training import grpo_runs as runs
from tests.training.grpo_objective import largest_error, objective_errors
from training.group_trainer import BaseWeights
from training.groups import advantages
from training.grpo import curve, hacked, main, refuse_overfull
from training.rewards.process import Reward
from training.sft import main as train_sft

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_chat_model(tmp_path_factory.mktemp("tiny") / "model", "qwen3", template="qwen3")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = runs.write_rows(tmp_path_factory.mktemp("data"))
    return runs.write_rows(folder, 4, "dev")


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory, tiny: Path, data: Path) -> Path:
    """What two processes found (torchrun, gloo), for all tests that ask."""
    folder = tmp_path_factory.mktemp("two")
    for accumulated in (1, 2):
        runs.write_recipe(
            folder / f"objective-{accumulated}",
            data,
            tiny,
            per_device_train_batch_size=8 // accumulated,
            gradient_accumulation_steps=accumulated,
        )
    runs.write_recipe(
        folder / "sampled", data, tiny, per_device_train_batch_size=8, dynamic_sampling_max_tries=3, max_steps=4
    )
    # A group of four on two processes of two: one group is made by both.
    runs.write_recipe(
        folder / "split",
        data,
        tiny,
        per_device_train_batch_size=2,
        num_generations=4,
        dynamic_sampling_max_tries=3,
        max_steps=4,
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [*command, str(ROOT / "tests" / "training" / "grpo_runs.py"), str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory, tiny: Path, data: Path) -> Path:
    """The tiny model after a little SFT: it writes operations, not always the right ones."""
    folder = tmp_path_factory.mktemp("start")
    recipe = {
        "method": "sft",
        "extractor": "persona_tree",
        "extractor_options": runs.OPTIONS,
        "dataset_name": str(data),
        "model_name_or_path": str(tiny),
        "dtype": "float32",
        "output_dir": str(folder / "run"),
        "use_cpu": True,
        "bf16": False,
        "max_steps": 35,
        "per_device_train_batch_size": 12,
        "learning_rate": 3e-3,
        "gradient_checkpointing": False,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "seed": 1,
    }
    (folder / "sft.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    assert train_sft(["--config", str(folder / "sft.yaml")]) == 0
    return folder / "run"


# The objective, computed anew in float64 (tests/training/grpo_objective.py)


@pytest.mark.parametrize("credit", [0.0, 0.5], ids=["credit of the completion", "credit of each operation"])
@pytest.mark.parametrize("stale", [False, True], ids=["on policy", "both clips at work"])
def test_loss_and_gradient_are_those_of_the_papers_objective_in_float64(
    tmp_path: Path, tiny: Path, data: Path, stale: bool, credit: float
):
    found = objective_errors(tmp_path, tiny, data, stale, credit)
    assert found.loss < 1e-5 and found.gradient < 1e-5
    assert (found.clipped_low > 0 and found.clipped_high > 0) is stale


def test_loss_and_gradient_are_the_same_on_one_and_two_processes_and_accumulated(
    tmp_path: Path, tiny: Path, data: Path, two_processes: Path
):
    found = [torch.load(two_processes / f"objective-{accumulated}" / "found.pt") for accumulated in (1, 2)]
    for accumulated in (1, 2):
        recipe = runs.write_recipe(
            tmp_path / str(accumulated),
            data,
            tiny,
            per_device_train_batch_size=16 // accumulated,
            gradient_accumulation_steps=accumulated,
        )
        found.append(runs.one_step(recipe))
    first = found[0]
    assert first["kl"] > 0.01
    for other in found[1:]:
        assert other["loss"] == pytest.approx(first["loss"], abs=1e-5)
        assert other["counts"] == first["counts"]
        gradients = {name.removeprefix("module."): each for name, each in other["gradients"].items()}
        assert largest_error(gradients, {n.removeprefix("module."): g for n, g in first["gradients"].items()}) < 1e-5
    assert first["counts"] == {
        "groups": 2, "flat": 0, "replaced": 0, "left_flat": 0, "unscorable": 2, "masked": 4,
    }  # fmt: skip


# The start


@pytest.mark.parametrize("peft", [True, False], ids=["LoRA on the merged start", "all weights, a frozen copy"])
def test_the_kl_of_the_first_step_is_exactly_zero(tmp_path: Path, tiny: Path, data: Path, peft: bool):
    lora = {} if peft else dict.fromkeys(("lora_r", "lora_alpha", "lora_dropout", "lora_target_modules"))
    recipe = runs.write_recipe(tmp_path, data, tiny, use_peft=peft, max_steps=2, **lora)
    trainer = runs.make_trainer(recipe, runs.known_reward)
    runs.know_completions(trainer)
    trainer.train()
    kl = [entry["kl"] for entry in trainer.state.log_history if "kl" in entry]
    assert kl[0] == 0.0 and kl[1] > 0.0


def test_an_adapter_is_no_start(tmp_path: Path, tiny: Path, data: Path, capsys: pytest.CaptureFixture[str]):
    start = tmp_path / "adapter"
    start.mkdir()
    (start / "adapter_config.json").write_text("{}")
    assert main(["--config", str(runs.write_recipe(tmp_path, data, start))]) == 2
    message = capsys.readouterr().err
    assert "an adapter" in message and f"mnemosmith export {start} OUT" in message


def test_an_export_of_another_contract_is_no_start(
    tmp_path: Path, tiny: Path, data: Path, capsys: pytest.CaptureFixture[str]
):
    start = tmp_path / "start"
    start.mkdir()
    (start / "extractor.json").write_text(json.dumps({"name": "triplets", "options": {}, "prompt": {}}))
    assert main(["--config", str(runs.write_recipe(tmp_path, data, start))]) == 2
    assert "was trained for another contract (`name`, `options`, `prompt`" in capsys.readouterr().err


def test_weights_below_an_adapter_are_bit_equal_after_many_syncs(tiny: Path):
    base = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.bfloat16)
    model = get_peft_model(base, LoraConfig(r=4, target_modules=["q_proj", "down_proj"]))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.05)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}

    def sync() -> None:  # what TRL does around each hand-over to vLLM
        model.merge_adapter()
        model.unmerge_adapter()

    kept = BaseWeights(model)
    for _ in range(20):
        sync()
        kept.restore()
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    sync()
    assert not all(torch.equal(p, before[name]) for name, p in model.named_parameters()), "without it the base drifts"


# Dynamic sampling


@pytest.mark.parametrize("where", ["one process", "two processes", "two processes, a group on both"])
def test_groups_of_one_reward_are_replaced_by_new_prompts(
    tmp_path: Path, tiny: Path, data: Path, two_processes: Path, where: str
):
    if where == "one process":
        recipe = runs.write_recipe(tmp_path, data, tiny, dynamic_sampling_max_tries=3, max_steps=4)
        found = runs.sampled_steps(recipe)
    else:
        folder = two_processes / ("split" if "both" in where else "sampled")
        found, other = (json.loads((folder / f"found-{rank}.json").read_text()) for rank in (0, 1))
        assert found == other, "every process saw the same groups and stands at the same place"
    size = 4 if "both" in where else runs.GROUP
    counts, position = found["counts"], found["position"]
    assert counts["flat"] > 0 and counts["replaced"] >= counts["flat"]
    assert position >= counts["replaced"], "each replacement was drawn from the stream"
    left = 0
    for step in found["steps"]:
        assert step["tokens"] == step["tokens_counted"], "the normaliser counts the tokens of the final batch"
        for start in range(0, len(step["rows"]), size):
            rows, got = step["rows"][start : start + size], step["advantages"][start : start + size]
            assert len(set(rows)) == 1, "a group has one prompt"
            if rows[0] in runs.FLAT_ROWS:
                left += 1
                assert got == [0.0] * size
            else:
                rewards = step["rewards"][start : start + size]
                assert got == pytest.approx(advantages([rewards])[0], abs=1e-5)
    assert left == counts["left_flat"] < counts["flat"]


def test_a_group_that_stays_flat_is_given_up_after_the_tries_and_counted(tmp_path: Path, tiny: Path, data: Path):
    recipe = runs.write_recipe(tmp_path, data, tiny, dynamic_sampling_max_tries=2)
    found = runs.sampled_steps(recipe, lambda asked: [Reward(0.3, {}) for _ in asked])
    assert found["counts"] | {"masked": 0} == {
        "groups": 2, "flat": 2, "replaced": 4, "left_flat": 2, "unscorable": 0, "masked": 0,
    }  # fmt: skip
    assert found["steps"][0]["advantages"] == [0.0] * 16


def test_a_resumed_run_sees_the_same_batches_as_one_that_went_through(tmp_path: Path, tiny: Path, data: Path):
    common: dict[str, Any] = {
        "dynamic_sampling_max_tries": 3,
        "max_steps": 4,
        "save_strategy": "steps",
        "save_steps": 2,
    }
    whole = runs.write_recipe(tmp_path / "whole", data, tiny, **common)
    through = runs.sampled_steps(whole)
    trainer = runs.make_trainer(whole, runs.half_flat)
    seen: list[list[str]] = []
    made = trainer._generate_and_score_completions

    def look(inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = made(inputs)
        seen.append([rollout.text for rollout in trainer._everywhere])
        return output

    trainer._generate_and_score_completions = look  # type: ignore[method-assign]
    trainer.train(resume_from_checkpoint=str(tmp_path / "whole" / "run" / "checkpoint-2"))
    assert seen == [step["texts"] for step in through["steps"][2:]]
    assert trainer.counts == through["counts"] and trainer.stream.position == through["position"]


# A whole run, from the command line


@pytest.mark.parametrize("checkpointing", [False, True], ids=["prompts shared", "as on a GPU"])
def test_a_run_trains_evaluates_and_leaves_a_record_that_exports(
    tmp_path: Path, start: Path, data: Path, checkpointing: bool, capsys: pytest.CaptureFixture[str]
):
    """With gradient checkpointing prompts are not shared: TRL's own sampling and whole rows, as on a GPU."""
    recipe = runs.write_recipe(
        tmp_path,
        data,
        start,
        max_steps=2,
        dynamic_sampling_max_tries=1,
        max_completion_length=64,
        gradient_checkpointing=checkpointing,
        eval_strategy="steps",
        eval_steps=1,
        per_device_eval_batch_size=2,
    )
    assert main(["--config", str(recipe)]) == 0
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["status"] == "finished" and record["steps"] == 2 and record["groups"]["groups"] == 4
    assert record["recipe"]["reward"] == "process" and "api" not in json.dumps(record)
    log = [json.loads(line) for line in (tmp_path / "run" / "train_log.jsonl").read_text().splitlines()]
    steps = [entry for entry in log if "reward" in entry]
    assert {"components/gate", "components/gate/spread", "groups/flat", "groups/spread"} <= steps[0].keys()
    measured = [entry for entry in log if "eval_state_f1" in entry]
    assert len(measured) == 2 and all(0 <= entry["eval_state_f1"] <= 1 for entry in measured)
    assert measured[0]["eval_parse_rate"] > 0.5
    assert "first and last fifth" in capsys.readouterr().out

    assert mnemosmith(["export", str(tmp_path / "run"), str(tmp_path / "out")]) == 0
    exported = json.loads((tmp_path / "out" / "extractor.json").read_text())
    assert exported["name"] == "persona_tree" and not (tmp_path / "out" / "adapter_config.json").exists()


def test_a_run_in_which_no_rewards_differ_says_so_and_saves_nothing(
    tmp_path: Path, tiny: Path, data: Path, capsys: pytest.CaptureFixture[str]
):
    recipe = runs.write_recipe(tmp_path, data, tiny)  # random weights: nothing can be read, each reward is -1
    assert main(["--config", str(recipe)]) == 1
    assert "in no group did the rewards differ" in capsys.readouterr().err
    assert not (tmp_path / "run" / "adapter_model.safetensors").exists()


def test_a_dry_run_shows_prompt_batch_and_memory(
    tmp_path: Path, tiny: Path, data: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["--config", str(runs.write_recipe(tmp_path, data, tiny)), "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "12 prompts of" in shown and "⟦NO_OP()⟧" in shown
    assert "step of 16 completions = 2 prompts x 8: 16 x 1 accumulated x 1 processes" in shown
    assert "total:" in shown and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"reward_options": {"operations": 0.9}}, "`reward_options` do not fit `reward: process`"),
        ({"reward_options": {"fluency": 0.9}}, "unexpected keyword argument 'fluency'"),
        ({"reward": "judge", "reward_options": {"base_url": "https://api.x.org", "model": "m"}}, "OPENAI_API_KEY"),
        ({"reward_weights": [0.5]}, "`reward_weights` (there is one reward"),
        ({"num_generations_eval": 4}, "`num_generations_eval` (evaluation decodes greedily"),
        ({"max_completion_length": 2000}, "12 of 12 prompts of split 'train' (the first is 'train-0')"),
    ],
)
def test_what_cannot_be_used_is_refused_before_weights_are_read(
    tmp_path: Path,
    tiny: Path,
    data: Path,
    changed: dict[str, Any],
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert main(["--config", str(runs.write_recipe(tmp_path, data, tiny, **changed))]) == 2
    assert expected in capsys.readouterr().err


def test_the_judge_of_a_recipe_scores_completions(tmp_path: Path, tiny: Path, data: Path):
    def reply(_: int, body: dict[str, Any]) -> Reply:
        assert body["model"] == "judge-32b" and "Candidate:\nNO_OP()" in body["messages"][1]["content"]
        return chat('{"score": 0.4}')

    with scripted_server(reply) as server:
        options = {"base_url": server.url, "model": "judge-32b", "attempts": 2}
        recipe = runs.write_recipe(tmp_path, data, tiny, reward="judge", reward_options=options)
        trainer = runs.make_trainer(recipe)
        scored = trainer.task.score("train", [(0, "NO_OP()", 3), (1, "NO_OP()", 3)])
    assert [reward.value for reward in scored] == [0.4, 0.4]


def test_training_and_vllm_on_one_gpu_must_fit_together(tmp_path: Path, tiny: Path, data: Path):
    keys = {"use_cpu": None, "bf16": None, "use_vllm": True, "vllm_gpu_memory_utilization": 0.5, "dtype": "bfloat16"}
    recipe = load_recipe(runs.write_recipe(tmp_path, data, tiny, **keys))
    gib = 2**30
    refuse_overfull(recipe, {"total": 38 * gib}, 80 * gib)
    refuse_overfull(recipe, "unknown: another architecture", 80 * gib)
    with pytest.raises(InputError) as caught:
        refuse_overfull(recipe, {"total": 50 * gib}, 80 * gib)
    message = str(caught.value)
    assert "about 50 GiB and `vllm_gpu_memory_utilization` (0.5) another 40 GiB of the GPU's 80 GiB" in message
    assert "Set `vllm_gpu_memory_utilization: 0.37`" in message
    with pytest.raises(InputError, match="does not fit even without vLLM"):
        refuse_overfull(recipe, {"total": 90 * gib}, 80 * gib)


def test_a_part_of_the_reward_that_rises_while_held_out_rows_get_worse_is_reported():
    log = [
        {"eval_state_f1": 0.5, "eval_reward": 0.1, "eval_components/grounding": 0.6, "eval_components/gate": 0.9},
        {"reward": 0.2},
        {"eval_state_f1": 0.4, "eval_reward": 0.0, "eval_components/grounding": 0.8, "eval_components/gate": 0.9},
    ]
    assert hacked(log) == [
        "components/grounding rose from 0.600 to 0.800 while the state F1 of held-out rows fell from 0.500 to 0.400"
    ]
    assert hacked(log[:1]) == [] and hacked(log[::-1]) == []
    assert hacked([log[0], log[0] | {"eval_state_f1": 0.49, "eval_reward": 0.3}]) == [], "a hundredth is noise"


def test_a_curve_is_told_by_the_means_of_its_ends():
    log = [{"reward": float(n)} for n in range(10)] + [{"reward": None}, {"loss": 1.0}]
    assert curve(log, "reward") == {"first": 0.5, "last": 8.5} and curve(log, "kl") is None


def test_a_recipe_for_rewards_that_do_not_exist_is_refused(tmp_path: Path, tiny: Path, data: Path):
    with pytest.raises(RecipeError, match="the rewards of this version score operations on a PersonaTree"):
        load_recipe(runs.write_recipe(tmp_path, data, tiny, extractor="triplets", extractor_options={}))
