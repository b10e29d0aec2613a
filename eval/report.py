"""The report: one self-contained HTML page and one PNG of the same result, drawn from a list of typed sections.

The page embeds its pictures and styles, so it can be mailed or archived as one file. Sections say what to show and know
nothing of extractors: a later stage adds its own `Bars` or `Table` to the list.
"""

from __future__ import annotations

import base64
import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

ACCENT, SECOND, MUTED, INK, SOFT, LINE = "#1d6b62", "#e0a458", "#a9b4b8", "#1c2528", "#5d6b70", "#dfe5e6"
WRONG = "#a33b3b"
_SERIES = (ACCENT, SECOND, "#7a8fa6", "#b86b77")


@dataclass(frozen=True)
class Headline:
    """Large figures at the top. figures: (value as printed, what it is, a detail such as n and interval)."""

    figures: Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class Bar:
    """One horizontal bar; low and high (or None) are its interval. series: bars of one label stand under each other,
    one a series; emphasis: the bar that the report is about."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    series: str = ""
    emphasis: bool = False


@dataclass(frozen=True)
class Bars:
    """A bar chart from 0 to `limit` (None: as far as the bars reach). axis: what is measured; note: said under the
    chart."""

    title: str
    bars: Sequence[Bar]
    axis: str
    note: str = ""
    limit: float | None = 1.0


@dataclass(frozen=True)
class Curve:
    """Lines over steps or time. lines: (label, [(x, y)])."""

    title: str
    lines: Sequence[tuple[str, Sequence[tuple[float, float]]]]
    x: str
    y: str
    note: str = ""


@dataclass(frozen=True)
class TreeLine:
    """A group or a leaf with its value. mark: whether it is as in the gold tree, stands there with another value (`gold`),
    stands in the gold tree alone (text: with the gold value), or in this one alone."""

    depth: int
    text: str
    mark: Literal["group", "right", "wrong", "missing", "extra"]
    gold: str = ""


@dataclass(frozen=True)
class TreePicture:
    """A tree from the top down, each line below the nearest one before it of a smaller depth."""

    title: str
    lines: Sequence[TreeLine]
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Cells as printed. The first column is text, the others are figures unless `text_columns` names them."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    text_columns: Sequence[str] = ()


@dataclass(frozen=True)
class Example:
    """A row as it went. answers: (who answered, what, whether it is right)."""

    input: str
    gold: str
    answers: Sequence[tuple[str, str, bool]]
    label: str = ""


@dataclass(frozen=True)
class Examples:
    title: str
    examples: Sequence[Example]
    note: str = ""


@dataclass(frozen=True)
class Text:
    """Paragraphs, then (label, value) pairs such as where the files lie."""

    title: str
    paragraphs: Sequence[str] = ()
    pairs: Sequence[tuple[str, str]] = ()


Chart = Bars | Curve | TreePicture
Section = Headline | Chart | Table | Examples | Text


def write_report(folder: Path, title: str, sections: Sequence[Section], subtitle: str = "") -> tuple[Path, Path]:
    """Writes `report.html` and `report.png` (the headline and every chart) into `folder`; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    body = "\n".join(_html(section) for section in sections)
    page = _PAGE.format(
        title=escape(title), subtitle=f"<p class=sub>{escape(subtitle)}</p>" if subtitle else "", body=body, css=_CSS
    )
    html, png = folder / "report.html", folder / "report.png"
    html.write_text(page, encoding="utf-8")
    png.write_bytes(_picture(title, subtitle, sections))
    return html, png


# The page


def _html(section: Section) -> str:
    if isinstance(section, Headline):
        figures = "".join(
            f"<div><b>{escape(value)}</b><span>{escape(what)}</span><small>{escape(detail)}</small></div>"
            for value, what, detail in section.figures
        )
        return f"<section class=headline>{figures}</section>"
    if isinstance(section, Chart):
        image = base64.b64encode(_chart(section)).decode()
        picture = f'<img alt="{escape(_spoken(section))}" src="data:image/png;base64,{image}">'
        return _section(section.title, f"<div class=wide>{picture}</div>", section.note)
    if isinstance(section, Table):
        return _section(section.title, _html_table(section), section.note)
    if isinstance(section, Examples):
        return _section(section.title, "".join(_html_example(example) for example in section.examples), section.note)
    pairs = "".join(f"<dt>{escape(label)}</dt><dd><code>{escape(value)}</code></dd>" for label, value in section.pairs)
    text = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in section.paragraphs)
    return _section(section.title, text + (f"<dl>{pairs}</dl>" if pairs else ""), "")


