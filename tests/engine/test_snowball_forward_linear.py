from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kryograph.engine.hops import FeatureRows, Hops
from kryograph.engine.snowball_forward import coefficients, collapsed, collapsed_cost
from kryograph.nn import Snowball
from kryograph.operators import from_edge_index, operator
from kryograph.sparse import TORCH_KERNEL_COLUMNS
from tests.layers import MIXED, OPERATORS, dense, directed, seeded

FEATURES, HIDDEN = 3, 4

every_depth = pytest.mark.parametrize("layers", [0, 1, 3])
with_or_without = pytest.mark.parametrize("bias", [True, False])


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=seeded(0))


def linear(layers: int, bias: bool, classes: int = 2) -> Snowball:
    network = Snowball(FEATURES, HIDDEN, classes, layers, activation="identity", bias=bias)
    network.to(torch.float64).reset_parameters(seeded(1))
    return network.eval().requires_grad_(False)


def parameters(network: Snowball) -> tuple[list[Tensor], list[Tensor | None]]:
    layers = [*network.convs, network.output]
    return [layer.weight for layer in layers], [layer.bias for layer in layers]


@every_depth
@with_or_without
@pytest.mark.parametrize("name", OPERATORS)
def test_the_logits_are_the_polynomial_of_these_coefficients(
    layers: int, bias: bool, name: str
) -> None:
    network, x, L = linear(layers, bias), random(MIXED.n, FEATURES), dense(MIXED, name).double()
    weights, biases = parameters(network)
    powers, constants = coefficients(weights, biases)
    assert powers.shape == (FEATURES, (layers + 1) * 2)
    logits = torch.zeros(MIXED.n, 2).double() + (biases[-1] if bias else 0)
    for k, (a, c) in enumerate(zip(powers.split(2, dim=1), constants.split(2), strict=True), 1):
        logits = logits + torch.linalg.matrix_power(L, k) @ (x @ a + c)
    torch.testing.assert_close(logits, network(x, operator(MIXED, name)), rtol=0, atol=1e-12)
    assert bool(constants.any()) == (bias and layers > 0)


def test_the_coefficients_of_one_layer_written_out() -> None:
    # L [X, H_1] W + b with H_1 = L X W_0 + 1 b_0 is L X W^x + L² X W_0 W^h + L 1 b_0 W^h + b.
    weights, biases = parameters(linear(1, bias=True))
    powers, constants = coefficients(weights, biases)
    of_x, of_h = weights[1][:FEATURES], weights[1][FEATURES:]
    torch.testing.assert_close(powers, torch.cat([of_x, weights[0] @ of_h], dim=1))
    torch.testing.assert_close(constants, torch.cat([biases[0] @ of_h, torch.zeros(2).double()]))


def test_the_weights_stay_as_they_are() -> None:
    network = linear(3, bias=True)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    coefficients(*parameters(network))
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items())


@every_depth
@with_or_without
@pytest.mark.parametrize("classes", [2, TORCH_KERNEL_COLUMNS + 1])
@pytest.mark.parametrize("name", [*OPERATORS, "one-way"])
@pytest.mark.parametrize("nodes", [[4], [8, 12, 0], list(range(MIXED.n))])
def test_some_nodes_have_the_logits_of_the_literal_form(
    layers: int, bias: bool, classes: int, name: str, nodes: list[int]
) -> None:
    one_way = from_edge_index(*directed(MIXED.n, 20, seed=1), MIXED.n, "rw")
    L = one_way if name == "one-way" else operator(MIXED, name)
    network, x = linear(layers, bias, classes), random(MIXED.n, FEATURES)
    hops = Hops(L, torch.tensor(nodes), layers + 1, torch.float64)
    found = collapsed(FeatureRows(x, hops.order), hops, *parameters(network))
    torch.testing.assert_close(found, network(x, L)[nodes], rtol=0, atol=1e-11)


def test_the_collapsed_form_costs_less_where_it_is_meant_to() -> None:
    x, hops = random(MIXED.n, FEATURES), Hops(operator(MIXED), torch.arange(13), 4, torch.float32)
    wide, narrow = (collapsed_cost(FeatureRows(x, hops.order), hops, h, 2) for h in (5000, 50))
    # Its products grow with the square of the width: n - 1 of them join two hidden layers.
    assert 500 < sum(k.flops for k in wide.kernels) / sum(k.flops for k in narrow.kernels) < 10_000
    # Three layers: W_0 meets six columns, W_1 four, W_2 two.
    inner = 2 * 5000 * (3 * 6 + (3 + 5000) * 4 + (3 + 2 * 5000) * 2)
    assert sum(k.flops for k in wide.kernels) == pytest.approx(inner, rel=0.001)
