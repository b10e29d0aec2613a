"""What makes a plain request right: the tokenizer, a chat template whose defaults are training's, greedy generation.

A server renders the folder's template with whatever the request carries and samples with whatever the folder's
generation config says. Qwen3's own files think aloud and sample at 0.6, so a client that forgets either setting would
meet a model that it was not trained to be. Here both defaults are written into the folder; a request can still say
otherwise.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from extractors.chat import end_of_turn
from serve.merge import ExportError

TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt",
    "merges.txt", "tokenizer.model", "spiece.model",
)  # fmt: skip


def with_defaults(template: str, kwargs: Mapping[str, Any]) -> str:
    """`template` with each of `kwargs` as the default of its variable, where the template reads it at all.

    A variable that the request defines keeps the request's value, and vLLM's look at the template still finds it among
    the undeclared ones, so it goes on passing the request's value through. Raises ExportError for values that are no
    scalars.
    """
    lines = []
    for name, value in kwargs.items():
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or not (value is None or isinstance(value, (bool, int, float, str))):
            raise ExportError(
                f"`chat_template_kwargs` has {name}: {value!r}: a template can only be given names with true, false, numbers "
                "or strings as defaults."
            )
        if re.search(rf"\b{name}\b", template):
            # Not ASCII only: jinja misreads JSON's escapes of characters beyond the basic plane.
            literal = "none" if value is None else json.dumps(value, ensure_ascii=False)
            lines.append(f"{{%- if {name} is not defined %}}{{%- set {name} = {literal} %}}{{%- endif %}}")
    # Every renderer of these templates trims the newline after a block; with it, the template still begins a line, so
    # white space before its own first block is stripped as before.
    return "".join(line + "\n" for line in lines) + template


def write_tokenizer(
    run: Path, out: Path, kwargs: Mapping[str, Any], trained_sha256: str | None = None
) -> tuple[str, list[str]]:
    """Copies the tokenizer that training used and writes its template with training's kwargs as defaults.

    trained_sha256: of the template that the run recorded; another one in the run folder is refused.

    The template goes where servers look: `chat_template.jinja` (transformers and vLLM today) and
    `tokenizer_config.json` (older servers), the same text in both. Returns the template's sha256 and warnings.
    """
    from transformers import AutoTokenizer

    if not (run / "tokenizer_config.json").is_file():
        raise ExportError(
            f"{run} has no tokenizer_config.json: the run folder must hold the tokenizer it was trained with."
        )
    for name in TOKENIZER_FILES:
        if (run / name).is_file():
            shutil.copyfile(run / name, out / name)
    tokenizer = AutoTokenizer.from_pretrained(run)
    if not tokenizer.chat_template:
        raise ExportError(f"{run}: the tokenizer has no chat template, so a server could not render a chat request.")
    trained = tokenizer.get_chat_template()
    if trained_sha256 not in (None, _sha256(trained)):
        raise ExportError(
            f"{run}: its chat template is not the one that run.json recorded: it was edited after training."
        )
    warnings = []
    if not isinstance(tokenizer.chat_template, str):
        others = sorted(set(tokenizer.chat_template) - {"default"})
        warnings.append(
            f"the tokenizer has {len(others)} further chat templates ({', '.join(others)}), which are left out"
        )
    if "strftime_now" in trained and "date_string" not in kwargs:
        warnings.append(
            "the chat template writes today's date into the prompt, so prompts will drift away from training's; set "
            "`date_string` in `chat_template_kwargs` and train again"
        )
    template = with_defaults(trained, kwargs)
    (out / "chat_template.jinja").write_text(template, "utf-8")
    config = json.loads((run / "tokenizer_config.json").read_text("utf-8"))
    config["chat_template"] = template
    write_json(out / "tokenizer_config.json", config)
    return _sha256(template), warnings


def write_generation_config(
    run: Path, base: Path, out: Path, kwargs: Mapping[str, Any], max_tokens: int
) -> dict[str, Any]:
    """Writes `generation_config.json` for greedy decoding that ends with the trained end of turn. Returns it.

    Nothing of the base's sampling settings is kept (top_k, repetition_penalty, …). `temperature: 0.0` stands beside
    `do_sample: false` because vLLM reads the one and knows nothing of the other: without it, it samples at 1.0.
    transformers loads such a file, decodes greedily, and remarks once that the flag may be ignored; it refuses to
    save it again, so whoever trains the exported model further sets `model.generation_config.temperature = None` first.
    `top_k: 1` with `do_sample: true` would spare them that, but vLLM then draws among equal logits, and ties are common
    in bfloat16. `max_new_tokens` is what a server takes when the request has no `max_tokens`; a longer answer is a
    failure anyway.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(run)
    turn = end_of_turn(tokenizer, kwargs)
    if turn is None:
        turn = tokenizer.eos_token_id
    if turn is None:
        raise ExportError(f"{run}: neither the chat template nor the tokenizer says which token ends a turn.")
    stated = _read_json(base / "generation_config.json")
    config = _read_json(base / "config.json")
    inner = config.get("text_config") or {}
    known = [part.get("eos_token_id") for part in (stated, config, inner)]
    ends: Any = next((end for end in known if end is not None), [])
    ends = ends if isinstance(ends, list) else [ends]
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else stated.get("pad_token_id")
    written: dict[str, Any] = {
        "do_sample": False,
        "temperature": 0.0,
        "max_new_tokens": max_tokens,
        "eos_token_id": list(dict.fromkeys([turn, *ends])),
        "pad_token_id": turn if pad is None else pad,
    }
    if stated.get("bos_token_id") is not None:
        written["bos_token_id"] = stated["bos_token_id"]
    write_json(out / "generation_config.json", written)
    return written


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _read_json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf-8")
