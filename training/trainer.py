"""TRL's SFTTrainer with a guard and a shorter way on a CPU.

The guard: a run that has diverged stops, and non-finite weights never reach the disk. The way: TRL folds the loss over
chunks of the vocabulary, which saves a GPU's memory and has a Triton kernel there; on a CPU the same folding runs in
plain fp32 torch and took more than half of a training step (SmolLM2-135M, 8 x 110 tokens), so the logits of the
positions that are trained are made at once.
"""

from __future__ import annotations

import ctypes
import math
import sys
from typing import Any

import torch
from trl import SFTTrainer

from training.record import RunError


class Guarded:
    """Before a trainer of transformers: raises RunError at the first non-finite loss or gradient norm that is logged, and
    before any save of weights of which a trainable one is not finite (a checkpoint of NaNs would be resumed from without a
    word)."""

    def log(self: Any, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        for name in ("loss", "grad_norm", "eval_loss"):
            value = logs.get(name)
            if value is not None and not math.isfinite(float(value)):
                raise RunError(
                    f"`{name}` is {value} at step {self.state.global_step}: the run has diverged. The last checkpoint is "
                    "still good; lower `learning_rate` or `max_grad_norm`, and start again."
                )
        super().log(logs, *args, **kwargs)  # type: ignore[misc]

    def save_model(self: Any, output_dir: str | None = None, _internal_call: bool = False) -> None:
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad and parameter.numel() and not torch.isfinite(parameter).all():
                raise RunError(
                    f"{name} is not finite at step {self.state.global_step}; it was not saved. Lower `learning_rate`."
                )
        super().save_model(output_dir, _internal_call)  # type: ignore[misc]


class GuardedSFTTrainer(Guarded, SFTTrainer):  # type: ignore[misc]
    """SFTTrainer with the guard and the shorter way."""

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        if inputs["input_ids"].device.type != "cpu" or return_outputs or self.args.loss_type != "nll":
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        labels = inputs["labels"]
        trained = labels != -100
        first = max(int(trained.any(dim=0).float().argmax()) - 1, 0)  # the position before it predicts the first label
        given = {name: value for name, value in inputs.items() if name != "labels"}
        kept = labels.shape[1] - first
        logits = model(**given, use_cache=False, logits_to_keep=kept).logits[:, :-1]
        mask, targets = trained[:, first + 1 :], labels[:, first + 1 :]
        logits, targets = logits[mask].float(), targets[mask]
        total = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
        loss = total / torch.as_tensor(mask.sum() if num_items_in_batch is None else num_items_in_batch).clamp(min=1)
        if self.args.average_tokens_across_devices and num_items_in_batch is not None:
            loss = loss * self.accelerator.num_processes  # DDP averages the gradients of processes
        self._count(logits.detach(), targets, inputs)
        return loss

    def _count(self, logits: torch.Tensor, targets: torch.Tensor, inputs: dict[str, Any]) -> None:
        """TRL's own figures beside the loss, under its names."""
        metrics = self._metrics["train" if self.model.training else "eval"]
        log_probs = torch.log_softmax(logits, dim=-1)
        entropy = -(log_probs.exp() * log_probs).sum()
        seen = torch.stack([torch.tensor(float(len(targets))), entropy, (logits.argmax(-1) == targets).sum().float()])
        count, entropy_sum, correct = self.accelerator.gather_for_metrics(seen).view(-1, 3).sum(0).tolist()
        metrics["entropy"].append(entropy_sum / max(count, 1))
        metrics["mean_token_accuracy"].append(correct / max(count, 1))
        if self.model.training:
            tokens = (
                inputs["attention_mask"].sum()
                if "attention_mask" in inputs
                else torch.tensor(inputs["input_ids"].numel())
            )
            self._total_train_tokens += int(self.accelerator.gather_for_metrics(tokens).sum())
        metrics["num_tokens"] = [self._total_train_tokens]


def keep_freed_memory() -> None:
    """Tell glibc to keep freed blocks of up to 32 MB for the next step, at most 1 GiB of them. By default it returns them to
    the kernel, and zeroing their pages again took a quarter of a CPU training step (SmolLM2-135M, batch 16 x 71 tokens:
    5.9 s against 4.4 s). Larger blocks stay with mmap: kept in the heap they fragment it, and memory grows without end."""
    if sys.platform != "linux":
        return
    m_trim_threshold, m_mmap_threshold = -1, -3  # malloc.h
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):  # another C library
        return
    mallopt(m_mmap_threshold, 32 * 2**20)
    mallopt(m_trim_threshold, 2**30)
