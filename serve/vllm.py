"""How vLLM serves an exported folder: the command line, a request that goes with it, and a server for the tests.

Two settings matter and are easy to miss. No reasoning parser: it moves a guided answer out of `content`. And no free
white space between JSON tokens: a weak model may otherwise print it until the token limit, within the grammar. vLLM
up to 0.31 takes the latter as "exactly one space after each comma and colon" with xgrammar, later versions and the
guidance backend as "none"; guidance is named here since it means the same in all of them, and it is what `render`
prints.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from extractors.contract import Extractor, InputError
from extractors.endpoint import binding
from serve.local import Server, free_port, running

STRUCTURED_OUTPUTS = {"backend": "guidance", "disable_any_whitespace": True}
LONGEST_CONTEXT = 8192  # tokens; more is reserved memory without use for dialogues in chunks
LONGEST_TREE_CONTEXT = 16384  # 10,240 of the prompt, which are counted in characters, and the answer
EXAMPLE = {"turns": [{"speaker": "Mia", "text": "I finally adopted a cat, Pixel, and my brother moved to Lisbon."}]}


def serve_command(
    folder: Path,
    name: str | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    dtype: str | None = None,
    max_model_len: int | None = None,
) -> list[str]:
    """`vllm serve` with its arguments. name: what requests call the model, the folder's name by default; dtype: the
    folder's own by default; max_model_len: tokens of prompt and answer, by default `context_length`."""
    command = ["vllm", "serve", str(folder), "--served-model-name", name or model_name(folder)]
    length = max_model_len or context_length(folder)
    if length:
        command += ["--max-model-len", str(length)]
    if dtype:
        command += ["--dtype", dtype]
    command += ["--structured-outputs-config", json.dumps(STRUCTURED_OUTPUTS, separators=(",", ":"))]
    return [*command, "--host", host, "--port", str(port)]


def serve_line(folder: Path, name: str | None = None, *, port: int = 8000) -> str:
    """`serve_command` as one line for a shell."""
    return shlex.join(serve_command(folder, name, port=port))


def curl_line(
    folder: Path, extractor: Extractor[Any, Any], name: str | None = None, *, port: int = 8000, example: Any = None
) -> str:
    """A request to that server for a shell. It names neither temperature nor template arguments: the folder's
    defaults are training's. example: an input in its JSON form."""
    if example is None:
        example = EXAMPLE | ({"person": "Mia"} if extractor.name == "persona_tree" else {})
    body = {
        "model": name or model_name(folder),
        "messages": extractor.messages(extractor.read_input(example)),
        "max_tokens": extractor.decoding.max_tokens,
        **binding(extractor, extractor.grammar),
    }
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    return f"curl -s {url} -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body, ensure_ascii=False))}"


def model_name(folder: Path) -> str:
    """What requests call the model of `folder`: the folder's own name."""
    return folder.name or folder.resolve().name


def context_length(folder: Path) -> int | None:
    """The model's context in tokens, at most 8192, for PersonaTrees 16384; None where the folder is not here or does not
    say."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return None
    contract = folder / "extractor.json"
    trees = contract.is_file() and json.loads(contract.read_text(encoding="utf-8")).get("name") == "persona_tree"
    stated = config.get("text_config", config).get("max_position_embeddings")
    return min(int(stated), LONGEST_TREE_CONTEXT if trees else LONGEST_CONTEXT) if stated else None


@contextlib.contextmanager
def run_server(
    folder: Path,
    name: str | None = None,
    *,
    python: Path,
    port: int | None = None,
    dtype: str = "float32",
    max_model_len: int = 1024,
    ready_within: float = 600.0,
) -> Iterator[Server]:
    """vLLM's server on this machine's CPU until the block ends, run by `python`, an interpreter that has vLLM. The
    CPU build has no `vllm` command, hence the module. Raises InputError without that interpreter, ServerFailed where
    vLLM ends."""
    if not python.is_file():
        raise InputError(f"{python} does not exist: it has to be the Python of an environment with vLLM.")
    port = port or free_port()
    folder = folder.resolve()
    name = name or model_name(folder)
    arguments = serve_command(folder, name, port=port, dtype=dtype, max_model_len=max_model_len)
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", *arguments[2:]]
    command += ["--max-num-seqs", "8", "--enforce-eager"]
    environment = {
        "VLLM_CPU_KVCACHE_SPACE": os.environ.get("VLLM_CPU_KVCACHE_SPACE", "1"),  # GB
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    with running(command, port, environment=environment, ready_within=ready_within) as (seconds, log):
        yield Server(f"http://127.0.0.1:{port}/v1", name, seconds, log)
