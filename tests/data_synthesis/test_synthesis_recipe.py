"""A synthesis recipe is read strictly: every fault at once, and never a key's value on the screen."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from data_synthesis.recipe import KEYS, SynthesisRecipe, load_synthesis_recipe
from recipes.loader import RECIPES, RecipeError

GOOD = {
    "extractor": "triplets",
    "corpora": [{"name": "world", "source": "outputs/world"}],
    "model": "m",
    "base_url": "http://localhost:8000/v1",
    "output_dir": "outputs/taught",
}


def load(tmp_path: Path, values: dict) -> SynthesisRecipe:
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return load_synthesis_recipe(path)


def test_every_shipped_synthesis_recipe_is_read():
    paths = sorted((RECIPES / "synthesis").glob("*.yaml"))
    assert {path.name for path in paths} >= {"triplets-deepseek.yaml", "continuity-deepseek.yaml", "triplets-vllm.yaml"}
    for path in paths:
        recipe = load_synthesis_recipe(path)
        assert recipe.budget is None or recipe.prices.completion > 0


def test_the_resolved_recipe_is_the_same_recipe(tmp_path: Path):
    recipe = load(tmp_path, GOOD | {"prices": {"prompt": 1, "completion": 2}, "budget": 3, "splits": ["dev", "train"]})
    (tmp_path / "again.yaml").write_text(recipe.to_yaml(), encoding="utf-8")
    assert load_synthesis_recipe(tmp_path / "again.yaml") == recipe
    assert recipe.splits == ("train", "dev"), "leak gates take from train first, whatever the order in the file"


def test_every_key_is_a_field_and_every_default_agrees():
    fields = SynthesisRecipe.__dataclass_fields__
    assert set(KEYS) == set(fields)
    plain = SynthesisRecipe("triplets", (), "m", "http://x/v1", "out")
    for name in set(KEYS) - set(GOOD) - {"prices", "splits"}:
        assert getattr(plain, name) == KEYS[name].default, name


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"api_key": "sk-123"}, "`api_key` is not a key of a synthesis recipe. Did you mean `api_key_env`?"),
        ({"max_retries": 3}, "Did you mean `max_attempts`?"),
        ({"temprature": 0.1}, "Did you mean `temperature`?"),
        ({"temperature": 3}, "`temperature` is 3"),
        ({"splits": ["train", "all"]}, "`splits`"),
        ({"corpora": [{"nam": "msc"}]}, "`corpora[0]`"),
        ({"corpora": [{"name": "msc", "limit": 3}]}, "the key `limit`"),
        ({"corpora": [{"name": "msc", "dialogues": 0}]}, "dialogues is 0"),
        ({"base_url": "localhost:8000"}, "write http(s)://HOST/v1"),
        ({"budget": 5}, "`budget` is set but `prices` is empty"),
        ({"prices": {"prompt": -1}}, "`prices.prompt` is -1"),
        ({"prices": {"input": 1}}, "the key `input`"),
        ({"extra_body": {"temperature": 0}}, "`extra_body` holds `temperature`"),
        ({"extractor": None}, "`extractor`"),
    ],
)
def test_a_fault_is_named_with_what_to_write_instead(tmp_path: Path, change: dict, says: str):
    with pytest.raises(RecipeError) as error:
        load(tmp_path, GOOD | change)
    assert says in str(error.value)


@pytest.mark.parametrize("key", ["api_key_env", "api_key"])
def test_a_key_written_into_the_recipe_is_refused_and_not_shown(tmp_path: Path, key: str):
    with pytest.raises(RecipeError) as error:
        load(tmp_path, GOOD | {key: "sk-live-0123456789abcdef"})
    assert "0123456789" not in str(error.value)


def test_all_faults_are_reported_at_once(tmp_path: Path):
    with pytest.raises(RecipeError) as error:
        load(tmp_path, {"extractor": "triplets", "modell": "m", "top_p": 2, "corpora": [3]})
    assert len(error.value.problems) >= 5
