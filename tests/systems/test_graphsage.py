from __future__ import annotations

import numpy as np
import pytest

from kryograph.data import toy
from kryograph.systems import system
from kryograph.systems.graphsage import GraphSAGESystem


def sage(**changes: object) -> GraphSAGESystem:
    found = system("graphsage", changes)
    assert isinstance(found, GraphSAGESystem)
    return found


def test_a_node_is_among_its_neighbours_only_without_a_weight_of_its_own() -> None:
    edge = toy.path(2)
    apart = sage(root_weight=True).diffusion(edge).matrix.toarray()
    among = sage(root_weight=False).diffusion(edge).matrix.toarray()
    np.testing.assert_allclose(apart, [[0, 1], [1, 0]])
    np.testing.assert_allclose(among, [[0.5, 0.5], [0.5, 0.5]])


@pytest.mark.parametrize(("root_weight", "count"), [(True, 2), (False, 1)])
def test_the_original_has_twice_the_weights(root_weight: bool, count: int) -> None:
    net = sage(root_weight=root_weight, hidden=5).network(7, 3)
    assert sum(p.numel() for p in net.parameters()) == count * (7 * 5 + 5 * 3) + 5 + 3
