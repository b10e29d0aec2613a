"""`mnemosmith eval RECIPE`: score a model, and baselines beside it, on the same held-out rows.

    recipe  ->  contract and rows  ->  none of their people in training  ->  baselines  ->  model  ->  report

Each scored system leaves a result folder (see `eval.evaluate`) in `output_dir`, the baselines first, since they take
seconds. With `replays`, the model of a PersonaTree then walks through whole replays (see `eval.replays`).
`--compare A B` sets two such folders side by side.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eval.compare import compare, comparison_table
from eval.evaluate import SCORES, Answer, Prediction, Result, check_gold, evaluate
from eval.recipe import KEYS, EvalRecipe, load_eval_recipe, misplaced
from eval.replays import Replay, draw_replays, find_replays, forget_replays, walk_replays
from eval.report import Section, Text, write_report
from eval.sections import (
    HEADLINES,
    breakdown_bars,
    drawn_examples,
    headline,
    loss_curve,
    metric_bars,
    metric_name,
    metrics_table,
    replay_sections,
)
from extractors import extractor_from_json, load_extractor
from extractors.contract import Extractor, InputError
from extractors.persona_tree import NO_OP, PersonaTreeExtractor
from extractors.rows import Row, read_rows, sha256
from recipes.loader import RecipeError
from recipes.models import ModelError, resolve_model
from serve.client import ExtractorClient, ServerError, folder_extractor
from serve.generate import Generator

AnyRow = Row[Any, Any]
AnyExtractor = Extractor[Any, Any]
# (inputs, shots, on_progress) -> answers
Ask = Callable[[Sequence[Any], Sequence[tuple[Any, Any]], Callable[[int, int], None] | None], Sequence[Answer]]
PLACES = ("replay", "chunk")  # tags that say where a row stands, not what it is like


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `mnemosmith eval`: a recipe and its keys as options, or two result folders to compare."""
    parser.add_argument("recipe", nargs="?", type=Path, help="an eval recipe, such as recipes/eval/triplets-world.yaml")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("A", "B"), help="two result folders on the same rows")
    keys = parser.add_argument_group("keys of the recipe, to override it")
    for key in KEYS.values():
        keys.add_argument(f"--{key.name}", metavar="VALUE", help=key.help)


def run(args: argparse.Namespace) -> int:
    """Runs what the arguments ask for. Returns the exit status: 2 for a faulty recipe or input."""
    try:
        if args.compare:
            first, second = args.compare
            print(comparison_table(compare(first, second), str(first), str(second)))
            return 0
        if args.recipe is None:
            raise InputError(
                "name an eval recipe, such as recipes/eval/triplets-world.yaml, or --compare two result folders."
            )
        overrides = {name: value for name in KEYS if (value := getattr(args, name)) is not None}
        recipe = load_eval_recipe(args.recipe, overrides)
        results = evaluate_recipe(recipe)
    except (RecipeError, InputError, ModelError) as error:
        print(error, file=sys.stderr)
        return 2
    except ServerError as error:
        print(error, file=sys.stderr)
        return 1
    html, png = write_eval_report(recipe, results)
    for label, result in results.items():
        first, *others = HEADLINES[result.meta["extractor"]["name"]]
        print(f"{label}: {metric_name(result, first)} {result.metrics[first]}")
        shown = (f"{metric_name(result, name)} {result.metrics[name].value:.3f}" for name in others)
        print(f"  {', '.join(shown)}")
        print(f"  {result.folder}")
    print(f"report: {html} and {png}")
    return 0


