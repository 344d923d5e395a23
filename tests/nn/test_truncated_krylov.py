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
from kryograph.nn.krylov import TruncatedKrylov, krylov_blocks
from kryograph.operators import Operator, operator
from kryograph.sparse import SparseMatrix
from layers import MIXED, OPERATORS, WEIGHTED, close, dense, directed, edge_index_of, random, seeded

pytestmark = pytest.mark.usefixtures("double")


def masks(n: int, width: int, layers: int, rate: float, seed: int) -> list[Tensor]:
    """What dropout multiplies each hidden layer by, drawn in order."""
    generator = seeded(seed)
    return [
        torch.empty(n, width).bernoulli_(1 - rate, generator=generator) / (1 - rate)
        for _ in range(layers)
    ]


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
    drawn = masks(MIXED.n, 6, layers, rate, seed=7)
    expected = literal(net, dense(MIXED, "sym"), x, drawn)
    generator = seeded(7)
    assert close(net(x, found, generator=generator), expected, 1e-12)
    # Not one number more was drawn: nothing else can have been dropped.
    reference = seeded(7)
    for _ in range(layers):
        torch.empty(MIXED.n, 6).bernoulli_(1 - rate, generator=reference)
    assert torch.equal(generator.get_state(), reference.get_state())


def test_the_classifier_is_not_dropped() -> None:
    net = TruncatedKrylov(3, 5, 4, 2, classifier=True, dropout=0.9, activation="identity")
    with torch.no_grad():
        net.first.weight.zero_()
        net.first.bias.zero_()
        net.output.weight.copy_(torch.eye(5, 4))
        net.output.bias.zero_()
    # The hidden layer is zero, so the logits are the classifier's biases, whatever is dropped.
    logits = net(random(6, 3), operator(toy.cycle(6)), generator=seeded(0))
    assert close(logits, net.classifier.bias[:4].expand(6, 4))


def test_evaluation_drops_nothing_and_ignores_the_generator() -> None:
    net = TruncatedKrylov(3, 6, 2, 2, layers=2, dropout=0.5)
    x, found = random(MIXED.n, 3), operator(MIXED)
    trained = net(x, found, generator=seeded(0))
    net.eval()
    expected = literal(net, dense(MIXED, "sym"), x, [torch.ones(1)] * 2)
    assert close(net(x, found, generator=seeded(0)), expected, 1e-12)
    assert not close(trained, expected, 1e-3)


def test_the_same_generator_gives_the_same_output() -> None:
    net = TruncatedKrylov(3, 6, 2, 2, dropout=0.5)
    x, found = random(MIXED.n, 3), operator(MIXED)
    first = net(x, found, generator=seeded(1))
    assert torch.equal(net(x, found, generator=seeded(1)), first)
    assert not torch.equal(net(x, found, generator=seeded(2)), first)


@pytest.mark.parametrize("classifier", [False, True])
def test_a_nodewise_network_needs_no_more_than_the_rows(classifier: bool) -> None:
    net = TruncatedKrylov(3, 4, 2, 5, classifier=classifier)
    assert net.nodewise
    x, found, rows = random(MIXED.n, 3), operator(MIXED, "rw"), torch.tensor([8, 0, 11])
    blocks = [block[rows] for block in krylov_blocks(found, x, 5)]
    assert close(net.from_blocks(blocks), net(x, found)[rows])


@pytest.mark.parametrize(("layers", "p"), [(2, 0), (1, 1), (2, 1)])
def test_a_network_that_diffuses_later_is_not_nodewise(layers: int, p: int) -> None:
    net = TruncatedKrylov(3, 4, 2, 2, layers=layers, p=p)
    assert not net.nodewise
    x, found = random(MIXED.n, 3), operator(MIXED)
    with pytest.raises(ValueError, match="needs an edge_index or an Operator"):
        net.from_blocks(krylov_blocks(found, x, 2))
    assert close(net.from_blocks(krylov_blocks(found, x, 2), found), net(x, found))


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
