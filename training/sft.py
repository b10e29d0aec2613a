"""Supervised fine-tuning of an extractor, from recipe to saved adapter, in one file.

    python -m training.sft --config recipes/triplets/qwen3-8b-qlora.yaml [--key value] [--dry-run]
    accelerate launch --config_file recipes/accelerate/ddp.yaml -m training.sft --config recipes/triplets/qwen3-8b-qlora.yaml

The walk: recipe -> contract and tokenizer -> rows to tokens -> checks -> run record -> model -> TRL's SFTTrainer -> train ->
save -> figures. TRL trains; what is added here is what its script does not do: rows are tokenised as a server will see
them (`training.data`), nothing is truncated or dropped in silence, non-finite weights are never saved, and a run can be
resumed only by the recipe that started it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from extractors import Extractor, InputError, load_extractor
from recipes.loader import Recipe, RecipeError, load_recipe
from recipes.models import ModelError, resolve_model
from training.build import as_lines, load_model, load_tokenizer, memory_estimate, model_card, peak_memory
from training.data import Encoded, Source, encode, load_split, refuse_overlong, show_mask, token_statistics
from training.record import (
    RunError,
    check_resumable,
    check_same_data,
    last_checkpoint,
    read_record,
    run_record,
    write_record,
)

# Keys of TRL's that decide how its script renders and masks text. Here the contract does, so they would change nothing.
DECIDED_BY_CONTRACT = (
    "assistant_only_loss",
    "chat_template_path",
    "dataset_kwargs",
    "dataset_text_field",
    "eos_token",
    "pad_token",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, or show what would be trained. Exit codes: 0 done, 2 bad recipe or input, 1 failed run."""
    parser = argparse.ArgumentParser(
        prog="training.sft", description="Fine-tune an extractor (TRL SFTTrainer).", allow_abbrev=False
    )
    parser.add_argument("--config", type=Path, required=True, help="the recipe (YAML)")
    parser.add_argument(
        "--dry-run", action="store_true", help="show rows, loss mask, statistics and cost; train nothing"
    )
    known, overrides = parser.parse_known_args(arguments)
    try:
        recipe = load_recipe(known.config, overrides)
        if recipe.method != "sft":
            raise InputError(
                f"`method` is {recipe.method}: this is training.sft; use `mnemosmith train {known.config}`."
            )
        refuse_ignored_keys(recipe)
        extractor = load_extractor(recipe.extractor, recipe.extractor_options)
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


