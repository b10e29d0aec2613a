"""From a wording to a sentence."""

from __future__ import annotations

import pytest

from data_synthesis.world import wordings
from data_synthesis.world.grammar import ADDRESSEE, SPEAKER, Reference, finish, mark, names_speaker, realise, sentence
from data_synthesis.world.life import TRAITS
from data_synthesis.world.values import article, is_plural
from data_synthesis.world.wordings.talk import dealt

SISTER = Reference("third", f"my sister {mark('Ana')}", "she")


def said(wording: str, about: Reference, value: str = "ferret") -> str:
    return finish(sentence(realise(wording, about, {"o": mark(value, "m1")}))).plain


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        (SPEAKER, "I carry my ferret because I'm allowed to."),
        (ADDRESSEE, "You carry your ferret because you're allowed to."),
        (SISTER, "My sister Ana carries her ferret because she's allowed to."),
        (SISTER.again(), "She carries her ferret because she's allowed to."),
    ],
)
def test_one_wording_speaks_of_any_person(about, expected):
    assert said("{I} {carry} {my} {o} because {Im} allowed to", about) == expected


def test_a_genitive_comes_first_where_the_wording_begins_with_it():
    assert (
        said("{my} {o} woke {me} up and {I} {am} tired", SISTER)
        == "My sister Ana's ferret woke her up and she is tired."
    )


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("iguana", "an iguana"),
        ("ukulele", "a ukulele"),
        ("unicorn costume", "a unicorn costume"),
        ("Elgin taxi", "an Elgin taxi"),
        ("ferret", "a ferret"),
    ],
)
def test_articles_follow_the_sound(noun, expected):
    assert article(noun) == expected


@pytest.mark.parametrize("noun", ["olives", "mice", "liver and onions", "snow globes", "frogs' legs"])
def test_plural_values_take_are(noun):
    assert is_plural(noun)
    assert said("{o} {is} {my} weakness", SPEAKER, noun).lower() == f"{noun} are my weakness."


@pytest.mark.parametrize("noun", ["haggis", "mac and cheese", "hummus", "mushroom risotto", "couscous"])
def test_mass_values_take_is(noun):
    assert not is_plural(noun)


def test_a_finished_turn_knows_where_its_values_stand_and_its_template():
    text = finish(
        sentence(realise("{o}? never. {I} {have} {a2}", SPEAKER, {"o": mark("olives"), "o2": mark("owl", "m7")}))
    )
    assert text.plain == "Olives? Never. I have an owl."
    assert text.spans == {"m7": (text.plain.index("owl"), "owl")}
    other = finish(sentence(realise("{o}? never. {I} {have} {a2}", SPEAKER, {"o": mark("figs"), "o2": mark("cat")})))
    assert text.skeleton == other.skeleton and "owl" not in text.skeleton


def test_a_wording_that_says_i_in_so_many_words_is_for_the_speaker_alone():
    assert names_speaker("I sold {o}") and names_speaker("ask my boss") and not names_speaker("{I} sold {my} {o}")


def test_every_phrasing_of_every_relation_leaves_no_slot_open():
    for relation, items in wordings.phrasings().items():
        counted = relation in TRAITS and TRAITS[relation].counted
        for phrasing in items:
            values = {"o": mark("ferret"), "o2": mark("gecko"), "r": "aunt", "N": "the cat"}
            for text in (phrasing.question, phrasing.text):
                for about in (SPEAKER, ADDRESSEE) if phrasing.speaker_only else (SPEAKER, ADDRESSEE, SISTER):
                    plain = finish(sentence(realise(text, about, values))).plain
                    assert "{" not in plain and "  " not in plain, phrasing
            assert "{o}" in phrasing.text or "{a}" in phrasing.text, phrasing
            assert counted or "{a}" not in phrasing.text, phrasing


def test_the_lines_around_the_facts_are_dealt_to_test_or_to_the_others():
    for name in ("OPENERS", "TRAILERS", "JOINS", "FILLERS", "SMALL_TALK", "PROMPTS", "REACTIONS", "DOUBTS", "COUNTERS"):
        train, test = set(dealt(name, "train")), set(dealt(name, "test"))
        assert train and test and not train & test and set(dealt(name, "dev")) == train
