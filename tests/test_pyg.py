from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, Sequential

from kryograph.data import toy
from kryograph.graph import Graph
from kryograph.nn import KrylovConv, Snowball, SnowballConv, TruncatedKrylov
from kryograph.operators import operator


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed))


def features_of(graph: Graph) -> np.ndarray:
    features = graph.features
    return features.toarray() if isinstance(features, sp.csr_array) else features.copy()


# Layers among PyTorch Geometric's


def cliques() -> Data:
    """Two cliques of six nodes with noisy features; the clique is the class."""
    data = toy.two_cliques(6).to_pyg()
    data.x = random(12, 4, seed=3)
    data.y = torch.tensor([0] * 6 + [1] * 6)
    return data


def losses(run: Callable[[], Tensor], model: nn.Module, data: Data, steps: int) -> list[float]:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(run(), data.y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def mixed_model(kind: str) -> nn.Module:
    edges = "x, edge_index, edge_weight"
    if kind == "krylov then gcn":
        steps = [
            (KrylovConv(4, 8, order=3), f"{edges} -> x"),
            nn.Tanh(),
            (GCNConv(8, 2), f"{edges} -> x"),
        ]
    elif kind == "gcn then krylov":
        steps = [
            (GCNConv(4, 8), f"{edges} -> x"),
            nn.Tanh(),
            (KrylovConv(8, 2, order=3, operator="rw"), f"{edges} -> x"),
        ]
    else:
        steps = [
            (SnowballConv(4, 8), f"{edges} -> h"),
            (nn.Tanh(), "h -> h"),
            (GCNConv(8, 8), "h, edge_index, edge_weight -> g"),
            (lambda *blocks: list(blocks), "x, h, g -> blocks"),
            (SnowballConv(20, 2), "blocks, edge_index, edge_weight -> x"),
        ]
    return Sequential("x, edge_index, edge_weight", steps)


@pytest.mark.parametrize("kind", ["krylov then gcn", "gcn then krylov", "snowball around gcn"])
def test_layers_train_among_pygs(kind: str) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = mixed_model(kind)
    data = cliques()
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    fallen = losses(lambda: model(data.x, data.edge_index, data.edge_weight), model, data, 60)
    assert fallen[-1] < 0.2 * fallen[0]
    for name, value in model.named_parameters():
        assert not torch.equal(before[name], value), name
    with torch.no_grad():
        guess = model(data.x, data.edge_index, data.edge_weight).argmax(dim=1)
    assert torch.equal(guess, data.y)


def test_a_mixed_model_is_its_formula() -> None:
    data = cliques()
    krylov, gcn = KrylovConv(4, 3, order=2).double(), GCNConv(3, 2).double()
    edges = "x, edge_index, edge_weight"
    model = Sequential(edges, [(krylov, f"{edges} -> x"), (gcn, f"{edges} -> x")])
    matrix = torch.from_numpy(operator(toy.two_cliques(6)).matrix.toarray())
    x = data.x.double()
    h = torch.cat([x, matrix @ x], dim=1) @ krylov.weight + krylov.bias
    expected = matrix @ h @ gcn.lin.weight.T + gcn.bias
    found = model(x, data.edge_index, data.edge_weight.double())
    assert torch.allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "model",
    [Snowball(4, 8, 2, 3), TruncatedKrylov(4, 8, 2, 3, layers=2, classifier=True, operator="rw")],
    ids=["snowball", "truncated krylov"],
)
def test_networks_train_on_a_data_object(model: nn.Module) -> None:
    model.reset_parameters(seeded(0))
    data = cliques()
    fallen = losses(lambda: model(data.x, data.edge_index, data.edge_weight), model, data, 60)
    assert fallen[-1] < 0.2 * fallen[0]


# Graphs, there and back


def weighted_graph() -> Graph:
    """Six nodes, one of them on its own; all numbers are exact in float32."""
    rows = np.random.default_rng(0).integers(-8, 8, (6, 3)) / 4
    return Graph.from_edges(
        [[0, 1, 2, 0, 3], [1, 2, 3, 3, 4]], 6, weights=[0.5, 2, 1, 3, 0.25], features=rows
    )


