from __future__ import annotations

from kryograph.labelling.node_ranking import CurvePoint, NodeRanking
from kryograph.report.threshold_chart import default_position, draw_curve, slider_points

RANKING = NodeRanking(
    positive=1,
    share=0.1,
    average_precision=0.75,
    points=(
        CurvePoint(0.9, 1.0, 0.5, 2, 1.8),
        CurvePoint(0.6, 0.75, 0.5, 3, 2.4),
        CurvePoint(0.2, 0.5, 1.0, 5, 3.0),
    ),
    unlabelled=10,
    expected=3.5,
    top=10,
    expected_in_top=3.5,
)


def test_points_of_the_slider_ascend_and_have_a_place_on_the_chart() -> None:
    low, middle, high = slider_points(RANKING)
    assert (low.threshold, middle.threshold, high.threshold) == (0.2, 0.6, 0.9)
    assert (low.x, low.y) == (346, 178)  # right edge, half of the height
    assert (high.x, high.y) == (196, 28)  # middle, upper edge


def test_default_threshold_is_that_of_the_predicted_classes() -> None:
    points = slider_points(RANKING)
    assert points[default_position(points)].threshold == 0.6
    assert default_position(points[:1]) == 0


def test_curve_has_the_points_the_mark_and_the_random_order() -> None:
    chart = str(draw_curve(RANKING, slider_points(RANKING)[2]))
    assert 'points="196,28 196,103 346,178"' in chart
    assert 'cx="196" cy="28" r="7" class="dot" id="threshold-mark"' in chart
    assert 'y1="298" x2="346" y2="298" class="ideal"' in chart
    assert "average precision is 75.0 %" in chart
