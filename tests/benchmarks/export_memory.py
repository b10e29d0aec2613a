"""Peak memory of our merge beside PEFT's merge_and_unload + save_pretrained, on the same model and adapter.

    python tests/benchmarks/export_memory.py [--record] [--scratch FOLDER]

The model is of Qwen3's shape with random bfloat16 weights, about 2B parameters (4 GB on disk, deleted afterwards), the
adapter is rank 32 on all linear layers. Each way runs in a process of its own. Two figures are taken of each: the
largest anonymous memory (RssAnon, read every 10 ms; file pages that the kernel can drop at will are not in it), and the
largest resident set (VmHWM, which counts them; ru_maxrss would count this parent's memory at the fork too).
`export.peak_memory_ratio` is the ratio of the first; the second is printed beside it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

SHAPE: dict[str, Any] = {
    "vocab_size": 151936,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "tie_word_embeddings": False,
}
RANK = 32
NAME = "export.peak_memory_ratio"


def make_model(folder: Path, shape: dict[str, Any]) -> int:
    """Writes the random model, a shard for each layer, so that making it takes little memory. Returns its
    parameters."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, Qwen3Config

    config = Qwen3Config(**shape, architectures=["Qwen3ForCausalLM"], dtype="bfloat16")
    config.save_pretrained(folder)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    groups: dict[str, dict[str, Any]] = {}
    for name, tensor in model.state_dict().items():
        place = name.split(".")
        groups.setdefault(f"layer-{place[2]}" if place[1] == "layers" else place[-2], {})[name] = tensor.shape
    weight_map, parameters = {}, 0
    generator = torch.Generator().manual_seed(0)
    for group, tensors in groups.items():
        file = f"model-{group}.safetensors"
        shard = {}
        for name, size in tensors.items():
            shard[name] = torch.empty(size, dtype=torch.bfloat16).normal_(std=0.02, generator=generator)
            weight_map[name] = file
            parameters += shard[name].numel()
        save_file(shard, folder / file, metadata={"format": "pt"})
    index = {"metadata": {"total_size": 2 * parameters}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return parameters


def make_adapter(folder: Path, base: Path, shape: dict[str, Any]) -> None:
    """Writes an adapter of rank 32 on all linear layers with random factors, as PEFT saves it."""
    import torch
    from peft import LoraConfig
    from safetensors.torch import save_file

    hidden, inner = shape["hidden_size"], shape["intermediate_size"]
    queries = shape["num_attention_heads"] * shape["head_dim"]
    keys = shape["num_key_value_heads"] * shape["head_dim"]
    sizes = {
        "self_attn.q_proj": (hidden, queries), "self_attn.k_proj": (hidden, keys), "self_attn.v_proj": (hidden, keys),
        "self_attn.o_proj": (queries, hidden), "mlp.gate_proj": (hidden, inner), "mlp.up_proj": (hidden, inner),
        "mlp.down_proj": (inner, hidden),
    }  # fmt: skip
    targets = [name.split(".")[1] for name in sizes]
    LoraConfig(
        r=RANK, lora_alpha=RANK, target_modules=targets, task_type="CAUSAL_LM", base_model_name_or_path=str(base)
    ).save_pretrained(folder)
    generator = torch.Generator().manual_seed(1)
    factors = {}
    for layer in range(shape["num_hidden_layers"]):
        for name, (wide, high) in sizes.items():
            key = f"base_model.model.model.layers.{layer}.{name}"
            factors[f"{key}.lora_A.weight"] = torch.empty(RANK, wide).normal_(std=0.02, generator=generator)
            factors[f"{key}.lora_B.weight"] = torch.empty(high, RANK).normal_(std=0.02, generator=generator)
    save_file(factors, folder / "adapter_model.safetensors", metadata={"format": "pt"})


def merge_ours(base: Path, adapter: Path, out: Path) -> None:
    from serve.merge import merge, read_adapter

    merge(base, read_adapter(adapter), out)


def merge_peft(base: Path, adapter: Path, out: Path) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16)
    merged = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    merged.save_pretrained(out, max_shard_size="1GB")


