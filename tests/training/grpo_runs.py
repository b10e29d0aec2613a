"""Small runs of reinforcement learning for the tests: a tiny random model, rows, rewards that the test computes, completions
that it knows. Run under torchrun it does the same on two processes, and writes what it found:

    torchrun --nproc_per_node 2 tests/training/grpo_runs.py FOLDER
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch  # noqa: E402
import yaml  # noqa: E402

from extractors import load_extractor  # noqa: E402
from extractors.persona_tree import PersonaTreeExtractor  # noqa: E402
from recipes.loader import load_recipe  # noqa: E402
from training.build import load_tokenizer  # noqa: E402
from training.group_trainer import GroupTrainer  # noqa: E402
from training.grpo import Score, build_trainer, load_task  # noqa: E402
from training.rewards.process import Reward  # noqa: E402

OPTIONS = {"schema": "quickstart", "path_index": "none", "prompt": "compact"}
PETS, JOB = "Identity.Family_System.Pets", "Identity.Social_Identity.Occupation"
GROUP = 8


def write_rows(folder: Path, rows: int = 12, split: str = "train") -> Path:
    """Rows with gold; every third changes nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{split}.jsonl").open("w", encoding="utf-8") as file:
        for n in range(rows):
            gold = [{"op": "ADD", "path": PETS, "value": f"cat number {n}"}] if n % 3 else [{"op": "NO_OP"}]
            turns = [{"speaker": "Mia", "text": f"I got cat number {n}." if n % 3 else f"It is {n} o'clock."}]
            row = {"id": f"{split}-{n}", "group": f"p{n}", "gold": gold}
            row["input"] = {"tree": {JOB: "baker"} if n % 2 else {}, "turns": turns, "person": "Mia"}
            file.write(json.dumps(row) + "\n")
    return folder


def write_recipe(folder: Path, data: Path, model: Path, **changed: Any) -> Path:
    """One step of 16 completions on two prompts, on a CPU; a key of None is left out."""
    recipe = {
        "method": "grpo",
        "extractor": "persona_tree",
        "extractor_options": OPTIONS,
        "dataset_name": str(data),
        "dynamic_sampling_max_tries": 0,
        "model_name_or_path": str(model),
        "dtype": "float32",
        "output_dir": str(folder / "run"),
        "use_cpu": True,
        "bf16": False,
        "use_peft": True,
        "lora_r": 4,
        "lora_alpha": 8,
        "lora_dropout": 0.0,
        "lora_target_modules": ["q_proj", "down_proj"],
        "max_steps": 1,
        "per_device_train_batch_size": 16,
        "num_generations": GROUP,
        "max_completion_length": 12,
        "top_p": 0.9,
        "top_k": 50,
        "beta": 0.1,
        "use_bias_correction_kl": False,
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "mask_truncated_completions": True,
        "learning_rate": 1e-2,
        "max_grad_norm": 1e9,
        "gradient_checkpointing": False,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "seed": 3,
        **changed,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in recipe.items() if v is not None}), encoding="utf-8")
    return path


def make_trainer(recipe_path: Path, score: Score | None = None) -> GroupTrainer:
    """The trainer of a recipe; score: in place of the recipe's reward."""
    recipe = load_recipe(recipe_path)
    extractor = load_extractor(recipe.extractor, recipe.extractor_options)
    assert isinstance(extractor, PersonaTreeExtractor)
    path = recipe.values["model_name_or_path"]
    tokenizer = load_tokenizer(recipe, path)
    task, _ = load_task(recipe, extractor, tokenizer, path)
    if score is not None:
        task.scorer = score
    trainer: GroupTrainer = build_trainer(recipe, task, tokenizer, path)
    return trainer


# Known completions: of different lengths, one cut, one without a reward

TEXTS = (
    f'ADD({PETS}, "cat")',
    "NO_OP()",
    f'ADD({PETS}, "a cat of mine")\nADD({JOB}, "baker")',
    f'UPDATE({JOB}, "cook")',
    "a line of prose",
    f"DELETE({JOB}, None)",
    f'ADD({PETS}, "this one is cut',
    f'ADD({JOB}, "one that cannot be scored")',
)
CUT, UNSCORABLE = 6, 7


