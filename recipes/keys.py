"""The keys of a recipe: TRL's own (read from the snapshot), ours, and what people write by habit from other tools."""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SNAPSHOT_FILE = Path(__file__).parent / "trl_keys.json"
METHODS = ("sft", "grpo")  # what this version can train
PLANNED_METHODS = ("classifier",)
EXTRACTORS = ("triplets", "continuity", "persona_tree")
OVERLONG = ("refuse", "drop")
REWARDS = ("process", "judge")
TRAINER_CONFIGS = {"sft": "SFTConfig", "grpo": "GRPOConfig"}

SECTIONS = ("task", "data", "reward", "model", "trainer")
SECTION_TITLES = {
    "task": "Task",
    "data": "Data",
    "reward": "Reward and groups",
    "model": "Model and adapter",
    "trainer": "Trainer",
}


@dataclass(frozen=True)
class Key:
    """What may stand under one key. `types`: of null, bool, int, float, str, list, list[str], dict, object (not
    YAML)."""

    name: str
    section: str
    types: tuple[str, ...]
    default: Any
    help: str
    choices: tuple[Any, ...] = ()
    low: float | None = None
    low_allowed: bool = True
    high: float | None = None
    high_allowed: bool = True
    configs: tuple[str, ...] = ()  # TRL dataclasses that have the key; empty for our own keys
    methods: tuple[str, ...] = METHODS  # of our own keys: the methods that have it


OUR_KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        Key("method", "task", ("str",), None, "What trains the model.", (*METHODS, *PLANNED_METHODS)),
        Key("extractor", "task", ("str",), None, "The memory task that the model learns.", EXTRACTORS),
        Key(
            "extractor_options",
            "task",
            ("dict",),
            {},
            "Options of the extractor. triplets: `relations` (open, personaext or a list), `closed` (true: only these "
            "relations), `prompt` (standard or compact). continuity: `prompt`. "
            "persona_tree: `schema` (full, quickstart or a JSON file), `extend`, `path_index` (full or none), `prompt`.",
        ),
        Key("dataset_name", "data", ("str", "null"), None, "A dataset folder. Write this or `datasets`."),
        Key(
            "datasets",
            "data",
            ("list", "null"),
            None,
            "A mixture of dataset folders: a list of {path, fraction (of the rows, 0 < fraction <= 1) or rows (how "
            "many)}. The whole folder where neither is given.",
        ),
        Key("dataset_train_split", "data", ("str",), "train", "The split to train on."),
        Key("dataset_test_split", "data", ("str", "null"), "dev", "The split that `eval_strategy` evaluates on."),
        Key(
            "overlong_rows",
            "data",
            ("str",),
            "refuse",
            "Rows whose prompt leaves no room for the completion within `max_length` (grpo: within what the model, or "
            "vLLM, takes): refuse the run, or drop them with a count.",
            OVERLONG,
        ),
        Key("eval_rows", "data", ("int", "null"), None, "Evaluate on this many rows at most.", low=1),
        Key(
            "reward",
            "reward",
            ("str",),
            "process",
            "What scores a completion: process (computed from gold, tree and dialogue) or judge (an LLM, as in the paper).",
            REWARDS,
            methods=("grpo",),
        ),
        Key(
            "reward_options",
            "reward",
            ("dict",),
            {},
            "process: the weights `operations`, `state`, `keep`, `grounding` (they sum to 1), `redundancy`, `overlong`, and "
            "`overlong_cache` (tokens before `max_completion_length` from which length costs). judge: `base_url`, `model`, "
            "`api_key_env` (the environment variable with the key), `sampling`, `attempts`, `concurrency`, `timeout`.",
            methods=("grpo",),
        ),
        Key(
            "operation_credit",
            "reward",
            ("float",),
            0.0,
            "Weight of an operation's own advantage, on the tokens of its line, beside the completion's. 0: none (the paper).",
            low=0,
            methods=("grpo",),
        ),
        Key(
            "dynamic_sampling_min_std",
            "reward",
            ("float",),
            0.02,
            "A group of completions whose rewards lie closer than this is replaced by a new prompt. 0: only equal rewards "
            "(the paper).",
            low=0,
            methods=("grpo",),
        ),
        Key(
            "dynamic_sampling_max_tries",
            "reward",
            ("int",),
            3,
            "How often; a group that is still flat then keeps an advantage of exactly 0. 0: no dynamic sampling.",
            low=0,
            methods=("grpo",),
        ),
    )
}

