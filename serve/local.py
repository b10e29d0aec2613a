"""A real OpenAI-compatible server on this machine without vLLM: `transformers serve` with one exported folder.

Good for a look at an export on a CPU. It honours the folder's chat template and generation config, ignores
`response_format` and generates one request at a time: vLLM is what serves in earnest (`serve.vllm`).
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from extractors.contract import InputError


class ServerFailed(RuntimeError):
    """A server process that ended, or was not ready in time: carries the end of its log."""


@dataclass(frozen=True)
class Server:
    """A running server. url: up to /v1; model: the name that requests must give; seconds: how long the start took."""

    url: str
    model: str
    seconds: float
    log: Path


@contextlib.contextmanager
def local_server(
    folder: Path, port: int | None = None, *, threads: int | None = None, ready_within: float = 300.0
) -> Iterator[Server]:
    """`transformers serve` of `folder` on the loopback interface until the block ends. port: None takes a free one.
    Raises ServerFailed, or InputError for a folder whose name the command cannot take."""
    folder = Path(folder).resolve()
    port = port or free_port()
    if "@" in folder.name:
        raise InputError(
            f"{folder.name!r}: `transformers serve` reads what follows an @ as a revision; rename the folder."
        )
    name = folder.name  # found from the folder's parent, so that requests name the model and not a path
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", name]
    command += ["--host", "127.0.0.1", "--port", str(port), "--log-level", "warning"]
    environment = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_UPDATE_CHECK": "1"} | (
        {"OMP_NUM_THREADS": str(threads)} if threads else {}
    )
    with running(command, port, cwd=folder.parent, environment=environment, ready_within=ready_within) as (
        seconds,
        log,
    ):
        yield Server(f"http://127.0.0.1:{port}/v1", name, seconds, log)


@contextlib.contextmanager
def running(
    command: Sequence[str],
    port: int,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    ready_within: float,
) -> Iterator[tuple[float, Path]]:
    """A server process: waits until /health answers 200 on the loopback `port`, yields (seconds that it took, log
    file), and stops the process at the end of the block. Raises ServerFailed with the end of the log."""
    with tempfile.TemporaryDirectory(prefix="mnemosmith-server-") as scratch:
        log = Path(scratch) / "server.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield _wait_until_ready(process, port, ready_within, log), log
        finally:
            _stop(process)


def free_port() -> int:
    """A port of the loopback interface that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, ready_within: float, log: Path) -> float:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy knows nothing of our loopback
    start = time.monotonic()
    while time.monotonic() - start < ready_within:
        if process.poll() is not None:
            raise ServerFailed(f"the server ended with exit status {process.returncode}; its log ends:\n{_tail(log)}")
        if _healthy(opener, port):
            return time.monotonic() - start
        time.sleep(0.25)
    raise ServerFailed(f"the server was not ready within {ready_within:g} s; its log ends:\n{_tail(log)}")


def _healthy(opener: urllib.request.OpenerDirector, port: int) -> bool:
    try:
        with opener.open(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except (OSError, http.client.HTTPException):  # not up yet; HTTP errors are OSErrors
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and its children, which are in a session of their own."""
    for sign, patience in ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _tail(log: Path, lines: int = 30) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
