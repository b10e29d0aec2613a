"""What the executor makes of an answer, on cases that can be counted by hand."""

from __future__ import annotations

import pytest

from extractors import ExtractionError, InputError
from extractors.persona_tree import NO_OP, Chunk, Operation, load_schema
from extractors.persona_tree.outcome import Counts, count, metrics
from extractors.triplets import Turn

SCHEMA = load_schema("quickstart")
HOME, WORK, PETS = (
    f"Identity.{name}" for name in ("Social_Identity.Residence", "Social_Identity.Occupation", "Family_System.Pets")
)
CHUNK = Chunk({HOME: "Lisbon"}, (Turn("Mia", "x"),), "Mia")
MOVED = Operation("UPDATE", HOME, "Porto")
FAILED = ExtractionError("schema", 0, "")


def of(gold: tuple[Operation, ...], answer: tuple[Operation, ...] | ExtractionError) -> Counts:
    return count(CHUNK, gold, answer, SCHEMA)


def test_a_state_is_right_where_other_operations_lead_to_the_same_tree() -> None:
    found = metrics(of((MOVED,), (Operation("ADD", HOME, "Porto"),)))
    assert found["f1"] == 0.0 and found["state_f1"] == found["acceptance_rate"] == 1.0


def test_what_the_executor_refuses_is_proposed_and_not_accepted() -> None:
    answer = (
        Operation("ADD", "Identity.Moon", "x"),  # no leaf
        Operation("DELETE", PETS),  # empty
        Operation("ADD", WORK, "nurse"),  # superseded
        Operation("ADD", WORK, "baker"),
    )
    found = of((MOVED,), answer)
    assert (found.predicted, found.accepted) == (4, 1) and metrics(found)["acceptance_rate"] == 0.25
    assert (found.state_gold, found.state_predicted, found.state_hits) == (1, 1, 0)


def test_an_unreadable_answer_executes_nothing() -> None:
    found = of((MOVED,), FAILED)
    assert (found.predicted, found.accepted, found.state_predicted, found.parse_failures) == (0, 0, 0, 1)
    assert metrics(found)["state_f1"] == 0.0 and "acceptance_rate" not in metrics(found)


def test_no_op_is_no_operation_and_leaves_the_state() -> None:
    found = of((NO_OP,), (NO_OP,))
    assert (found.predicted, found.accepted, found.state_gold) == (0, 0, 0) and metrics(found)["state_f1"] == 1.0


def test_counts_of_rows_add_up_to_micro_averages_and_a_refused_gold_operation_is_counted() -> None:
    total = of((MOVED,), (MOVED,)) + of((MOVED, Operation("DELETE", PETS)), (NO_OP,))
    assert total.rows == 2 and total.gold_refused == 1 and total.state_gold == 2
    assert metrics(total)["state_f1"] == pytest.approx(2 / 3)


def test_a_tree_that_the_schema_does_not_permit_is_refused() -> None:
    with pytest.raises(InputError, match=r"'Moon' is no leaf"):
        count(Chunk({"Moon": "x"}, CHUNK.turns), (NO_OP,), (NO_OP,), SCHEMA)
