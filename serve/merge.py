"""Merges a LoRA adapter into its unquantised base, one tensor at a time: W + scaling * B @ A (arXiv 2106.09685, eq. 3).

Weights are read, summed and written block of rows after block of rows, so this takes the memory of one block
(`BLOCK_ELEMENTS`), whatever the size of the model. `merge_and_unload` of PEFT holds the whole model; on a base loaded
in 4 bits it also quantises the sum again, which is why a quantised base is refused here.

The safetensors container is read and written by hand for the same reason: `safetensors.torch.save_file` takes a dict of
finished tensors, so a shard of 1 GB costs 1 GB of memory before the first byte is written, and a tensor from
`safe_open` keeps every page of it that was read mapped. The format is eight bytes of header length, a JSON header, and
the tensors' bytes where the header says; all of an output header is known before the first sum.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extractors.rows import sha256

if TYPE_CHECKING:
    import torch

BLOCK_ELEMENTS = 8 * 2**20  # of one block in fp32: 32 MB
GIGABYTE = 1_000_000_000
ITEM_BYTES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
TORCH_NAMES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip
FLOATS = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}

# What the merge below honours. Any other key of LoraConfig must stand at its default, so that a variant of LoRA that
# this file has never heard of is refused rather than merged as if it were plain LoRA.
_HONOURED = {
    "task_type", "peft_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision", "inference_mode",
    "r", "target_modules", "exclude_modules", "lora_alpha", "lora_dropout", "use_rslora", "modules_to_save",
    "init_lora_weights", "layers_to_transform", "layers_pattern", "rank_pattern", "alpha_pattern", "megatron_core",
    "qalora_group_size", "ensure_weight_tying", "eva_config",
}  # fmt: skip
_REFUSED = {
    "use_dora": "DoRA rescales each column by a trained magnitude, which W + B A does not do",
    "bias": "trained biases belong to the merge too; train with `bias: none`",
    "fan_in_fan_out": "the weights are stored transposed (GPT-2's Conv1D), a family that is not supported",
    "trainable_token_indices": "single rows of the embedding were trained; train with `modules_to_save: [embed_tokens]`",
    "target_parameters": "LoRA sits on bare parameters (mixture of experts); target linear layers instead",
    "lora_bias": "the adapter has biases of its own; train with `lora_bias: false`",
    "layer_replication": "the adapter repeats layers of its base",
}
_INITS_THAT_KEEP_THE_BASE = (True, False, None, "gaussian", "eva", "orthogonal")


class ExportError(ValueError):
    """A run folder, base or adapter that cannot be exported as it is: says why and what to do instead."""


@dataclass(frozen=True)
class Tensor:
    """A tensor where it lies on disk. start: of its bytes in the file; dtype: safetensors' name, such as "BF16"."""

    file: Path
    key: str
    start: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Pair:
    """The two factors of one module's update: A (r, in), B (out, r); scaling: alpha / r, or alpha / sqrt(r)."""

    a: Tensor
    b: Tensor
    scaling: float


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter on disk. pairs: by module name; replaced: whole tensors that were trained, by tensor name."""

    config: Mapping[str, Any]
    sha256: str
    pairs: Mapping[str, Pair]
    replaced: Mapping[str, Tensor]
    zero_modules: int


@dataclass(frozen=True)
class Part:
    """One tensor of the output: read from `source`, plus the update of `pair`, written as `dtype`."""

    name: str
    source: Tensor
    dtype: str
    pair: Pair | None = None

    @property
    def bytes(self) -> int:
        return self.source.elements * ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class Merged:
    """What a merge wrote. dtype: of most weights, torch's name; untied: lm_head got a weight of its own."""

    files: list[str]
    tensors: int
    bytes: int
    dtype: str
    merged_modules: int
    replaced_tensors: int
    untied: bool
    oversized: list[str] = field(default_factory=list)


# ---------------------------------------------------------------------------------------------------------- reading


