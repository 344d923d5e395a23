from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call
from torch_geometric.nn import GCNConv

from kryograph.data import toy
from kryograph.nn import Snowball, SnowballConv
from kryograph.nn.functional import Masks
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from tests.layers import (
    MIXED,
    OPERATORS,
    WEIGHTED,
    FixedMasks,
    close,
    dense,
    directed,
    edge_index_of,
    random,
    seeded,
)

pytestmark = pytest.mark.usefixtures("double")


# SnowballConv


def test_a_layer_by_hand() -> None:
    conv = SnowballConv(2, 1)
    with torch.no_grad():
        conv.weight.copy_(torch.tensor([[1.0], [10.0]]))
        conv.bias.fill_(0.5)
    x = torch.tensor([[6.0, 0.0], [0.0, 0.0], [0.0, 0.6]])
    # X W is 6, 0, 6; each end of the path averages two nodes, the middle all three.
    assert close(conv(x, operator(toy.path(3), "rw")).ravel(), torch.tensor([3.5, 4.5, 3.5]))


@pytest.mark.parametrize("weighted", [False, True])
def test_with_p_one_it_is_a_gcn_layer(weighted: bool) -> None:
    edge_index, edge_weight = directed(8, 20, seed=0)
    weight = edge_weight if weighted else None
    gcn, conv, x = GCNConv(3, 2), SnowballConv(3, 2), random(8, 3)
    with torch.no_grad():
        gcn.bias.copy_(random(2, seed=1))
        conv.weight.copy_(gcn.lin.weight.T)
        conv.bias.copy_(gcn.bias)
    assert close(conv(x, edge_index, weight), gcn(x, edge_index, weight))


def test_with_p_zero_it_is_a_linear_layer_and_needs_no_graph() -> None:
    conv, x = SnowballConv(3, 2, p=0), random(5, 3)
    expected = nn.functional.linear(x, conv.weight.T, conv.bias)
    assert close(conv(x), expected)
    assert close(conv(x, operator(toy.cycle(5))), expected)


def test_with_p_one_it_needs_a_graph() -> None:
    with pytest.raises(ValueError, match="needs an edge_index or an Operator"):
        SnowballConv(3, 2)(random(5, 3))


@pytest.mark.parametrize("p", [-1, 2])
def test_other_p_are_refused(p: int) -> None:
    with pytest.raises(ValueError, match=f"p must be 0 or 1, not {p}"):
        SnowballConv(3, 2, p=p)
    with pytest.raises(ValueError, match=f"p must be 0 or 1, not {p}"):
        Snowball(3, 2, 2, 1, p=p)


@pytest.mark.parametrize("p", [0, 1])
@pytest.mark.parametrize("kind", [list, tuple])
def test_a_sequence_of_blocks_is_their_concatenation(p: int, kind: type) -> None:
    blocks = [random(MIXED.n, width, seed=width) for width in (2, 1, 4)]
    conv, found = SnowballConv(7, 3, p=p), operator(MIXED, "rw")
    expected = torch.linalg.matrix_power(dense(MIXED, "rw"), p) @ torch.cat(blocks, dim=1)
    expected = expected @ conv.weight + conv.bias
    assert close(conv(kind(blocks), found), expected)
    assert close(conv(torch.cat(blocks, dim=1), found), expected)


def test_blocks_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="the blocks are 3 columns wide, the weight has 4 rows"):
        SnowballConv(4, 2)([random(5, 2), random(5, 1)], operator(toy.cycle(5)))


@pytest.mark.parametrize("name", OPERATORS)
def test_sparse_and_dense_features_agree_in_a_layer(name: str) -> None:
    words = sp.random_array((MIXED.n, 5), density=0.3, rng=0, format="csr")
    x, h = torch.from_numpy(words.toarray()), random(MIXED.n, 2)
    sparse = SparseMatrix.from_scipy(words, dtype=torch.float64)
    found = operator(MIXED, name)
    alone, beside = SnowballConv(5, 3), SnowballConv(7, 3)
    assert close(alone(sparse, found), alone(x, found))
    assert close(beside([sparse, h], found), beside([x, h], found))


def test_some_rows_of_the_operator_give_those_rows_of_the_output() -> None:
    conv, x, found = SnowballConv(3, 2), random(MIXED.n, 3), operator(MIXED, "rw")
    rows = torch.tensor([8, 0, 11])
    assert close(conv(x, found.tensor(torch.float64).rows(rows)), conv(x, found)[rows])


@pytest.mark.parametrize("name", OPERATORS)
def test_an_edge_index_and_an_operator_agree(name: str) -> None:
    conv, x = SnowballConv(2, 3, operator=name), random(6, 2)
    assert close(conv(x, *edge_index_of(WEIGHTED)), conv(x, operator(WEIGHTED, name)))


