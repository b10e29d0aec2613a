"""The run folder: every response that a teacher gave, appended as it comes, so that no restart asks for it again.

    responses.jsonl   one line per reply that was received, usable or not, with its key, text, tokens and attempt
    failed.jsonl      requests that were given up, with the reason; the last line of a key counts
    asked.jsonl       keys in the order in which they were first sent, to know what was in flight at a crash
    run.json          what ran: the recipe as resolved, versions, git revision, shard
    lock              held by the one process that writes

A line is handed to the kernel before the caller goes on, so a killed process loses none of it; a thread of its own
brings the files to the disk as fast as the disk allows, so that a power failure loses at most the last moments. A last
line without its end (the disk was full, the power went) is cut off and reported.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from extractors.contract import InputError, Message

RESPONSES, FAILED, ASKED = "responses.jsonl", "failed.jsonl", "asked.jsonl"
Record = dict[str, Any]


def request_key(
    model: str, messages: Sequence[Message], sampling: Mapping[str, Any], sample: int, contract: str
) -> str:
    """Name of a request: a hash of everything that the answer may depend on. sampling: every parameter that is sent;
    sample: which of several answers to the same prompt; contract: extractor and version (`triplets 1`)."""
    parts = [model, list(messages), dict(sampling), sample, contract]
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class RunFolder:
    """Opens (or makes) a run folder for writing. `responses`: stored replies by key, in the order in which they came;
    `failed`: the last failure by key; `asked_before`: keys that an earlier process sent; `torn`: files whose last line
    had been cut short. Raises InputError where another process writes to it, or where a
    line in the middle of a file cannot be read."""

    def __init__(self, path: Path):
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._lock = (path / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise InputError(
                f"{path} is in use by another process: wait for it, or use another `output_dir`."
            ) from None
        self.torn: list[str] = []
        self.responses: dict[str, list[Record]] = {}
        self.failed: dict[str, Record] = {}
        try:
            self.asked_before = self._load()
        except InputError:
            self._lock.close()
            raise
        self._asked: set[str] = set()
        self._files = {name: _append_only(path / name) for name in (RESPONSES, FAILED, ASKED)}
        self._dirty = threading.Event()
        self._closing = False
        self._syncer = threading.Thread(target=self._sync, name="run-folder-sync", daemon=True)
        self._syncer.start()

    def _load(self) -> frozenset[str]:
        for record in self._read(RESPONSES):
            self.responses.setdefault(record["key"], []).append(record)
        for record in self._read(FAILED):
            self.failed[record["key"]] = record
        return frozenset(record["key"] for record in self._read(ASKED))

    def _read(self, name: str) -> list[Record]:
        path = self.path / name
        if not path.is_file():
            return []
        if cut := cut_torn_line(path):
            self.torn.append(f"{name} ({cut} bytes)")
        return read_records(path)

    def asked(self, key: str) -> None:
        """Say that a request is being sent."""
        if key not in self._asked and key not in self.asked_before:
            self._asked.add(key)
            self._write(ASKED, {"key": key})

    def respond(self, key: str, record: Record) -> None:
        """Store a reply."""
        record = {"key": key, **record}
        self.responses.setdefault(key, []).append(record)
        self._write(RESPONSES, record)

    def fail(self, key: str, record: Record) -> None:
        """Store why a request was given up."""
        record = {"key": key, **record}
        self.failed[key] = record
        self._write(FAILED, record)

    def _write(self, name: str, record: Record) -> None:
        data = (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "replace")
        written = os.write(self._files[name], data)
        if written != len(data):
            raise OSError(f"{self.path / name}: the disk took {written} of {len(data)} bytes.")
        self._dirty.set()

    def _sync(self) -> None:
        while not self._closing:
            self._dirty.wait()
            self._dirty.clear()
            for file in (self._files[RESPONSES], self._files[FAILED]):
                os.fsync(file)

    def close(self) -> None:
        """Bring everything to the disk and let go of the folder."""
        self._closing = True
        self._dirty.set()
        self._syncer.join()
        for file in self._files.values():
            os.fsync(file)
            os.close(file)
        self._lock.close()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _append_only(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def cut_torn_line(path: Path) -> int:
    """Cut off a last line that has no end. Returns the number of bytes that were cut, 0 where the file was whole."""
    with path.open("rb+") as file:
        end = position = file.seek(0, os.SEEK_END)
        while position > 0:
            start = max(0, position - 65536)
            file.seek(start)
            block = file.read(position - start)
            if (newline := block.rfind(b"\n")) >= 0:
                position = start + newline + 1
                break
            position = start
        if position < end:
            file.truncate(position)
        return end - position


def read_records(path: Path) -> list[Record]:
    """The records of one file of a run folder. Raises InputError that names the line that cannot be read."""
    records = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                record = json.loads(line)
                if not isinstance(record, dict) or not isinstance(record.get("key"), str):
                    raise ValueError
            except ValueError:
                raise InputError(
                    f"{path}, line {number} is not a record of a run. Take the line out (its request is asked again), "
                    "or restore the file."
                ) from None
            records.append(record)
    return records


def merge_runs(sources: Sequence[Path], out: Path) -> dict[str, int]:
    """Put the run folders of several shards together as the new folder `out`. Returns how many records of each kind.

    Raises InputError for a folder that is none, an `out` that holds a run already, a shard that is missing or given
    twice, folders of different recipes, or a request that two folders answered.
    """
    runs = {source: _run_record(source) for source in sources}
    if (out / RESPONSES).exists():
        raise InputError(f"{out} holds a run already: name a folder that does not exist.")
    if len({run["recipe_digest"] for run in runs.values()}) > 1:
        raise InputError("the folders come from different recipes: " + ", ".join(map(str, sources)))
    _check_shards(runs)
    owner: dict[str, Path] = {}
    counts: dict[str, int] = {}
    lines: dict[str, list[str]] = {RESPONSES: [], FAILED: [], ASKED: []}
    for source in sources:
        keys: set[str] = set()
        for name in lines:
            path = source / name
            if not path.is_file():
                continue
            cut_torn_line(path)
            records = read_records(path)
            keys |= {record["key"] for record in records}
            lines[name] += [json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in records]
        for key in keys:
            if key in owner:
                raise InputError(
                    f"{owner[key]} and {source} both asked request {key}: shards of one run never share one."
                )
            owner[key] = source
    out.mkdir(parents=True, exist_ok=True)
    for name, content in lines.items():
        temporary = out / f"{name}.partial"
        temporary.write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
        temporary.replace(out / name)
        counts[name.removesuffix(".jsonl")] = len(content)
    return counts


def _run_record(source: Path) -> dict[str, Any]:
    path = source / "run.json"
    if not path.is_file():
        raise InputError(f"{source} is no run folder: it has no run.json.")
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def _check_shards(runs: Mapping[Path, Mapping[str, Any]]) -> None:
    of: set[int] = set()
    seen: dict[int, Path] = {}
    for source, run in runs.items():
        if not run.get("shard"):
            raise InputError(f"{source} is a whole run, not a shard of one: there is nothing to merge it with.")
        number, count = run["shard"]
        of.add(count)
        if number in seen:
            raise InputError(f"{seen[number]} and {source} are both shard {number}/{count}.")
        seen[number] = source
    if len(of) > 1:
        raise InputError(f"the folders were cut into different numbers of shards: {', '.join(map(str, sorted(of)))}.")
    missing = [str(number) for number in range(1, of.pop() + 1) if number not in seen]
    if missing:
        raise InputError(f"shard {', '.join(missing)} is missing.")


def shard_of(group: str, count: int) -> int:
    """The shard (1 to `count`) of a person or conversation."""
    return int.from_bytes(hashlib.sha256(group.encode()).digest()[:8]) % count + 1
