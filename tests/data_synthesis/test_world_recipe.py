"""The simulation recipes: what is read, what is refused, and with which words."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import mnemosmith
from data_synthesis.simulate import RECIPE_KEYS, simulate, simulate_recipe
from data_synthesis.world.life import capacity
from recipes.loader import RECIPES, RecipeError

GOOD = {"out": "unused", "people": 12, "seed": 0}


@pytest.mark.parametrize("name", ["quickstart/world.yaml", "world/full.yaml"])
def test_shipped_simulation_recipes_can_be_made(name):
    values = yaml.safe_load((RECIPES / name).read_text(encoding="utf-8"))
    assert set(values) == set(RECIPE_KEYS)
    assert abs(sum(values["splits"].values()) - 1) < 1e-9
    assert all(values["people"] * share < capacity(split) for split, share in values["splits"].items())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"peple": 3},
            "unknown key `peple`: a simulation recipe has out, people, sessions, seed, splits. Did you mean `people`?",
        ),
        ({"people": "many"}, "`people` is 'many': write a whole number of at least 6"),
        ({"people": True}, "`people` is True"),
        ({"people": 2}, "`people` is 2"),
        ({"seed": -1}, "`seed` is -1"),
        ({"sessions": 20}, "`sessions` is 20: write a whole number from 1 to 8"),
        ({"splits": {"train": 0.9, "test": 0.1}}, "write a share for each of train, dev and test"),
        ({"splits": {"train": 0.9, "dev": 0.2, "test": 0.1}}, "three shares between 0 and 1 that add up to 1"),
        ({"out": ""}, "`out` is ''"),
    ],
)
def test_a_faulty_recipe_is_refused_with_the_key_the_value_and_what_to_write(change, words):
    with pytest.raises(RecipeError, match="1 error") as refusal:
        simulate_recipe(GOOD | change)
    assert words in str(refusal.value)


def test_all_faults_are_told_at_once():
    with pytest.raises(RecipeError) as refusal:
        simulate_recipe({"people": 1, "sessions": 0, "sed": 3})
    assert len(refusal.value.problems) == 5


def test_more_people_than_the_names_can_tell_apart_are_refused_with_the_most_that_fit(tmp_path):
    with pytest.raises(RecipeError) as refusal:
        simulate(tmp_path, people=10_000_000, seed=0)
    assert "has names for" in str(refusal.value) and "Write at most" in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_folder_and_a_bad_recipe_exits_with_2(tmp_path, capsys):
    recipe = tmp_path / "world.yaml"
    recipe.write_text(f"out: {tmp_path / 'out'}\npeople: 6\nseed: 3\n", encoding="utf-8")
    assert mnemosmith.main(["simulate", str(recipe)]) == 0
    assert (tmp_path / "out" / "card.json").is_file() and "persona-world" in capsys.readouterr().out
    recipe.write_text("out: a\npeople: 6\npeople: 8\nseed: 3\n", encoding="utf-8")
    assert mnemosmith.main(["simulate", str(recipe)]) == 2
    assert "`people` is written twice" in capsys.readouterr().err
    assert mnemosmith.main(["simulate", str(tmp_path / "absent.yaml")]) == 2


def test_a_larger_world_begins_with_the_smaller_one(tmp_path):
    for people in (40, 80):
        simulate(tmp_path / str(people), people=people, seed=0)
    small, large = ((tmp_path / str(n) / "train.jsonl").read_text(encoding="utf-8").splitlines() for n in (40, 80))
    assert large[: len(small)] == small and len(large) > len(small)


def test_sessions_are_as_many_as_asked_for(tmp_path):
    simulate(Path(tmp_path), people=6, seed=0, sessions=6)
    lines = (tmp_path / "dialogues.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(yaml.safe_load(line)["sessions"][5]["turns"] for line in lines[:1])
