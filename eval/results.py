"""Recorded results: every measured figure of the project, in `docs/results.json`, with what it takes to measure it
again.

    python -m eval.results                  write docs/results.md anew from docs/results.json
    python -m eval.results --check          exit 1 when results.md or a figure in README.md says something else
    python -m eval.results --fill-readme    put the recorded values into README.md

A benchmark calls `record` itself, so a figure in the documentation was printed by a run. The README marks its figures
(`<!-- result: sft.tokens_per_s_ratio -->1.02<!-- /result -->`) and rounds them as it likes.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from recipes.provenance import git_revision, machine

RESULTS = Path("docs/results.json")
README = Path("README.md")
_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")
_MARK = re.compile(r"<!-- result: (?P<name>\S+) -->(?P<text>.*?)<!-- /result -->", re.DOTALL)
_NUMBER = re.compile(
    r"(?P<whole>-?\d[\d,]*)(?P<decimals>\.\d+)?(?P<exponent>e[-+]?\d+)?(?P<percent>\s?%)?", re.IGNORECASE
)


class ResultsError(ValueError):
    """A figure that cannot be recorded or a results file that cannot be read: says which and why."""


@dataclass(frozen=True)
class Figure:
    """One measured figure. value: as measured, unrounded; n: what it is an average over; interval: 95%, (low, high);
    machine: the kind of machine; date: ISO day (UTC); git_revision: short HEAD, `+dirty` when tracked files
    differed."""

    name: str
    value: float
    n: int | None
    interval: tuple[float, float] | None
    command: str
    data: str
    model: str
    machine: str
    date: str
    git_revision: str
    note: str | None = None


def record(
    name: str,
    value: float,
    *,
    n: int | None = None,
    interval: tuple[float, float] | None = None,
    command: str,
    data: str,
    model: str,
    note: str | None = None,
    path: Path = RESULTS,
) -> Figure:
    """Writes one figure, in place of an earlier one of this name from this kind of machine, and renders results.md
    beside it.

    Safe for several processes at once; a reader never sees half a file. Raises ResultsError for a name that is not
    `group.name`, a value that is not finite, an n below 1, or an interval that is upside down.
    """
    if not _NAME.fullmatch(name):
        raise ResultsError(
            f"`name` is {name!r}: write lower-case words joined by dots, such as sft.tokens_per_s_ratio."
        )
    if isinstance(value, bool) or not math.isfinite(value):
        raise ResultsError(f"`{name}` is {value!r}: only a finite number is a result.")
    if n is not None and n < 1:
        raise ResultsError(f"`{name}` has n = {n}: leave n out where nothing is averaged.")
    if interval is not None and not interval[0] <= interval[1]:
        raise ResultsError(
            f"`{name}` has the interval {interval}: (low, high) with low <= high is due; leave it out if unknown."
        )
    figure = Figure(
        name=name,
        value=value,
        n=n,
        interval=None if interval is None else (float(interval[0]), float(interval[1])),
        command=command,
        data=data,
        model=model,
        machine=machine(),
        date=datetime.now(UTC).date().isoformat(),
        git_revision=git_revision(),
        note=note,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.parent):
        others = (
            [f for f in read(path) if (f.name, f.machine) != (figure.name, figure.machine)] if path.exists() else []
        )
        figures = sorted([*others, figure], key=lambda f: (f.name, f.machine))
        rows = [asdict(f) for f in figures]
        _write(path, json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        _write(path.with_suffix(".md"), _markdown(figures))
    return figure


def read(path: Path = RESULTS) -> list[Figure]:
    """The recorded figures. Raises ResultsError for a file of another shape."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        known = {field.name for field in fields(Figure)}
        for row in rows:
            if set(row) != known:
                raise ResultsError(
                    f"{path}: row {row.get('name')!r} has the fields {sorted(row)}, due are {sorted(known)}."
                )
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ResultsError(f"{path} cannot be read as recorded results: {error}") from error
    return [Figure(**{**row, "interval": tuple(row["interval"]) if row["interval"] else None}) for row in rows]


def render(path: Path = RESULTS) -> str:
    """The text of results.md for a results.json."""
    return _markdown(read(path))


