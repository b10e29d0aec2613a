"""The lines that people paste: `vllm serve` and a request that goes with it."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from extractors import load_extractor
from extractors.contract import InputError
from serve.client import ExtractorClient
from serve.vllm import curl_line, run_server, serve_command, serve_line
from tests.serve.scripted_server import chat, scripted_server

EXTRACTOR = load_extractor("triplets")


def test_the_serve_line_names_the_model_and_forbids_free_white_space(tmp_path: Path) -> None:
    folder = tmp_path / "my export"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 40960}))
    words = shlex.split(serve_line(folder, port=8001))
    assert words == serve_command(folder, port=8001)
    assert words[:3] == ["vllm", "serve", str(folder)]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    assert options["--served-model-name"] == "my export" and options["--port"] == "8001"
    assert options["--max-model-len"] == "8192"
    assert json.loads(options["--structured-outputs-config"]) == {"backend": "guidance", "disable_any_whitespace": True}
    assert "--reasoning-parser" not in words


@pytest.mark.parametrize(("context", "length"), [(2048, "2048"), (131072, "8192")])
@pytest.mark.parametrize("composite", [False, True])
def test_the_length_is_the_models_context_within_reason(
    tmp_path: Path, context: int, length: str, composite: bool
) -> None:
    text = {"max_position_embeddings": context}
    (tmp_path / "config.json").write_text(json.dumps({"text_config": text} if composite else text))
    command = serve_command(tmp_path, "x")
    assert command[command.index("--max-model-len") + 1] == length


def test_the_curl_line_works_when_it_is_pasted_in_a_shell(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    example = {"turns": [{"speaker": "Zoë", "text": "I can't stand \"opera\", it's $5 & `late`\\n"}]}
    with scripted_server(lambda number, body: chat("[]")) as log:
        port = int(log.url.rpartition(":")[2])
        line = curl_line(tmp_path / "out", EXTRACTOR, port=port, example=example)
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
        ExtractorClient(log.url, EXTRACTOR, model="out").extract_all([EXTRACTOR.read_input(example)])
    assert json.loads(done.stdout)["choices"][0]["message"]["content"] == "[]"
    pasted, client = log.requests
    for key in ("model", "messages", "response_format", "max_tokens"):
        assert pasted[key] == client[key]
    assert "temperature" not in pasted and "chat_template_kwargs" not in pasted


def test_a_missing_vllm_is_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="environment with vLLM"), run_server(tmp_path, python=tmp_path / "python"):
        raise AssertionError("it cannot be ready")
