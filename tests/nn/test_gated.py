from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch
from torch import nn
from torch_geometric.nn import GatedGraphConv

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.nn.gated import Gated, LinearMessage, PairMessage
from kryograph.operators import Operator, operator
from kryograph.sparse import SparseMatrix
from tests.layers import MIXED, OPERATORS, FixedMasks, close, edge_index_of, random, seeded

pytestmark = pytest.mark.usefixtures("double")


@pytest.mark.parametrize("aggregate", ["sum", "mean"])
@pytest.mark.parametrize("steps", [1, 3])
def test_linear_messages_are_pytorch_geometrics(steps: int, aggregate: str) -> None:
    adjacency = (MIXED.adjacency != 0).astype(float)
    edges = edge_index_of(MIXED)[0]
    if aggregate == "mean":
        adjacency = operator(MIXED, "rw").matrix
        edges = operator(MIXED, "rw").edge_index()
    L = Operator(aggregate, sp.csr_array(adjacency), symmetric=aggregate == "sum")
    net = Gated(3, 4, 2, steps)
    theirs = GatedGraphConv(4, steps, aggr=aggregate)
    with torch.no_grad():
        theirs.weight.copy_(net.message.send.weight.expand(steps, 4, 4))
        theirs.rnn.load_state_dict(net.gru.state_dict())
    x = random(MIXED.n, 3)
    assert close(net(x, L), net.outward(theirs(net.inward(x), edges)), 1e-12)


def test_a_pair_message_is_an_mlp_on_both_states() -> None:
    message, h = PairMessage(3), random(MIXED.n, 3)
    with torch.no_grad():
        for number, weight in enumerate(message.parameters()):
            weight.copy_(random(*weight.shape, seed=number + 1))
    mlp = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3))
    with torch.no_grad():
        mlp[0].weight.copy_(torch.cat([message.receive.weight, message.send.weight]).T)
        mlp[0].bias.copy_(message.receive.bias)
        mlp[2].weight.copy_(message.outer.weight.T)
        mlp[2].bias.copy_(message.constant.weight[0])
    for name in OPERATORS:
        L = operator(MIXED, name)
        expected = torch.zeros(MIXED.n, 3)
        for i, j in zip(*L.matrix.nonzero(), strict=True):
            expected[i] += L.matrix[i, j] * mlp(torch.cat([h[i], h[j]]))
        assert close(message(h, L), expected, 1e-12)


def test_a_node_hears_as_far_as_there_are_steps() -> None:
    x = torch.zeros(6, 1)
    changed = x.clone()
    changed[0] = 1.0
    L = operator(toy.path(6))
    for message in ("linear", "mlp", "pair"):
        net = Gated(1, 16, 2, 3, message=message)
        net.reset_parameters(seeded(1))
        moved = (net(x, L) - net(changed, L)).abs().max(dim=1).values > 0
        assert moved.tolist() == [True] * 4 + [False] * 2


@pytest.mark.parametrize("message", ["linear", "mlp", "pair"])
def test_sparse_features_and_a_seed(message: str) -> None:
    x, L = random(MIXED.n, 3), operator(MIXED)
    sparse = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=torch.float64)
    nets = [Gated(3, 4, 2, message=message, dropout=0.5) for _ in range(2)]
    for net in nets:
        net.reset_parameters(seeded(4))
        net.eval()
    assert close(nets[0](x, L), nets[1](sparse, L))


def test_dropout_acts_on_features_and_on_the_last_state() -> None:
    masks = FixedMasks(MIXED.n)
    net, x = Gated(3, 4, 2, 3, dropout=0.5), random(MIXED.n, 3)
    net(x, operator(MIXED), masks=masks)
    assert [(layer, shape) for layer, shape, _ in masks.asked] == [
        (0, (MIXED.n, 3)),
        (1, (MIXED.n, 4)),
    ]


def test_features_may_have_a_rate_of_their_own() -> None:
    masks = FixedMasks(MIXED.n)
    net, x = Gated(3, 4, 2, dropout=0.5, feature_dropout=0.0), random(MIXED.n, 3)
    net(x, operator(MIXED), masks=masks)
    assert [layer for layer, _, _ in masks.asked] == [1]


@pytest.mark.parametrize("rate", [1.0, 0.01])
@pytest.mark.parametrize("message", ["linear", "mlp", "pair"])
def test_a_step_may_start_as_a_diffusion(message: str, rate: float) -> None:
    options = {"message": message, "start": "diffusion", "step_rate": rate}
    net, h = Gated(3, 4, 2, 1, **options), random(MIXED.n, 4)
    net.reset_parameters(seeded(3))
    to_gates, of_state = (w[4:8] * rate for w in (net.gru.weight_ih, net.gru.weight_hh))
    for name in OPERATORS:
        L = operator(MIXED, name)
        sent = L @ h
        assert close(net.message(h, L), sent, 1e-12)
        keep = torch.sigmoid(sent @ to_gates.T + h @ of_state.T - 2)
        assert keep.std() > 0.01
        assert close(net.step(h, [L]), keep * h + (1 - keep) * torch.tanh(sent), 1e-12)


@pytest.mark.parametrize("start", ["random", "diffusion"])
@pytest.mark.parametrize("message", ["linear", "mlp", "pair"])
def test_steps_that_learn_slowly_start_where_others_do(message: str, start: str) -> None:
    x, L = random(MIXED.n, 3), operator(MIXED)
    slow, fast = (Gated(3, 4, 2, message=message, start=start, step_rate=r) for r in (0.01, 1.0))
    for net in (slow, fast):
        net.reset_parameters(seeded(5))
    before = fast(x, L).detach()
    assert close(slow(x, L), before, 1e-12)
    # Signs of gradients, which are the first step of Adam: the same move, a hundredth as far.
    moves = {}
    for net in (slow, fast):
        net(x, L).square().sum().backward()
        weight, rate = net.gru.weight_ih, net.step_rate
        was = rate * weight.detach().clone()
        with torch.no_grad():
            weight -= 1e-3 * weight.grad.sign()
        moves[rate] = rate * weight.detach() - was
    assert close(100 * moves[0.01], moves[1.0], 1e-10)


def test_the_edges_of_an_operator_are_made_once() -> None:
    L, message = operator(MIXED), PairMessage(3)
    message(random(MIXED.n, 3), L)
    edges, values = L.edge_index(), L.tensor(torch.float64)
    message(random(MIXED.n, 3), L)
    assert L.edge_index() is edges
    assert L.tensor(torch.float64) is values


def test_a_linear_message_by_hand() -> None:
    message = LinearMessage(1)
    with torch.no_grad():
        message.send.weight.fill_(10.0)
    found = message(torch.tensor([[1.0], [3.0]]), operator(toy.path(2), "rw"))
    assert found.tolist() == [[20.0], [20.0]]


def test_an_unknown_message_is_refused() -> None:
    with pytest.raises(UsageError, match="letter"):
        Gated(1, 1, 1, message="letter")


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(UsageError, match="finish"):
        Gated(1, 1, 1, start="finish")
