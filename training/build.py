"""What every method builds in the same way: the tokenizer, the model, an estimate of its memory, the run's model card.

Nothing of torch or transformers is imported before it is needed: a broken recipe is to be refused at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from recipes.loader import Recipe


def load_tokenizer(recipe: Recipe, model_path: str) -> Any:
    """The base model's tokenizer; pad token as the model has it, or the end-of-text token (masks never go by its id)."""
    from transformers import AutoTokenizer

    values = recipe.values
    tokenizer = AutoTokenizer.from_pretrained(
        model_path,
        revision=values.get("model_revision", "main"),
        trust_remote_code=values.get("trust_remote_code", False),
    )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(recipe: Recipe, args: Any, model_path: str) -> Any:
    """The model of a recipe, quantised where it says so, on the device of this process. args: TRL's configuration; its
    `model_init_kwargs` are used up here."""
    import torch
    from transformers import AutoModelForCausalLM
    from trl import ModelConfig, get_quantization_config

    config = ModelConfig(**recipe.model_values())
    quantization = get_quantization_config(config)
    arguments: dict[str, Any] = {
        "dtype": config.dtype if config.dtype in (None, "auto") else getattr(torch, config.dtype),
        "revision": config.model_revision,
        "attn_implementation": config.attn_implementation,
        "trust_remote_code": args.trust_remote_code,
        **(args.model_init_kwargs or {}),
    }
    args.model_init_kwargs = None  # they go to from_pretrained here, not to the trainer
    if quantization is not None:
        arguments["quantization_config"] = quantization
        arguments["device_map"] = {"": "cpu"} if args.use_cpu else {"": int(os.environ.get("LOCAL_RANK", "0"))}
    model: Any = AutoModelForCausalLM.from_pretrained(model_path, **arguments)
    if not model.generation_config.do_sample:
        model.generation_config.temperature = None  # an exported folder states 0.0, which save_pretrained refuses
    return model


def peak_memory(args: Any) -> tuple[int, str]:
    """Bytes of memory at this process's peak so far, and the device it was measured on, in words."""
    import torch

    if torch.cuda.is_available() and not args.use_cpu:
        return int(torch.cuda.max_memory_allocated()), torch.cuda.get_device_name()
    import resource

    bytes_used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return bytes_used, f"cpu, {torch.get_num_threads()} threads"


def memory_estimate(recipe: Recipe, model_path: str, rows: int, length: int) -> dict[str, int] | str:
    """Bytes by part (`training.estimate`) for `rows` of `length` tokens at once on a device, or why there is no estimate."""
    from transformers import AutoConfig

    from training.estimate import EstimateError, training_memory

    values = recipe.values
    config = AutoConfig.from_pretrained(model_path, revision=values.get("model_revision", "main")).to_dict()
    four_bit = values.get("load_in_4bit")
    try:
        return training_memory(
            config,
            quantization=None if not four_bit else "nf4-double" if values.get("use_bnb_nested_quant") else "nf4",
            dtype=values.get("dtype", "float32"),
            lora_r=values.get("lora_r", 16),
            targets=values.get("lora_target_modules") or ("q_proj", "v_proj"),  # PEFT's default for these families
            full=not values.get("use_peft"),
            lora_dropout=values.get("lora_dropout", 0.05),
            batch_size=rows,
            length=length,
            gradient_checkpointing=values.get("gradient_checkpointing", True),
        )
    except EstimateError as error:
        return f"unknown: {error}"


def as_lines(parts: Mapping[str, int] | str) -> str:
    """An estimate as it is printed."""
    if isinstance(parts, str):
        return f"  {parts}"
    return "\n".join(f"  {name}: {size / 2**30:.2f} GiB" for name, size in parts.items())


def model_card(record: dict[str, Any]) -> str:
    """README.md of the run folder: what was trained, from what, and how to go on."""
    data = "\n".join(f"- {d['path']} ({d['split']}): {d['rows']} rows, sha256 {d['sha256']}" for d in record["dataset"])
    loss = "" if record["eval_loss"] is None else f", eval loss {record['eval_loss']:.4f}"
    return f"""---
base_model: {record["model"]["name"]}
library_name: peft
tags: [mnemosmith, {record["extractor"]["name"]}]
---
# {record["extractor"]["name"]} extractor (contract version {record["extractor"]["version"]})

Fine-tuned from `{record["model"]["name"]}` with mnemosmith (method `{record["recipe"]["method"]}`, seed {record["seed"]}),
{record["steps"]} steps, training loss {record["train_loss"]:.4f}{loss}.

Data:
{data}

The whole recipe stands in `recipe.yaml`, versions and digests in `run.json`. Before it is served it has to be merged:

    mnemosmith export {record["recipe"]["output_dir"]} OUT
"""