def _section(title: str, content: str, note: str) -> str:
    below = f"<p class=note>{escape(note)}</p>" if note else ""
    return f"<section><h2>{escape(title)}</h2>{content}{below}</section>"


def _html_table(table: Table) -> str:
    text = [place == 0 or name in table.text_columns for place, name in enumerate(table.header)]

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{'' if is_text else ' class=n'}>{escape(cell)}</{tag}>"
            for cell, is_text in zip(row, text, strict=True)
        )

    rows = "".join(f"<tr>{cells('td', row)}</tr>" for row in table.rows)
    return (
        f"<div class=wide><table><thead><tr>{cells('th', table.header)}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _html_example(example: Example) -> str:
    rows = f"<tr><th>gold</th><td><code>{escape(example.gold)}</code></td><td></td></tr>"
    for who, what, right in example.answers:
        mark = "<td class=yes>✓ right</td>" if right else "<td class=no>✗ wrong</td>"
        rows += f"<tr><th>{escape(who)}</th><td><code>{escape(what)}</code></td>{mark}</tr>"
    label = f"<span class=tag>{escape(example.label)}</span>" if example.label else ""
    return f"<article>{label}<blockquote>{escape(example.input)}</blockquote><table>{rows}</table></article>"


def _spoken(chart: Chart) -> str:
    """The chart in words, for whoever cannot see it."""
    if isinstance(chart, Bars):
        return f"{chart.title}: " + ", ".join(
            f"{bar.label} {bar.series} {bar.value:.3f}".replace("  ", " ") for bar in chart.bars
        )
    if isinstance(chart, TreePicture):
        return f"{chart.title}: " + "; ".join(" ".join(_tree_texts(line)) for line in chart.lines)
    ends = ", ".join(
        f"{label} from {points[0][1]:.3f} to {points[-1][1]:.3f}" for label, points in chart.lines if points
    )
    return f"{chart.title}: {ends}"


# The charts


def _chart(chart: Chart) -> bytes:
    from matplotlib.figure import Figure

    with _style():
        figure = Figure(figsize=(8.6, _height(chart)), layout="constrained")
        _draw(figure.add_subplot(), chart)
        return _png(figure)


def _picture(title: str, subtitle: str, sections: Sequence[Section]) -> bytes:
    """Headline and charts on one sheet, under the title."""
    from matplotlib.figure import Figure

    charts = [section for section in sections if isinstance(section, Chart)]
    figures = [figure for section in sections if isinstance(section, Headline) for figure in section.figures][:5]
    heights = [0.8 if subtitle else 0.55, *([1.0] if figures else []), *(_height(chart) + 0.45 for chart in charts)]
    with _style():
        figure = Figure(figsize=(8.6, sum(heights)), layout="constrained")
        strips = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        strips[0].text(0.02, 0.66 if subtitle else 0.5, title, size=15, weight="bold", va="center")
        if subtitle:
            strips[0].text(0.02, 0.24, subtitle, size=9.5, color=SOFT, va="center")
        columns = max(len(figures), 3)
        for place, (value, what, detail) in enumerate(figures):
            left, width = 0.02 + place * 0.97 / columns, 128 // columns
            strips[1].text(left, 0.82, value, size=19, weight="bold", color=ACCENT, va="center")
            strips[1].text(left, 0.50, textwrap.shorten(what, width, placeholder="…"), size=9, va="center")
            strips[1].text(left, 0.36, textwrap.fill(detail, width), size=7.5, color=SOFT, va="top")
        for strip, chart in zip(strips[len(heights) - len(charts) :], charts, strict=True):
            strip.suptitle(chart.title, x=0.02, ha="left", size=11, weight="bold")
            _draw(strip.subplots(), chart)
        return _png(figure)


def _height(chart: Chart) -> float:
    """Inches."""
    if isinstance(chart, TreePicture):
        return 0.55 + 0.2 * sum(len(_tree_texts(line)) for line in chart.lines)
    return 3.0 if isinstance(chart, Curve) else 0.75 + 0.36 * len(chart.bars)


def _style() -> Any:
    import matplotlib
    from matplotlib import font_manager

    here = set(font_manager.get_font_names())
    family = next(
        (name for name in ("Inter", "Helvetica Neue", "Arial", "Liberation Sans") if name in here), "DejaVu Sans"
    )
    return matplotlib.rc_context({"font.family": family, "font.size": 9.5, "axes.edgecolor": LINE, "text.color": INK})


def _draw(axes: Any, chart: Chart) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, colors=SOFT, labelsize=9)
    axes.set_axisbelow(True)
    if isinstance(chart, Bars):
        _draw_bars(axes, chart)
    elif isinstance(chart, TreePicture):
        _draw_tree(axes, chart)
    else:
        _draw_curve(axes, chart)


