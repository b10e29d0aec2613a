"""Proves an exported folder: reloaded from the folder alone, it is the trained model and asks with the trained prompts.

One model is in memory at a time: first base + adapter here, then the folder in a process of its own (`serve.reload`).
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from extractors import extractor_from_json
from extractors.chat import end_of_turn
from extractors.contract import Extractor, InputError
from extractors.rows import Row
from serve.generate import Generator
from serve.merge import read_checkpoint
from serve.reload import completion_logits, prompt_ids, ready

LOGIT_ROWS = 16  # rows whose logits are compared with the trained model's
BASE_ROWS = 2  # rows whose logits are compared with the untrained base's
FP32_TOLERANCE = 1e-4  # largest absolute difference between two logits where the weights are fp32
ARGMAX_SHARE = 0.99  # of completion tokens that must keep their most likely token where weights are of a 16-bit type
F1_DROP_LIMIT = 0.05  # by which the merged model may fall behind the NF4 base + adapter that was trained

Log = Callable[[str], object]
Rows = Sequence[Row[Any, Any]]


@dataclass(frozen=True)
class Proof:
    """figures: everything measured, by name; failures: one sentence for each thing that must hold and does not."""

    figures: dict[str, Any]
    failures: list[str] = field(default_factory=list)


def prove_files(folder: Path) -> list[str]:
    """What can be seen without loading a model: contract, config, template, generation settings."""
    failures = []
    config = json.loads((folder / "config.json").read_text("utf-8"))
    if "quantization_config" in config or "quantization_config" in (config.get("text_config") or {}):
        failures.append("config.json has a quantization_config, so a server would take the weights for quantised ones.")
    try:
        extractor_from_json(json.loads((folder / "extractor.json").read_text("utf-8")))
    except InputError as error:
        failures.append(f"extractor.json is refused by its own client: {error}")
    template = (folder / "chat_template.jinja").read_text("utf-8")
    if json.loads((folder / "tokenizer_config.json").read_text("utf-8")).get("chat_template") != template:
        failures.append("chat_template.jinja and tokenizer_config.json carry different templates.")
    generation = json.loads((folder / "generation_config.json").read_text("utf-8"))
    if generation.get("do_sample") is not False or generation.get("temperature") != 0.0:
        failures.append(
            "generation_config.json samples, so a request without temperature would not be answered greedily."
        )
    return failures


def prove_model(
    folder: Path,
    run: Path,
    base: Path,
    extractor: Extractor[Any, Any],
    kwargs: Mapping[str, Any],
    rows: Rows,
    *,
    dtype: str,
    log: Log = lambda line: None,
) -> Proof:
    """Logits, prompts and tensor names of `folder` against the run that it was made from.

    rows: all of them have their prompts compared, the first LOGIT_ROWS their logits, over the gold completion and the
    end of turn; dtype: the folder's. `base` is loaded unquantised. Both models compute in the next wider type where it
    fits into memory (`_computing`), so that what is compared is the weights: W x + B A x and (W + B A) x differ by 1e-4
    in fp32 on SmolLM2, and by whole units in bfloat16, through the order of summation alone.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(run)
    messages: list[Any] = [extractor.messages(row.input) for row in rows]
    trained = [prompt_ids(tokenizer, asked, kwargs) for asked in messages]
    turn = end_of_turn(tokenizer, kwargs)
    turn = tokenizer.eos_token_id if turn is None else turn
    completions = [
        [*tokenizer.encode(extractor.render(row.gold), add_special_tokens=False, split_special_tokens=True), turn]
        for row in rows[:LOGIT_ROWS]
    ]
    with tempfile.TemporaryDirectory(prefix="mnemosmith-proof-") as scratch:
        reference, untrained, reloaded = (Path(scratch) / name for name in ("reference", "base", "reloaded"))
        for place in (reference, untrained, reloaded):
            place.mkdir()
        questions = list(zip(trained, completions, strict=False))
        compute, device = _computing(folder, dtype)
        log(f"proof: logits of {len(questions)} rows, unquantised base with the trained weights ({compute}, {device})")
        _write_reference(run, base, questions, compute, device, reference, untrained)
        log("proof: the same from the exported folder alone, in a process of its own")
        asked = {"messages": messages, "kwargs": dict(kwargs), "completions": completions}
        asked |= {"dtype": compute, "device": device}
        failure = _reload(folder, asked, reloaded)
        if failure:
            return Proof({}, [failure])
        found = json.loads((reloaded / "found.json").read_text("utf-8"))
        figures, failures = _compare_logits(reference, untrained, reloaded, completions, dtype)
    for way, said in (("plain", "without template kwargs"), ("explicit", "with training's kwargs")):
        wrong = [row.id for row, ours, theirs in zip(rows, trained, found[way], strict=True) if ours != theirs]
        if wrong:
            failures.append(
                f"prompt ids {said} differ from training's in {len(wrong)} of {len(rows)} rows, first {wrong[0]}."
            )
    for kind, names in found["faults"].items():
        failures.append(f"loading it as its own architecture left {len(names)} tensors {kind}, first {names[0]}.")
    if not found["greedy"]:
        failures.append("the reloaded model samples by default.")
    figures["computed_in"] = compute
    figures["prompts_compared"] = len(rows)
    figures["tensors"] = len(read_checkpoint(folder))
    return Proof(figures, failures)


