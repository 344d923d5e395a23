"""Dropout on the features, whoever computes it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kryograph.data import synthetic_citations, toy
from kryograph.engine.forward import Forward, InputDropped, Nodes, WholeGraph, dropping_features
from kryograph.engine.krylov_forward import KrylovForward
from kryograph.engine.snowball_forward import SnowballForward
from kryograph.graph import Split
from kryograph.nn import Snowball, TruncatedKrylov
from kryograph.nn.functional import INPUT
from kryograph.nn.network import Layered
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems import system
from kryograph.training.loop import Conditions
from kryograph.training.stopping import exactly
from tests.layers import Case, FixedMasks, cases, check_run, random, seeded

NETWORKS: dict[str, tuple[type[Layered], type[Forward], dict[str, Any]]] = {
    "truncated Krylov": (TruncatedKrylov, KrylovForward, {"order": 4, "layers": 2}),
    "one Krylov layer": (TruncatedKrylov, KrylovForward, {"order": 3, "layers": 1}),
    "order 1": (TruncatedKrylov, KrylovForward, {"order": 1, "layers": 1}),
    "Snowball": (Snowball, SnowballForward, {"layers": 2}),
}
every_network = pytest.mark.parametrize("name", NETWORKS)


@every_network
@pytest.mark.parametrize("sparse", [False, True])
def test_it_is_the_network_on_thinned_features(name: str, sparse: bool) -> None:
    kind, _, values = NETWORKS[name]
    L = operator(toy.star(8))
    x = random(8, 5).double()
    masks = FixedMasks(8, seed=3)
    given = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=torch.float64) if sparse else x
    thinned: Any
    if sparse:
        keep = masks.keep(given.values, 0.4, INPUT, None)
        thinned = given.with_values(given.values * keep / 0.6)
    else:
        thinned = x * masks.keep(x, 0.4, INPUT, None) / 0.6
    network = kind(5, 3, 2, **values, input_dropout=0.4).double()
    network.reset_parameters(seeded(1))  # type: ignore[operator]
    dropped = network(given, L, masks=masks)
    network.eval()
    torch.testing.assert_close(dropped, network(thinned, L), rtol=1e-12, atol=1e-12)
    assert not torch.allclose(dropped, network(given, L))


@every_network
@settings(max_examples=10)
@given(case=cases(), optimizer=st.sampled_from(["adam", "rmsprop"]))
def test_ten_steps_are_those_of_the_literal_form(name: str, case: Case, optimizer: str) -> None:
    kind, form, values = NETWORKS[name]
    literal = kind(case.x.shape[1], 4, case.classes, **values, dropout=0.5, input_dropout=0.5)
    literal = literal.double()
    literal.reset_parameters(seeded(case.masks.seed))  # type: ignore[operator]
    rest = (case.x, case.L, case.nodes, case.masks)
    engine = dropping_features(form(copy.deepcopy(literal), *rest))
    assert isinstance(engine, InputDropped)
    check_run(engine, WholeGraph(literal, *rest), case, optimizer)


def test_without_it_the_form_stays_what_it_is() -> None:
    L, x = operator(toy.star(4)), random(4, 3).double()
    nodes = Nodes(torch.tensor([0]), torch.tensor([1]))
    form = KrylovForward(TruncatedKrylov(3, 2, 2, 2).double(), x, L, nodes, FixedMasks(4))
    assert dropping_features(form) is form


@pytest.mark.parametrize("sparse", [False, True])
def test_its_cost_is_that_of_every_block_on_every_node(sparse: bool) -> None:
    graph = synthetic_citations(n=400, classes=2, words=40, seed=0).graph
    L = operator(graph)
    features = graph.features if sparse else graph.features.toarray()
    x = SparseMatrix.from_scipy(features) if sparse else torch.from_numpy(features).float()
    nodes = Nodes(torch.arange(5), torch.arange(5, 10))
    flops = {}
    for order in (4, 8):
        network = TruncatedKrylov(40, 6, 2, order, input_dropout=0.5)
        form = dropping_features(KrylovForward(network, x, L, nodes, FixedMasks(400)))
        assert isinstance(form, InputDropped)
        own = sum(kernel.flops for kernel in form.scoring.cost().kernels)
        flops[order] = sum(kernel.flops for kernel in form.cost().kernels) - own
    entries = features.nnz if sparse else features.size
    # Forwards and backwards, two operations for each entry of X and of L and each column of W.
    assert flops[8] == 2 * 2 * (entries + L.matrix.nnz) * 8 * 6
    assert flops[4] == flops[8] / 2


@pytest.mark.parametrize("name", ["truncated-krylov", "snowball", "linear-snowball"])
def test_a_system_learns_with_it(name: str) -> None:
    data = synthetic_citations(n=400, classes=2, words=40, signal=0.6, seed=0)
    task = data.task(Split("by hand", train=range(60), validation=range(60, 100), test=[]))
    method = system(name, {"input_dropout": 0.5, "hidden": 8, "dropout": 0.2})
    fits = [method.fit(task, seed=s, conditions=Conditions(exactly(60))) for s in (0, 0)]
    assert (fits[0].predict_proba() == fits[1].predict_proba()).all()
    right = fits[0].predict_proba()[100:].argmax(axis=1) == data.labels[100:]
    assert right.mean() > 0.7
    estimate = method.estimate(task)
    assert estimate is not None
