from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given

from kryograph.data import toy
from kryograph.engine.forward import WholeGraph, Workload
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Split, Task
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems import system
from kryograph.systems.dcnn import DCNN, KeptRows, ScalesConv
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule
from tests.layers import MIXED, OPERATORS, Case, cases, check_run, close, random

SHORT = Conditions(rule=StopRule(max_epochs=20))


def task_on(graph: Graph) -> Task:
    """Twelve nodes with two features, the larger of which is the class."""
    features = np.random.default_rng(0).random((12, 2))
    labels = np.full(12, UNKNOWN)
    labels[:8] = features[:8].argmax(axis=1)
    split = Split("by hand", train=range(6), validation=[6, 7], test=range(8, 12))
    return Task(Graph(graph.adjacency.copy(), features), split, labels, ("a", "b"))


def probabilities(graph: Graph, **changes: object) -> np.ndarray:
    chosen = system("dcnn", {"dropout": 0.0, **changes})
    return chosen.fit(task_on(graph), seed=1, conditions=SHORT).predict_proba()


def test_without_hops_the_graph_does_not_matter() -> None:
    found = [
        probabilities(graph, variant="original", hops=0)
        for graph in (toy.cycle(12), toy.star(12), toy.isolated(12))
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_with_a_hop_it_does() -> None:
    ring, star = (
        probabilities(g, variant="original", hops=1) for g in (toy.cycle(12), toy.star(12))
    )
    assert np.abs(ring - star).max() > 1e-3


def test_the_variants_are_two_networks() -> None:
    both = [probabilities(toy.cycle(12), variant=v) for v in ("original", "lanczosnet")]
    for each in both:
        np.testing.assert_allclose(each.sum(axis=1), 1)
    assert np.abs(both[0] - both[1]).max() > 1e-3


@pytest.mark.parametrize("scales", ["", "one", "2,1", "-1,2", "1,1", "1,1000"])
def test_scales_that_make_no_sense_are_a_sentence(scales: str) -> None:
    with pytest.raises(UsageError, match="increasing powers"):
        system("dcnn", {"scales": scales})


# The network


@pytest.mark.usefixtures("double")
def test_without_hops_it_is_a_logistic_regression_on_scaled_features() -> None:
    net, x = DCNN(3, 2, 0), random(13, 3)
    expected = torch.tanh(net.scale * x) @ net.weight + net.bias
    for graph in (MIXED, toy.complete(13)):
        assert close(net(x, operator(graph, "sym")), expected)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", OPERATORS)
def test_every_power_has_a_weight_for_each_feature(name: str) -> None:
    net, x = DCNN(3, 2, 2), random(13, 3)
    L = torch.from_numpy(operator(MIXED, name).matrix.toarray())
    blocks = [x, L @ x, L @ L @ x]
    z = torch.cat([torch.tanh(w * b) for w, b in zip(net.scale, blocks, strict=True)], dim=1)
    expected = z @ net.weight + net.bias
    sparse = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=x.dtype)
    for given_x in (x, sparse):
        assert close(net(given_x, operator(MIXED, name)), expected)


@pytest.mark.usefixtures("double")
def test_it_has_few_parameters() -> None:
    # (H + 1) F element-wise, (H + 1) F C dense, C biases.
    assert sum(p.numel() for p in DCNN(5, 3, 2).parameters()) == 3 * 5 + 3 * 5 * 3 + 3


@pytest.mark.usefixtures("double")
@given(case=cases())
def test_kept_rows_are_trained_as_the_whole_graph_is(case: Case) -> None:
    nets = [DCNN(case.x.shape[1], case.classes, 2, dropout=0.5) for _ in range(2)]
    nets[0].load_state_dict(nets[1].state_dict())
    kept, literal = (
        form(Workload(net, case.x, case.L, case.nodes, case.masks))
        for form, net in zip((KeptRows, WholeGraph), nets, strict=True)
    )
    check_run(kept, literal, case, "adam", steps=3)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("scales", [(0,), (1,), (0, 1), (1, 3), (0, 2, 5)])
def test_a_layer_of_scales_is_a_sum_of_powers(scales: tuple[int, ...]) -> None:
    conv, x = ScalesConv(3, 2, scales), random(13, 3)
    torch.nn.init.normal_(conv.bias)
    L = torch.from_numpy(operator(MIXED, "rw").matrix.toarray())
    expected = conv.bias + sum(
        torch.linalg.matrix_power(L, s) @ x @ W
        for s, W in zip(scales, conv.weight.split(2, dim=1), strict=True)
    )
    sparse = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=x.dtype)
    for given_x in (x, sparse):
        assert close(conv(given_x, operator(MIXED, "rw")), expected)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("scales", [(), (-1, 2), (2, 1), (1, 1)])
def test_scales_that_are_no_increasing_powers_are_refused(scales: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="increasing order"):
        ScalesConv(3, 2, scales)
