from __future__ import annotations

import numpy as np
import pytest
import torch

from kryograph.data import synthetic_citations, toy
from kryograph.graph import Graph, Split, Task
from kryograph.nn.gated import Gated
from kryograph.operators import operator
from kryograph.systems import system
from kryograph.systems.gpnn import (
    GPNNSystem,
    Partition,
    Partitioned,
    flood_fill,
    hubs,
    partitioned,
)
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule
from tests.layers import MIXED, OPERATORS, close, edge_index_of, random, seeded

pytestmark = pytest.mark.usefixtures("double")

SHORT = Conditions(rule=StopRule(max_epochs=10))

STARS = Graph.from_edges([[0, 0, 0, 1, 4, 5, 5, 5], [1, 2, 3, 4, 5, 6, 7, 8]], 10)
"""Centres 0 and 5 with three nodes each, joined by the path 1, 4; node 9 on its own."""


def test_hubs_are_the_centres_of_stars() -> None:
    # Centre 5 has four neighbours, centre 0 three.
    assert hubs(STARS.adjacency, 2).tolist() == [5, 0]


def test_of_equal_degrees_the_one_with_more_walks_is_first() -> None:
    # All inner nodes of a path have two neighbours; the middle one has the most walks.
    assert hubs(toy.path(5).adjacency, 1).tolist() == [2]


def test_every_node_goes_to_the_nearest_seed() -> None:
    found = flood_fill(STARS.adjacency, np.array([5, 0]))
    assert found.tolist() == [1, 1, 1, 1, 0, 0, 0, 0, 0, -1]


def test_at_equal_distance_more_edges_win_then_the_earlier_seed() -> None:
    assert flood_fill(toy.path(3).adjacency, np.array([2, 0])).tolist() == [1, 0, 0]
    # Node 3 has two neighbours in the cluster of node 0, one in that of node 4.
    graph = Graph.from_edges([[0, 0, 1, 2, 3, 4], [1, 2, 3, 3, 5, 5]], 6)
    assert flood_fill(graph.adjacency, np.array([4, 0])).tolist() == [1, 1, 1, 1, 0, 0]


def test_the_clusters_follow_the_nodes() -> None:
    order = np.random.default_rng(0).permutation(STARS.n)
    moved = STARS.adjacency[order][:, order]
    found = flood_fill(moved, hubs(moved, 2))
    assert found.tolist() == flood_fill(STARS.adjacency, np.array([5, 0]))[order].tolist()


@pytest.mark.parametrize("name", OPERATORS)
def test_the_two_parts_add_up(name: str) -> None:
    L = operator(STARS, name)
    both = partitioned(L, 2)
    assert abs(both.inside.matrix + both.across.matrix - L.matrix).max() == 0
    assert sorted(zip(*both.across.matrix.nonzero(), strict=True)) == [(1, 4), (4, 1)]
    assert (both.inside.matrix.diagonal() > 0).all()


def test_means_are_of_each_part_by_itself() -> None:
    both = partitioned(operator(STARS, "rw"), 2, means=True)
    for part, expected in ((both.inside, np.ones(10)), (both.across, np.isin(range(10), (1, 4)))):
        np.testing.assert_allclose(part.matrix.sum(axis=1), expected)
        assert not part.symmetric
    # Node 1 hears of node 4 as loudly as if there were no other; inside, it and node 0 are two.
    assert both.across.matrix[1, 4] == 1
    assert both.inside.matrix[1, 0] == both.inside.matrix[1, 1] == pytest.approx(0.5)


def test_a_network_takes_means_of_its_own_accord() -> None:
    x, L = random(STARS.n, 3), operator(STARS)
    plain, means = (Partition(3, 4, 2, clusters=2, means=means) for means in (False, True))
    means.load_state_dict(plain.state_dict())
    assert close(means(x, L), plain(x, partitioned(L, 2, means=True)), 1e-12)
    assert not close(means(x, L), plain(x, L), 1e-3)


@pytest.mark.parametrize("clusters", [1, 2])
def test_one_cluster_is_the_gated_network(clusters: int) -> None:
    x, L = random(STARS.n, 3), operator(STARS)
    plain, parted = Gated(3, 4, 2, 3), Partition(3, 4, 2, 3, clusters=clusters)
    for net in (plain, parted):
        net.reset_parameters(seeded(2))
    assert close(parted(x, L), plain(x, L), 1e-12) == (clusters == 1)


def test_what_clusters_gathered_is_sent_across_the_cut() -> None:
    x, L = random(STARS.n, 3), operator(STARS)
    both = partitioned(L, 2)
    net = Partition(3, 4, 2, 1, clusters=2)
    h = net.inward(x)
    gathered = net.message(h, both.inside)
    expected = net.gru(gathered, h)
    # Nodes 1 and 4 are the ends of the only edge between the two stars.
    for to, source in ((1, 4), (4, 1)):
        received = gathered[to] + L.matrix[to, source] * gathered[source]
        expected[to] = net.gru(received, h[to])
    assert close(net.step(h, net.diffusions(both)), expected, 1e-12)
    assert close(net(x, L), net(x, both))


def test_a_pass_reaches_into_the_next_cluster() -> None:
    x = torch.zeros(STARS.n, 1)
    changed = x.clone()
    changed[0] = 1.0
    net, L = Partition(1, 16, 2, 1, clusters=2), operator(STARS)
    net.reset_parameters(seeded(1))
    moved = (net(x, L) - net(changed, L)).abs().max(dim=1).values > 0
    # Its own star, and node 4, two edges away, which hears of it from node 1.
    assert np.flatnonzero(moved).tolist() == [0, 1, 2, 3, 4]


def test_an_edge_index_is_partitioned_too() -> None:
    x = random(MIXED.n, 3)
    net = Partition(3, 4, 2, clusters=2)
    assert close(net(x, *edge_index_of(MIXED)), net(x, operator(MIXED)), 1e-12)


@pytest.fixture(scope="module")
def task() -> Task:
    data = synthetic_citations(n=120, classes=3, words=30, signal=0.6, homophily=0.8, seed=1)
    return data.task(Split("by hand", range(30), range(30, 60), range(60, 120)))


def probabilities(name: str, task: Task, **changes: object) -> np.ndarray:
    settings = {"feature_dropout": 0.0, "dropout": 0.0, "hidden": 8} | changes
    return system(name, settings).fit(task, seed=1, conditions=SHORT).probabilities


def test_gpnn_with_one_cluster_is_ggnn(task: Task) -> None:
    same = {"layers": 2, "lr": 0.01}
    plain = probabilities("ggnn", task, **same)
    one, five = (probabilities("gpnn", task, clusters=k, **same) for k in (1, 5))
    np.testing.assert_allclose(one, plain, atol=1e-6)
    assert np.abs(five - plain).max() > 1e-3


def test_gpnn_partitions_the_graph_once_for_a_run(task: Task) -> None:
    made = system("gpnn", {"clusters": 4})
    assert isinstance(made, GPNNSystem)
    L = made.diffusion(task.graph)
    assert isinstance(L, Partitioned)
    network = made.network(30, 3)
    assert isinstance(network, Partition)
    assert network.diffusions(L) == [L.inside, L.across]
    assert network.clusters == 4
