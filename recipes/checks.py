"""Rules between the keys of a recipe: combinations that TRL accepts and that cost a run, each with what to write
instead."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipes.keys import Key
from recipes.values import show

Problem = tuple[str, str]  # the key to point at, the message
NATIVE_BF16_FLAGS = ("amx_bf16", "avx512_bf16")


def cpu_has_bf16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this machine's CPU has bfloat16 matrix instructions. Without them bf16 training is several times slower
    than fp32. False where the file cannot be read."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    flags = {flag for line in text.splitlines() if line.startswith("flags") for flag in line.split()}
    return any(flag in flags for flag in NATIVE_BF16_FLAGS)


class _Invalid(Exception):
    """A rule asked for a key whose own value is already reported as wrong, so it cannot be judged."""


@dataclass(frozen=True)
class _Settings:
    values: Mapping[str, Any]  # valid values that the recipe sets
    keys: Mapping[str, Key]
    invalid: frozenset[str]
    environ: Mapping[str, str]
    cpu_bf16: bool

    def __getitem__(self, name: str) -> Any:
        """What the run would use: the recipe's value or TRL's default; None for a key that the method lacks."""
        if name in self.invalid:
            raise _Invalid(name)
        if name in self.values:
            return self.values[name]
        return self.keys[name].default if name in self.keys else None

    def set_as(self, name: str) -> str:
        """The value as a message names it."""
        value = self[name]
        shown = show(value)
        return f"`{name}` is {shown}" if name in self.values else f"`{name}` is not set (TRL's default is {shown})"


def cross_field_problems(
    values: Mapping[str, Any],
    keys: Mapping[str, Key],
    invalid: frozenset[str] = frozenset(),
    environ: Mapping[str, str] | None = None,
    cpu_bf16: bool | None = None,
) -> list[Problem]:
    """Every broken rule as (key, message). `invalid`: keys that are already reported; rules that need them are skipped.
    `cpu_bf16`: whether the CPU has native bf16, read from this machine where None."""
    settings = _Settings(
        values,
        keys,
        invalid,
        os.environ if environ is None else environ,
        cpu_has_bf16() if cpu_bf16 is None else cpu_bf16,
    )
    problems: list[Problem] = []
    for rule in RULES:
        try:
            problem = rule(settings)
        except _Invalid:
            continue
        if problem is not None:
            problems.append(problem)
    return problems


def _one_dataset(s: _Settings) -> Problem | None:
    if s["dataset_name"] is not None and s["datasets"] is not None:
        return "datasets", "`dataset_name` and `datasets` are both set. Keep one folder or the mixture, not both."
    if s["dataset_name"] is None and s["datasets"] is None:
        return "dataset_name", (
            "there is no data: write `dataset_name: <dataset folder>`, or `datasets: [{path: <dataset folder>, "
            "fraction: 0.5}, …]` for a mixture."
        )
    return None


def _splits(s: _Settings) -> Problem | None:
    if s["eval_strategy"] != "no" and s["dataset_test_split"] is None:
        return "eval_strategy", (
            f"`eval_strategy` is {s['eval_strategy']} but `dataset_test_split` is null. Write `dataset_test_split: "
            "dev`, or `eval_strategy: no`."
        )
    if s["dataset_test_split"] == s["dataset_train_split"]:
        return "dataset_test_split", (
            f"`dataset_train_split` and `dataset_test_split` are both {s['dataset_train_split']}: a model must not be "
            "evaluated on the rows it was trained on. Write `dataset_test_split: dev`."
        )
    return None


def _four_bit_compute_dtype(s: _Settings) -> Problem | None:
    if not s["load_in_4bit"] or s["use_cpu"] or s["dtype"] in ("bfloat16", "float16"):
        return None
    return "load_in_4bit", (
        f"`load_in_4bit` is true but {s.set_as('dtype')}: on a GPU the 4-bit layers would compute in fp32, several "
        "times slower. Set `dtype: bfloat16`, or `load_in_4bit: false`."
    )


def _cpu_dtype(s: _Settings) -> Problem | None:
    if not s["use_cpu"] or s["dtype"] not in ("bfloat16", "float16"):
        return None
    if s["dtype"] == "bfloat16" and s.cpu_bf16:
        return None
    why = (
        "fp16 does not train on a CPU"
        if s["dtype"] == "float16"
        else "this CPU has no bf16 matrix instructions (amx_bf16 or avx512_bf16), and bf16 is several times slower "
        "than fp32"
    )
    return (
        "dtype",
        f"`use_cpu` is true but `dtype` is {s['dtype']}: {why}. fp32 is right on this CPU: set `dtype: float32`.",
    )


def _cpu_mixed_precision(s: _Settings) -> Problem | None:
    if not s["use_cpu"]:
        return None
    if s["fp16"]:
        return (
            "fp16",
            "`use_cpu` is true but `fp16` is true: fp16 does not train on a CPU. Set `fp16: false` and `bf16: false`.",
        )
    if s["bf16"] is False or s.cpu_bf16:
        return None
    state = "`bf16` is true" if s["bf16"] else "`bf16` is not set, and TRL then turns bf16 mixed precision on"
    return "bf16" if "bf16" in s.values else "use_cpu", (
        f"`use_cpu` is true but {state}: this CPU has no bf16 matrix instructions (amx_bf16 or avx512_bf16), and bf16 "
        "is several times slower than fp32. fp32 is right on this CPU: set `bf16: false`."
    )


def _two_precisions(s: _Settings) -> Problem | None:
    if s["fp16"] and s["bf16"]:
        return "fp16", "`fp16` and `bf16` are both true. Set `fp16: false`: bf16 needs no loss scaling."
    bf16_is_on = not s["fp16"] if s["bf16"] is None else s["bf16"]  # TRL's default
    if bf16_is_on and s["dtype"] == "float16" and not s["use_cpu"]:
        state = "`bf16` is true" if s["bf16"] else "`bf16` is not set (TRL then turns it on)"
        return "bf16" if s["bf16"] else "dtype", (
            f"{state} but `dtype` is float16: float16 weights would be trained in bf16. Set `dtype: bfloat16`, or "
            "`fp16: true` and `bf16: false`."
        )
    if s["fp16"] and s["dtype"] == "bfloat16":
        return "fp16", (
            "`fp16` is true but `dtype` is bfloat16: bfloat16 weights would be trained in fp16. Set `bf16: true` and "
            "`fp16: false`."
        )
    return None


def _packing(s: _Settings) -> Problem | None:
    name = next((name for name in ("packing", "eval_packing", "padding_free") if s[name]), None)
    if name is None:
        return None
    if "flash" not in (s["attn_implementation"] or ""):
        return name, (
            f"`{name}` is true but {s.set_as('attn_implementation')}: only FlashAttention keeps the rows of one "
            "sequence apart, others let them attend to each other. Set `attn_implementation: flash_attention_2` (or "
            f"flash_attention_3, or kernels-community/flash-attn2, which needs no compiling), or `{name}: false`."
        )
    if name != "padding_free" and s["packing_strategy"] == "wrapped":
        return "packing_strategy", (
            f"`{name}` is true but `packing_strategy` is wrapped: rows are cut anywhere and attend to each other. Set "
            "`packing_strategy: bfd`."
        )
    return None


def _both_quantisations(s: _Settings) -> Problem | None:
    if s["load_in_4bit"] and s["load_in_8bit"]:
        return "load_in_8bit", "`load_in_4bit` and `load_in_8bit` are both true. For QLoRA set `load_in_8bit: false`."
    return None


def _quantisation_needs_lora(s: _Settings) -> Problem | None:
    name = _quantised(s)
    if name is not None and not s["use_peft"]:
        return name, (
            f"`{name}` is true but {s.set_as('use_peft')}: quantised weights cannot be trained, only an adapter on "
            f"them. Set `use_peft: true`, or `{name}: false`."
        )
    return None


def _lora_needs_peft(s: _Settings) -> Problem | None:
    if s["use_peft"]:
        return None
    lora = [name for name in s.values if name.startswith("lora_") or name in ("use_rslora", "use_dora")]
    if lora:
        named = ", ".join(f"`{name}`" for name in lora)
        return lora[0], (
            f"LoRA keys are set ({named}) but {s.set_as('use_peft')}: the whole model would be trained without LoRA. "
            "Set `use_peft: true`, or remove these keys."
        )
    return None


def _quantised_zero3(s: _Settings) -> Problem | None:
    name = _quantised(s)
    if name is None or _zero_stage(s) != 3:
        return None
    return name, (
        f"`{name}` is true but DeepSpeed ZeRO-3 is on: it shards the weights, and quantised weights cannot be gathered "
        f"again. Launch with recipes/accelerate/zero2.yaml (or ddp.yaml), or set `{name}: false` for bf16 LoRA."
    )


def _quantised_fsdp(s: _Settings) -> Problem | None:
    on = s.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true" or bool(s["fsdp"])
    if not on or not s["load_in_4bit"] or s["bnb_4bit_quant_storage"] == s["dtype"]:
        return None
    return "load_in_4bit", (
        f"`load_in_4bit` is true and FSDP is on, but {s.set_as('bnb_4bit_quant_storage')}: FSDP shards only tensors of "
        f"the model's dtype. Set `bnb_4bit_quant_storage: {s['dtype'] if s['dtype'] == 'float16' else 'bfloat16'}`, or "
        "launch with recipes/accelerate/ddp.yaml."
    )


def _quantised(s: _Settings) -> str | None:
    return next((name for name in ("load_in_4bit", "load_in_8bit") if s[name]), None)


def _zero_stage(s: _Settings) -> int | None:
    """The ZeRO stage in force: of the recipe's `deepspeed` (a mapping, JSON text or a file), or of the launcher."""
    config: Any = s["deepspeed"]
    if config is None and s.environ.get("ACCELERATE_USE_DEEPSPEED", "true").lower() == "true":
        stage = s.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", "")
        if stage.isdigit():
            return int(stage)
        config = s.environ.get("ACCELERATE_DEEPSPEED_CONFIG_FILE")
    if isinstance(config, str):
        try:
            config = json.loads(config if config.lstrip().startswith("{") else Path(config).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None  # DeepSpeed names the unreadable file itself
    zero = config.get("zero_optimization") if isinstance(config, dict) else None
    stage_value = zero.get("stage") if isinstance(zero, dict) else None
    return stage_value if isinstance(stage_value, int) else None


def _push_to_hub(s: _Settings) -> Problem | None:
    if not s["push_to_hub"]:
        return None
    missing = []
    if not s["hub_model_id"]:
        missing.append("`hub_model_id` is not set: write `hub_model_id: <user>/<name>`")
    if not _has_hub_token(s.environ):
        missing.append("there is no token: set the environment variable HF_TOKEN, or log in with `hf auth login`")
    if not missing:
        return None
    return "push_to_hub", f"`push_to_hub` is true but {'; and '.join(missing)}. Or set `push_to_hub: false`."


def _has_hub_token(environ: Mapping[str, str]) -> bool:
    if environ.get("HF_TOKEN") or environ.get("HUGGING_FACE_HUB_TOKEN"):
        return True
    home = environ.get("HOME") or str(Path.home())
    cache = environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
    hub_home = environ.get("HF_HOME") or f"{cache}/huggingface"
    file = Path(environ.get("HF_TOKEN_PATH") or f"{hub_home}/token")
    return file.is_file() and file.stat().st_size > 0


def _best_model(s: _Settings) -> Problem | None:
    if not s["load_best_model_at_end"]:
        return None
    if s["eval_strategy"] == "no":
        return "load_best_model_at_end", (
            "`load_best_model_at_end` is true but `eval_strategy` is no: nothing tells which checkpoint is best. Set "
            "`eval_strategy: steps`, or `load_best_model_at_end: false`."
        )
    if s["save_strategy"] == "best":
        return None
    if s["eval_strategy"] != s["save_strategy"]:
        return "load_best_model_at_end", (
            f"`load_best_model_at_end` is true but `eval_strategy` is {s['eval_strategy']} and `save_strategy` is "
            f"{s['save_strategy']}: every evaluated step must be saved. Set `save_strategy: {s['eval_strategy']}`."
        )
    every = s["eval_steps"] or s["logging_steps"]
    if s["eval_strategy"] == "steps" and (
        (every < 1) != (s["save_steps"] < 1) or round(s["save_steps"] * 1e6) % max(1, round(every * 1e6))
    ):
        return "save_steps", (
            f"`load_best_model_at_end` is true but `save_steps` ({s['save_steps']}) is no multiple of the evaluation's "
            f"{every} steps. Set `save_steps: {every}`."
        )
    return None


def _grpo_best_model(s: _Settings) -> Problem | None:
    if s["method"] != "grpo" or not s["load_best_model_at_end"]:
        return None
    if s["metric_for_best_model"] not in (None, "loss", "eval_loss"):
        return None
    return "load_best_model_at_end", (
        f"`load_best_model_at_end` is true but {s.set_as('metric_for_best_model')}: an evaluation by answers has no loss. Write "
        "`metric_for_best_model: eval_state_f1` and `greater_is_better: true`."
    )


def _plateau(s: _Settings) -> Problem | None:
    if s["lr_scheduler_type"] == "reduce_lr_on_plateau" and s["eval_strategy"] == "no":
        return "lr_scheduler_type", (
            "`lr_scheduler_type` is reduce_lr_on_plateau but `eval_strategy` is no: it lowers the learning rate when "
            "the evaluation stops improving. Set `eval_strategy: steps`, or `lr_scheduler_type: cosine`."
        )
    return None


# Rules of `method: grpo`


def _grpo_extractor(s: _Settings) -> Problem | None:
    if s["method"] != "grpo" or s["extractor"] in (None, "persona_tree"):
        return None
    return "extractor", (
        f"`method` is grpo but `extractor` is {s['extractor']}: the rewards of this version score operations on a "
        "PersonaTree. Write `extractor: persona_tree`, or `method: sft`."
    )


def _groups_fill_the_batch(s: _Settings) -> Problem | None:
    """Batch sizes count completions; each step needs whole groups of them, from all processes together."""
    if s["method"] != "grpo":
        return None
    if s["generation_batch_size"] and s["steps_per_generation"]:
        return "steps_per_generation", (
            "`generation_batch_size` and `steps_per_generation` say the same thing twice. Keep one of them."
        )
    size, each, processes = s["num_generations"], s["per_device_train_batch_size"], _processes(s)
    if s["generation_batch_size"]:
        batch, at_once = s["generation_batch_size"], each * processes
        if batch % at_once or batch % size:
            valid = math.lcm(at_once, size)
            return "generation_batch_size", (
                f"`generation_batch_size` is {batch}, but {each} completions a device on {_counted(processes)} and groups of "
                f"{size} (`num_generations`) need a multiple of {valid}. Write {valid}, {2 * valid} or {3 * valid}."
            )
        return None
    name = "steps_per_generation" if s["steps_per_generation"] else "gradient_accumulation_steps"
    batch = each * processes * s[name]
    if batch % size == 0:
        return None
    valid = size // math.gcd(each * processes, size)
    return name if name in s.values else "per_device_train_batch_size", (
        f"`per_device_train_batch_size` ({each}) x `{name}` ({s[name]}) on {_counted(processes)} are {batch} completions, no "
        f"multiple of `num_generations` ({size}). Write `{name}: {valid}`, {2 * valid} or {3 * valid}."
    )


def _clip_range(s: _Settings) -> Problem | None:
    if s["method"] != "grpo" or s["epsilon_high"] is None or s["epsilon_high"] >= s["epsilon"]:
        return None
    return "epsilon_high", (
        f"`epsilon_high` is {s['epsilon_high']}, less than `epsilon` ({s['epsilon']}): the upper side of the clip is the wider "
        "one. DAPO writes `epsilon: 0.2` and `epsilon_high: 0.28`."
    )


def _quantised_rollouts(s: _Settings) -> Problem | None:
    name = _quantised(s)
    if name is None or not s["use_vllm"]:
        return None
    return name, (
        f"`{name}` is true but `use_vllm` is true: what is sent to vLLM would be packed integers, not weights. Merge the "
        f"SFT adapter (`mnemosmith export RUN OUT`), train a bf16 LoRA on OUT (`{name}: false`), or set `use_vllm: false`."
    )


def _vllm_mode(s: _Settings) -> Problem | None:
    """A key that would change nothing is an error."""
    if s["method"] != "grpo":
        return None
    given = [name for name in s.values if name.startswith("vllm_")]
    if not s["use_vllm"]:
        if not given:
            return None
        named = ", ".join(f"`{name}`" for name in given)
        return given[0], f"{named} set, but {s.set_as('use_vllm')}. Set `use_vllm: true`, or remove what is for vLLM."
    if s["use_cpu"]:
        return "use_vllm", (
            "`use_vllm` is true but `use_cpu` is true: TRL hands weights to vLLM on a GPU only. Set `use_vllm: false`; "
            "completions are then sampled with transformers."
        )
    mode = s["vllm_mode"]
    other = _COLOCATE_ONLY if mode == "server" else _SERVER_ONLY
    idle = next((name for name in given if name in other), None)
    if idle is not None:
        remedy = (
            "it is an option of the server's own command (`trl vllm-serve`)"
            if mode == "server"
            else "there is no server"
        )
        return idle, f"`{idle}` is set but `vllm_mode` is {mode}: {remedy}. Remove it, or change `vllm_mode`."
    parallel = s["vllm_tensor_parallel_size"]
    if mode == "colocate" and _processes(s) % parallel:
        return "vllm_tensor_parallel_size", (
            f"`vllm_tensor_parallel_size` is {parallel}, but {_counted(_processes(s))} cannot be divided by it. Write a divisor "
            f"of {_processes(s)}."
        )
    return None


def _merged_under_shards(s: _Settings) -> Problem | None:
    sharded = _zero_stage(s) == 3 or s.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true"
    if not (s["use_vllm"] and s["use_peft"] and sharded):
        return None
    return "use_peft", (
        "`use_peft` and `use_vllm` are true while ZeRO-3 or FSDP shards the weights: the base, into which the adapter is merged "
        "for each hand-over to vLLM, could not be restored bit by bit and would drift. Launch with "
        "recipes/accelerate/ddp.yaml or zero2.yaml, or train all weights (`use_peft: false`)."
    )


_SERVER_ONLY = (
    "vllm_server_base_url",
    "vllm_server_host",
    "vllm_server_port",
    "vllm_server_timeout",
    "vllm_group_port",
)
_COLOCATE_ONLY = (
    "vllm_gpu_memory_utilization",
    "vllm_max_model_length",
    "vllm_tensor_parallel_size",
    "vllm_enable_sleep_mode",
    "vllm_model_impl",
)


def _processes(s: _Settings) -> int:
    given = s.environ.get("WORLD_SIZE", "1")
    return int(given) if given.isdigit() and int(given) > 0 else 1


def _counted(processes: int) -> str:
    return "1 process" if processes == 1 else f"{processes} processes"


RULES: tuple[Callable[[_Settings], Problem | None], ...] = (
    _one_dataset,
    _splits,
    _four_bit_compute_dtype,
    _cpu_dtype,
    _cpu_mixed_precision,
    _two_precisions,
    _packing,
    _both_quantisations,
    _quantisation_needs_lora,
    _lora_needs_peft,
    _quantised_zero3,
    _quantised_fsdp,
    _push_to_hub,
    _best_model,
    _plateau,
    _grpo_extractor,
    _grpo_best_model,
    _groups_fill_the_batch,
    _clip_range,
    _quantised_rollouts,
    _vllm_mode,
    _merged_under_shards,
)
