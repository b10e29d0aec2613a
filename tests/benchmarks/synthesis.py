"""Synthesis against the offline teacher: is a run that is killed and restarted, under faults, the run that it should be;
and how near does the client come to the throughput that latency and concurrency allow?

    python tests/benchmarks/synthesis.py kill [--requests 2000] [--record]
    python tests/benchmarks/synthesis.py throughput [--seconds 10] [--record]

kill: `mnemosmith synthesize` on a simulated world, once without faults, once with 20% of all attempts failing in mixed ways
and the process killed (SIGKILL) at three random moments. The datasets must be equal byte for byte. Before each restart the
run folder is read, and the teacher's own log is asked which of the stored requests it was asked for again.
throughput: requests with 200 ms of latency at concurrency 64 (at most 320 a second) and 2 s at 512 (256 a second), client and
teacher on this machine, beside a plain loop of asyncio and the openai SDK's default client, in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from data_synthesis.offline.server import name_of_request  # noqa: E402
from data_synthesis.offline_teacher import offline_teacher  # noqa: E402
from data_synthesis.plan import make_plan  # noqa: E402
from data_synthesis.recipe import load_synthesis_recipe  # noqa: E402
from data_synthesis.run_folder import RunFolder, request_key  # noqa: E402
from data_synthesis.simulate import simulate  # noqa: E402
from data_synthesis.synthesize import bound_to, side_by_side  # noqa: E402
from data_synthesis.teacher import Reply, Teacher, TeacherSettings  # noqa: E402
from eval.results import record  # noqa: E402
from extractors import load_extractor  # noqa: E402
from extractors.contract import ExtractionError  # noqa: E402
from extractors.rows import read_rows  # noqa: E402

RECIPE = ROOT / "recipes/quickstart/synthesis.yaml"
COMMAND = "python tests/benchmarks/synthesis.py"
WHERE: dict[str, Any] = {"data": "simulated persona world", "model": "offline teacher"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("kill", "throughput"))
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=10, help="of one throughput measurement, about")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="draws the moments of the kills")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        simulate(Path(scratch) / "world", people=200, seed=0)
        return (kill if args.part == "kill" else throughput)(Path(scratch), args)


# -- killed and restarted ----------------------------------------------------------------------------------------------


def kill(folder: Path, args: argparse.Namespace) -> int:
    world = folder / "world"
    with offline_teacher(world, latency=0.0) as teacher:
        subprocess.run(_command(folder, teacher.url, "plain", args.requests), cwd=ROOT, check=True)

    draw = random.Random(args.seed)
    asked_twice = in_flight = 0
    checks: list[tuple[set[str], dict[str, int]]] = []
    with offline_teacher(world, latency=0.05, faults=0.2, slow=0.5, retry_after=0.2) as teacher:
        names = _names(folder, teacher.url, args.requests)
        for moment in range(3):
            process = subprocess.Popen(_command(folder, teacher.url, "killed", args.requests), cwd=ROOT)
            wanted = _answers(folder) + draw.uniform(0.15, 0.35) * len(names)
            while _answers(folder) < wanted:
                if process.poll() is not None:
                    raise SystemExit("the run ended before it could be killed: raise --requests.")
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()
            stored, sent = _state(folder / "killed-run", folder, args.requests)
            time.sleep(1.0)  # the teacher ends what it had begun
            before = teacher.stats()["by_request"]
            in_flight += len(sent - stored)
            print(
                f"kill {moment + 1}: {len(stored)} of {len(names)} answered, {len(sent - stored)} in flight", flush=True
            )
            checks.append((stored, {key: before[names[key]]["asked"] for key in stored}))
        subprocess.run(_command(folder, teacher.url, "killed", args.requests), cwd=ROOT, check=True)
        end = teacher.stats()
    for stored, asked in checks:
        asked_twice += sum(end["by_request"][names[key]]["asked"] > asked[key] for key in stored)
    same = all(
        (folder / "plain" / name).read_bytes() == (folder / "killed" / name).read_bytes()
        for name in ("train.jsonl", "dev.jsonl", "rejected.jsonl")
    )
    print(f"{len(names)} requests, {end['requests']} attempts, faults: {end['faults']}")
    print(f"identical {int(same)}; stored and asked again {asked_twice}; in flight at the kills {in_flight}")
    if args.record:
        command = f"{COMMAND} kill --requests {args.requests} --record"
        note = "20% of the attempts failed in mixed ways, the process was killed three times"
        figures = {"identical": same, "asked_twice": asked_twice, "inflight_reasked": in_flight}
        for name, value in figures.items():
            record(f"synthesis.kill_resume.{name}", float(value), n=len(names), command=command, note=note, **WHERE)
    return 0 if same and not asked_twice else 1


def _overrides(folder: Path, url: str, name: str, requests: int) -> dict[str, str]:
    return {
        "corpora": json.dumps([{"name": "world", "source": str(folder / "world")}]),
        "base_url": url,
        "rows": str(requests),  # of the train split, beside which dev is small
        "concurrency": "64",
        "output_dir": str(folder / name),
    }


def _command(folder: Path, url: str, name: str, requests: int) -> list[str]:
    words = [word for key, value in _overrides(folder, url, name, requests).items() for word in (f"--{key}", value)]
    return [sys.executable, "-m", "mnemosmith", "synthesize", str(RECIPE), "--quiet", *words]


def _names(folder: Path, url: str, requests: int) -> dict[str, str]:
    """The run folder's key of every request, and the teacher's name for it."""
    recipe = load_synthesis_recipe(RECIPE, _overrides(folder, url, "killed", requests))
    extractor = load_extractor(recipe.extractor, recipe.extractor_options)
    names = {}
    for item in make_plan(recipe, extractor).items:
        messages = extractor.messages(extractor.read_input(item.input))
        parameters = {**recipe.sampling(), **bound_to(extractor, recipe.structured_output), "seed": recipe.seed}
        key = request_key(recipe.model, messages, parameters, 0, f"{extractor.name} {extractor.version}")
        names[key] = name_of_request({"model": recipe.model, "messages": messages, **parameters})
    return names


def _answers(folder: Path) -> int:
    """Lines of the run folder's responses, while another process writes them."""
    path = folder / "killed-run/responses.jsonl"
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def _state(run: Path, folder: Path, requests: int) -> tuple[set[str], set[str]]:
    """Keys that the run folder holds a usable answer or a failure for, and keys that were sent."""
    extractor = load_extractor("triplets", load_synthesis_recipe(RECIPE).extractor_options)
    with RunFolder(run) as opened:
        done = {
            key
            for key, records in opened.responses.items()
            if any(
                r["finish_reason"] == "stop" and not isinstance(extractor.parse(r["text"]), ExtractionError)
                for r in records
            )
        }
        return done | set(opened.failed), set(opened.asked_before)


