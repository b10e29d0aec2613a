"""`mnemosmith teacher`: a teacher LLM for a world that was simulated, offline and free of charge.

    mnemosmith teacher outputs/quickstart/world --port 8000
    mnemosmith teacher outputs/quickstart/world --faults 0.2 --latency 0.2
    mnemosmith teacher outputs/quickstart/world --fault 429=0.05 --fault truncated=0.1

It serves an OpenAI-compatible endpoint and answers each extractor's prompt with the gold that the world was made with;
a real endpoint differs in its URL alone. Faults are played on demand, as real endpoints have them. The address is the
first line that it prints; `GET /stats` beside it says what was asked. A key that begins with `bad` is refused.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_synthesis.offline.faults import KINDS, RECOVERABLE, Faults, read_shares
from data_synthesis.offline.world import World
from extractors.contract import InputError

GREETING = "listening on "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = "; ".join(f"{kind}: {what}" for kind, what in KINDS.items())
    parser.add_argument("world", type=Path, help="a folder that `mnemosmith simulate` made")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (0)")
    parser.add_argument("--model", default="offline-teacher", help="the name that requests must give (offline-teacher)")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds until an answer (0.2)")
    parser.add_argument(
        "--faults",
        type=float,
        default=0.0,
        metavar="SHARE",
        help=f"share of attempts that meet a fault, evenly {', '.join(RECOVERABLE)} (0)",
    )
    parser.add_argument(
        "--fault", action="append", default=[], metavar="KIND=SHARE", help=f"share of one kind. {kinds}"
    )
    parser.add_argument("--slow", type=float, default=5.0, help="seconds that a slow answer takes longer (5)")
    parser.add_argument("--retry-after", type=float, default=1.0, help="seconds that a 429 asks to wait (1)")
    parser.add_argument("--quota", type=int, help="answers until the quota is exhausted (no end)")
    parser.add_argument(
        "--vary",
        type=float,
        default=0.0,
        help="share of answers at a temperature above 0 that differ a little from the gold (0)",
    )
    parser.add_argument("--reasoning", action="store_true", help="send `reasoning_content` with every answer")
    parser.add_argument("--seed", type=int, default=0, help="of the faults and of what varies (0)")
    parser.add_argument("--log", type=Path, help="append a JSON line per attempt here, without prompt or key")


def run(args: argparse.Namespace) -> int:
    """Serves until it is interrupted. Exit codes: 0 stopped, 1 the address cannot be had, 2 bad input."""
    from data_synthesis.offline.server import Endpoint, ServerSettings

    try:
        for name in ("latency", "slow", "retry_after", "quota", "vary"):
            if (value := getattr(args, name)) is not None and (value < 0 or (name == "vary" and value > 1)):
                raise InputError(
                    f"`--{name.replace('_', '-')}` is {value:g}: write 0 or more{', at most 1' * (name == 'vary')}."
                )
        faults = Faults(read_shares(args.faults, args.fault), args.seed)
        world = World(args.world)
        settings = ServerSettings(
            model=args.model,
            latency=args.latency,
            slow=args.slow,
            retry_after=args.retry_after,
            quota=args.quota,
            vary=args.vary,
            reasoning=args.reasoning,
            seed=args.seed,
            log=args.log,
        )
        endpoint = Endpoint(world, faults, settings)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        asyncio.run(_serve(endpoint, args.host, args.port))
    except OSError as error:
        print(
            f"error: {args.host}:{args.port} cannot be listened on ({error}): choose another `--port`.", file=sys.stderr
        )
        return 1
    return 0


async def _serve(endpoint: Any, host: str, port: int) -> None:
    from aiohttp import web

    runner = web.AppRunner(endpoint.app, access_log=None, shutdown_timeout=0.5, handle_signals=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, backlog=1024).start()
        print(f"{GREETING}http://{host}:{runner.addresses[0][1]}/v1", flush=True)
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await stop.wait()
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class OfflineTeacher:
    """A teacher that is running. url: with its /v1."""

    url: str
    process: subprocess.Popen[str]

    def stats(self) -> dict[str, Any]:
        """What GET /stats says."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url.removesuffix("/v1") + "/stats", timeout=60) as reply:
            found: dict[str, Any] = json.load(reply)
        return found


@contextlib.contextmanager
def offline_teacher(world: Path, **options: Any) -> Iterator[OfflineTeacher]:
    """Run `mnemosmith teacher` on `world` in a process of its own until the block ends.

    options: of the command, with underscores (`faults=0.2`, `retry_after=0.1`, `reasoning=True`); `fault` is a mapping of
    kinds to shares. Raises RuntimeError with what it said where it does not start.
    """
    command = [sys.executable, "-m", "data_synthesis.offline_teacher", str(world)]
    for name, value in options.items():
        if name == "fault":
            command += [part for kind, share in value.items() for part in ("--fault", f"{kind}={share}")]
        elif value is True:
            command.append(f"--{name.replace('_', '-')}")
        elif value is not None and value is not False:
            command += [f"--{name.replace('_', '-')}", str(value)]
    path = os.pathsep.join(filter(None, [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=said, text=True, env={**os.environ, "PYTHONPATH": path}
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith(GREETING):
                process.wait()
                said.seek(0)
                raise RuntimeError(
                    f"the offline teacher did not start (exit code {process.returncode}): {line}{said.read()}"
                )
            yield OfflineTeacher(line.removeprefix(GREETING).strip(), process)
        finally:
            process.terminate()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


if __name__ == "__main__":
    command_line = argparse.ArgumentParser(prog="python -m data_synthesis.offline_teacher", description=__doc__)
    command_line.formatter_class = argparse.RawDescriptionHelpFormatter
    add_arguments(command_line)
    raise SystemExit(run(command_line.parse_args()))
