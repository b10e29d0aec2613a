"""The page of a dataset folder: one HTML file with its pictures and styles inside, for `mnemosmith data show --html`."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from data_synthesis.show import (
    REJECTS,
    Dataset,
    cost_pairs,
    input_lengths,
    other_details,
    split_table,
    tail_note,
    written,
    written_input,
)

INK, SOFT, LINE, QUIET = "#1c2528", "#5d6b70", "#dfe5e6", "#c9d2d4"
SERIES = ("#1d6b62", "#e0a458", "#7a8fa6")  # train, dev, test
LABELS = 30  # in the plot


def write_page(path: Path, data: Dataset, examples: int) -> None:
    """Write the page, making its folder where needed."""
    card = data.card
    parts = [f"<header><h1>{escape(card['name'])}</h1><p class=soft>{escape(_subtitle(data))}</p></header>"]
    if data.stale:
        files = escape(", ".join(data.stale))
        parts.append(
            f"<section class=warn><b>Stale:</b> the card no longer describes {files}. The figures are the card's; "
            "write the dataset again before you train on it.</section>"
        )
    header, *rows = split_table(card)
    parts.append(_section("Splits", _picture(_splits_figure(card), "rows by split") + _table(header, rows)))
    if found := data.labels():
        title = f"Labels ({len(found)})"
        parts.append(_section(title, _picture(_labels_figure(data), "label distribution"), tail_note(data)))
    if lengths := input_lengths(data):
        parts.append(_section("Length of the inputs", _picture(_lengths_figure(lengths), "words of the inputs")))
    parts.append(_rejects(data))
    if pairs := cost_pairs(card):
        parts.append(_section("Synthesis", _pairs(pairs)))
    if shown := data.examples(examples):
        body = "".join(_example(f"{split} {row['id']}", row["input"], row["gold"]) for split, row in shown)
        parts.append(_section("Some rows", body, "Drawn at random, always the same ones."))
    plain, named = other_details(card)
    about = [("source", str(card.get("source"))), ("licence", str(card.get("licence"))), *plain]
    about += [("in card.json too", ", ".join(named))] if named else []
    parts.append(_section("Where it comes from", _pairs(about)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_PAGE.format(title=escape(card["name"]), css=_CSS, body="\n".join(parts)), encoding="utf-8")


def _subtitle(data: Dataset) -> str:
    rows = sum(counts["rows"] for counts in data.card["splits"].values())
    return f"{rows:,} rows; version {data.card.get('version')}, seed {data.card.get('seed')}"


def _section(title: str, body: str, note: str = "") -> str:
    below = f"<p class=soft>{escape(note)}</p>" if note else ""
    return f"<section><h2>{escape(title)}</h2>{body}{below}</section>"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return f"<div class=wide><table>{line('th', header)}{''.join(line('td', row) for row in rows)}</table></div>"


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs) + "</dl>"


def _example(title: str, value: Any, gold: Any, note: str = "") -> str:
    why = f"<p class=bad>{escape(note)}</p>" if note else ""
    return (
        f"<article><p class=soft>{escape(title)}</p>{why}<blockquote>{escape(written_input(value))}</blockquote>"
        f"<code>{escape(written(gold))}</code></article>"
    )


def _rejects(data: Dataset) -> str:
    rejected = data.card["details"].get("rejected") or {}
    if not rejected:
        return ""
    body = _picture(_rejects_figure({reason: entry["count"] for reason, entry in rejected.items()}), "rejected rows")
    for reason in rejected:
        lines = [line for line in data.rejected if line["reason"] == reason][:REJECTS]
        body += "".join(
            _example(line["id"], line["input"], line["output"], f"{reason}: {line['detail']}") for line in lines
        )
    return _section(f"Rejected rows ({sum(entry['count'] for entry in rejected.values()):,})", body)


# -- pictures --------------------------------------------------------------------------------------------------------


def _figure(height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, height), layout="constrained")
    axes = figure.add_subplot()
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    axes.tick_params(length=0, colors=SOFT, labelsize=9)
    axes.tick_params(axis="y", colors=INK)
    axes.set_axisbelow(True)
    axes.xaxis.label.set(size=9, color=SOFT)
    return figure, axes


def _legend(axes: Any, order: Sequence[str] = ()) -> None:
    """Above the chart, on the right, where it covers nothing."""
    handles, names = axes.get_legend_handles_labels()
    if order:
        handles, names = [handles[names.index(name)] for name in order], order
    place = {"loc": "lower right", "bbox_to_anchor": (1, 1)}
    axes.legend(handles, names, ncols=len(names), frameon=False, fontsize=9, **place)


def _colours(splits: Sequence[str]) -> dict[str, str]:
    return {split: SERIES[place % len(SERIES)] for place, split in enumerate(splits)}


def _splits_figure(card: Any) -> Any:
    """Rows of each split, those without gold apart."""
    splits = card["splits"]
    figure, axes = _figure(0.7 + 0.4 * len(splits))
    most = max([counts["rows"] for counts in splits.values()], default=1) or 1
    for place, (split, counts) in enumerate(splits.items()):
        rows, empty = counts["rows"], counts.get("empty_rows", 0)
        axes.barh(place, rows - empty, height=0.6, color=_colours(list(splits))[split])
        axes.barh(place, empty, left=rows - empty, height=0.6, color=QUIET)
        said = f"{rows:,}" + (f", {empty:,} without gold" if empty else "")
        axes.text(rows + most * 0.01, place, said, va="center", size=9, color=INK)
    axes.set_yticks(range(len(splits)), list(splits))
    axes.invert_yaxis()
    axes.set_xlim(0, most * 1.2)
    axes.set_xlabel("rows")
    axes.grid(axis="x", color=LINE, linewidth=0.8)
    return figure


def _labels_figure(data: Dataset) -> Any:
    """Share of each label in each split: a bar for the first split, marks for the others, so that a drift shows."""
    found = data.labels()
    splits = [split for split, counts in data.card["labels"].items() if counts]
    totals = {split: sum(data.card["labels"][split].values()) for split in splits}
    shown = list(found)[:LABELS]
    rest = list(found)[LABELS:]
    figure, axes = _figure(0.9 + 0.24 * (len(shown) + bool(rest)))
    colours = _colours(list(data.card["labels"]))
    names = shown + ([f"{len(rest)} others"] if rest else [])
    for number, split in enumerate(splits):
        shares = [100 * found[label][split] / totals[split] for label in shown]
        shares += [100 * sum(found[label][split] for label in rest) / totals[split]] if rest else []
        places = range(len(names))
        if number == 0:
            axes.barh(places, shares, height=0.68, color=colours[split], label=split)
        else:
            style: dict[str, Any] = {
                "marker": "D" if number == 1 else "o",
                "s": 22,
                "edgecolor": "white",
                "linewidth": 0.7,
            }
            axes.scatter(shares, places, color=colours[split], zorder=3, label=split, **style)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.set_xlabel("% of the split's gold items")
    axes.grid(axis="x", color=LINE, linewidth=0.8)
    if len(splits) > 1:
        _legend(axes, splits)
    return figure


def _lengths_figure(lengths: dict[str, list[int]]) -> Any:
    """Share of the rows of each split by the words of their inputs; the longest hundredth is drawn as one."""
    every = sorted(n for values in lengths.values() for n in values)
    most = max(every[int(0.99 * (len(every) - 1))], 1)
    step = max(1, round(most / 20))
    figure, axes = _figure(2.6)
    edges = list(range(0, most + 2 * step, step))
    for split, colour in _colours(list(lengths)).items():
        counts = Counter(min(n, most) // step for n in lengths[split])
        shares = [100 * counts[place] / len(lengths[split]) for place in range(len(edges) - 1)]
        axes.stairs(shares, edges, color=colour, linewidth=1.8, label=f"{split} ({len(lengths[split]):,})")
    axes.set_xlim(0, edges[-1])
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"words of the input ({most} and more at the end)" if every[-1] > most else "words of the input")
    axes.set_ylabel("% of the split's rows", size=9, color=SOFT)
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    _legend(axes)
    return figure


def _rejects_figure(counts: dict[str, int]) -> Any:
    figure, axes = _figure(0.7 + 0.34 * len(counts))
    most = max(counts.values())
    axes.barh(range(len(counts)), list(counts.values()), height=0.6, color="#b86b77")
    for place, count in enumerate(counts.values()):
        axes.text(count + most * 0.01, place, f"{count:,}", va="center", size=9, color=INK)
    axes.set_yticks(range(len(counts)), list(counts))
    axes.invert_yaxis()
    axes.set_xlim(0, most * 1.1)
    axes.set_xlabel("rows")
    axes.grid(axis="x", color=LINE, linewidth=0.8)
    return figure


def _picture(figure: Any, said: str) -> str:
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"font.size": 9.5, "text.color": INK}):
        figure.savefig(buffer, format="png", dpi=160, facecolor="white")
    image = base64.b64encode(buffer.getvalue()).decode()
    return f'<div class=wide><img alt="{escape(said)}" src="data:image/png;base64,{image}"></div>'


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{css}</style></head>
<body>
{body}
</body></html>
"""

