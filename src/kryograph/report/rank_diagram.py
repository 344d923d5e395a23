"""Comparisons of systems as text, and average ranks as a critical-difference diagram.

The best system stands left (in text: on top). A bar joins systems whose average ranks are within
the critical difference: these data do not tell them apart (Demšar, JMLR 2006).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from rich.markup import escape

from kryograph.cli import console as terminal
from kryograph.cli.console import show_table
from kryograph.experiments.comparison import Comparison, Ranking
from kryograph.report.charts import at, line, rectangle, text
from kryograph.report.html import Safe, tag
from kryograph.report.results_text import signed

Scale = Callable[[float], float]
"""Where a rank is on the axis."""

RULER = 48
"""How many characters the scale of ranks is wide."""

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
    """A p that a person reads.

    >>> probability(0.0312), probability(0.00001)
    ('0.031', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def show_comparisons(pairs: Sequence[Comparison]) -> None:
    """On the terminal, a row for each column and pair."""
    headings = ["", "against", "splits", "difference", "95 % interval", "Wilcoxon p", "w / t / l"]
    rows = [
        [
            escape(pair.heading),
            pair.second,
            str(pair.n),
            signed(pair.mean, 2),
            f"{signed(pair.ci95[0], 2)} to {signed(pair.ci95[1], 2)}",
            probability(pair.wilcoxon_p) if pair.telling else f"({probability(pair.wilcoxon_p)})",
            f"{pair.wins} / {pair.ties} / {pair.losses}",
        ]
        for pair in pairs
    ]
    terminal.out.print(
        f"[bold]{pairs[0].first}[/] less the other, in points, over the same splits", soft_wrap=True
    )
    show_table(headings, rows)
    if not all(pair.telling for pair in pairs):
        terminal.out.print(
            "A p in brackets means nothing: with fewer than six splits that are not ties it cannot "
            "fall below 0.05, whatever the systems are.",
            soft_wrap=True,
        )


def rank_text(ranking: Ranking) -> str:
    """The diagram for a terminal: a line for each system, a bar for each group."""
    k = len(ranking.systems)
    width = max(len(name) for name in ranking.systems)

    def place(rank: float) -> int:
        return round((rank - 1) / (k - 1) * (RULER - 1))

    lines = [_heading(ranking), ""]
    scale = [" "] * (RULER + 2)
    for tick in _ticks(k):
        mark = f"{tick}"
        scale[place(tick) : place(tick) + len(mark)] = mark
    lines.append(f"{'':{width}}   rank  {''.join(scale).rstrip()}")
    for i, (name, rank) in enumerate(zip(ranking.systems, ranking.ranks, strict=True)):
        ruler = ["·"] * RULER
        ruler[place(rank)] = "●"
        bars = "".join(" ┃" if a <= i <= b else "  " for a, b in ranking.groups)
        lines.append(f"{name:{width}} {rank:6.2f}  {''.join(ruler)} {bars}".rstrip())
    lines += ["", _reading(ranking)]
    return "\n".join(lines)


def _heading(ranking: Ranking) -> str:
    p = ranking.friedman_p
    friedman = "" if p is None else f"; Friedman p {probability(p)}"
    return (
        f"Average ranks over {len(ranking.headings)} columns, 1 is best; critical difference "
        f"{ranking.critical_difference:.2f} (Nemenyi, 5 %){friedman}"
    )


def _reading(ranking: Ranking) -> str:
    if not ranking.groups:
        return "All systems are told apart."
    return "A bar joins systems that these columns do not tell apart."


def _ticks(k: int) -> list[int]:
    step = math.ceil((k - 1) / 12)
    return list(range(1, k + 1, step))


def rank_svg(ranking: Ranking, title: str) -> str:
    """The diagram as an SVG file of its own."""
    k = len(ranking.systems)
    letters = max(len(name) for name in ranking.systems)
    side, span, top, step = 7.6 * letters + 70, max(420.0, 34.0 * (k - 1)), 112.0, 24.0
    width = 2 * side + span
    half = (k + 1) // 2
    first = top + 22 + 11 * len(ranking.groups)
    height = first + step * half + 34

    def x(rank: float) -> float:
        return side + span * (rank - 1) / (k - 1)

    parts: list[Safe] = [
        tag("title", f"Average ranks: {title}"),
        tag("desc", _words(ranking)),
        tag("style", Safe(_STYLE)),
        tag("rect", width=at(width), height=at(height), class_="paper"),
        text(16, 26, title, "title", "start"),
        text(16, 46, _heading(ranking), "note", "start"),
        *_axis(ranking, x, top),
        *_labels(ranking, x, top, first, (side, side + span), half),
        text(16, height - 14, _reading(ranking), "note", "start"),
    ]
    for level, (a, b) in enumerate(ranking.groups):
        left, right = x(ranking.ranks[a]) - 3, x(ranking.ranks[b]) + 3
        parts.append(rectangle(left, top + 12 + 11 * level, right - left, 4.5, "group"))
    picture = tag(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {at(width)} {at(height)}",
        width=at(width),
        height=at(height),
        role="img",
    )
    return f"<!-- made by kryograph -->\n{picture}\n"


def _words(ranking: Ranking) -> str:
    ranks = ", ".join(f"{n} {r:.2f}" for n, r in zip(ranking.systems, ranking.ranks, strict=True))
    return f"{_heading(ranking)}. {ranks}."


def _axis(ranking: Ranking, x: Scale, top: float) -> Iterator[Safe]:
    k, cd = len(ranking.systems), ranking.critical_difference
    yield line(x(1), top, x(k), top, "axis")
    for tick in range(1, k + 1):
        yield line(x(tick), top - 6, x(tick), top, "axis")
        yield text(x(tick), top - 11, tick)
    # The critical difference as a length, above the axis; it may be longer than that.
    end = x(min(1 + cd, k))
    yield line(x(1), top - 34, end, top - 34, "axis")
    for edge in (x(1), end):
        yield line(edge, top - 38, edge, top - 30, "axis")
    longer = ", longer than the axis" if 1 + cd > k else ""
    yield text(end + 8, top - 30, f"critical difference{longer}", "note", "start")


def _labels(
    ranking: Ranking,
    x: Scale,
    top: float,
    first: float,
    ends: tuple[float, float],
    half: int,
) -> Iterator[Safe]:
    """The better half on the left, the others on the right, so that no two stems cross."""
    k = len(ranking.systems)
    for i, (name, rank) in enumerate(zip(ranking.systems, ranking.ranks, strict=True)):
        left = i < half
        y = first + 24.0 * (i if left else k - 1 - i) + 10
        end, anchor, away = (ends[0], "end", -1) if left else (ends[1], "start", 1)
        points = f"{at(x(rank))},{at(top)} {at(x(rank))},{at(y)} {at(end + 6 * away)},{at(y)}"
        yield tag("polyline", points=points, class_="stem")
        yield tag("circle", cx=at(x(rank)), cy=at(top), r="3", class_="dot")
        yield text(end + 54 * away, y + 4, name, "name", anchor)
        yield text(end + 11 * away, y + 4, f"{rank:.2f}", "rank", anchor)
