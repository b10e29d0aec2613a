"""The report: one valid page without anything outside it, and a picture."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

from eval.evaluate import REQUIRED_META, Result, evaluate
from eval.report import (
    Bar,
    Bars,
    Curve,
    Example,
    Examples,
    Headline,
    Section,
    Table,
    Text,
    TreeLine,
    TreePicture,
    write_report,
)
from eval.sections import breakdown_bars, drawn_examples, loss_curve, metric_bars, metrics_table
from extractors.rows import Row
from extractors.triplets import Dialogue, Triplet, TripletExtractor, Turn
from serve.answers import read_answer

EXTRACTOR = TripletExtractor(prompt="compact")
CAT = Triplet("Mia", "have_pet", "cat")
VOID = {"meta", "img", "br", "hr", "link", "input"}
SECTIONS: list[Section] = [
    Headline([("0.812", "triplet F1", "n = 400"), ("+0.65", "over five shots", "")]),
    Bars(
        "Scores <of> everyone",
        [Bar("base", 0.0), Bar("trained & exported", 0.81, 0.78, 0.84, emphasis=True)],
        "F1",
        "95% lines",
    ),
    Bars("By phrasing", [Bar("trained", 0.8, series="seen"), Bar("trained", 0.7, 0.6, 0.75, series="unseen")], "F1"),
    Bars("Seconds", [Bar("ours", 12.5), Bar("plain", 14.0)], "seconds", limit=None),
    Curve("Loss", [("training", [(1, 2.0), (2, 1.0)]), ("held-out", [(2, 1.2)])], "step", "loss"),
    TreePicture(
        "Her tree",
        [
            TreeLine(0, "Identity", "group"),
            TreeLine(1, "Name: Mia $x_1$ <b>", "right"),
            TreeLine(1, "Work: nurse", "wrong", "head nurse"),
            TreeLine(0, "Behaviour", "group"),
            TreeLine(1, "Home: " + "far " * 99, "missing"),
            TreeLine(2, "Pets: " + "x" * 300, "extra"),
        ],
        "of one walk",
    ),
    Table("All", ["metric", "trained"], [["F1", "0.812"]], "n = 400"),
    Examples(
        "Rows",
        [
            Example(
                "Mia: <b>hi</b> & bye", "(a, b, c)", [("trained", "nothing", False), ("base", "(a, b, c)", True)], "tag"
            )
        ],
    ),
    Text("Files", ["All of them."], [("model", "outputs/export")]),
]


class _Balance(HTMLParser):
    """Checks that tags are closed in order, and keeps the text and the addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.addresses: list[str] = []
        self.images = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.images += tag == "img"
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_shows_what_was_given_and_stands_alone(tmp_path: Path) -> None:
    html, png = write_report(tmp_path / "new", "Before & after", SECTIONS, "400 rows")
    page = _Balance()
    page.feed(html.read_text(encoding="utf-8"))
    page.close()
    assert page.open == []
    text = " ".join(" ".join(page.text).split())
    for part in (
        "Before & after", "400 rows", "0.812", "over five shots", "Scores <of> everyone", "95% lines", "F1",
        "Mia: <b>hi</b> & bye",
        "nothing", "✗ wrong", "✓ right", "tag", "outputs/export", "All of them.",
    ):  # fmt: skip
        assert part in text, part
    assert page.images == 5
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_chart_says_its_figures_to_whoever_cannot_see_it(tmp_path: Path) -> None:
    html, _ = write_report(tmp_path, "t", SECTIONS)
    page = html.read_text(encoding="utf-8")
    assert 'alt="Scores &lt;of&gt; everyone: base 0.000, trained &amp; exported 0.810"' in page
    assert 'alt="Loss: training from 2.000 to 1.000, held-out from 1.200 to 1.200"' in page
    assert (
        'alt="Her tree: Identity; Name: Mia $x_1$ &lt;b&gt;; Work: nurse gold: head nurse; Behaviour; Home: far' in page
    )


