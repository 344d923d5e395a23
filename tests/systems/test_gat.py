from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.nn import GATConv as Theirs

from kryograph.data import toy
from kryograph.nn.functional import Masks
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems import system
from kryograph.systems.gat import GAT, GATConv, GATSystem
from tests.layers import MIXED, close, edge_index_of, random, seeded


def network(**changes: object) -> GAT:
    chosen = system("gat", changes)
    assert isinstance(chosen, GATSystem)
    found = chosen.network(10, 3)
    assert isinstance(found, GAT)
    return found


def test_the_default_has_the_originals_widths() -> None:
    first, last = network().convs
    assert tuple(first.weight.shape) == (10, 8 * 8)
    assert tuple(last.weight.shape) == (64, 3)


def test_output_heads_are_averaged() -> None:
    last = network(output_heads=4).convs[-1]
    assert tuple(last.weight.shape) == (64, 4 * 3)
    assert tuple(last.bias.shape) == (3,)


def test_each_rate_reaches_its_place() -> None:
    net = network(dropout=0.1, attention_dropout=0.2, drop_projected=True, layers=2)
    assert net.dropout == 0.1
    assert [conv.rate for conv in net.convs] == [0.2] * 3
    assert [conv.projected_rate for conv in net.convs] == [0.1] * 3
    assert [conv.projected_rate for conv in network(drop_projected=False).convs] == [0.0] * 2


@pytest.mark.parametrize("which", ["sym", "rw", "laplacian"])
def test_every_node_sees_itself_whichever_the_operator(which: str) -> None:
    chosen = system("gat", operator=which)
    assert isinstance(chosen, GATSystem)
    pairs = chosen.diffusion(toy.disjoint(toy.path(2), toy.isolated(1))).edge_index()
    assert sorted(map(tuple, pairs.T.tolist())) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)]


# The network


class Asked(Masks):
    """Masks that remember what they were asked."""

    def __init__(self) -> None:
        super().__init__(seeded(0))
        self.asked: list[tuple[int, tuple[int, ...], float]] = []

    def keep(self, h: Tensor, rate: float, layer: int, nodes: Tensor | None) -> Tensor:
        self.asked.append((layer, tuple(h.shape), rate))
        return super().keep(h, rate, layer, nodes)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("concat", [True, False])
@pytest.mark.parametrize("heads", [1, 3])
def test_a_layer_is_pytorch_geometrics(concat: bool, heads: int) -> None:
    ours, theirs = GATConv(5, 4, heads, concat=concat), Theirs(5, 4, heads, concat=concat)
    torch.nn.init.normal_(ours.bias)
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.weight.T)
        theirs.att_src.copy_(ours.source)
        theirs.att_dst.copy_(ours.target)
        theirs.bias.copy_(ours.bias)
    x = random(MIXED.n, 5)
    L = operator(MIXED, "sym")
    sparse = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=x.dtype)
    expected = theirs(x, edge_index_of(MIXED)[0])
    for given in (x, sparse):
        assert close(ours(given, L, Masks()), expected, atol=1e-10)
    weights = random(*expected.shape, seed=1)
    (ours(sparse, L, Masks()) * weights).sum().backward()
    (expected * weights).sum().backward()
    assert close(ours.weight.grad, theirs.lin.weight.grad.T, atol=1e-10)
    assert close(ours.source.grad, theirs.att_src.grad[0], atol=1e-10)
    assert close(ours.target.grad, theirs.att_dst.grad[0], atol=1e-10)


@pytest.mark.usefixtures("double")
def test_without_a_preference_attention_is_a_mean() -> None:
    conv, x = GATConv(3, 2, 2), random(13, 3)
    torch.nn.init.zeros_(conv.source)
    torch.nn.init.zeros_(conv.target)
    mean = operator(MIXED, "rw") @ (x @ conv.weight)
    assert close(conv(x, operator(MIXED, "sym"), Masks()), mean)


@pytest.mark.usefixtures("double")
def test_a_strong_preference_takes_all_and_does_not_overflow() -> None:
    # Node 1 of a path sees 0, 1 and 2; the score grows with the sender's feature, a thousandfold.
    conv = GATConv(1, 1, 1)
    for parameter, value in ((conv.weight, 1.0), (conv.source, 1e3), (conv.target, 0.0)):
        torch.nn.init.constant_(parameter, value)
    x = torch.tensor([[1.0], [2.0], [3.0]])
    out = conv(x, operator(toy.path(3), "sym"), Masks())
    assert close(out, torch.tensor([[2.0], [3.0], [3.0]]))


@pytest.mark.usefixtures("double")
def test_the_operators_have_the_same_pattern_and_so_the_same_logits() -> None:
    net, x = GAT(3, 2, 4).eval(), random(13, 3)
    assert torch.equal(net(x, operator(MIXED, "sym")), net(x, operator(MIXED, "rw")))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("drop_projected", [False, True])
def test_every_mask_comes_from_masks_and_has_a_number_of_its_own(drop_projected: bool) -> None:
    net = GAT(
        *(3, 2, 4), heads=5, dropout=0.5, attention_dropout=0.25, drop_projected=drop_projected
    )
    masks, L = Asked(), operator(MIXED, "sym")
    state = torch.get_rng_state()
    net(random(13, 3), L, masks=masks)
    assert torch.equal(state, torch.get_rng_state())
    entries = L.matrix.nnz
    inputs = [(0, (13, 3), 0.5), (3, (13, 10), 0.5)]
    alphas = [(1, (entries, 5), 0.25), (4, (entries, 1), 0.25)]
    projected = [(2, (13, 10), 0.5), (5, (13, 4), 0.5)] if drop_projected else []
    assert sorted(masks.asked) == sorted(inputs + alphas + projected)


@pytest.mark.usefixtures("double")
def test_dropped_attention_is_not_shared_among_the_rest() -> None:
    # Each node is alone: α = 1, and what is kept of it is scaled to 2.
    conv = GATConv(1, 1, 1, rate=0.5)
    torch.nn.init.ones_(conv.weight)
    out = conv(torch.ones(50, 1), operator(toy.isolated(50), "sym"), Masks(seeded(0)))
    assert set(out.ravel().tolist()) == {0.0, 2.0}
