"""The exported folder as a whole: complete, proven from the folder alone, and refused or marked where it is wrong."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from extractors import extractor_from_json
from serve.export import ExportError, ProofFailed, add_arguments, export, prove_folder, read_run, run, write_folder
from serve.merge import GIGABYTE, read_checkpoint
from serve.verify import prove_files
from tests.serve.export_runs import make_base, trained_model, write_run, write_test_rows


def quiet(line: str) -> None:
    pass


@pytest.fixture(scope="module")
def lora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished LoRA run on a tied Qwen3 in fp32; base, rows and run side by side."""
    root = tmp_path_factory.mktemp("lora")
    base = make_base(root / "base")
    (base / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Tiny\n")
    (base / "LICENSE").write_text("Apache License")
    write_run(root / "run", trained_model(base), base, write_test_rows(root))
    return root


@pytest.fixture(scope="module")
def exported(lora: Path) -> tuple[Path, dict[str, Any]]:
    return lora / "out", export(lora / "run", lora / "out", log=quiet)


@pytest.fixture
def changed_run(lora: Path, tmp_path: Path) -> Any:
    """The same run with other keys in run.json."""

    def change(**changes: Any) -> Path:
        folder = tmp_path / "run"
        folder.mkdir()
        for file in (lora / "run").iterdir():
            (folder / file.name).symlink_to(file)
        record = json.loads((folder / "run.json").read_text()) | changes
        (folder / "run.json").unlink()
        (folder / "run.json").write_text(json.dumps(record))
        return folder

    return change


def test_folder_is_proven_and_says_so(exported: tuple[Path, dict[str, Any]]) -> None:
    folder, report = exported
    proof = report["proof"]
    assert report["verified"] and not report["failures"]
    assert report["merged_modules"] == 14
    assert proof["max_logit_diff"] < 1e-4 and proof["same_argmax"] == 1.0
    assert proof["max_logit_change_from_base"] > 0.1
    assert (proof["rows"], proof["prompts_compared"]) == (16, 20)
    assert json.loads((folder / "export_report.json").read_text()) == report
    assert not folder.with_name("out.partial").exists()


def test_contract_in_the_folder_is_accepted_and_names_what_it_came_from(exported: tuple[Path, dict[str, Any]]) -> None:
    folder, report = exported
    contract = json.loads((folder / "extractor.json").read_text())
    assert extractor_from_json(contract).name == "triplets"
    assert contract["base_model"]["name"].endswith("base")
    assert contract["chat_template_kwargs"] == {"enable_thinking": False}
    assert contract["chat_template_sha256"] == report["chat_template_sha256"]
    assert len(contract["merged_from"]["adapter_sha256"]) == 64
    assert contract["dataset"][0]["split"] == "test" and len(contract["dataset"][0]["sha256"]) == 64
    assert contract["scores"] == {"f1": 0.5}
    assert contract["verification"] == report["proof"]


def test_folder_holds_config_licence_and_a_card_with_the_way_to_serve_it(exported: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = exported
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["Qwen3ForCausalLM"] and config["dtype"] == "float32"
    assert (folder / "LICENSE").read_text() == "Apache License"
    card = (folder / "README.md").read_text()
    assert "license: apache-2.0" in card
    assert "vllm serve ." in card and "--served-model-name out" in card and "curl -s http" in card
    assert str(folder.parent) not in card
    assert "temperature" not in card[card.index("curl -s") :].splitlines()[0]


def test_plain_generate_from_the_folder_alone_is_greedy_and_asks_as_trained(
    exported: tuple[Path, dict[str, Any]], lora: Path, tmp_path: Path
) -> None:
    """What another service does: transformers, the folder, no network, no code of this project, no settings."""
    folder, _ = exported
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in folder.iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    code = """
import json, sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForCausalLM.from_pretrained(".")
asked = tokenizer.apply_chat_template(
    json.loads(sys.argv[1]), add_generation_prompt=True, return_dict=True, return_tensors="pt"
)
torch.manual_seed(int(sys.argv[2]))
answer = model.generate(**asked, max_new_tokens=20)[0, asked["input_ids"].shape[1]:]
found = {"prompt": asked["input_ids"][0].tolist(), "answer": answer.tolist(), "local": "serve" in sys.modules}
print(json.dumps(found))
"""
    run_ = read_run(lora / "run")
    messages = run_.extractor.messages(
        run_.extractor.read_input({"turns": [{"speaker": "Mia", "text": "I have a cat."}]})
    )

    def ask(seed: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-I", "-c", code, json.dumps(messages), seed],
            cwd=moved, env={"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(done.stdout)

    first = ask("1")
    assert first == ask("2")
    assert not first["local"]

    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(lora / "run")
    trained = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_dict=True, enable_thinking=False
    )["input_ids"]
    assert first["prompt"] == trained
    model = trained_model(lora / "base")
    expected = model.generate(
        input_ids=torch.tensor([trained]), attention_mask=torch.ones(1, len(trained), dtype=torch.long),
        do_sample=False, temperature=None, top_k=None, top_p=None, max_new_tokens=20,
    )  # fmt: skip
    assert first["answer"] == expected[0, len(trained) :].tolist()


def test_untied_bfloat16_sharded_base_is_exported_in_shards_and_proven(tmp_path: Path) -> None:
    base = make_base(tmp_path / "base", "llama", tied=False, dtype="bfloat16")
    write_run(
        tmp_path / "run",
        trained_model(base, "bfloat16", target_modules=["v_proj", "up_proj"]),
        base,
        write_test_rows(tmp_path),
        dtype="bfloat16",
    )
    report = export(tmp_path / "run", tmp_path / "out", max_shard_size=100_000, log=quiet)
    assert len(report["files"]) > 1 and report["dtype"] == "bfloat16"
    assert report["proof"]["same_argmax"] >= 0.99
    assert report["proof"]["computed_in"] == "float32"


def test_lm_head_trained_apart_from_its_tie_is_exported_untied(tmp_path: Path) -> None:
    base = make_base(tmp_path / "base", "llama")
    write_run(tmp_path / "run", trained_model(base, modules_to_save=["lm_head"]), base, write_test_rows(tmp_path))
    report = export(tmp_path / "run", tmp_path / "out", compare_rows=4, log=quiet)
    assert report["untied"] and report["verified"]
    assert "lm_head.weight" in read_checkpoint(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["tie_word_embeddings"] is False


def test_fully_fine_tuned_run_is_exported_and_proven(tmp_path: Path) -> None:
    import torch

    base = make_base(tmp_path / "base", "qwen3")
    model = trained_model(base).merge_and_unload()
    with torch.no_grad():
        model.model.norm.weight += 0.1
    write_run(tmp_path / "run", model, base, write_test_rows(tmp_path))
    report = export(tmp_path / "run", tmp_path / "out", compare_rows=4, log=quiet)
    assert report["verified"] and report["proof"]["max_logit_diff"] == 0.0
    contract = json.loads((tmp_path / "out" / "extractor.json").read_text())
    assert set(contract["merged_from"]["weights_sha256"]) == {"model.safetensors"}


def test_qlora_run_shows_the_f1_of_its_4_bit_model_beside_the_merged_one(tmp_path: Path) -> None:
    base = make_base(tmp_path / "base")
    extractor = {"quantization": "nf4", "dtype": "float32"}
    write_run(tmp_path / "run", trained_model(base), base, write_test_rows(tmp_path), **extractor)
    proof = export(tmp_path / "run", tmp_path / "out", compare_rows=2, log=quiet)["proof"]
    assert proof["f1_rows"] == 2
    assert proof["f1_drop_from_nf4"] == proof["f1_nf4_adapter"] - proof["f1_merged"]


# ------------------------------------------------------------------------------------------------------ failed proofs


def written(source: Path, folder: Path) -> tuple[Any, dict[str, Any]]:
    source_run = read_run(source)
    return source_run, write_folder(source_run, folder, max_shard_size=GIGABYTE, dtype=None, log=quiet)


def rows_of(source_run: Any, lora: Path) -> Any:
    from extractors.rows import read_rows

    return read_rows(lora / "test.jsonl", source_run.extractor, 4)


def overwrite_tensor(folder: Path, name: str, edit: Any) -> None:
    """Edits one tensor in place, as a bad disk or a bad merge would."""
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    tensors = load_file(file)
    save_file(edit({key: value.clone() for key, value in tensors.items()}, name), file, metadata={"format": "pt"})


def test_corrupted_tensor_fails_the_proof(lora: Path, tmp_path: Path) -> None:
    source_run, report = written(lora / "run", tmp_path / "out")

    def corrupt(tensors: dict[str, Any], name: str) -> dict[str, Any]:
        tensors[name][3, 3] += 0.5
        return tensors

    overwrite_tensor(tmp_path / "out", "model.layers.1.self_attn.v_proj.weight", corrupt)
    failures = prove_folder(source_run, tmp_path / "out", rows_of(source_run, lora), report, log=quiet)
    assert len(failures) == 1 and "1e-04 is allowed in float32" in failures[0]
    assert report["verified"] is False


def test_unmerged_base_and_misnamed_tensor_fail_the_proof(lora: Path, tmp_path: Path) -> None:
    source_run, report = written(lora / "run", tmp_path / "out")
    (tmp_path / "out" / "model.safetensors").write_bytes((lora / "base" / "model.safetensors").read_bytes())

    def rename(tensors: dict[str, Any], name: str) -> dict[str, Any]:
        tensors[name.replace("q_norm", "query_norm")] = tensors.pop(name)
        return tensors

    overwrite_tensor(tmp_path / "out", "model.layers.0.self_attn.q_norm.weight", rename)
    failures = " ".join(prove_folder(source_run, tmp_path / "out", rows_of(source_run, lora), report, log=quiet))
    assert "logits differ by" in failures
    assert "1 tensors missing, first model.layers.0.self_attn.q_norm.weight" in failures
    assert "1 tensors unexpected, first model.layers.0.self_attn.query_norm.weight" in failures


def test_base_weights_in_place_of_merged_ones_are_named_as_such(lora: Path, tmp_path: Path) -> None:
    source_run, report = written(lora / "run", tmp_path / "out")
    (tmp_path / "out" / "model.safetensors").write_bytes((lora / "base" / "model.safetensors").read_bytes())
    failures = " ".join(prove_folder(source_run, tmp_path / "out", rows_of(source_run, lora), report, log=quiet))
    assert "what was trained is not in it" in failures


def test_stock_template_in_the_folder_fails_the_proof(lora: Path, tmp_path: Path) -> None:
    source_run, report = written(lora / "run", tmp_path / "out")
    (tmp_path / "out" / "chat_template.jinja").write_bytes((lora / "base" / "chat_template.jinja").read_bytes())
    failures = " ".join(prove_folder(source_run, tmp_path / "out", rows_of(source_run, lora), report, log=quiet))
    assert "different templates" in failures
    assert "prompt ids without template kwargs differ from training's in 4 of 4 rows, first r0" in failures
    assert "with training's kwargs" not in failures


def test_folder_that_cannot_be_loaded_fails_with_the_reason(lora: Path, tmp_path: Path) -> None:
    source_run, report = written(lora / "run", tmp_path / "out")
    (tmp_path / "out" / "tokenizer.json").unlink()
    failures = prove_folder(source_run, tmp_path / "out", rows_of(source_run, lora), report, log=quiet)
    assert "cannot be loaded on its own" in failures[0]


@pytest.mark.parametrize(
    ("file", "key", "value", "said"),
    [
        ("config.json", "quantization_config", {"quant_method": "bitsandbytes"}, "quantization_config"),
        ("generation_config.json", "temperature", 0.6, "samples"),
        ("extractor.json", "version", "0", "refused by its own client"),
    ],
)
def test_wrong_file_fails_before_any_model_is_loaded(
    file: str, key: str, value: Any, said: str, lora: Path, tmp_path: Path
) -> None:
    written(lora / "run", tmp_path / "out")
    assert prove_files(tmp_path / "out") == []
    data = json.loads((tmp_path / "out" / file).read_text())
    (tmp_path / "out" / file).write_text(json.dumps(data | {key: value}))
    assert said in prove_files(tmp_path / "out")[0]


def test_failed_export_keeps_the_folder_under_another_name_and_exits_1(
    lora: Path, changed_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A template cannot be given a default for `eos_token`: the tokenizer always defines it."""
    folder = changed_run(chat_template_kwargs={"eos_token": "!", "enable_thinking": False})
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").unlink()
    (folder / "chat_template.jinja").write_text(template + "{{ eos_token }}")
    status = run(arguments(str(folder), str(tmp_path / "out"), "--compare-rows", "2"))
    assert status == 1
    assert "prompt ids without template kwargs differ" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert json.loads((tmp_path / "out.failed" / "export_report.json").read_text())["verified"] is False
    with pytest.raises(ProofFailed):
        export(folder, tmp_path / "out", compare_rows=2, log=quiet)


# ---------------------------------------------------------------------------------------------------------- refusals


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(given)


@pytest.mark.parametrize("status", ["running", "failed", None])
def test_unfinished_run_is_refused(status: str | None, changed_run: Any, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="status is"):
        export(changed_run(status=status), tmp_path / "out", log=quiet)


def test_quantised_base_is_refused(lora: Path, changed_run: Any, tmp_path: Path) -> None:
    quantised = tmp_path / "base"
    quantised.mkdir()
    config = json.loads((lora / "base" / "config.json").read_text())
    (quantised / "config.json").write_text(json.dumps(config | {"quantization_config": {"load_in_4bit": True}}))
    with pytest.raises(ExportError, match="quantised model.*unquantised"):
        export(changed_run(model={"name": str(quantised), "path": str(quantised)}), tmp_path / "out", log=quiet)


def test_other_thinking_setting_than_the_contract_asks_with_is_refused(changed_run: Any, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="enable_thinking: True"):
        export(changed_run(chat_template_kwargs={"enable_thinking": True}), tmp_path / "out", log=quiet)


def test_folder_in_use_is_not_overwritten_unless_asked_and_only_if_it_is_an_export(
    lora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    assert run(arguments(str(lora / "run"), str(tmp_path / "out"))) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert run(arguments(str(lora / "run"), str(tmp_path / "out"), "--overwrite")) == 2
    assert "not an exported folder" in capsys.readouterr().err
    (tmp_path / "out" / "extractor.json").write_text("{}")
    assert run(arguments(str(lora / "run"), str(tmp_path / "out"), "--overwrite", "--no-verify")) == 0
    assert not (tmp_path / "out" / "thesis.txt").exists()


def test_run_folder_itself_is_no_place_to_export_to(lora: Path) -> None:
    for place in (lora / "run", lora / "base", lora):
        with pytest.raises(ExportError, match="which is read from"):
            export(lora / "run", place, overwrite=True, log=quiet)


def test_changed_rows_are_refused_with_the_way_out(lora: Path, changed_run: Any, tmp_path: Path) -> None:
    entry = {"path": str(lora / "test.jsonl"), "split": "test", "sha256": "0" * 64}
    with pytest.raises(ExportError, match="--rows FILE"):
        export(changed_run(dataset=[entry]), tmp_path / "out", log=quiet)


def test_missing_rows_are_refused_before_anything_is_written(changed_run: Any, tmp_path: Path) -> None:
    entry = {"path": str(tmp_path / "gone.jsonl"), "split": "train", "sha256": "0" * 64}
    with pytest.raises(ExportError, match="none of the run's dataset files"):
        export(changed_run(dataset=[entry]), tmp_path / "out", log=quiet)
    assert not (tmp_path / "out.partial").exists()


def test_command_prints_the_serve_line_and_a_request(
    lora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments(str(lora / "run"), str(tmp_path / "out"), "--no-verify", "--max-shard-size", "0.1MB")) == 0
    printed = capsys.readouterr().out
    assert f"vllm serve {tmp_path / 'out'}" in printed
    assert "/v1/chat/completions" in printed
    assert "not verified" in printed
    assert len(list((tmp_path / "out").glob("model-*.safetensors"))) > 1


def test_size_without_a_unit_we_know_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments("run", "out", "--max-shard-size", "1 gigabyte")
    assert "is no size" in capsys.readouterr().err


def test_importing_the_command_loads_no_torch() -> None:
    code = "import sys, serve.export, serve.verify; print([m for m in ('torch', 'transformers', 'peft') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert done.stdout.strip() == "[]"
