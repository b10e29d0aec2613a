from __future__ import annotations

import weakref
from typing import Any

import pytest

from training.estimate import (
    EstimateError,
    flops_per_token,
    lora_parameters,
    mfu,
    parameter_count,
    shape,
    training_memory,
)

# What stands in the models' published config.json.
QWEN3_8B: dict[str, Any] = {
    "model_type": "qwen3",
    "hidden_size": 4096,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 12288,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
    "attention_bias": False,
}
QWEN3_06B: dict[str, Any] = {
    **QWEN3_8B,
    "hidden_size": 1024,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "intermediate_size": 3072,
    "tie_word_embeddings": True,
}
LLAMA_8B: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
SMOLLM2_135M: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 576,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "intermediate_size": 1536,
    "vocab_size": 49152,
    "tie_word_embeddings": True,
}
QWEN25_05B: dict[str, Any] = {
    "model_type": "qwen2",
    "hidden_size": 896,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "intermediate_size": 4864,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}
BIASED_LLAMA: dict[str, Any] = {**SMOLLM2_135M, "attention_bias": True, "mlp_bias": True}
SHAPES = {
    "Qwen3-8B": QWEN3_8B,
    "Qwen3-0.6B": QWEN3_06B,
    "Llama-3.1-8B": LLAMA_8B,
    "SmolLM2-135M": SMOLLM2_135M,
    "Qwen2.5-0.5B": QWEN25_05B,
    "Llama with biases": BIASED_LLAMA,
}
QLORA: dict[str, Any] = {
    "quantization": "nf4-double",
    "dtype": "bfloat16",
    "lora_r": 32,
    "targets": "all-linear",
    "batch_size": 4,
    "length": 1024,
    "gradient_checkpointing": True,
}
TINY: dict[str, Any] = {
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 768,
    "vocab_size": 512,
    "tie_word_embeddings": False,
}


def built(config: dict[str, Any], dtype: str = "float32", device: str = "cpu") -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    options = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device(device):
        return AutoModelForCausalLM.from_config(
            AutoConfig.for_model(config["model_type"], **options), dtype=getattr(torch, dtype)
        )


@pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
def test_parameters_are_counted_exactly_as_transformers_builds_them(config: dict[str, Any]) -> None:
    model = built(config, device="meta")
    count = parameter_count(config)
    assert count.total == model.num_parameters()
    assert count.total - count.head - count.embedding == model.model.num_parameters() - count.embedding


def test_the_published_sizes_come_out() -> None:
    assert parameter_count(QWEN3_8B).total == 8_190_735_360
    assert parameter_count(LLAMA_8B).total == 8_030_261_248
    assert parameter_count(SMOLLM2_135M).total == 134_515_008


@pytest.mark.parametrize("targets", ["all-linear", ["q_proj", "v_proj"], ["down_proj"]])
def test_adapter_parameters_are_counted_exactly_as_peft_adds_them(targets: Any) -> None:
    from peft import LoraConfig, get_peft_model

    config = {"model_type": "qwen3", "num_hidden_layers": 2, **TINY}
    model = get_peft_model(
        built(config, device="meta"), LoraConfig(r=4, target_modules=targets), low_cpu_mem_usage=True
    )
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert lora_parameters(config, 4, targets) == trained


def test_nf4_takes_the_bytes_that_bitsandbytes_takes() -> None:
    import torch
    from bitsandbytes.nn import Params4bit

    config = {"model_type": "llama", "num_hidden_layers": 1, **TINY}
    for quantization in ("nf4", "nf4-double"):
        held = 0
        for inputs, outputs, _ in shape(config).linear.values():
            weight = Params4bit(
                torch.randn(outputs, inputs),
                requires_grad=False,
                quant_type="nf4",
                compress_statistics=quantization == "nf4-double",
            ).to("cpu")
            state = weight.quant_state
            tensors = [weight, state.absmax, *([state.state2.absmax] if state.nested else [])]
            held += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        count = parameter_count(config)
        unquantised = (count.total - count.linear) * 4
        estimate = training_memory(config, **{**QLORA, "quantization": quantization, "dtype": "float32"})
        assert estimate["weights"] - unquantised == pytest.approx(held, rel=0.001)


def peak_of_a_step(config: dict[str, Any], dtype: str, full: bool, checkpointing: bool, tokens: int) -> int:
    """Most bytes of tensors that a forward and a backward pass hold at once, without parameters, their gradients and head."""
    import torch
    from peft import LoraConfig, get_peft_model
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Peak(TorchDispatchMode):
        def __init__(self, known: set[int]) -> None:
            super().__init__()
            self.known, self.now, self.most = known, 0, 0

        def freed(self, key: int, size: int) -> None:
            self.known.discard(key)
            self.now -= size

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            for tensor in tree_leaves(result):
                if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata not in self.known:
                    storage = tensor.untyped_storage()
                    self.known.add(storage._cdata)
                    self.now += storage.nbytes()
                    self.most = max(self.most, self.now)
                    weakref.finalize(storage, self.freed, storage._cdata, storage.nbytes())
            return result

    model = built(config, dtype).train()
    if not full:
        model = get_peft_model(model, LoraConfig(r=8, target_modules="all-linear"))
        model.enable_input_require_grads()
    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    decoder = (model if full else model.get_base_model()).model

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
            ids = torch.zeros(1, tokens, dtype=torch.long)
            decoder(input_ids=ids, use_cache=False).last_hidden_state.sum().backward()

    step()  # from here on the gradients are there
    kept = [*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters() if p.grad is not None)]
    peak = Peak({tensor.untyped_storage()._cdata for tensor in kept})
    with peak:
        step()
    return peak.most


