from __future__ import annotations

import numpy as np
import pytest

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Split, Task
from kryograph.systems import system
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SHORT = Conditions(rule=StopRule(max_epochs=20))


def task_on(graph: Graph) -> Task:
    """Twelve nodes with two features, the larger of which is the class."""
    features = np.random.default_rng(0).random((12, 2))
    labels = np.full(12, UNKNOWN)
    labels[:8] = features[:8].argmax(axis=1)
    split = Split("by hand", train=range(6), validation=[6, 7], test=range(8, 12))
    return Task(Graph(graph.adjacency.copy(), features), split, labels, ("a", "b"))


def probabilities(graph: Graph, **changes: object) -> np.ndarray:
    chosen = system("dcnn", {"dropout": 0.0, **changes})
    return chosen.fit(task_on(graph), seed=1, conditions=SHORT).predict_proba()


def test_without_hops_the_graph_does_not_matter() -> None:
    found = [
        probabilities(graph, variant="original", hops=0)
        for graph in (toy.cycle(12), toy.star(12), toy.isolated(12))
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_with_a_hop_it_does() -> None:
    ring, star = (
        probabilities(g, variant="original", hops=1) for g in (toy.cycle(12), toy.star(12))
    )
    assert np.abs(ring - star).max() > 1e-3


def test_the_variants_are_two_networks() -> None:
    both = [probabilities(toy.cycle(12), variant=v) for v in ("original", "lanczosnet")]
    for each in both:
        np.testing.assert_allclose(each.sum(axis=1), 1)
    assert np.abs(both[0] - both[1]).max() > 1e-3


@pytest.mark.parametrize("scales", ["", "one", "2,1", "-1,2", "1,1", "1,1000"])
def test_scales_that_make_no_sense_are_a_sentence(scales: str) -> None:
    with pytest.raises(UsageError, match="increasing powers"):
        system("dcnn", {"scales": scales})
