"""The objective of reinforcement learning, computed anew: Inside Out's J with DAPO's clip, normaliser and masks, and a KL term.

Row by row, without padding, in float64, from a model object of its own; what the trainer computes is held against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import get_peft_model
from transformers import AutoModelForCausalLM

from tests.training.grpo_runs import (
    CUT,
    GROUP,
    TEXTS,
    UNSCORABLE,
    know_completions,
    known_reward,
    make_trainer,
    wake_adapter,
    write_recipe,
)
from training.group_trainer import GroupTrainer
from training.groups import advantages, credit_advantages, operation_lines


@dataclass(frozen=True)
class Errors:
    """loss: difference; gradient: the largest difference as a share of the largest gradient; clipped_*: share of tokens."""

    loss: float
    gradient: float
    clipped_low: float
    clipped_high: float


def objective_errors(folder: Path, model: Path, data: Path, stale: bool, credit: float) -> Errors:
    """What the trainer makes of the known completions of two prompts, against the formula. stale: the policy that wrote them
    is another (noise on its log-probabilities), so that both clips are at work; credit: weight of operations' own."""
    trainer = make_trainer(write_recipe(folder, data, model, operation_credit=credit), known_reward)
    know_completions(trainer)
    wake_adapter(trainer)
    trainer.current_gradient_accumulation_steps = 1  # as transformers' loop sets it
    trainer.model.train()
    batch = trainer._generate_and_score_completions([{"row": row} for row in (0, 1) for _ in range(GROUP)])
    noise = None
    if stale:
        noise = torch.randn(batch["completion_ids"].shape, generator=torch.Generator().manual_seed(1)) * 0.4
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
        with torch.no_grad():
            now, _, _ = trainer._get_per_token_logps_and_entropies(trainer.model, ids, mask, noise.shape[1])
        batch["old_per_token_logps"] = now + noise
    loss = trainer.compute_loss(trainer.model, batch)
    loss.backward()
    found = {name: p.grad for name, p in trainer.model.named_parameters() if p.grad is not None}
    due_loss, due = reference(trainer, noise, credit)
    clipped = [trainer._metrics["train"][f"clip_ratio/{side}_mean"][0] for side in ("low", "high")]
    return Errors(abs(float(loss.detach()) - due_loss), largest_error(found, due), *clipped)


def reference(
    trainer: GroupTrainer, old_noise: torch.Tensor | None, credit: float
) -> tuple[float, dict[str, torch.Tensor]]:
    """Loss and gradient of the known completions of the trainer's first two prompts, row by row, without padding."""
    model: Any = get_peft_model(
        AutoModelForCausalLM.from_pretrained(trainer.model.name_or_path, dtype=torch.float64),
        trainer.model.peft_config["default"],
    )
    adapter = {name: p for name, p in trainer.model.state_dict().items() if "lora_" in name}
    assert not model.load_state_dict(adapter, strict=False).unexpected_keys
    model.double()
    rows, lengths, terms = [], [], []
    rewards: list[list[float | None]] = []
    credits: list[list[tuple[float, ...]]] = []
    for row in (0, 1):
        asked = [(trainer.task.rows["train"][row], text, 0) for text in TEXTS]
        scored = known_reward(asked)
        rewards.append([reward.value for reward in scored])
        credits.append([reward.credit if reward.value is not None else () for reward in scored])
    values = [value for each in advantages(rewards) for value in each]
    shares = [each for group in credits for each in credit_advantages(group)]
    tokenizer = trainer.processing_class
    for place in range(2 * len(TEXTS)):
        row, text = divmod(place, len(TEXTS))
        if text in (CUT, UNSCORABLE):
            continue
        prompt = trainer.task.prompt_ids("train", row)
        answer = [*tokenizer.encode(TEXTS[text], add_special_tokens=False), tokenizer.eos_token_id]
        each = torch.full((len(answer),), values[place], dtype=torch.float64)
        for share, (start, end) in zip(shares[place], operation_lines(TEXTS[text]), strict=False):
            written = [len(tokenizer.decode(answer[: n + 1], skip_special_tokens=True)) for n in range(len(answer))]
            for token in range(len(answer)):
                before = written[token - 1] if token else 0
                if before < end and written[token] > start:
                    each[token] += credit * share
        rows.append((place, prompt, answer, each))
        lengths.append(len(answer))
    for place, prompt, answer, each in rows:

        def log_probs(prompt: list[int] = prompt, answer: list[int] = answer) -> torch.Tensor:
            logits = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
            return torch.log_softmax(logits, -1).gather(-1, torch.tensor(answer)[:, None])[:, 0]

        new = log_probs()
        with torch.no_grad(), model.disable_adapter():
            start = log_probs()
        old = new.detach() + (0 if old_noise is None else old_noise[place, : len(answer)].double())
        ratio = torch.exp(new - old)
        clipped = torch.clamp(ratio, 1 - 0.2, 1 + 0.28)
        kl = torch.exp(start - new) - (start - new) - 1
        terms.append((torch.minimum(ratio * each, clipped * each) - 0.1 * kl).sum())
    loss = -sum(terms) / sum(lengths)
    loss.backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return float(loss.detach()), gradients


def largest_error(found: dict[str, torch.Tensor], due: dict[str, torch.Tensor]) -> float:
    """Of all gradients, the largest difference as a share of the largest gradient."""
    assert found.keys() == due.keys() and found
    scale = max(float(gradient.abs().max()) for gradient in due.values())
    return max(float((found[name].double() - due[name].double()).abs().max()) for name in due) / scale