def check_readme(text: str, rows: Sequence[Figure]) -> list[str]:
    """What is wrong with the marked figures of a README, one sentence each; empty when all agree.

    A figure agrees when it is the recorded value in its own rounding (`0.71`, `71%`, `1,234`, `9.8e-07`). Of a name
    that was measured on several kinds of machine any value will do.
    """
    faults = []
    for mark in _MARK.finditer(text):
        name, printed = mark["name"], mark["text"].strip()
        values = [row.value for row in rows if row.name == name]
        if not values:
            faults.append(f"`{name}` stands in the README but was never recorded.")
        elif not _NUMBER.fullmatch(printed):
            faults.append(f"`{name}` is printed as {printed!r}, which is not a number.")
        elif printed not in [print_like(value, printed) for value in values]:
            due = " or ".join(sorted({print_like(value, printed) for value in values}))
            faults.append(f"`{name}` is printed as {printed}, recorded is {due}.")
    opened, closed, whole = text.count("<!-- result:"), text.count("<!-- /result -->"), len(_MARK.findall(text))
    if not opened == closed == whole:
        faults.append(
            f"{opened} result marks are opened and {closed} are closed: "
            "write <!-- result: NAME -->0.71<!-- /result -->."
        )
    return faults


def fill_readme(text: str, rows: Sequence[Figure]) -> str:
    """The README with the recorded value in every mark, rounded as the figure there was. A name that was never recorded
    stays as it is; of several machines the newest value is taken, unless the figure agrees with one of them already."""

    def filled(mark: re.Match[str]) -> str:
        printed = mark["text"].strip()
        measured = sorted((row for row in rows if row.name == mark["name"]), key=lambda row: row.date)
        if not measured or printed in [print_like(row.value, printed) for row in measured]:
            return mark[0]
        return f"<!-- result: {mark['name']} -->{print_like(measured[-1].value, printed)}<!-- /result -->"

    return _MARK.sub(filled, text)


def print_like(value: float, printed: str) -> str:
    """`value` in the form of another number: its decimals, thousands commas, exponent and percent sign."""
    form = _NUMBER.fullmatch(printed)
    if not form:
        return print_value(value)
    decimals = len(form["decimals"] or ".") - 1
    if form["percent"]:
        return f"{value * 100:.{decimals}f}{form['percent']}"
    if form["exponent"]:
        return f"{value:.{decimals}e}"
    grouped = "," if "," in form["whole"] else ""
    return f"{value:{grouped}.{decimals}f}"


def print_value(value: float) -> str:
    """A figure for a table: four significant digits, thousands grouped, tiny ones with an exponent."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 0.001 else f"{value:.2e}"


def _markdown(figures: Sequence[Figure]) -> str:
    lines = [
        "# Measured results",
        "",
        "Rendered from `results.json` by `python -m eval.results`; every row was written by the run that measured it.",
        "Intervals are 95%. `+dirty` marks a revision with changes that were not committed at the time.",
    ]
    for prefix, group in groupby(
        sorted(figures, key=lambda f: (f.name, f.machine)), key=lambda f: f.name.split(".")[0]
    ):
        members = list(group)
        lines += ["", f"## {prefix}", ""]
        lines += ["| figure | value | n | interval | machine | date | revision |", "|---|---:|---:|---|---|---|---|"]
        for f in members:
            interval = f"{print_value(f.interval[0])} to {print_value(f.interval[1])}" if f.interval else ""
            cells = [
                f"`{f.name}`",
                print_value(f.value),
                f"{f.n:,}" if f.n else "",
                interval,
                f.machine,
                f.date,
                f.git_revision,
            ]
            lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
        measured: dict[tuple[str, str, str], list[str]] = {}
        for f in members:
            measured.setdefault((f.command, f.model, f.data), []).append(f.name)
        for (command, model, data), names in measured.items():
            which = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
            lines += ["", f"{which}: `{command}`", f"(model: {model}; data: {data})"]
        notes = [f"- `{f.name}`: {f.note}" for f in members if f.note]
        lines += ["", *notes] if notes else []
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """An advisory lock on the folder itself, which leaves no lock file behind; the kernel releases it with its
    holder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m eval.results", description="Render and check the recorded results."
    )
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when a document is out of date")
    parser.add_argument("--fill-readme", action="store_true", help="put the recorded values into the README's marks")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="default: %(default)s")
    parser.add_argument("--readme", type=Path, default=README, metavar="FILE", help="default: %(default)s")
    args = parser.parse_args(arguments)
    try:
        figures, rendered = read(args.results), render(args.results)
    except ResultsError as error:
        print(error, file=sys.stderr)
        return 2
    document = args.results.with_suffix(".md")
    readme = args.readme.read_text(encoding="utf-8") if args.readme.exists() else ""
    if not args.check:
        _write(document, rendered)
        if args.fill_readme:
            readme = fill_readme(readme, figures)
            _write(args.readme, readme)
    faults = [f"{args.readme}: {fault}" for fault in check_readme(readme, figures)]
    if not document.exists() or document.read_text(encoding="utf-8") != rendered:
        faults.append(f"{document} is not what {args.results} renders to: run `python -m eval.results`.")
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(f"{len(figures)} recorded figures; {document} and {args.readme} agree with them.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
