from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch
from hypothesis import given

from kryograph.data import toy
from kryograph.engine.forward import WholeGraph
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems.dcnn import DCNN, KeptRows, ScalesConv
from tests.layers import MIXED, OPERATORS, Case, cases, check_run, close, random

pytestmark = pytest.mark.usefixtures("double")


def test_without_hops_it_is_a_logistic_regression_on_scaled_features() -> None:
    net, x = DCNN(3, 2, 0), random(13, 3)
    expected = torch.tanh(net.scale * x) @ net.weight + net.bias
    for graph in (MIXED, toy.complete(13)):
        assert close(net(x, operator(graph, "sym")), expected)


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


def test_it_has_few_parameters() -> None:
    # (H + 1) F element-wise, (H + 1) F C dense, C biases.
    assert sum(p.numel() for p in DCNN(5, 3, 2).parameters()) == 3 * 5 + 3 * 5 * 3 + 3


@given(case=cases())
def test_kept_rows_are_trained_as_the_whole_graph_is(case: Case) -> None:
    nets = [DCNN(case.x.shape[1], case.classes, 2, dropout=0.5) for _ in range(2)]
    nets[0].load_state_dict(nets[1].state_dict())
    kept, literal = (
        form(net, case.x, case.L, case.nodes, case.masks)
        for form, net in zip((KeptRows, WholeGraph), nets, strict=True)
    )
    check_run(kept, literal, case, "adam", steps=3)


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


@pytest.mark.parametrize("scales", [(), (-1, 2), (2, 1), (1, 1)])
def test_scales_that_are_no_increasing_powers_are_refused(scales: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="increasing order"):
        ScalesConv(3, 2, scales)
