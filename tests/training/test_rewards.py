"""The process reward, component by component, with values computed by hand; and the judge as a real endpoint."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.persona_tree import NO_OP, Chunk, Operation, PersonaTreeExtractor
from extractors.persona_tree.operations import render
from extractors.triplets import Turn
from tests.serve.scripted_server import Reply, chat, refusal, scripted_server
from training.rewards.judge import Judge, read_score
from training.rewards.process import Length, Reward, Weights, process_reward, quality

EXTRACTOR = PersonaTreeExtractor(schema="quickstart")
PETS, HOME = "Identity.Family_System.Pets", "Identity.Social_Identity.Residence"
SIBLINGS, JOB = "Identity.Family_System.Siblings", "Identity.Social_Identity.Occupation"


def chunk(*texts: str, **tree: str) -> Chunk:
    return Chunk(
        {HOME if name == "home" else PETS: value for name, value in tree.items()},
        tuple(Turn("Mia", t) for t in texts),
        "Mia",
    )


CAT = chunk("I adopted a cat called Pixel and I work as a baker.")
GOLD = (Operation("ADD", JOB, "baker"), Operation("ADD", PETS, "cat Pixel"))


def scored(gold: tuple[Operation, ...], text: str, where: Chunk = CAT, **more: Any) -> Reward:
    return process_reward(where, gold, text, EXTRACTOR, **more)


def test_gold_itself_is_worth_one() -> None:
    reward = scored(GOLD, render(GOLD))
    assert reward.value == pytest.approx(1.0) and reward.credit == (1.0, 1.0)
    assert reward.components == {
        "gate": 1.0, "operations": 1.0, "state": 1.0, "keep": 1.0, "grounding": 1.0, "redundancy": 0.0, "overlong": 0.0,
    }  # fmt: skip


def test_a_dropped_operation_costs_operations_and_state() -> None:
    reward = scored(GOLD, f'ADD({JOB}, "baker")')
    assert reward.components["operations"] == pytest.approx(2 / 3)  # 2 * 1 / (2 + 1)
    assert reward.components["state"] == pytest.approx(2 / 3)
    # -1 + 2 * (0.35 * 2/3 + 0.30 * 2/3 + (0.20 + 0.15) * 2/3)
    assert reward.value == pytest.approx(-1 + 2 * 2 / 3)


def test_kind_path_and_value_of_a_pair_are_multiplied_and_added_as_stated() -> None:
    gold = Operation("ADD", PETS, "cat Pixel")
    assert quality(gold, gold) == pytest.approx(1.0)
    assert quality(gold, Operation("UPDATE", PETS, "cat Pixel")) == pytest.approx(0.3 * 0.7 + 0.7)
    assert quality(gold, Operation("ADD", PETS, "cat")) == pytest.approx(0.3 + 0.7 * 2 / 3)  # token F1 of 1 of 2 words
    assert quality(gold, Operation("ADD", SIBLINGS, "cat Pixel")) == pytest.approx(2 / 3)  # two of three names shared
    assert quality(gold, Operation("DELETE", PETS)) == 0.0  # below 0.2, no pair
    assert quality(gold, Operation("ADD", PETS, "dog"), similar=lambda one, other: 0.5) == pytest.approx(0.65)


def test_pairs_are_chosen_for_the_best_sum_and_each_operation_has_its_credit() -> None:
    gold = (Operation("ADD", SIBLINGS, "brother Tom"), Operation("ADD", PETS, "cat Pixel"))
    text = f'ADD({PETS}, "cat Pixel")\nADD({SIBLINGS}, "brother Tom")\nADD({HOME}, "Porto")'
    reward = scored(gold, text)
    assert reward.credit == (1.0, 1.0, 0.0)
    assert reward.components["operations"] == pytest.approx(4 / 5)
    assert reward.components["redundancy"] == pytest.approx(0.5)


def test_what_the_executor_refuses_lowers_the_gate() -> None:
    gold = (Operation("ADD", PETS, "cat Pixel"),)
    twice = scored(gold, f"{render(gold)}\n{render(gold)}")
    assert twice.components["gate"] == 0.5 and twice.components["redundancy"] == 1.0
    # 2/3 operations, state 1: -1 + 2 * 0.5 * (0.35 * 2/3 + 0.30 + 0.35 * 2/3) - 0.2
    assert twice.value == pytest.approx(-1 + 0.7 * 2 / 3 + 0.3 - 0.2)
    assert scored(gold, f'{render(gold)}\nADD({JOB}, "ba').components["gate"] == 0.5  # one line that was cut off
    assert scored(gold, "I cannot say.").value == -1.0
    assert scored(gold, f'ADD({PETS}, "")').value == -1.0


def test_an_update_is_held_to_the_words_that_gold_keeps() -> None:
    where = chunk("We also got a dog.", pets="cat Pixel; parrot Coco")
    gold = (Operation("UPDATE", PETS, "cat Pixel; parrot Coco; dog"),)
    assert scored(gold, render(gold), where).components["keep"] == 1.0
    assert scored(gold, f'UPDATE({PETS}, "cat Pixel; dog")', where).components["keep"] == pytest.approx(0.5)
    assert scored(gold, f'UPDATE({PETS}, "dog")', where).components["keep"] == 0.0
    assert scored(gold, f"DELETE({PETS}, None)", where).components["keep"] == 0.0


def test_a_value_is_grounded_in_the_chunk_or_in_what_its_leaf_held() -> None:
    where = chunk("We also got a dog.", pets="cat Pixel")
    gold = (Operation("UPDATE", PETS, "cat Pixel; dog"),)
    assert scored(gold, f'UPDATE({PETS}, "cat Pixel; dog")', where).components["grounding"] == 1.0
    assert scored(gold, f'UPDATE({PETS}, "cat Pixel; horse")', where).components["grounding"] == pytest.approx(2 / 3)
    assert scored(gold, f'UPDATE({JOB}, "cat Pixel")', where).components["grounding"] == 0.0  # not this leaf's


def test_no_op_has_rules_of_its_own() -> None:
    assert scored((NO_OP,), "NO_OP()").value == 1.0
    for count, due in ((1, -1 / 3), (2, -2 / 3), (3, -1.0), (4, -1.0)):
        paths = [PETS, JOB, HOME, SIBLINGS][:count]
        assert scored((NO_OP,), "\n".join(f'ADD({path}, "x")' for path in paths)).value == pytest.approx(due)
    assert scored(GOLD, "NO_OP()").value == -0.8
    assert scored((NO_OP,), "Nothing new.").value == -1.0  # no answer is no NO_OP


def test_length_has_three_ramps_of_which_the_largest_counts() -> None:
    gold = (Operation("ADD", PETS, "cat Pixel"),)
    assert scored(gold, render(gold), tokens=384).components["overlong"] == 0.0
    assert scored(gold, render(gold), tokens=448).components["overlong"] == 0.5
    assert scored(gold, render(gold), tokens=900).value == pytest.approx(1.0 - 0.2)
    assert scored(gold, render(gold), tokens=90, length=Length(limit=100, cache=20)).components["overlong"] == 0.5
    wordy = scored(gold, f'ADD({PETS}, "cat Pixel and some more")')  # 5 words: one beyond 4
    assert wordy.components["overlong"] == pytest.approx(1 / 4)
    budget = EXTRACTOR.schema.leaves[PETS].budget
    text = f'ADD({PETS}, "{" ".join(["cat"] * round(1.5 * budget))}")'
    assert scored((Operation("ADD", PETS, " ".join(["cat"] * budget)),), text).components["overlong"] == pytest.approx(
        0.5
    )
    assert scored((NO_OP,), "NO_OP()", tokens=512).value == pytest.approx(0.8)


def test_gold_that_the_executor_refuses_is_masked_and_never_zero() -> None:
    reward = scored((Operation("DELETE", HOME),), "NO_OP()")
    assert reward.value is None and reward.components == {"gold_refused": 1.0}


def test_weights_that_do_not_sum_to_one_are_refused() -> None:
    with pytest.raises(ValueError, match="sum to 1.05 instead of 1"):
        Weights(operations=0.4)
    with pytest.raises(ValueError, match="none may be negative"):
        Weights(redundancy=-0.1)
    only_state = Weights(operations=0.0, state=1.0, keep=0.0, grounding=0.0)
    assert scored(GOLD, f'ADD({JOB}, "baker")', weights=only_state).value == pytest.approx(-1 + 2 * 2 / 3)


LEAF = st.sampled_from(list(EXTRACTOR.schema.leaves))
VALUE = st.lists(st.sampled_from(["cat", "baker", "Pixel", "tea", "Porto", "blue"]), min_size=1, max_size=4).map(
    " ".join
)
ANY = st.builds(Operation, st.sampled_from(["ADD", "UPDATE"]), LEAF, VALUE) | st.builds(
    Operation, st.just("DELETE"), LEAF
)


@given(st.lists(ANY, min_size=1, max_size=4).map(tuple), st.integers(0, 600))
def test_a_reward_lies_between_minus_one_and_one_and_no_answer_is_above_gold(
    answer: tuple[Operation, ...], tokens: int
) -> None:
    reward = scored(GOLD, render(answer), tokens=tokens)
    assert reward.value is not None and -1.0 <= reward.value <= 1.0
    assert len(reward.credit) == len(answer) and all(0.0 <= each <= 1.0 for each in reward.credit)
    assert all(0.0 <= each <= 1.0 for each in reward.components.values())
    assert reward.value <= 1.0 == pytest.approx(scored(GOLD, render(GOLD)).value)


def test_a_judge_scores_and_what_it_cannot_score_is_masked_and_counted() -> None:
    def reply(_: int, body: dict[str, Any]) -> Reply:
        assert body["temperature"] == 0.7 and "Reference:\nADD(" in body["messages"][1]["content"]
        candidate = body["messages"][1]["content"].partition("Candidate:\n")[2]
        if candidate.startswith("NO_OP"):
            return chat("It is hard to tell.")
        return refusal(400, "no") if candidate == "(nothing)" else chat('<think>Hm.</think>{"score": 0.7}')

    with scripted_server(reply) as server:
        judge = Judge(server.url, "judge", "key", attempts=2)
        rewards = judge.score_all([(GOLD, render(GOLD)), (GOLD, "NO_OP()"), (GOLD, "")])
        assert [reward.value for reward in rewards] == [0.7, None, None]
        assert judge.failed == {"no score": 1, "BadRequestError": 1}
        assert len(server.requests) == 4  # what could not be read was asked for once more


@pytest.mark.parametrize(
    "text", [None, "", "0.7", '{"score": "good"}', '{"score": 2}', '{"score": true}', '{"score": NaN}', "[1]"]
)
def test_a_score_that_is_none_is_not_read(text: str | None) -> None:
    assert read_score(text) is None
