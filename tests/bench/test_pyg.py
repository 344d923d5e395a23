from __future__ import annotations

from dataclasses import replace

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional as F

from kryograph.bench.pyg import GCNSnowball, Idiom, Setting, SignMLP, sign_blocks
from kryograph.graph import Graph
from kryograph.nn import Snowball, TruncatedKrylov, krylov_blocks
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from tests.layers import MIXED, WEIGHTED, seeded

FEATURES, HIDDEN, CLASSES = 6, 5, 3
GRAPHS = pytest.mark.parametrize("graph", [MIXED, WEIGHTED], ids=["mixed", "weighted"])


def with_words(graph: Graph) -> Graph:
    """The graph with sparse features."""
    words = sp.random_array((graph.n, FEATURES), density=0.4, rng=0, format="csr")
    return replace(graph, features=words)


def labels_of(graph: Graph) -> Tensor:
    return torch.arange(graph.n) % CLASSES


def make(
    kind: type[SignMLP] | type[GCNSnowball], graph: Graph, training: list[int], setting: Setting
) -> Idiom:
    scored = torch.tensor([5, 0, 3])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return kind(with_words(graph), labels_of(graph), torch.tensor(training), scored, setting)


def features_of(graph: Graph) -> SparseMatrix:
    return SparseMatrix.from_scipy(with_words(graph).features)


def krylov_like(idiom: SignMLP, setting: Setting) -> TruncatedKrylov:
    """Our network with the idiom's weights."""
    net = TruncatedKrylov(
        FEATURES, HIDDEN, CLASSES, setting.order, activation=setting.activation, dropout=0.5
    )
    with torch.no_grad():
        for ours, theirs in ((net.first, idiom.model.first), (net.output, idiom.model.last)):
            ours.weight.copy_(theirs.weight.T)
            ours.bias.copy_(theirs.bias)
    return net.eval()


def snowball_like(idiom: GCNSnowball, setting: Setting) -> Snowball:
    """Our network with the idiom's weights, biases not zero."""
    net = Snowball(
        FEATURES, HIDDEN, CLASSES, setting.layers, activation=setting.activation, dropout=0.5
    )
    with torch.no_grad():
        for ours, theirs in zip([*net.convs, net.output], idiom.model.convs, strict=True):
            theirs.bias.uniform_(-1, 1, generator=seeded(0))
            ours.weight.copy_(theirs.lin.weight.T)
            ours.bias.copy_(theirs.bias)
    return net.eval()


# The same function


@GRAPHS
@pytest.mark.parametrize("order", [1, 2, 5])
def test_the_blocks_are_those_of_the_papers_operator(graph: Graph, order: int) -> None:
    expected = torch.cat(list(krylov_blocks(operator(graph), features_of(graph), order)), dim=1)
    torch.testing.assert_close(sign_blocks(with_words(graph), order), expected, rtol=0, atol=1e-6)


@GRAPHS
@pytest.mark.parametrize("order", [1, 4])
@pytest.mark.parametrize("activation", ["tanh", "identity"])
def test_sign_and_an_mlp_are_truncated_krylov(graph: Graph, order: int, activation: str) -> None:
    setting = Setting(HIDDEN, order=order, activation=activation, dropout=0.5)
    idiom = make(SignMLP, graph, [0, 1, 2], setting)
    idiom.step()
    logits = krylov_like(idiom, setting)(features_of(graph), operator(graph))
    torch.testing.assert_close(idiom.score(), logits[[5, 0, 3]], rtol=0, atol=1e-5)


@GRAPHS
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("activation", ["tanh", "identity"])
def test_gcn_layers_on_all_before_are_snowball(graph: Graph, layers: int, activation: str) -> None:
    setting = Setting(HIDDEN, layers=layers, activation=activation, dropout=0.5)
    idiom = make(GCNSnowball, graph, [0, 1, 2], setting)
    idiom.step()
    logits = snowball_like(idiom, setting)(features_of(graph), operator(graph))
    torch.testing.assert_close(idiom.score(), logits[[5, 0, 3]], rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", [SignMLP, GCNSnowball])
def test_the_gradients_are_those_of_our_network(kind: type[SignMLP] | type[GCNSnowball]) -> None:
    # Not in order, and of two classes: logits and labels must be those of the same nodes.
    setting, training = Setting(HIDDEN, order=3, lr=0.0), [4, 1, 0]
    idiom = make(kind, MIXED, training, setting)
    like = krylov_like if kind is SignMLP else snowball_like
    net = like(idiom, setting).train()
    net.dropout = 0.0
    logits = net(features_of(MIXED), operator(MIXED))
    F.cross_entropy(logits[training], labels_of(MIXED)[training]).backward()
    idiom.step()
    theirs = {tuple(p.shape): p.grad for p in idiom.model.parameters()}
    ours = [p.grad.T if p.ndim == 2 else p.grad for p in net.parameters()]
    assert {tuple(gradient.shape) for gradient in ours} == set(theirs)
    for gradient in ours:
        torch.testing.assert_close(theirs[tuple(gradient.shape)], gradient, rtol=0, atol=1e-5)


# Training


@pytest.mark.parametrize("kind", [SignMLP, GCNSnowball])
@pytest.mark.parametrize("optimizer", ["rmsprop", "adam"])
def test_steps_learn_the_labels(kind: type[SignMLP] | type[GCNSnowball], optimizer: str) -> None:
    training = [0, 3, 5]
    setting = Setting(32, layers=1, order=3, lr=0.01, optimizer=optimizer)
    idiom = make(kind, MIXED, training, setting)
    targets = labels_of(MIXED)[[5, 0, 3]]
    before = F.cross_entropy(idiom.score(), targets)
    for _ in range(60):
        idiom.step()
    after = idiom.score()
    assert not after.requires_grad
    assert F.cross_entropy(after, targets) < 0.5 * before


@pytest.mark.parametrize("kind", [SignMLP, GCNSnowball])
def test_dropout_in_steps_and_not_in_scores(kind: type[SignMLP] | type[GCNSnowball]) -> None:
    idiom = make(kind, MIXED, [0, 1, 2], Setting(HIDDEN, dropout=0.5))
    assert torch.equal(idiom.score(), idiom.score())
    idiom.model.train()
    assert not torch.equal(idiom.training_logits(), idiom.training_logits())


@pytest.mark.parametrize(
    ("optimizer", "torchs"), [("rmsprop", torch.optim.RMSprop), ("adam", torch.optim.Adam)]
)
def test_the_optimiser_is_torchs(optimizer: str, torchs: type[torch.optim.Optimizer]) -> None:
    setting = Setting(HIDDEN, lr=0.25, weight_decay=0.125, optimizer=optimizer)
    found = make(SignMLP, MIXED, [0], setting).optimizer
    assert type(found) is torchs
    assert found.param_groups[0]["lr"] == 0.25
    assert found.param_groups[0]["weight_decay"] == 0.125


def test_sign_has_one_hidden_layer() -> None:
    with pytest.raises(ValueError, match="one hidden layer, not 2"):
        make(SignMLP, MIXED, [0], Setting(HIDDEN, layers=2))
