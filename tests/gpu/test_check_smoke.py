from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("check.py")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_the_gpu_check_runs_to_its_report_on_a_tiny_shape(tmp_path: Path) -> None:
    done = run(tmp_path, "--cpu-smoke")
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout)
    assert report["compute_dtypes"] == report["input_dtypes"] == ["float32"]
    assert report["modes"]["padded"]["padding_share"] > 0 and report["modes"]["full"]["padding_share"] == 0
    for mode in ("padded", "full"):
        assert report["modes"][mode]["tokens_per_s"] > 0 and report["modes"][mode]["steps"] == 2
    assert "FlashAttention" in report["modes"]["packed"]["skipped"]


def test_without_a_gpu_the_check_says_what_it_needs_and_measures_nothing(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0 and "GPU" in done.stdout and list(tmp_path.iterdir()) == []


def test_a_smoke_run_is_never_recorded(tmp_path: Path) -> None:
    done = run(tmp_path, "--cpu-smoke", "--record")
    assert done.returncode == 2 and "--record" in done.stderr
