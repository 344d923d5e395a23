from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import functional_call

from kryograph.data import toy
from kryograph.nn.functional import Masks
from kryograph.nn.krylov import TruncatedKrylov, krylov_blocks
from kryograph.operators import Operator, operator
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


def literal(net: TruncatedKrylov, matrix: Tensor, x: Tensor, drop: Sequence[Tensor]) -> Tensor:
    """The module's equation with dense powers of L; `drop` multiplies the hidden outputs."""
    f = net.activation
    h = x
    for conv, mask in zip([net.first, *net.further], drop, strict=True):
        powers = [torch.linalg.matrix_power(matrix, k) @ h for k in range(conv.order)]
        h = mask * f(
            torch.cat(powers, dim=1) @ conv.weight + (0 if conv.bias is None else conv.bias)
        )
    if net.classifier is not None:
        bias = net.classifier.bias
        h = f(h @ net.classifier.weight + (0 if bias is None else bias))
    out = torch.linalg.matrix_power(matrix, net.output.p) @ h @ net.output.weight
    return out if net.output.bias is None else out + net.output.bias


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("classifier", [False, True])
@pytest.mark.parametrize("p", [0, 1])
@pytest.mark.parametrize(("activation", "bias"), [("tanh", True), ("identity", False)])
def test_the_network_is_its_formula(
    name: str, layers: int, classifier: bool, p: int, activation: str, bias: bool
) -> None:
    net = TruncatedKrylov(
        3, 4, 2, 3, layers=layers, classifier=classifier, p=p, activation=activation, bias=bias
    )
    x = random(MIXED.n, 3)
    expected = literal(net, dense(MIXED, name), x, [torch.ones(1)] * layers)
    assert close(net(x, operator(MIXED, name)), expected, 1e-12)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("classifier", [False, True])
@pytest.mark.parametrize("p", [0, 1])
def test_derivatives_of_the_network(layers: int, classifier: bool, p: int) -> None:
    graph = toy.disjoint(toy.star(4), toy.isolated(1))
    net = TruncatedKrylov(2, 2, 2, 3, layers=layers, classifier=classifier, p=p)
    walk, names = operator(graph, "rw"), [name for name, _ in net.named_parameters()]

    def run(x: Tensor, *values: Tensor) -> Tensor:
        out: Tensor = functional_call(net, dict(zip(names, values, strict=True)), (x, walk))
        return out

    x = random(graph.n, 2).requires_grad_()
    assert len(names) == 2 * (layers + classifier + 1)
    assert gradcheck(run, (x, *net.parameters()))


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("classifier", [False, True])
@pytest.mark.parametrize("rate", [0.3, 0.9])
def test_dropout_is_on_the_hidden_outputs_and_nowhere_else(
    layers: int, classifier: bool, rate: float
) -> None:
    net = TruncatedKrylov(3, 6, 2, 2, layers=layers, classifier=classifier, dropout=rate, p=1)
    x, found = random(MIXED.n, 3), operator(MIXED)
    masks = FixedMasks(MIXED.n, seed=7)
    expected = literal(net, dense(MIXED, "sym"), x, masks.factors(6, rate, layers))
    assert close(net(x, found, masks=masks), expected, 1e-12)
    # Nothing more was asked for: nothing else can have been dropped.
    assert masks.asked == [(layer, (MIXED.n, 6), None) for layer in range(layers)]


def test_the_classifier_is_not_dropped() -> None:
    net = TruncatedKrylov(3, 5, 4, 2, classifier=True, dropout=0.9, activation="identity")
    with torch.no_grad():
        net.first.weight.zero_()
        net.first.bias.zero_()
        net.output.weight.copy_(torch.eye(5, 4))
        net.output.bias.zero_()
    # The hidden layer is zero, so the logits are the classifier's biases, whatever is dropped.
    logits = net(random(6, 3), operator(toy.cycle(6)), masks=Masks(seeded(0)))
    assert close(logits, net.classifier.bias[:4].expand(6, 4))


def test_evaluation_drops_nothing_and_draws_nothing() -> None:
    net = TruncatedKrylov(3, 6, 2, 2, layers=2, dropout=0.5)
    x, found, generator = random(MIXED.n, 3), operator(MIXED), seeded(0)
    trained = net(x, found, masks=Masks(seeded(0)))
    net.eval()
    expected = literal(net, dense(MIXED, "sym"), x, [torch.ones(1)] * 2)
    before = generator.get_state()
    assert close(net(x, found, masks=Masks(generator)), expected, 1e-12)
    assert torch.equal(generator.get_state(), before)
    assert not close(trained, expected, 1e-3)