@pytest.mark.parametrize(
    "graph",
    [
        weighted_graph(),
        toy.star(5),
        toy.isolated(3),
        toy.isolated(1),
        toy.disjoint(toy.path(3), toy.isolated(1), toy.cycle(4)),
        Graph.from_edges([[0], [1]], 2, features=sp.csr_array([[0.0, 2.0], [0.5, 0.0]])),
    ],
    ids=["weighted", "star", "isolated", "one node", "disjoint", "sparse"],
)
def test_a_graph_comes_back_from_pyg(graph: Graph) -> None:
    back = Graph.from_pyg(graph.to_pyg())
    np.testing.assert_array_equal(back.adjacency.toarray(), graph.adjacency.toarray())
    np.testing.assert_array_equal(features_of(back), features_of(graph))
    assert (back.n, back.edges) == (graph.n, graph.edges)
    assert str(back.cleaning) == ""


def test_what_pyg_sees() -> None:
    data = Graph.from_edges([[1], [2]], 3, weights=[2.5], features=[[1.0], [2.0], [3.0]]).to_pyg()
    assert data.edge_index.tolist() == [[1, 2], [2, 1]]
    assert data.edge_weight.tolist() == [2.5, 2.5]
    assert data.x.tolist() == [[1], [2], [3]]
    assert (data.x.dtype, data.edge_weight.dtype) == (torch.float32, torch.float32)
    assert data.num_nodes == 3
    assert data.is_undirected()
    assert data.has_isolated_nodes()
    assert not data.has_self_loops()
    data.validate(raise_on_error=True)


def test_what_pyg_was_given_is_a_copy() -> None:
    graph = weighted_graph()
    before = graph.adjacency.toarray(), features_of(graph)
    data = graph.to_pyg()
    data.x.zero_()
    data.edge_weight.zero_()
    np.testing.assert_array_equal(graph.adjacency.toarray(), before[0])
    np.testing.assert_array_equal(features_of(graph), before[1])


def test_a_data_object_stays_writable_and_apart() -> None:
    data = Data(
        x=torch.ones(3, 2), edge_index=torch.tensor([[0], [1]]), edge_weight=torch.tensor([2.0])
    )
    graph = Graph.from_pyg(data)
    data.x.zero_()
    data.edge_weight.zero_()
    np.testing.assert_array_equal(features_of(graph), np.ones((3, 2)))
    assert graph.adjacency[0, 1] == 2


def test_a_directed_data_object_is_made_two_way() -> None:
    data = Data(
        edge_index=torch.tensor([[0, 0, 1, 2], [1, 1, 0, 2]]),
        edge_weight=torch.tensor([1.0, 4.0, 2.0, 9.0]),
        num_nodes=3,
    )
    graph = Graph.from_pyg(data)
    assert graph.adjacency.toarray().tolist() == [[0, 4, 0], [4, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(features_of(graph), np.eye(3))
    assert str(graph.cleaning) == "1 self-loop removed, 1 repeated edge merged"


def test_a_data_object_without_weights_has_weights_of_one() -> None:
    data = Data(x=torch.zeros(4, 1), edge_index=torch.tensor([[0, 3], [1, 0]]))
    expected = np.zeros((4, 4))
    expected[0, [1, 3]] = expected[[1, 3], 0] = 1
    np.testing.assert_array_equal(Graph.from_pyg(data).adjacency.toarray(), expected)


# The same numbers


@pytest.mark.parametrize("graph", [weighted_graph(), toy.star(6), toy.two_cliques(4)])
def test_gcn_on_a_graph_is_the_symmetric_operator(graph: Graph) -> None:
    data = graph.to_pyg()
    gcn = GCNConv(data.num_features, 2).double()
    found = gcn(data.x.double(), data.edge_index, data.edge_weight.double())
    weight = gcn.lin.weight.T
    expected = operator(graph, "sym") @ (torch.from_numpy(features_of(graph)) @ weight)
    assert torch.allclose(found, expected + gcn.bias, rtol=0, atol=1e-13)
    assert not torch.allclose(found, operator(graph, "rw") @ (data.x.double() @ weight), atol=1e-3)


def test_layers_see_the_same_graph_either_way() -> None:
    graph = weighted_graph()
    data = graph.to_pyg()
    for name in ("sym", "rw"):
        conv = KrylovConv(3, 2, order=4, operator=name).double()
        found = conv(data.x.double(), data.edge_index, data.edge_weight)
        expected = conv(torch.from_numpy(features_of(graph)), operator(graph, name))
        assert torch.allclose(found, expected, rtol=0, atol=1e-13)
