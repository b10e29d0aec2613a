"""The offline teacher: right answers for every contract's prompt, the faults of a real endpoint, the same ones each time."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from data_synthesis.offline.faults import KINDS, RECOVERABLE, Faults, read_shares
from data_synthesis.offline.tasks import Asked, continuity, triplets
from data_synthesis.offline.world import World
from data_synthesis.offline_teacher import OfflineTeacher, offline_teacher
from data_synthesis.simulate import simulate
from extractors import ExtractionError, InputError, load_extractor
from extractors.continuity import ContinuityExtractor, UtterancePair
from extractors.triplets import Dialogue, Triplet, TripletExtractor, Turn

TRIPLETS = TripletExtractor()
CONTINUITY = ContinuityExtractor()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    simulate(folder, people=10, seed=3, sessions=2)
    return folder


@pytest.fixture(scope="module")
def rows(world: Path) -> list[dict[str, Any]]:
    lines = [line for split in ("train", "dev", "test") for line in (world / f"{split}.jsonl").open(encoding="utf-8")]
    return [json.loads(line) for line in lines]


@dataclass(frozen=True)
class Reply:
    """status 0: the connection ended before a status line; -1: in the middle of the body."""

    status: int
    body: Any = None
    retry_after: str | None = None

    @property
    def content(self) -> str:
        return str(self.body["choices"][0]["message"]["content"])

    @property
    def finish_reason(self) -> str:
        return str(self.body["choices"][0]["finish_reason"])


def send(
    teacher: OfflineTeacher, body: dict[str, Any] | None, path: str = "/v1/chat/completions", key: str = "k"
) -> Reply:
    parts = urlsplit(teacher.url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        connection.request("GET" if data is None else "POST", path, data, headers)
        answer = connection.getresponse()
        return Reply(answer.status, json.loads(answer.read()), answer.getheader("Retry-After"))
    except http.client.IncompleteRead:
        return Reply(-1)
    except (http.client.RemoteDisconnected, ConnectionResetError):
        return Reply(0)
    finally:
        connection.close()


def ask(extractor: Any, value: Any, **parameters: Any) -> dict[str, Any]:
    return {"model": "offline-teacher", "messages": extractor.messages(value), "temperature": 0.7, **parameters}


# -- a world written by hand -----------------------------------------------------------------------------------------


def turn(number: str, speaker: str, text: str, move: int, *gold: tuple[str, str, str]) -> dict[str, Any]:
    triplets = [{"subject": s, "relation": r, "object": o, "evidence": [number]} for s, r, o in gold]
    return {"id": number, "speaker": speaker, "text": text, "move": move, **({"gold": triplets} if triplets else {})}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("small")
    tom = {"id": "b-r0", "name": "Otto", "role": "brother", "pronoun": "he", "kin": "have_sibling"}
    people = [
        {"id": "a", "name": "Mia", "surname": "A", "pronoun": "she", "relatives": [], "pets": []},
        {"id": "b", "name": "Tom", "surname": "B", "pronoun": "he", "relatives": [tom], "pets": []},
    ]
    first = [
        turn("s0-0", "Mia", "I love soup.", 0, ("Mia", "like_food", "soup")),
        turn("s0-1", "Tom", "My brother Otto rang.", 1, ("Tom", "have_sibling", "Otto")),
        turn("s0-2", "Mia", "Nuts make me ill.", 2, ("Mia", "allergy_to", "nuts")),
        turn("s0-3", "Tom", "Otto is a baker.", 3, ("Otto", "has_profession", "baker")),
        turn("s0-4", "Mia", "I live in Ghent.", 4, ("Mia", "live_in_citystatecountry", "Ghent")),
        turn("s0-5", "Mia", "Really?", 5),
        turn("s0-6", "Tom", "I gave up baking.", 5),
        turn("s0-7", "Mia", "Fine by me.", 5),
        turn("s0-8", "Tom", "I knit now.", 6, ("Tom", "has_hobby", "knitting")),
    ]
    second = [
        turn("s1-0", "Tom", "Hello.", 0),
        turn("s1-1", "Mia", "I love soup.", 0, ("Mia", "like_food", "soup"), ("Mia", "like_food", "soup")),
        turn("s1-2", "Mia", "And you?", 0),
        turn("s1-3", "Tom", "Same here.", 0, ("Tom", "like_food", "soup")),
    ]
    fact = {
        "id": "f",
        "owner": "b",
        "subject": "b",
        "relation": "has_hobby",
        "object": "baking",
        "retracted_in": ["s0-6"],
    }
    sessions = [{"id": f"s{i}", "date": "2024-01-01", "turns": turns} for i, turns in enumerate((first, second))]
    dialogue = {"id": "d", "split": "train", "people": people, "sessions": sessions, "facts": [fact], "events": []}
    (folder / "dialogues.jsonl").write_text(json.dumps(dialogue) + "\n", encoding="utf-8")
    return World(folder)


def asked(extractor: Any, value: Any, schema: Any = None) -> Asked:
    system, user = extractor.messages(value)
    return Asked(system["content"], user["content"], schema)


@pytest.mark.parametrize(
    ("previous", "current", "label"),
    [
        ("Really?", "Fine by me.", 1),  # one move
        ("I love soup.", "Nuts make me ill.", 1),  # Mia's food
        ("My brother Otto rang.", "Otto is a baker.", 1),  # the same third person
        ("I gave up baking.", "I knit now.", 1),  # a hobby that ended and one that began: Tom's leisure
        ("Nuts make me ill.", "I live in Ghent.", 0),  # food and home
        ("Otto is a baker.", "I gave up baking.", 0),
        ("Fine by me.", "And you?", 0),  # another session
        ("I love soup.", "I live in Ghent.", 0),
    ],
)
@pytest.mark.parametrize("prompt", ["standard", "compact"])
def test_utterances_go_on_within_a_move_a_third_person_or_a_field_of_life(
    small: World, previous: str, current: str, label: int, prompt: str
) -> None:
    assert continuity(small, asked(ContinuityExtractor(prompt), UtterancePair(previous, current))) == label


def test_turns_that_were_said_twice_are_told_apart_by_what_runs_on(small: World) -> None:
    soup, other = Turn("Mia", "I love soup."), Turn("Mia", "And you?")
    assert triplets(small, asked(TRIPLETS, Dialogue((soup, other, Turn("Tom", "Same here."))))) == (
        Triplet("Mia", "like_food", "soup"),
        Triplet("Tom", "like_food", "soup"),
    )


def test_a_closed_vocabulary_leaves_out_what_it_cannot_name(small: World) -> None:
    value = Dialogue((Turn("Mia", "I live in Ghent."),))
    closed = {name: TripletExtractor(["like_food"], closed=True, prompt=name) for name in ("standard", "compact")}
    assert triplets(small, asked(TRIPLETS, value)) != ()
    assert triplets(small, asked(closed["standard"], value)) == ()
    assert triplets(small, asked(closed["compact"], value, closed["compact"].json_schema)) == ()


def test_a_folder_without_a_world_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mnemosmith simulate"):
        World(tmp_path)
    (tmp_path / "dialogues.jsonl").write_text('{"id": 1}\n', encoding="utf-8")
    with pytest.raises(InputError, match="line 1 is no dialogue"):
        World(tmp_path)


# -- right answers over the wire -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def faultless(world: Path) -> Iterator[OfflineTeacher]:
    with offline_teacher(world, latency=0.0) as teacher:
        yield teacher


OPTIONS: list[dict[str, Any]] = [
    {},
    {"prompt": "compact"},
    {"relations": "personaext", "closed": True},
    {"relations": "personaext", "prompt": "compact"},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_every_row_of_the_world_gets_its_gold_whatever_the_prompt(
    faultless: OfflineTeacher, rows: list[dict[str, Any]], options: dict[str, Any]
) -> None:
    extractor = load_extractor("triplets", options)
    for row in rows[:: len(rows) // 40]:
        schema = {"type": "json_schema", "json_schema": {"name": "triplets", "schema": extractor.json_schema}}
        reply = send(faultless, ask(extractor, extractor.read_input(row["input"]), response_format=schema))
        assert extractor.parse(reply.content) == extractor.read_output(row["gold"]), row["id"]
        assert (reply.status, reply.finish_reason) == (200, "stop")


def test_worked_examples_before_the_input_are_not_what_is_asked(
    faultless: OfflineTeacher, rows: list[dict[str, Any]]
) -> None:
    shot, row = rows[0], next(row for row in rows[1:] if row["gold"])
    system, example = TRIPLETS.messages(TRIPLETS.read_input(shot["input"]))
    body = ask(TRIPLETS, TRIPLETS.read_input(row["input"]))
    body["messages"] = [system, example, {"role": "assistant", "content": "[]"}, body["messages"][1]]
    assert TRIPLETS.parse(send(faultless, body).content) == TRIPLETS.read_output(row["gold"])


def test_the_same_request_gets_the_same_answer_and_its_tokens(
    faultless: OfflineTeacher, rows: list[dict[str, Any]]
) -> None:
    body = ask(TRIPLETS, TRIPLETS.read_input(rows[0]["input"]), seed=7)
    first, again = send(faultless, body), send(faultless, dict(reversed(body.items())))
    assert first == again
    characters = [len(message["content"]) for message in body["messages"]]
    usage = first.body["usage"]
    assert usage["prompt_tokens"] == sum(-(-n // 4) for n in characters)
    assert usage["completion_tokens"] == -(-len(first.content) // 4)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert first.body["model"] == "offline-teacher" and first.body["object"] == "chat.completion"


def test_as_many_choices_come_as_were_asked_for(faultless: OfflineTeacher, rows: list[dict[str, Any]]) -> None:
    reply = send(faultless, ask(TRIPLETS, TRIPLETS.read_input(rows[0]["input"]), n=3))
    assert [choice["index"] for choice in reply.body["choices"]] == [0, 1, 2]


def test_an_answer_longer_than_max_tokens_breaks_off(faultless: OfflineTeacher, rows: list[dict[str, Any]]) -> None:
    row = next(row for row in rows if row["gold"])
    reply = send(faultless, ask(TRIPLETS, TRIPLETS.read_input(row["input"]), max_tokens=3))
    assert reply.finish_reason == "length" and len(reply.content) == 12


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        (ask(TRIPLETS, Dialogue((Turn("Nobody", "I was never here."),))), 422, "turn 1 of the 1"),
        (ask(CONTINUITY, UtterancePair("I was never here.", "Nor here.")), 422, "previous utterance"),
        ({"model": "offline-teacher", "messages": [{"role": "user", "content": "Hello"}]}, 422, "no task"),
        ({"model": "offline-teacher", "messages": []}, 400, "messages"),
        ({"model": "gpt", "messages": [{"role": "user", "content": "Hello"}]}, 404, "offline-teacher"),
        ({**ask(CONTINUITY, UtterancePair("a", "b")), "stream": True}, 400, "stream"),
        ({**ask(CONTINUITY, UtterancePair("a", "b")), "n": "two"}, 400, "due"),
    ],
)
def test_what_it_does_not_know_is_refused_and_never_made_up(
    faultless: OfflineTeacher, body: dict[str, Any], status: int, word: str
) -> None:
    reply = send(faultless, body)
    assert (reply.status, word in reply.body["error"]["message"]) == (status, True)
    assert "never here" not in json.dumps(reply.body)


def test_a_bad_key_is_refused(faultless: OfflineTeacher, rows: list[dict[str, Any]]) -> None:
    body = ask(TRIPLETS, TRIPLETS.read_input(rows[0]["input"]))
    assert send(faultless, body, key="bad-key").status == 401
    assert send(faultless, None, "/v1/models", key="bad").status == 401
    assert send(faultless, None, "/v1/models").body["data"][0]["id"] == "offline-teacher"


def test_the_sdk_and_the_extraction_client_can_talk_to_it(
    faultless: OfflineTeacher, rows: list[dict[str, Any]]
) -> None:
    from serve.client import ExtractorClient

    some = rows[:20]
    client = ExtractorClient(faultless.url, TRIPLETS)
    answers = client.extract_all([TRIPLETS.read_input(row["input"]) for row in some])
    assert [answer.value for answer in answers] == [TRIPLETS.read_output(row["gold"]) for row in some]
    assert client.notes == []


# -- faults ----------------------------------------------------------------------------------------------------------


def kind_of(reply: Reply, gold: tuple[Triplet, ...], seconds: float) -> str:
    """What a client sees of a fault, by the names of `KINDS`."""
    if reply.status in (0, -1):
        return "dropped" if reply.status == 0 else "cut"
    if reply.status != 200:
        return "quota" if reply.body["error"]["code"] == "insufficient_quota" else str(reply.status)
    if reply.finish_reason == "length":
        return "truncated"
    if not reply.content:
        return "empty"
    value = TRIPLETS.parse(reply.content)
    if isinstance(value, ExtractionError):
        return "schema"
    if value != gold:
        return "hallucinated"
    return "slow" if seconds > 0.4 else "right" if reply.content == TRIPLETS.render(gold) else "prose"


def test_every_kind_of_fault_is_seen_at_the_wire_and_counted(world: Path, rows: list[dict[str, Any]]) -> None:
    row = next(row for row in rows if len(row["gold"]) > 1)
    body, gold = ask(TRIPLETS, TRIPLETS.read_input(row["input"])), TRIPLETS.read_output(row["gold"])
    seen: Counter[str] = Counter()
    with offline_teacher(world, latency=0.0, slow=0.5, retry_after=0.25, faults=0.8, fault={"quota": 0.1}) as teacher:
        for _ in range(100):
            started = time.monotonic()
            reply = send(teacher, body)
            kind = kind_of(reply, gold, time.monotonic() - started)
            seen[kind] += 1
            if kind == "429":
                assert reply.retry_after == "0.25"
        stats = teacher.stats()
    right = seen.pop("right")
    assert set(seen) == {*RECOVERABLE, "quota"}
    assert stats["faults"] == dict(seen)
    assert (stats["requests"], stats["answers"]) == (100, right + seen["prose"] + seen["slow"])
    assert [entry["asked"] for entry in stats["by_request"].values()] == [100]


def test_continuity_answers_meet_the_same_faults(world: Path, rows: list[dict[str, Any]]) -> None:
    dialogue = json.loads((world / "dialogues.jsonl").read_text(encoding="utf-8").splitlines()[0])
    previous, current = (turn["text"] for turn in dialogue["sessions"][0]["turns"][:2])
    body = ask(CONTINUITY, UtterancePair(previous, current))
    kinds = ("prose", "truncated", "schema", "empty")
    found = []
    with offline_teacher(world, latency=0.0, fault=dict.fromkeys(kinds, 0.2)) as teacher:
        for _ in range(40):
            reply = send(teacher, body)
            value = CONTINUITY.parse(reply.content)
            found.append((reply.finish_reason, value if isinstance(value, int) else value.kind))
        faults = teacher.stats()["faults"]
    assert set(faults) == set(kinds)
    labels = {value for reason, value in found if reason == "stop" and isinstance(value, int)}
    assert len(labels) == 1  # the right answers and those in prose
    assert {value for _, value in found if not isinstance(value, int)} == {"empty", "schema"}


def test_faults_are_the_same_in_every_run_and_vary_by_attempt_and_seed() -> None:
    shares = read_shares(0.5, [])
    drawn = [Faults(shares, 1).draw("abc", attempt) for attempt in range(1, 60)]
    assert drawn == [Faults(shares, 1).draw("abc", attempt) for attempt in range(1, 60)]
    assert drawn != [Faults(shares, 2).draw("abc", attempt) for attempt in range(1, 60)]
    assert drawn != [Faults(shares, 1).draw("abd", attempt) for attempt in range(1, 60)]
    assert None in drawn and len(set(drawn)) > 5


def test_the_share_of_faults_is_the_one_that_was_asked_for_and_even() -> None:
    faults = Faults(read_shares(0.2, []))
    drawn = Counter(faults.draw(str(number), 1) for number in range(20_000))
    assert 1 - drawn[None] / 20_000 == pytest.approx(0.2, abs=0.01)
    assert all(drawn[kind] / 20_000 == pytest.approx(0.02, abs=0.004) for kind in RECOVERABLE)
    assert set(drawn) == {None, *RECOVERABLE}  # nothing that asking again would not mend


def test_a_hallucination_stays_with_its_request_and_is_drawn_only_when_asked_for(
    world: Path, rows: list[dict[str, Any]]
) -> None:
    some = [row for row in rows if row["gold"]][:30]
    with offline_teacher(world, latency=0.0, fault={"hallucinated": 0.5}) as teacher:
        answers = []
        for row in some:
            body = ask(TRIPLETS, TRIPLETS.read_input(row["input"]))
            first, again = send(teacher, body).content, send(teacher, body).content
            assert first == again
            answers.append(TRIPLETS.parse(first) == TRIPLETS.read_output(row["gold"]))
    assert 5 < sum(answers) < 25


def test_sampled_answers_vary_by_seed_only_where_that_is_switched_on(
    faultless: OfflineTeacher, world: Path, rows: list[dict[str, Any]]
) -> None:
    row = max(rows, key=lambda row: len(row["gold"]))
    bodies = [ask(TRIPLETS, TRIPLETS.read_input(row["input"]), seed=seed) for seed in range(12)]
    greedy = {**bodies[0], "temperature": 0}
    gold = TRIPLETS.render(TRIPLETS.read_output(row["gold"]))
    assert {send(faultless, body).content for body in bodies} == {gold}
    with offline_teacher(world, latency=0.0, vary=0.5) as teacher:
        varied = [send(teacher, body).content for body in bodies]
        assert varied == [send(teacher, body).content for body in bodies]
        assert len(set(varied)) > 1 and gold in varied
        assert send(teacher, greedy).content == gold
        choices = send(teacher, {**bodies[0], "n": 8}).body["choices"]
        assert len({choice["message"]["content"] for choice in choices}) > 1


def test_the_quota_ends_the_answers_and_the_log_tells_every_attempt_without_key_or_prompt(
    world: Path, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    some = rows[:5]
    with offline_teacher(world, latency=0.0, quota=3, reasoning=True, log=log) as teacher:
        replies = [send(teacher, ask(TRIPLETS, TRIPLETS.read_input(row["input"])), key="secret-key") for row in some]
        assert send(teacher, None, "/health").body == {"status": "ok"}
        stats = teacher.stats()
    assert [reply.status for reply in replies] == [200, 200, 200, 429, 429]
    assert replies[3].body["error"]["code"] == "insufficient_quota" and replies[3].retry_after is None
    assert replies[0].body["choices"][0]["message"]["reasoning_content"]
    assert (stats["answers"], stats["faults"], stats["tasks"]) == (3, {"quota": 2}, {"triplets": 3})
    text = log.read_text(encoding="utf-8")
    assert [json.loads(line)["outcome"] for line in text.splitlines()] == ["answered"] * 3 + ["quota"] * 2
    assert "secret-key" not in text and not any(turn["text"] in text for row in some for turn in row["input"]["turns"])


# -- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--fault", "teapot=0.1"], "teapot"),
        (["--fault", "429"], "KIND=SHARE"),
        (["--fault", "500=0.7", "--fault", "503=0.7"], "add up to 1.4"),
        (["--faults", "1.5"], "--faults"),
        (["--latency", "-1"], "--latency"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_what_to_write(world: Path, options: list[str], word: str) -> None:
    command = [sys.executable, "-m", "data_synthesis.offline_teacher", str(world), *options]
    done = subprocess.run(command, cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "") and word in done.stderr


def test_a_teacher_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="mnemosmith simulate"), offline_teacher(tmp_path):
        pass


def test_every_kind_of_fault_is_described() -> None:
    assert all(KINDS.values()) and set(RECOVERABLE) < set(KINDS)
