"""The run record (`run.json`): what a run was made of, written before step 0; and what may resume it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from extractors import Extractor, InputError
from recipes.loader import Recipe
from recipes.provenance import git_revision, versions

# What may differ between the two halves of a resumed run: how long, how often, where to; never what is learnt.
FREE_ON_RESUME = re.compile(
    r"num_train_epochs|max_steps|output_dir|run_name|report_to|push_to_hub|hub_.*|logging_.*|save_.*|eval_.*|dataloader_.*"
    r"|resume_from_checkpoint|disable_tqdm|load_best_model_at_end|metric_for_best_model|per_device_eval_batch_size"
)


class RunError(RuntimeError):
    """A run that failed or must not go on; the message says what to change. Exit code 1."""


def run_record(
    recipe: Recipe,
    extractor: Extractor[Any, Any],
    model_path: str,
    *,
    template: str,
    data: list[dict[str, Any]],
    statistics: dict[str, Any],
    world_size: int,
) -> dict[str, Any]:
    """The record of a run that is about to start. Secrets are no recipe keys, except a hub token, which is left out."""
    import hashlib

    values = {key: value for key, value in recipe.values.items() if "token" not in key or not isinstance(value, str)}
    return {
        "status": "running",
        "extractor": extractor.to_json(),
        "model": {
            "name": values["model_name_or_path"],
            "path": model_path,
            "revision": values.get("model_revision", "main"),
        },
        "dtype": values.get("dtype", "float32"),
        "quantization": "nf4" if values.get("load_in_4bit") else "int8" if values.get("load_in_8bit") else None,
        "chat_template_kwargs": dict(extractor.decoding.chat_template_kwargs),
        "chat_template_sha256": hashlib.sha256(template.encode()).hexdigest(),
        "dataset": data,
        "tokens": statistics,
        "seed": values.get("seed", 42),
        "world_size": world_size,
        "versions": versions(),
        "git_revision": git_revision(short=False),
        "recipe": values,
    }


def write_record(folder: Path, record: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / "run.json.partial"
    temporary.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(folder / "run.json")


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of a run folder; None where there is none."""
    path = folder / "run.json"
    if not path.is_file():
        return None
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def last_checkpoint(output: Path, wanted: str | bool | None) -> Path | None:
    """The checkpoint to resume from. wanted: the recipe's `resume_from_checkpoint`; unset or true takes the last one when
    there is one, a path must exist, false refuses to train over an earlier run's checkpoints."""
    found = sorted(output.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    complete = [path for path in found if (path / "trainer_state.json").is_file()]
    if isinstance(wanted, str) and wanted.lower() not in ("true", "false"):
        path = Path(wanted)
        if not (path / "trainer_state.json").is_file():
            raise InputError(
                f"`resume_from_checkpoint` is {wanted}, which is no checkpoint folder; "
                + (f"{output} holds {', '.join(p.name for p in complete)}." if complete else f"{output} holds none.")
            )
        return path
    if wanted is False or str(wanted).lower() == "false":
        if complete:
            raise InputError(
                f"`resume_from_checkpoint` is false, but {output} holds {complete[-1].name} of an earlier run: choose another "
                "`output_dir`, delete that one, or leave `resume_from_checkpoint` unset to go on with it."
            )
        return None
    return complete[-1] if complete else None


def check_resumable(recipe: Recipe, output: Path) -> None:
    """Refuse to resume with a recipe that would learn something else than the run's own."""
    record = read_record(output)
    if record is None:
        return
    before, now = record["recipe"], recipe.values
    changed = [
        key
        for key in sorted(set(before) | set(now))
        if before.get(key) != now.get(key) and not FREE_ON_RESUME.fullmatch(key) and "token" not in key
    ]
    if changed:
        shown = "; ".join(f"`{key}` was {before.get(key)!r} and is {now.get(key)!r}" for key in changed)
        raise InputError(
            f"{output} holds checkpoints of another recipe: {shown}. Put the values back to go on, or choose another "
            "`output_dir`."
        )


def check_same_data(output: Path, split: str, sha256s: list[str]) -> None:
    """Refuse to resume on rows other than those that the run began with: the order of rows seen would be another's."""
    record = read_record(output)
    before = [part["sha256"] for part in record["dataset"] if part["split"] == split] if record else sha256s
    if before != sha256s:
        raise InputError(
            f"{output} holds checkpoints that were trained on other rows: split {split!r} has changed since. Bring the old "
            "files back to go on, or choose another `output_dir`."
        )