# (low, low allowed, high, high allowed) for the numbers that people set; TRL itself accepts any.
_RANGES: dict[str, tuple[float | None, bool, float | None, bool]] = {
    **{
        name: (1, True, None, True)
        for name in (
            "per_device_train_batch_size",
            "per_device_eval_batch_size",
            "gradient_accumulation_steps",
            "max_length",
            "save_total_limit",
            "eval_accumulation_steps",
            "dataset_num_proc",
            "dataloader_prefetch_factor",
            "torch_empty_cache_steps",
            "ddp_timeout",
            "ddp_bucket_cap_mb",
            "lora_r",
            "lora_alpha",
            "max_completion_length",
            "generation_batch_size",
            "steps_per_generation",
            "num_iterations",
            "num_generations_eval",
            "vllm_max_model_length",
            "vllm_tensor_parallel_size",
        )
    },
    "num_generations": (2, True, None, True),
    **{
        name: (0, False, None, True)
        for name in (
            "learning_rate",
            "num_train_epochs",
            "logging_steps",
            "eval_steps",
            "save_steps",
            "adam_epsilon",
            "neftune_noise_alpha",
            "temperature",
        )
    },
    **{
        name: (0, True, None, True)
        for name in (
            "beta",
            "epsilon_high",
            "top_k",
            "warmup_steps",
            "weight_decay",
            "max_grad_norm",
            "dataloader_num_workers",
            "seed",
            "data_seed",
            "eval_delay",
        )
    },
    **{name: (0, True, 1, False) for name in ("lora_dropout", "adam_beta1", "adam_beta2", "label_smoothing_factor")},
    "max_steps": (-1, True, None, True),
    "epsilon": (0, True, 1, False),
    **{name: (0, False, 1, True) for name in ("top_p", "vllm_gpu_memory_utilization")},
}

_CHOICES: dict[str, tuple[Any, ...]] = {
    # bare texts in TRL
    "bnb_4bit_quant_storage": ("uint8", "bfloat16", "float16", "float32"),
    "vllm_mode": ("colocate", "server"),
    "scale_rewards": ("group", "batch", "none"),
    "importance_sampling_level": ("token", "sequence"),
}
_LOSSES = ("dapo", "grpo", "bnpo", "dr_grpo", "cispo", "sapo", "luspo", "vespo")  # `loss_type` of grpo

# Keys of TRL that a recipe may not set.
REFUSED: dict[str, str] = {
    "hub_token": "a recipe is copied into the run folder, and a token must not be. Remove it and set the environment "
    "variable HF_TOKEN.",
    "do_train": "it does nothing here. Remove it.",
    "do_eval": "it does nothing here. Write `eval_strategy: steps` or `eval_strategy: epoch`.",
    "do_predict": "it does nothing here. Remove it; `mnemosmith eval` scores a checkpoint.",
    "local_rank": "the launcher sets it. Remove it.",
    "parallelism_config": "it is an object that YAML cannot hold. Choose a file of recipes/accelerate with `accelerate "
    "launch --config_file`.",
}


@functools.cache
def snapshot() -> dict[str, Any]:
    """The contents of `trl_keys.json`."""
    data: dict[str, Any] = json.loads(SNAPSHOT_FILE.read_text(encoding="utf-8"))
    return data


@functools.cache
def known_keys(method: str = "sft") -> Mapping[str, Key]:
    """Every key that a recipe of this method may hold."""
    keys = {name: key for name, key in OUR_KEYS.items() if method in key.methods}
    for config, section in (("ModelConfig", "model"), (TRAINER_CONFIGS[method], "trainer")):
        for name, entry in snapshot()[config].items():
            low, low_allowed, high, high_allowed = _RANGES.get(name, (None, True, None, True))
            types = tuple(entry["types"])
            if name == "resume_from_checkpoint":  # Trainer.train() takes true and false too
                types = ("str", "bool", "null")
            choices = _LOSSES if (method, name) == ("grpo", "loss_type") else tuple(entry["choices"] or ())
            keys[name] = Key(
                name,
                section,
                types,
                entry["default"],
                entry["help"],
                _CHOICES.get(name, choices),
                low,
                low_allowed,
                high,
                high_allowed,
                (config,),
            )
    return keys


