"""`mnemosmith export RUN OUT`: a finished run becomes a folder that vLLM serves and that carries its own contract.

    read the run -> merge into the unquantised base -> tokenizer, template, generation config, contract, card -> prove

The folder is built beside its place as OUT.partial and takes its name once it is proven; a folder that fails a proof
stays, as OUT.failed, with the failures in its export_report.json.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from extractors import extractor_from_json
from extractors.contract import Extractor, InputError
from extractors.rows import Row, read_rows, sha256
from recipes.models import SMOLLM2_NAME, ModelError, resolve_model
from serve.merge import FLOATS, GIGABYTE, Adapter, ExportError, Merged, merge, plan, read_adapter
from serve.template import write_generation_config, write_json, write_tokenizer
from serve.vllm import curl_line, serve_command, serve_line

COMPARE_ROWS = 200
REPORT = "export_report.json"
Log = Callable[[str], object]

_HUB_FILES = ["*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "LICENSE*", "README.md"]
_COPIED = ("preprocessor_config.json", "video_preprocessor_config.json", "processor_config.json")


class ProofFailed(RuntimeError):
    """The exported folder is not what was trained. failures: what failed; folder: where it was left."""

    def __init__(self, folder: Path, failures: list[str]):
        lines = "\n  - ".join(failures)
        super().__init__(
            f"the exported folder failed {len(failures)} of its proofs and was left in {folder}:\n  - {lines}"
        )
        self.folder = folder
        self.failures = failures


@dataclass(frozen=True)
class Run:
    """A finished run. base: the folder of its base model; adapter: None after full fine-tuning; data: run.json."""

    folder: Path
    data: Mapping[str, Any]
    extractor: Extractor[Any, Any]
    base: Path
    adapter: Adapter | None

    @property
    def weights(self) -> Path:
        """Where config and unmerged weights come from: the base, or the run itself after full fine-tuning."""
        return self.base if self.adapter else self.folder

    @property
    def template_kwargs(self) -> dict[str, Any]:
        return dict(self.data.get("chat_template_kwargs") or {})


def export(
    run: Path,
    out: Path,
    *,
    rows: Path | None = None,
    compare_rows: int = COMPARE_ROWS,
    max_shard_size: int = GIGABYTE,
    verify: bool = True,
    dtype: str | None = None,
    overwrite: bool = False,
    log: Log = print,
) -> dict[str, Any]:
    """Merges, writes and proves; returns the report that also stands in OUT/export_report.json.

    rows: JSONL file for the proof (default: the run's own test, dev or train rows); compare_rows: of them, how many
    have their prompts compared and, for a QLoRA run, are answered by both models; max_shard_size: bytes; dtype: of the
    weights (None: the base's). Raises ExportError or InputError for what cannot be exported, ProofFailed for a folder
    that is wrong.
    """
    run, out = Path(run), Path(out)
    if dtype is not None and dtype not in FLOATS:
        raise ExportError(f"`dtype` is {dtype!r}: write {', '.join(FLOATS)}.")
    if compare_rows < 1 or max_shard_size < 1:
        raise ExportError(
            f"`compare_rows` ({compare_rows}) and `max_shard_size` ({max_shard_size}) must be at least 1."
        )
    source = read_run(run)
    _check_place(out, source, overwrite)
    proof_rows, rows_file = _proof_rows(source, rows, compare_rows) if verify else ([], None)

    staging, failed = out.with_name(out.name + ".partial"), out.with_name(out.name + ".failed")
    for leftover in (staging, failed):
        if leftover.exists():
            log(f"removing {leftover}, left by an earlier export")
            shutil.rmtree(leftover)
    report = write_folder(source, staging, max_shard_size=max_shard_size, dtype=dtype, log=log)
    if not verify:
        report["verified"] = False
        report["warnings"].append("the folder was not verified")
    else:
        failures = prove_folder(source, staging, proof_rows, report, log=log)
        report["rows"] = str(rows_file)
        _write_report(staging, report)
        if failures:
            staging.rename(failed)
            raise ProofFailed(failed, failures)
    _write_report(staging, report)
    if out.exists():
        shutil.rmtree(out)
    staging.rename(out)
    for warning in report["warnings"]:
        log(f"warning: {warning}")
    return report


def read_run(folder: Path) -> Run:
    """A run folder with its base found and its adapter checked. Raises ExportError or InputError."""
    file = folder / "run.json"
    if not file.is_file():
        raise ExportError(f"{folder} has no run.json: give the output folder of `mnemosmith train`.")
    data = json.loads(file.read_text("utf-8"))
    if data.get("status") != "finished":
        raise ExportError(
            f"{folder}: the run's status is {data.get('status')!r}, so its weights are not its last. Start the same recipe "
            "again: it resumes from its last checkpoint."
        )
    extractor = extractor_from_json(data["extractor"])
    for name, value in extractor.decoding.chat_template_kwargs.items():
        trained = (data.get("chat_template_kwargs") or {}).get(name, value)
        if trained != value:
            raise ExportError(
                f"{folder}: trained with `chat_template_kwargs` {name}: {trained!r}, but the contract's clients ask with "
                f"{value!r}. Train with the contract's value."
            )
    base = _base_folder(data["model"])
    config = json.loads((base / "config.json").read_text("utf-8"))
    if "quantization_config" in config or "quantization_config" in (config.get("text_config") or {}):
        raise ExportError(
            f"{base} is a quantised model. Merging into it would round every weight again; set `model_name_or_path` to the "
            "original, unquantised model and train with `load_in_4bit: true`, which quantises it while loading."
        )
    if not config.get("architectures"):
        raise ExportError(f"{base}: config.json names no `architectures`, so no server would know its class. Add it.")
    if "auto_map" in config:
        raise ExportError(f"{base} needs code of its own (`auto_map`), which the exported folder would not carry.")
    if (folder / "adapter_config.json").is_file():
        return Run(folder, data, extractor, base, read_adapter(folder))
    if not (folder / "config.json").is_file():
        raise ExportError(f"{folder} holds neither an adapter (adapter_config.json) nor a model (config.json).")
    return Run(folder, data, extractor, base, None)


def _base_folder(model: Mapping[str, Any]) -> Path:
    path = Path(str(model.get("path") or model["name"]))
    if path.is_dir():
        return path
    resolved = resolve_model(str(model["name"]))  # raises ModelError for a folder that is gone
    if Path(resolved).is_dir():
        return Path(resolved)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(resolved, revision=model.get("revision"), allow_patterns=_HUB_FILES))
    except Exception as error:  # the hub's many kinds of failure all mean the same here
        raise ExportError(f"the base model {resolved} cannot be fetched: {error}") from error


def _check_place(out: Path, source: Run, overwrite: bool) -> None:
    for taken in (source.folder.resolve(), source.base.resolve()):
        if out.resolve() == taken or out.resolve() in taken.parents:
            raise ExportError(f"{out} holds {taken}, which is read from: give a folder of its own.")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        if not overwrite:
            raise ExportError(
                f"{out} exists and is not empty: choose another name, or pass `--overwrite` to replace it."
            )
        if not (out / "extractor.json").is_file():
            raise ExportError(f"{out} is not an exported folder (it has no extractor.json), so it is not overwritten.")


def _proof_rows(source: Run, rows: Path | None, limit: int) -> tuple[list[Row[Any, Any]], Path]:
    """Rows to prove the folder on: the given file, else the run's own, unseen ones first."""
    if rows is not None:
        return read_rows(Path(rows), source.extractor, limit), Path(rows)
    order = {"test": 0, "dev": 1, "validation": 1, "eval": 1}
    listed = sorted(source.data.get("dataset") or [], key=lambda entry: order.get(str(entry.get("split")), 2))
    for entry in listed:
        path = Path(entry["path"])
        file = path if path.is_file() else path / f"{entry.get('split')}.jsonl"
        if file.is_file():
            if entry.get("sha256") and sha256(file) != entry["sha256"]:
                raise ExportError(
                    f"{file} has changed since the run read it: pass `--rows FILE` to name the rows to prove on."
                )
            return read_rows(file, source.extractor, limit), file
    raise ExportError(
        f"{source.folder}: none of the run's dataset files is here any more, so there is nothing to prove the folder on. Pass "
        "`--rows FILE` (JSONL with input and gold), or `--no-verify` to go without the proof."
    )


def write_folder(source: Run, folder: Path, *, max_shard_size: int, dtype: str | None, log: Log) -> dict[str, Any]:
    """Everything of the exported folder but its proof. Returns the report so far."""
    parts, _ = plan(source.weights, source.adapter, dtype)
    needed = sum(part.bytes for part in parts)
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder.parent).free
    if free < needed * 1.02:
        raise ExportError(
            f"{folder.parent} has {free / GIGABYTE:.1f} GB free, the model takes {needed / GIGABYTE:.1f} GB."
        )
    if source.adapter is not None:
        log(f"merging {len(source.adapter.pairs)} modules of {source.folder} into {source.base}")
    merged = merge(source.weights, source.adapter, folder, max_shard_bytes=max_shard_size, dtype=dtype, progress=log)
    _write_config(source.weights, folder, merged)
    for file in source.weights.iterdir():
        if file.name in _COPIED or file.name.upper().startswith(("LICENSE", "NOTICE")):
            shutil.copyfile(file, folder / file.name)
    recorded = source.data.get("chat_template_sha256")
    template_sha256, warnings = write_tokenizer(source.folder, folder, source.template_kwargs, recorded)
    max_tokens = source.extractor.decoding.max_tokens
    generation = write_generation_config(source.folder, source.base, folder, source.template_kwargs, max_tokens)
    if merged.oversized:
        warnings.append(f"{merged.oversized[0]} alone is larger than a shard may be; it has a file of its own")
    if source.adapter is not None and source.adapter.zero_modules:
        warnings.append(
            f"{source.adapter.zero_modules} of {len(source.adapter.pairs)} modules were never changed by training"
        )
    report: dict[str, Any] = {
        "run": str(source.folder),
        "base": str(source.base),
        **asdict(merged),
        "chat_template_sha256": template_sha256,
        "eos_token_id": generation["eos_token_id"],
        "warnings": warnings,
        "failures": [],
    }
    _write_contract(source, folder, report)
    _write_card(source, folder)
    _write_report(folder, report)
    return report


def _write_config(weights: Path, folder: Path, merged: Merged) -> None:
    """The config as it was, but for what the merge changed. Edited as JSON, so that no key of a newer or older
    transformers is lost on the way."""
    config = json.loads((weights / "config.json").read_text("utf-8"))
    config.pop("_name_or_path", None)
    for part in (config, config.get("text_config")):
        if part is None:
            continue
        keys = [key for key in ("dtype", "torch_dtype") if key in part]
        for key in keys or (["dtype"] if part is config else []):
            part[key] = merged.dtype
        if merged.untied:
            part["tie_word_embeddings"] = False
    write_json(folder / "config.json", config)


def _write_contract(source: Run, folder: Path, report: Mapping[str, Any]) -> None:
    """`extractor.json`: all that a service needs that never imports this project."""
    model = source.data["model"]
    weights = (
        {"adapter_sha256": source.adapter.sha256}
        if source.adapter
        else {"weights_sha256": _weights_sha256(source.folder)}
    )
    write_json(
        folder / "extractor.json",
        {
            **source.extractor.to_json(),
            "base_model": {"name": model["name"], "revision": model.get("revision")},
            "chat_template_sha256": report["chat_template_sha256"],
            "chat_template_kwargs": source.template_kwargs,
            "dataset": source.data.get("dataset") or [],
            "merged_from": {
                **weights,
                "quantization": source.data.get("quantization"),
                "seed": source.data.get("seed"),
            },
            "mnemosmith_version": _version(),
            "scores": source.data.get("scores"),
            "verification": report.get("proof"),
        },
    )


def _weights_sha256(folder: Path) -> dict[str, str]:
    return {file.name: sha256(file) for file in sorted(folder.glob("model*.safetensors"))}


def _version() -> str | None:
    try:
        return importlib.metadata.version("mnemosmith")
    except importlib.metadata.PackageNotFoundError:  # run from a checkout that was not installed
        return None


def prove_folder(
    source: Run, folder: Path, rows: list[Row[Any, Any]], report: dict[str, Any], *, log: Log
) -> list[str]:
    """Runs every proof, puts the figures into report, contract and card, and returns what failed."""
    from serve.verify import f1_beside_nf4, prove_files, prove_model

    dtype = str(report["dtype"])
    failures = prove_files(folder)
    proof = prove_model(
        folder, source.folder, source.base, source.extractor, source.template_kwargs, rows, dtype=dtype, log=log
    )
    figures = dict(proof.figures)
    failures += proof.failures
    if source.data.get("quantization") == "nf4" and not failures:
        compute = str(source.data.get("dtype"))
        beside = f1_beside_nf4(
            folder, source.folder, source.base, source.extractor, rows,
            dtype=dtype, compute_dtype=compute if compute in FLOATS else dtype, log=log,
        )  # fmt: skip
        figures |= beside.figures
        failures += beside.failures
    report["proof"] = figures
    report["failures"] = failures
    report["verified"] = not failures
    _write_contract(source, folder, report)
    return failures


def _write_report(folder: Path, report: Mapping[str, Any]) -> None:
    write_json(folder / REPORT, report)


def _write_card(source: Run, folder: Path) -> None:
    model, extractor = source.data["model"], source.extractor
    name = folder.name.removesuffix(".partial")
    base_name = str(model["name"])
    is_folder = Path(base_name).is_dir()  # then only its name is said: the card travels, the path does not
    license_name = _license(base_name, source.base)
    front = ["---", "library_name: transformers", "pipeline_tag: text-generation"]
    front += [f"base_model: {base_name}"] if not is_folder and ":" not in base_name else []
    front += [f"license: {license_name}"] if license_name else []
    front += ["tags:", "- mnemosmith", f"- {extractor.name}", "---"]
    scores = source.data.get("scores")
    command = serve_command(folder, name)
    command[command.index(str(folder))] = "."
    if source.adapter is None:
        method = "full fine-tuning"
    elif source.data.get("quantization"):
        method = f"LoRA on a base in {source.data['quantization']}, merged into the unquantised base"
    else:
        method = "LoRA, merged into the base"
    card = f"""# {name}: a `{extractor.name}` extractor

A small language model that does one task of long-term memory: `{extractor.name}` {extractor.version}. The prompt, the JSON
schema of the answer and the decoding settings stand in `extractor.json`; a service needs nothing else.

- Base model: {Path(base_name).name if is_folder else base_name}, revision {model.get("revision") or "not stated"}
- Licence of the base model: {license_name or "not stated in its folder; see its publisher"}
- Trained with: {method}
- Scores: {json.dumps(scores) if scores else "not evaluated in the run"}
- How it was checked: `export_report.json`

## Serving

```
{shlex.join(command)}
```

```
{curl_line(folder, extractor, name)}
```

Without `temperature` and `chat_template_kwargs` a request is decoded greedily and rendered as in training: both are this
folder's defaults. To train the model further with transformers, set `model.generation_config.temperature = None` first.
"""
    (folder / "README.md").write_text("\n".join(front) + "\n\n" + card, "utf-8")


def _license(name: str, base: Path) -> str | None:
    if name == SMOLLM2_NAME:
        return "apache-2.0"
    readme = base / "README.md"
    if readme.is_file() and (match := re.match(r"---\n(.*?)\n---", readme.read_text("utf-8", "replace"), re.DOTALL)):
        stated = re.search(r"^license:\s*(\S+)", match[1], re.MULTILINE)
        return stated[1] if stated else None
    return None


# ------------------------------------------------------------------------------------------------------ command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", type=Path, metavar="RUN", help="output folder of a finished training run")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder to write")
    parser.add_argument("--rows", type=Path, help="JSONL rows to prove the folder on (default: the run's own)")
    parser.add_argument(
        "--compare-rows", type=int, default=COMPARE_ROWS, help="how many rows to compare on (default: %(default)s)"
    )
    parser.add_argument(
        "--max-shard-size", type=_size, default=GIGABYTE, metavar="SIZE", help="such as 500MB (default: 1GB)"
    )
    parser.add_argument("--dtype", choices=list(FLOATS), help="type of the weights (default: the base model's)")
    parser.add_argument("--no-verify", dest="verify", action="store_false", help="do not prove the folder")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier export of the same name")


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(GB|MB|KB)?", text.strip(), re.IGNORECASE)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: write 1GB, 500MB or a number of bytes")
    unit = {"GB": GIGABYTE, "MB": 10**6, "KB": 10**3, "": 1}[(match[2] or "").upper()]
    return int(float(match[1]) * unit)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 exported and proven, 1 a proof failed, 2 it cannot be exported as it is."""
    try:
        report = export(
            args.run_folder,
            args.out,
            rows=args.rows,
            compare_rows=args.compare_rows,
            max_shard_size=args.max_shard_size,
            verify=args.verify,
            dtype=args.dtype,
            overwrite=args.overwrite,
        )
    except ProofFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (ExportError, InputError, ModelError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for name, value in (report.get("proof") or {}).items():
        print(f"  {name}: {value}")
    extractor = extractor_from_json(json.loads((args.out / "extractor.json").read_text("utf-8")))
    print(
        f"\nexported to {args.out}. Serve it:\n\n{serve_line(args.out)}\n\nand ask it:\n\n{curl_line(args.out, extractor)}"
    )
    return 0