def evaluate_recipe(recipe: EvalRecipe) -> dict[str, Result]:
    """Scores everything that the recipe names; results by label. Raises InputError before any model is loaded."""
    extractor = _contract(recipe)
    if extractor.name not in SCORES:
        raise InputError(
            f"the model's extractor is {extractor.name}, and only {', '.join(SCORES)} can be scored so far."
        )
    for _, message in misplaced(extractor.name, recipe.baselines, recipe.replays):
        raise InputError(message)
    model = recipe.model if recipe.model is None or recipe.served else resolve_model(recipe.model)
    data, out = Path(recipe.dataset_name), Path(recipe.output_dir)
    test_file, train_file = (
        data / f"{split}.jsonl" for split in (recipe.dataset_test_split, recipe.dataset_train_split)
    )
    test = read_rows(test_file, extractor)
    rows = draw_rows(test, recipe.eval_rows, recipe.seed)
    check_gold(rows, extractor)
    replays: list[Replay] = []
    available = 0
    if recipe.replays is not None:
        found = find_replays(test, test_file)
        replays, available = draw_replays(found, recipe.replays, recipe.seed), len(found)
        check_gold([row for replay in replays for row in replay.rows], extractor)
    train: list[AnyRow] = []
    if recipe.baselines or recipe.shots:
        train = read_rows(train_file, extractor)
        walked = [row for replay in replays for row in replay.rows]
        _refuse_leak(train, [*rows, *walked], train_file, test_file)
    shots = draw_shots(train, recipe.shots, recipe.seed)

    out.mkdir(parents=True, exist_ok=True)
    (out / "recipe.yaml").write_text(recipe.to_yaml(), encoding="utf-8")
    common: dict[str, Any] = {
        "dataset": str(test_file),
        "dataset_sha256": sha256(test_file),
        "train_sha256": sha256(train_file) if train else None,
        "eval_rows": recipe.eval_rows,
        "seed": recipe.seed,
    }
    results = {}
    for name in recipe.baselines:
        started = time.perf_counter()
        predicted = _baseline(name, recipe.seed).fit(train).predict([row.input for row in rows])
        meta = {"model": name, "adapter": None, "template_sha256": None, "train_rows": len(train), **common}
        meta["seconds"] = time.perf_counter() - started  # fitting included
        predictions = [Prediction(value) for value in predicted]
        results[name] = evaluate(predictions, rows, extractor, out / name, meta)
    if model is not None:
        shown = [(shot.input, shot.gold) for shot in shots]
        every = recipe.batch_size if recipe.served else 1
        ask, about = (_served if recipe.served else _in_process)(recipe, model, extractor)
        started = time.perf_counter()
        answers = ask([row.input for row in rows], shown, _progress(every=every))
        meta = {"seconds": time.perf_counter() - started, **about()}
        meta |= {"model": recipe.model, "adapter": recipe.adapter, "guided": recipe.guided, **common}
        meta["shots"] = [shot.id for shot in shots]
        forget_replays(out / "model")
        results["model"] = evaluate(answers, rows, extractor, out / "model", meta)
        if replays and isinstance(extractor, PersonaTreeExtractor):
            walk_replays(
                replays,
                extractor,
                lambda chunks: ask(chunks, shown, None),
                out / "model",
                {key: meta[key] for key in ("model", "adapter", "guided", "shots", "dataset_sha256", "seed")}
                | {"available": available},
                _progress(what="replayed rows"),
            )
    return results


def draw_rows(rows: Sequence[AnyRow], count: int | None, seed: int) -> list[AnyRow]:
    """`count` rows at random, in the file's order; all of them for None. Raises InputError for more than there are."""
    if count is None:
        return list(rows)
    if count > len(rows):
        raise InputError(
            f"`eval_rows` is {count}, but the split has {len(rows)} rows: write at most that, or null for all."
        )
    places = sorted(random.Random(seed).sample(range(len(rows)), count))
    return [rows[place] for place in places]


def draw_shots(train: Sequence[AnyRow], count: int, seed: int) -> list[AnyRow]:
    """Worked examples for a prompt, drawn at random; one of several has an empty gold answer where there is one.

    A plain draw from rows that are mostly small talk would show an untrained model little but empty answers, and it
    would copy those: a baseline that is weaker than it need be. Raises InputError for more shots than there are rows to
    draw.
    """
    generator = random.Random(seed)
    empty = [row for row in train if _is_empty(row.gold)]
    full = [row for row in train if not _is_empty(row.gold)]
    empties = 1 if empty and count > 1 else 0
    if count - empties > len(full):
        raise InputError(
            f"`shots` is {count}, but the train split has only {len(full)} rows with something to extract."
        )
    drawn = generator.sample(empty, empties) + generator.sample(full, count - empties)
    generator.shuffle(drawn)
    return drawn


def _is_empty(gold: Any) -> bool:
    """Whether there is nothing to extract: no triplet, or NO_OP."""
    return not gold or gold == (NO_OP,)


def write_eval_report(recipe: EvalRecipe, results: dict[str, Result]) -> tuple[Path, Path]:
    """`report.html` and `report.png` in the recipe's `output_dir`."""
    main = list(results)[-1]
    result = results[main]
    metric = HEADLINES[result.meta["extractor"]["name"]][0]
    name = metric_name(result, metric)
    sections: list[Section] = [headline(result), metric_bars(results, metric, name[0].upper() + name[1:], main)]
    for tag in result.breakdowns:
        if tag not in PLACES:
            sections.append(breakdown_bars(results, tag, metric, f"By {tag}", main))
    sections += replay_sections(result)
    curve = loss_curve(Path(recipe.adapter)) if recipe.adapter else None
    sections += [curve] if curve else []
    sections += [metrics_table(results), drawn_examples(results, seed=recipe.seed)]
    sections.append(
        Text("Where everything lies", pairs=[(label, str(result.folder)) for label, result in results.items()])
    )
    scored = " on ".join(filter(None, (recipe.adapter, recipe.model))) or "baselines"
    return write_report(
        Path(recipe.output_dir), "Evaluation", sections, f"{scored}; {recipe.dataset_name}, {recipe.dataset_test_split}"
    )