def methods_with(name: str) -> tuple[str, ...]:
    """The methods whose recipes may hold this key."""
    return tuple(method for method in METHODS if name in known_keys(method))


# Other tools' name for a key that takes the same value.
RENAMED: dict[str, str] = {
    old: new
    for new, olds in {
        "model_name_or_path": "model base_model model_name model_path model_id pretrained_model_name_or_path hf_model "
        "base_model_name_or_path",
        "model_revision": "revision base_model_revision revision_of_model",
        "dtype": "torch_dtype model_dtype torch_type",
        "max_length": "max_seq_length max_seq_len max_len cutoff_len sequence_len sequence_length seq_length seq_len "
        "model_max_length context_length block_size",
        "per_device_train_batch_size": "micro_batch_size train_batch_size batch_size per_gpu_train_batch_size "
        "micro_train_batch_size device_batch_size per_device_batch_size",
        "per_device_eval_batch_size": "eval_batch_size per_gpu_eval_batch_size micro_eval_batch_size",
        "gradient_accumulation_steps": "gradient_accumulation grad_accum grad_accum_steps accumulate_grad_batches "
        "gradient_accumulation_step accumulation_steps",
        "gradient_checkpointing": "gradient_checkpoint use_gradient_checkpointing activation_checkpointing "
        "enable_activation_checkpointing grad_checkpointing",
        "learning_rate": "lr base_lr max_lr",
        "lr_scheduler_type": "lr_scheduler scheduler lr_schedule scheduler_type lr_decay_style",
        "lr_scheduler_kwargs": "lr_scheduler_args scheduler_kwargs",
        "num_train_epochs": "num_epochs epochs n_epochs max_epochs num_training_epochs train_epochs",
        "max_steps": "num_train_steps num_steps max_train_steps num_training_steps total_steps train_iters",
        "optim": "optimizer optimiser optimizer_type optimizer_name",
        "max_grad_norm": "gradient_clipping clip_grad grad_clip max_norm gradient_clip_val max_gradient_norm",
        "lora_r": "lora_rank r peft_lora_r lora_dim",
        "lora_alpha": "peft_lora_alpha alpha",
        "lora_dropout": "peft_lora_dropout lora_drop",
        "lora_target_modules": "lora_target target_modules lora_targets lora_modules peft_target_modules",
        "lora_modules_to_save": "modules_to_save additional_target",
        "use_rslora": "rslora peft_use_rslora",
        "use_dora": "dora peft_use_dora",
        "load_in_4bit": "load_4bit use_4bit load_in_4_bit",
        "load_in_8bit": "load_8bit use_8bit load_in_8_bit",
        "use_bnb_nested_quant": "bnb_4bit_use_double_quant double_quantization double_quant bnb_4bit_double_quant "
        "use_nested_quant use_double_quant",
        "eval_strategy": "evaluation_strategy",
        "eval_steps": "eval_interval evaluate_every eval_every",
        "save_steps": "save_interval save_every checkpoint_every",
        "logging_steps": "log_interval log_steps log_every",
        "packing": "sample_packing neat_packing use_packing pack_sequences multipack",
        "eval_packing": "eval_sample_packing",
        "neftune_noise_alpha": "neftune_alpha",
        "use_liger_kernel": "use_liger liger_kernel enable_liger_kernel",
        "dataset_num_proc": "preprocessing_num_workers num_proc dataset_processes",
        "dataset_name": "dataset data_path dataset_path dataset_dir train_file train_data data train_dataset "
        "data_files dataset_id",
        "datasets": "dataset_mixer dataset_mixture",
        "dataset_train_split": "train_split split",
        "dataset_test_split": "test_split eval_split validation_split dataset_eval_split dataset_dev_split val_split",
        "run_name": "wandb_name wandb_run_name run_id experiment_name",
        "use_cpu": "no_cuda cpu_only",
        "hub_model_id": "push_to_hub_model_id hub_repo hub_repo_id repo_id",
        "seed": "random_seed training_seed",
        "output_dir": "output output_path save_dir out_dir output_folder",
        "trust_remote_code": "trust_remote",
        "report_to": "report logger loggers",
        "bf16": "use_bf16 bfloat16",
        "fp16": "use_fp16 float16",
        "resume_from_checkpoint": "resume checkpoint auto_resume_from_checkpoints",
        "extractor": "task extractor_name",
        "extractor_options": "extractor_args extractor_kwargs",
        "method": "stage train_stage training_method",
        "num_generations": "num_sample_generations group_size n_generations num_return_sequences rollout_n samples_per_prompt",
        "max_completion_length": "max_response_length response_length max_response_len max_gen_length",
        "beta": "kl_coef kl_beta init_kl_coef kl_loss_coef kl_penalty",
        "epsilon": "clip_range cliprange clip_ratio eps_clip clip_epsilon epsilon_low clip_ratio_low eps_clip_low",
        "epsilon_high": "clip_ratio_high eps_clip_high clip_high",
        "dynamic_sampling_max_tries": "max_resample_times",
        "mask_truncated_completions": "overlong_filter",
        "vllm_gpu_memory_utilization": "gpu_memory_utilization rollout_gpu_memory_utilization",
        "reward": "reward_funcs reward_func reward_function reward_model",
    }.items()
    for old in olds.split()
}

