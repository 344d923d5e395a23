"""`kryograph.figures.style`: settings of matplotlib, panels, titles and scales."""

from __future__ import annotations

import matplotlib as mpl
import pytest
from matplotlib import pyplot

from kryograph.figures.style import (
    STYLE,
    add_legend,
    letter_titles,
    panels,
    set_log2_scale,
    styled,
)


def test_the_users_own_style_is_neither_used_nor_changed() -> None:
    with mpl.rc_context({"font.size": 40, "axes.grid": False}):

        @styled
        def font_size() -> float:
            return float(mpl.rcParams["font.size"])

        assert font_size() == STYLE["font.size"]
        assert mpl.rcParams["font.size"] == 40


def test_panels_are_listed_row_by_row_and_are_unknown_to_pyplot() -> None:
    figure, axes = panels(2, 3, 4.0)
    assert figure.get_size_inches().tolist() == [7.0, 4.0]
    assert axes == figure.axes
    cells = [axis.get_subplotspec() for axis in axes]
    assert [(cell.rowspan.start, cell.colspan.start) for cell in cells if cell] == [
        *((0, 0), (0, 1), (0, 2)),
        *((1, 0), (1, 1), (1, 2)),
    ]
    assert pyplot.get_fignums() == []


def test_titles_have_letters() -> None:
    _, axes = panels(1, 2, 2.0)
    letter_titles(axes, ["one", "two"])
    assert [axis.get_title() for axis in axes] == ["(a) one", "(b) two"]
    with pytest.raises(ValueError, match="shorter"):
        letter_titles(axes, ["one"])


def test_the_legend_has_the_lines_of_the_first_panel() -> None:
    figure, [first, second] = panels(1, 2, 2.0)
    first.plot([0], [1], label="first")
    second.plot([0], [1], label="second")
    add_legend(figure, loc="outside lower center", ncols=2)
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["first"]


@pytest.mark.parametrize("direction", ["x", "y"])
def test_a_log2_scale_has_labels_at_its_ticks_only(direction: str) -> None:
    _, [axes] = panels(1, 1, 2.0)
    set_log2_scale(axes, direction, [1, 4, 16])
    axis = axes.xaxis if direction == "x" else axes.yaxis
    assert axis.get_scale() == "log"
    assert axis.get_transform().base == 2
    assert [label.get_text() for label in axis.get_ticklabels()] == ["1", "4", "16"]
    assert list(axis.get_minorticklocs()) == []
    other = axes.yaxis if direction == "x" else axes.xaxis
    assert other.get_scale() == "linear"