def read_checkpoint(folder: Path) -> dict[str, Tensor]:
    """Every tensor of a single-file or sharded safetensors checkpoint, in file order, without reading weights."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        named: dict[str, str] = json.loads(index.read_text("utf-8"))["weight_map"]
        files = [folder / file for file in dict.fromkeys(named.values())]
        missing = [file.name for file in files if not file.is_file()]
        if missing:
            raise ExportError(
                f"{index} names {missing[0]}, which is not there ({len(missing)} of {len(files)} missing)."
            )
        tensors = {name: tensor for file in files for name, tensor in read_header(file).items()}
        lost = [name for name in named if name not in tensors]
        if lost:
            raise ExportError(
                f"{index} names tensor {lost[0]}, which {named[lost[0]]} does not hold ({len(lost)} such)."
            )
        return tensors
    file = folder / "model.safetensors"
    if not file.is_file():
        legacy = sorted(path.name for path in folder.glob("*.bin"))
        found = f" It holds {legacy[0]}: convert it (load it and call save_pretrained)." if legacy else ""
        raise ExportError(f"{folder} holds neither model.safetensors nor model.safetensors.index.json.{found}")
    return read_header(file)


def read_header(file: Path) -> dict[str, Tensor]:
    """The tensors that one safetensors file declares. Raises ExportError for a file too short to be one."""
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        text = stream.read(length)
    try:
        header = json.loads(text)
    except ValueError:
        raise ExportError(f"{file} is not a safetensors file, or was cut short while it was written.") from None
    header.pop("__metadata__", None)
    places = sorted(header.items(), key=lambda item: item[1]["data_offsets"][0])
    if places and places[-1][1]["data_offsets"][1] + 8 + length != file.stat().st_size:
        raise ExportError(f"{file} is {file.stat().st_size} bytes long, which is not what its header says.")
    return {
        key: Tensor(file, key, 8 + length + value["data_offsets"][0], tuple(value["shape"]), value["dtype"])
        for key, value in places
    }


def read_tensor(tensor: Tensor, first_row: int = 0, rows: int | None = None) -> torch.Tensor:
    """A tensor, or `rows` of its rows, as (rows, everything else); a vector has rows of one element."""
    import numpy
    import torch

    height = tensor.shape[0] if tensor.shape else 1
    width = tensor.elements // height if height else 0
    rows = height - first_row if rows is None else min(rows, height - first_row)
    item = ITEM_BYTES[tensor.dtype]
    start = tensor.start + first_row * width * item
    data = numpy.fromfile(tensor.file, dtype=numpy.uint8, count=rows * width * item, offset=start)
    return torch.from_numpy(data).view(getattr(torch, TORCH_NAMES[tensor.dtype])).reshape(rows, width)


def read_adapter(folder: Path) -> Adapter:
    """A PEFT LoRA adapter, with everything refused that the merge would get wrong or that was never trained."""
    config = json.loads((folder / "adapter_config.json").read_text("utf-8"))
    _check_adapter_config(folder, config)
    file = folder / "adapter_model.safetensors"
    if not file.is_file():
        raise ExportError(f"{folder} has an adapter_config.json but no adapter_model.safetensors.")
    tensors = read_header(file)
    empty = [key for key, tensor in tensors.items() if tensor.elements == 0]
    if not tensors or empty:
        raise ExportError(
            f"{file} holds {len(tensors)} tensors, {len(empty)} of them empty: the weights were not gathered when it was "
            "saved (ZeRO-3 without stage3_gather_16bit_weights_on_model_save). Save again from the checkpoint."
        )
    factors: dict[str, dict[str, Tensor]] = {}
    replaced: dict[str, Tensor] = {}
    for key, tensor in tensors.items():
        name = key.removeprefix("base_model.model.")
        if match := re.fullmatch(r"(.+)\.lora_([AB])\.weight", name):
            factors.setdefault(match[1], {})[match[2]] = tensor
        elif ".lora_" in name:
            raise ExportError(f"{file}: {key} is no factor of a linear layer. {_target_advice(config)}")
        else:  # trained whole; PEFT also saves the weight under a LoRA on lm_head, as base_layer
            replaced[name.replace(".modules_to_save.", ".").replace(".base_layer.", ".")] = tensor
    pairs = {module: _pair(file, module, found, config) for module, found in factors.items()}
    targets = config.get("target_modules")
    for target in targets if isinstance(targets, list) else ():
        if not any(module == target or module.endswith("." + target) for module in pairs):
            raise ExportError(
                f"{file} has no factors for `{target}`, which adapter_config.json lists in `target_modules`."
            )
    for target in config.get("modules_to_save") or ():
        if not any(f".{target}." in f".{name}" for name in replaced):
            raise ExportError(
                f"{file} has no tensor for `{target}`, which adapter_config.json lists in `modules_to_save`."
            )

    for key, tensor in tensors.items():
        if not _finite(read_tensor(tensor)):
            raise ExportError(f"{file}: {key} holds non-finite values. The run diverged: lower `learning_rate`.")
    zero = sum(not bool(read_tensor(pair.b).any()) for pair in pairs.values())
    if zero == len(pairs) and not replaced:
        raise ExportError(
            f"{file}: lora_B is zero in all {len(pairs)} modules, so the adapter changes nothing. The run trained on "
            "nothing: look at its loss and at the count of trained tokens."
        )
    return Adapter(config, sha256(file), pairs, replaced, zero)


def _check_adapter_config(folder: Path, config: Mapping[str, Any]) -> None:
    if config.get("peft_type") != "LORA":
        raise ExportError(f"{folder}: the adapter is {config.get('peft_type')!r}; only LoRA can be merged here.")
    neutral: tuple[Any, ...] = (None, False, "none", {}, [])
    for key, value in config.items():
        if key in _HONOURED or value in neutral:
            continue
        why = _REFUSED.get(key, "this merge does not know what it does to the weights")
        raise ExportError(f"{folder}: adapter_config.json has `{key}: {value}`: {why}.")
    if config.get("init_lora_weights") not in _INITS_THAT_KEEP_THE_BASE:
        raise ExportError(
            f"{folder}: adapter_config.json has `init_lora_weights: {config['init_lora_weights']}`, which changes the base "
            "weights before training, so the adapter does not fit the base on disk. Convert it with PEFT "
            "(save_pretrained with path_initial_model_for_weight_conversion) or train with `init_lora_weights: true`."
        )


def _target_advice(config: Mapping[str, Any]) -> str:
    return (
        f"`target_modules` is {config.get('target_modules')}: target linear layers (all-linear leaves embeddings out)."
    )


def _pair(file: Path, module: str, found: Mapping[str, Tensor], config: Mapping[str, Any]) -> Pair:
    if set(found) != {"A", "B"}:
        raise ExportError(f"{file}: {module} has lora_{next(iter(found))} only.")
    a, b = found["A"], found["B"]
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != b.shape[1]:
        raise ExportError(
            f"{file}: {module} has factors of shape {a.shape} and {b.shape}; only linear layers can be merged."
        )
    rank = int(_by_pattern(config.get("rank_pattern"), module, config["r"]))
    if rank != a.shape[0]:
        raise ExportError(f"{file}: {module} has rank {a.shape[0]}, adapter_config.json says {rank}.")
    alpha = float(_by_pattern(config.get("alpha_pattern"), module, config["lora_alpha"]))
    return Pair(a, b, alpha / math.sqrt(rank) if config.get("use_rslora") else alpha / rank)


def _by_pattern(patterns: Mapping[str, Any] | None, module: str, default: Any) -> Any:
    """PEFT's rule for rank_pattern and alpha_pattern: the first pattern that matches the end of the module's name."""
    for pattern, value in (patterns or {}).items():
        if re.match(rf"(.*\.)?({pattern})$", module):
            return value
    return default


# --------------------------------------------------------------------------------------------------------- planning


def plan(base: Path, adapter: Adapter | None, dtype: str | None) -> tuple[list[Part], bool]:
    """Every tensor of the output in the base's order, and whether lm_head must be untied from the embedding.

    dtype: what to cast the weights to ("float32", "bfloat16", "float16"), None to keep each tensor's own. Tensors that
    the base keeps in another precision than most of its weights stay as they are. Raises ExportError where the adapter
    names a module that the base does not have, or not in that shape.
    """
    tensors = read_checkpoint(base)
    unknown = {tensor.dtype for tensor in tensors.values()} - set(ITEM_BYTES)
    if unknown:
        raise ExportError(
            f"{base} holds weights of type {sorted(unknown)[0]}: it is quantised; export from the original."
        )
    main = main_dtype(tensors)
    sources = dict(tensors)
    dtypes = {name: tensor.dtype for name, tensor in tensors.items()}
    pairs: dict[str, Pair] = {}
    tie = _trained_tie(base, tensors, adapter) if adapter else None
    if tie is not None and tie.apart:
        sources[tie.head] = tensors[tie.embedding]
        dtypes[tie.head] = dtypes[tie.embedding]
    if adapter is not None:
        for name, tensor in adapter.replaced.items():
            if tie is not None and name == tie.head and not tie.apart:
                continue  # the embedding it equals carries it
            place = _find(name, sources, base)
            if sources[place].shape != tensor.shape:
                raise ExportError(
                    f"{base}: {place} has shape {sources[place].shape}, the trained one {tensor.shape}: the vocabulary was "
                    "resized in training, which the exported config would not know. Save the resized base first."
                )
            sources[place] = tensor
        for module, pair in adapter.pairs.items():
            place = _find(f"{module}.weight", sources, base)
            expected = (pair.b.shape[0], pair.a.shape[1])
            if sources[place].shape != expected:
                raise ExportError(
                    f"{base}: {place} has shape {sources[place].shape}, its update {expected}: another base?"
                )
            pairs[place] = pair
    parts = [
        Part(name, source, FLOATS[dtype] if dtype and dtypes[name] == main else dtypes[name], pairs.get(name))
        for name, source in sources.items()
    ]
    return parts, tie is not None and tie.apart


def main_dtype(tensors: Mapping[str, Tensor]) -> str:
    """The type that most elements of a checkpoint have, safetensors' name."""
    sizes: Counter[str] = Counter()
    for tensor in tensors.values():
        sizes[tensor.dtype] += tensor.elements
    return sizes.most_common(1)[0][0]