# -- throughput --------------------------------------------------------------------------------------------------------


def throughput(folder: Path, args: argparse.Namespace) -> int:
    figures: dict[str, list[float]] = {}
    for latency, concurrency in ((0.2, 64), (2.0, 512)):
        ideal = concurrency / latency
        count = round(ideal * args.seconds / concurrency) * concurrency  # whole rounds
        ratios, against_loop = [], []
        for _ in range(args.pairs):
            with offline_teacher(folder / "world", latency=latency) as teacher:
                prompts = _prompts(folder, count)
                ours = count / asyncio.run(_ours(folder / f"run-{time.time_ns()}", teacher.url, prompts, concurrency))
                loop = count / asyncio.run(_plain_loop(teacher.url, prompts, concurrency))
            ratios.append(ours / ideal)
            against_loop.append(ours / loop)
            print(
                f"{latency:g} s, concurrency {concurrency}: ideal {ideal:.0f}/s, ours {ours:.0f}/s ({ours / ideal:.2f}), "
                f"plain loop {loop:.0f}/s ({loop / ideal:.2f})",
                flush=True,
            )
        suffix = "" if latency == 0.2 else ".2s_512"
        figures[f"synthesis.throughput_vs_ideal{suffix}"] = ratios
        figures[f"synthesis.throughput_vs_plain_loop{suffix}"] = against_loop
    for name, values in figures.items():
        median = statistics.median(values)
        print(f"{name} {median:.3f} (median of {len(values)}, {min(values):.2f} to {max(values):.2f})")
        if args.record:
            record(
                name,
                median,
                n=len(values),
                interval=(min(values), max(values)),
                command=f"{COMMAND} throughput --seconds {args.seconds:g} --pairs {args.pairs} --record",
                note="client and teacher on one machine; the interval is the range of the runs",
                **WHERE,
            )
    return 0


def _prompts(folder: Path, count: int) -> list[list[Any]]:
    """Different prompts, as many as wanted: the world's rows, and rows again with another context."""
    extractor = load_extractor("triplets", {"prompt": "standard"})
    rows = [row for split in ("train", "dev", "test") for row in read_rows(folder / f"world/{split}.jsonl", extractor)]
    prompts: list[list[Any]] = []
    while len(prompts) < count:
        for row in rows[: count - len(prompts)]:
            messages = extractor.messages(row.input)
            messages[0] = {**messages[0], "content": messages[0]["content"] + " " * (len(prompts) // len(rows))}
            prompts.append(list(messages))
    return prompts


async def _ours(run: Path, url: str, prompts: list[list[Any]], concurrency: int) -> float:
    """Seconds for all prompts through the teacher's client, parser and run folder included."""
    extractor = load_extractor("triplets", {"prompt": "standard"})
    extra = bound_to(extractor, "json_schema")
    sampling = {"temperature": 0.7, "top_p": 0.9, "max_tokens": 512}
    settings = TeacherSettings("offline-teacher", url, "EMPTY", sampling, concurrency=concurrency)

    def why_not(text: str) -> str | None:
        value = extractor.parse(text)
        return str(value) if isinstance(value, ExtractionError) else None

    with RunFolder(run) as folder:
        async with Teacher(settings, folder) as teacher:

            async def one(messages: list[Any]) -> None:
                reply = await teacher.ask(messages, contract="triplets 1", usable=why_not, extra=extra)
                assert isinstance(reply, Reply), reply

            started = time.monotonic()
            stopped = await side_by_side((one(messages) for messages in prompts), concurrency)
            assert stopped is None, stopped
    return time.monotonic() - started  # the last bytes are on the disk


async def _plain_loop(url: str, prompts: list[list[Any]], concurrency: int) -> float:
    """Seconds for all prompts by what one writes first: a semaphore around the SDK's default client, nothing stored."""
    import openai

    schema = bound_to(load_extractor("triplets", {"prompt": "standard"}), "json_schema")
    room = asyncio.Semaphore(concurrency)
    async with openai.AsyncOpenAI(base_url=url, api_key="EMPTY") as client:

        async def one(messages: list[Any]) -> str | None:
            async with room:
                reply = await client.chat.completions.create(
                    model="offline-teacher", messages=messages, temperature=0.7, top_p=0.9, max_tokens=512, **schema
                )
                content: str | None = reply.choices[0].message.content
                return content

        started = time.monotonic()
        await asyncio.gather(*(one(messages) for messages in prompts))
        return time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main())
