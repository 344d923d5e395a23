"""MPNN as a system: its messages depend on both ends of an edge."""

from __future__ import annotations

import torch

from kryograph.data import toy
from kryograph.nn.gated import Gated, PairMessage
from kryograph.operators import operator
from kryograph.systems import system
from kryograph.systems.ggnn import MPNNSystem
from tests.layers import close, random, seeded


def network(**changes: object) -> Gated:
    method = system("mpnn", changes)
    assert isinstance(method, MPNNSystem)
    network = method.network(5, 3)
    assert isinstance(network, Gated)
    return network


def test_mpnn_network_has_messages_for_pairs() -> None:
    pair = network(layers=3)
    assert isinstance(pair.message, PairMessage)
    assert pair.steps == 3


def test_mpnn_message_changes_with_its_receiver() -> None:
    # Nodes 1 and 2 of the path 1 - 0 - 2 hear node 0 and themselves; only their own states differ.
    message = network(hidden=4, start="random", step_rate=1.0).message
    message.reset_parameters(seeded(1))
    h = torch.zeros(3, 4)
    h[1], h[2] = random(4, seed=2), random(4, seed=3)
    L = operator(toy.star(3), "neighbour-mean")
    received = message(h, L)
    assert not close(received[1], received[2], 1e-3)
    # A linear message, which its receiver does not change, is the same for both.
    linear = system("ggnn", {"hidden": 4}).network(5, 3).message  # type: ignore[attr-defined]
    assert close(linear(h, L)[1], linear(h, L)[2])


def test_mpnn_starts_as_a_diffusion_that_ignores_the_receiver() -> None:
    message = network(hidden=4).message
    h, L = random(5, 4), operator(toy.star(5))
    message.reset_parameters(seeded(0))
    message.reset_to_identity()
    assert close(message(h, L), L @ h, 1e-6)


def test_mpnn_defaults_are_those_of_gated_networks_with_fewer_units() -> None:
    settings, gated = system("mpnn").settings, system("ggnn").settings
    assert (settings.hidden, settings.dropout) == (32, 0.5)
    assert (settings.lr, settings.step_rate, settings.start) == (gated.lr, 0.01, "diffusion")
