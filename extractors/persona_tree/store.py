"""The versioned store of PersonaTrees: one JSONL file per person in a folder, one line per chunk, nothing ever rewritten.

    {"version": 3, "chunk": "s2-c1", "time": "2026-01-08T12:00:00Z", "person": "mia",
     "schema": {"name": "quickstart", "version": "1", "sha256": "..."},
     "applied": [{"index": 0, "op": "UPDATE", "path": "...", "value": "...", "before": "...", "after": "...", ...}],
     "rejected": [{"index": 1, "op": "ADD", "path": "...", "value": "...", "reason": "unknown_path", ...}]}

Version N is the tree after the first N chunks, version 0 the empty one; a chunk that changed nothing is a version, too. A
line is on the disk before `apply` returns. Whatever ends the process before that costs at most that one chunk: a last
line that is not whole is cut off when the file is opened again, and reported (`torn`). A chunk id that is there already
is not applied again, whatever operations come with it: the caller gets what was done the first time, so that one who does
not know whether a chunk got through can send it again.

A file belongs to one person and one schema, as its lines say. Its name is the person's id in letters that every file
system keeps apart (`file_name`). One process writes to a file at a time; others can read it meanwhile (`read_only`).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from extractors.contract import InputError
from extractors.persona_tree.executor import Applied, Compress, Execution, Rejected, carry_out, execute
from extractors.persona_tree.operations import Operation
from extractors.persona_tree.schema import Schema
from extractors.persona_tree.tree import Change, PersonaTree, Tombstone

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_LONGEST_NAME = 120  # characters of an encoded person id; file systems take 255


@dataclass(frozen=True)
class Record:
    """One line: a chunk and what it did. time: ISO 8601, UTC. Paths and values in the operations may be shortened
    (`Applied.to_json`); before and after are whole."""

    version: int
    chunk_id: str
    time: str
    applied: tuple[Applied, ...]
    rejected: tuple[Rejected, ...]


@dataclass(frozen=True)
class Edit:
    """One change of one leaf: what it held before and from `version` on, by which chunk, when."""

    version: int
    chunk_id: str
    time: str
    applied: Applied


def file_name(person: str) -> str:
    """The name of a person's file: a-z, 0-9 and inner hyphens as they are, any other byte as _ and two digits. Different
    ids have different names, also where a file system does not tell upper from lower case. An id that would make a long
    name ends in ~ and its SHA-256. Raises InputError for an empty id and for one that is no Unicode text."""
    data = _utf8(person, "person")
    name = "".join(
        char if char in _PLAIN or (char == "-" and place > 0) else f"_{ord(char):02x}"
        for place, char in enumerate(data.decode("latin-1"))
    )
    if len(name) > _LONGEST_NAME:
        name = f"{name[:40]}~{hashlib.sha256(data).hexdigest()}"
    return name + ".jsonl"


def persons(folder: Path) -> tuple[str, ...]:
    """Ids of the persons that have a tree in `folder`, sorted."""
    found = []
    for path in folder.glob("*.jsonl"):
        with path.open("rb") as file:
            line = file.readline()
        if line.endswith(b"\n"):
            found.append(_line(line, f"{path}, line 1")["person"])
    return tuple(sorted(found))


class TreeStore:
    """The versions of one person's tree. `tree`: the current one; `records`: all lines; `torn`: how many bytes of an
    unfinished last line were cut off (read only: passed over).

    Raises InputError where another process writes to the file, where it belongs to another person or schema, where a line
    cannot be read or does not follow from those before it, and, read only, where there is no file.
    """

    def __init__(self, folder: Path, person: str, schema: Schema, read_only: bool = False):
        self.path = folder / file_name(person)
        self.person, self.schema = person, schema
        self._writing = threading.Lock()
        self._file: int | None = None
        if not read_only:
            self._file = _open(self.path)
        elif not self.path.is_file():
            raise InputError(f"{folder} holds no tree of {person!r:.80}.")
        try:
            lines, self.torn = self._read()
            self.records: tuple[Record, ...] = self._records(lines)
            self.tree: PersonaTree = self.tree_at(len(self.records))
        except BaseException:
            self.close()
            raise
        self._chunks = {record.chunk_id: record for record in self.records}

    # Writing

    def apply(
        self,
        chunk_id: str,
        operations: Sequence[Operation],
        *,
        time: datetime | None = None,
        compress: Compress | None = None,
    ) -> Execution:
        """Carry out a chunk's operations and store what they did. time: of the chunk, with a time zone; None is now.

        A chunk id that is stored already changes nothing: the result is what was done then (`repeated`), with the tree of
        that version. Raises InputError for an empty chunk id, a time without a zone, and a store that is closed or read
        only; OSError where the disk does not take the line, with file and tree as they were.
        """
        _utf8(chunk_id, "chunk_id")
        if time is not None and time.tzinfo is None:
            raise InputError(f"`time` is {time.isoformat()}: write it with its time zone.")
        stamp = (time or datetime.now(UTC)).astimezone(UTC).isoformat().replace("+00:00", "Z")
        with self._writing:
            if (old := self._chunks.get(chunk_id)) is not None:
                return Execution(self.tree_at(old.version), old.applied, old.rejected, chunk_id, repeated=True)
            if self._file is None:
                raise InputError(f"{self.path} is closed, or open for reading only.")
            done = execute(self.tree, operations, chunk_id, compress)
            record = Record(done.tree.version, chunk_id, stamp, done.applied, done.rejected)
            self._append(record)
            self.tree, self.records = done.tree, (*self.records, record)
            self._chunks[chunk_id] = record
        return done

    def _append(self, record: Record) -> None:
        data = {
            "version": record.version,
            "chunk": record.chunk_id,
            "time": record.time,
            "person": self.person,
            "schema": _about(self.schema),
            "applied": [each.to_json() for each in record.applied],
            "rejected": [each.to_json() for each in record.rejected],
        }
        line = (json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
        assert self._file is not None
        size = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, line)
            if written != len(line):
                raise OSError(f"{self.path}: the disk took {written} of {len(line)} bytes.")
            os.fsync(self._file)
        except BaseException:
            # Whether the line is there is not known: it goes, and where even that fails, so does this store.
            try:
                os.ftruncate(self._file, size)
                os.fsync(self._file)
            except OSError:
                self.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> TreeStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Reading back

    def tree_at(self, version: int) -> PersonaTree:
        """The tree after the first `version` chunks. Raises InputError for a version that there is not."""
        if isinstance(version, bool) or not isinstance(version, int) or not 0 <= version <= len(self.records):
            raise InputError(f"there is no version {version!r:.40} of this tree: it has 0 to {len(self.records)}.")
        values: dict[str, str] = {}
        tombstones: dict[str, Tombstone] = {}
        for record in self.records[:version]:
            carry_out(values, tombstones, record.applied, record.version)
        return PersonaTree(self.schema, values, version, tombstones)

    def diff(self, first: int, second: int) -> tuple[Change, ...]:
        """The leaves that differ between two versions."""
        return self.tree_at(first).diff(self.tree_at(second))

    def history(self, path: str) -> tuple[Edit, ...]:
        """What was done to a leaf, oldest first; the leaf by any of its names. Raises InputError for no leaf."""
        known = self.schema.canonical(path) or (path if self.schema.may_extend(path) else None)
        if known is None:
            raise InputError(f"{path!r:.80} is no leaf of the schema {self.schema.name}.")
        return tuple(
            Edit(record.version, record.chunk_id, record.time, each)
            for record in self.records
            for each in record.applied
            if each.operation.path == known and each.effect != "unchanged"
        )

    # The file

    def _read(self) -> tuple[list[bytes], int]:
        """The whole lines, and the size of what stands after them, which is cut off where this store writes."""
        data = self.path.read_bytes()
        *lines, rest = data.split(b"\n")
        torn = len(rest)
        # After a power failure, blocks that never reached the disk read as zeros.
        if not rest and lines and b"\0" in lines[-1]:
            torn = len(lines.pop()) + 1
        if torn and self._file is not None:
            os.ftruncate(self._file, len(data) - torn)
            os.fsync(self._file)
        return lines, torn

    def _records(self, lines: Sequence[bytes]) -> tuple[Record, ...]:
        records: list[Record] = []
        values: dict[str, str] = {}
        chunks: set[str] = set()
        for number, line in enumerate(lines, start=1):
            where = f"{self.path}, line {number}"
            data = _line(line, where)
            if data["person"] != self.person:
                raise InputError(f"{where} is of the person {data['person']!r:.80}, not of {self.person!r:.80}.")
            if data["schema"] != _about(self.schema):
                raise InputError(
                    f"{where} was written with the schema {_named(data['schema'])}, and is opened with "
                    f"{_named(_about(self.schema))}: open it with the one it was written with."
                )
            try:
                record = _record(data)
                follows = record.version == number and record.chunk_id not in chunks
                for each in record.applied:
                    follows = follows and values.get(each.operation.path) == each.before
                if not follows:
                    raise InputError(f"{where} does not follow from the lines before it: restore the file.")
                carry_out(values, {}, record.applied, number)
            except (KeyError, TypeError) as error:
                raise InputError(f"{where} is no version of a tree ({error}): restore the file.") from None
            chunks.add(record.chunk_id)
            records.append(record)
        return tuple(records)


def _open(path: Path) -> int:
    """The file for appending, locked. Memories are private: nobody else may read them."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = not path.exists()
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if new:
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)  # else the file's name may be lost with the power
            os.close(folder)
    except BlockingIOError:
        os.close(file)
        raise InputError(f"{path} is in use by another process: one writes at a time; open it read only.") from None
    except BaseException:
        os.close(file)
        raise
    return file


