"""Corpus loaders: small files in each corpus's own format, with good and bad rows."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from data_synthesis.corpora import CORPORA, halumem, load_dialogues
from data_synthesis.corpora.personamem import history
from data_synthesis.corpora.shared import shared_pairs, without_shared
from data_synthesis.dialogues import Dialogue, Loaded, Session, Turn
from extractors.contract import InputError


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_lines(path: Path, *values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((v if isinstance(v, str) else json.dumps(v)) + "\n" for v in values), encoding="utf-8")
    return path


def turns(dialogue: Dialogue) -> list[tuple[str, str, str]]:
    return [(turn.id, turn.speaker, turn.text) for turn in dialogue.turns()]


def reasons(loaded: Loaded) -> dict[str, int]:
    return dict(loaded.bad)


# -- LoCoMo ----------------------------------------------------------------------------------------------------------


def locomo_conversation(name: str = "conv-1", **further: Any) -> dict[str, Any]:
    conversation = {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_10_date_time": "12:05 am on 3 January, 2024",
        "session_10": [{"speaker": "Ben", "dia_id": "D10:1", "text": "Happy new year!"}],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [
            {"speaker": "Ada", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a photo of a kite"},
            {"speaker": "Ben", "dia_id": "D2:2", "text": "Nice."},
        ],
        "session_11_date_time": "1:00 pm on 4 January, 2024",
        **further,
    }
    qa = [
        {"question": "What did Ada show?", "answer": "a kite", "evidence": ["D2:01; D2:2"], "category": 1},
        {"question": "Who?", "adversarial_answer": "Ben", "evidence": ["D2:9"], "category": 5},
        {"answer": "no question"},
    ]
    return {"sample_id": name, "conversation": conversation, "qa": qa, "event_summary": {}}


def test_locomo_sessions_stand_in_their_order_with_iso_dates_and_the_corpuss_turn_ids(tmp_path: Path) -> None:
    loaded = load_dialogues("locomo", str(write_json(tmp_path / "locomo10.json", [locomo_conversation()])))
    (dialogue,) = loaded.dialogues
    assert [(s.id, s.date) for s in dialogue.sessions] == [
        ("session_2", "2023-05-08T13:56"),
        ("session_10", "2024-01-03T00:05"),
    ]
    assert turns(dialogue)[0] == ("D2:1", "Ada", "Look!")
    assert next(dialogue.turns()).labels == {"blip_caption": "a photo of a kite"}
    assert loaded.files == ["locomo10.json"]


def test_locomo_evidence_is_mended_where_it_can_be_and_counted_where_it_cannot(tmp_path: Path) -> None:
    loaded = load_dialogues("locomo", str(write_json(tmp_path / "locomo10.json", [locomo_conversation()])))
    first, second = loaded.dialogues[0].labels["questions"]
    assert first["evidence"] == ["D2:1", "D2:2"]
    assert second["evidence"] == []
    assert second["adversarial_answer"] == "Ben"
    assert "answer" not in second
    assert reasons(loaded) == {"evidence that names no turn (its question stays)": 1, "not a question": 1}
    assert loaded.first_bad["not a question"] == "conv-1-q2"


def test_locomo_bad_parts_are_counted_and_the_rest_stays(tmp_path: Path) -> None:
    broken = locomo_conversation(
        "conv-2",
        session_3=[
            {"speaker": "Ada", "dia_id": "D3:1", "text": " "},
            {"speaker": "Ada", "dia_id": "D3:2", "text": "Hi"},
        ],
        session_3_date_time="yesterday",
    )
    source = write_json(
        tmp_path / "a" / "locomo10.json", [broken, {"sample_id": "conv-3"}, locomo_conversation("conv-2")]
    )
    loaded = load_dialogues("locomo", str(source.parent))
    (dialogue,) = loaded.dialogues
    assert [s.date for s in dialogue.sessions] == ["2023-05-08T13:56", "", "2024-01-03T00:05"]
    assert reasons(loaded)["a turn without text"] == 1
    assert reasons(loaded)["a date that cannot be read"] == 1
    assert loaded.first_bad["not a LoCoMo conversation"] == "locomo10.json[1]"
    assert loaded.first_bad["an id that an earlier dialogue has"] == "conv-2"


# -- MSC -------------------------------------------------------------------------------------------------------------


def msc_line(episode: str, *said: str | tuple[str, str]) -> dict[str, Any]:
    dialog = []
    for place, what in enumerate(said):
        text, persona = (what, None) if isinstance(what, str) else what
        row: dict[str, Any] = {"id": f"bot_{place % 2}", "text": text}
        if persona:
            row |= {"persona_text": persona, "problem_data": {"persona": persona + "!"}}
        dialog.append(row)
    return {"dialog": dialog, "initial_data_id": episode, "init_personachat": {"init_personas": [["I sail."], []]}}


def test_msc_sessions_of_an_episode_are_joined_with_personas_and_gaps(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        lines = [msc_line("valid_0", ("I sail.", "I sail."), f"Session {number}.")]
        write_lines(tmp_path / f"msc_personasummary/session_{number}/valid.txt", *lines)
    dialogue_line = {
        "metadata": {"initial_data_id": "valid_0"},
        "previous_dialogs": [{"time_num": 6, "time_unit": "days"}, {"time_num": 3, "time_unit": "hours"}],
    }
    write_lines(tmp_path / "msc_dialogue/session_3/valid.txt", dialogue_line)
    (dialogue,) = load_dialogues("msc", str(tmp_path)).dialogues
    assert [s.id for s in dialogue.sessions] == ["session_1", "session_2", "session_3"]
    assert turns(dialogue)[3] == ("S2:2", "Speaker 2", "Session 2.")
    assert next(dialogue.turns()).labels == {"persona_text": "I sail.", "persona": "I sail.!"}
    assert dialogue.labels == {"split": "valid", "init_personas": [["I sail."], []], "gaps": {"3": "3 hours"}}


def test_msc_bad_lines_are_counted_by_file_and_line(tmp_path: Path) -> None:
    stranger = msc_line("test_1", "Hi.")
    stranger["dialog"][0]["id"] = "42306"
    lines = ["{torn", msc_line("test_0", "Hi.", "Ho."), stranger, {"dialog": []}, msc_line("test_0", "Again.")]
    write_lines(tmp_path / "msc_personasummary/session_1/test.txt", *lines)
    loaded = load_dialogues("msc", str(tmp_path))
    assert [d.id for d in loaded.dialogues] == ["test_0"]
    assert loaded.first_bad == {
        "not JSON": "msc_personasummary/session_1/test.txt:1",
        "a speaker other than bot_0 and bot_1": "msc_personasummary/session_1/test.txt:3",
        "not a session of MSC": "msc_personasummary/session_1/test.txt:4",
        "a session that an earlier line has": "msc_personasummary/session_1/test.txt:5",
    }


# -- PersonaMem ------------------------------------------------------------------------------------------------------

MESSAGES = [
    ("system", "Current user persona: Kim"),
    ("user", "User: I took up rowing."),
    ("assistant", "Assistant: Great!\n\nKeep going."),
    ("system", "Current user persona: Kim"),
    ("user", "I stopped rowing."),
    ("assistant", "Assistant: Why?"),
]
COLUMNS = [
    "persona_id", "question_id", "question_type", "topic", "user_question_or_message", "correct_answer", "all_options",
    "shared_context_id", "end_index_in_shared_context",
]  # fmt: skip


def personamem_row(
    name: str, end: int, context: str = "ctx", options: str | None = None, answer: str = "(b)"
) -> list[str]:
    written = options or json.dumps(["(a) no", "(b) yes"])
    return ["7", name, "recall", "sport", "Shall I row?", answer, written, context, str(end)]


def personamem(tmp_path: Path, *rows: list[str], published: bool = False) -> Path:
    with (tmp_path / "questions_32k.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    if published:
        contexts = [{"ctx": [{"role": role, "content": text} for role, text in MESSAGES]}]
        write_lines(tmp_path / "shared_contexts_32k.jsonl", *contexts)
    else:
        texts = [f"[{role.upper()}] {text}" for role, text in MESSAGES]
        documents = [
            {"id": "ctx_1", "user_id": "ctx", "content": "\n\n".join(texts[3:])},
            {"id": "ctx_0", "user_id": "ctx", "content": "\n\n".join(texts[:3])},
        ]
        (tmp_path / "documents.json.gz").write_bytes(gzip.compress(json.dumps(documents).encode()))
    return tmp_path


@pytest.mark.parametrize("published", [False, True])
def test_personamem_messages_are_numbered_as_end_indices_count_them(tmp_path: Path, published: bool) -> None:
    source = personamem(tmp_path, personamem_row("q1", 5), personamem_row("q2", 3), published=published)
    (dialogue,) = load_dialogues("personamem", str(source)).dialogues
    assert dialogue.group == "7"
    assert [len(s.turns) for s in dialogue.sessions] == [3, 3]
    assert turns(dialogue)[1:3] == [("m1", "User", "I took up rowing."), ("m2", "Assistant", "Great!\n\nKeep going.")]
    assert [t.role for t in dialogue.turns()] == [role for role, _ in MESSAGES]


def test_personamem_history_ends_before_the_message_at_the_end_index(tmp_path: Path) -> None:
    source = personamem(tmp_path, personamem_row("q1", 5), personamem_row("q2", 3))
    (dialogue,) = load_dialogues("personamem", str(source)).dialogues
    for question in dialogue.labels["questions"]:
        cut = history(dialogue, question)
        end = question["end_index_in_shared_context"]
        assert [t.id for t in cut.turns()] == [f"m{n}" for n in range(end)]
        assert all(session.turns for session in cut.sessions)
        assert cut.labels == {}, "questions that were asked later are not part of the history"
    with pytest.raises(InputError, match="'q9' ends at message 7, but ctx has 6"):
        history(dialogue, {"id": "q9", "end_index_in_shared_context": 7})


def test_personamem_options_are_read_from_json_and_from_python_and_bad_questions_are_named(tmp_path: Path) -> None:
    rows = [
        ["7", "no end"],
        personamem_row("python", 5, options="['(a) no', \"(b) it's yes\"]"),
        personamem_row("torn", 5, options="['(a) no',"),
        personamem_row("none", 5, answer="(e)"),
        personamem_row("beyond", 7),
        personamem_row("elsewhere", 5, context="other"),
    ]
    loaded = load_dialogues("personamem", str(personamem(tmp_path, *rows)))
    (question,) = loaded.dialogues[0].labels["questions"]
    assert question["options"] == ["(a) no", "(b) it's yes"]
    assert loaded.first_bad == {
        "not a question of PersonaMem": "questions_32k.csv:2",
        "options that are no list of texts": "questions_32k.csv:4",
        "a correct answer that is none of the options": "questions_32k.csv:5",
        "a question that ends outside its context": "beyond",
        "a question about a context that is not there": "elsewhere (other)",
    }


def test_a_personamem_context_with_a_missing_session_is_left_out_since_indices_would_shift(tmp_path: Path) -> None:
    source = personamem(tmp_path, personamem_row("q1", 5))
    documents = json.loads(gzip.decompress((source / "documents.json.gz").read_bytes()))
    (source / "documents.json.gz").write_bytes(gzip.compress(json.dumps(documents[:1]).encode()))
    with pytest.raises(InputError, match="a context with a missing session, first at ctx"):
        load_dialogues("personamem", str(source))


# -- HaluMem ---------------------------------------------------------------------------------------------------------


def halumem_user(name: str) -> dict[str, Any]:
    time = "Jan 15, 2029, 15:12:20"
    said = [{"role": "user", "content": "I was promoted.", "timestamp": time}]
    point = {"memory_content": "She was promoted", "is_update": "False", "memory_source": "secondary"}
    sessions = [
        {"start_time": time, "dialogue": said, "memory_points": [point], "questions": [{"question": "Who?"}]},
        {"start_time": "soon", "dialogue": said, "memory_points": []},
        {"start_time": time, "dialogue": said, "memory_points": [{"memory_content": "x", "is_update": "maybe"}]},
    ]
    return {"uuid": name, "persona_info": "Name: Ada", "sessions": sessions}


def test_halumem_sessions_carry_memory_points_whose_is_update_is_a_truth_value(tmp_path: Path) -> None:
    write_lines(tmp_path / "stage1_1_fixed.jsonl", {"uuid": "not a dialogue"})
    write_lines(tmp_path / "pilot_slice_user0.jsonl", halumem_user("u0"), {"uuid": "u1"})
    loaded = load_dialogues("halumem", str(tmp_path))
    (dialogue,) = loaded.dialogues
    assert [s.date for s in dialogue.sessions] == ["2029-01-15T15:12", "2029-01-15T15:12"]
    assert dialogue.labels["memory_points"]["s0"][0]["is_update"] is False
    assert dialogue.labels["memory_points"]["s2"] == []
    assert dialogue.labels["questions"]["s0"] == [{"question": "Who?"}]
    assert loaded.first_bad == {
        "a date that cannot be read": "pilot_slice_user0.jsonl:1 sessions[1]",
        "a memory point without memory_content or is_update (its session stays, without any)":
            "pilot_slice_user0.jsonl:1 sessions[2]",
        "not a user of HaluMem": "pilot_slice_user0.jsonl:2",
    }  # fmt: skip


def test_halumem_preference_events_are_a_dialogue_per_user_with_the_initial_preferences(tmp_path: Path) -> None:
    def event(number: int, direction: str) -> dict[str, Any]:
        lists = {"before_preference": {"memory_points": []}, "after_preference": {"memory_points": []}}
        return {"event_id": number, "update_direction": direction, "event_description": f"Event {number}.", **lists}

    events = [event(1, "Modify"), event(2, "Delete"), event(3, "Swap")]
    write_lines(tmp_path / halumem.EVENTS, {"uuid": "u0", "event_list": events})
    initial = {
        "event_type": "initial_preference",
        "initial_preference": {"Pets": {"memory_points": [{"type": "like"}]}},
    }
    write_lines(tmp_path / halumem.INITIAL, {"uuid": "u0", "event_list": [initial]})
    loaded = halumem.events(tmp_path)
    (user,) = loaded.dialogues
    assert user.group == "u0"
    assert [t.labels["update_direction"] for t in user.turns()] == ["Modify", "Delete"]
    assert [t.text for t in user.turns()] == ["Event 1.", "Event 2."]
    assert user.labels["initial"] == {"Pets": [{"type": "like"}]}
    assert reasons(loaded) == {"an update_direction other than Modify, Delete and Add": 1}


# -- TIAGE, MemoChat -------------------------------------------------------------------------------------------------


def test_tiage_labels_say_where_a_topic_begins(tmp_path: Path) -> None:
    good = [["hi .", "-1"], ["hello .", "0"], ["any pets ?", "1"]]
    for split in ("train", "test"):
        write_json(
            tmp_path / f"anno_{split}.json", {"1": good, "2": [["hi .", "0"]], "3": [["hi .", "-1"], ["yo", "x"]]}
        )
    loaded = load_dialogues("tiage", str(tmp_path))
    assert [d.id for d in loaded.dialogues] == ["train/1", "test/1"]
    assert [t.labels["shift"] for t in loaded.dialogues[0].turns()] == [None, 0, 1]
    assert [t.speaker for t in loaded.dialogues[0].turns()] == ["Speaker 1", "Speaker 2", "Speaker 1"]
    assert loaded.dialogues[1].labels == {"split": "test"}
    assert reasons(loaded) == {"a label other than 0 or 1 (-1 on the first utterance)": 4}
    assert loaded.first_bad["a label other than 0 or 1 (-1 on the first utterance)"] == "anno_train.json 2"


def memochat_row(name: str, segments: Any, lines: int = 3, kind: str = "writing_dialogsum") -> dict[str, Any]:
    speakers = ["user", "bot", "#Person3#"]
    body = "\n".join(f"(line {n + 1}) {speakers[n % 3]}: Text {n + 1}." for n in range(lines))
    prompt = f"Read this.\n\n```\nTask Conversation:\n{body}\n```\n\n```\nTask Introduction:\n```"
    answer = segments if isinstance(segments, str) else json.dumps(segments)
    return {
        "id": name,
        "type": kind,
        "conversations": [{"from": "human", "value": prompt}, {"from": "gpt", "value": answer}],
    }


def segment(start: int, end: int) -> dict[str, Any]:
    return {"topic": "t", "start": start, "end": end}


def test_memochat_segments_become_turn_labels_and_other_instructions_are_passed_over(tmp_path: Path) -> None:
    rows = [
        memochat_row("1", [segment(1, 2), segment(3, 3)]),
        memochat_row("2", "1#2", kind="retrieval_dialogsum"),
        memochat_row("3", [segment(1, 1), segment(3, 3)]),
        memochat_row("4", [segment(1, 2)]),
        memochat_row("5", "no topics"),
        {"id": "6", "type": "writing_topiocqa"},
    ]
    loaded = load_dialogues("memochat", str(write_json(tmp_path / "train_1k.json", rows)))
    (dialogue,) = loaded.dialogues
    assert dialogue.id == "dialogsum-1"
    assert [(t.id, t.speaker, t.role, t.labels["shift"]) for t in dialogue.turns()] == [
        ("t1", "user", "user", None),
        ("t2", "bot", "assistant", 0),
        ("t3", "Person3", "", 1),
    ]
    assert dialogue.labels == {"split": "train", "segments": [segment(1, 2), segment(3, 3)]}
    assert loaded.first_bad == {
        "segments that do not join end to end": "train_1k.json[2]",
        "segments that do not end with the conversation": "train_1k.json[3]",
        "an answer that is not JSON": "train_1k.json[4]",
        "not a writing row of MemoChat": "train_1k.json[5]",
    }


# -- LongMemEval -----------------------------------------------------------------------------------------------------


def test_longmemeval_is_read_in_both_layouts_and_questions_alone_are_rejected(tmp_path: Path) -> None:
    date = "2023/05/30 (Tue) 21:48"
    question = {"question_type": "multi-session", "question": "When?", "answer": 3}
    original = {
        "question_id": "1a2b3c4d_abs", **question, "question_date": date, "haystack_dates": [date, date],
        "haystack_session_ids": ["s_a", "s_b"], "answer_session_ids": ["s_a"],
        "haystack_sessions": [[{"role": "user", "content": "Hi.", "has_answer": True}], []],
    }  # fmt: skip
    said = [("Hi.", date), ("Ho.", date), ("Hey.", "2023/05/31 (Wed) 07:00")]
    merged = {
        "id": "multi-sessio-gpt4_1a2b3c4d", "question_type": "multi-session",
        "conversation": [{"role": "user", "content": text, "date": date} for text, date in said],
        "questions": [{"id": "q1", "question": "When?", "answer": "Noon"}],
    }  # fmt: skip
    write_json(tmp_path / "a" / "longmemeval_oracle.json", [original, {"question_id": "x", "question": "?"}])
    write_json(tmp_path / "b" / "longmemeval_sample.json", {"data": [merged]})
    loaded = load_dialogues("longmemeval", str(tmp_path))
    first, second = loaded.dialogues
    assert (first.id, first.group) == ("longmemeval_oracle/1a2b3c4d_abs", "1a2b3c4d_abs")
    assert [(s.id, s.date) for s in first.sessions] == [("s_a", "2023-05-30T21:48")]
    assert next(first.turns()).labels == {"has_answer": True}
    assert first.labels["questions"][0]["abstention"]
    assert first.labels["questions"][0]["answer"] == 3
    assert (second.id, second.group) == ("longmemeval_sample/gpt4_1a2b3c4d", "gpt4_1a2b3c4d")
    assert [len(s.turns) for s in second.sessions] == [2, 1]
    assert loaded.first_bad == {"a question without its history": "a/longmemeval_oracle.json[1]"}


# -- own -------------------------------------------------------------------------------------------------------------


def test_own_dialogues_need_no_more_than_speakers_and_texts(tmp_path: Path) -> None:
    short = {"turns": [{"speaker": "Mia", "text": "Hi."}, {"role": "assistant", "text": "Hello."}]}
    full = {
        "id": "chat7", "group": "mia", "labels": {"mood": "good"},
        "sessions": [
            {"id": "first", "date": "2024-05-01", "turns": [{"id": "a", "speaker": "Mia", "text": "I adopted a cat."}]},
            {"date": "2024-05-02T09:30", "turns": [{"speaker": "Mia", "text": "It is Pixel.", "labels": {"x": 1}}]},
        ],
    }  # fmt: skip
    loaded = load_dialogues("own", str(write_lines(tmp_path / "my.jsonl", short, full)))
    one, two = loaded.dialogues
    assert (one.id, one.group) == ("my.jsonl:1", "my.jsonl:1")
    assert turns(one) == [("t1", "Mia", "Hi."), ("t2", "Assistant", "Hello.")]
    assert (two.id, two.group, two.labels) == ("chat7", "mia", {"mood": "good"})
    assert [(s.id, s.date) for s in two.sessions] == [("first", "2024-05-01"), ("s2", "2024-05-02T09:30")]
    assert [(t.id, t.labels) for t in two.turns()] == [("a", {}), ("t2", {"x": 1})]


def test_an_openai_export_keeps_texts_and_counts_what_it_leaves_out(tmp_path: Path) -> None:
    messages = [
        {"role": "developer", "content": "Be kind."},
        {
            "role": "user",
            "name": "Mia",
            "content": [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {}}],
        },
        {"role": "assistant", "content": None, "tool_calls": [{}]},
        {"role": "tool", "content": "42"},
        {"role": "assistant", "content": "Nice."},
    ]
    loaded = load_dialogues("own", str(write_lines(tmp_path / "chat.jsonl", {"messages": messages, "group": 5})))
    (dialogue,) = loaded.dialogues
    assert dialogue.group == "5"
    assert [(t.id, t.speaker, t.role, t.text) for t in dialogue.turns()] == [
        ("t1", "System", "system", "Be kind."),
        ("t2", "Mia", "user", "Look:"),
        ("t5", "Assistant", "assistant", "Nice."),
    ]
    assert loaded.first_bad == {
        "a part that is no text (left out)": "chat.jsonl:1 messages[1]",
        "a message without text (left out)": "chat.jsonl:1 messages[2]",
        "a tool's message (left out)": "chat.jsonl:1 messages[3]",
    }


def test_own_bad_lines_are_counted_and_named(tmp_path: Path) -> None:
    turn = {"speaker": "Mia", "text": "Hi."}
    lines: list[Any] = [
        {"turns": [turn]},
        "[]",
        {"text": "Hi."},
        {"turns": [{"text": "Hi."}]},
        {"turns": [{**turn, "id": "a"}, {**turn, "id": "a"}]},
        {"turns": [turn], "date": "1 May"},
        {"messages": [{"role": "robot", "content": "Hi."}]},
        {"id": "my.jsonl:1", "turns": [turn]},
    ]
    loaded = load_dialogues("own", str(write_lines(tmp_path / "my.jsonl", *lines).parent))
    assert len(loaded.dialogues) == 1
    assert loaded.first_bad == {
        "not a JSON object": "my.jsonl:2",
        "not a dialogue (sessions, turns or messages)": "my.jsonl:3",
        "a turn without speaker": "my.jsonl:4",
        "a turn id that another turn has": "my.jsonl:5",
        "a `date` that is not ISO 8601 (2024-05-01 or 2024-05-01T13:56)": "my.jsonl:6",
        "a role other than user, assistant, system, developer and tool": "my.jsonl:7",
        "an id that an earlier dialogue has": "my.jsonl:1",
    }


# -- the front -------------------------------------------------------------------------------------------------------


def test_a_corpus_without_one_usable_row_is_an_error_with_the_source_and_the_first_reason(tmp_path: Path) -> None:
    write_json(tmp_path / "anno_dev.json", {"5": [["hi", "2"]]})
    with pytest.raises(InputError, match=f"{tmp_path} can be used as tiage: a label other than.*anno_dev.json 5"):
        load_dialogues("tiage", str(tmp_path))
    (tmp_path / "anno_dev.json").write_text("{torn")
    with pytest.raises(InputError, match="not a JSON file, first at anno_dev.json"):
        load_dialogues("tiage", str(tmp_path))


@pytest.mark.parametrize("corpus", [name for name in CORPORA if name != "own"])
def test_a_folder_without_the_corpuss_files_is_refused_with_advice(tmp_path: Path, corpus: str) -> None:
    with pytest.raises(InputError, match="name"):
        load_dialogues(corpus, str(tmp_path))


def test_unknown_corpora_and_sources_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="'squad' has no loader: write one of world, own"):
        load_dialogues("squad")
    with pytest.raises(InputError, match="does not exist"):
        load_dialogues("msc", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="`own` has no folder"):
        load_dialogues("own")
    with pytest.raises(InputError, match="no dataset of the hub: write hub:owner/name"):
        load_dialogues("msc", "hub:msc")
    monkeypatch.setenv("MNEMOSMITH_DATA", str(tmp_path))
    with pytest.raises(InputError, match="set MNEMOSMITH_DATA"):
        load_dialogues("msc")


def test_a_hub_source_is_taken_from_the_hubs_cache_at_its_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The layout in which the hub's client keeps downloads; offline, it reads them as it does after a download.
    revision = "a" * 40
    snapshot = tmp_path / "datasets--someone--tiage" / "snapshots" / revision
    write_json(snapshot / "anno_dev.json", {"1": [["hi", "-1"], ["ho", "1"]]})
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (dialogue,) = load_dialogues("tiage", f"hub:someone/tiage@{revision}").dialogues
    assert dialogue.id == "dev/1"
    with pytest.raises(InputError, match="hub:someone/other cannot be downloaded"):
        load_dialogues("tiage", "hub:someone/other")


# -- text that corpora share -----------------------------------------------------------------------------------------


def talk(corpus: str, name: str, *texts: str) -> Dialogue:
    said = tuple(Turn(f"t{n}", "A", text) for n, text in enumerate(texts))
    return Dialogue(name, corpus, name, (Session("s0", "", said),))


LONG = [f"i'm a pilot and i have flown to {place} many times" for place in ("rome", "oslo", "lima", "cairo")]


def test_dialogues_share_text_when_two_long_utterances_agree_whatever_the_spelling() -> None:
    spelt = [text.replace("i'm", "I am").replace("times", "times !") for text in LONG]
    pairs = shared_pairs(
        [talk("msc", "m", *LONG[:3]), talk("tiage", "t", *spelt[:2], "hi"), talk("tiage", "u", LONG[2])]
    )
    assert [(pair.one, pair.other, pair.utterances) for pair in pairs] == [
        (("msc", "m"), ("tiage", "t"), 2),
        (("msc", "m"), ("tiage", "u"), 1),  # a single utterance is all that could agree
    ]


def test_short_and_common_utterances_and_one_corpus_alone_do_not_count() -> None:
    short = ["hi , how are you ?", "i am fine , thank you ."]
    assert shared_pairs([talk("msc", "m", *short), talk("tiage", "t", *short)]) == []
    assert shared_pairs([talk("msc", "m", *LONG), talk("msc", "n", *LONG)]) == []
    assert shared_pairs([talk("msc", "m", LONG[0], "hi"), talk("tiage", "t", LONG[0], "ho")]) == []
    everywhere = [talk("tiage", f"t{n}", *LONG) for n in range(4)]
    assert shared_pairs([talk("msc", "m", *LONG), *everywhere]) == []


def test_training_loses_the_dialogues_that_another_corpus_tests_on() -> None:
    by_role = {
        "train": [talk("msc", "m1", *LONG[:2]), talk("msc", "m2", *LONG[2:])],
        "dev": [talk("tiage", "t2", *LONG[2:])],
        "test": [talk("tiage", "t1", *LONG[:2])],
        "never": [talk("personaext", "p", LONG[0])],
    }
    kept, report = without_shared(by_role)
    assert {role: [d.id for d in members] for role, members in kept.items()} == {
        "train": [],
        "dev": ["t2"],
        "test": ["t1"],
        "never": ["p"],
    }
    assert report == {"train": {"count": 2, "first_id": "msc/m1"}}