def _contract(recipe: EvalRecipe) -> AnyExtractor:
    """The contract that the adapter's run or the exported folder states, else the recipe's. Raises InputError where the
    recipe says another one: the model would be asked in a way that it was not trained for."""
    stated: AnyExtractor | None = None
    source: Path | None = None
    if recipe.adapter is not None:
        folder = Path(recipe.adapter)
        if not (folder / "adapter_config.json").is_file():
            raise InputError(
                f"`adapter` is {recipe.adapter!r}: there is no adapter_config.json in it. Name a training run's folder."
            )
        source = folder / "run.json"
        stated = (
            extractor_from_json(json.loads(source.read_text(encoding="utf-8"))["extractor"])
            if source.is_file()
            else None
        )
    elif recipe.model is not None and (Path(recipe.model) / "extractor.json").is_file():
        source = Path(recipe.model) / "extractor.json"
        stated = folder_extractor(Path(recipe.model))
    if stated is None:
        if recipe.extractor is None:
            raise InputError(
                f"`extractor` is missing, and {recipe.model!r} states no contract. Write `extractor: triplets`."
            )
        return load_extractor(recipe.extractor, recipe.extractor_options)
    if recipe.extractor not in (None, stated.name):
        raise InputError(f"`extractor` is {recipe.extractor!r}, but {source} says {stated.name!r}. Remove the line.")
    if recipe.extractor_options and load_extractor(stated.name, recipe.extractor_options).options() != stated.options():
        raise InputError(
            f"`extractor_options` are {dict(recipe.extractor_options)}, but {source} says {stated.options()}. "
            "Remove the line: the model was trained with those."
        )
    return stated


def _refuse_leak(train: Sequence[AnyRow], test: Sequence[AnyRow], train_file: Path, test_file: Path) -> None:
    shared = sorted({row.group for row in train} & {row.group for row in test})
    if shared:
        raise InputError(
            f"{len(shared)} groups (persons) stand in both {train_file} and {test_file}, the first is {shared[0]!r}: "
            "shots and baselines would know the people that they are scored on. Split the dataset by group."
        )


def _baseline(name: str, seed: int) -> Any:
    from eval.baselines import NearestNeighbour, NoOp, TfidfLinear

    if name == "no_op":
        return NoOp()
    if name == "tfidf_linear":
        return TfidfLinear(seed=seed)
    return NearestNeighbour(slot_filling=name == "minilm_nn_slots", seed=seed)


def _in_process(recipe: EvalRecipe, model: str, extractor: AnyExtractor) -> tuple[Ask, Callable[[], dict[str, Any]]]:
    """What asks a model that is loaded here, and what result.json says about it."""
    generator: Generator[Any, Any] = Generator(
        model,
        extractor,
        adapter=Path(recipe.adapter) if recipe.adapter else None,
        quantization="nf4" if recipe.quantization == "nf4" else None,
        dtype=recipe.dtype,
        guided=recipe.guided,
        batch_size=recipe.batch_size,
        max_tokens=recipe.max_tokens,
    )
    about = {
        "template_sha256": hashlib.sha256(generator.tokenizer.get_chat_template().encode()).hexdigest(),
        "quantization": recipe.quantization,
        "dtype": recipe.dtype,
        "batch_size": recipe.batch_size,
        "max_tokens": generator.max_tokens,
        "device": str(generator.device),
    }
    return generator.generate, lambda: about


def _served(recipe: EvalRecipe, url: str, extractor: AnyExtractor) -> tuple[Ask, Callable[[], dict[str, Any]]]:
    """What asks a server; its notes are known after the last answer."""
    client: ExtractorClient[Any, Any] = ExtractorClient(
        url, extractor, model=recipe.served_model_name, guided=recipe.guided, concurrency=recipe.batch_size
    )
    return client.extract_all, lambda: {
        "template_sha256": None,  # the server's own
        "served_model_name": recipe.served_model_name,
        "concurrency": recipe.batch_size,
        "max_tokens": client.max_tokens,
        "notes": client.notes,
    }


def _progress(every: int = 1, what: str = "rows") -> Callable[[int, int], None]:
    """A line on stderr that says how many rows are done and how long the rest will take."""
    started = time.perf_counter()

    def show(done: int, total: int) -> None:
        if done % every and done != total:
            return
        left = (time.perf_counter() - started) / done * (total - done)
        end = "\n" if done == total or not sys.stderr.isatty() else "\r"
        print(f"  {done} of {total} {what}, {left:.0f} s left  ", end=end, file=sys.stderr, flush=True)

    return show


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m eval.run", description=__doc__, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_arguments(parser)
    return run(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
