"""Evaluation of answers: metrics, failures, schema compliance, breakdowns, and what the result folder holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eval.evaluate import REQUIRED_META, Prediction, Result, evaluate, read_result, read_samples, schema_check
from extractors.rows import Row
from extractors.triplets import Dialogue, Triplet, TripletExtractor, Turn
from serve.answers import Answer, failed_request, read_answer

EXTRACTOR = TripletExtractor(prompt="compact")
META = dict.fromkeys(REQUIRED_META) | {"model": "by hand", "seed": 0}
CAT = Triplet("Mia", "have_pet", "cat")
FOUND = '[{"subject": "Mia", "relation": "have_pet", "object": "cat"}]'


def row(name: str, gold: tuple[Triplet, ...], group: str = "mia", **tags: Any) -> Row[Dialogue, tuple[Triplet, ...]]:
    return Row(name, group, Dialogue((Turn("Mia", f"I have a cat, says {name}."),)), gold, tags)


def said(text: str, reason: str = "stop") -> Answer[tuple[Triplet, ...]]:
    return read_answer(EXTRACTOR, text, reason, prompt_tokens=10, completion_tokens=3)


ROWS = [
    row("r0", (CAT,), "mia", phrasing="seen"),
    row("r1", (CAT,), "tom", phrasing="unseen"),
    row("r2", (), "ana", phrasing="seen"),
    row("r3", (CAT,), "eva", phrasing="unseen"),
]
ANSWERS = [said(FOUND), said("Sure! " + FOUND), said("[]"), said('[{"subject": "Mi', "length")]


@pytest.fixture
def result(tmp_path: Path) -> Result:
    return evaluate(ANSWERS, ROWS, EXTRACTOR, tmp_path / "out", META)


def test_an_unreadable_answer_is_wrong_and_an_empty_list_without_gold_is_right(result: Result) -> None:
    assert result.metrics["right_rows"].value == 0.75
    assert result.metrics["recall"].value == pytest.approx(2 / 3)
    assert result.metrics["precision"].value == 1.0
    assert result.metrics["parse_failure_rate"].value == 0.25
    assert [sample["right"] for sample in read_samples(result.folder)] == [True, True, True, False]


def test_schema_compliance_is_judged_on_the_text_as_printed(result: Result) -> None:
    assert result.metrics["schema_compliance"].value == 0.5  # prose around the JSON can be read, but does not comply
    assert [sample["compliant"] for sample in read_samples(result.folder)] == [True, False, True, False]


def test_failures_are_counted_by_kind_with_the_first_ids(tmp_path: Path) -> None:
    rows = [row(f"r{i}", ()) for i in range(9)]
    answers: list[Answer[Any]] = [said("")] * 7 + [failed_request("no reply"), said("no idea")]
    found = evaluate(answers, rows, EXTRACTOR, tmp_path, META).failures
    assert found["empty"] == {"count": 7, "first_ids": ["r0", "r1", "r2", "r3", "r4"]}
    assert found["request"] == {"count": 1, "first_ids": ["r7"]}
    assert found["no_json"]["count"] == 1


def test_every_metric_has_n_and_an_interval_that_holds_its_value(result: Result) -> None:
    for name, score in result.metrics.items():
        assert score.n == 4 and score.low is not None and score.high is not None, name
        assert score.low <= score.value <= score.high, name


def test_breakdowns_split_the_rows_by_tag(result: Result) -> None:
    seen, unseen = result.breakdowns["phrasing"]["seen"], result.breakdowns["phrasing"]["unseen"]
    assert (seen["right_rows"].value, unseen["right_rows"].value) == (1.0, 0.5)
    assert (seen["right_rows"].n, unseen["right_rows"].n) == (2, 2)


def test_a_tag_that_is_no_grouping_is_named_rather_than_dropped(tmp_path: Path) -> None:
    rows = [row(f"r{i}", (), tokens=i, relations=["a"], kind=None if i else "x") for i in range(20)]
    found = evaluate([Prediction(())] * 20, rows, EXTRACTOR, tmp_path, META)
    assert found.meta["tags_not_broken_down"] == ["relations", "tokens"]
    assert set(found.breakdowns["kind"]) == {"(none)", "x"}


def test_rows_of_one_person_give_no_interval(tmp_path: Path) -> None:
    rows = [row("r0", (CAT,)), row("r1", (CAT,))]
    score = evaluate([Prediction((CAT,)), Prediction(())], rows, EXTRACTOR, tmp_path, META).metrics["f1"]
    assert (score.low, score.high) == (None, None)
    assert json.loads((tmp_path / "result.json").read_text())["metrics"]["f1"]["low"] is None


def test_a_baselines_predictions_are_scored_alike_and_have_no_schema_compliance(tmp_path: Path) -> None:
    found = evaluate(
        [Prediction((CAT,)), Prediction(()), Prediction(()), Prediction((CAT,))], ROWS, EXTRACTOR, tmp_path, META
    )
    assert found.metrics["recall"].value == pytest.approx(2 / 3)
    assert "schema_compliance" not in found.metrics
    assert [sample["text"] for sample in read_samples(tmp_path)] == [None] * 4


def test_the_result_folder_says_what_was_measured_and_reads_back(result: Result) -> None:
    data = json.loads((result.folder / "result.json").read_text())
    assert data["model"] == "by hand" and data["rows"] == 4 and data["groups"] == 4
    assert data["extractor"] == {"name": "triplets", "version": EXTRACTOR.version, "options": EXTRACTOR.options()}
    assert data["tokens"] == {"prompt": 40, "completion": 12} and data["finish_reasons"] == {"stop": 3, "length": 1}
    assert data["counts"]["gold"] == 3 and data["versions"]["python"] and data["git_revision"] and data["machine"]
    assert len(data["prompt_sha256"]) == 64
    again = read_result(result.folder)
    assert (
        again.metrics == result.metrics and again.breakdowns == result.breakdowns and again.failures == result.failures
    )


def test_samples_hold_what_was_shown_expected_and_answered(result: Result) -> None:
    first, *_, last = read_samples(result.folder)
    assert first["input"] == "Mia: I have a cat, says r0." and first["id"] == "r0" and first["group"] == "mia"
    assert first["gold"] == first["predicted"] == [{"subject": "Mia", "relation": "have_pet", "object": "cat"}]
    assert first["counts"]["normalised"] == 1 and first["tags"] == {"phrasing": "seen"}
    assert last["predicted"] is None and last["error"]["kind"] == "truncated" and last["text"] == '[{"subject": "Mi'


def test_answers_that_do_not_match_the_rows_and_missing_facts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1 answers were given for 4 rows"):
        evaluate(ANSWERS[:1], ROWS, EXTRACTOR, tmp_path, META)
    with pytest.raises(ValueError, match="`meta` lacks dataset_sha256, seconds"):
        evaluate(
            ANSWERS,
            ROWS,
            EXTRACTOR,
            tmp_path,
            {k: v for k, v in META.items() if k not in ("seconds", "dataset_sha256")},
        )
    assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (FOUND, True),
        ("[]", True),
        ("```json\n[]\n```", False),
        ('[{"subject": "Mia", "relation": "have_pet"}]', False),
        ('[{"subject": "Mia", "relation": "have_pet", "object": "cat", "more": 1}]', False),
        ("", False),
        ("[" * 100_000, False),
    ],
)
def test_a_text_complies_only_when_it_is_exactly_what_the_schema_admits(text: str, holds: bool) -> None:
    assert schema_check(EXTRACTOR.json_schema)(text) is holds


def test_compliance_follows_a_closed_vocabulary() -> None:
    closed = TripletExtractor(relations=["has_hobby"], closed=True)
    assert not schema_check(closed.json_schema)(FOUND)
