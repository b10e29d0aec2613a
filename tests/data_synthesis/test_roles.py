"""Every conversation has one role per extractor, said in roles.yaml; what it does not know is an error."""

from __future__ import annotations

from collections import Counter

import pytest

from data_synthesis.corpora import CORPORA
from data_synthesis.dialogues import Dialogue, Session, Turn
from data_synthesis.roles import ROLES, role_of, split_by_role, trained_on
from extractors.contract import InputError

EXTRACTORS = ("triplets", "persona_tree", "continuity", "typed_memory")
IN_THE_PAPER = "continuity-as-in-the-paper"
LOCOMO = [f"conv-{n}" for n in (26, 30, 41, 42, 43, 44, 47, 48, 49, 50)]


def dialogue(corpus: str, name: str, group: str | None = None, **labels: str) -> Dialogue:
    return Dialogue(name, corpus, group or name, (Session("s0", "", (Turn("t0", "A", "Hi."),)),), labels)


def counted(dialogues: list[Dialogue], extractor: str, override: str | None = None) -> dict[str, int]:
    return {role: len(found) for role, found in split_by_role(dialogues, extractor, override).items() if found}


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_locomo_tunes_with_two_conversations_tests_with_eight_and_trains_with_none(extractor: str) -> None:
    conversations = [dialogue("locomo", name) for name in LOCOMO]
    assert counted(conversations, extractor) == {"dev": 2, "test": 8}


def test_continuity_is_trained_on_locomo_only_when_asked_for_and_then_none_is_left_to_test() -> None:
    conversations = [dialogue("locomo", name) for name in LOCOMO]
    assert counted(conversations, "continuity", IN_THE_PAPER) == {"train": 8, "dev": 2}
    assert counted(conversations, "triplets", IN_THE_PAPER) == {"dev": 2, "test": 8}
    assert counted([dialogue("longmemeval", "x")], "continuity", IN_THE_PAPER) == {"test": 1}
    assert trained_on(IN_THE_PAPER) == "locomo"
    assert trained_on(None) is None
    with pytest.raises(InputError, match="no exception is called 'please': .* has continuity-as-in-the-paper"):
        role_of("locomo", "continuity", conversations[0], "please")


def test_personamem_personas_are_for_rl_or_for_test_and_no_persona_for_both() -> None:
    contexts = [dialogue("personamem", f"c{n}", group=str(n % 20)) for n in range(40)]
    assert counted(contexts, "persona_tree") == {"test": 24, "rl": 16}
    for extractor in set(EXTRACTORS) - {"persona_tree"}:
        roles = split_by_role(contexts, extractor)
        assert {d.group for d in roles["test"]} == {d.group for d in split_by_role(contexts, "persona_tree")["test"]}
        assert not roles["train"] and not roles["rl"]


def test_halumems_users_of_the_published_slices_are_held_out() -> None:
    for user in ("2f1f897e-d67f-dbc5-6a7b-b7634a9e294f", "5c005ed8-0d18-99f8-a20e-6a776a7ea30a"):
        for extractor in EXTRACTORS:
            assert role_of("halumem", extractor, dialogue("halumem", f"{user}/preferences", group=user)) == "test"


def test_msc_valid_trains_and_tunes_and_msc_test_tests() -> None:
    valid = [dialogue("msc", f"valid_{n}", split="valid") for n in range(400)]
    counts = counted(valid, "triplets")
    assert set(counts) == {"train", "dev"}
    assert 340 <= counts["train"] <= 380
    assert counted([dialogue("msc", f"test_{n}", split="test") for n in range(9)], "triplets") == {"test": 9}


def test_corpora_without_use_for_an_extractor_are_never() -> None:
    shift = dialogue("tiage", "train/1", split="train")
    assert role_of("tiage", "continuity", shift) == "train"
    assert role_of("tiage", "triplets", shift) == "never"
    assert role_of("personaext", "continuity", dialogue("personaext", "pe-1", split="train")) == "never"
    assert role_of("memochat", "continuity", dialogue("memochat", "m", split="test")) == "test"
    assert {role_of("longmemeval", extractor, dialogue("longmemeval", "q")) for extractor in EXTRACTORS} == {"test"}


def test_own_groups_are_split_by_their_hash_alone() -> None:
    own = [dialogue("own", f"d{n}", group=f"g{n % 500}") for n in range(1_000)]
    roles = split_by_role(own, "typed_memory")
    home = {d.group: role for role, members in roles.items() for d in members}
    sizes = Counter(home.values())
    assert set(sizes) == {"train", "dev", "test"}
    assert 360 <= sizes["train"] <= 440
    # Which others there are, and in which order, changes nothing.
    assert all(role_of("own", "typed_memory", d) == home[d.group] for d in reversed(own[:50]))
    assert {home[f"g{n}"] for n in (1, 2)} <= set(ROLES)


@pytest.mark.parametrize(
    ("corpus", "name", "message"),
    [
        ("locomo", "conv-99", "locomo conversation 'conv-99' has no role for triplets: its id 'conv-99'"),
        ("personamem", "c", "its group 'c' is not in data_synthesis/roles.yaml"),
        ("msc", "valid_1", "msc conversation 'valid_1' has no role for triplets: its split 'None'"),
        ("squad", "x", "corpus 'squad' has no role"),
    ],
)
def test_a_conversation_that_the_table_does_not_know_is_named(corpus: str, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        split_by_role([dialogue(corpus, name)], "triplets")


def test_an_unknown_extractor_is_refused() -> None:
    with pytest.raises(InputError, match="extractor 'summaries' has no roles"):
        role_of("msc", "summaries", dialogue("msc", "valid_1", split="valid"))


def test_a_group_with_two_roles_is_refused() -> None:
    pair = [dialogue("tiage", "a", "g", split="train"), dialogue("tiage", "b", "g", split="test")]
    with pytest.raises(InputError, match="conversation 'b' is for test, but another of its group 'g' is for train"):
        split_by_role(pair, "continuity")


def test_every_corpus_with_a_loader_has_roles() -> None:
    for corpus in CORPORA:
        with pytest.raises(InputError, match="^(?!.*'.*' has no role: the corpora)"):
            split_by_role([dialogue(corpus, "unknown", split="unknown")], "nothing")
