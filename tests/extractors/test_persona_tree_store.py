"""Versions on disk: read back, never half a write, never another person's."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extractors import InputError
from extractors.persona_tree import NO_OP, Operation, load_schema
from extractors.persona_tree.executor import execute
from extractors.persona_tree.store import TreeStore, file_name, persons
from extractors.persona_tree.tree import Change, PersonaTree, Tombstone
from tests.extractors.halumem_replay import sessions_as_operations
from tests.extractors.hostile import GROUP, OPEN, QUICKSTART, operation_lists
from tests.extractors.test_persona_tree_executor import SLICES

CHECKOUT = Path(__file__).resolve().parents[2]
NAME, WORK = f"{GROUP}.Name", f"{GROUP}.Occupation"
CHUNKS = (
    [Operation("ADD", NAME, "Mia"), Operation("ADD", WORK, "nurse")],
    [Operation("UPDATE", WORK, "head nurse"), Operation("ADD", "Moon", "x" * 5000)],
    [NO_OP],
    [Operation("DELETE", WORK)],
)


def filled(folder: Path, person: str = "mia") -> TreeStore:
    store = TreeStore(folder, person, QUICKSTART)
    for number, operations in enumerate(CHUNKS, start=1):
        store.apply(f"c{number}", operations)
    return store


def file_of(folder: Path, person: str = "mia") -> Path:
    return folder / file_name(person)


def test_every_version_can_be_read_back_and_compared(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        trees = [PersonaTree(QUICKSTART)]
        for operations in CHUNKS:
            trees.append(execute(trees[-1], operations).tree)
        assert [store.tree_at(version) for version in range(5)] == trees
    with TreeStore(tmp_path, "mia", QUICKSTART) as store:
        assert [store.tree_at(version) for version in range(5)] == trees and store.tree == trees[-1] and store.torn == 0
        assert store.diff(1, 2) == (Change(WORK, "nurse", "head nurse"),)
        assert store.diff(0, 4) == (Change(NAME, None, "Mia"),)
        assert store.tree.tombstones == {WORK: Tombstone("head nurse", 4)}
        for version in (-1, 5, True, "1"):
            with pytest.raises(InputError, match="0 to 4"):
                store.tree_at(version)  # type: ignore[arg-type]


def test_the_history_of_a_leaf_tells_values_chunks_and_times(tmp_path: Path) -> None:
    store = TreeStore(tmp_path, "mia", QUICKSTART)
    store.apply("c1", CHUNKS[0], time=datetime(2026, 1, 8, 14, tzinfo=timezone(timedelta(hours=2))))
    store.apply("c2", [Operation("DELETE", WORK)])
    first, second = store.history("occupation")
    assert (first.version, first.chunk_id, first.time) == (1, "c1", "2026-01-08T12:00:00Z")
    assert (first.applied.before, first.applied.after) == (None, "nurse")
    assert (second.applied.effect, second.applied.before) == ("deleted", "nurse") and second.time.endswith("Z")
    assert store.history("Behavioural.Lifestyle.Liked_Food") == ()
    with pytest.raises(InputError, match="no leaf"):
        store.history("Moon")


def test_a_line_says_what_came_in_what_it_did_and_under_which_schema(tmp_path: Path) -> None:
    filled(tmp_path)
    lines = [json.loads(line) for line in file_of(tmp_path).read_text(encoding="utf-8").splitlines()]
    assert [(line["version"], line["chunk"], line["person"]) for line in lines] == [
        (number, f"c{number}", "mia") for number in range(1, 5)
    ]
    assert {line["schema"]["sha256"] for line in lines} == {QUICKSTART.sha256}
    assert lines[1]["applied"][0] == {
        **{"index": 0, "op": "UPDATE", "path": WORK, "value": "head nurse", "effect": "replaced"},
        **{"before": "nurse", "after": "head nurse", "swapped": False},
    }
    refused = lines[1]["rejected"][0]
    assert (refused["op"], refused["path"], refused["reason"], len(refused["value"])) == (
        "ADD",
        "Moon",
        "unknown_path",
        2000,
    )
    assert oct(file_of(tmp_path).stat().st_mode)[-3:] == "600"


def test_a_chunk_that_comes_twice_is_applied_once(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        done = store.apply("c1", [Operation("DELETE", NAME)])
    with TreeStore(tmp_path, "mia", QUICKSTART) as store:
        again = store.apply("c1", [Operation("DELETE", NAME)])
        assert done == again and again.repeated and again.tree == store.tree_at(1)
        assert [each.operation for each in again.applied] == CHUNKS[0]
        assert store.tree.version == 4 and store.tree.values[NAME] == "Mia"
        assert not store.apply("c5", [NO_OP]).repeated


def test_a_file_cut_off_anywhere_opens_with_the_versions_that_are_whole(tmp_path: Path) -> None:
    filled(tmp_path).close()
    data = file_of(tmp_path).read_bytes()
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]
    for cut in [*range(0, len(data), 97), *(end + step for end in ends for step in (-1, 0, 1))]:
        file_of(tmp_path).write_bytes(data[:cut])
        with TreeStore(tmp_path, "mia", QUICKSTART) as store:
            whole = sum(end <= cut for end in ends)
            assert store.tree.version == whole and store.torn == min(cut, len(data)) - (ends[whole - 1] if whole else 0)
            store.apply("new", [Operation("ADD", NAME, "Mia again")])
        with TreeStore(tmp_path, "mia", QUICKSTART) as store:
            assert store.tree.values[NAME] == "Mia again" and store.torn == 0


def test_zeros_that_a_power_failure_left_at_the_end_are_cut_off(tmp_path: Path) -> None:
    filled(tmp_path).close()
    with file_of(tmp_path).open("ab") as file:
        file.write(b"\0" * 40 + b'd":[]}\n')
    with TreeStore(tmp_path, "mia", QUICKSTART) as store:
        assert store.tree.version == 4 and store.torn == 47


_WRITER = """
import sys
from pathlib import Path
from extractors.persona_tree import Operation, load_schema
from extractors.persona_tree.store import TreeStore
store = TreeStore(Path(sys.argv[1]), "mia", load_schema("quickstart"))
while True:
    number = store.tree.version + 1
    store.apply(f"c{number}", [Operation("UPDATE", "Identity.Social_Identity.Name", f"Mia {number}")])
    print(number, flush=True)
