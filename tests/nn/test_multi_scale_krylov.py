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
from kryograph.graph import Graph
from kryograph.krylov.bases import krylov_blocks
from kryograph.nn.functional import Masks
from kryograph.nn.multi_scale import KrylovConv, TruncatedKrylov
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


def corner(n: int) -> Tensor:
    return torch.eye(n)[:, :1]


# Blocks


@pytest.mark.parametrize(
    ("graph", "name", "blocks"),
    [
        (toy.path(3), "affinity", [[1, 0, 0], [1, 1, 0], [2, 2, 1], [4, 5, 3]]),
        (toy.path(3), "laplacian", [[1, 0, 0], [1, -1, 0], [2, -3, 1], [5, -9, 4]]),
        (toy.path(3), "rw", [[1, 0, 0], [1 / 2, 1 / 3, 0], [5 / 12, 5 / 18, 1 / 6]]),
        (
            toy.star(4),
            "rw",
            [[1, 0, 0, 0], [1 / 4, 1 / 2, 1 / 2, 1 / 2], [7 / 16, 3 / 8, 3 / 8, 3 / 8]],
        ),
        (
            toy.cycle(4),
            "sym",
            [[1, 0, 0, 0], [1 / 3, 1 / 3, 0, 1 / 3], [1 / 3, 2 / 9, 2 / 9, 2 / 9]],
        ),
        (toy.complete(4), "sym", [[1, 0, 0, 0], [1 / 4] * 4, [1 / 4] * 4, [1 / 4] * 4]),
        (
            toy.path(2),
            "normalised-laplacian",
            [[1, 0], [1, -1], [2, -2], [4, -4]],
        ),
        (toy.isolated(2), "sym", [[1, 0], [1, 0], [1, 0]]),
    ],
)
def test_the_blocks_of_a_corner_by_hand(graph: Graph, name: str, blocks: list[list[float]]) -> None:
    found = list(krylov_blocks(operator(graph, name), corner(graph.n), len(blocks)))
    assert len(found) == len(blocks)
    assert close(torch.cat(found, dim=1).T, torch.tensor(blocks, dtype=torch.float64), 1e-15)


@pytest.mark.parametrize("name", OPERATORS)
def test_blocks_are_powers_of_the_operator(name: str) -> None:
    x = random(MIXED.n, 3)
    for k, block in enumerate(krylov_blocks(operator(MIXED, name), x, 6)):
        assert close(block, torch.linalg.matrix_power(dense(MIXED, name), k) @ x)


def test_sparse_features_have_the_same_blocks() -> None:
    words = sp.random_array((MIXED.n, 5), density=0.3, rng=0, format="csr")
    walk, x = operator(MIXED, "rw"), torch.from_numpy(words.toarray())
    sparse = SparseMatrix.from_scipy(words, dtype=torch.float64)
    pairs = zip(krylov_blocks(walk, sparse, 4), krylov_blocks(walk, x, 4), strict=True)
    assert all(torch.equal(found, expected) for found, expected in pairs)


# KrylovConv


def test_a_layer_by_hand() -> None:
    conv = KrylovConv(1, 1, order=3)
    with torch.no_grad():
        conv.weight.copy_(torch.tensor([[1.0], [10.0], [100.0]]))
        conv.bias.fill_(0.5)
    found = conv(corner(3), operator(toy.path(3), "affinity"))
    assert found.ravel().tolist() == [211.5, 210.5, 100.5]


def test_each_block_meets_its_own_rows_of_the_weight() -> None:
    conv = KrylovConv(2, 2, order=2, bias=False)
    with torch.no_grad():
        conv.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]))
    x = torch.tensor([[1.0, 5.0], [2.0, 7.0]])
    # The first column is X's first, the second that of LX's second: both nodes have the mean.
    assert conv(x, operator(toy.path(2), "rw")).tolist() == [[1, 6], [2, 6]]