def _draw_bars(axes: Any, chart: Bars) -> None:
    series = list(dict.fromkeys(bar.series for bar in chart.bars))
    labels = list(dict.fromkeys(bar.label for bar in chart.bars))
    thick = 0.68 / len(series)
    reach = chart.limit or 1.12 * max([bar.high or bar.value for bar in chart.bars], default=1.0) or 1.0
    for bar in chart.bars:
        place = series.index(bar.series)
        y = labels.index(bar.label) + (place - (len(series) - 1) / 2) * thick
        colour = _SERIES[place % len(_SERIES)] if len(series) > 1 else ACCENT if bar.emphasis else MUTED
        axes.barh(y, bar.value, height=thick * 0.86, color=colour, linewidth=0)
        end = bar.value
        if bar.low is not None and bar.high is not None and bar.low < bar.high:
            error = [[max(0.0, bar.value - bar.low)], [max(0.0, bar.high - bar.value)]]
            axes.errorbar(bar.value, y, xerr=error, fmt="none", ecolor=INK, elinewidth=1.1, capsize=3, capthick=1.1)
            end = max(bar.high, bar.value)
        strong = "bold" if bar.emphasis else "normal"
        axes.text(end + reach * 0.012, y, f"{bar.value:.3f}", va="center", ha="left", size=9, color=INK, weight=strong)
    axes.set_yticks(range(len(labels)), [textwrap.fill(label, 30) for label in labels])
    axes.tick_params(axis="y", colors=INK, labelsize=9.5)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlim(0, reach * (1.07 if chart.limit else 1.0))
    if chart.limit:
        axes.set_xticks([chart.limit * part / 5 for part in range(6)])
    axes.grid(axis="x", color=LINE, linewidth=0.8)
    axes.set_xlabel(chart.axis, size=9, color=SOFT)
    if len(series) > 1:
        from matplotlib.patches import Patch

        patches = [Patch(color=_SERIES[place % len(_SERIES)], label=name) for place, name in enumerate(series)]
        axes.legend(
            handles=patches, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(series), frameon=False, fontsize=9
        )


def _draw_curve(axes: Any, chart: Curve) -> None:
    for place, (label, points) in enumerate(chart.lines):
        colour = _SERIES[place % len(_SERIES)]
        x, y = [point[0] for point in points], [point[1] for point in points]
        axes.plot(
            x, y, color=colour, linewidth=1.8, label=label, marker="o" if len(points) < 12 else None, markersize=3.5
        )
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.set_xlabel(chart.x, size=9, color=SOFT)
    axes.set_ylabel(chart.y, size=9, color=SOFT)
    axes.set_ylim(bottom=min(0.0, *(y for _, points in chart.lines for _, y in points), 0.0))
    axes.margins(x=0.01)
    if len(chart.lines) > 1:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(chart.lines), frameon=False, fontsize=9)


_TREE_MARKS = {  # mark: (matplotlib's marker, filled, colour, what it means)
    "right": ("o", True, ACCENT, "as in the gold tree"),
    "wrong": ("X", True, WRONG, "another value in the gold tree"),
    "missing": ("o", False, WRONG, "in the gold tree alone"),
    "extra": ("P", True, SECOND, "in the model's tree alone"),
}


def _tree_texts(line: TreeLine) -> list[str]:
    """One text line, or two where the gold value is another one."""
    text = f"{line.text} (missing)" if line.mark == "missing" else line.text
    return [text, f"gold: {line.gold}"] if line.mark == "wrong" else [text]