def train(recipe: Recipe, extractor: Extractor[Any, Any]) -> dict[str, Any]:
    """Run the recipe. Returns the finished run record, which also stands in `output_dir/run.json`.

    Raises InputError for rows that cannot be used, RunError for a run that diverged or cannot be resumed.
    """
    # Load: contract, tokenizer, rows as tokens. Checked before any weight is read.
    model_path = resolve_model(recipe.values["model_name_or_path"])
    output = Path(recipe.values["output_dir"])
    checkpoint = last_checkpoint(output, recipe.values.get("resume_from_checkpoint"))
    if checkpoint is not None:
        check_resumable(recipe, output)
    tokenizer = load_tokenizer(recipe, model_path)
    encoded, sources = encode_split(recipe, extractor, tokenizer, recipe.values["dataset_train_split"])
    if checkpoint is not None:
        check_same_data(output, recipe.values["dataset_train_split"], [source.sha256 for source in sources])
    wants_eval = recipe.values.get("eval_strategy", "no") != "no"
    eval_encoded, eval_sources = (
        encode_split(recipe, extractor, tokenizer, recipe.values["dataset_test_split"]) if wants_eval else (None, [])
    )

    # Build: TRL's own configuration objects, from TRL's own keys.
    from datasets import Dataset
    from trl import ModelConfig, SFTConfig, get_peft_config

    from training.trainer import GuardedSFTTrainer, keep_freed_memory

    settings = {"logging_nan_inf_filter": False, **recipe.trainer_values()}  # transformers hides NaN losses by default
    settings.pop("resume_from_checkpoint", None)  # decided above
    args = SFTConfig(**settings)
    if args.use_cpu:
        keep_freed_memory()
    record = run_record(
        recipe,
        extractor,
        model_path,
        template=tokenizer.chat_template,
        data=[*map(asdict, sources), *map(asdict, eval_sources)],
        statistics=token_statistics(encoded),
        world_size=args.world_size,
    )
    if args.process_index == 0:
        write_record(output, record)
        (output / "recipe.yaml").write_text(recipe.to_yaml(), encoding="utf-8")
        print_plan(encoded, tokenizer, args, checkpoint)

    model = load_model(recipe, args, model_path)

    def dataset(rows: Encoded) -> Dataset:
        return Dataset.from_dict(
            {
                "input_ids": [e.prompt_ids + e.completion_ids for e in rows.examples],
                "labels": [e.labels for e in rows.examples],
            }
        )

    trainer = GuardedSFTTrainer(
        model=model,
        args=args,
        train_dataset=dataset(encoded),
        eval_dataset=dataset(eval_encoded) if eval_encoded else None,
        processing_class=tokenizer,
        peft_config=get_peft_config(ModelConfig(**recipe.model_values())),
    )
    trainable = sum(p.numel() for p in trainer.model.parameters() if p.requires_grad)
    if not trainable:
        raise RunError("no parameter is trainable: check `lora_target_modules` against the model's module names.")

    # Train.
    started = time.monotonic()
    result = trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    seconds = time.monotonic() - started
    if not math.isfinite(result.training_loss):
        raise RunError(f"the training loss is {result.training_loss}; nothing was saved. Lower `learning_rate`.")

    # Save: weights (checked for non-finite values by the trainer), the log, the figures, the model card.
    trainer.save_model(str(output))
    measured = [entry for entry in trainer.state.log_history if "eval_loss" in entry]
    if eval_encoded and not (measured and measured[-1]["step"] == trainer.state.global_step):
        measured.append(trainer.evaluate())
    if args.process_index == 0:
        tokenizer.save_pretrained(output)
        figures = run_figures(trainer.state.log_history, encoded, args, seconds, trainer.state.global_step, checkpoint)
        record |= {
            "status": "finished",
            "steps": trainer.state.global_step,
            "trainable_parameters": trainable,
            "train_loss": result.training_loss,
            "eval_loss": measured[-1]["eval_loss"] if measured else None,
            "figures": figures,
        }
        with (output / "train_log.jsonl").open("w", encoding="utf-8") as log:
            log.writelines(json.dumps(entry) + "\n" for entry in trainer.state.log_history)
        (output / "README.md").write_text(model_card(record), encoding="utf-8")
        write_record(output, record)
        print(
            f"trained {trainer.state.global_step} steps in {seconds:.0f} s, {figures['tokens_per_s']:.0f} tokens/s "
            f"({figures['trained_tokens_per_s']:.0f} trained), loss {result.training_loss:.4f}"
            + (f", eval loss {record['eval_loss']:.4f}" if measured else "")
            + f"\nsaved to {output}; next: mnemosmith export {output} OUT"
        )
    if args.push_to_hub:
        trainer.push_to_hub()
    return record


def refuse_ignored_keys(recipe: Recipe) -> None:
    """A key that would be read and then change nothing is an error, like an unknown one."""
    ignored = [key for key in DECIDED_BY_CONTRACT if recipe.values.get(key)]
    if recipe.values.get("completion_only_loss") is False:
        ignored.append("completion_only_loss")
    if ignored:
        raise InputError(
            f"`{'`, `'.join(ignored)}`: rows are rendered from the extractor's contract and trained on the completion alone, so "
            "this would change nothing. Leave it out; prompts are changed through `extractor_options`."
        )


def encode_split(
    recipe: Recipe, extractor: Extractor[Any, Any], tokenizer: Any, split: str
) -> tuple[Encoded, list[Source]]:
    """Rows of a split as tokens, overlong ones refused or dropped as the recipe says."""
    rows, sources = load_split(recipe.values, extractor, split)
    if split == recipe.values["dataset_test_split"] and recipe.values.get("eval_rows"):
        rows = rows[: recipe.values["eval_rows"]]
    max_length = recipe.values.get("max_length", 1024)  # TRL's default
    encoded = encode(rows, extractor, tokenizer, max_length)
    refuse_overlong(encoded, split, max_length, recipe.values["overlong_rows"])
    return encoded, sources


def print_plan(encoded: Encoded, tokenizer: Any, args: Any, checkpoint: Path | None) -> None:
    """What a person wants to see before the first step: counts, one row with its loss mask, where it resumes."""
    stats = token_statistics(encoded)
    dropped = f", {stats['dropped']} overlong dropped (first {stats['first_dropped']!r})" if stats["dropped"] else ""
    print(f"{stats['rows']} rows, {stats['tokens']} tokens ({stats['trained_tokens']} trained){dropped}")
    print(show_mask(encoded.examples[0], tokenizer))
    batch = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
    print(
        f"batch {batch} = {args.per_device_train_batch_size} x {args.gradient_accumulation_steps} accumulated "
        f"x {args.world_size} processes" + (f"; resumes from {checkpoint}" if checkpoint else "")
    )