def test_the_same_generator_gives_the_same_output() -> None:
    net = TruncatedKrylov(3, 6, 2, 2, dropout=0.5)
    x, found = random(MIXED.n, 3), operator(MIXED)
    first = net(x, found, masks=Masks(seeded(1)))
    assert torch.equal(net(x, found, masks=Masks(seeded(1))), first)
    assert not torch.equal(net(x, found, masks=Masks(seeded(2))), first)


@pytest.mark.parametrize("classifier", [False, True])
def test_the_head_needs_no_more_than_the_rows(classifier: bool) -> None:
    net = TruncatedKrylov(3, 4, 2, 5, classifier=classifier)
    x, found, rows = random(MIXED.n, 3), operator(MIXED, "rw"), torch.tensor([8, 0, 11])
    blocks = [block[rows] for block in krylov_blocks(found, x, 5)]
    h = net.hidden(net.first.combine(blocks), 0)
    assert close(net.head(h), net(x, found)[rows])


@pytest.mark.parametrize("classifier", [False, True])
def test_a_head_that_diffuses_takes_an_operator_or_rows_of_it(classifier: bool) -> None:
    net = TruncatedKrylov(3, 4, 2, 2, p=1, classifier=classifier)
    x, found, rows = random(MIXED.n, 3), operator(MIXED), torch.tensor([8, 0, 11])
    h = net.hidden(net.first(x, found), 0)
    with pytest.raises(ValueError, match="needs an edge_index or an Operator"):
        net.head(h)
    assert close(net.head(h, found), net(x, found))
    some = found.tensor(torch.float64).rows(rows)
    assert close(net.head(h, some), net(x, found)[rows])


def test_a_hidden_layer_is_dropped_by_node() -> None:
    net, masks = TruncatedKrylov(3, 4, 2, 2, dropout=0.5), FixedMasks(MIXED.n)
    z, rows = random(MIXED.n, 4), torch.tensor([8, 0, 11])
    whole = net.hidden(z, 1, masks)
    assert close(whole, 2 * masks.whole(4, 0.5, layer=1) * torch.tanh(z))
    assert close(net.hidden(z[rows], 1, masks, rows), whole[rows])
    assert masks.asked == [(1, (MIXED.n, 4), None), (1, (3, 4), [8, 0, 11])]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize(("layers", "p"), [(1, 0), (2, 1)])
def test_a_permuted_graph_gives_permuted_logits(name: str, layers: int, p: int) -> None:
    n = 9
    pairs, weight = directed(n, 25, seed=5)
    new_name = torch.randperm(n, generator=seeded(2))
    net = TruncatedKrylov(3, 4, 2, 3, layers=layers, p=p, classifier=True, operator=name)
    x = random(n, 3)
    permuted = torch.empty_like(x)
    permuted[new_name] = x
    found = net(permuted, new_name[pairs], weight)
    assert close(found[new_name], net(x, pairs, weight))
    assert not close(found, net(x, pairs, weight), atol=1e-3)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_network_takes_edges_operators_and_sparse_features(name: str) -> None:
    words = sp.random_array((WEIGHTED.n, 5), density=0.4, rng=2, format="csr")
    x, sparse = (
        torch.from_numpy(words.toarray()),
        SparseMatrix.from_scipy(words, dtype=torch.float64),
    )
    net = TruncatedKrylov(5, 4, 2, 3, layers=2, p=1, operator=name)
    found: Operator = operator(WEIGHTED, name)
    assert close(net(x, *edge_index_of(WEIGHTED)), net(x, found))
    assert close(net(sparse, found), net(x, found))


def test_every_weight_of_the_network_is_drawn_from_the_generator() -> None:
    first, again = (TruncatedKrylov(3, 4, 2, 2, layers=2, classifier=True) for _ in range(2))
    first.reset_parameters(seeded(0))
    again.reset_parameters(seeded(0))
    for name, value in first.named_parameters():
        assert torch.equal(value, again.get_parameter(name)), name
    again.reset_parameters(seeded(1))
    for name, value in first.named_parameters():
        assert not torch.equal(value, again.get_parameter(name)), name
        bound = 1 / math.sqrt(2 if name.startswith("output") else 4)
        assert value.abs().max() <= bound, name


def test_no_layers_are_refused() -> None:
    with pytest.raises(ValueError, match="layers must be at least 1, not 0"):
        TruncatedKrylov(2, 2, 2, 2, layers=0)