def _computing(folder: Path, dtype: str) -> tuple[str, str]:
    """(type, device) to compute in: the type above `dtype` on the GPU or else the CPU, `dtype` itself where neither has
    room for that."""
    import psutil  # type: ignore[import-untyped]
    import torch

    wider = {"float32": "float64"}.get(dtype, "float32")
    elements = sum(tensor.elements for tensor in read_checkpoint(folder).values())
    room = {"cpu": psutil.virtual_memory().available}
    if torch.cuda.is_available():
        room = {"cuda": torch.cuda.mem_get_info()[0]} | room
    for compute in (wider, dtype):
        needed = elements * getattr(torch, compute).itemsize * 1.2 + 1e9  # and logits, activations, the adapter
        for device, free in room.items():
            if needed < free:
                return compute, device
    return dtype, "cpu"


def _write_reference(
    run: Path,
    base: Path,
    questions: Sequence[tuple[list[int], list[int]]],
    dtype: str,
    device: str,
    reference: Path,
    untrained: Path,
) -> None:
    """Logits of the trained model into `reference`, of the untrained base into `untrained`, one file a row."""
    import torch
    from transformers import AutoModelForCausalLM

    def model_in(source: Path) -> Any:
        return AutoModelForCausalLM.from_pretrained(source, dtype=getattr(torch, dtype))

    if (run / "adapter_config.json").is_file():
        from peft import PeftModel

        model: Any = ready(PeftModel.from_pretrained(model_in(base), str(run)), dtype, device)
        _write_logits(model, questions, reference)
        with model.disable_adapter():
            _write_logits(model, questions[:BASE_ROWS], untrained)
    else:
        _write_logits(ready(model_in(run), dtype, device), questions, reference)
        gc.collect()
        model = ready(model_in(base), dtype, device)
        _write_logits(model, questions[:BASE_ROWS], untrained)
    del model
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()  # the folder is loaded by another process


def _write_logits(model: Any, questions: Sequence[tuple[list[int], list[int]]], place: Path) -> None:
    from safetensors.torch import save_file

    for number, (prompt, completion) in enumerate(questions):
        save_file({"logits": completion_logits(model, prompt, completion)}, place / f"{number}.safetensors")