def test_order_one_is_a_linear_layer() -> None:
    conv, x = KrylovConv(3, 2, order=1), random(MIXED.n, 3)
    expected = nn.functional.linear(x, conv.weight.T, conv.bias)
    assert close(conv(x, operator(MIXED)), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_order_two_without_its_first_block_is_a_gcn_layer(weighted: bool) -> None:
    edge_index, edge_weight = directed(8, 20, seed=0)
    weight = edge_weight if weighted else None
    gcn, conv, x = GCNConv(3, 2), KrylovConv(3, 2, order=2), random(8, 3)
    with torch.no_grad():
        gcn.bias.copy_(random(2, seed=1))
        conv.weight.copy_(torch.cat([torch.zeros(3, 2), gcn.lin.weight.T]))
        conv.bias.copy_(gcn.bias)
    assert close(conv(x, edge_index, weight), gcn(x, edge_index, weight))


@pytest.mark.parametrize("order", [0, -1])
def test_orders_below_one_are_refused(order: int) -> None:
    with pytest.raises(ValueError, match=f"order must be at least 1, not {order}"):
        KrylovConv(2, 2, order=order)
    with pytest.raises(ValueError, match=f"order must be at least 1, not {order}"):
        TruncatedKrylov(2, 2, 2, order=order)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("bias", [True, False])
def test_the_layer_is_its_formula(name: str, order: int, bias: bool) -> None:
    conv, x, matrix = KrylovConv(3, 2, order, bias=bias), random(MIXED.n, 3), dense(MIXED, name)
    blocks = [torch.linalg.matrix_power(matrix, k) @ x for k in range(order)]
    expected = torch.cat(blocks, dim=1) @ conv.weight + (conv.bias if bias else 0)
    assert (conv.bias is not None) == bias
    assert close(conv(x, operator(MIXED, name)), expected)


@pytest.mark.parametrize("name", OPERATORS)
def test_derivatives_of_the_layer(name: str) -> None:
    conv, x = KrylovConv(2, 2, order=3), random(MIXED.n, 2).requires_grad_()
    found = operator(MIXED, name)

    def run(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        out: Tensor = functional_call(conv, {"weight": weight, "bias": bias}, (x, found))
        return out

    assert gradcheck(run, (x, conv.weight, conv.bias))


@pytest.mark.parametrize("name", OPERATORS)
def test_an_edge_index_and_an_operator_agree(name: str) -> None:
    conv, x = KrylovConv(2, 3, order=4, operator=name), random(6, 2)
    expected = conv(x, operator(WEIGHTED, name))
    assert close(conv(x, *edge_index_of(WEIGHTED)), expected)
    unweighted = Graph.from_edges([[0, 1, 2, 0], [1, 2, 3, 3]], 6)
    pairs, _ = edge_index_of(unweighted)
    assert close(conv(x, pairs), conv(x, operator(unweighted, name)))
    assert not close(conv(x, pairs), expected, atol=1e-3)


def test_the_two_operators_differ() -> None:
    x, (pairs, weight) = random(MIXED.n, 2), edge_index_of(MIXED)
    sym, rw = (KrylovConv(2, 3, order=2, operator=name) for name in OPERATORS)
    rw.load_state_dict(sym.state_dict())
    assert not close(sym(x, pairs, weight), rw(x, pairs, weight), atol=1e-3)


def test_some_rows_of_the_blocks_give_those_rows_of_the_output() -> None:
    conv, x, found = KrylovConv(3, 2, order=4), random(MIXED.n, 3), operator(MIXED, "rw")
    rows = torch.tensor([8, 0, 3, 12])
    blocks = [block[rows] for block in krylov_blocks(found, x, 4)]
    assert close(conv.combine(blocks), conv(x, found)[rows])


def test_too_few_or_too_many_blocks_are_refused() -> None:
    conv = KrylovConv(3, 2, order=2)
    for count in (0, 1, 3):
        with pytest.raises((ValueError, RuntimeError)):
            conv.combine([random(4, 3)] * count)


@pytest.mark.parametrize("name", OPERATORS)
def test_sparse_and_dense_features_agree(name: str) -> None:
    words = sp.random_array((MIXED.n, 5), density=0.3, rng=1, format="csr")
    conv, found = KrylovConv(5, 2, order=3), operator(MIXED, name)
    sparse = SparseMatrix.from_scipy(words, dtype=torch.float64)
    assert close(conv(sparse, found), conv(torch.from_numpy(words.toarray()), found))


@pytest.mark.parametrize("name", OPERATORS)
def test_permuted_nodes_give_a_permuted_output(name: str) -> None:
    n = 9
    pairs, weight = directed(n, 25, seed=3)
    shuffled = torch.randperm(25, generator=seeded(1))
    new_name = torch.randperm(n, generator=seeded(2))
    conv, x = KrylovConv(3, 2, order=4, operator=name), random(n, 3)
    permuted = torch.empty_like(x)
    permuted[new_name] = x
    found = conv(permuted, new_name[pairs][:, shuffled], weight[shuffled])
    assert close(found[new_name], conv(x, pairs, weight))
    assert not close(found, conv(x, pairs, weight), atol=1e-3)


@pytest.mark.parametrize("name", OPERATORS)
def test_components_do_not_see_each_other(name: str) -> None:
    parts = [toy.two_cliques(4), toy.isolated(1), toy.star(4)]
    conv, x = KrylovConv(3, 2, order=5), random(MIXED.n, 3)
    rows = x.split([part.n for part in parts])
    apart = [conv(r, operator(part, name)) for r, part in zip(rows, parts, strict=True)]
    assert close(conv(x, operator(MIXED, name)), torch.cat(apart))


@pytest.mark.parametrize("name", OPERATORS)
def test_a_node_on_its_own_has_the_same_block_again_and_again(name: str) -> None:
    conv, x = KrylovConv(3, 2, order=4), random(MIXED.n, 3)
    expected = x[8] @ conv.weight.view(4, 3, 2).sum(dim=0) + conv.bias
    assert close(conv(x, operator(MIXED, name))[8], expected)


def test_weights_and_biases_lie_within_one_over_root_out() -> None:
    conv = KrylovConv(500, 16, order=3)
    for drawn in (conv.weight, conv.bias):
        assert 0.15 < drawn.abs().max() <= 0.25
    assert conv.weight.abs().max() > 0.2499
    assert conv.weight.square().mean().item() == pytest.approx(0.25**2 / 3, rel=0.05)
    wide = KrylovConv(1, 10_000, order=1)
    assert 0.0099 < wide.bias.abs().max() <= 0.01


def test_the_same_seed_gives_the_same_weights() -> None:
    first, again, other = (KrylovConv(3, 2, order=2) for _ in range(3))
    for conv, seed in ((first, 4), (again, 4), (other, 5)):
        conv.reset_parameters(seeded(seed))
    assert torch.equal(first.weight, again.weight)
    assert torch.equal(first.bias, again.bias)
    assert not torch.equal(first.weight, other.weight)
    assert not torch.equal(first.bias, other.bias)


def test_print_shows_the_sizes() -> None:
    assert str(KrylovConv(3, 2, order=5)) == "KrylovConv(3, 2, order=5)"


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
    h = net.hidden(net.first.combine(blocks), 0, Masks())
    assert close(net.head(h), net(x, found)[rows])


@pytest.mark.parametrize("classifier", [False, True])
def test_a_head_that_diffuses_takes_an_operator_or_rows_of_it(classifier: bool) -> None:
    net = TruncatedKrylov(3, 4, 2, 2, p=1, classifier=classifier)
    x, found, rows = random(MIXED.n, 3), operator(MIXED), torch.tensor([8, 0, 11])
    h = net.hidden(net.first(x, found), 0, Masks())
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
