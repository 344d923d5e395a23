"""`kryograph.figures.ranks`: appendix II at a small size."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.figures.ranks import (
    ARCHITECTURES,
    LOOKS,
    QUICK_RANKS,
    SCALED,
    RankExperiment,
    Ranks,
    ScaledLayers,
    check_activations,
    compute_ranks,
    draw_by_activation,
    draw_by_architecture,
    measure_ranks,
    numerical_rank,
    rank_rows,
)
from kryograph.nn.functional import ACTIVATIONS
from kryograph.operators import operator

FIGURE1 = ("relu", "tanh", "identity")
SMALL = RankExperiment(
    nodes=40, probability=0.2, features=20, width=8, layers=12, repetitions=2, seed=3
)


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], Ranks]:
    return measure_ranks(dataclasses.replace(QUICK_RANKS, repetitions=2), activations=FIGURE1)


def mean(found: dict[tuple[str, str], Ranks], architecture: str, f: str) -> np.ndarray:
    """By layer, from 1."""
    return np.concatenate([[np.nan], found[architecture, f].mean(axis=0)])


def test_the_numbers_are_those_of_appendix_two() -> None:
    e = RankExperiment()
    assert (e.nodes, e.probability, e.features, e.width, e.order) == (1000, 0.01, 500, 128, 3)
    assert (e.layers, e.repetitions) == (100, 20)
    first = {name: next(e.weights(name, 0)).shape for name in ARCHITECTURES}
    assert first == {"gcn": (500, 128), "snowball": (500, 128), "truncated-krylov": (1500, 128)}


def test_weights_fit_what_a_layer_sees() -> None:
    shapes = {name: [tuple(w.shape) for w in SMALL.weights(name, 0)] for name in ARCHITECTURES}
    assert shapes["gcn"][:3] == [(20, 8), (8, 8), (8, 8)]
    assert shapes["snowball"][:3] == [(20, 8), (28, 8), (36, 8)]
    assert shapes["truncated-krylov"][:3] == [(60, 8), (24, 8), (24, 8)]


def test_the_draw_is_normalised_as_kipf_does() -> None:
    L, x = SMALL.draw(0)
    assert L.name == "sym"
    assert L.symmetric
    assert x.sum(dim=1).tolist() == pytest.approx([1.0] * 40)
    loops = L.matrix.diagonal()
    degrees = np.diff(L.matrix.indptr)
    assert loops.tolist() == pytest.approx((1 / degrees).tolist())


def test_ranks_of_matrices_that_one_knows() -> None:
    assert numerical_rank(torch.eye(4)[:, :3]) == 3
    assert numerical_rank(torch.ones(5, 4)) == 1
    assert numerical_rank(torch.zeros(5, 4)) == 0
    assert numerical_rank(np.zeros((5, 0))) == 0
    nearly = torch.eye(3, dtype=torch.float64)
    nearly[2, 2] = 1e-16
    assert numerical_rank(nearly) == 2
    nearly[2, 2] = 1e-14
    assert numerical_rank(nearly) == 3


def test_a_layer_is_what_the_paper_writes() -> None:
    L = operator(toy.two_cliques(4))
    rng = np.random.default_rng(0)
    x, h = (torch.from_numpy(rng.standard_normal((8, width))) for width in (5, 3))

    def weight(rows: int) -> torch.Tensor:
        return torch.from_numpy(rng.standard_normal((rows, 3)))

    w = weight(3)
    assert torch.allclose(ARCHITECTURES["gcn"].step(L, [x, h], w), (L @ h) @ w)
    w = weight(8)
    literal = (L @ torch.cat([x, h], dim=1)) @ w
    assert torch.allclose(ARCHITECTURES["snowball"].step(L, [x, h], w), literal)
    w = weight(9)
    literal = torch.cat([h, L @ h, L @ (L @ h)], dim=1) @ w
    assert torch.allclose(ARCHITECTURES["truncated-krylov"].step(L, [x, h], w), literal)


def test_relu_loses_rank_and_tanh_keeps_it(found: dict[tuple[str, str], Ranks]) -> None:
    for architecture in ARCHITECTURES:
        relu, tanh = (mean(found, architecture, f) for f in ("relu", "tanh"))
        assert tanh[1:].min() >= 0.85 * 32
        assert relu[20] < 0.65 * 32
    assert mean(found, "gcn", "relu")[10] < 0.55 * 32
    assert mean(found, "gcn", "relu")[60] <= 1.5
    assert mean(found, "gcn", "identity")[60] <= 3


def test_krylov_holds_longer_than_snowball_and_snowball_longer_than_gcn(
    found: dict[tuple[str, str], Ranks],
) -> None:
    for f in ("relu", "identity"):
        left = [mean(found, architecture, f)[45] for architecture in ARCHITECTURES]
        assert left == sorted(left)
        assert left[2] > 2 * left[0]
    falls = [
        int(np.argmax(mean(found, architecture, "identity") < 31)) for architecture in ARCHITECTURES
    ]
    assert falls[0] < 20 < falls[1] < 40 < falls[2]


def test_the_seed_decides() -> None:
    first, again, other = (
        measure_ranks(dataclasses.replace(SMALL, seed=seed), ["gcn"], ["relu"])["gcn", "relu"]
        for seed in (3, 3, 4)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(again, other)


def test_an_activation_is_the_same_whatever_else_is_computed() -> None:
    alone = measure_ranks(SMALL, ["truncated-krylov"], ["relu"])
    together = measure_ranks(SMALL)
    assert len(together) == 30
    key = ("truncated-krylov", "relu")
    assert np.array_equal(alone[key], together[key])


@pytest.mark.parametrize("f", SCALED)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_scaling_changes_no_digit(architecture: str, f: str) -> None:
    L, x = SMALL.draw(0)
    plain = ScaledLayers(ARCHITECTURES[architecture], f, [x])
    scaled = ScaledLayers(ARCHITECTURES[architecture], f, [x], large=4.0)
    for weight in SMALL.weights(architecture, 0):
        h, sh = plain.forward(L, weight), scaled.forward(L, weight)
        assert torch.equal(sh / scaled.scale, h)
        assert numerical_rank(sh) == numerical_rank(h)
    assert plain.scale == 1
    assert (scaled.scale < 1) == (f not in ("tanh", "sigmoid"))


def test_what_overflows_without_scaling_has_its_rank_with_it() -> None:
    deep = dataclasses.replace(SMALL, layers=800, repetitions=1)
    L, x = deep.draw(0)
    never, usual = (
        ScaledLayers(ARCHITECTURES["gcn"], "identity", [x], large=large)
        for large in (np.inf, 2.0**300)
    )
    for weight in deep.weights("gcn", 0):
        lost, kept = never.forward(L, weight), usual.forward(L, weight)
    assert not torch.isfinite(lost).all()
    assert torch.isfinite(kept).all()
    assert numerical_rank(kept) == 1
    assert usual.scale > 0


@pytest.mark.parametrize("f", SCALED)
def test_at_scale_one_they_are_the_usual_activations(f: str) -> None:
    z = torch.linspace(-5, 5, 1001, dtype=torch.float64)
    assert torch.allclose(SCALED[f](z, 1.0), ACTIVATIONS[f](z), rtol=1e-13, atol=1e-15)


def test_there_are_ten_activations_and_all_are_known() -> None:
    assert len(SCALED) == 10
    assert set(SCALED) == set(ACTIVATIONS)


@given(
    st.sampled_from(sorted(SCALED)),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5),
    st.integers(-300, 0),
)
def test_scaling_commutes_with_every_activation(f: str, z: list[float], exponent: int) -> None:
    s = 2.0**exponent
    value = torch.tensor(z, dtype=torch.float64)
    expected = s * SCALED[f](value, 1.0)
    got = SCALED[f](s * value, s)
    # Where s z is subnormal, digits are lost before f sees them.
    tiny = 2.0**-1000
    assert torch.allclose(got, expected, rtol=0, atol=tiny)


def test_no_scale_is_too_small_for_numbers_out_of_range() -> None:
    z = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)
    for f in SCALED:
        assert torch.isfinite(SCALED[f](z, 2.0**-900)).all()
        assert torch.isfinite(SCALED[f](2.0**299 * z, 2.0**-900)).all()


def test_rows_have_mean_and_standard_deviation() -> None:
    table = rank_rows({("gcn", "relu"): np.array([[8, 4], [6, 4]])})
    assert table == [
        {"architecture": "gcn", "activation": "relu", "layer": 1, "mean": 7.0, "std": 2**0.5},
        {"architecture": "gcn", "activation": "relu", "layer": 2, "mean": 4.0, "std": 0.0},
    ]
    assert rank_rows({("gcn", "relu"): np.array([[8]])})[0]["std"] == 0.0


def test_the_figure_has_a_picture_for_each_view_and_a_summary_of_some_layers() -> None:
    result = compute_ranks(SMALL, ["relu"], transposed=True)
    assert list(result.drawings) == ["", "-transposed"]
    assert list(compute_ranks(SMALL, ["relu"]).drawings) == [""]
    means = measure_ranks(SMALL, activations=["relu"])["snowball", "relu"].mean(axis=0)
    assert result.about["mean_rank"]["snowball relu"] == {"1": means[0], "10": means[9]}
    [(headings, lines)] = result.tables
    assert headings == ("mean rank after layer", "1", "10")
    assert lines[1] == ("snowball relu", f"{means[0]:.1f}", f"{means[9]:.1f}")
    assert len(result.rows) == 3 * 12


def test_every_activation_has_a_line_of_its_own() -> None:
    assert set(LOOKS) == set(SCALED)
    looks = [(look["color"], str(look.get("linestyle", "-"))) for look in LOOKS.values()]
    assert len(set(looks)) == len(looks)


def test_panels_are_architectures_or_activations() -> None:
    table = {
        (name, f): np.array([[8, 4], [6, 4]])
        for name in ("gcn", "snowball")
        for f in ("relu", "tanh", "identity")
    }
    figure = draw_by_architecture(table)
    assert [axis.get_title() for axis in figure.axes] == ["(a) Deep GCN", "(b) Snowball"]
    [first, *_] = figure.axes[0].lines
    assert (first.get_label(), list(first.get_ydata())) == ("ReLU", [7, 4])
    turned = draw_by_activation(table)
    assert [axis.get_title() for axis in turned.axes] == ["(a) ReLU", "(b) identity", "(c) tanh"]
    assert [line.get_label() for line in turned.axes[0].lines] == ["GCN", "Snowball"]


def test_progress_ends_at_one() -> None:
    told: list[float] = []
    measure_ranks(SMALL, ["gcn"], ["relu"], lambda stage, share: told.append(share))
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 0}, "layers must be at least 1; it is 0"),
        ({"repetitions": 0}, "repetitions must be at least 1"),
        ({"nodes": -1}, "nodes must be at least 1"),
        ({"probability": 1.5}, "probability of an edge cannot be 1.5"),
        ({"probability": float("nan")}, "probability of an edge cannot be nan"),
        ({"seed": -1}, "--seed must not be negative"),
    ],
)
def test_an_impossible_experiment_is_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        dataclasses.replace(SMALL, **change)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'relu'"):
        measure_ranks(SMALL, ["gcn"], ["rleu"])
    with pytest.raises(UsageError, match="Unknown architecture 'gnc'"):
        measure_ranks(SMALL, ["gnc"], ["relu"])
    with pytest.raises(UsageError, match="named 2 times"):
        check_activations(["relu", "relu"])
    with pytest.raises(UsageError, match="Name at least one activation"):
        check_activations([])
