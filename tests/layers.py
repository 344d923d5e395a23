"""Graphs, random numbers and dense matrices that the tests of layers and of the engine share.

Tests of the layers run in float64 (the fixture `double`), and so do `random` and `dense` there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from kryograph.data import toy
from kryograph.engine.forward import Forward, Nodes
from kryograph.graph import Graph
from kryograph.nn.functional import Masks, NodeFeatures
from kryograph.operators import Operator, from_edge_index, operator
from kryograph.sparse import SparseMatrix
from kryograph.training.optimizers import optimizer

OPERATORS = ["sym", "rw"]
MIXED = toy.disjoint(toy.two_cliques(4), toy.isolated(1), toy.star(4))
"""Thirteen nodes in three components, one of them a node on its own."""
WEIGHTED = Graph.from_edges([[0, 1, 2, 0], [1, 2, 3, 3]], 6, weights=[0.5, 2.0, 1.0, 3.0])
"""A weighted ring of four nodes, and two nodes on their own."""


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed))


def dense(graph: Graph, name: str) -> Tensor:
    """D̃^{-1/2} Ã D̃^{-1/2} or D̃^{-1} Ã, from the adjacency."""
    affinity = torch.from_numpy(graph.adjacency.toarray()) + torch.eye(graph.n)
    degree = affinity.sum(dim=1)
    if name == "rw":
        return affinity / degree[:, None]
    return affinity / torch.sqrt(degree[:, None] * degree[None, :])


def edge_index_of(graph: Graph) -> tuple[Tensor, Tensor]:
    both = graph.adjacency.tocoo()
    pairs = torch.from_numpy(np.stack([both.row, both.col]).astype(np.int64))
    return pairs, torch.from_numpy(both.data.copy())


def directed(n: int, edges: int, seed: int) -> tuple[Tensor, Tensor]:
    """Weighted one-way edges, some of them repeated, without loops."""
    source = torch.randint(n, (edges,), generator=seeded(seed))
    target = (source + torch.randint(1, n, (edges,), generator=seeded(seed + 1))) % n
    return torch.stack([source, target]), torch.rand(edges, generator=seeded(seed + 2)) + 0.1


def close(found: Tensor, expected: Tensor, atol: float = 1e-13) -> bool:
    return found.shape == expected.shape and torch.allclose(found, expected, rtol=0, atol=atol)


# What dropout keeps


class FixedMasks(Masks):
    """Masks of all nodes for every step and layer: every form drops the same entries.

    `step` is the test's to move; `asked` holds each layer, shape and list of nodes asked for.
    """

    def __init__(self, n: int, seed: int = 0) -> None:
        super().__init__()
        self.n, self.seed, self.step = n, seed, 0
        self.asked: list[tuple[int, tuple[int, ...], list[int] | None]] = []

    def keep(self, h: Tensor, rate: float, layer: int, nodes: Tensor | None) -> Tensor:
        self.asked.append((layer, tuple(h.shape), None if nodes is None else nodes.tolist()))
        if h.dim() == 1:  # the stored entries of a sparse matrix
            return torch.rand(h.shape, generator=self._drawn(layer), dtype=torch.float64) >= rate
        whole = self.whole(h.shape[1], rate, layer)
        return whole if nodes is None else whole[nodes]

    def whole(self, width: int, rate: float, layer: int) -> Tensor:
        """What is kept of each node's row in this step."""
        generator = self._drawn(layer)
        return torch.rand(self.n, width, generator=generator, dtype=torch.float64) >= rate

    def _drawn(self, layer: int) -> torch.Generator:
        return seeded(10_000 * self.seed + 100 * self.step + layer % 100)

    def factors(self, width: int, rate: float, layers: int) -> list[Tensor]:
        """What the hidden outputs are multiplied by, layer by layer."""
        return [self.whole(width, rate, layer).double() / (1 - rate) for layer in range(layers)]


# Runs of two forms side by side


@dataclass(frozen=True)
class Case:
    """Something to train on: features, an operator, whose logits are asked for, labels."""

    x: NodeFeatures
    L: Operator
    nodes: Nodes
    labels: Tensor
    classes: int
    masks: FixedMasks


