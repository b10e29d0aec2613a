"""Supervision from a teacher LLM, as a dataset folder.

    recipe -> dialogues with their roles -> items -> the teacher, through the run folder -> samples agree?
           -> quality gates -> leak gates -> train / dev / test .jsonl, rejected.jsonl, card

    mnemosmith synthesize RECIPE                     ask what is missing, then write the dataset
    mnemosmith synthesize RECIPE --estimate          requests, tokens and cost, without a call
    mnemosmith synthesize RECIPE --retry-failed      ask again what was given up
    mnemosmith synthesize RECIPE --shard 2/4         this machine's quarter (no dataset is written)
    mnemosmith synthesize RECIPE --merge RUN RUN …   the shards' run folders as one, then the dataset

The recipe's keys can be given as options (`--budget 5`). A run can be killed at any moment: the same command goes on
where it was, and asks for nothing that has been answered.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from data_synthesis.card import write_card
from data_synthesis.gates import Limits, Reject, count_rejects, run_gates
from data_synthesis.overlap import assert_no_overlap, remove_overlap
from data_synthesis.plan import Plan, chains, make_plan
from data_synthesis.recipe import KEYS, SynthesisRecipe, load_synthesis_recipe
from data_synthesis.replay import Replay, Step, replay
from data_synthesis.roles import trained_on
from data_synthesis.run_folder import RESPONSES, RunFolder, merge_runs, read_records, shard_of
from data_synthesis.splits import assert_disjoint_groups
from data_synthesis.synthesisers import Answered, Item, Row, load_synthesiser
from data_synthesis.teacher import (
    CHARACTERS_PER_TOKEN,
    BudgetReached,
    Failed,
    Tally,
    Teacher,
    TeacherError,
    TeacherSettings,
    api_key,
)
from extractors import load_extractor
from extractors.contract import ExtractionError, Extractor, InputError
from extractors.endpoint import response_format
from extractors.rows import write_rows
from recipes.loader import RecipeError
from recipes.provenance import git_revision, versions

VERSION = "1"

AnyExtractor = Extractor[Any, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recipe", type=Path, help="a synthesis recipe, such as recipes/synthesis/triplets-deepseek.yaml"
    )
    parser.add_argument("--estimate", action="store_true", help="count requests, tokens and cost; ask nothing")
    parser.add_argument("--retry-failed", action="store_true", help="ask again what an earlier run gave up")
    parser.add_argument("--shard", metavar="I/N", help="ask this part of the items only, on one of N machines")
    parser.add_argument(
        "--merge", nargs="+", type=Path, metavar="RUN", help="run folders of all shards, to put together"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    keys = parser.add_argument_group("keys of the recipe, to override it")
    for key in KEYS.values():
        keys.add_argument(f"--{key.name}", metavar="VALUE", help=key.help)


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 done, 1 the run stopped before its end (start it again), 2 a bad recipe or input."""
    try:
        overrides = {name: value for name in KEYS if (value := getattr(args, name)) is not None}
        recipe = load_synthesis_recipe(args.recipe, overrides)
        shard = _shard(args.shard)
        if args.merge and (shard or args.estimate):
            raise InputError("--merge puts finished shards together: give it without --shard and --estimate.")
        return synthesize(recipe, args, shard)
    except (RecipeError, InputError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped. What was answered is stored: the same command goes on from there.", file=sys.stderr)
        return 1


def synthesize(recipe: SynthesisRecipe, args: argparse.Namespace, shard: tuple[int, int] | None) -> int:
    """The walk from a valid recipe to its dataset folder."""
    extractor = load_extractor(recipe.extractor, recipe.extractor_options)
    plan = make_plan(recipe, extractor)
    print(plan.summary(), flush=True)
    run_path = run_folder_of(recipe, shard)
    if args.estimate:
        print(estimate(plan, recipe, extractor, run_path))
        return 0
    if args.merge:
        merged = merge_runs(args.merge, run_path)
        print(f"merged into {run_path}: " + ", ".join(f"{n} {name}" for name, n in merged.items()))
    items = plan.items if shard is None else [item for item in plan.items if shard_of(item.group, shard[1]) == shard[0]]
    settings = teacher_settings(recipe)
    with RunFolder(run_path) as folder:
        _write_run_record(run_path, recipe, shard)
        if folder.torn:
            print(f"cut off a last line that was not finished: {', '.join(folder.torn)}")
        with Progress(len(items) * recipe.samples, settings, quiet=args.quiet) as progress:
            result = asyncio.run(
                ask_all(items, extractor, recipe, settings, folder, retry_failed=args.retry_failed, on_change=progress)
            )
    print(result.summary(settings))
    if result.stopped:
        print(f"error: {result.stopped}", file=sys.stderr)
        return 1
    if shard is not None:
        print(f"shard {shard[0]}/{shard[1]} is done: {run_path}; `--merge` it with the others for the dataset")
        return 0
    card = build_dataset(plan, result, recipe, extractor)
    print(_dataset_summary(card, Path(recipe.output_dir)))
    return 0


# -- the teacher -----------------------------------------------------------------------------------------------------


@dataclass
class RunResult:
    """Every item's answers, or why it has none; `stopped` says why the run ended before its end. not_reached: by id, the
    failed item of the same chain after which nothing could be asked."""

    answered: list[Answered]
    failed: dict[str, Failed]
    not_reached: dict[str, str]
    tally: Tally
    seconds: float
    used_tokens: tuple[int, int]  # (prompt, completion) of the answers that are used
    spent: float  # answers that could not be used and earlier starts included
    stopped: str | None = None

    def summary(self, settings: TeacherSettings) -> str:
        t = self.tally
        lines = [
            f"asked {t.answered} requests, {t.reused} were in the run folder, {t.reasked} had been in flight at an earlier "
            f"end and were asked again; {sum(t.failed.values())} failed",
            f"  {t.prompt_tokens:,} prompt and {t.completion_tokens:,} completion tokens, "
            f"{t.cost:.4f} {settings.prices.currency} this time, {self.spent:.4f} in all, {self.seconds:.1f} s",
        ]
        if t.faults:
            lines.append(
                "  attempts that brought nothing: " + ", ".join(f"{n} {why}" for why, n in t.faults.most_common())
            )
        if t.failed:
            first = next(iter(self.failed), "")
            lines.append(
                "  given up: " + ", ".join(f"{n} {why}" for why, n in t.failed.most_common())
                + f" (first: {first}); `--retry-failed` asks them again"
            )  # fmt: skip
        if self.not_reached:
            first = next(iter(self.not_reached))
            lines.append(f"  not reached: {len(self.not_reached)} that come after one that failed (first: {first})")
        return "\n".join(lines + [f"  note: {note}" for note in t.notes])


def teacher_settings(recipe: SynthesisRecipe) -> TeacherSettings:
    """Raises InputError where the key's variable is not set."""
    return TeacherSettings(
        model=recipe.model,
        base_url=recipe.base_url,
        api_key=api_key(recipe.base_url, recipe.api_key_env),
        sampling=recipe.sampling(),
        seed=recipe.seed,
        concurrency=recipe.concurrency,
        max_attempts=recipe.max_attempts,
        timeout=recipe.timeout,
        requests_per_minute=recipe.requests_per_minute,
        tokens_per_minute=recipe.tokens_per_minute,
        prices=recipe.prices,
        budget=recipe.budget,
    )


def bound_to(extractor: AnyExtractor, structured_output: str) -> dict[str, Any]:
    """The parameter that binds an answer to its form; {} where the prompt alone asks for the form."""
    if structured_output == "none":
        return {}
    if structured_output == "json_object":
        return {"response_format": {"type": "json_object"}}
    return {"response_format": response_format(extractor)}


async def ask_all(
    items: Sequence[Item],
    extractor: AnyExtractor,
    recipe: SynthesisRecipe,
    settings: TeacherSettings,
    folder: RunFolder,
    *,
    retry_failed: bool = False,
    on_change: Callable[[Tally], None] | None = None,
) -> RunResult:
    """Ask about every item, `samples` times each, and read the answers by the contract. Chains run side by side; one stops
    at an item that fails, since what follows would be asked about a wrong state."""
    follow = load_synthesiser(extractor.name).follow
    extra = bound_to(extractor, recipe.structured_output)
    contract = f"{extractor.name} {extractor.version}"
    found: dict[str, Answered] = {}
    not_reached: dict[str, str] = {}
    used: Counter[str] = Counter()
    failed: dict[str, Failed] = {}

    def why_not(text: str) -> str | None:
        value = extractor.parse(text)
        return str(value) if isinstance(value, ExtractionError) else None

    async with Teacher(settings, folder, retry_failed=retry_failed, on_change=on_change) as teacher:

        async def ask(state: Mapping[str, Any], item: Item) -> Step[Mapping[str, Any], Any] | Failed:
            item = replace(item, input={**item.input, **state})
            messages = extractor.messages(extractor.read_input(item.input))
            values: list[Any] = []
            for sample in range(recipe.samples):
                reply = await teacher.ask(messages, contract=contract, usable=why_not, sample=sample, extra=extra)
                if isinstance(reply, Failed):
                    failed[item.id] = reply
                    return reply
                used.update(prompt=reply.prompt_tokens, completion=reply.completion_tokens)
                values.append(extractor.write_output(extractor.parse(reply.text)))
            found[item.id] = Answered(item, tuple(values))
            return Step(values, state if follow is None else follow(extractor, item, values[0]))

        async def ask_chain(chain: Sequence[Item]) -> None:
            nothing: Mapping[str, Any] = {}
            walked: Replay[Mapping[str, Any], Any] = await replay(chain, nothing, ask)
            if walked.stopped is not None:
                failure, *rest = chain[len(chain) - walked.left :]
                not_reached.update((item.id, failure.id) for item in rest)

        loop = asyncio.get_running_loop()
        started = loop.time()
        stopped = await side_by_side((ask_chain(chain) for chain in chains(items)), settings.concurrency)
        seconds = loop.time() - started
    answered = [found[item.id] for item in items if item.id in found]
    tokens = (used["prompt"], used["completion"])
    why = _why(stopped, teacher, settings)
    return RunResult(answered, failed, not_reached, teacher.tally, seconds, tokens, teacher.spent, why)


async def side_by_side(jobs: Iterator[Awaitable[None]], count: int) -> Exception | None:
    """Run jobs, `count` at a time. When one says that the run is over (TeacherError, BudgetReached, a disk that takes
    no more), no further job is begun, those that are under way end by themselves, and the first such error is returned."""
    over: list[Exception] = []

    async def worker() -> None:
        for job in jobs:  # shared by all workers: each takes the next one that is left
            try:
                await job
            except (TeacherError, BudgetReached, OSError) as error:
                over.append(error)
            if over:
                return

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(worker())
    return over[0] if over else None


def _why(stopped: Exception | None, teacher: Teacher, settings: TeacherSettings) -> str | None:
    if isinstance(stopped, BudgetReached):
        return (
            f"the budget of {settings.budget:g} {settings.prices.currency} is reached ({teacher.spent:.4f} spent). What was "
            "answered is stored: raise `budget` and start the same command again."
        )
    return None if stopped is None else str(stopped)


class Progress:
    """The bar: requests done, with tokens, cost, failures and the time that is left."""

    def __init__(self, total: int, settings: TeacherSettings, quiet: bool = False):
        from tqdm import tqdm

        self._bar = tqdm(total=total, unit="request", disable=quiet, smoothing=0.05, mininterval=0.5)
        self._currency = settings.prices.currency

    def __call__(self, tally: Tally) -> None:
        self._bar.update(1)
        if not self._bar.disable:
            tokens = tally.prompt_tokens + tally.completion_tokens
            self._bar.set_postfix_str(
                f"{tokens / 1e3:.0f}k tokens, {tally.cost:.3f} {self._currency}, {sum(tally.failed.values())} failed",
                refresh=False,
            )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()


# -- cost beforehand -------------------------------------------------------------------------------------------------


def estimate(plan: Plan, recipe: SynthesisRecipe, extractor: AnyExtractor, run_path: Path) -> str:
    """Requests, tokens and cost of a whole run. Prompt tokens are counted as characters / 4; completion tokens are the
    mean of what the run folder holds already, else the recipe's `expected_completion_tokens`."""
    characters = sum(
        len(message["content"])
        for item in plan.items
        for message in extractor.messages(extractor.read_input(item.input))
    )
    stored = read_records(run_path / RESPONSES) if (run_path / RESPONSES).is_file() else []
    requests = len(plan.items) * recipe.samples
    prompt = characters / CHARACTERS_PER_TOKEN * recipe.samples
    if stored:
        mean, source = (
            sum(r["completion_tokens"] for r in stored) / len(stored),
            f"mean of {len(stored)} stored answers",
        )
        ratio = sum(r["prompt_tokens"] for r in stored) / len(stored)
        prompt, prompt_source = ratio * requests, source
    else:
        mean, source = float(recipe.expected_completion_tokens), "`expected_completion_tokens` of the recipe"
        prompt_source = f"characters / {CHARACTERS_PER_TOKEN:g}"
    cost = recipe.prices.cost(prompt, mean * requests)
    lines = [
        f"requests            {requests:,} ({len(plan.items):,} items x {recipe.samples} samples)",
        f"prompt tokens       {prompt:,.0f} ({prompt / requests:.0f} a request; {prompt_source})",
        f"completion tokens   {mean * requests:,.0f} ({mean:.0f} a request; {source})",
        f"cost                {cost:,.2f} {recipe.prices.currency}"
        + ("" if recipe.prices.prompt or recipe.prices.completion else " (the recipe states no prices)"),
    ]
    if any(item.chain for item in plan.items) and not stored:
        lines.append(
            "                    trees were counted as empty: prompts grow with them, to 10,240 tokens at most"
        )
    if recipe.requests_per_minute:
        lines.append(
            f"time                at least {requests / recipe.requests_per_minute:.0f} min (requests_per_minute)"
        )
    return "\n".join(lines)


# -- the dataset -----------------------------------------------------------------------------------------------------


def build_dataset(plan: Plan, result: RunResult, recipe: SynthesisRecipe, extractor: AnyExtractor) -> dict[str, Any]:
    """Rows from answers, through the gates, into the dataset folder. Returns its card. Raises InputError where no row is
    left, or where splits overlap."""
    synthesiser = load_synthesiser(recipe.extractor)
    made, left = synthesiser.rows(result.answered, recipe)
    rejects = [Reject(one.answered.row(one.answered.outputs[0]), one.reason, one.detail) for one in left]
    limits = Limits(
        input_words=(1, recipe.max_words),
        min_grounded=recipe.min_grounded,
        min_kept=recipe.min_kept,
        near_duplicate=synthesiser.near_duplicate,
        max_empty_share=recipe.max_empty_share,
        max_label_share=recipe.max_label_share,
    )
    splits: dict[str, list[Row]] = {}
    for split in recipe.splits:
        rows = [row for row, answered in made if answered.item.split == split]
        samples = {a.item.id: a.outputs for _, a in made if a.item.split == split} if recipe.samples > 1 else None
        splits[split], refused = run_gates(rows, recipe.extractor, limits, samples)
        rejects += refused
    before, (splits, overlap) = splits, remove_overlap(splits)
    for split, rows in before.items():
        stays = {row["id"] for row in splits[split]}
        rejects += [
            Reject(row, "overlap", "stands, or nearly stands, in a later split")
            for row in rows
            if row["id"] not in stays
        ]
    splits = {split: rows for split, rows in splits.items() if rows}
    if not splits:
        raise InputError(f"no row passed the gates: {json.dumps(count_rejects(rejects))}")
    assert_disjoint_groups(splits)
    assert_no_overlap(splits)
    out = Path(recipe.output_dir)
    for split, rows in splits.items():
        for row in rows:
            row["tags"]["teacher"] = recipe.model
        write_rows(out / f"{split}.jsonl", rows)
    write_rows(out / "rejected.jsonl", [reject.to_json() for reject in rejects])
    return write_card(
        out,
        name=f"{recipe.extractor}-supervision",
        version=VERSION,
        source=f"answers of {recipe.model} on " + ", ".join(plan.sources),
        licence="; ".join(plan.licences) + "; and the terms of the teacher",
        seed=recipe.seed,
        splits=splits,
        details={
            "extractor": extractor.to_json(),
            "corpora": plan.sources,
            "trained_on": trained_on(recipe.role_override),
            "not_asked": plan.refused,
            "synthesis": _account(result, recipe),
            "rejected": count_rejects(rejects),
            "overlap": overlap,
            **(synthesiser.details(made) if synthesiser.details is not None else {}),
        },
    )


def _account(result: RunResult, recipe: SynthesisRecipe) -> dict[str, Any]:
    """What the dataset took. The tokens and the cost are those of the answers that it was made of, however often the run
    was restarted, so that the same answers give the same card."""
    failed: dict[str, Any] = {}
    for name, failure in result.failed.items():
        entry = failed.setdefault(failure.reason, {"count": 0, "first_id": name})
        entry["count"] += 1
    not_reached = (
        {"count": len(result.not_reached), "first_id": next(iter(result.not_reached))} if result.not_reached else {}
    )
    return {
        "model": recipe.model,
        "sampling": recipe.sampling(),
        "samples": recipe.samples,
        "requests": (len(result.answered) + len(result.failed)) * recipe.samples,
        "answered": len(result.answered) * recipe.samples,
        "failed": failed,
        **({"not_reached": not_reached} if not_reached else {}),
        "prompt_tokens": result.used_tokens[0],
        "completion_tokens": result.used_tokens[1],
        "cost": round(recipe.prices.cost(*result.used_tokens), 6),
        "currency": recipe.prices.currency,
    }


def run_folder_of(recipe: SynthesisRecipe, shard: tuple[int, int] | None) -> Path:
    """Where the responses go: beside the dataset, so that the dataset folder holds nothing but the dataset."""
    suffix = "-run" if shard is None else f"-run-{shard[0]}-of-{shard[1]}"
    return Path(recipe.output_dir.rstrip("/") + suffix)


def _write_run_record(path: Path, recipe: SynthesisRecipe, shard: tuple[int, int] | None) -> None:
    record = {
        "recipe": recipe.to_json(),
        "recipe_digest": _digest(recipe),
        "shard": list(shard) if shard else None,
        "versions": versions(),
        "git_revision": git_revision(short=False),
    }
    temporary = path / "run.json.partial"
    temporary.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path / "run.json")


def _digest(recipe: SynthesisRecipe) -> str:
    """Of all that decides what is asked; limits, prices and gates may differ between the shards of one run."""
    asked = (
        "extractor",
        "extractor_options",
        "role_override",
        "corpora",
        "splits",
        "max_turns",
        "context_turns",
        "rows",
        "model",
        "samples",
    )
    values = recipe.to_json()
    parts = {name: values[name] for name in (*asked, "structured_output", "seed")} | {"sampling": recipe.sampling()}
    for choice in parts["corpora"]:
        choice.pop("source")  # the same corpus lies elsewhere on another machine
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    number, _, count = text.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise InputError(f"`--shard` is {text!r}: write I/N with 1 <= I <= N, for example 2/4.")
    return int(number), int(count)


def _dataset_summary(card: dict[str, Any], out: Path) -> str:
    rows = ", ".join(f"{split} {counts['rows']}" for split, counts in card["splits"].items())
    lines = [f"dataset {out}: {rows}"]
    lines += [
        f"  rejected: {v['count']} x {why} (first: {v['first_id']})" for why, v in card["details"]["rejected"].items()
    ]
    return "\n".join([*lines, f"look at it: mnemosmith data show {out}"])