"""


def test_a_writer_killed_at_any_moment_loses_at_most_the_write_it_was_at(tmp_path: Path) -> None:
    acknowledged = 0
    for lines in (1, 7, 30):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path)], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        said = [int(writer.stdout.readline()) for _ in range(lines)]
        assert said[0] in (acknowledged + 1, acknowledged + 2)  # a write may be whole without having been acknowledged
        writer.send_signal(signal.SIGKILL)
        said += [int(line) for line in writer.stdout if line.endswith("\n")]
        writer.wait()
        acknowledged = said[-1]
        with TreeStore(tmp_path, "mia", QUICKSTART) as store:
            assert store.tree.version in (acknowledged, acknowledged + 1)
            assert [store.tree_at(n).values[NAME] for n in range(1, store.tree.version + 1)] == [
                f"Mia {n}" for n in range(1, store.tree.version + 1)
            ]


def test_a_disk_that_is_full_refuses_the_write_and_leaves_the_file_whole(tmp_path: Path) -> None:
    store = filled(tmp_path)
    before = file_of(tmp_path).read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, hard))  # the disk takes the beginning of the line
    try:
        with pytest.raises(OSError, match="the disk took"):
            store.apply("c5", [Operation("ADD", WORK, "pilot")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file_of(tmp_path).read_bytes() == before and store.tree.version == 4
    assert store.apply("c5", [Operation("ADD", WORK, "pilot")]).tree.version == 5


def test_a_compressor_that_raises_writes_nothing(tmp_path: Path) -> None:
    def broken(value: str, budget: int) -> str:
        raise RuntimeError("no model")

    with filled(tmp_path) as store:
        before = file_of(tmp_path).read_bytes()
        with pytest.raises(RuntimeError):
            store.apply("c5", [Operation("UPDATE", NAME, "word " * 100)], compress=broken)
        assert store.tree.version == 4 and file_of(tmp_path).read_bytes() == before


def test_one_process_writes_and_others_read(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        with pytest.raises(InputError, match="in use by another process"):
            TreeStore(tmp_path, "mia", QUICKSTART)
        reader = TreeStore(tmp_path, "mia", QUICKSTART, read_only=True)
        assert reader.tree == store.tree
        with pytest.raises(InputError, match="reading only"):
            reader.apply("c5", [NO_OP])
        with file_of(tmp_path).open("ab") as file:
            file.write(b'{"half')
        assert TreeStore(tmp_path, "mia", QUICKSTART, read_only=True).torn == 6
        assert file_of(tmp_path).read_bytes().endswith(b'{"half')
    with pytest.raises(InputError, match="closed"):
        store.apply("c5", [NO_OP])
    with pytest.raises(InputError, match="no tree of 'max'"):
        TreeStore(tmp_path, "max", QUICKSTART, read_only=True)
    assert not file_of(tmp_path, "max").exists()


def test_threads_share_a_store_and_every_chunk_is_one_version(tmp_path: Path) -> None:
    with TreeStore(tmp_path, "mia", QUICKSTART) as store, ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda number: store.apply(f"c{number % 20}", CHUNKS[number % 4]), range(60)))
        assert store.tree.version == 20 and sum(each.repeated for each in done) == 40
    assert TreeStore(tmp_path, "mia", QUICKSTART).tree == store.tree


def test_another_schema_is_refused_and_both_are_named(tmp_path: Path) -> None:
    filled(tmp_path).close()
    with pytest.raises(InputError, match="schema quickstart 1 .*opened with full 1"):
        TreeStore(tmp_path, "mia", load_schema("full"))
    with pytest.raises(InputError, match=f"{QUICKSTART.sha256[:12]}.*{OPEN.sha256[:12]}"):
        TreeStore(tmp_path, "mia", OPEN)
    TreeStore(tmp_path, "mia", QUICKSTART).close()  # neither kept the lock


@pytest.mark.parametrize(
    ("line", "replacement", "message"),
    [
        (1, b"", "line 2 does not follow"),
        (1, b"{}\n", "line 2 is no version"),
        (1, b"\xff\n", "line 2 is no version"),
        (0, b'{"person":"mia"}\n', "line 1 is no version"),
        (3, b"[]\n", "line 4 is no version"),
    ],
)
def test_a_file_that_was_meddled_with_is_refused_with_the_line(
    tmp_path: Path, line: int, replacement: bytes, message: str
) -> None:
    filled(tmp_path).close()
    lines = file_of(tmp_path).read_bytes().splitlines(keepends=True)
    lines[line] = replacement
    file_of(tmp_path).write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=message):
        TreeStore(tmp_path, "mia", QUICKSTART)


def test_a_file_of_one_person_is_not_another_persons(tmp_path: Path) -> None:
    filled(tmp_path).close()
    file_of(tmp_path).rename(file_of(tmp_path, "max"))
    with pytest.raises(InputError, match="of the person 'mia', not of 'max'"):
        TreeStore(tmp_path, "max", QUICKSTART)


PERSONS = st.one_of(
    st.text(min_size=1, max_size=40),
    st.text(alphabet="aA_-.~/\\ 0é水\x00", min_size=1, max_size=6),
    st.text(alphabet="aA_~", min_size=100, max_size=300),
)


@settings(max_examples=500)
@given(PERSONS, PERSONS)
def test_different_persons_have_different_files_and_none_leaves_the_folder(first: str, second: str) -> None:
    names = [file_name(first), file_name(second)]
    assert (names[0].casefold() == names[1].casefold()) == (first == second)
    for name in names:
        assert Path(name).name == name and name.isascii() and len(name) < 200 and name[0] not in ".-~"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PERSONS, min_size=2, max_size=3, unique=True))
def test_persons_never_mix(tmp_path: Path, ids: list[str]) -> None:
    folder = tmp_path / os.urandom(8).hex()
    stores = [TreeStore(folder, person, QUICKSTART) for person in ids]
    for number, store in enumerate(stores):
        store.apply("c1", [Operation("ADD", NAME, f"person {number}")])
    for store in stores:
        store.close()
    assert persons(folder) == tuple(sorted(ids))
    for number, person in enumerate(ids):
        assert TreeStore(folder, person, QUICKSTART, read_only=True).tree.values == {NAME: f"person {number}"}
    assert len([*tmp_path.iterdir()]) >= 1 and all(path.parent == folder for path in folder.rglob("*"))


@pytest.mark.parametrize("wrong", ["", "\ud800", None, 7])
def test_an_id_that_is_no_text_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(InputError, match="`person`"):
        TreeStore(tmp_path, wrong, QUICKSTART)
    with TreeStore(tmp_path, "mia", QUICKSTART) as store, pytest.raises(InputError, match="`chunk_id`"):
        store.apply(wrong, [NO_OP])
    with TreeStore(tmp_path, "mia", QUICKSTART) as store, pytest.raises(InputError, match="time zone"):
        store.apply("c1", [NO_OP], time=datetime(2026, 1, 8))  # noqa: DTZ001


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(operation_lists, max_size=4))
def test_whatever_was_applied_comes_back_from_the_file(tmp_path: Path, chunks: list[list[Operation]]) -> None:
    folder = tmp_path / os.urandom(8).hex()
    with TreeStore(folder, "mia", OPEN) as store:
        done = [store.apply(f"c{number}", operations) for number, operations in enumerate(chunks)]
    with TreeStore(folder, "mia", OPEN) as again:
        assert [again.tree_at(number + 1) for number in range(len(chunks))] == [each.tree for each in done]
        assert [len(record.rejected) for record in again.records] == [len(each.rejected) for each in done]


@pytest.mark.skipif(not SLICES.is_dir(), reason="the HaluMem pilot slices are not under MNEMOSMITH_DATA")
def test_the_sessions_of_halumem_are_stored_and_read_back(tmp_path: Path) -> None:
    for path in sorted(SLICES.glob("*.jsonl")):
        with TreeStore(tmp_path, path.stem, QUICKSTART) as store:
            trees = []
            for number, (start, operations) in enumerate(sessions_as_operations(path, QUICKSTART)):
                time = datetime.strptime(start, "%b %d, %Y, %H:%M:%S").replace(tzinfo=UTC)
                trees.append(store.apply(f"session {number}", operations, time=time).tree)
        with TreeStore(tmp_path, path.stem, QUICKSTART) as store:
            assert [store.tree_at(number + 1) for number in range(len(trees))] == trees
    assert len(persons(tmp_path)) == 2