# Other tools' key whose value must change too, or that has no place in a recipe: (keys that replace it, what to do).
CHANGED: dict[str, tuple[tuple[str, ...], str]] = {
    "warmup_ratio": (
        ("warmup_steps",),
        "transformers 5 has one key for both: in `warmup_steps` a number below 1 is the ratio. Write `warmup_steps: "
        "{value}`.",
    ),
    "lora_target_linear": (("lora_target_modules",), "Write `lora_target_modules: all-linear`."),
    **{
        name: (("use_peft",), "Write `use_peft: true` for LoRA, and `load_in_4bit: true` beside it for QLoRA.")
        for name in ("adapter", "finetuning_type", "use_lora", "lora", "peft", "train_type", "tuner_type", "qlora")
    },
    **{
        name: (
            ("load_in_4bit",),
            "Write `load_in_4bit: true` (with `bnb_4bit_quant_type: nf4`), or `load_in_8bit: true` for 8 bits.",
        )
        for name in (
            "quantization_bit",
            "quant_bits",
            "quantization",
            "quantizaton",
            "quantization_method",
            "quant_method",
            "bits",
        )
    },
    "bnb_4bit_compute_dtype": (("dtype",), "TRL computes the 4-bit layers in `dtype`. Write `dtype: bfloat16`."),
    **{
        name: (
            ("attn_implementation",),
            "Write `attn_implementation: flash_attention_2` (or `kernels-community/flash-attn2`, which needs no "
            "compiling).",
        )
        for name in (
            "use_flash_attention_2",
            "use_flash_attention",
            "flash_attention",
            "flash_attn",
            "use_flash_attn",
            "attn_impl",
            "fa2",
        )
    },
    **{
        name: (("attn_implementation",), "Write `attn_implementation: sdpa`.")
        for name in ("sdp_attention", "xformers_attention", "xformers")
    },
    **{
        name: (
            (),
            "An extractor's contract sets how many tokens it may answer with; in training the row's length is capped "
            "by `max_length`, a rollout's by `max_completion_length`. Remove it.",
        )
        for name in ("max_new_tokens", "max_prompt_length", "max_target_length", "max_source_length")
    },
    "dynamic_sample": (
        ("dynamic_sampling_max_tries",),
        "Write `dynamic_sampling_max_tries: 3`, or 0 for none.",
    ),
    **{
        name: (("reward_options",), "Write `reward_options: {{overlong_cache: {value}}}`.")
        for name in ("soft_cache_length", "overlong_buffer_length", "overlong_buffer_len")
    },
    "overwrite_output_dir": (
        (),
        "transformers 5 has no such key: a run resumes from the last checkpoint in `output_dir`. Remove it, and write "
        "another `output_dir` for a fresh run.",
    ),
    "logging_dir": (
        (),
        "transformers 5 has no such key. Remove it; the environment variable TENSORBOARD_LOGGING_DIR sets the folder.",
    ),
    "group_by_length": (
        ("train_sampling_strategy",),
        "transformers 5 renamed it. Write `train_sampling_strategy: group_by_length`.",
    ),
    "save_safetensors": ((), "transformers 5 always writes safetensors. Remove it."),
    "include_tokens_per_second": (
        (),
        "transformers 5 has no such key; a run always reports its tokens per second. Remove it.",
    ),
    "push_to_hub_token": ((), "Remove it and set the environment variable HF_TOKEN."),
    **{
        name: (
            (),
            "The tokenizer is loaded from `model_name_or_path` (TRL's `processing_class` is no recipe key). Remove it.",
        )
        for name in ("tokenizer", "tokenizer_name", "tokenizer_name_or_path", "processing_class", "tokenizer_type")
    },
    **{
        name: (
            (),
            "The chat template is the model's own; training and serving must render the same prompt. Remove it, or "
            "write `chat_template_path` for a template of yours.",
        )
        for name in ("chat_template", "template", "conversation_template", "chat_template_jinja")
    },
    **{
        name: ((), "The extractor's contract sets it, so that training and serving cannot differ. Remove it.")
        for name in ("enable_thinking", "system_prompt", "default_system", "system")
    },
    **{
        name: ((), "Only the completion is trained; the prompt is always masked. Remove it.")
        for name in ("train_on_inputs", "train_on_prompt", "mask_prompt", "train_on_input", "response_template")
    },
    **{
        name: (
            (),
            "A dataset folder carries its splits, made by person. Remove it and write `dataset_test_split: dev`.",
        )
        for name in ("val_set_size", "test_split_size", "val_size", "test_size")
    },
    **{
        name: (
            ("datasets",),
            "Write a mixture: `datasets: [{{path: <dataset folder>, rows: {value}}}]`.",
        )
        for name in ("max_samples", "max_train_samples", "num_samples", "max_rows")
    },
    **{
        name: ((), "A dataset folder is read whole, as its card describes it. Remove it.")
        for name in ("dataset_config", "dataset_config_name", "dataset_streaming", "streaming", "columns")
    },
    "max_eval_samples": (("eval_rows",), "Write `eval_rows: {value}`."),
    "wandb_project": ((), "Write `report_to: wandb` and set the environment variable WANDB_PROJECT."),
    "use_wandb": (("report_to",), "Write `report_to: wandb`."),
    "early_stopping_patience": (
        (),
        "Not in this version. Write `load_best_model_at_end: true` to keep the best checkpoint.",
    ),
    "strict": ((), "A recipe is always read strictly. Remove it."),
    "defaults": ((), "A recipe stands alone: it cannot inherit from another. Copy the keys you need."),
}