def _draw_tree(axes: Any, chart: TreePicture) -> None:
    from matplotlib.lines import Line2D

    axes.set_axis_off()
    indent, y = 0.028, 0
    above: list[int] = []  # where the lines stand that the next one may hang below, by depth
    for line in chart.lines:
        x = line.depth * indent
        above = above[: line.depth]
        if above:
            axes.plot([x - indent * 0.7, x - indent * 0.7], [above[-1] + 0.45, y], color=LINE, linewidth=1, zorder=1)
            axes.plot([x - indent * 0.7, x - 0.004], [y, y], color=LINE, linewidth=1, zorder=1)
        above.append(y)
        if line.mark == "group":
            axes.text(x, y, line.text, size=9, va="center", color=SOFT, weight="bold", parse_math=False)
            y += 1
            continue
        marker, filled, colour, _ = _TREE_MARKS[line.mark]
        axes.plot([x + 0.004], [y], marker, color=colour, markersize=5, markerfacecolor=colour if filled else "white")
        for text in _tree_texts(line):
            shade = INK if line.mark == "right" else colour if text.startswith("gold: ") else INK
            short = textwrap.shorten(text, 112 - 4 * line.depth, placeholder=" …") or text[: 112 - 4 * line.depth]
            axes.text(x + 0.016, y, short, size=8.5, va="center", color=shade, parse_math=False)
            y += 1
    axes.set_xlim(0, 1)
    axes.set_ylim(y - 0.4, -0.6)
    handles = [
        Line2D(
            [], [], linestyle="", marker=marker, color=colour, markerfacecolor=colour if filled else "white", label=what
        )
        for mark, (marker, filled, colour, what) in _TREE_MARKS.items()
        if any(line.mark == mark for line in chart.lines)
    ]
    if handles:
        axes.legend(
            handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(handles), frameon=False, fontsize=8
        )


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=200, facecolor="white")
    return buffer.getvalue()


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
<header><h1>{title}</h1>{subtitle}</header>
<main>
{body}
</main>
</body>
</html>
"""

_CSS = """
:root { --accent: #1d6b62; --ink: #1c2528; --soft: #5d6b70; --line: #dfe5e6; --wash: #f5f8f8; color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--wash); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
header, main { max-width: 60rem; margin: 0 auto; padding: 0 1.5rem; }
header { padding-top: 2.5rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0; letter-spacing: -.01em; }
.sub { color: var(--soft); margin: .4rem 0 0; }
section { background: #fff; border: 1px solid var(--line); border-radius: 10px;
  padding: 1.25rem 1.5rem; margin: 1.25rem 0; }
h2 { font-size: 1.05rem; margin: 0 0 .8rem; }
.headline { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 1.25rem; }
.headline b { display: block; font-size: 2rem; line-height: 1.15;
  color: var(--accent); font-variant-numeric: tabular-nums; }
.headline span { display: block; font-weight: 600; font-size: .93rem; line-height: 1.35; margin-top: .2rem; }
.headline small { display: block; color: var(--soft); margin-top: .15rem; }
img { display: block; width: 100%; height: auto; }
.note { color: var(--soft); font-size: .87rem; margin: .8rem 0 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .42rem .75rem .42rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; border-bottom: 2px solid var(--line); vertical-align: bottom; }
tbody tr:last-child td, article tr:last-child > * { border-bottom: 0; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.n:last-child { padding-right: 0; }
code { font: .86em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
  overflow-wrap: anywhere; white-space: pre-wrap; }
article { border-top: 1px solid var(--line); padding: 1rem 0 .6rem; break-inside: avoid; }
article:first-of-type { border-top: 0; padding-top: 0; }
article th { color: var(--soft); font-weight: 600; white-space: nowrap; width: 1%; }
article td:last-child { text-align: right; white-space: nowrap; padding-right: 0; width: 1%;
  font-size: .85rem; font-weight: 600; }
blockquote { margin: 0 0 .6rem; padding: .55rem .9rem; background: var(--wash); border-left: 3px solid var(--accent);
  white-space: pre-wrap; overflow-wrap: anywhere; }
.tag { float: right; font-size: .78rem; color: var(--soft); border: 1px solid var(--line); border-radius: 1rem;
  padding: .05rem .6rem; margin: .45rem .6rem; background: #fff; }
.yes { color: #1d6b62; } .no { color: #a33b3b; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.25rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
p { margin: 0 0 .7rem; }
@media (max-width: 40rem) { header, main { padding: 0 .8rem; } header { padding-top: 1.4rem; }
  section { padding: 1rem; }
  img { min-width: 34rem; } dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .6rem; } }
@media print { @page { margin: 14mm; } body { background: #fff; font-size: 10.5pt; }
  header, main { max-width: none; padding: 0; }
  section { border: 0; border-radius: 0; padding: 0; margin: 1.1rem 0; break-inside: avoid; }
  section:has(article), section:has(table) { break-inside: auto; } tr, img { break-inside: avoid; }
  h2 { break-after: avoid; } .headline { grid-template-columns: repeat(4, 1fr); } }
"""
