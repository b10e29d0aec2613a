"""What a training run will need: parameters, bytes of GPU memory, floating-point operations. Pure arithmetic, no torch.

Everything is computed from a model's `config.json` (Qwen3, Qwen2 and Llama shapes), so a dry run can say "37 GB" before a
model is loaded. Parameter counts are exact. Memory is an estimate: allocator waste, CUDA context (about 0.5 GB) and the
optimiser's temporaries are not in it; activations follow the tensors that transformers' modules save for the backward
pass with an attention kernel that keeps no score matrix (sdpa, FlashAttention).

Sources: NF4 block sizes, Dettmers et al., QLoRA (arXiv 2305.14314), section 3; activations counted in the way of
Korthikanti et al. (arXiv 2205.05198), for gated MLPs and grouped-query attention; FLOPs and utilisation, Chowdhery et al.,
PaLM (arXiv 2204.02311), appendix B.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Quantization = Literal["nf4", "nf4-double"]

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
NF4_BLOCK = 64  # weights that share one absmax (bitsandbytes' default)
NF4_NESTED_BLOCK = 256  # absmax values that share one fp32 scale under double quantisation
LOSS_TILE = (4096, 32768)  # tokens x vocabulary entries that TRL's fused LM head holds at a time
_READS = {  # linear layers by the tensor they read; o_proj reads the attention's result, which is kept anyway
    **dict.fromkeys(("q_proj", "k_proj", "v_proj"), "attention input"),
    **dict.fromkeys(("gate_proj", "up_proj"), "MLP input"),
    "down_proj": "MLP product",
}
_FAMILIES = ("qwen3", "qwen2", "llama")


class EstimateError(ValueError):
    """A model or setting that these formulae do not cover; says which."""


@dataclass(frozen=True)
class Shape:
    """The sizes that the formulae need. `linear` maps a linear layer of one decoder block to (inputs, outputs, bias)."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool
    qk_norm: bool
    linear: dict[str, tuple[int, int, bool]]


@dataclass(frozen=True)
class Parameters:
    """Parameter counts. embedding: input table; head: lm_head (0 where it is tied to the embedding); linear: weights of
    all linear layers in the decoder blocks; rest: norms and biases."""

    embedding: int
    head: int
    linear: int
    rest: int

    @property
    def total(self) -> int:
        return self.embedding + self.head + self.linear + self.rest