@st.composite
def cases(draw: st.DrawFn, dtype: torch.dtype = torch.float64) -> Case:
    """One to twenty-five nodes in one to four pieces, weighted, often with nodes on their own."""
    n, pieces = draw(st.integers(1, 25)), draw(st.integers(1, 4))
    density = draw(st.sampled_from([0.0, 0.05, 0.15, 0.5, 1.0]))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    piece = rng.integers(pieces, size=n)
    pairs = np.triu(rng.random((n, n)) < density, 1) & (piece[:, None] == piece)
    ends = np.stack(np.nonzero(pairs))
    weights = rng.uniform(0.1, 3.0, ends.shape[1])
    name = draw(st.sampled_from(OPERATORS))
    if draw(st.booleans(), label="one-way edges"):
        ends = np.where(rng.random(ends.shape[1]) < 0.5, ends, ends[::-1])
        L = from_edge_index(torch.from_numpy(ends), torch.from_numpy(weights), n, name)
    else:
        L = operator(Graph.from_edges(ends, n, weights=weights), name)
    values = rng.standard_normal((n, draw(st.integers(1, 6), label="features")))
    x: NodeFeatures = torch.from_numpy(values).to(dtype)
    if draw(st.booleans(), label="sparse"):
        few = sp.csr_array(values * (rng.random(values.shape) < 0.3))
        x = SparseMatrix.from_scipy(few, dtype=dtype)
    shuffled = torch.from_numpy(rng.permutation(n))
    trained = draw(st.integers(1, n), label="training nodes")
    seen = draw(st.integers(0, n - trained), label="validation nodes")
    nodes = Nodes(shuffled[:trained], shuffled[trained : trained + seen])
    classes = draw(st.integers(2, 4), label="classes")
    labels = torch.from_numpy(rng.integers(classes, size=n))
    return Case(x, L, nodes, labels, classes, FixedMasks(n, seed=seed % 1000))


def gradients_of(network: nn.Module) -> dict[str, Tensor]:
    found = {}
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        found[name] = parameter.grad.clone()
    return found


def trained(forward: Forward, labels: Tensor) -> dict[str, Tensor]:
    """Training logits, and the gradients that follow."""
    forward.network.train()
    forward.network.zero_grad()
    logits = forward.training()
    nn.functional.cross_entropy(logits, labels[forward.nodes.training]).backward()
    return {"training logits": logits.detach(), **gradients_of(forward.network)}


def evaluated(forward: Forward) -> dict[str, Tensor]:
    """What a run asks for without dropout."""
    forward.network.eval()
    with torch.no_grad():
        return {"scored": forward.scored(), "everything": forward.everything()}


def check_same(found: dict[str, Tensor], expected: dict[str, Tensor], when: str = "") -> None:
    """Equal to 1e-10 in float64 and to 1e-5 in float32, relative to the largest entry."""
    assert found.keys() == expected.keys()
    largest = {name: max([0.0, *value.abs().ravel().tolist()]) for name, value in expected.items()}
    # Where sums cancel, what is left is rounded as their terms are.
    least = 0.1 * max(1.0, *largest.values())
    for name, value in expected.items():
        assert found[name].shape == value.shape, f"{name} {when}"
        tolerance = 1e-10 if value.dtype == torch.float64 else 1e-5
        scale = max(largest[name], least)
        assert torch.isfinite(found[name]).all(), f"{name} {when}"
        difference = max([0.0, *(found[name] - value).abs().ravel().tolist()])
        assert difference <= tolerance * scale, f"{name} {when}: {difference:.1e} of {scale:.1e}"


def check_run(engine: Forward, literal: Forward, case: Case, name: str, steps: int = 10) -> None:
    """Ten steps of the optimiser of that name, on two networks that start alike.

    In float32 the engine's network takes over the literal one's weights after each step: where a
    gradient is zero but for rounding, RMSprop takes the rounding for a direction.
    """
    pair = (engine, literal)
    for key, value in literal.network.state_dict().items():
        assert torch.equal(engine.network.state_dict()[key], value), key
    steppers = [
        optimizer(name, form.network.parameters(), lr=1e-3, weight_decay=1e-3) for form in pair
    ]
    for step in range(steps):
        case.masks.step = step
        check_same(*(trained(form, case.labels) for form in pair), f"in step {step}")
        for stepper in steppers:
            stepper.step()
        if next(engine.network.parameters()).dtype == torch.float32:
            engine.network.load_state_dict(literal.network.state_dict())
        check_same(*(evaluated(form) for form in pair), f"after step {step}")