def _reload(folder: Path, questions: Mapping[str, Any], answers: Path) -> str | None:
    """Runs `serve.reload` on the folder, offline and from an empty directory. Returns what went wrong, or None."""
    asked = answers / "questions.json"
    asked.write_text(json.dumps(questions), "utf-8")
    script = Path(__file__).with_name("reload.py")
    with tempfile.TemporaryDirectory(prefix="mnemosmith-elsewhere-") as elsewhere:
        done = subprocess.run(
            [sys.executable, "-P", str(script), str(folder.resolve()), str(asked), str(answers)],
            cwd=elsewhere,
            env=os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        last = "\n  ".join(done.stderr.strip().splitlines()[-5:])
        return f"the folder cannot be loaded on its own:\n  {last}"
    return None


def _compare_logits(
    reference: Path, untrained: Path, reloaded: Path, completions: Sequence[list[int]], dtype: str
) -> tuple[dict[str, Any], list[str]]:
    from safetensors.torch import load_file

    tokens = same = hits = 0
    difference = change = 0.0
    for number, completion in enumerate(completions):
        ours, theirs = (load_file(place / f"{number}.safetensors")["logits"] for place in (reference, reloaded))
        best = theirs.argmax(-1)
        tokens += len(completion)
        same += int((ours.argmax(-1) == best).sum())
        hits += int((best == best.new_tensor(completion)).sum())
        difference = _larger(difference, (ours - theirs).abs().max().item())
        if number < BASE_ROWS:
            before = load_file(untrained / f"{number}.safetensors")["logits"]
            change = _larger(change, (theirs - before).abs().max().item())
    figures = {
        "rows": len(completions),
        "completion_tokens": tokens,
        "max_logit_diff": difference,
        "same_argmax": same / tokens,
        "gold_token_accuracy": hits / tokens,
        "max_logit_change_from_base": change,
    }
    failures = []
    if dtype == "float32" and not difference <= FP32_TOLERANCE:
        failures.append(
            f"logits differ by {difference:.2e} from the unquantised base with the trained weights; {FP32_TOLERANCE:.0e} is "
            "allowed in float32."
        )
    if dtype != "float32" and (same / tokens < ARGMAX_SHARE or difference != difference):
        failures.append(
            f"the most likely token is the trained model's at {same / tokens:.2%} of {tokens} completion tokens; "
            f"{ARGMAX_SHARE:.0%} is due in {dtype}."
        )
    if change == 0.0:
        failures.append("its logits equal those of the untrained base: what was trained is not in it.")
    return figures, failures


def _larger(one: float, other: float) -> float:
    """The larger of the two, where NaN counts as larger than anything: max() would let one slip through."""
    return other if other != other or other > one else one


def f1_beside_nf4(
    folder: Path,
    run: Path,
    base: Path,
    extractor: Extractor[Any, Any],
    rows: Rows,
    *,
    dtype: str,
    compute_dtype: str,
    log: Log = lambda line: None,
) -> Proof:
    """Task F1 of the NF4 base + adapter that was trained, and of the merged model, on the same rows."""
    score = importlib.import_module(f"extractors.{extractor.name}.score")
    f1: dict[str, float] = {}
    trained = {"model": base, "adapter": run, "quantization": "nf4", "dtype": compute_dtype}
    for name, loading in (("f1_nf4_adapter", trained), ("f1_merged", {"model": folder, "dtype": dtype})):
        log(f"proof: {name} on {len(rows)} rows")
        generator: Generator[Any, Any] = Generator(extractor=extractor, **loading)  # type: ignore[arg-type]
        answers = generator.generate([row.input for row in rows])
        counts = [score.count(row.input, row.gold, answer.value) for row, answer in zip(rows, answers, strict=True)]
        f1[name] = score.metrics(sum(counts[1:], counts[0]))["f1"]
        del generator
        gc.collect()
    drop = f1["f1_nf4_adapter"] - f1["f1_merged"]
    failures = []
    if drop > F1_DROP_LIMIT:
        failures.append(
            f"F1 falls from {f1['f1_nf4_adapter']:.3f} (NF4 base + adapter) to {f1['f1_merged']:.3f} on {len(rows)} rows, by "
            f"more than {F1_DROP_LIMIT}: the adapter leans on the rounding of its 4-bit base. Train it with LoRA on the "
            "unquantised base, or serve the adapter on the NF4 base."
        )
    return Proof({**f1, "f1_drop_from_nf4": drop, "f1_rows": len(rows)}, failures)
