"""Reinforcement learning of the MemListener (GRPO with DAPO's objective), from recipe to saved weights, in one file.

    python -m training.grpo --config RECIPE [--key value] [--dry-run]
    accelerate launch --config_file recipes/accelerate/ddp.yaml -m training.grpo --config RECIPE

Recipes: recipes/persona_tree/qwen3-8b-dapo.yaml and its neighbours.

The walk: recipe -> contract and tokenizer -> prompts -> reward -> run record -> model -> TRL's GRPOTrainer -> train -> save ->
figures. The objective (Inside Out, arXiv 2601.05171; DAPO, arXiv 2503.14476), of which the loss is the negative:

    J = 1 / sum_i |y_i| * sum_i sum_t [ min(r_it A_i, clip(r_it, 1 - 0.2, 1 + 0.28) A_i) - beta * KL_it ]

r_it is the ratio of a token's probability to that of the policy that wrote it, A_i = (R_i - mean) / std in the group of one
prompt, KL_it the k3 estimate against the start. Tokens are counted over the whole batch, all processes and accumulated steps
together; masked are completions that were cut (`mask_truncated_completions`) and those that could not be scored. TRL computes
it; `training.group_trainer` adds what TRL lacks. A test computes loss and gradient anew, in float64. For it the recipes set
`use_bias_correction_kl: false`: by default TRL multiplies the KL by r_it, which leaves its value and changes its gradient.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from extractors import InputError, load_extractor
from extractors.contract import ExtractionError, Message
from extractors.persona_tree import Chunk, Operation, PersonaTree, PersonaTreeExtractor, execute
from extractors.persona_tree.score import StateCounts, count_state, state_metrics
from extractors.rows import Row
from recipes.loader import Recipe, RecipeError, load_recipe
from recipes.models import ModelError, resolve_model
from training.build import as_lines, load_model, load_tokenizer, memory_estimate, model_card, peak_memory
from training.data import Source, load_split, prompt_ids, trained_end
from training.record import (
    RunError,
    check_resumable,
    check_same_data,
    last_checkpoint,
    run_record,
    write_record,
)
from training.rewards.judge import Judge
from training.rewards.process import Length, Reward, Weights, process_reward

ListenerRow = Row[Chunk, tuple[Operation, ...]]
Score = Callable[[Sequence[tuple[ListenerRow, str, int]]], list[Reward]]
# Keys of TRL's that would change nothing here, and why.
DECIDED_HERE = {
    "chat_template_kwargs": "the contract sets how prompts are rendered",
    "reward_weights": "there is one reward; its parts have their weights in `reward_options`",
    "multi_objective_aggregation": "there is one reward",
    "num_generations_eval": "evaluation decodes greedily, so one answer tells all",
}
NOTABLE = 0.02  # of a score between 0 and 1 on a few hundred rows: less is noise
FIGURES = ("reward", "kl", "entropy", "completions/mean_length", "groups/flat")


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, or show what would be trained. Exit codes: 0 done, 2 bad recipe or input, 1 failed run."""
    parser = argparse.ArgumentParser(
        prog="training.grpo", description="Align a MemListener by its reward (TRL GRPOTrainer).", allow_abbrev=False
    )
    parser.add_argument("--config", type=Path, required=True, help="the recipe (YAML)")
    parser.add_argument("--dry-run", action="store_true", help="show prompts, batch, steps and memory; train nothing")
    known, overrides = parser.parse_known_args(arguments)
    try:
        recipe = load_recipe(known.config, overrides)
        if recipe.method != "grpo":
            raise InputError(
                f"`method` is {recipe.method}: this is training.grpo; use `mnemosmith train {known.config}`."
            )
        ignored = [f"`{key}` ({why})" for key, why in DECIDED_HERE.items() if recipe.values.get(key)]
        if ignored:
            raise InputError(f"{', '.join(ignored)}: this would change nothing. Leave it out.")
        extractor = load_extractor(recipe.extractor, recipe.extractor_options)
        assert isinstance(extractor, PersonaTreeExtractor)  # the loader refuses others
        if known.dry_run:
            return dry_run(recipe, extractor)
        train(recipe, extractor)
    except (RecipeError, InputError, ModelError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def train(recipe: Recipe, extractor: PersonaTreeExtractor) -> dict[str, Any]:
    """Run the recipe. Returns the finished run record, which also stands in `output_dir/run.json`.

    Raises InputError for rows or a start that cannot be used, RunError for a run that diverged or cannot be resumed.
    """
    # Load: contract, tokenizer, prompts, reward. Checked before any weight is read.
    values = recipe.values
    model_path = resolve_model(values["model_name_or_path"])
    refuse_start(model_path, extractor)
    output = Path(values["output_dir"])
    checkpoint = last_checkpoint(output, values.get("resume_from_checkpoint"))
    if checkpoint is not None:
        check_resumable(recipe, output)
    tokenizer = load_tokenizer(recipe, model_path)
    task, sources = load_task(recipe, extractor, tokenizer, model_path)
    if checkpoint is not None:
        split = values["dataset_train_split"]
        check_same_data(output, split, [source.sha256 for source in sources if source.split == split])

    import torch

    if torch.cuda.is_available() and not values.get("use_cpu"):
        gpu = torch.cuda.get_device_properties(int(os.environ.get("LOCAL_RANK", "0"))).total_memory
        refuse_overfull(recipe, step_memory(recipe, task, model_path), gpu)

    # Build: TRL's own configuration objects, from TRL's own keys.
    trainer = build_trainer(recipe, task, tokenizer, model_path)
    args = trainer.args
    record = run_record(
        recipe,
        extractor,
        model_path,
        template=tokenizer.chat_template,
        data=[*map(asdict, sources)],
        statistics=task.statistics(),
        world_size=args.world_size,
    )
    if args.process_index == 0:
        write_record(output, record)
        (output / "recipe.yaml").write_text(recipe.to_yaml(), encoding="utf-8")
        print(plan(recipe, task, tokenizer, args.world_size) + (f"\nresumes from {checkpoint}" if checkpoint else ""))
    trainable = sum(p.numel() for p in trainer.model.parameters() if p.requires_grad)
    if not trainable:
        raise RunError("no parameter is trainable: check `lora_target_modules` against the model's module names.")

    # Train.
    started = time.monotonic()
    result = trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    seconds = time.monotonic() - started
    if not math.isfinite(result.training_loss):
        raise RunError(f"the training loss is {result.training_loss}; nothing was saved. Lower `learning_rate`.")
    if trainer.counts["groups"] and trainer.counts["left_flat"] == trainer.counts["groups"]:
        raise RunError(
            "in no group did the rewards differ, so nothing was learnt and nothing was saved: give the start a longer SFT, raise "
            "`temperature`, or look at the completions (`log_completions: true`)."
        )

    # Save: weights (checked for non-finite values by the trainer), the log, the figures, the model card.
    trainer.save_model(str(output))
    if args.process_index == 0:
        tokenizer.save_pretrained(output)
        log = trainer.state.log_history
        done = int(checkpoint.name.rpartition("-")[2]) if checkpoint else 0
        peak, device = peak_memory(args)
        record |= {
            "status": "finished",
            "steps": trainer.state.global_step,
            "trainable_parameters": trainable,
            "train_loss": result.training_loss,
            "eval_loss": None,
            "groups": trainer.counts,
            "curve": {name: curve(log, name) for name in FIGURES},
            "hacked": hacked(log),
            "figures": {
                "seconds": seconds,
                "seconds_per_step": seconds / max(1, trainer.state.global_step - done),
                "peak_memory_bytes": peak,
                "device": device,
            },
        }
        with (output / "train_log.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in log)
        (output / "README.md").write_text(model_card(record), encoding="utf-8")
        write_record(output, record)
        print(summary(record, output))
    if args.push_to_hub:
        trainer.push_to_hub()
    return record


def build_trainer(recipe: Recipe, task: Listener, tokenizer: Any, model_path: str) -> Any:
    """TRL's GRPOTrainer with what `training.group_trainer` adds, on the recipe's model."""
    from datasets import Dataset
    from trl import GRPOConfig, ModelConfig, get_peft_config  # type: ignore[attr-defined]

    from training.group_trainer import Grouping, GroupTrainer
    from training.trainer import keep_freed_memory

    values = recipe.values
    settings = {"logging_nan_inf_filter": False, "num_generations_eval": 1, **recipe.trainer_values()}
    settings.pop("resume_from_checkpoint", None)  # decided before
    args = GRPOConfig(**settings, chat_template_kwargs=dict(task.extractor.decoding.chat_template_kwargs))
    if args.use_cpu:
        keep_freed_memory()
    model = load_model(recipe, args, model_path)
    if not values.get("use_peft") and values.get("beta"):  # TRL loads the reference anew, by the model's name
        args.model_init_kwargs = {"revision": values.get("model_revision", "main")}
    sampling = (values["dynamic_sampling_min_std"], values["dynamic_sampling_max_tries"], values["operation_credit"])
    return GroupTrainer(
        model=model,
        args=args,
        task=task,
        grouping=Grouping(*sampling),
        reward_name=values["reward"],
        train_dataset=Dataset.from_list(task.examples("train")),
        eval_dataset=Dataset.from_list(task.examples("eval")) if args.eval_strategy != "no" else None,
        processing_class=tokenizer,
        peft_config=get_peft_config(ModelConfig(**recipe.model_values())),
    )


def refuse_start(model_path: str, extractor: PersonaTreeExtractor) -> None:
    """RL starts from merged weights: the KL reference of a LoRA is its base, which must be the SFT model and not what that
    began from. Raises InputError for an adapter, and for an export of another contract."""
    folder = Path(model_path)
    if (folder / "adapter_config.json").is_file():
        raise InputError(
            f"`model_name_or_path` is {model_path}, an adapter: its base would become the KL reference. Merge it first "
            f"(`mnemosmith export {model_path} OUT`), and write `model_name_or_path: OUT`."
        )
    if (folder / "extractor.json").is_file():
        theirs = json.loads((folder / "extractor.json").read_text(encoding="utf-8"))
        ours = json.loads(json.dumps(extractor.to_json()))
        different = [key for key in ("name", "options", "prompt") if theirs.get(key) != ours[key]]
        if different:
            raise InputError(
                f"{model_path} was trained for another contract (`{'`, `'.join(different)}` of its extractor.json): its answers "
                "would be scored by prompts that it does not know. Write its `extractor_options`, or start from another SFT."
            )


# The task: rows, prompts, reward


@dataclass
class Listener:
    """The rows of both splits with their prompts as tokens, and what scores a completion."""

    extractor: PersonaTreeExtractor
    rows: dict[str, list[ListenerRow]]
    ids: dict[str, list[list[int]]]
    dropped: dict[str, list[str]]
    scorer: Score

    def prompt(self, mode: Literal["train", "eval"], row: int) -> list[Message]:
        return self.extractor.messages(self.rows[mode][row].input)

    def prompt_ids(self, mode: Literal["train", "eval"], row: int) -> list[int]:
        return self.ids[mode][row]

    def score(self, mode: Literal["train", "eval"], completions: Sequence[tuple[int, str, int]]) -> list[Reward]:
        return self.scorer([(self.rows[mode][row], text, tokens) for row, text, tokens in completions])

    def measure(self, texts: dict[int, str]) -> dict[str, float]:
        """State F1 of greedy answers after execution (`score.count_state`), and the share of answers that can be read."""
        total, read = StateCounts(), 0
        for place, text in texts.items():
            row = self.rows["eval"][place]
            before = PersonaTree(self.extractor.schema, row.input.tree)
            answer = self.extractor.parse(text)
            failed = isinstance(answer, ExtractionError)
            done = before if isinstance(answer, ExtractionError) else execute(before, answer).tree
            total += count_state(before.values, execute(before, row.gold).tree.values, done.values)
            read += not failed
        return {"state_f1": state_metrics(total)["state_f1"], "parse_rate": read / max(1, len(texts))}

    def examples(self, mode: Literal["train", "eval"]) -> list[dict[str, Any]]:
        """The columns of TRL's dataset."""
        return [{"prompt": self.prompt(mode, row), "row": row} for row in range(len(self.rows[mode]))]

    def statistics(self) -> dict[str, Any]:
        lengths = sorted(map(len, self.ids["train"]))
        return {
            "rows": len(lengths),
            "truncated": 0,
            "dropped": len(self.dropped["train"]),
            "first_dropped": next(iter(self.dropped["train"]), None),
            "prompt_tokens": {
                "min": lengths[0],
                "median": lengths[len(lengths) // 2],
                "p95": lengths[round(0.95 * (len(lengths) - 1))],
                "max": lengths[-1],
            },
        }


def load_task(
    recipe: Recipe, extractor: PersonaTreeExtractor, tokenizer: Any, model_path: str
) -> tuple[Listener, list[Source]]:
    """Rows whose prompt leaves room for `max_completion_length` tokens, and their sources. Raises InputError for rows or
    options that cannot be used."""
    values = recipe.values
    scorer = load_reward(recipe, extractor)
    trained_end(tokenizer, extractor.decoding.chat_template_kwargs)  # a template that never ends a turn
    room = context(recipe, model_path) - completion_length(recipe)
    splits = {"train": values["dataset_train_split"]}
    if values.get("eval_strategy", "no") != "no":
        splits["eval"] = values["dataset_test_split"]
    task = Listener(extractor, {"eval": []}, {"eval": []}, {"eval": []}, scorer)
    sources: list[Source] = []
    for mode, split in splits.items():
        rows, read = load_split(values, extractor, split)
        sources += read
        if mode == "eval" and values["eval_rows"]:
            rows = rows[: values["eval_rows"]]
        encoded = [(row, prompt_ids(tokenizer, extractor, row.input)) for row in rows]
        kept = [(row, ids) for row, ids in encoded if len(ids) <= room]
        dropped = [row.id for row, ids in encoded if len(ids) > room]
        if dropped and (values["overlong_rows"] == "refuse" or not kept):
            raise InputError(
                f"{len(dropped)} of {len(rows)} prompts of split {split!r} (the first is {dropped[0]!r}) have more than the "
                f"{room} tokens that `max_completion_length` ({completion_length(recipe)}) leaves of the context: lower it, "
                + ("raise `vllm_max_model_length`, " if values.get("vllm_max_model_length") else "")
                + ("or write `overlong_rows: drop` to leave them out (counted)." if kept else "or use shorter rows.")
            )
        task.rows[mode], task.ids[mode] = [row for row, _ in kept], [ids for _, ids in kept]
        task.dropped[mode] = dropped
    return task, sources


def load_reward(recipe: Recipe, extractor: PersonaTreeExtractor) -> Score:
    """What scores completions, by the recipe's `reward` and `reward_options`. Raises InputError for options that do not fit."""
    options = dict(recipe.values["reward_options"])
    try:
        if recipe.values["reward"] == "judge":
            variable = options.pop("api_key_env", "OPENAI_API_KEY")
            host = urlsplit(str(options.get("base_url"))).hostname
            if not os.environ.get(variable) and host not in ("localhost", "127.0.0.1", "::1"):
                raise InputError(f"`reward` is judge, but the environment variable {variable} holds no key. Set it.")
            judge = Judge(api_key=os.environ.get(variable) or "none", **options)
            return lambda asked: judge.score_all([(row.gold, text) for row, text, _ in asked])
        limit = completion_length(recipe)
        length = Length(limit, options.pop("overlong_cache", min(Length.cache, limit // 2)))
        weights = Weights(**options)
    except (TypeError, ValueError) as error:
        raise InputError(f"`reward_options` do not fit `reward: {recipe.values['reward']}`: {error}") from None
    return lambda asked: [
        process_reward(row.input, row.gold, text, extractor, weights=weights, tokens=tokens, length=length)
        for row, text, tokens in asked
    ]


def refuse_overfull(recipe: Recipe, parts: Mapping[str, int] | str, gpu: int) -> None:
    """Raises InputError where training (bytes by part) and vLLM's share of the same GPU (`gpu`: bytes it has) exceed it. A
    model without an estimate, or sharded over GPUs, is not judged."""
    values = recipe.values
    sharded = (
        os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE") == "3" or os.environ.get("ACCELERATE_USE_FSDP") == "true"
    )
    if isinstance(parts, str) or sharded or not values.get("use_vllm") or values.get("vllm_mode") == "server":
        return
    share = values.get("vllm_gpu_memory_utilization", 0.3)
    if parts["total"] + share * gpu <= gpu:
        return
    most = int(100 * (1 - parts["total"] / gpu)) / 100
    way_out = (
        f"Set `vllm_gpu_memory_utilization: {most}`, if the model and its cache fit into that"
        if most > 0
        else "It does not fit even without vLLM"
    )
    raise InputError(
        f"training takes about {parts['total'] / 2**30:.0f} GiB and `vllm_gpu_memory_utilization` ({share}) another "
        f"{share * gpu / 2**30:.0f} GiB of the GPU's {gpu / 2**30:.0f} GiB. {way_out}; or lower `per_device_train_batch_size`, "
        "set `use_peft: true`, or `vllm_mode: server` with rollouts on other GPUs."
    )


def step_memory(recipe: Recipe, task: Listener, model_path: str) -> dict[str, int] | str:
    """The estimate of one training step on a device: its completions with the longest prompt, and the reference."""
    length = int(task.statistics()["prompt_tokens"]["max"]) + completion_length(recipe)
    parts = memory_estimate(recipe, model_path, batch(recipe)[0], length)
    if isinstance(parts, dict) and not recipe.values.get("use_peft") and recipe.values.get("beta"):
        return {**parts, "reference": parts["weights"], "total": parts["total"] + parts["weights"]}
    return parts


def completion_length(recipe: Recipe) -> int:
    return int(recipe.values.get("max_completion_length") or 512)


def context(recipe: Recipe, model_path: str) -> int:
    """Tokens that prompt and completion may have together: vLLM's limit where one is set, or the model's."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(model_path, revision=recipe.values.get("model_revision", "main"))
    limit = getattr(config.get_text_config(), "max_position_embeddings", None) or sys.maxsize
    return int(min(limit, recipe.values.get("vllm_max_model_length") or limit))


# What a person is shown


def plan(recipe: Recipe, task: Listener, tokenizer: Any, processes: int) -> str:
    """Counts, one prompt with its gold answer, and what one step is made of."""
    stats, row = task.statistics(), task.rows["train"][0]
    dropped = f", {stats['dropped']} overlong dropped (first {stats['first_dropped']!r})" if stats["dropped"] else ""
    prompt = tokenizer.decode(task.ids["train"][0])
    shown = "\n".join(f"    | {line}" for line in f"{prompt}⟦{task.extractor.render(row.gold)}⟧".splitlines())
    each, accumulated, size = batch(recipe)
    completions = each * accumulated * processes
    return (
        f"{stats['rows']} prompts of {stats['prompt_tokens']['min']} to {stats['prompt_tokens']['max']} tokens{dropped}, "
        f"reward {recipe.values['reward']}\n  row {row.id}, ⟦gold⟧ is not shown to the model\n{shown}\n"
        f"step of {completions} completions = {completions // size} prompts x {size}: {each} x {accumulated} accumulated x "
        f"{processes} processes"
    )


def batch(recipe: Recipe) -> tuple[int, int, int]:
    """Completions of one device at once, accumulated batches, completions of a group; TRL's defaults where unset."""
    values = recipe.values
    return (
        values.get("per_device_train_batch_size", 8),
        values.get("gradient_accumulation_steps", 1),
        values.get("num_generations", 8),
    )


def summary(record: Mapping[str, Any], output: Path) -> str:
    counts, reward = record["groups"], record["curve"]["reward"]
    ends = (
        f"reward {reward['first']:.3f} to {reward['last']:.3f} (first and last fifth)" if reward else "no reward logged"
    )
    warned = "".join(f"\nwarning: {line}" for line in record["hacked"])
    return (
        f"trained {record['steps']} steps in {record['figures']['seconds']:.0f} s, {ends}; of {counts['groups']} groups "
        f"{counts['flat']} were flat, {counts['replaced']} prompts were drawn anew, {counts['left_flat']} stayed flat; "
        f"{counts['masked']} completions masked, {counts['unscorable']} of them unscorable{warned}"
        f"\nsaved to {output}; next: mnemosmith export {output} OUT"
    )


def curve(log: Sequence[Mapping[str, Any]], name: str) -> dict[str, float] | None:
    """Means of a logged figure over the first and the last fifth of the entries that have it."""
    values = [entry[name] for entry in log if entry.get(name) is not None]
    if not values:
        return None
    part = max(1, len(values) // 5)
    return {"first": sum(values[:part]) / part, "last": sum(values[-part:]) / part}


def hacked(log: Sequence[Mapping[str, Any]]) -> list[str]:
    """Between the first and the last evaluation: each part of the reward that rose while state F1 fell, in words, both by more
    than NOTABLE."""
    measured = [entry for entry in log if entry.get("eval_state_f1") is not None]
    if len(measured) < 2 or measured[-1]["eval_state_f1"] > measured[0]["eval_state_f1"] - NOTABLE:
        return []
    first, last = measured[0], measured[-1]
    return [
        f"{name.removeprefix('eval_')} rose from {first[name]:.3f} to {last[name]:.3f} while the state F1 of held-out rows fell "
        f"from {first['eval_state_f1']:.3f} to {last['eval_state_f1']:.3f}"
        for name in sorted(first)
        if (name == "eval_reward" or name.startswith("eval_components/"))
        and not name.endswith(("redundancy", "overlong"))
        and last.get(name) is not None
        and last[name] > first[name] + NOTABLE
    ]


def dry_run(recipe: Recipe, extractor: PersonaTreeExtractor) -> int:
    """Everything that can be known without weights: the resolved recipe, a prompt, the batch, the steps, memory."""
    values = recipe.values
    print(f"# {recipe.path}, resolved\n{recipe.to_yaml()}")
    model_path = resolve_model(values["model_name_or_path"])
    refuse_start(model_path, extractor)
    tokenizer = load_tokenizer(recipe, model_path)
    task, sources = load_task(recipe, extractor, tokenizer, model_path)
    for source in sources:
        print(f"{source.path}: {source.rows} of {source.of} rows, sha256 {source.sha256[:12]}")
    world = int(os.environ.get("WORLD_SIZE", "1"))
    print(f"\n# Prompts\n{plan(recipe, task, tokenizer, world)}")
    each, accumulated, size = batch(recipe)
    prompts = each * accumulated * world // size
    per_epoch = max(1, len(task.rows["train"]) // prompts)
    epochs = values.get("num_train_epochs", 3.0)
    steps = values["max_steps"] if values.get("max_steps", -1) > 0 else math.ceil(per_epoch * epochs)
    print(f"\n# Steps\n  {steps} = {per_epoch} an epoch x {epochs:g}")
    print("\n# Memory of one process (estimate)")
    print(as_lines(step_memory(recipe, task, model_path)))
    if values.get("use_vllm") and values.get("vllm_mode", "colocate") == "colocate":
        share = values.get("vllm_gpu_memory_utilization", 0.3)
        print(f"  vLLM beside it: {share:.0%} of the GPU (`vllm_gpu_memory_utilization`); both must fit")
    print("\nThis was a dry run: no weights were read, nothing was trained or written.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