_CSS = """
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem; background: #f5f8f8; color: #1c2528;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
h1 { font-size: 1.7rem; margin: .5rem 0 0; } h2 { font-size: 1.05rem; margin: 0 0 .8rem; }
p { margin: .3rem 0; }
section { background: #fff; border: 1px solid #dfe5e6; border-radius: 10px; padding: 1.2rem 1.4rem; margin: 1.1rem 0; }
.warn { border-color: #a33b3b; } .bad { color: #a33b3b; } .soft { color: #5d6b70; font-size: .88rem; }
.wide { overflow-x: auto; } img { display: block; width: 100%; min-width: 32rem; height: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .4rem .6rem; border-top: 1px solid #dfe5e6; }
th { color: #5d6b70; border: 0; } th:first-child, td:first-child { text-align: left; padding-left: 0; }
article { border-top: 1px solid #dfe5e6; padding: .7rem 0; } article:first-of-type { border-top: 0; }
blockquote { margin: .3rem 0 .5rem; padding: .5rem .9rem; background: #f5f8f8; border-left: 3px solid #1d6b62;
  white-space: pre-wrap; overflow-wrap: anywhere; }
code { font: .86em/1.5 ui-monospace, Menlo, Consolas, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; margin: 0; }
dt { color: #5d6b70; } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { padding: .7rem; } dl { grid-template-columns: 1fr; } }
@media print { body { background: #fff; } section { break-inside: avoid; border: 0; padding: 0; } }
"""
