"""TRL's GRPOTrainer, with what DAPO needs and TRL 1.16 lacks: dynamic sampling, unscorable completions that are masked,
advantages that are exactly 0 where a group teaches nothing, credit for single operations, greedy evaluation.

The walk of one generation batch: prompts -> completions -> rewards -> gathered on every process -> flat groups replaced by
new prompts -> TRL's own padding, reference log-probabilities and token normaliser, on the final batch alone -> advantages.
Every process holds the rewards of all, and decides from them alone, so all of them loop equally often.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from accelerate.utils import gather_object
from peft.tuners.tuners_utils import BaseTunerLayer
from transformers import GenerationConfig
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from trl import GRPOTrainer
from trl.models import unwrap_model_for_generation

from extractors.contract import Message
from training.groups import PromptStream, advantages, credit_advantages, is_flat, operation_lines, spread
from training.rewards.process import Reward
from training.shared_prompts import can_share, completion_logits, sample
from training.trainer import Guarded

Mode = Literal["train", "eval"]
STATE_FILE = "groups.json"  # in a checkpoint


class Task(Protocol):
    """What the completions are for. Rows are known by their place in a split."""

    def prompt(self, mode: Mode, row: int) -> list[Message]: ...

    def prompt_ids(self, mode: Mode, row: int) -> list[int]: ...

    def score(self, mode: Mode, completions: Sequence[tuple[int, str, int]]) -> list[Reward]:
        """A reward for each (row, text, tokens of the completion)."""

    def measure(self, texts: dict[int, str]) -> dict[str, float]:
        """Metrics of greedy answers to rows of the evaluation split, by name."""


@dataclass(frozen=True)
class Rollout:
    """One completion of a row's prompt. logprobs: of its tokens, as vLLM sampled them; None with transformers."""

    row: int
    ids: list[int]
    logprobs: list[float | None] | None
    text: str
    reward: Reward


@dataclass(frozen=True)
class Grouping:
    """Dynamic sampling (DAPO, arXiv 2503.14476, section 3.2) and credit. min_std: a group whose rewards lie closer is flat and
    replaced (the paper: 0, equal rewards only); max_tries: how often, 0 for never; operation_credit: weight of the
    operations' own advantages, on the tokens of their lines, beside the completion's."""

    min_std: float = 0.02
    max_tries: int = 3
    operation_credit: float = 0.0


