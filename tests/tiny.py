"""Tiny chat models with random weights: real architectures, a real BPE tokenizer, real chat templates.

They load and train in seconds, and vLLM serves them too (`head_dim` 32 is the smallest that its CPU kernels take).
Their folders look like the ones people download: ChatML special tokens with an end of turn that differs from the
padding token, a chat template, and a generation config that samples, as Qwen3's does.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, Literal

Architecture = Literal["qwen3", "llama", "qwen3_5"]

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
THINK_TOKENS = ("<think>", "</think>")
CHATML_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_TEMPLATES = {"qwen3": "qwen3", "llama": "chatml", "qwen3_5": "qwen3_5_think"}
_TEXT = """
system user assistant Extract (subject, relation, object) triplets as JSON.
Extract triplets from the following dialogue: You are an expert in knowledge graph construction.
The subject is the speaker's label or the name of the person or thing spoken of.
Mia: I finally adopted a cat, Pixel. Tom: That is great, I have two dogs and a brother in Lisbon. Ana: I love jazz.
[{"subject":"Mia","relation":"have_pet","object":"cat"},{"subject":"Tom","relation":"have_pet","object":"dogs"}]
[{"subject":"Ana","relation":"favorite_music","object":"jazz"}] [{"subject": "Tom", "relation": "has_profession",
"object": "nurse"}, {"subject": "Speaker A", "relation": "live_in_general", "object": "Lisbon"}] [] her his their my we
"""


def chat_template(name: str) -> str:
    """A chat template: `chatml` (no thinking), or one that ships with trl: `qwen3`, `qwen3_5_think`, `llama3`, …"""
    if name == "chatml":
        return CHATML_TEMPLATE
    spec = importlib.util.find_spec("trl")
    assert spec is not None and spec.submodule_search_locations
    return (Path(next(iter(spec.submodule_search_locations))) / "chat_templates" / f"{name}.jinja").read_text("utf-8")


def make_tiny_tokenizer(template: str = "qwen3", vocab_size: int = 512) -> Any:
    """A byte-level BPE tokenizer, trained on a few lines, for any text; eos `<|im_end|>`, padding `<|endoftext|>`."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(THINK_TOKENS),
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(_TEXT.splitlines(), trainer)
    thinking = [
        AddedToken(token, special=False, normalized=False) for token in THINK_TOKENS
    ]  # no specials, as in Qwen3
    backend.add_tokens(thinking)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=2048,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = chat_template(template)
    return tokenizer


def make_tiny_chat_model(
    folder: Path, architecture: Architecture = "qwen3", *, template: str | None = None, seed: int = 0, tied: bool = True
) -> Path:
    """Writes a two-layer model of `architecture`, its tokenizer and a sampling generation config into `folder`.

    The weights are wide enough (std 0.2) that greedy decoding has clear winners and the same text on every machine.
    """
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig

    tokenizer = make_tiny_tokenizer(template or _TEMPLATES[architecture])
    config = _config(architecture, len(tokenizer), tied)
    config.eos_token_id, config.pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.generation_config = GenerationConfig(
        do_sample=True,
        temperature=0.6,
        top_k=20,
        top_p=0.95,
        eos_token_id=[tokenizer.eos_token_id, tokenizer.pad_token_id],
        pad_token_id=tokenizer.pad_token_id,
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _config(architecture: Architecture, vocab_size: int, tied: bool) -> Any:
    import transformers

    shape: dict[str, Any] = {
        "vocab_size": vocab_size,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "max_position_embeddings": 2048,
        "initializer_range": 0.2,
        "tie_word_embeddings": tied,
    }
    if architecture == "qwen3":
        return transformers.Qwen3Config(**shape)
    if architecture == "llama":
        return transformers.LlamaConfig(**shape)
    return transformers.Qwen3_5TextConfig(
        **shape,
        layer_types=["linear_attention", "full_attention"],
        linear_num_key_heads=1,
        linear_num_value_heads=2,
        linear_key_head_dim=32,
        linear_value_head_dim=32,
    )
