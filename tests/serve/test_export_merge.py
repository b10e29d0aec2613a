"""The merge: equal to PEFT's for what it supports, refused for what it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serve.merge import ExportError, merge, plan, read_adapter, read_checkpoint
from tests.serve.export_runs import make_base, trained_model


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[tuple[str, bool, str], Path] = {}

    def base(architecture: str, tied: bool, dtype: str = "float32") -> Path:
        key = (architecture, tied, dtype)
        if key not in made:
            made[key] = make_base(tmp_path_factory.mktemp("base"), architecture, tied=tied, dtype=dtype)
        return made[key]

    return base


def logits(model: Any) -> Any:
    """In float64, so that only the weights can differ, not the order of summation."""
    import torch

    ids = torch.arange(5, 45).reshape(2, 20)
    model.double()
    with torch.inference_mode():
        return model(input_ids=ids).logits


def merged_model(base: Path, adapter: Path, out: Path, **options: Any) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    result = merge(base, read_adapter(adapter), out, **options)
    config = AutoConfig.from_pretrained(base)
    if result.untied:
        config.tie_word_embeddings = False
    config.save_pretrained(out)
    return AutoModelForCausalLM.from_pretrained(out, dtype=result.dtype).eval()


EMBED, HEAD = "embed_tokens", "lm_head"
CASES: dict[str, tuple[str, bool, dict[str, Any]]] = {
    "qwen3 tied": ("qwen3", True, {}),
    "qwen3 untied": ("qwen3", False, {}),
    "llama tied": ("llama", True, {"target_modules": ["q_proj", "down_proj"]}),
    "llama untied": ("llama", False, {}),
    "qwen3.5": ("qwen3_5", True, {}),
    "rank-stabilised": ("llama", True, {"use_rslora": True}),
    "patterns": ("llama", True, {"rank_pattern": {"q_proj": 2}, "alpha_pattern": {"layers.1.mlp.up_proj": 32}}),
    "tied, lm_head trained": ("llama", True, {"modules_to_save": [HEAD]}),
    "tied, embedding trained": ("llama", True, {"modules_to_save": [EMBED]}),
    "tied, both trained apart": ("llama", True, {"modules_to_save": [EMBED, HEAD]}),
    "tied, both trained as one": ("llama", True, {"modules_to_save": [EMBED], "ensure_weight_tying": True}),
    "tied, LoRA on lm_head": ("llama", True, {"target_modules": ["q_proj", HEAD]}),
    "untied, LoRA on lm_head": ("llama", False, {"target_modules": ["q_proj", HEAD]}),
    "untied, both trained": ("llama", False, {"modules_to_save": [EMBED, HEAD]}),
    "norm trained": ("qwen3", True, {"modules_to_save": ["norm"]}),
}


@pytest.mark.parametrize("case", CASES)
def test_merged_model_gives_the_logits_of_base_plus_adapter(case: str, bases: Any, tmp_path: Path) -> None:
    architecture, tied, lora = CASES[case]
    base = bases(architecture, tied)
    trained = trained_model(base, **lora)
    trained.save_pretrained(tmp_path / "run")
    merged = merged_model(base, tmp_path / "run", tmp_path / "out")
    with trained.disable_adapter():
        before = logits(trained)
    assert (logits(merged) - logits(trained)).abs().max() < 1e-4
    assert (logits(merged) - before).abs().max() > 1e-2


def test_every_targeted_module_is_merged_and_counted(bases: Any, tmp_path: Path) -> None:
    base = bases("qwen3", True)
    trained_model(base).save_pretrained(tmp_path / "run")
    result = merge(base, read_adapter(tmp_path / "run"), tmp_path / "out")
    assert result.merged_modules == 2 * 7
    assert result.tensors == len(read_checkpoint(base))
    assert not result.untied


def test_weights_equal_peft_merge_and_unload(bases: Any, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    base = bases("qwen3", True)
    trained = trained_model(base)
    trained.save_pretrained(tmp_path / "run")
    merge(base, read_adapter(tmp_path / "run"), tmp_path / "out")
    expected = trained.merge_and_unload().state_dict()
    written = load_file(tmp_path / "out" / "model.safetensors")
    assert set(expected) - set(written) == {"lm_head.weight"}
    for name, tensor in written.items():
        torch.testing.assert_close(tensor, expected[name], rtol=0, atol=1e-6)


def test_bfloat16_sum_is_taken_in_fp32_and_rounded_once(bases: Any, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    base = bases("llama", False, "bfloat16")
    trained = trained_model(base, "bfloat16")
    trained.save_pretrained(tmp_path / "run")
    result = merge(base, read_adapter(tmp_path / "run"), tmp_path / "out")
    assert result.dtype == "bfloat16" and len(list(base.glob("model-*.safetensors"))) > 1
    layer = trained.base_model.model.model.layers[0].self_attn.q_proj
    a, b = layer.lora_A["default"].weight.float(), layer.lora_B["default"].weight.float()
    exact = (layer.base_layer.weight.double() + 2.0 * b.double() @ a.double()).detach()
    written = load_file(tmp_path / "out" / "model.safetensors")["model.layers.0.self_attn.q_proj.weight"]
    assert written.dtype == torch.bfloat16
    assert (written.double() - exact).abs().max() <= (exact.abs().max() * 2**-8)
    assert (written == exact.to(torch.bfloat16)).float().mean() > 0.999


def test_shards_stay_under_their_size_and_load_through_their_index(bases: Any, tmp_path: Path) -> None:
    base = bases("llama", False)
    trained = trained_model(base)
    trained.save_pretrained(tmp_path / "run")
    result = merge(base, read_adapter(tmp_path / "run"), tmp_path / "whole")
    merged = merged_model(base, tmp_path / "run", tmp_path / "out", max_shard_bytes=200_000)
    files = sorted((tmp_path / "out").glob("*.safetensors"))
    assert len(files) >= 3
    assert all(file.stat().st_size < 200_000 + 8_000 for file in files)  # the header comes on top
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == result.bytes
    assert {file.name for file in files} == set(index["weight_map"].values())
    assert (logits(merged) - logits(trained)).abs().max() < 1e-4


def test_tensor_larger_than_a_shard_gets_its_own_file_and_is_named(bases: Any, tmp_path: Path) -> None:
    result = merge(bases("llama", True), None, tmp_path / "out", max_shard_bytes=100_000)
    assert result.oversized == ["model.embed_tokens.weight"]


def test_cast_to_bfloat16_on_request(bases: Any, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    base = bases("qwen3", True)
    trained_model(base).save_pretrained(tmp_path / "run")
    assert merge(base, read_adapter(tmp_path / "run"), tmp_path / "out", dtype="bfloat16").dtype == "bfloat16"
    assert {str(tensor.dtype) for tensor in load_file(tmp_path / "out" / "model.safetensors").values()} == {
        "torch.bfloat16"
    }


def test_blocks_of_rows_give_the_same_bytes_as_whole_tensors(
    bases: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = bases("llama", False)
    merge(base, None, tmp_path / "whole")
    monkeypatch.setattr("serve.merge.BLOCK_ELEMENTS", 1000)
    merge(base, None, tmp_path / "blocks")
    assert (tmp_path / "whole/model.safetensors").read_bytes() == (tmp_path / "blocks/model.safetensors").read_bytes()


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.fixture(scope="module")
def saved(bases: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    trained_model(bases("llama", True)).save_pretrained(folder)
    return folder


def changed(saved: Path, folder: Path, *, tensors: Any = None, **config: Any) -> Path:
    """A copy of the adapter with other tensors or other keys in its config."""
    from safetensors.torch import load_file, save_file

    folder.mkdir()
    stated = json.loads((saved / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(stated | config))
    held = load_file(saved / "adapter_model.safetensors")
    save_file(tensors(held) if tensors else held, folder / "adapter_model.safetensors")
    return folder


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("use_dora", True),
        ("bias", "all"),
        ("fan_in_fan_out", True),
        ("lora_bias", True),
        ("trainable_token_indices", [1, 2]),
        ("target_parameters", ["mlp.experts.gate_up_proj"]),
        ("layer_replication", [[0, 2], [1, 2]]),
        ("init_lora_weights", "pissa"),
        ("peft_type", "LOHA"),
        ("some_variant_of_next_year", {"strength": 2}),
    ],
)
def test_variant_of_lora_that_the_merge_would_get_wrong_is_refused(
    key: str, value: Any, saved: Path, tmp_path: Path
) -> None:
    with pytest.raises(ExportError, match=r"LORA|LoRA" if key == "peft_type" else key):
        read_adapter(changed(saved, tmp_path / "run", **{key: value}))


def test_adapter_trained_on_nothing_is_refused(saved: Path, tmp_path: Path) -> None:
    def untrained(tensors: dict[str, Any]) -> dict[str, Any]:
        return {key: tensor * 0 if "lora_B" in key else tensor for key, tensor in tensors.items()}

    with pytest.raises(ExportError, match="lora_B is zero in all 14 modules"):
        read_adapter(changed(saved, tmp_path / "run", tensors=untrained))


def test_adapter_without_tensors_is_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="holds 0 tensors"):
        read_adapter(changed(saved, tmp_path / "run", tensors=lambda tensors: {}))


def test_adapter_of_empty_tensors_is_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="28 of them empty"):
        read_adapter(
            changed(saved, tmp_path / "run", tensors=lambda held: {key: value[:0] for key, value in held.items()})
        )


def test_non_finite_adapter_is_refused_with_the_tensor_named(saved: Path, tmp_path: Path) -> None:
    def broken(tensors: dict[str, Any]) -> dict[str, Any]:
        tensors["base_model.model.model.layers.1.mlp.up_proj.lora_A.weight"][0, 0] = float("nan")
        return tensors

    with pytest.raises(ExportError, match=r"layers\.1\.mlp\.up_proj\.lora_A\.weight holds non-finite"):
        read_adapter(changed(saved, tmp_path / "run", tensors=broken))


def test_module_that_the_config_targets_but_the_file_lacks_is_refused(saved: Path, tmp_path: Path) -> None:
    def without(tensors: dict[str, Any]) -> dict[str, Any]:
        return {key: tensor for key, tensor in tensors.items() if "down_proj" not in key}

    with pytest.raises(ExportError, match=r"no factors for `model\.layers\.\d\.mlp\.down_proj`"):
        read_adapter(changed(saved, tmp_path / "run", tensors=without))


def test_adapter_of_another_base_is_refused(saved: Path, bases: Any, tmp_path: Path) -> None:
    def deeper(tensors: dict[str, Any]) -> dict[str, Any]:
        return {key.replace("layers.1.", "layers.7."): tensor for key, tensor in tensors.items()}

    adapter = read_adapter(changed(saved, tmp_path / "run", tensors=deeper, target_modules="all-linear"))
    with pytest.raises(ExportError, match=r"no tensor model\.layers\.7\..*not the base it was trained on"):
        plan(bases("llama", True), adapter, None)


def test_sum_that_overflows_float16_is_refused(saved: Path, bases: Any, tmp_path: Path) -> None:
    def large(tensors: dict[str, Any]) -> dict[str, Any]:
        return {key: tensor * 1e6 if "lora_B" in key else tensor for key, tensor in tensors.items()}

    adapter = read_adapter(changed(saved, tmp_path / "run", tensors=large))
    with pytest.raises(ExportError, match="not finite in F16"):
        merge(bases("llama", True), adapter, tmp_path / "out", dtype="float16")


def test_checkpoint_cut_short_is_refused(bases: Any, tmp_path: Path) -> None:
    whole = (bases("llama", True) / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[:-10])
    with pytest.raises(ExportError, match="bytes long"):
        read_checkpoint(tmp_path)


def test_base_in_the_old_format_is_refused_with_advice(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ExportError, match=r"pytorch_model\.bin: convert it"):
        read_checkpoint(tmp_path)