def measure(way: str, base: Path, adapter: Path, out: Path) -> dict[str, float]:
    """Runs one way in a process of its own. Returns its peaks in bytes and its seconds. Linux only."""
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), "--way", way, str(base), str(adapter), str(out)]
    )
    peak = {"RssAnon": 0, "VmHWM": 0}
    while process.poll() is None:
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        except OSError:  # it has just ended
            continue
        for line in lines:
            name, _, size = line.partition(":")
            if name in peak:
                peak[name] = max(peak[name], int(size.split()[0]) * 1024)
        time.sleep(0.01)
    if process.returncode:
        raise SystemExit(f"merging with {way} failed (status {process.returncode})")
    return {"anonymous": peak["RssAnon"], "resident": peak["VmHWM"], "seconds": time.monotonic() - started}


def largest_difference(one: Path, other: Path) -> float:
    """Largest absolute difference between two sharded checkpoints of the same names."""
    from serve.merge import read_checkpoint, read_tensor

    ours, theirs = read_checkpoint(one), read_checkpoint(other)
    if set(ours) != set(theirs):
        raise SystemExit(f"the two merges wrote other tensors: {sorted(set(ours) ^ set(theirs))[:3]}")
    return max(
        float((read_tensor(ours[name], row, 4096).float() - read_tensor(theirs[name], row, 4096).float()).abs().max())
        for name in ours
        for row in range(0, ours[name].shape[0], 4096)
    )


def benchmark(scratch: Path | None = None, shape: dict[str, Any] = SHAPE) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="export-memory-", dir=scratch))
    try:
        base, adapter = folder / "base", folder / "adapter"
        base.mkdir()
        parameters = make_model(base, shape)
        make_adapter(adapter, base, shape)
        result: dict[str, Any] = {"parameters": parameters, "bytes": 2 * parameters}
        for way in ("ours", "peft"):
            result[way] = measure(way, base, adapter, folder / way)
            print(
                f"{way}: {result[way]['anonymous'] / 1e9:.2f} GB anonymous, {result[way]['resident'] / 1e9:.2f} GB resident, "
                f"{result[way]['seconds']:.0f} s, for a model of {result['bytes'] / 1e9:.2f} GB"
            )
        result["largest_weight_difference"] = largest_difference(folder / "ours", folder / "peft")
        result["ratio"] = result["ours"]["anonymous"] / result["peft"]["anonymous"]
        result["ratio_resident"] = result["ours"]["resident"] / result["peft"]["resident"]
        return result
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the ratio into docs/results.json")
    parser.add_argument("--scratch", type=Path, help="where to put about 13 GB for the time of the run")
    parser.add_argument("--way", nargs=4, metavar=("WAY", "BASE", "ADAPTER", "OUT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        way, *folders = args.way
        {"ours": merge_ours, "peft": merge_peft}[way](*map(Path, folders))
        return
    result = benchmark(args.scratch)
    print(f"{NAME} = {result['ratio']:.4f} (anonymous memory; {result['ratio_resident']:.4f} of the resident set)")
    print(f"largest difference between a weight of the two: {result['largest_weight_difference']:.2e}")
    if args.record:
        from eval.results import record

        record(
            NAME,
            result["ratio"],
            command="python tests/benchmarks/export_memory.py --record",
            data=f"random adapter of rank {RANK} on all linear layers",
            model=f"random weights of Qwen3's shape, {result['parameters'] / 1e9:.2f}B parameters, bfloat16",
            note=(
                f"largest anonymous memory: {result['ours']['anonymous'] / 1e9:.2f} GB against "
                f"{result['peft']['anonymous'] / 1e9:.2f} GB; largest resident set: {result['ours']['resident'] / 1e9:.2f} GB "
                f"against {result['peft']['resident'] / 1e9:.2f} GB"
            ),
        )


if __name__ == "__main__":
    main()
