from __future__ import annotations

import pytest
import torch

from kryograph.nn.hop import Hop
from kryograph.operators import OPERATORS, edge_operator
from tests.layers import close, directed, random

pytestmark = pytest.mark.usefixtures("double")


@pytest.mark.parametrize("name", OPERATORS)
def test_a_hop_is_one_product(name: str) -> None:
    L, x = edge_operator(*directed(9, 25, seed=0), 9, name), random(9, 3)
    assert close(Hop(3)(x, L), L @ x)


def test_messages_of_a_hop_by_hand() -> None:
    # Node 1 receives half of what node 0 sends, and keeps half of its own.
    L = edge_operator(torch.tensor([[0], [1]]), None, 2, "rw")
    assert Hop(1)(torch.tensor([[4.0], [2.0]]), L).tolist() == [[4.0], [3.0]]
