"""PersonaTree metrics on cases that can be counted by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors import ExtractionError
from extractors.persona_tree import NO_OP, Chunk, Operation
from extractors.persona_tree.score import (
    Counts,
    count,
    count_state,
    metrics,
    path_similarity,
    state_metrics,
    value_similarity,
)
from extractors.triplets import Turn

TREE = {"A.B.Pets": "cat Pixel, aged 3", "A.B.Home": "Lisbon"}
CHUNK = Chunk(TREE, (Turn("user", "x"),))
FAILED = ExtractionError("schema", 0, "")
ADD = Operation("ADD", "A.B.Job", "the data analyst")
UPDATE = Operation("UPDATE", "A.B.Pets", "cat Pixel, aged 4")
DELETE = Operation("DELETE", "A.B.Home")
OPERATION = st.builds(
    Operation,
    st.sampled_from(["ADD", "UPDATE"]),
    st.sampled_from(["A.B.Pets", "A.B.Job", "C.D"]),
    st.sampled_from("xyz"),
)
OPERATIONS = st.lists(OPERATION, min_size=1, max_size=4).map(tuple) | st.just((NO_OP,))


def scores(gold: tuple[Operation, ...], answer: tuple[Operation, ...] | ExtractionError) -> dict[str, float]:
    return metrics(count(CHUNK, gold, answer))


@given(OPERATIONS)
def test_the_gold_answer_is_right_in_every_respect(gold: tuple[Operation, ...]) -> None:
    got = count(CHUNK, gold, gold)
    found = metrics(got)
    assert found["right_rows"] == found["exact_rows"] == found["parse_rate"] == 1.0
    for name in ("f1", "path_accuracy", "path_similarity", "kind_accuracy", "value_f1", "value_match"):
        assert found[name] == float(gold != (NO_OP,))
    assert found["noop_f1"] == float(gold == (NO_OP,))


@given(st.lists(st.tuples(OPERATIONS, OPERATIONS | st.just(FAILED)), max_size=5))
def test_every_metric_of_any_answers_is_a_share(
    rows: list[tuple[tuple[Operation, ...], tuple[Operation, ...]]],
) -> None:
    found = metrics(sum((count(CHUNK, *row) for row in rows), Counts()))
    assert all(0.0 <= value <= 1.0 for value in found.values()), found


def test_operations_are_counted_by_kind_path_and_normalised_value() -> None:
    found = scores(
        (ADD, UPDATE, DELETE), (Operation("ADD", "A.B.Job", "Data analyst."), UPDATE, Operation("DELETE", "A.C"))
    )
    assert found["f1"] == found["precision"] == found["recall"] == pytest.approx(2 / 3)
    assert (found["f1_add"], found["f1_update"], found["f1_delete"]) == (1.0, 1.0, 0.0)
    assert found["path_accuracy"] == pytest.approx(2 / 3)
    assert found["path_similarity"] == pytest.approx((2 + path_similarity("A.B.Home", "A.C")) / 3, abs=1e-4)
    assert found["right_rows"] == 0.0


def test_a_wrong_kind_at_the_right_path_is_a_path_and_no_hit() -> None:
    found = scores((ADD,), (Operation("UPDATE", ADD.path, ADD.value),))
    assert found["path_accuracy"] == found["value_match"] == 1.0 and found["kind_accuracy"] == found["f1"] == 0.0


def test_each_operation_is_matched_once_and_extra_ones_cost_precision() -> None:
    found = scores((ADD,), (ADD, ADD, UPDATE))
    assert found["precision"] == pytest.approx(1 / 3) and found["recall"] == 1.0 and found["path_accuracy"] == 1.0
    assert found["right_rows"] == 0.0


def test_a_failure_misses_everything_and_is_no_no_op() -> None:
    for gold in ((ADD, UPDATE), (NO_OP,)):
        found = scores(gold, FAILED)
        assert found["parse_failure_rate"] == 1.0
        assert not any(value for name, value in found.items() if name != "parse_failure_rate")


def test_no_op_has_precision_and_recall_over_rows() -> None:
    rows: list[tuple[tuple[Operation, ...], tuple[Operation, ...] | ExtractionError]]
    rows = [((NO_OP,), (NO_OP,)), ((NO_OP,), (ADD,)), ((ADD,), (NO_OP,)), ((ADD,), (NO_OP,)), ((NO_OP,), FAILED)]
    found = metrics(sum((count(CHUNK, gold, answer) for gold, answer in rows), Counts()))
    assert found["noop_precision"] == pytest.approx(1 / 3) and found["noop_recall"] == pytest.approx(1 / 3)


def test_words_that_gold_keeps_of_an_old_value_are_to_be_kept() -> None:
    # Gold keeps cat, Pixel and aged.
    assert scores((UPDATE,), (UPDATE,))["keep_old"] == 1.0
    assert scores((UPDATE,), (Operation("UPDATE", "A.B.Pets", "aged 4"),))["keep_old"] == pytest.approx(1 / 3)
    assert scores((UPDATE,), (Operation("DELETE", "A.B.Pets"),))["keep_old"] == 0.0
    assert scores((UPDATE,), (NO_OP,))["keep_old"] == 1.0
    assert count(CHUNK, (ADD,), (ADD,)).old_words == 0


def test_similarity_of_paths_and_values() -> None:
    assert path_similarity("A.B.C", "A.B.C") == 1.0 and path_similarity("A.B.C", "X.B.C") == 0.0
    assert path_similarity("A.B.C", "A.B.D") == pytest.approx(2 / 3)
    assert path_similarity("A.B.C.D", "A.B") == pytest.approx(2 / 3)
    assert value_similarity("green tea", "The green TEA!") == 1.0
    assert value_similarity("green tea", "black tea") == 0.5
    assert value_similarity("tea", None) == 0.0 and value_similarity(None, None) == 1.0


def test_state_is_compared_over_the_leaves_that_changed() -> None:
    gold = {"A.B.Pets": "cat Pixel, aged 4", "A.B.Job": "data analyst"}  # Home emptied
    assert state_metrics(count_state(TREE, gold, gold)) == {"state_f1": 1.0, "soft_state_f1": 1.0}
    assert state_metrics(count_state(TREE, gold, TREE))["state_f1"] == 0.0
    half = {"A.B.Pets": TREE["A.B.Pets"], "A.B.Job": "data clerk"}
    found = count_state(TREE, gold, half)
    assert (found.gold, found.predicted, found.hits) == (3, 2, 1)
    assert state_metrics(found)["soft_state_f1"] == pytest.approx(2 * 1.5 / 5)
    assert state_metrics(count_state(TREE, TREE, TREE))["state_f1"] == 1.0
    assert state_metrics(count_state({}, gold, TREE))["state_f1"] == 0.0