def _line(line: bytes, where: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
        if not isinstance(data, dict) or not isinstance(data["person"], str) or not isinstance(data["schema"], dict):
            raise ValueError
    except (ValueError, KeyError):
        raise InputError(f"{where} is no version of a tree: restore the file.") from None
    return data


def _record(data: Mapping[str, Any]) -> Record:
    applied = tuple(
        Applied(item["index"], _operation(item), item.get("before"), item.get("after"), item.get("compression", "none"))
        for item in data["applied"]
    )
    rejected = tuple(
        Rejected(item["index"], _operation(item), item["reason"], item["detail"], item["excerpt"])
        for item in data["rejected"]
    )
    return Record(data["version"], data["chunk"], data["time"], applied, rejected)


def _operation(item: Mapping[str, Any]) -> Operation:
    return Operation(item["op"], item.get("path", ""), item.get("value"))


def _about(schema: Schema) -> dict[str, str]:
    return {"name": schema.name, "version": schema.version, "sha256": schema.sha256}


def _named(about: Mapping[str, Any]) -> str:
    return f"{about.get('name')} {about.get('version')} (sha256 {str(about.get('sha256')):.12})"


def _utf8(text: str, field: str) -> bytes:
    try:
        data = text.encode() if isinstance(text, str) else b""
    except UnicodeEncodeError:
        data = b""
    if not data:
        raise InputError(f"`{field}` is {text!r:.80}: write a text that is not empty, without lone surrogates.")
    return data
