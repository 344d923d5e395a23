"""Contributions to a number that is linear in the row of a representation of `kryograph.basis`.

The blocks of a representation are Σ_k c_k L^k Z, where Z_u = t_u (x_u - μ) C P: row lengths
1 / t_u, means μ, factors C of the columns and a projection P. They are scaled to unit length or
standardised. With row lengths, means and standard deviations held fixed, a row is a linear map of
X: of row r and coefficients w, r · w is a sum of contributions of nodes, features and hops, and of
an intercept, to which the means belong.

Without features Z are eigenvectors of an operator, and the rows of `neighbours` are those of P A:
their columns stand for positions in the graph. What they contribute belongs to nodes, and to no
feature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import log_softmax

from kryograph.basis import (
    DAMPED_HOPS,
    DAMPING,
    SUMMED_HOPS,
    Basis,
    Rows,
    reads_two_hops,
    to_dense,
)
from kryograph.explain.contributions import AdditiveForm, Contributions, Values, cosines
from kryograph.explain.walks import arrivals, through_edges
from kryograph.graph import Features, Indices
from kryograph.operators import operator

NOISE = 1e-4
"""A block so much shorter than the rows in it is rounding: its direction means nothing."""


@dataclass(frozen=True, eq=False)
class RowSource:
    """Rows Z_u = t_u (x_u - μ) C P of the nodes.

    Args:
        x: X, N × F.
        lengths: t, N.
        means: μ, F; None for zeros.
        factors: Diagonal of C, F; None for ones.
        projection: P, F × d; None for the identity.
        named: Whether the columns of X are the features of the graph.
    """

    x: Features
    lengths: Values
    means: Values | None = None
    factors: Values | None = None
    projection: Values | None = None
    named: bool = True

    @cached_property
    def sizes(self) -> Values:
        """Lengths of the rows of Z before the projection, N."""
        factors = np.ones(self.x.shape[1]) if self.factors is None else self.factors
        if self.means is None:
            squares = (self.x * self.x) @ factors**2
        else:
            squares = (((to_dense(self.x) - self.means) * factors) ** 2).sum(axis=1)
        return np.asarray(np.sqrt(squares) * self.lengths)

    def rows(self, weights: Values) -> Values:
        """Sums of the rows of Z with weights m × N: m × d."""
        scaled = weights * self.lengths
        sums = np.asarray((self.x.T @ scaled.T).T)
        if self.means is not None:
            sums = sums - scaled.sum(axis=1)[:, None] * self.means
        if self.factors is not None:
            sums = sums * self.factors
        return sums if self.projection is None else sums @ self.projection

    def on_features(self, coefficients: Values) -> Values:
        """Coefficients of x_u - μ (m × F) from coefficients of Z_u (m × d), but for t_u."""
        if self.projection is not None:
            coefficients = coefficients @ self.projection.T
        return coefficients if self.factors is None else coefficients * self.factors


@dataclass(frozen=True, eq=False)
class RowForm:
    """How the rows of a representation come from a source.

    Args:
        source: Z.
        steps: Operators of the steps 1, …, K.
        blocks: Coefficients c_k of each block, blocks × (K + 1).
        unit: Whether each block is scaled to unit length.
        standard: Mean and standard deviation of the columns of each block; None without them.
        centre: What is subtracted from every row of Z, d; None for zeros.
        computed: Returns the rows as the head sees them, in float32; used for blocks of a node
            that are nothing but rounding.
    """

    source: RowSource
    steps: Sequence[sp.csr_array]
    blocks: Values
    unit: bool = False
    standard: Sequence[tuple[Values, Values]] | None = None
    centre: Values | None = None
    computed: Callable[[int], Values] | None = None

    def at(self, node: int) -> NodeRow:
        """Compute the row of a node."""
        walks = arrivals(node, self.steps, self.source.x.shape[0])
        combined = self.blocks @ walks
        blocks = self.source.rows(combined)
        if self.centre is not None:
            blocks = blocks - combined.sum(axis=1)[:, None] * self.centre
        share = 1 / math.sqrt(len(blocks))
        factors, shift = np.ones_like(blocks), np.zeros_like(blocks)
        lengths = np.sqrt((blocks**2).sum(axis=1))
        noise = lengths <= NOISE * (abs(self.blocks) @ (walks @ self.source.sizes))
        if self.unit:
            inverse = np.divide(1, lengths, out=np.zeros_like(lengths), where=~noise)
            factors = factors * (share * inverse)[:, None]
            if noise.any() and self.computed is not None:
                seen = self.computed(node).reshape(blocks.shape)
                shift[noise] = seen[noise]
        elif self.standard is not None:
            means, spreads = (np.stack(part) for part in zip(*self.standard, strict=True))
            factors = share / (spreads * math.sqrt(blocks.shape[1]))
            shift = -means * factors
        return NodeRow(self, node, walks, factors, shift, (blocks * factors + shift).ravel())


@dataclass(frozen=True, eq=False)
class NodeRow:
    """The row of one node, and the linear map that leads to it.

    Args:
        form: How the rows are made.
        node: The node.
        walks: Its arrivals, (K + 1) × N.
        factors: What the columns of each block are multiplied by, blocks × d.
        shift: What is added to them, blocks × d.
        row: The row, blocks · d numbers.
    """

    form: RowForm
    node: int
    walks: Values
    factors: Values
    shift: Values
    row: Values

    def contributions(self, coefficients: Values) -> Contributions:
        """Divide `row @ coefficients` among hops, nodes, neighbours and features."""
        form, source = self.form, self.form.source
        by_block = coefficients.reshape(self.factors.shape)
        scaled = by_block * self.factors  # coefficients of the blocks before they are scaled
        # Coefficients of x_u - μ after k steps, (K + 1) × F.
        weights = form.blocks.T @ source.on_features(scaled)
        values = np.asarray((source.x @ weights.T).T) * source.lengths
        shares = self.walks * values
        intercept = float((by_block * self.shift).sum())
        if source.means is not None:
            intercept -= float(self.walks @ source.lengths @ (weights @ source.means))
        if form.centre is not None:
            intercept -= float(self.walks.sum(axis=1) @ form.blocks.T @ (scaled @ form.centre))
        neighbours, own = through_edges(self.node, form.steps, values)
        neighbours[self.node] += own @ values[:, self.node]
        total = Contributions(
            intercept,
            hops=shares.sum(axis=1),
            nodes=shares.sum(axis=0),
            neighbours=neighbours,
            features=np.zeros(0),
        )
        if not source.named:
            return replace(total, structure=float(shares.sum()))
        received = np.asarray((source.x.T @ (self.walks * source.lengths).T).T)
        return replace(total, features=(received * weights).sum(axis=0))


@dataclass(frozen=True, eq=False)
class LinearRows(AdditiveForm):
    """A classifier whose logits are linear in the rows of a representation.

    Args:
        form: How the rows are made.
        features: Number F of features of the graph.
        coefficients: Returns the coefficients of the logits (d × C) for a row (d); they may depend
            on its length, which is held fixed.
        labelled: Mask of the classes that have labels, C; others have the probability 0.
        all_rows: Returns the rows of all nodes, N × d.
    """

    form: RowForm
    features: int
    coefficients: Callable[[Values], Values]
    labelled: npt.NDArray[np.bool_]
    all_rows: Callable[[], Rows]

    def log_probabilities(self, node: int) -> Values:
        row = self._at(node).row
        logits = np.where(self.labelled, row @ self.coefficients(row), -np.inf)
        return np.asarray(log_softmax(logits))

    def contributions(self, node: int, first: int, second: int) -> Contributions:
        n, present = self.form.source.x.shape[0], self.labelled[[first, second]]
        if not present.all():  # log 0 against a finite number
            infinite = np.inf * (float(present[0]) - float(present[1]))
            return Contributions.none(n, self.features, 0.0 if not present.any() else infinite)
        at = self._at(node)
        coefficients = self.coefficients(at.row)
        parts = at.contributions(coefficients[:, first] - coefficients[:, second])
        return parts if parts.features.size else replace(parts, features=np.zeros(self.features))

    def similarity(self, node: int, others: Indices) -> Values:
        rows = self._rows
        chosen = np.asarray(to_dense(rows[np.append(others, node)]), dtype=np.float64)
        return cosines(chosen[-1], chosen[:-1])

    @cached_property
    def _rows(self) -> Rows:
        return self.all_rows()

    def _at(self, node: int) -> NodeRow:
        """Row of a node; that of the last node is kept, because it is needed twice."""
        if node not in self._last:
            self._last.clear()
            self._last[node] = self.form.at(node)
        return self._last[node]

    @cached_property
    def _last(self) -> dict[int, NodeRow]:
        return {}


def row_form(basis: Basis, name: str) -> RowForm | None:
    """Build the form of a representation; None if its rows are not linear in the features."""
    if name not in FORMS:
        return None
    form = FORMS[name](basis)
    features = basis.graph.features.shape[1]
    assert not form.source.named or form.source.x.shape[1] == features
    return replace(form, computed=lambda node: _dense_row(basis, name, node))


def _dense_row(basis: Basis, name: str, node: int) -> Values:
    row = basis.rows(name)[[node]]
    return np.asarray(to_dense(row)[0], dtype=np.float64)


def _few_features(basis: Basis, name: str) -> RowSource:
    """Columns less their means and divided by their standard deviations."""
    mean, spread = (basis.state[f"{name}.{part}"].double().numpy() for part in ("mean", "spread"))
    x = basis.graph.features
    factors = 1 / (spread * math.sqrt(x.shape[1]))
    return RowSource(x, np.ones(basis.graph.n), mean, factors)


def _unit(source: RowSource) -> RowSource:
    """Scale the rows of a source to unit length; rows of zeros stay."""
    sizes = source.sizes
    inverse = np.divide(1, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    return replace(source, lengths=source.lengths * inverse)


def _features(basis: Basis) -> RowForm:
    if basis.many:
        source = _unit(RowSource(basis.graph.features, np.ones(basis.graph.n)))
    else:
        if "features.mean" not in basis.state:
            basis.rows("features")  # learns means and standard deviations
        source = _few_features(basis, "features")
    return RowForm(source, [], np.ones((1, 1)))


def _weighted_source(basis: Basis) -> RowSource:
    if not {"idf", "weighted.mean"} & basis.state.keys():
        basis.rows("weighted")
    if "weighted.mean" in basis.state:
        return _unit(_few_features(basis, "weighted"))
    factors = basis.state["idf"].double().numpy()
    return _unit(RowSource(basis.graph.features, np.ones(basis.graph.n), factors=factors))


def _weighted(basis: Basis) -> RowForm:
    return RowForm(_weighted_source(basis), [], np.ones((1, 1)))


def _reduced(basis: Basis) -> RowSource:
    """Z, the features in few dimensions or eigenvectors."""
    if not basis.has_features:
        z = np.asarray(basis.Z, dtype=np.float64)
        return RowSource(z, np.ones(basis.graph.n), named=False)
    if not basis.many:
        return _features(basis).source
    if "projection" not in basis.state:
        _ = basis.Z  # learns the projection
    return replace(_weighted_source(basis), projection=basis.state["projection"].double().numpy())


def _diffused_form(
    basis: Basis, name: str, step: sp.csr_array, blocks: Values, centre: Values | None = None
) -> RowForm:
    """Form of blocks of Z that `Basis.scaled` put side by side."""
    form = RowForm(_reduced(basis), [step] * (blocks.shape[1] - 1), blocks, centre=centre)
    if basis.many or not basis.has_features:
        return replace(form, unit=True)
    if f"{name}.0.mean" not in basis.state:
        basis.rows(name)
    standard = [
        (
            basis.state[f"{name}.{j}.mean"].double().numpy(),
            basis.state[f"{name}.{j}.spread"].double().numpy(),
        )
        for j in range(len(blocks))
    ]
    return replace(form, standard=standard)


def _matrix(basis: Basis, name: str) -> sp.csr_array:
    return operator(basis.graph, name).matrix


def _damped(basis: Basis) -> RowForm:
    blocks = DAMPING ** np.arange(DAMPED_HOPS + 1.0)[None]
    return _diffused_form(basis, "diffused", _matrix(basis, "sym"), blocks)


def _summed(basis: Basis) -> RowForm:
    return _diffused_form(basis, "sum", _matrix(basis, "sym"), np.ones((1, SUMMED_HOPS + 1)))


def _centred(basis: Basis) -> RowForm:
    if "centre" not in basis.state:
        basis.rows("centred")
    half = sp.csr_array((sp.eye_array(basis.graph.n) + _matrix(basis, "neighbour-mean")) / 2)
    blocks = DAMPING ** np.arange(DAMPED_HOPS + 1.0)[None]
    centre = basis.state["centre"].double().numpy()
    return _diffused_form(basis, "centred", half, blocks, centre)


def _hops(basis: Basis) -> RowForm:
    return _diffused_form(basis, "hops", _matrix(basis, "neighbour-mean"), np.eye(3))


def _contrast(basis: Basis) -> RowForm:
    blocks = np.array([[1.0, 0.0, 0.0], [1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    return _diffused_form(basis, "contrast", _matrix(basis, "neighbour-mean"), blocks)


def _neighbours(basis: Basis) -> RowForm:
    n = basis.graph.n
    source = RowSource(sp.csr_array(sp.eye_array(n)), np.ones(n), named=False)
    steps = [basis.graph.adjacency]
    if reads_two_hops(basis.graph):
        steps = [_matrix(basis, "neighbour-mean"), *steps]
    last = np.zeros((1, len(steps) + 1))
    last[0, -1] = 1.0
    return RowForm(source, steps, last, unit=True)


FORMS: dict[str, Callable[[Basis], RowForm]] = {
    "features": _features,
    "weighted": _weighted,
    "diffused": _damped,
    "centred": _centred,
    "sum": _summed,
    "hops": _hops,
    "contrast": _contrast,
    "neighbours": _neighbours,
}
"""Forms of the representations whose rows are linear in the features, by name."""
