"""Does QLoRA on a GPU compute in bf16, and how fast? One script, under six minutes, without a download.

    python tests/gpu/check.py                 on a GPU; prints a JSON report
    python tests/gpu/check.py --record        also writes the figures to docs/results.json
    python tests/gpu/check.py --cpu-smoke     the same script on a tiny shape, without a GPU: does it run?

It builds a model of Qwen3-8B's shape with random weights (speed and memory do not depend on their values), quantises it
with bitsandbytes as `from_pretrained` does for users (NF4, double quantisation), and trains it for a few steps with TRL's
SFTTrainer (LoRA r = 32 on all linear layers, gradient checkpointing, bf16) in three ways:

    padded   rows of an extraction corpus' lengths, padded to the longest of the batch
    full     rows that fill the length exactly: no padding and no packing, the speed to aim at
    packed   the rows of `padded`, packed; needs a FlashAttention implementation, and is left out where there is none

Exit status: 0 after the run, or without a GPU; 1 when a layer computed in another dtype than it should, or a loss is not
finite.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))  # run as a file from any folder, installed or not

from training.estimate import flops_per_token, mfu, training_memory  # noqa: E402

QWEN3_8B: dict[str, Any] = {
    "hidden_size": 4096,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 12288,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,
}
TINY: dict[str, Any] = {
    **QWEN3_8B,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 128,
    "vocab_size": 512,
}
LORA_R = 32

# Dense bf16 FLOP/s by a part of the name that the driver gives, the special names first. NVIDIA's data sheets.
PEAK_FLOPS: tuple[tuple[str, float], ...] = (
    ("B200", 2250e12),
    ("H100 PCIe", 756e12),
    ("H100 NVL", 835e12),
    ("H100", 989e12),
    ("H200", 989e12),
    ("GH200", 989e12),
    ("A100", 312e12),
    ("L40S", 362e12),
    ("L40", 181e12),
    ("L4", 121e12),
    ("RTX 4090", 165e12),
    ("RTX 3090", 71e12),
)


@dataclass(frozen=True)
class Plan:
    """What is run: rows of a batch and their length, by mode; steps that warm up, and that are measured."""

    shape: dict[str, Any]
    dtype: str
    padded_rows: int
    full_rows: int
    length: int
    warm_up: int
    measured: int


GPU_PLAN = Plan(QWEN3_8B, "bfloat16", padded_rows=16, full_rows=4, length=2048, warm_up=3, measured=12)
CPU_PLAN = Plan(TINY, "float32", padded_rows=4, full_rows=2, length=128, warm_up=1, measured=2)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the figures to docs/results.json")
    parser.add_argument("--cpu-smoke", action="store_true", help="run on a CPU with a tiny shape; figures mean nothing")
    parser.add_argument(
        "--seconds", type=float, default=300.0, help="stop measuring after this long (default: %(default)g)"
    )
    args = parser.parse_args(arguments)
    if args.record and args.cpu_smoke:
        parser.error("--record is for figures of a GPU; --cpu-smoke has none.")

    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # with more, Trainer would spread the batch over them
    import torch

    if not args.cpu_smoke and not torch.cuda.is_available():
        print(
            "No GPU here, nothing was measured. This check needs one NVIDIA GPU with bf16 (A100, L4, RTX 30 or later), "
            "24 GB of its memory and the `gpu` extra; `--cpu-smoke` only shows that the script runs."
        )
        return 0
    started = time.monotonic()
    plan = CPU_PLAN if args.cpu_smoke else GPU_PLAN
    report = run(plan, on_gpu=not args.cpu_smoke, deadline=started + args.seconds)
    report["seconds"] = round(time.monotonic() - started, 1)
    print(json.dumps(report, indent=2))

    measured = {name: mode for name, mode in report["modes"].items() if "skipped" not in mode}
    faults = [f"{name}: the loss is not finite." for name, mode in measured.items() if not math.isfinite(mode["loss"])]
    if report["compute_dtypes"] != [plan.dtype]:
        faults.append(f"the 4-bit layers compute in {report['compute_dtypes']}, due is {plan.dtype} alone.")
    for fault in faults:
        print(fault, file=sys.stderr)
    if args.record and not faults:
        record_figures(report, measured)
    return 1 if faults else 0


def run(plan: Plan, on_gpu: bool, deadline: float) -> dict[str, Any]:
    """The report: machine, versions, dtypes seen, and one entry for each mode."""
    import torch
    from transformers import set_seed

    set_seed(0)
    started = time.monotonic()
    model = random_nf4_model(plan, on_gpu)
    loaded = time.monotonic() - started
    name = torch.cuda.get_device_name(0) if on_gpu else "CPU"
    peak = next((flops for part, flops in PEAK_FLOPS if part in name), None) if on_gpu else None
    report: dict[str, Any] = {
        "device": name,
        "peak_flops": peak,
        "versions": {p: metadata.version(p) for p in ("torch", "transformers", "trl", "peft", "bitsandbytes")},
        "shape": plan.shape,
        "load_seconds": round(loaded, 1),
        "modes": {},
    }
    seen: dict[str, set[str]] = {"compute_dtypes": set(), "input_dtypes": set(), "output_dtypes": set()}
    hooks = watch_dtypes(model, seen)
    for mode in ("padded", "full", "packed"):
        implementation = flash_attention() if mode == "packed" else "sdpa"
        if implementation is None:
            why = "no FlashAttention: install flash-attn, without which packed rows would attend to each other"
            report["modes"][mode] = {"skipped": why}
            continue
        if time.monotonic() > deadline:
            report["modes"][mode] = {"skipped": "out of time: give it more --seconds"}
            continue
        model.set_attn_implementation(implementation)
        model, result = train(model, plan, mode, on_gpu, deadline)
        report["modes"][mode] = {"attention": implementation, **result, **utilisation(plan, result, peak)}
        for hook in hooks:  # the first mode has shown the dtypes; the others are measured without hooks
            hook.remove()
        hooks = []
    return {**report, **{key: sorted(values) for key, values in seen.items()}}


def random_nf4_model(plan: Plan, on_gpu: bool) -> Any:
    """A model of the plan's shape with random weights, its linear layers quantised to NF4 with double quantisation.

    All layers share the tensors of one, so that half a gigabyte of random numbers makes 8B weights; `from_pretrained`
    takes them as it takes a checkpoint, through the same quantiser, and copies and quantises each.
    """
    import torch
    from transformers import BitsAndBytesConfig, Qwen3Config, Qwen3ForCausalLM

    dtype = getattr(torch, plan.dtype)
    config = Qwen3Config(**plan.shape)
    with torch.device("meta"):
        names = Qwen3ForCausalLM(config).state_dict()
    block = torch.empty(2**20).normal_(std=0.02, generator=torch.Generator().manual_seed(0)).to(dtype)
    made: dict[str, torch.Tensor] = {}
    state = {}
    for name, empty in names.items():
        kind = ".".join(part for part in name.split(".") if not part.isdigit())
        if kind not in made:
            copies = -(-empty.numel() // block.numel())
            made[kind] = (
                torch.ones(empty.shape, dtype=dtype)
                if "norm" in kind
                else (block.repeat(copies)[: empty.numel()].reshape(empty.shape))
            )
        state[name] = made[kind]
    return Qwen3ForCausalLM.from_pretrained(
        None,
        config=config,
        state_dict=state,
        dtype=dtype,
        device_map={"": 0 if on_gpu else "cpu"},
        quantization_config=BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=dtype,
        ),
    )


def watch_dtypes(model: Any, seen: dict[str, set[str]]) -> list[Any]:
    """Hooks that note in which dtype every 4-bit layer is told to compute, what it gets and what it gives."""
    from bitsandbytes.nn import Linear4bit

    def note(module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        for key, dtype in (
            ("compute_dtypes", module.compute_dtype),
            ("input_dtypes", inputs[0].dtype),
            ("output_dtypes", output.dtype),
        ):
            seen[key].add(str(dtype).removeprefix("torch."))

    return [module.register_forward_hook(note) for module in model.modules() if isinstance(module, Linear4bit)]


def flash_attention() -> str | None:
    """The FlashAttention implementation that is installed here."""
    from transformers.utils import is_flash_attn_2_available, is_flash_attn_3_available

    if is_flash_attn_3_available():
        return "flash_attention_3"
    return "flash_attention_2" if is_flash_attn_2_available() else None


def train(model: Any, plan: Plan, mode: str, on_gpu: bool, deadline: float) -> tuple[Any, dict[str, Any]]:
    """Trains for a few steps. Returns the model with its adapter, for the next mode, and what was measured."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig, PeftModel
    from transformers import PrinterCallback, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    steps = plan.warm_up + plan.measured
    rows = plan.full_rows if mode != "padded" else plan.padded_rows
    data = random_rows(plan, mode, steps)
    lengths = [len(row["input_ids"]) for row in data]
    counts: list[tuple[int, Any]] = []  # slots and tokens of each forward pass; a tensor, since reading it would wait
    seconds: list[float] = []

    def count(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        mask = kwargs.get("attention_mask")
        slots = kwargs["input_ids"].numel()
        counts.append((slots, slots if mask is None else mask.sum()))

    class Clock(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.started = self.now()

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            seconds.append(self.now() - self.started)
            if time.monotonic() > deadline and len(seconds) > plan.warm_up:
                control.should_training_stop = True

        def now(self) -> float:
            if on_gpu:
                torch.cuda.synchronize()
            return time.perf_counter()

    with TemporaryDirectory() as folder:
        lora = LoraConfig(r=LORA_R, lora_alpha=LORA_R, target_modules="all-linear", task_type="CAUSAL_LM")
        trainer = SFTTrainer(
            model=model,
            args=SFTConfig(
                output_dir=folder,
                max_steps=steps,
                per_device_train_batch_size=rows,
                max_length=plan.length,
                packing=mode == "packed",
                learning_rate=2e-4,
                gradient_checkpointing=True,
                bf16=on_gpu,
                use_cpu=not on_gpu,
                logging_steps=1,
                report_to="none",
                save_strategy="no",
                disable_tqdm=True,
                dataloader_pin_memory=on_gpu,
            ),
            train_dataset=Dataset.from_list(data),
            processing_class=tokenizer(),
            peft_config=None if isinstance(model, PeftModel) else lora,
            callbacks=[Clock()],
        )
        trainer.remove_callback(PrinterCallback)  # stdout is for the report
        hook = trainer.model.register_forward_pre_hook(count, with_kwargs=True)
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        result = trainer.train()
        hook.remove()

    kept = slice(plan.warm_up, len(seconds))
    slots = sum(entry[0] for entry in counts[kept])
    tokens = sum(int(entry[1]) for entry in counts[kept])
    return trainer.model, {
        "steps": len(seconds[kept]),
        "seconds_per_step": sum(seconds[kept]) / len(seconds[kept]),
        "tokens_per_s": tokens / sum(seconds[kept]),
        "padding_share": 1 - tokens / slots,
        "row_tokens": sum(length * length for length in lengths) / sum(lengths),  # of the row that a token stands in
        "loss_share": sum(label != -100 for row in data for label in row["labels"]) / sum(lengths),
        "longest_batch_slots": max(entry[0] for entry in counts),
        "peak_memory_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
        "loss": result.training_loss,
    }


def random_rows(plan: Plan, mode: str, steps: int) -> list[dict[str, list[int]]]:
    """Rows of random tokens, the loss on a completion of 24 to 120 of them (or a quarter of a short row).

    Their lengths are log-normal around a seventh of the plan's (300 of 2048 tokens: a few turns and the instructions),
    except in `full`. Packed batches take several rows each, so there are as many as fill them.
    """
    source = random.Random(0)
    rows: list[dict[str, list[int]]] = []
    slots = 0
    batch = plan.padded_rows if mode == "padded" else plan.full_rows
    while len(rows) < batch * steps or (mode == "packed" and slots < plan.full_rows * plan.length * steps * 1.2):
        length = plan.length if mode == "full" else round(plan.length / 7 * source.lognormvariate(0, 0.5))
        length = min(max(length, 16), plan.length)
        ids = [source.randrange(2, plan.shape["vocab_size"]) for _ in range(length)]
        trained = min(source.randint(24, 120), length // 4)
        rows.append({"input_ids": ids, "labels": [-100] * (length - trained) + ids[-trained:]})
        slots += length
    return rows


def tokenizer() -> Any:
    """A tokenizer that pads; the rows are token ids already."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1}, unk_token="<pad>"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")


def utilisation(plan: Plan, result: dict[str, Any], peak: float | None) -> dict[str, Any]:
    """MFU (the model's own operations), the same with the recomputation that checkpointing adds, and the memory that
    `training.estimate` would have told for the longest batch."""
    config = {**plan.shape, "model_type": "qwen3"}
    lora: dict[str, Any] = {"lora_r": LORA_R, "targets": "all-linear"}
    estimate = training_memory(
        config,
        quantization="nf4-double",
        dtype=plan.dtype,
        batch_size=1,
        length=result["longest_batch_slots"],
        gradient_checkpointing=True,
        **lora,
    )
    shares: dict[str, float | None] = {"mfu": None, "mfu_with_recomputation": None}
    for key, checkpointing in (("mfu", False), ("mfu_with_recomputation", True)):
        if peak is not None:
            flops = flops_per_token(
                config,
                length=round(result["row_tokens"]),
                gradient_checkpointing=checkpointing,
                loss_share=result["loss_share"],
                **lora,
            )
            shares[key] = mfu(result["tokens_per_s"], flops, peak)
    return {**shares, "estimated_memory_bytes": estimate["total"]}


def record_figures(report: dict[str, Any], measured: dict[str, dict[str, Any]]) -> None:
    from eval.results import record

    for mode, result in measured.items():
        for figure in ("tokens_per_s", "peak_memory_bytes", "mfu", "mfu_with_recomputation"):
            if result[figure] is not None:
                record(
                    f"gpu.qlora_8b.{mode}.{figure}",
                    result[figure],
                    n=None if figure == "peak_memory_bytes" else result["steps"],
                    command="python tests/gpu/check.py --record",
                    data="random tokens, lengths of extraction rows",
                    model="random weights of Qwen3-8B's shape, NF4 with double quantisation, LoRA r 32, all linear layers",
                    note=f"{result['attention']}, computing in {', '.join(report['compute_dtypes'])}",
                    path=CHECKOUT / "docs/results.json",
                )


if __name__ == "__main__":
    sys.exit(main())
