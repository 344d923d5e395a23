from __future__ import annotations

import numpy as np
import pytest

from kryograph.explain.contributions import Contributions, added, cosines, floored


def parts(hops: list[float], intercept: float = 0.5) -> Contributions:
    whole = sum(hops)
    return Contributions(
        intercept,
        np.array(hops),
        nodes=np.array([whole, 0.0, 0.0]),
        neighbours=np.array([0.0, whole, 0.0]),
        features=np.array([whole, 0.0]),
        others={"trees": 1.0},
        members={"trees": 1.0, "head": intercept + whole},
    )


def test_total_is_the_intercept_the_hops_and_the_others() -> None:
    assert parts([1.0, 2.0]).total == 4.5


def test_added_fills_up_hops_and_adds_equal_names() -> None:
    total = added([parts([1.0, 2.0]), parts([4.0])])
    assert total.hops.tolist() == [5.0, 2.0]
    assert total.nodes.tolist() == [7.0, 0.0, 0.0]
    assert total.intercept == 1.0
    assert total.others == {"trees": 2.0}
    assert total.members == {"trees": 2.0, "head": 8.0}
    assert total.total == 10.0


def test_scaled_multiplies_every_part() -> None:
    half = parts([1.0, 2.0]).scaled(0.5)
    assert half.total == 2.25
    assert half.features.tolist() == [1.5, 0.0]
    assert half.members == {"trees": 0.5, "head": 1.75}


def test_scaled_to_keeps_the_proportions() -> None:
    cut = parts([1.0, 2.0]).scaled_to(9.0)
    assert cut.total == 9.0
    assert cut.hops.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("intercept", [np.inf, -np.inf, 0.0])
def test_scaled_to_leaves_only_an_intercept_where_there_is_no_proportion(intercept: float) -> None:
    cut = Contributions.none(3, 2, intercept).scaled_to(-2.0)
    assert cut.intercept == cut.total == -2.0
    assert not cut.nodes.any()


def test_floored_scales_where_a_probability_is_below_the_floor() -> None:
    logs = np.log([0.5, 1e-9])
    exact = parts([float(logs[0] - logs[1]) - 1.5])
    assert floored(exact, logs, 0, 1, 1e-12) is exact
    cut = floored(exact, logs, 0, 1, 1e-6, temperature=2.0)
    assert cut.total == pytest.approx(np.log(0.5e6) / 2)


def test_cosines_of_equal_opposite_and_zero_rows() -> None:
    rows = np.array([[3.0, 4.0], [-6.0, -8.0], [0.0, 0.0], [-4.0, 3.0]])
    np.testing.assert_allclose(cosines(np.array([3.0, 4.0]), rows), [1, -1, 0, 0], atol=1e-15)
