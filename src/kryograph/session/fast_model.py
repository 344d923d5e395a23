"""Fast model: a pool of closed-form heads on a basis that is computed once for a session.

All nodes are predicted again after every label. The weights of the heads follow from their
predictions for labels that they had not seen: those that were known at the start are held out once;
afterwards each new label was predicted before it was known, which costs nothing. A temperature
makes the probabilities as bold as these predictions were right, on random nodes only: suggested
ones are harder. It works as soon as two classes have a label; before, all classes count alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kryograph.basis import Basis
from kryograph.explain.contributions import AdditiveForm
from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.stats import tempered
from kryograph.systems.base import Probabilities, Weights, member_systems
from kryograph.systems.fitted_pool import FittedPool
from kryograph.systems.head import HeadSystem
from kryograph.training.folds import draw_folds
from kryograph.training.pooling import (
    SMALLEST,
    Pool,
    best_temperature,
    logarithms,
    starting_weights,
)

FAST_HEADS = {
    "prototypes:representation=sum,rounds=5": 4.0,
    "diffused-logistic:representation=sum": 1.0,
    "diffused-logistic:representation=hops": 1.0,
    "diffused-logistic:representation=weighted": 1.0,
    "diffused-logistic:representation=features,penalty=1": 1.0,
}
"""Heads of the pool, each with its relative weight before any evidence."""

MOST_EVIDENCE = 100
"""Number of predictions by which heads are compared, the latest ones."""

MOST_HELD_OUT, PARTS = 200, 3
"""At the start at most so many labels are held out, in so many parts."""

NEGLIGIBLE = 0.01
"""A head with a smaller weight is left out, because fitting it takes time."""


@dataclass(frozen=True, eq=False)
class FastPrediction:
    """Predictions for all nodes.

    Args:
        probabilities: Class probabilities, N × C.
        pool: The fitted pool; None while there are labels of fewer than two classes.
        logs: Logarithms of the probabilities of the heads in the pool, m × N × C.
        numbers: Numbers of these heads.
    """

    probabilities: Probabilities
    pool: FittedPool | None = None
    logs: npt.NDArray[np.float64] | None = None
    numbers: tuple[int, ...] = ()


class FastModel:
    """Closed-form heads on one basis.

    Args:
        graph: The graph with features as `kryograph fit` makes them.
        labels: Labels that are known at the start, N class numbers or `UNKNOWN`.
        classes: Number of classes at the start.
    """

    def __init__(self, graph: Graph, labels: Indices, classes: int) -> None:
        self.graph, self.basis = graph, Basis(graph)
        systems = member_systems(" + ".join(FAST_HEADS), "sym")
        members = zip(systems, FAST_HEADS.values(), strict=True)
        heads = [(head, prior) for head, prior in members if isinstance(head, HeadSystem)]
        heads = [(head, prior) for head, prior in heads if head.exists(self.basis)]
        if self.basis.many:  # the features are the weighted ones, with other weights
            heads = [one for one in heads if one[0].representation != "features"]
        self.heads = [head for head, _ in heads]
        self._prior = np.array([prior for _, prior in heads])
        for head in self.heads:  # now rather than after the first label
            self.basis.rows(head.representation)
        self._losses: list[npt.NDArray[np.float64]] = []
        self._random: list[tuple[npt.NDArray[np.float64], int]] = []
        self._hold_out(labels, classes)

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """Weight of each head; the sum is 1."""
        if not self._losses:
            return np.asarray(self._prior / self._prior.sum())
        return starting_weights(np.array(self._losses[-MOST_EVIDENCE:]).T, self._prior)

    @property
    def temperature(self) -> float:
        """Temperature of the pool, by its predictions for random nodes; 1 without any."""
        if not self._random:
            return 1.0
        latest = self._random[-MOST_EVIDENCE:]
        logs = np.full((1, len(latest), max(row.size for row, _ in latest)), np.log(SMALLEST))
        for i, (row, _) in enumerate(latest):  # a class may have been added since
            logs[0, i, : row.size] = row
        return best_temperature(
            logs, np.array([label for _, label in latest]), np.ones(len(latest))
        )

    def predict(self, labels: Indices, classes: int) -> FastPrediction:
        """Predict all nodes from the labels of some, N class numbers or `UNKNOWN`."""
        nodes = np.flatnonzero(labels != UNKNOWN)
        if np.unique(labels[nodes]).size < 2:
            return FastPrediction(np.full((self.graph.n, classes), 1 / classes))
        weights = self.weights
        kept = np.flatnonzero(weights >= NEGLIGIBLE)
        members: list[tuple[HeadSystem, Weights]] = []
        logs = np.empty((kept.size, self.graph.n, classes))
        for m, k in enumerate(kept.tolist()):
            head = self.heads[k]
            learned = head.learn(self.basis, nodes, labels[nodes], classes, 0)
            logs[m] = logarithms(head.score(self.basis, learned, classes))
            members.append((head, learned))
        shares = weights[kept] / weights[kept].sum()
        pool = Pool(np.ones(kept.size), shares, np.zeros(kept.size))
        temperature = self.temperature
        fitted = FittedPool(members, pool, temperature, np.zeros(classes))
        probabilities = tempered(np.exp(pool.logits(logs)), temperature)
        return FastPrediction(probabilities, fitted, logs, tuple(kept.tolist()))

    def observe(
        self, prediction: FastPrediction, node: int, label: int, *, random: bool = False
    ) -> None:
        """Learn from a new label how well the heads predicted it; a head left out learns nothing.

        Args:
            prediction: Predictions that were made without this label.
            node: Number of the node.
            label: Its class; one that was not known then is no evidence.
            random: Whether the node was drawn at random.
        """
        if prediction.logs is None or prediction.pool is None:
            return
        if label >= prediction.logs.shape[2]:
            return
        if random:
            self._random.append((prediction.pool.pool.logits(prediction.logs[:, node]), label))
        own = -prediction.logs[:, node, label]
        losses = np.full(len(self.heads), own.max())  # the ones left out were no better
        losses[list(prediction.numbers)] = own
        self._losses.append(losses)

    def additive(self, prediction: FastPrediction) -> AdditiveForm | None:
        """Form in which the log-odds of a prediction are a sum; None without a fitted pool."""
        if prediction.pool is None:
            return None
        return prediction.pool.additive(self.basis, prediction.probabilities.shape[1])

    def _hold_out(self, labels: Indices, classes: int) -> None:
        """Hold out each label that is known at the start once."""
        known = np.flatnonzero(labels != UNKNOWN)
        if known.size > MOST_HELD_OUT:
            known = np.sort(np.random.default_rng(0).choice(known, MOST_HELD_OUT, replace=False))
        some = np.full(labels.size, UNKNOWN)
        some[known] = labels[known]
        if np.unique(labels[known]).size < 2 or np.bincount(labels[known]).max() < 2:
            return
        held_out = []
        for fold in draw_folds(some, 0, PARTS):
            train = fold.train
            if np.unique(some[train]).size < 2:
                continue
            scores = []
            for head in self.heads:
                learned = head.learn(self.basis, train, some[train], classes, 0)
                scores.append(head.score(self.basis, learned, classes)[fold.held_out])
            logs, truth = logarithms(np.stack(scores)), some[fold.held_out]
            self._losses += list(-logs[:, np.arange(truth.size), truth].T)
            held_out.append((logs, truth))
        if held_out:
            count = len(self.heads)
            pool = Pool(np.ones(count), self.weights, np.zeros(count))
            for logs, truth in held_out:
                self._random += list(zip(pool.logits(logs), truth.tolist(), strict=True))
