"""Reloads an exported folder in a process of its own and says what it finds there: one half of the export's proof.

    python -P serve/reload.py FOLDER QUESTIONS.json ANSWERS_FOLDER

Run as a file, from another working directory and without a model hub, it imports transformers and nothing of this
project, so what it can do, every service can. `serve.verify` writes the questions and compares the answers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def prompt_ids(tokenizer: Any, messages: Sequence[Mapping[str, str]], kwargs: Mapping[str, Any]) -> list[int]:
    """Token ids of a chat request's prompt, as a server renders it."""
    ids: list[int] = tokenizer.apply_chat_template(
        list(messages), add_generation_prompt=True, tokenize=True, return_dict=True, **kwargs
    )["input_ids"]
    return ids


def completion_logits(model: Any, prompt: Sequence[int], completion: Sequence[int]) -> Any:
    """Logits (completion tokens, vocabulary), fp32 on the CPU: row i is what predicts completion token i."""
    import torch

    ids = torch.tensor([[*prompt, *completion[:-1]]], device=next(model.parameters()).device)
    with torch.inference_mode():
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), logits_to_keep=len(completion)).logits
    return logits[0].float().cpu().contiguous()


def ready(model: Any, dtype: str, device: str) -> Any:
    """The model on its device, for inference. In float64 all of it is: rotary buffers and adapters load as float32."""
    model = model.to(device).eval()
    return model.double() if dtype == "float64" else model


def load(folder: str | Path, dtype: str) -> tuple[Any, dict[str, list[str]]]:
    """The model of `architectures[0]` and what did not fit while loading: {"missing": [...], "unexpected": [...], …}.

    Weights that the class ties to others are not missed; those that it ignores by rule (multi-token prediction heads)
    are not unexpected.
    """
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    cls = getattr(transformers, config.architectures[0])
    model, info = cls.from_pretrained(
        folder, dtype=getattr(torch, dtype), output_loading_info=True, local_files_only=True
    )
    return model, {name.removesuffix("_keys"): sorted(map(str, found)) for name, found in info.items() if found}


def main(folder: str, questions_file: str, answers: Path) -> None:
    from safetensors.torch import save_file
    from transformers import AutoTokenizer

    questions = json.loads(Path(questions_file).read_text("utf-8"))
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    found: dict[str, Any] = {
        "plain": [prompt_ids(tokenizer, messages, {}) for messages in questions["messages"]],
        "explicit": [prompt_ids(tokenizer, messages, questions["kwargs"]) for messages in questions["messages"]],
    }
    model, found["faults"] = load(folder, questions["dtype"])
    model = ready(model, questions["dtype"], questions["device"])
    for place, completion in enumerate(questions["completions"]):
        logits = completion_logits(model, found["plain"][place], completion)
        save_file({"logits": logits}, answers / f"{place}.safetensors")
    found["greedy"] = model.generation_config.do_sample is False
    (answers / "found.json").write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