def test_a_node_on_its_own_sees_itself() -> None:
    conv, x = SnowballConv(3, 2), random(MIXED.n, 3)
    for name in OPERATORS:
        assert close(conv(x, operator(MIXED, name))[8], x[8] @ conv.weight + conv.bias)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("p", [0, 1])
def test_derivatives_of_the_layer(name: str, p: int) -> None:
    conv, found = SnowballConv(3, 2, p=p), operator(MIXED, name)

    def run(x: Tensor, h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        out: Tensor = functional_call(conv, {"weight": weight, "bias": bias}, ([x, h], found))
        return out

    x, h = random(MIXED.n, 1).requires_grad_(), random(MIXED.n, 2, seed=1).requires_grad_()
    assert gradcheck(run, (x, h, conv.weight, conv.bias))


def test_weights_and_biases_lie_within_one_over_root_out() -> None:
    conv = SnowballConv(1000, 16)
    assert 0.2499 < conv.weight.abs().max() <= 0.25
    assert conv.bias.abs().max() <= 0.25
    assert 0.0099 < SnowballConv(1, 10_000).bias.abs().max() <= 0.01


def test_the_same_seed_gives_the_same_weights() -> None:
    first, again, other = (SnowballConv(3, 2) for _ in range(3))
    for conv, seed in ((first, 4), (again, 4), (other, 5)):
        conv.reset_parameters(seeded(seed))
    assert torch.equal(first.weight, again.weight)
    assert torch.equal(first.bias, again.bias)
    assert not torch.equal(first.weight, other.weight)
    assert not torch.equal(first.bias, other.bias)


def test_print_shows_the_sizes() -> None:
    assert str(SnowballConv(3, 2, p=0)) == "SnowballConv(3, 2, p=0)"


# Snowball


def literal(net: Snowball, matrix: Tensor, x: Tensor, drop: Sequence[Tensor]) -> Tensor:
    """The module's equation with a dense L; `drop` multiplies the hidden outputs."""
    f, g = net.activation, net.classifier_activation
    c = x
    for conv, mask in zip(net.convs, drop, strict=True):
        h = f(matrix @ c @ conv.weight + (0 if conv.bias is None else conv.bias))
        c = torch.cat([c, mask * h], dim=1)
    if net.classifier is not None:
        bias = net.classifier.bias
        c = g(c @ net.classifier.weight + (0 if bias is None else bias))
    out = torch.linalg.matrix_power(matrix, net.output.p) @ c @ net.output.weight
    return out if net.output.bias is None else out + net.output.bias


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("activation", ["tanh", "identity"])
@pytest.mark.parametrize("classifier", [None, 5])
@pytest.mark.parametrize("p", [0, 1])
@pytest.mark.parametrize("bias", [True, False])
def test_the_network_is_its_formula(
    name: str, layers: int, activation: str, classifier: int | None, p: int, bias: bool
) -> None:
    net = Snowball(3, 4, 2, layers, activation=activation, classifier=classifier, p=p, bias=bias)
    x = random(MIXED.n, 3)
    expected = literal(net, dense(MIXED, name), x, [torch.ones(1)] * layers)
    assert close(net(x, operator(MIXED, name)), expected, 1e-12)


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("classifier", [None, 3])
@pytest.mark.parametrize("p", [0, 1])
def test_derivatives_of_the_network(layers: int, classifier: int | None, p: int) -> None:
    graph = toy.disjoint(toy.star(4), toy.isolated(1))
    net = Snowball(2, 2, 2, layers, classifier=classifier, p=p)
    walk, names = operator(graph, "rw"), [name for name, _ in net.named_parameters()]

    def run(x: Tensor, *values: Tensor) -> Tensor:
        out: Tensor = functional_call(net, dict(zip(names, values, strict=True)), (x, walk))
        return out

    x = random(graph.n, 2).requires_grad_()
    assert len(names) == 2 * (layers + (classifier is not None) + 1)
    assert gradcheck(run, (x, *net.parameters()))


@pytest.mark.parametrize("classifier", [None, 5])
@pytest.mark.parametrize("rate", [0.3, 0.9])
def test_dropout_is_on_the_hidden_outputs_and_never_on_the_features(
    classifier: int | None, rate: float
) -> None:
    net = Snowball(3, 4, 2, 3, dropout=rate, classifier=classifier)
    x, masks = random(MIXED.n, 3), FixedMasks(MIXED.n, seed=11)
    expected = literal(net, dense(MIXED, "sym"), x, masks.factors(4, rate, 3))
    assert close(net(x, operator(MIXED), masks=masks), expected, 1e-12)
    # Nothing more was asked for: nothing else can have been dropped.
    assert masks.asked == [(layer, (MIXED.n, 4), None) for layer in range(3)]


def test_the_features_reach_the_output_whole_when_all_else_is_zero() -> None:
    net = Snowball(3, 4, 3, 2, dropout=0.9, p=0, bias=False)
    with torch.no_grad():
        net.output.weight.zero_()
        net.output.weight[:3].copy_(torch.eye(3))
    x = random(MIXED.n, 3)
    assert torch.equal(net(x, operator(MIXED), masks=Masks(seeded(0))), x)


def test_evaluation_drops_nothing() -> None:
    net, x = Snowball(3, 4, 2, 3, dropout=0.5), random(MIXED.n, 3)
    trained = net(x, operator(MIXED), masks=Masks(seeded(0)))
    net.eval()
    expected = literal(net, dense(MIXED, "sym"), x, [torch.ones(1)] * 3)
    assert close(net(x, operator(MIXED), masks=Masks(seeded(0))), expected, 1e-12)
    assert not close(trained, expected, 1e-3)


def test_the_same_generator_gives_the_same_output() -> None:
    net, x, found = Snowball(3, 4, 2, 3, dropout=0.5), random(MIXED.n, 3), operator(MIXED)
    first = net(x, found, masks=Masks(seeded(1)))
    assert torch.equal(net(x, found, masks=Masks(seeded(1))), first)
    assert not torch.equal(net(x, found, masks=Masks(seeded(2))), first)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("classifier", [None, 5])
def test_the_network_takes_edges_operators_and_sparse_features(
    name: str, classifier: int | None
) -> None:
    words = sp.random_array((WEIGHTED.n, 5), density=0.4, rng=2, format="csr")
    x, found = torch.from_numpy(words.toarray()), operator(WEIGHTED, name)
    sparse = SparseMatrix.from_scipy(words, dtype=torch.float64)
    net = Snowball(5, 4, 2, 3, operator=name, classifier=classifier)
    assert close(net(x, *edge_index_of(WEIGHTED)), net(x, found))
    assert close(net(sparse, found), net(x, found))
    # The same gradients, too.
    net(sparse, found).square().sum().backward()
    gradients = {key: value.grad for key, value in net.named_parameters()}
    net.zero_grad()
    net(x, found).square().sum().backward()
    for key, value in net.named_parameters():
        assert close(gradients[key], value.grad, 1e-10), key


@pytest.mark.parametrize("name", OPERATORS)
def test_a_permuted_graph_gives_permuted_logits(name: str) -> None:
    n = 9
    pairs, weight = directed(n, 25, seed=5)
    shuffled = torch.randperm(25, generator=seeded(1))
    new_name = torch.randperm(n, generator=seeded(2))
    net, x = Snowball(3, 4, 2, 3, operator=name), random(n, 3)
    permuted = torch.empty_like(x)
    permuted[new_name] = x
    found = net(permuted, new_name[pairs][:, shuffled], weight[shuffled])
    assert close(found[new_name], net(x, pairs, weight))
    assert not close(found, net(x, pairs, weight), atol=1e-3)


@pytest.mark.parametrize("name", OPERATORS)
def test_components_do_not_see_each_other(name: str) -> None:
    parts = [toy.two_cliques(4), toy.isolated(1), toy.star(4)]
    net, x = Snowball(3, 4, 2, 3), random(MIXED.n, 3)
    rows = x.split([part.n for part in parts])
    apart = [net(r, operator(part, name)) for r, part in zip(rows, parts, strict=True)]
    assert close(net(x, operator(MIXED, name)), torch.cat(apart))


def test_every_weight_of_the_network_is_drawn_from_the_generator() -> None:
    first, again = (Snowball(3, 4, 2, 2, classifier=5) for _ in range(2))
    first.reset_parameters(seeded(0))
    again.reset_parameters(seeded(0))
    for name, value in first.named_parameters():
        assert torch.equal(value, again.get_parameter(name)), name
    again.reset_parameters(seeded(1))
    outputs = {"convs": 4, "classifier": 5, "output": 2}
    for name, value in first.named_parameters():
        assert not torch.equal(value, again.get_parameter(name)), name
        assert value.abs().max() <= 1 / math.sqrt(outputs[name.split(".")[0]]), name


@pytest.mark.parametrize("arguments", [{"layers": -1}, {"layers": 1, "classifier": 0}])
def test_impossible_sizes_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="cannot have"):
        Snowball(2, 3, 4, **arguments)