@pytest.mark.parametrize("family", ["qwen3", "llama"])
@pytest.mark.parametrize("checkpointing", [True, False])
@pytest.mark.parametrize(
    ("dtype", "full"), [("float32", False), ("bfloat16", False), ("float32", True), ("bfloat16", True)]
)
def test_activations_are_estimated_close_to_what_a_step_holds(
    family: str, checkpointing: bool, dtype: str, full: bool
) -> None:
    config = {"model_type": family, "num_hidden_layers": 4, **TINY}
    tokens = 512
    estimate = training_memory(
        config,
        quantization=None,
        dtype=dtype,
        lora_r=8,
        targets="all-linear",
        batch_size=1,
        length=tokens,
        gradient_checkpointing=checkpointing,
        full=full,
    )
    measured = peak_of_a_step(config, dtype, full, checkpointing, tokens)
    assert estimate["activations"] == pytest.approx(measured, rel=0.15)


def test_the_parts_add_up_and_move_with_the_settings_they_depend_on() -> None:
    base = training_memory(QWEN3_8B, **QLORA)
    assert base["total"] == sum(size for part, size in base.items() if part != "total")
    twice = training_memory(QWEN3_8B, **{**QLORA, "length": 2048})
    changed = {part for part in base if base[part] != twice[part]}
    assert changed == {"activations", "logits", "total"} and twice["activations"] < 2 * base["activations"]
    stored = training_memory(QWEN3_8B, **{**QLORA, "gradient_checkpointing": False})
    assert stored["activations"] > 5 * base["activations"]
    assert training_memory(QWEN3_8B, **QLORA, lora_dropout=0.05)["activations"] > base["activations"]
    bf16 = training_memory(QWEN3_8B, **{**QLORA, "quantization": None})
    assert bf16["weights"] == 2 * parameter_count(QWEN3_8B).total
    full = training_memory(QWEN3_8B, **{**QLORA, "quantization": None}, full=True)
    assert full["optimiser"] == 2 * full["gradients"] == 4 * parameter_count(QWEN3_8B).total and full["adapter"] == 0


def test_the_8b_qlora_base_is_under_seven_gigabytes() -> None:
    weights = training_memory(QWEN3_8B, **QLORA)["weights"]
    count = parameter_count(QWEN3_8B)
    assert weights == pytest.approx(count.linear * 4.127 / 8 + (count.total - count.linear) * 2, rel=0.001)
    assert weights < 7e9


def test_a_frozen_8b_base_with_checkpointing_costs_about_46_gigaflop_a_token() -> None:
    flops = flops_per_token(QWEN3_8B, length=1, lora_r=32, targets="all-linear", gradient_checkpointing=True)
    count = parameter_count(QWEN3_8B)
    adapter = lora_parameters(QWEN3_8B, 32, "all-linear")
    assert flops == pytest.approx(6 * (count.linear + count.head) + 8 * adapter, rel=0.001)
    assert flops == pytest.approx(46e9, rel=0.02)


@pytest.mark.parametrize(("full", "loss_share"), [(True, 1.0), (True, 0.25), (False, 1.0)])
def test_flops_agree_with_those_that_torch_counts(full: bool, loss_share: float) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from torch.utils.flop_counter import FlopCounterMode

    config = {"model_type": "llama", "num_hidden_layers": 3, **TINY}
    length = 256
    model = built(config).train()
    model.set_attn_implementation("eager")  # torch's counter does not know the fused kernel of the CPU
    if not full:
        model = get_peft_model(model, LoraConfig(r=8, target_modules="all-linear"))
        model.enable_input_require_grads()
    base = model if full else model.get_base_model()
    with FlopCounterMode(display=False) as counter:
        hidden = base.model(input_ids=torch.zeros(1, length, dtype=torch.long), use_cache=False).last_hidden_state
        base.lm_head(hidden[:, : int(length * loss_share)]).sum().backward()
    table = config["vocab_size"] * config["hidden_size"]
    counted = counter.get_total_flops() / length + loss_share * 2 * table  # the tiles that TRL's head computes anew
    attention = 3 * length * config["num_attention_heads"] * config["head_dim"] * 6
    options = {"lora_r": 8, "targets": "all-linear", "full": full, "loss_share": loss_share}
    estimate = flops_per_token(config, length=length, gradient_checkpointing=False, **options)
    # eager attention computes the whole square of the scores, of which the causal mask hides one half
    assert estimate + attention == pytest.approx(counted, rel=0.005)
    again = flops_per_token(config, length=length, gradient_checkpointing=True, **options)
    assert again > estimate


def test_utilisation_is_the_share_of_the_peak() -> None:
    assert mfu(8000, 49e9, 989e12) == pytest.approx(0.396, abs=0.001)


@pytest.mark.parametrize(
    ("config", "changes", "said"),
    [
        ({**QWEN3_8B, "model_type": "qwen3_5"}, {}, "qwen3_5"),
        ({"model_type": "llama"}, {}, "hidden_size"),
        (QWEN3_8B, {"targets": ["q_proj", "wq"]}, "wq"),
        (QWEN3_8B, {"dtype": "bf16"}, "bf16"),
        (QWEN3_8B, {"full": True}, "quantised"),
    ],
)
def test_what_the_formulae_do_not_cover_is_refused_by_name(
    config: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(EstimateError, match=said):
        training_memory(config, **{**QLORA, **changes})