def test_a_report_without_a_chart_and_one_without_a_headline_are_drawn_too(tmp_path: Path) -> None:
    for name, sections in (("a", SECTIONS[:1]), ("b", SECTIONS[1:2]), ("c", SECTIONS[-1:])):
        html, png = write_report(tmp_path / name, "title", sections)
        assert html.stat().st_size > 1000 and png.stat().st_size > 1000


def _result(folder: Path, right: int) -> Result:
    """Ten rows of five persons, the first `right` of them answered right and the last one not readable."""
    rows = [
        Row(
            f"r{i}", f"p{i // 2}", Dialogue((Turn("Mia", f"Cat {i}?"),)), (CAT,) if i else (), {"phrasing": "ab"[i % 2]}
        )
        for i in range(10)
    ]
    answers = [
        read_answer(EXTRACTOR, EXTRACTOR.render(row.gold if i < right else ()), "stop") for i, row in enumerate(rows)
    ]
    answers[-1] = read_answer(EXTRACTOR, "no idea", "stop")
    return evaluate(answers, rows, EXTRACTOR, folder, dict.fromkeys(REQUIRED_META))


def test_sections_show_what_the_result_folders_hold(tmp_path: Path) -> None:
    results = {"base": _result(tmp_path / "base", 1), "trained": _result(tmp_path / "trained", 9)}
    bars = metric_bars(results, "recall", "Recall", emphasis="trained")
    assert [(bar.label, round(bar.value, 3), bar.emphasis) for bar in bars.bars] == [
        ("base", 0.0, False),
        ("trained", 0.889, True),
    ]
    assert bars.bars[1].low is not None and "10 rows of 5 persons" in bars.note
    parts = breakdown_bars(results, "phrasing", "right_rows", "By phrasing")
    assert [(bar.series, bar.value) for bar in parts.bars if bar.label == "trained"] == [
        ("phrasing: a", 1.0),
        ("phrasing: b", 0.8),
    ]
    assert "a 5, b 5" in parts.note
    table = metrics_table(results)
    assert table.header == ["", "base (n = 10)", "trained (n = 10)"]
    shown = dict((row[0], row[1:]) for row in table.rows)
    assert shown["rows right as a whole"][0].startswith("0.100 [") and shown["answers that cannot be read"][
        1
    ].startswith("0.100 [")
    assert shown["triplet recall"][0] == "0.000"  # no bracket that would pass for certainty


def test_examples_are_drawn_with_the_seed_and_marked_right_or_wrong(tmp_path: Path) -> None:
    results = {"base": _result(tmp_path / "base", 1), "trained": _result(tmp_path / "trained", 9)}
    drawn = drawn_examples(results, count=10)
    assert drawn == drawn_examples(results, count=10) and drawn.note == "10 of 10 rows, drawn with seed 0."
    by_input = {example.input: example for example in drawn.examples}
    assert by_input["Mia: Cat 1?"].gold == "(Mia, have_pet, cat)"
    assert by_input["Mia: Cat 1?"].answers == [("base", "nothing", False), ("trained", "(Mia, have_pet, cat)", True)]
    assert by_input["Mia: Cat 0?"].answers == [("base", "nothing", True), ("trained", "nothing", True)]
    assert "cannot be read: no_json" in by_input["Mia: Cat 9?"].answers[1][1]


def test_the_loss_curve_comes_from_the_runs_log_and_is_absent_without_one(tmp_path: Path) -> None:
    assert loss_curve(tmp_path) is None
    log = [
        {"step": 1, "loss": 2.0},
        {"step": 2, "eval_loss": 1.5},
        {"step": 2, "loss": 1.0},
        {"step": 2, "train_runtime": 3},
    ]
    (tmp_path / "train_log.jsonl").write_text("\n".join(map(json.dumps, log)) + "\n")
    curve = loss_curve(tmp_path)
    assert curve is not None
    assert curve.lines == [("training", [(1.0, 2.0), (2.0, 1.0)]), ("held-out", [(2.0, 1.5)])]