def run_figures(
    log: list[dict[str, Any]], encoded: Encoded, args: Any, seconds: float, steps: int, checkpoint: Path | None
) -> dict[str, Any]:
    """Throughput of this start (a resumed run counts the steps since the checkpoint): non-pad tokens/s, trained tokens/s,
    seconds per step, peak memory in bytes."""
    done = int(checkpoint.name.rpartition("-")[2]) if checkpoint else 0
    rows_seen = (steps - done) * args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
    rows_seen = (
        min(rows_seen, math.ceil(args.num_train_epochs) * len(encoded.examples)) if args.max_steps <= 0 else rows_seen
    )
    stats = token_statistics(encoded)
    peak, device = peak_memory(args)
    return {
        "seconds": seconds,
        "seconds_per_step": seconds / max(1, steps - done),
        "tokens_per_s": rows_seen * stats["tokens"] / stats["rows"] / seconds,
        "trained_tokens_per_s": rows_seen * stats["trained_tokens"] / stats["rows"] / seconds,
        "peak_memory_bytes": peak,
        "device": device,
    }


def dry_run(recipe: Recipe, extractor: Extractor[Any, Any]) -> int:
    """Everything that can be known without weights: the resolved recipe, two rows with the loss mask, token statistics,
    steps, an estimate of memory, and of time where a finished run of the same model and method was measured here."""
    values = recipe.values
    print(f"# {recipe.path}, resolved\n{recipe.to_yaml()}")
    model_path = resolve_model(values["model_name_or_path"])
    tokenizer = load_tokenizer(recipe, model_path)
    encoded, sources = encode_split(recipe, extractor, tokenizer, values["dataset_train_split"])
    for source in sources:
        print(f"{source.path}: {source.rows} of {source.of} rows, sha256 {source.sha256[:12]}")

    print("\n# Two rows as they will be trained: ⟦what the loss sees⟧")
    for example in encoded.examples[:2]:
        print(show_mask(example, tokenizer))

    stats = token_statistics(encoded)
    print("\n# Tokens")
    for key in ("rows", "truncated", "dropped", "first_dropped", "tokens", "trained_tokens"):
        print(f"  {key}: {stats[key]}")
    for key in ("row_tokens", "completion_tokens"):
        print(f"  {key}: " + ", ".join(f"{name} {value:g}" for name, value in stats[key].items()))

    batch = values.get("per_device_train_batch_size", 8)
    accumulation = values.get("gradient_accumulation_steps", 1)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    epochs = values.get("num_train_epochs", 3.0)
    per_epoch = max(1, math.ceil(math.ceil(stats["rows"] / (batch * world)) / accumulation))
    steps = values["max_steps"] if values.get("max_steps", -1) > 0 else math.ceil(per_epoch * epochs)
    print(f"\n# Steps\n  {steps} = {per_epoch} an epoch x {epochs:g}")
    print(f"  batch {batch} x {accumulation} accumulated x {world} processes")

    print("\n# Memory of one process (estimate)")
    print(as_lines(memory_estimate(recipe, model_path, batch, int(stats["row_tokens"]["max"]))))
    print("\n# Time")
    print(time_estimate(recipe, steps * batch * accumulation * world * stats["tokens"] / stats["rows"]))
    print("\nThis was a dry run: no weights were read, nothing was trained or written.")
    return 0


def time_estimate(recipe: Recipe, tokens: float) -> str:
    """From the tokens/s of a finished run beside `output_dir` with the same model, quantisation and device kind."""
    output = Path(recipe.values["output_dir"])
    same = ("model_name_or_path", "load_in_4bit", "use_peft", "use_cpu", "dtype", "gradient_checkpointing")
    for path in sorted(output.parent.glob("*/run.json"), key=lambda p: p.stat().st_mtime, reverse=True):
        past = read_record(path.parent)
        if (
            past
            and past.get("status") == "finished"
            and all(past["recipe"].get(k) == recipe.values.get(k) for k in same)
        ):
            speed = past["figures"]["tokens_per_s"]
            return (
                f"  about {tokens / speed / 60:.0f} minutes: {tokens:.0f} tokens at the {speed:.0f}/s of {path.parent}"
            )
    return f"  unknown: {tokens:.0f} tokens, and no finished run of this model and device in {output.parent}"


if __name__ == "__main__":
    sys.exit(main())