def _find(name: str, tensors: Mapping[str, Tensor], base: Path) -> str:
    """Where the base keeps a tensor of the trained model. Vision-language bases (Qwen3.5) whose text half was trained
    keep it under `language_model`; the names on disk stay, since they are what `architectures` names."""
    inner = name.removeprefix("model.")
    for place in (name, f"model.language_model.{inner}", f"language_model.{name}"):
        if place in tensors:
            return place
    raise ExportError(
        f"{base} has no tensor {name}, which the adapter changes: this is not the base it was trained on."
    )


def _embedding_names(base: Path) -> tuple[str, str]:
    """Names of the input embedding's and the output layer's weight, as the model's class has them."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(base))
    names = {id(module): name for name, module in model.named_modules()}
    return f"{names[id(model.get_input_embeddings())]}.weight", f"{names[id(model.get_output_embeddings())]}.weight"


@dataclass(frozen=True)
class _Tie:
    """A tied pair that training touched. head: lm_head's name, which is not on disk; apart: the two now differ."""

    head: str
    embedding: str
    apart: bool


def _trained_tie(base: Path, tensors: Mapping[str, Tensor], adapter: Adapter) -> _Tie | None:
    """What training did to an lm_head that the base ties to its embedding; None where it touched neither or none is
    tied.

    Training only one of the two, or LoRA on lm_head, gives them different values: exported tied, one of the two would
    be lost without a word.
    """
    if all(re.search(r"\.\d+\.", name) for name in (*adapter.pairs, *adapter.replaced)):
        return None  # nothing outside the numbered layers was trained
    embedding, head = _embedding_names(base)
    if head in tensors:
        return None
    place = _find(embedding, tensors, base)
    lora_on_head = head.removesuffix(".weight") in adapter.pairs
    trained = {name for name in (embedding, head) if name in adapter.replaced}
    if not trained and not lora_on_head:
        return None
    if adapter.config.get("ensure_weight_tying"):
        if lora_on_head:
            raise ExportError(
                "`ensure_weight_tying` with LoRA on lm_head cannot be merged: leave lm_head out of the targets."
            )
        return _Tie(head, place, apart=False)
    same = len(trained) == 2 and _same(adapter.replaced[embedding], adapter.replaced[head])
    return _Tie(head, place, apart=lora_on_head or not same)


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool(read_tensor(one).equal(read_tensor(other)))