class GroupTrainer(Guarded, GRPOTrainer):  # type: ignore[misc]
    """GRPOTrainer over a Task's rows. `train_dataset` and `eval_dataset` have the columns `prompt` and `row`."""

    generation_config: Any
    generation_kwargs: dict[str, Any]

    def __init__(self, *args: Any, task: Task, grouping: Grouping, reward_name: str, **kwargs: Any):
        self.task, self.grouping = task, grouping
        self._final: list[Rollout] | None = None  # this process's part of a batch that TRL is to make tensors of
        self._everywhere: list[Rollout] = []  # the whole of it
        self._answers: dict[int, Rollout] = {}  # of one evaluation, by row
        super().__init__(*args, reward_funcs=[_named(reward_name)], **kwargs)
        self.stream = PromptStream(len(self.train_dataset), self.args.seed)
        self.counts = dict.fromkeys(("groups", "flat", "replaced", "left_flat", "unscorable", "masked"), 0)
        if self.use_vllm and any(isinstance(module, BaseTunerLayer) for module in self.model.modules()):
            self._restore_after_sync()

    # One generation batch

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        size = self.num_generations
        everywhere = self._roll_out("train", [example["row"] for example in inputs], size)
        groups = [everywhere[start : start + size] for start in range(0, len(everywhere), size)]
        self._replace_flat(groups)
        self._everywhere = [rollout for group in groups for rollout in group]
        self._final = self._part(self._everywhere)
        try:
            output: dict[str, Any] = super()._generate_and_score_completions(
                [{"prompt": self.task.prompt("train", rollout.row), "row": rollout.row} for rollout in self._final]
            )
            self._mask_unscorable(output)
            output["advantages"] = self._advantages(groups, output["completion_ids"].shape[1])
        finally:
            self._final = None
        self._log_groups(groups)
        return output

    def _roll_out(self, mode: Mode, rows: list[int], size: int) -> list[Rollout]:
        """Completions of this process's rows, scored, then those of all processes, in the order of the batch."""
        prompts = [self.task.prompt_ids(mode, row) for row in rows]
        ids, logprobs = self._generate_single_turn(prompts, None, {}, size)
        texts = self.processing_class.batch_decode(ids, skip_special_tokens=True)
        rewards = self.task.score(
            mode, [(row, text, len(each)) for row, text, each in zip(rows, texts, ids, strict=True)]
        )
        probabilities = logprobs if logprobs is not None else [None] * len(rows)
        parts = zip(rows, ids, probabilities, texts, rewards, strict=True)
        return list(gather_object([Rollout(*part) for part in parts]))

    def _replace_flat(self, groups: list[list[Rollout]]) -> None:
        """Dynamic sampling, in place: a flat group gives way to another prompt's, which is looked at again."""
        size, processes = self.num_generations, self.accelerator.num_processes
        flat = self._flat(groups)
        self.counts["groups"] += len(groups)
        self.counts["flat"] += len(flat)
        self._metrics["train"]["groups/flat"].append(len(flat) / len(groups))
        tries = 0
        while flat and tries < self.grouping.max_tries:
            tries += 1
            drawn = len(flat)
            while drawn * size % processes:  # every process has as many completions as the others
                drawn += 1
            rows = self.stream.draw(drawn, without=[group[0].row for group in groups])
            everywhere = self._roll_out("train", self._part([row for row in rows for _ in range(size)]), size)
            fresh = [everywhere[start : start + size] for start in range(0, len(everywhere), size)]
            fresh.sort(key=lambda group: self._is_flat(group))  # where more were drawn than are due, the better ones
            for place, group in zip(flat, fresh, strict=False):
                groups[place] = group
            self.counts["replaced"] += len(flat)
            flat = self._flat(groups)
        self.counts["left_flat"] += len(flat)
        self._metrics["train"]["groups/tries"].append(tries)
        self._metrics["train"]["groups/left_flat"].append(len(flat) / len(groups))

    def _flat(self, groups: list[list[Rollout]]) -> list[int]:
        return [place for place, group in enumerate(groups) if self._is_flat(group)]

    def _is_flat(self, group: Sequence[Rollout]) -> bool:
        return is_flat([rollout.reward.value for rollout in group], self._min_std)

    @property
    def _min_std(self) -> float:
        return self.grouping.min_std if self.grouping.max_tries else 0.0

    def _part(self, everything: list[Any]) -> list[Any]:
        """This process's part of a list that all of them hold."""
        each = len(everything) // self.accelerator.num_processes
        start = self.accelerator.process_index * each
        return everything[start : start + each]

    # What TRL asks for while it makes tensors of the final batch

    def _tokenize_prompts(self, prompts: list[Any]) -> tuple[list[list[int]], None, dict[str, Any]]:
        assert self._final is not None
        return [self.task.prompt_ids("train", rollout.row) for rollout in self._final], None, {}

    def _generate_single_turn(self, prompt_ids: Any, images: Any, fields: Any, num_generations: int, *more: Any) -> Any:
        if self._final is not None:
            logprobs = [rollout.logprobs for rollout in self._final]
            return [rollout.ids for rollout in self._final], None if None in logprobs else logprobs
        with contextlib.nullcontext() if self.model.training else self._greedy():
            if self._shares_prompts:
                return self._sample(prompt_ids), None
            return super()._generate_single_turn(prompt_ids, images, fields, num_generations, *more)

    def _calculate_rewards(self, *_: Any) -> torch.Tensor:
        values = [rollout.reward.value for rollout in self._everywhere]
        known = [[float("nan") if value is None else value] for value in values]
        return torch.tensor(known, dtype=torch.float32, device=self.accelerator.device)

    @contextlib.contextmanager
    def _greedy(self) -> Iterator[None]:
        """Evaluation decodes as a server will: greedily."""
        if self.use_vllm:
            kept = self.vllm_generation.temperature
            self.vllm_generation.temperature = 0.0
            try:
                yield
            finally:
                self.vllm_generation.temperature = kept
            return
        config, arguments = self.generation_config, self.generation_kwargs
        sampling = ("temperature", "top_p", "top_k", "min_p")
        greedy = {name: value for name, value in arguments.items() if name not in sampling} | {"do_sample": False}
        self.generation_config, self.generation_kwargs = GenerationConfig(**greedy, disable_compile=True), greedy
        try:
            yield
        finally:
            self.generation_config, self.generation_kwargs = config, arguments

    # Masks and advantages

    def _mask_unscorable(self, output: dict[str, Any]) -> None:
        """A completion without a reward is no part of the loss, nor of its token normaliser."""
        assert self._final is not None
        scorable = torch.tensor([rollout.reward.value is not None for rollout in self._final])
        mask = output["completion_mask"] * scorable.to(output["completion_mask"]).unsqueeze(1)
        output["completion_mask"] = mask
        output["num_items_in_batch"] = self.accelerator.gather(mask.sum()).sum()
        self.counts["unscorable"] += sum(rollout.reward.value is None for rollout in self._everywhere)
        self.counts["masked"] += int(self.accelerator.gather((mask.sum(dim=1) == 0).sum()).sum())

    def _advantages(self, groups: list[list[Rollout]], length: int) -> torch.Tensor:
        """Of this process's completions: [B], or [B, length] where operations have credit of their own."""
        rewards = [[rollout.reward.value for rollout in group] for group in groups]
        found = [value for each in advantages(rewards, self.scale_rewards, self._min_std) for value in each]
        self._show_advantages(found)
        device = self.accelerator.device
        whole = torch.tensor(self._part(found), dtype=torch.float32, device=device)
        if not self.grouping.operation_credit:
            return whole
        credits: list[list[float]] = []
        for group in groups:
            known = [rollout.reward.value is not None and not self._is_flat(group) for rollout in group]
            credits += credit_advantages(
                [rollout.reward.credit if each else () for rollout, each in zip(group, known, strict=True)]
            )
        table = whole.unsqueeze(1).repeat(1, length)
        assert self._final is not None
        for place, (rollout, each) in enumerate(zip(self._final, self._part(credits), strict=True)):
            lines = operation_lines(rollout.text)
            if len(lines) != len(each):  # none, or lines alone do not tell
                continue
            for token, (start, end) in enumerate(self._characters(rollout.ids)):
                on = [value for value, line in zip(each, lines, strict=True) if start < line[1] and end > line[0]]
                if on:
                    table[place, token] += self.grouping.operation_credit * sum(on) / len(on)
        return table

    def _characters(self, ids: list[int]) -> Iterator[tuple[int, int]]:
        """The characters of the decoded text that each token adds; (n, n) for one that is not shown."""
        before = 0
        for count in range(1, len(ids) + 1):
            after = len(self.processing_class.decode(ids[:count], skip_special_tokens=True))
            yield before, after
            before = after

    def _show_advantages(self, found: list[float]) -> None:
        """In TRL's table of completions: these, not its own."""
        shown = self._logs["advantages"]
        for _ in range(min(len(found), len(shown))):
            shown.pop()
        shown.extend(found)

    # Log, evaluation, checkpoints

    def _log_groups(self, groups: list[list[Rollout]]) -> None:
        """Each component of the reward: its mean, and its spread within a group, by which it can teach."""
        metrics = self._metrics["train"]
        for name in sorted({name for group in groups for rollout in group for name in rollout.reward.components}):
            found = [[r.reward.components[name] for r in group if name in r.reward.components] for group in groups]
            values = [value for each in found for value in each]
            metrics[f"components/{name}"].append(sum(values) / len(values))
            metrics[f"components/{name}/spread"].append(sum(map(spread, found)) / len(found))
        spreads = [spread([rollout.reward.value for rollout in group]) for group in groups]
        metrics["groups/spread"].append(sum(spreads) / len(spreads))
        unscorable = sum(rollout.reward.value is None for group in groups for rollout in group)
        metrics["completions/unscorable"].append(unscorable / sum(map(len, groups)))

    def prediction_step(self, model: Any, inputs: list[dict[str, Any]], *_: Any, **__: Any) -> tuple[None, None, None]:
        """One batch of the evaluation: greedy answers. A loss against them would say nothing."""
        rollouts = self._roll_out("eval", [example["row"] for example in inputs], 1)
        self._answers.update((rollout.row, rollout) for rollout in rollouts)
        return None, None, None

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
        self._answers = {}
        output = super().evaluation_loop(*args, **kwargs)
        answers = list(self._answers.values())  # every row once: the last batch of several processes repeats some
        rewards = [rollout.reward.value for rollout in answers if rollout.reward.value is not None]
        found = {
            "reward": sum(rewards) / len(rewards) if rewards else None,
            "completions/mean_length": sum(len(rollout.ids) for rollout in answers) / len(answers),
            **self.task.measure({rollout.row: rollout.text for rollout in answers}),
        }
        for name in sorted({name for rollout in answers for name in rollout.reward.components}):
            values = [r.reward.components[name] for r in answers if name in r.reward.components]
            found[f"components/{name}"] = sum(values) / len(values)
        prefix = kwargs.get("metric_key_prefix", "eval")
        output.metrics.update({f"{prefix}_{name}": value for name, value in found.items()})
        return output

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if self.args.should_save:
            folder = Path(self._get_output_dir(trial=trial)) / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
            state = {"position": self.stream.position, "counts": self.counts}
            (folder / STATE_FILE).write_text(json.dumps(state), encoding="utf-8")

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None and os.path.isfile(os.path.join(checkpoint, STATE_FILE)):
            state = json.loads((Path(checkpoint) / STATE_FILE).read_text(encoding="utf-8"))
            self.stream.position, self.counts = state["position"], state["counts"]

    # Faster, or more exact, than TRL

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        **more: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """On a CPU: the logits of the completion's positions alone, and a prompt is read once for its group. TRL's fused
        head, made for a GPU's memory, there projects every position of the prompt too."""
        if input_ids.device.type != "cpu" or compute_aux_loss:
            return super()._get_per_token_logps_and_entropies(  # type: ignore[no-any-return]
                model, input_ids, attention_mask, logits_to_keep, batch_size, compute_entropy, compute_aux_loss, **more
            )
        found, entropies = [], []
        step = batch_size or len(input_ids)
        for start in range(0, len(input_ids), step):
            ids, mask = input_ids[start : start + step], attention_mask[start : start + step]
            if self._shares_prompts:
                logits = completion_logits(model, ids, mask, logits_to_keep)
            else:
                logits = model(input_ids=ids, attention_mask=mask, logits_to_keep=logits_to_keep + 1).logits[:, :-1]
            written = mask[:, -logits_to_keep:].bool()  # no padding, no masked completion
            logits = logits[written]
            logits = (logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits) / self.temperature
            log_probs = torch.log_softmax(logits, dim=-1)
            chosen = log_probs.gather(-1, ids[:, -logits_to_keep:][written].unsqueeze(-1)).squeeze(-1)
            empty = chosen.new_zeros(written.shape)
            found.append(empty.masked_scatter(written, chosen))
            if compute_entropy:
                with torch.set_grad_enabled(self._entropy_bonus_enabled and torch.is_grad_enabled()):
                    entropies.append(empty.masked_scatter(written, -(log_probs.exp() * log_probs).sum(-1)))
        return torch.cat(found), torch.cat(entropies) if compute_entropy else None, None

    @property
    def _shares_prompts(self) -> bool:
        return (
            self.accelerator.device.type == "cpu"
            and not (self.is_deepspeed_enabled or self.is_fsdp_enabled or self.args.gradient_checkpointing)
            and can_share(self.model)
        )

    def _sample(self, prompts: list[list[int]]) -> list[list[int]]:
        pad, ends = self.processing_class.pad_token_id, self.eos_token_ids
        unwrapped = unwrap_model_for_generation(
            self.model_wrapped, self.accelerator, generation_kwargs=self.generation_kwargs
        )
        with unwrapped as model, torch.no_grad():
            return sample(model, prompts, self.generation_config, pad, ends)

    def _restore_after_sync(self) -> None:
        """TRL merges the adapter into the base for each sync with vLLM and subtracts it again; in bf16 the base drifts
        (trl issue 6688). Here it comes back from a copy, bit by bit."""
        base, sync = BaseWeights(self.model), self.vllm_generation.sync_weights

        def synced() -> None:
            sync()
            base.restore()

        self.vllm_generation.sync_weights = synced


class BaseWeights:
    """Copies, on the CPU, of the weights that an adapter is merged into."""

    def __init__(self, model: torch.nn.Module):
        self._kept = [
            (parameter, parameter.detach().to("cpu", copy=True))
            for module in model.modules()
            if isinstance(module, BaseTunerLayer)
            for parameter in module.get_base_layer().parameters(recurse=False)
        ]

    def restore(self) -> None:
        with torch.no_grad():
            for parameter, kept in self._kept:
                parameter.copy_(kept)


def _named(name: str) -> Callable[..., list[float]]:
    """TRL wants a reward function, whose name stands in its log; the rewards come with the rollouts."""

    def reward(*_: Any, **__: Any) -> list[float]:
        raise RuntimeError("rewards are computed with the rollouts")

    reward.__name__ = name
    return reward
