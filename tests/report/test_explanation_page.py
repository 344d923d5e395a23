from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from kryograph.labelling.explanation import Explanation
from kryograph.report.explanation_page import (
    BAR_WIDTH,
    explanation_data,
    render_explanation,
    signed_bar,
)
from tests.labelling.explained import labelled_graph


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    return labelled_graph("numbers").explain(50, top=3)


def test_data_of_a_panel_add_up_and_are_json(explanation: Explanation) -> None:
    data = json.loads(json.dumps(explanation_data(explanation), allow_nan=False))
    for name in ("hops", "neighbours", "nodes", "features"):
        total = data["intercept"] + sum(value for _, value in data[name])
        assert total == pytest.approx(data["log_odds"], abs=1e-3)
    assert len(data["nearest"]) == 5
    assert data["classes"] == list(explanation.classes)


def test_the_page_has_a_bar_for_every_line(explanation: Explanation) -> None:
    page = render_explanation(explanation, "0.1.0")
    tables = (explanation.hops, explanation.neighbours, explanation.nodes, explanation.features)
    lines = sum(table.num_rows + 1 for table in tables) + explanation.members.num_rows
    assert page.count('class="share"') == lines
    assert f"{explanation.log_odds:+.3f}" in page
    assert "These nodes are no reasons" in page


def test_the_page_is_closed_against_the_names_of_users(explanation: Explanation) -> None:
    evil = '<script>alert("x")</script>'
    page = render_explanation(replace(explanation, node=evil, classes=(evil, "b")), "0.1.0")
    assert evil not in page
    assert "&lt;script&gt;" in page
    assert "default-src &#39;none&#39;" in page
    assert not re.search(r'(src|href)="(?!#)', page)


def test_bars_point_to_the_side_of_their_class() -> None:
    assert f'x="{BAR_WIDTH // 2}"' in signed_bar(0.5)
    assert 'x="40"' in signed_bar(-0.5)
    assert 'class="bar for"' in signed_bar(0.0)
    assert 'class="bar against"' in signed_bar(-0.1)
