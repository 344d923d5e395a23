"""Paired comparisons as text, and average ranks as a critical-difference diagram (text and SVG).

The best system is on the left (in text: at the top). A bar joins systems whose average ranks differ
by less than the critical difference, so that they do not differ significantly (Demšar, JMLR 2006).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from markupsafe import Markup

from kryograph.experiments.comparison import Comparison
from kryograph.experiments.ranking import Ranking
from kryograph.report.charts import at, element, line, rectangle, svg, text
from kryograph.report.results_text import signed, text_table

Scale = Callable[[float], float]
"""Horizontal coordinate of a rank."""

RULER_WIDTH = 48
"""Width of the scale of ranks in characters."""

LABEL_STEP = 24.0
"""Vertical distance of two names in the picture."""

_STYLE = """
text { font: 13px system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
text { fill: #1b2329; }
.tick, .note { fill: #5a6670; font-size: 12px; }
.title { font-size: 15px; font-weight: 600; }
.rank { fill: #5a6670; font-size: 12px; }
.axis, .stem { stroke: #1b2329; stroke-width: 1; fill: none; }
.stem { stroke: #7d8a94; }
.group { fill: #0b6191; }
.paper { fill: #ffffff; }
.dot { fill: #1b2329; }
"""


def probability(p: float) -> str:
    """Format a p-value with three decimals; smaller ones are '< 0.001'.

    >>> probability(0.0312), probability(0.00001)
    ('0.031', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def comparison_text(pairs: Sequence[Comparison]) -> str:
    """Table of paired comparisons of one system with others: a row for each column and pair."""
    headings = ["", "against", "splits", "difference", "95 % interval", "Wilcoxon p", "w / t / l"]
    rows = [
        [
            pair.heading,
            pair.second,
            str(pair.n),
            signed(pair.mean, 2),
            f"{signed(pair.ci95[0], 2)} to {signed(pair.ci95[1], 2)}",
            probability(pair.wilcoxon_p) if pair.telling else f"({probability(pair.wilcoxon_p)})",
            f"{pair.wins} / {pair.ties} / {pair.losses}",
        ]
        for pair in pairs
    ]
    lines = [
        f"{pairs[0].first} minus the other system, in points, on the same splits",
        "",
        *text_table(headings, rows),
        "",
    ]
    if not all(pair.telling for pair in pairs):
        lines.append(
            "A p-value in brackets cannot be below 0.05, because fewer than six splits are not "
            "ties."
        )
    return "\n".join(lines)


def rank_text(ranking: Ranking) -> str:
    """Diagram for a terminal: a line for each system, a vertical bar for each group."""
    k = len(ranking.systems)
    width = max(len(name) for name in ranking.systems)

    def column(rank: float) -> int:
        return round((rank - 1) / (k - 1) * (RULER_WIDTH - 1))

    scale = [" "] * (RULER_WIDTH + 2)
    for tick in range(1, k + 1, math.ceil((k - 1) / 12)):
        mark = f"{tick}"
        scale[column(tick) : column(tick) + len(mark)] = mark
    lines = [_heading(ranking), "", f"{'':{width}}   rank  {''.join(scale).rstrip()}"]
    for i, (name, rank) in enumerate(zip(ranking.systems, ranking.ranks, strict=True)):
        ruler = ["·"] * RULER_WIDTH
        ruler[column(rank)] = "●"
        bars = "".join(" ┃" if a <= i <= b else "  " for a, b in ranking.groups)
        lines.append(f"{name:{width}} {rank:6.2f}  {''.join(ruler)} {bars}".rstrip())
    return "\n".join([*lines, "", _explanation(ranking)])


def _heading(ranking: Ranking) -> str:
    p = ranking.friedman_p
    friedman = "" if p is None else f"; Friedman p {probability(p)}"
    return (
        f"Average ranks over {len(ranking.headings)} columns, 1 is best; critical difference "
        f"{ranking.critical_difference:.2f} (Nemenyi, 5 %){friedman}"
    )


def _explanation(ranking: Ranking) -> str:
    if not ranking.groups:
        return "All systems differ significantly."
    return "A bar joins systems that do not differ significantly."


def rank_svg(ranking: Ranking, title: str) -> str:
    """Diagram as the text of an SVG file."""
    k = len(ranking.systems)
    letters = max(len(name) for name in ranking.systems)
    side, span, top = 7.6 * letters + 70, max(420.0, 34.0 * (k - 1)), 112.0
    width = 2 * side + span
    first = top + 22 + 11 * len(ranking.groups)
    height = first + LABEL_STEP * _better_half(k) + 34

    def x(rank: float) -> float:
        return side + span * (rank - 1) / (k - 1)

    ranks = ", ".join(f"{n} {r:.2f}" for n, r in zip(ranking.systems, ranking.ranks, strict=True))
    parts = [
        element("title", f"Average ranks: {title}"),
        element("desc", f"{_heading(ranking)}. {ranks}."),
        element("style", Markup(_STYLE)),
        element("rect", width=at(width), height=at(height), class_="paper"),
        text(16, 26, title, "title", "start"),
        text(16, 46, _heading(ranking), "note", "start"),
        *_axis(ranking, x, top),
        *_labels(ranking, x, top, first),
        text(16, height - 14, _explanation(ranking), "note", "start"),
    ]
    for level, (a, b) in enumerate(ranking.groups):
        left, right = x(ranking.ranks[a]) - 3, x(ranking.ranks[b]) + 3
        parts.append(rectangle(left, top + 12 + 11 * level, right - left, 4.5, "group"))
    picture = svg(width, height, *parts, xmlns="http://www.w3.org/2000/svg", role="img")
    return f"<!-- made by kryograph -->\n{picture}\n"


def _axis(ranking: Ranking, x: Scale, top: float) -> Iterator[Markup]:
    k, cd = len(ranking.systems), ranking.critical_difference
    yield line(x(1), top, x(k), top, "axis")
    for tick in range(1, k + 1):
        yield line(x(tick), top - 6, x(tick), top, "axis")
        yield text(x(tick), top - 11, tick)
    # The critical difference as a length above the axis; it may be longer than the axis.
    end = x(min(1 + cd, k))
    yield line(x(1), top - 34, end, top - 34, "axis")
    for edge in (x(1), end):
        yield line(edge, top - 38, edge, top - 30, "axis")
    longer = ", longer than the axis" if 1 + cd > k else ""
    yield text(end + 8, top - 30, f"critical difference{longer}", "note", "start")


def _better_half(k: int) -> int:
    """Number of systems whose names are on the left."""
    return (k + 1) // 2


def _labels(ranking: Ranking, x: Scale, top: float, first: float) -> Iterator[Markup]:
    """Names of the better half on the left, of the others on the right: no two stems cross."""
    k = len(ranking.systems)
    for i, (name, rank) in enumerate(zip(ranking.systems, ranking.ranks, strict=True)):
        left = i < _better_half(k)
        y = first + LABEL_STEP * (i if left else k - 1 - i) + 10
        end, anchor, away = (x(1), "end", -1) if left else (x(k), "start", 1)
        points = f"{at(x(rank))},{at(top)} {at(x(rank))},{at(y)} {at(end + 6 * away)},{at(y)}"
        yield element("polyline", points=points, class_="stem")
        yield element("circle", cx=at(x(rank)), cy=at(top), r="3", class_="dot")
        yield text(end + 54 * away, y + 4, name, "name", anchor)
        yield text(end + 11 * away, y + 4, f"{rank:.2f}", "rank", anchor)
