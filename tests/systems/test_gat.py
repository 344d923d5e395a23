from __future__ import annotations

import pytest

from kryograph.data import toy
from kryograph.systems import system
from kryograph.systems.gat import GAT, GATSystem


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