def shape(config: Mapping[str, Any]) -> Shape:
    """The shape in a `config.json`. Raises EstimateError for another architecture or a missing key."""
    family = config.get("model_type")
    if family not in _FAMILIES:
        raise EstimateError(f"`model_type` is {family!r}: estimates cover {', '.join(_FAMILIES)}.")
    for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"):
        if not isinstance(config.get(key), int):
            raise EstimateError(f"`{key}` is {config.get(key)!r} in the model's config: a whole number is due.")
    hidden, heads, intermediate = config["hidden_size"], config["num_attention_heads"], config["intermediate_size"]
    kv_heads = config.get("num_key_value_heads") or heads
    head_dim = config.get("head_dim") or (128 if family == "qwen3" else hidden // heads)
    attention_bias = bool(config.get("attention_bias", False))
    qkv_bias, mlp_bias = family == "qwen2" or attention_bias, family == "llama" and bool(config.get("mlp_bias", False))
    return Shape(
        layers=config["num_hidden_layers"],
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=intermediate,
        vocabulary=config["vocab_size"],
        tied=bool(config.get("tie_word_embeddings", family == "qwen2")),
        qk_norm=family == "qwen3",
        linear={
            "q_proj": (hidden, heads * head_dim, qkv_bias),
            "k_proj": (hidden, kv_heads * head_dim, qkv_bias),
            "v_proj": (hidden, kv_heads * head_dim, qkv_bias),
            "o_proj": (heads * head_dim, hidden, family != "qwen2" and attention_bias),
            "gate_proj": (hidden, intermediate, mlp_bias),
            "up_proj": (hidden, intermediate, mlp_bias),
            "down_proj": (intermediate, hidden, mlp_bias),
        },
    )


def parameter_count(config: Mapping[str, Any]) -> Parameters:
    """Parameters of the model in a `config.json`, exact. Raises EstimateError for another architecture."""
    s = shape(config)
    weights = sum(inputs * outputs for inputs, outputs, _ in s.linear.values())
    biases = sum(outputs for _, outputs, bias in s.linear.values() if bias)
    norms = 2 * s.hidden + (2 * s.head_dim if s.qk_norm else 0)
    table = s.vocabulary * s.hidden
    return Parameters(
        embedding=table,
        head=0 if s.tied else table,
        linear=s.layers * weights,
        rest=s.layers * (biases + norms) + s.hidden,
    )


def lora_parameters(config: Mapping[str, Any], r: int, targets: str | Sequence[str]) -> int:
    """Trainable parameters of a LoRA adapter: r x (inputs + outputs) for each target layer.

    targets: "all-linear" (PEFT: every linear layer but the head) or names such as ["q_proj", "v_proj"]. Raises
    EstimateError for a name that the decoder blocks do not have.
    """
    s = shape(config)
    return sum(s.layers * r * (s.linear[name][0] + s.linear[name][1]) for name in _targets(s, targets))


def _targets(s: Shape, targets: str | Sequence[str]) -> list[str]:
    names = list(s.linear) if targets == "all-linear" else [targets] if isinstance(targets, str) else list(targets)
    for name in names:
        if name not in s.linear:
            raise EstimateError(
                f"`lora_target_modules` holds {name!r}: estimates cover all-linear or {', '.join(s.linear)}."
            )
    return names


def training_memory(
    config: Mapping[str, Any],
    *,
    quantization: Quantization | None,
    dtype: str,
    lora_r: int,
    targets: str | Sequence[str],
    batch_size: int,
    length: int,
    gradient_checkpointing: bool,
    full: bool = False,
    lora_dropout: float = 0.0,
) -> dict[str, int]:
    """Bytes of device memory at the peak of one training step of TRL's SFTTrainer with AdamW, by part.

    quantization: None, "nf4", or "nf4-double" (double quantisation); dtype: of the weights that are not quantised and of
    the computation; batch_size: rows of one device; length: tokens of a row, padding included; full: train every weight
    (lora_r and targets are then unused). Raises EstimateError for settings that do not fit together.

    weights      quantised linear layers: 1/2 byte a weight, and one absmax for 64 weights, in fp32 or, double quantised,
                 in 8 bits with one fp32 scale for 256 of them: 4.5 or 4.127 bits a weight. Everything else in `dtype`.
    adapter      LoRA matrices: TRL keeps them in bf16 over a quantised base, PEFT in fp32 over another one.
    gradients    one value for each trained weight, in the dtype of that weight.
    optimiser    AdamW: two values for each trained weight, in the dtype of that weight.
    activations  with checkpointing: the input of each block, and what one block saves for its backward pass; without:
                 what every block saves (`_saved_by_block`). On top, what is in flight while one MLP is differentiated.
    logits       TRL projects only one tile of 4096 tokens x 32768 entries at a time, and keeps the hidden states'
                 gradient in fp32. When the head is trained, so is its fp32 gradient. Longer completions do not add to it.
    """
    if dtype not in BYTES:
        raise EstimateError(f"`dtype` is {dtype!r}: write one of {', '.join(BYTES)}.")
    if full and quantization:
        raise EstimateError("a quantised base cannot be trained in full: use LoRA, or leave the base unquantised.")
    s, count, size = shape(config), parameter_count(config), BYTES[dtype]
    tokens = batch_size * length

    if quantization is None:
        weights = count.total * size
    else:
        absmax = -(-count.linear // NF4_BLOCK)
        scales = absmax + 4 * -(-absmax // NF4_NESTED_BLOCK) if quantization == "nf4-double" else 4 * absmax
        weights = -(-count.linear // 2) + scales + (count.total - count.linear) * size

    adapter_size = 2 if quantization else 4
    adapter_count = 0 if full else lora_parameters(config, lora_r, targets)
    adapter = adapter_count * adapter_size
    trained = count.total * size if full else adapter

    own_inputs = not full and (lora_dropout > 0 or adapter_size != size)
    block = _saved_by_block(s, size, [] if full else _targets(s, targets), lora_r, own_inputs, lora_dropout > 0, full)
    in_flight = s.intermediate * (2 * size + (4 if own_inputs else 0)) + s.hidden * (4 + size)
    per_token = in_flight + (s.layers * s.hidden * size + block if gradient_checkpointing else s.layers * block)
    unpacked = max(inputs * outputs for inputs, outputs, _ in s.linear.values()) * size if quantization else 0

    tile = min(tokens, LOSS_TILE[0]) * LOSS_TILE[1] * size
    head_gradient = s.vocabulary * s.hidden * 4 if full else 0
    logits = tile + tokens * s.hidden * (4 + size) + head_gradient

    parts = {
        "weights": weights,
        "adapter": adapter,
        "gradients": trained,
        "optimiser": 2 * trained,
        "activations": tokens * per_token + unpacked,
        "logits": logits,
    }
    return {**parts, "total": sum(parts.values())}


def _saved_by_block(
    s: Shape, size: int, targets: Sequence[str], r: int, own_inputs: bool, dropout: bool, full: bool
) -> int:
    """Bytes a token that one decoder block saves for its backward pass; `size` is that of the computation's dtype.

    Adapters on q, k and v read the same tensor, as do those on gate and up. Each keeps a copy of its own where dropout
    makes one, or the conversion between the base's dtype and the adapter's (`own_inputs`).
    """
    queries, keys = s.heads * s.head_dim, s.kv_heads * s.head_dim
    norms = 2 * 4 * s.hidden + (4 * (queries + keys) if s.qk_norm else 0)  # RMSNorm computes in fp32
    scales = 4 * (2 + (s.heads + s.kv_heads if s.qk_norm else 0) + s.heads)  # of the norms, and of the softmax
    attention = size * (2 * queries + 2 * keys)  # q, k, v and the result
    mlp = size * 3 * s.intermediate  # gate, its SiLU, up
    saved = norms + scales + attention + mlp
    if full:  # what the trained weights multiply: of the norms, then of the linear layers (o_proj's is there already)
        normed = 2 * s.hidden + (queries + keys if s.qk_norm else 0)
        return saved + size * (normed + 2 * s.hidden + s.intermediate)
    inputs = {name: s.linear[name][0] for name in targets}
    if own_inputs:
        adapters = sum(inputs.values()) * (size + (1 if dropout else 0))
    else:
        shared = {_READS[name]: inputs[name] for name in targets if name in _READS}
        adapters = size * sum(shared.values())
    return saved + adapters + size * r * len(targets)


def flops_per_token(
    config: Mapping[str, Any],
    *,
    length: int,
    lora_r: int,
    targets: str | Sequence[str],
    gradient_checkpointing: bool,
    full: bool = False,
    loss_share: float = 1.0,
) -> int:
    """Floating-point operations that training on one token takes (a multiply-add is two).

    For N weights of linear layers: 2N forward, 2N for the gradients of the activations, 2N more for the gradients of the
    weights where they are trained (all of them with `full`, else the adapter's), and 2N again where checkpointing computes
    the forward pass twice. A frozen Qwen3-8B costs 6N with checkpointing, 46 GFLOP a token. Attention over `length`
    tokens is causal: 2 x length x heads x head_dim a layer forward, twice that backward. The head counts for the share of
    tokens with a loss, always with a second forward pass, since TRL's fused head computes its tiles anew.
    """
    s, count = shape(config), parameter_count(config)
    again = 2 if gradient_checkpointing else 0
    blocks = count.linear * (4 + again + (2 if full else 0))
    adapter = 0 if full else lora_parameters(config, lora_r, targets) * (6 + again)
    attention = s.layers * length * s.heads * s.head_dim * (6 + again)
    head = loss_share * s.vocabulary * s.hidden * (6 + (2 if full else 0))
    return int(blocks + adapter + attention + head)


def mfu(tokens_per_s: float, flops_per_token: float, peak_flops: float) -> float:
    """The share of the hardware's peak that a run reaches: 0.4 is 40%. peak_flops: dense, of the dtype computed in.

    PaLM's model FLOPs utilisation leaves the recomputation out: call `flops_per_token` with
    `gradient_checkpointing=False` for it. With the recomputation it is what PaLM calls hardware FLOPs utilisation.
    """
    return tokens_per_s * flops_per_token / peak_flops
