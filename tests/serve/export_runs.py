"""Finished runs as training leaves them, made in a second: a tiny base, a PEFT adapter with random weights,
run.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from extractors import load_extractor
from extractors.rows import sha256, write_rows
from tests.tiny import make_tiny_chat_model

FACTS = [
    ("Mia", "have_pet", "cat", "I finally adopted a cat, Pixel."),
    ("Tom", "has_profession", "nurse", "I work nights as a nurse."),
    ("Ana", "favorite_music", "jazz", "I love jazz."),
]


def write_test_rows(folder: Path, count: int = 20) -> Path:
    rows = []
    for number in range(count):
        speaker, relation, thing, text = FACTS[number % len(FACTS)]
        rows.append(
            {
                "id": f"r{number}",
                "group": f"p{number}",
                "input": {"turns": [{"speaker": speaker, "text": f"{text} That was {number} years ago."}]},
                "gold": [{"subject": speaker, "relation": relation, "object": thing}],
            }
        )
    write_rows(folder / "test.jsonl", rows)
    return folder / "test.jsonl"


def make_base(folder: Path, architecture: Any = "qwen3", *, tied: bool = True, dtype: str = "float32") -> Path:
    """A tiny base; in bfloat16 it is stored so, in several shards, and made to expect the token that it reads: most
    tokens of a random model are near-ties, which any rounding decides anew."""
    make_tiny_chat_model(folder, architecture, tied=tied)
    if dtype != "float32":
        import torch
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
        with torch.no_grad():
            model.get_output_embeddings().weight.copy_(model.get_input_embeddings().weight)
            for name, parameter in model.named_parameters():
                if name.endswith(("o_proj.weight", "down_proj.weight")):
                    parameter *= 0.05
        (folder / "model.safetensors").unlink()
        model.save_pretrained(folder, max_shard_size="100KB")
    return folder


def trained_model(base: Path, dtype: str = "float32", **lora: Any) -> Any:
    """Base + adapter in memory, with random lora_B and perturbed modules_to_save, as training would leave them."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base, dtype=getattr(torch, dtype))
    settings = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "task_type": "CAUSAL_LM"} | lora
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = get_peft_model(model, LoraConfig(**settings))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name or "modules_to_save" in name:
                parameter += 0.05 * torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
    return model.eval()


def write_run(folder: Path, model: Any, base: Path, rows: Path, **changes: Any) -> Path:
    """The run folder of a trained model (adapter or whole). changes: keys of run.json to set."""
    from transformers import AutoTokenizer

    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(base).save_pretrained(folder)
    record: Mapping[str, Any] = {
        "status": "finished",
        "extractor": load_extractor("triplets", {"prompt": "compact"}).to_json(),
        "model": {"name": str(base), "path": str(base), "revision": None},
        "dtype": "float32",
        "quantization": None,
        "chat_template_kwargs": {"enable_thinking": False},
        "dataset": [{"path": str(rows), "split": "test", "sha256": sha256(rows), "rows": 20}],
        "seed": 0,
        "scores": {"f1": 0.5},
    }
    (folder / "run.json").write_text(json.dumps({**record, **changes}), "utf-8")
    return folder
