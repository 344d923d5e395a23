from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from kryograph.labelling.node_ranking import (
    MAX_CURVE_POINTS,
    NodeRanking,
    fitted_chances,
    node_ranks,
    rank_nodes,
)

CLASSES = ("no", "yes")


def ranking_of_five(unlabelled: list[float]) -> NodeRanking:
    held_out = np.array([0.9, 0.6, 0.6, 0.2, 0.1])
    is_positive = np.array([True, True, False, False, False])
    return rank_nodes(1, held_out, is_positive, np.ones(5), np.array(unlabelled))


def test_curve_of_five_labels_by_hand() -> None:
    ranking = ranking_of_five([0.95, 0.6, 0.3, 0.05])
    rows = [(p.threshold, p.precision, p.recall, p.selected) for p in ranking.points]
    assert rows == [
        (0.9, 1.0, 0.5, 1),
        (0.6, pytest.approx(2 / 3), 1.0, 2),
        (0.2, 0.5, 1.0, 3),
        (0.1, 0.4, 1.0, 3),
    ]
    assert ranking.average_precision == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert (ranking.share, ranking.lopsided) == (0.4, False)
    assert (ranking.unlabelled, ranking.top) == (4, 4)
    assert (
        ranking.expected_in_top
        == ranking.expected
        == pytest.approx(ranking.points[-1].expected, abs=1)
    )


def test_top_is_a_round_number_of_at_most_a_fifth_of_the_nodes() -> None:
    tops = [ranking_of_five([0.1] * n).top for n in (0, 4, 50, 444, 2000, 5000, 20_000)]
    assert tops == [0, 4, 10, 50, 200, 1000, 1000]


def test_sentence_states_how_many_positive_nodes_are_expected() -> None:
    ranking = ranking_of_five([0.9] * 20 + [0.01] * 80)
    assert ranking.top == 20
    inside, total = round(ranking.expected_in_top), round(ranking.expected)
    assert ranking.sentence(CLASSES) == (
        f"20 top-ranked of 100 unlabelled nodes: about {inside} 'yes' expected, of about {total} "
        "in all."
    )


def test_values_for_json_have_the_curve_as_columns() -> None:
    values = ranking_of_five([0.5]).as_dict(CLASSES)
    assert values["positive"] == "yes"
    assert values["curve"]["threshold"] == [0.9, 0.6, 0.2, 0.1]
    assert values["curve"]["recall"] == [0.5, 1.0, 1.0, 1.0]


def test_long_curve_keeps_its_beginning_and_its_end() -> None:
    rng = np.random.default_rng(0)
    held_out = np.sort(rng.random(5000))[::-1]
    ranking = rank_nodes(1, held_out, rng.random(5000) < held_out, np.ones(5000), held_out)
    assert len(ranking.points) <= MAX_CURVE_POINTS
    assert [p.selected for p in ranking.points[:5]] == [1, 2, 3, 4, 5]
    assert ranking.points[-1].recall == 1.0


@pytest.mark.parametrize("tilt", [1.0, 10.0])
def test_chances_are_true_though_the_odds_were_raised(tilt: float) -> None:
    """A fit for F1 multiplies the odds of the rare class; the expected number does not change."""
    rng = np.random.default_rng(1)
    z = rng.normal(-3, 1.5, 4000)
    is_positive = rng.random(4000) < expit(z)
    raised = expit(z + np.log(tilt))
    chances = fitted_chances(raised[:2000], is_positive[:2000], np.ones(2000))(raised[2000:])
    assert chances.sum() == pytest.approx(is_positive[2000:].sum(), rel=0.15)
    np.testing.assert_allclose(chances, expit(z[2000:]), atol=0.1)


def test_node_ranks_count_from_one_and_ties_keep_their_order() -> None:
    assert node_ranks(np.array([0.2, 0.7, 0.7, 0.9])).tolist() == [4, 2, 3, 1]