# ---------------------------------------------------------------------------------------------------------- writing


def merge(
    base: Path,
    adapter: Adapter | None,
    out: Path,
    *,
    max_shard_bytes: int = GIGABYTE,
    dtype: str | None = None,
    progress: Callable[[str], object] = lambda line: None,
) -> Merged:
    """Writes the merged weights of `base` and `adapter` (None: only copies) into `out`, sharded, with an index.

    The sum is computed in fp32 and cast back. A tensor larger than a shard gets a file of its own: the format cannot
    divide it. Raises ExportError for non-finite results.
    """
    parts, untied = plan(base, adapter, dtype)
    shards = _shards(parts, max_shard_bytes)
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for number, shard in enumerate(shards, start=1):
        name = "model.safetensors" if len(shards) == 1 else f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        _write_shard(out / name, shard)
        files.append(name)
        progress(f"wrote {name} ({sum(part.bytes for part in shard) / GIGABYTE:.2f} GB)")
    total = sum(part.bytes for part in parts)
    if len(shards) > 1:
        weight_map = {part.name: file for file, shard in zip(files, shards, strict=True) for part in shard}
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
        (out / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n", "utf-8")
    sizes: Counter[str] = Counter()
    for part in parts:
        sizes[part.dtype] += part.source.elements
    return Merged(
        files=files,
        tensors=len(parts),
        bytes=total,
        dtype=TORCH_NAMES[sizes.most_common(1)[0][0]],
        merged_modules=sum(part.pair is not None for part in parts),
        replaced_tensors=len(adapter.replaced) if adapter else 0,
        untied=untied,
        oversized=[part.name for part in parts if part.bytes > max_shard_bytes],
    )


def _shards(parts: list[Part], max_bytes: int) -> list[list[Part]]:
    shards: list[list[Part]] = [[]]
    size = 0
    for part in parts:
        if shards[-1] and size + part.bytes > max_bytes:
            shards.append([])
            size = 0
        shards[-1].append(part)
        size += part.bytes
    return shards


def _write_shard(path: Path, parts: list[Part]) -> None:
    parts = sorted(parts, key=lambda part: -ITEM_BYTES[part.dtype])  # wide types first keeps every tensor aligned
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for part in parts:
        header[part.name] = {
            "dtype": part.dtype,
            "shape": list(part.source.shape),
            "data_offsets": [offset, offset + part.bytes],
        }
        offset += part.bytes
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with path.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little"))
        stream.write(text)
        for part in parts:
            for block in _blocks(part):
                stream.write(memoryview(block.numpy()))


def _finite(values: torch.Tensor) -> bool:
    """Whether all are finite: NaN and infinity both show in the extremes, which are ten times as fast as isfinite()."""
    return values.numel() == 0 or all(bool(extreme.isfinite()) for extreme in values.aminmax())


def _blocks(part: Part) -> Iterator[torch.Tensor]:
    """The output tensor's bytes, block of rows after block of rows, as flat uint8 tensors."""
    import torch

    dtype = getattr(torch, TORCH_NAMES[part.dtype])
    height = part.source.shape[0] if part.source.shape else 1
    rows = max(1, BLOCK_ELEMENTS * height // max(1, part.source.elements))
    a = read_tensor(part.pair.a).float() if part.pair is not None else None
    for start in range(0, height, rows):
        block = read_tensor(part.source, start, rows)
        if part.pair is not None and a is not None:
            b = read_tensor(part.pair.b, start, rows).float()
            block = torch.addmm(block.float(), b, a, alpha=part.pair.scaling)
        block = block.to(dtype)
        if not _finite(block):
            raise ExportError(
                f"{part.name} is not finite in {part.dtype} (rows {start} to {start + block.shape[0]}): the base is "
                "damaged, or the sum leaves the range of the type; export with `--dtype bfloat16` or `float32`."
            )
        yield block.reshape(-1).view(torch.uint8)
