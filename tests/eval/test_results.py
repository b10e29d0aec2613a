"""Recorded results: writing, replacing, rendering, and the figures of the README."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval import results
from eval.results import Figure, ResultsError, check_readme, fill_readme, print_like, print_value, read, record, render

CHECKOUT = Path(__file__).resolve().parent.parent.parent
HOW: dict[str, Any] = {"command": "pytest tests/benchmarks", "data": "world, test", "model": "SmolLM2-135M"}
ROW = Figure("sft.ratio", 1.0249, 200, (0.9, 1.1), "c", "d", "m", "a CPU", "2026-01-02", "abc1234")


def test_a_recorded_figure_holds_what_it_takes_to_measure_it_again(tmp_path: Path) -> None:
    path = tmp_path / "docs" / "results.json"
    record("world.f1", 0.8123, n=400, interval=(0.78, 0.84), note="first try", path=path, **HOW)
    (row,) = json.loads(path.read_text())
    assert (row["name"], row["value"], row["n"], row["interval"], row["note"]) == (
        "world.f1",
        0.8123,
        400,
        [0.78, 0.84],
        "first try",
    )
    assert (row["command"], row["data"], row["model"]) == (HOW["command"], HOW["data"], HOW["model"])
    assert "cores" in row["machine"] and "GB" in row["machine"]
    assert len(row["date"]) == 10 and row["git_revision"]
    assert read(path)[0].interval == (0.78, 0.84)


def test_a_second_measurement_on_the_same_kind_of_machine_replaces_the_first(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    record("world.f1", 0.1, path=path, **HOW)
    record("b.other", 2, path=path, **HOW)
    record("world.f1", 0.2, path=path, **HOW)
    assert [(row.name, row.value) for row in read(path)] == [("b.other", 2), ("world.f1", 0.2)]


def test_the_same_figure_from_another_kind_of_machine_stands_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    record("world.f1", 0.1, path=path, **HOW)
    rows = json.loads(path.read_text())
    rows[0]["machine"] = "another"
    path.write_text(json.dumps(rows))
    record("world.f1", 0.2, path=path, **HOW)
    assert sorted(row.value for row in read(path)) == [0.1, 0.2]


def _record_ten(path: Path, prefix: str) -> None:
    for i in range(10):
        record(f"{prefix}.n{i}", i, path=path, **HOW)


def test_processes_that_record_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_record_ten, args=(path, name)) for name in ("a", "b", "c")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(read(path)) == 30
    assert sorted(file.name for file in tmp_path.iterdir()) == ["results.json", "results.md"]


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("F1", {}, "lower-case words"),
        ("a.b", {"value": float("nan")}, "finite"),
        ("a.b", {"n": 0}, "leave n out"),
        ("a.b", {"interval": (0.9, 0.1)}, "low <= high"),
        ("a.b", {"interval": (float("nan"), float("nan"))}, "leave it out"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, name: str, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ResultsError, match=said):
        record(name, **{"value": 0.5, "path": tmp_path / "results.json", **HOW, **change})


def test_the_rendered_page_groups_by_prefix_and_says_how_each_figure_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    record("world.f1", 0.81234, n=400, interval=(0.78, 0.84), note="greedy", path=path, **HOW)
    record("sft.seconds", 1234.5, path=path, **HOW)
    text = render(path)
    assert text == path.with_suffix(".md").read_text()
    assert text.index("## sft") < text.index("## world")
    assert "| `world.f1` | 0.8123 | 400 | 0.78 to 0.84 |" in text
    assert "| `sft.seconds` | 1,234 |" in text
    assert "`pytest tests/benchmarks`" in text and "greedy" in text


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0.71249, "0.7125"),
        (12345.6, "12,346"),
        (9.84e-7, "9.84e-07"),
        (3, "3"),
        (1e6, "1,000,000"),
        (0.0, "0"),
        (-0.5, "-0.5"),
    ],
)
def test_figures_are_printed_with_four_significant_digits(value: float, printed: str) -> None:
    assert print_value(value) == printed


@pytest.mark.parametrize(
    ("value", "form", "printed"),
    [
        (0.7125, "0.0", "0.7"),
        (0.7125, "50%", "71%"),
        (0.7125, "1.0 %", "71.2 %"),
        (12345.6, "1,000", "12,346"),
        (9.84e-7, "1.0e-3", "9.8e-07"),
    ],
)
def test_a_figure_takes_the_form_of_the_one_it_replaces(value: float, form: str, printed: str) -> None:
    assert print_like(value, form) == printed


def test_a_readme_that_rounds_the_recorded_value_agrees_and_another_value_does_not() -> None:
    mark = "Ratio <!-- result: sft.ratio -->{}<!-- /result --> of TRL's."
    for right in ("1.02", "1.0", "102%", "1"):
        assert check_readme(mark.format(right), [ROW]) == []
    (fault,) = check_readme(mark.format("1.03"), [ROW])
    assert "`sft.ratio` is printed as 1.03, recorded is 1.02" in fault


def test_a_readme_figure_that_was_never_recorded_or_is_no_number_is_named() -> None:
    text = "<!-- result: a.b -->0.5<!-- /result --> <!-- result: sft.ratio -->soon<!-- /result -->"
    faults = check_readme(text, [ROW])
    assert "`a.b` stands in the README but was never recorded." in faults[0]
    assert "'soon'" in faults[1]


def test_a_mark_that_is_not_closed_is_named() -> None:
    assert "1 result marks are opened and 0 are closed" in check_readme("<!-- result: sft.ratio -->1.02", [ROW])[0]


def test_filling_keeps_the_rounding_and_what_agrees_with_any_machine() -> None:
    other = replace(ROW, value=2.5, machine="a GPU", date="2026-02-02")
    text = "<!-- result: sft.ratio -->{}<!-- /result --> and <!-- result: a.b -->0.5<!-- /result -->"
    assert fill_readme(text.format("0.00"), [ROW]) == text.format("1.02")
    assert fill_readme(text.format("1.0"), [ROW, other]) == text.format("1.0")
    assert fill_readme(text.format("7.0"), [ROW, other]) == text.format("2.5")
    assert fill_readme(text.format("?"), [ROW]) == text.format("1.025")


def test_the_command_line_renders_fills_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, readme = tmp_path / "results.json", tmp_path / "README.md"
    record("sft.ratio", 1.0249, path=path, **HOW)
    readme.write_text("<!-- result: sft.ratio -->0.00<!-- /result -->")
    where = ["--results", str(path), "--readme", str(readme)]
    assert results.main(["--check", *where]) == 1
    assert "printed as 0.00" in capsys.readouterr().err
    assert results.main(["--fill-readme", *where]) == 0
    assert "1.02" in readme.read_text()
    assert results.main(["--check", *where]) == 0
    path.with_suffix(".md").write_text("edited by hand")
    assert results.main(["--check", *where]) == 1
    assert "is not what" in capsys.readouterr().err
    assert results.main(["--check", "--results", str(tmp_path / "none.json")]) == 2


@pytest.mark.skipif(
    not (CHECKOUT / "docs" / "results.json").exists(), reason="nothing was recorded yet: no docs/results.json"
)
def test_the_projects_own_results_page_and_readme_agree_with_what_was_recorded() -> None:
    path = CHECKOUT / "docs" / "results.json"
    assert path.with_suffix(".md").read_text(encoding="utf-8") == render(path), "run `python -m eval.results`"
    assert check_readme((CHECKOUT / "README.md").read_text(encoding="utf-8"), read(path)) == []