def known_reward(asked: Sequence[tuple[Any, str, int]]) -> list[Reward]:
    """By row and text, the same wherever it is computed."""
    found = []
    for row, text, _ in asked:
        place = next((n for n, each in enumerate(TEXTS) if each == text), 0)
        value = None if place == UNSCORABLE else round(((place * 7 + len(row.id)) % 11) / 11 - 0.3, 3)
        credit = tuple((0.9, 0.2)[: text.count("(") if place != 1 else 0])
        found.append(Reward(value, {"known": 0.0 if value is None else value}, credit))
    return found


def know_completions(trainer: GroupTrainer) -> None:
    """The sampler's place is taken by TEXTS, in turn for each prompt; the one at CUT has no end token."""
    tokenizer = trainer.processing_class

    def sample(prompts: list[list[int]]) -> list[list[int]]:
        seen: Counter[tuple[int, ...]] = Counter()
        completions = []
        for prompt in prompts:
            place = seen[tuple(prompt)] % len(TEXTS)
            seen[tuple(prompt)] += 1
            ids = tokenizer.encode(TEXTS[place], add_special_tokens=False)
            completions.append(ids if place == CUT else [*ids, tokenizer.eos_token_id])
        return completions

    trainer._sample = sample  # type: ignore[method-assign]


def wake_adapter(trainer: GroupTrainer) -> None:
    """A LoRA that changes something, so that the KL is not 0."""
    generator = torch.Generator().manual_seed(5)
    for name, parameter in sorted(trainer.model.named_parameters()):
        if "lora_B" in name:
            with torch.no_grad():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.05)


def one_step(recipe_path: Path) -> dict[str, Any]:
    """Loss and gradient of one optimiser step on the known completions."""
    from transformers import TrainerCallback

    trainer = make_trainer(recipe_path, known_reward)
    know_completions(trainer)
    wake_adapter(trainer)
    gradients: dict[str, torch.Tensor] = {}

    class Look(TrainerCallback):
        def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
            for name, parameter in trainer.model.named_parameters():
                if parameter.requires_grad:
                    gradients[name] = parameter.grad.clone()

    trainer.add_callback(Look())
    trainer.train()
    log = [entry for entry in trainer.state.log_history if "loss" in entry]
    return {"loss": log[0]["loss"], "kl": log[0]["kl"], "gradients": gradients, "counts": trainer.counts}


# Prompts of which half are flat

FLAT_ROWS = range(0, 12, 2)


def half_flat(asked: Sequence[tuple[Any, str, int]]) -> list[Reward]:
    """Rows of an even number have one reward whatever is said; others have the digest of what is said."""
    found = []
    for row, text, _ in asked:
        number = int(row.id.rpartition("-")[2])
        said = int(hashlib.sha256(text.encode()).hexdigest()[:4], 16) / 65536
        value = 0.5 if number in FLAT_ROWS else said
        found.append(Reward(value, {"said": said}))
    return found


def sampled_steps(recipe_path: Path, score: Callable[..., list[Reward]] = half_flat) -> dict[str, Any]:
    """The groups of each step as they went into the loss, and what was counted."""
    trainer = make_trainer(recipe_path, score)
    steps: list[dict[str, Any]] = []
    made = trainer._generate_and_score_completions

    def look(inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = made(inputs)
        everyone = trainer._everywhere
        trained = trainer.accelerator.gather(output["advantages"])
        tokens = trainer.accelerator.gather(output["completion_mask"].sum())
        steps.append(
            {
                "rows": [rollout.row for rollout in everyone],
                "texts": [rollout.text for rollout in everyone],
                "rewards": [rollout.reward.value for rollout in everyone],
                "advantages": trained.tolist(),
                "tokens": int(output["num_items_in_batch"]),
                "tokens_counted": int(tokens.sum()),
            }
        )
        return output

    trainer._generate_and_score_completions = look  # type: ignore[method-assign]
    trainer.train()
    return {"steps": steps, "counts": trainer.counts, "position": trainer.stream.position}


def main(folder: Path) -> None:
    """Both kinds of run for each recipe in `folder`, told apart by its name; rank 0 writes."""
    rank = int(__import__("os").environ.get("RANK", "0"))
    for path in sorted(folder.glob("*/recipe.yaml")):
        if path.parent.name.startswith("objective"):
            found = one_step(path)
            if rank == 0:
                torch.save(found, path.parent / "found.pt")
        else:
            (path.parent / f"found-{rank}.json").write_text(json.dumps(sampled_steps(path)), encoding="utf-8")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