# What people write for a value of these keys.
VALUE_SPELLINGS: dict[str, str] = {
    "bf16": "bfloat16",
    "torch.bfloat16": "bfloat16",
    "fp16": "float16",
    "half": "float16",
    "torch.float16": "float16",
    "fp32": "float32",
    "float": "float32",
    "torch.float32": "float32",
    "int4": "nf4",
    "adamw": "adamw_torch",
    "paged_adamw": "paged_adamw_32bit",
    "none": "no",
    "never": "no",
    "step": "steps",
    "epochs": "epoch",
}


def normalise(name: str) -> str:
    """`Learning-Rate` and `--learning-rate` as `learning_rate`."""
    return name.strip().lower().lstrip("-_").replace("-", "_").replace(" ", "_")


def replacements(name: str, method: str = "sft") -> tuple[str, ...]:
    """The recipe keys that an unknown key most likely meant; empty where nothing replaces it or nothing is near."""
    plain = normalise(name)
    if plain in known_keys(method):
        return (plain,)
    if plain in RENAMED:
        return (RENAMED[plain],)
    if plain in CHANGED:
        return CHANGED[plain][0]
    if methods_with(plain):
        return ()
    return nearest(plain, method)


def nearest(plain: str, method: str = "sft") -> tuple[str, ...]:
    """The recipe key with the nearest spelling, also by way of another tool's key; empty where none is near."""
    keys = known_keys(method)
    candidates: dict[str, tuple[str, ...]] = {name: (name,) for name in keys}
    candidates |= {old: (new,) for old, new in RENAMED.items() if new in keys}
    candidates |= {old: new for old, (new, _) in CHANGED.items() if new and new[0] in keys}
    close = difflib.get_close_matches(plain, candidates, n=1, cutoff=0.75)
    return candidates[close[0]] if close else ()
