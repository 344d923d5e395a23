"""Appendix IV: the spectrum of a graph under both renormalised adjacencies, exactly.

`sym`, D̃^{-1/2} Ã D̃^{-1/2}, is symmetric: its eigenvalues lie in (-1, 1], and its singular values
are their magnitudes. `rw`, D̃^{-1} Ã, has the same eigenvalues, but it is not symmetric, and its
singular values, the roots of the eigenvalues of R Rᵀ, exceed 1.

**Twins** make it cheap. Nodes with the same neighbours (such as papers whose only link is to one
survey) are alike: L multiplies the difference of two of them by a number c, so that a group of k
twins has the eigenvalue c k - 1 times. What remains is the graph with one node for each group,
Qᵀ L Q for the normed indicators Q of the groups: for PubMed 13,013 nodes of 19,717. This holds for
every matrix that is the same whichever way twins are swapped: for `sym`, `rw` and R Rᵀ alike.

Singular values are accurate to 1e-7 or so near zero, as they are roots; all else to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from matplotlib.figure import Figure

from kryograph.engine.machine import available_memory
from kryograph.errors import KryographError
from kryograph.figures import style
from kryograph.figures.style import TITLES, letter, panels, styled
from kryograph.graph import Graph
from kryograph.operators import operator
from kryograph.text import gigabytes

RW = r"$\tilde{D}^{-1}\tilde{A}$"
SYM = r"$\tilde{D}^{-1/2}\tilde{A}\tilde{D}^{-1/2}$"


@styled
def draw_spectra(found: Mapping[str, Spectrum]) -> Figure:
    """A panel for each data set: values in decreasing order, of both operators."""
    figure, axes = panels(1, len(found), 2.75, sharey=True)
    for axis, spectrum in zip(axes, found.values(), strict=True):
        n = len(spectrum.eigenvalues)
        place = np.arange(1, n + 1)
        axis.axhline(0, color=style.BLACK, linewidth=0.6)
        axis.plot(place, spectrum.singular_rw, color=style.RED, label=f"singular values, {RW}")
        axis.plot(
            place,
            spectrum.singular_sym,
            color=style.BLUE,
            linestyle=style.DASHED,
            label=f"singular values, {SYM}",
        )
        axis.plot(
            place,
            spectrum.eigenvalues,
            color=style.GREY,
            linestyle=style.DOTTED,
            label="eigenvalues of both",
        )
        # A little room on the left: the largest values are a few of thousands.
        axis.set_xlim(-0.02 * n, n)
        axis.set_xlabel("place in the order")
        axis.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        axis.locator_params(axis="x", nbins=4)
    letter(axes, [TITLES.get(name, name) for name in found])
    axes[0].set_ylabel("value")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


Eigenvalues = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spectrum:
    """Values in decreasing order, as many as there are nodes."""

    eigenvalues: Eigenvalues
    """Of `sym`, and of `rw`."""
    singular_sym: Eigenvalues
    singular_rw: Eigenvalues

    @property
    def gap(self) -> float:
        """1 - |λ| for the largest |λ| below 1: how fast powers of L forget."""
        below = self.singular_sym[self.singular_sym < 1 - 1e-9]
        return float(1 - below.max(initial=0.0))


def twins(adjacency: sp.csr_array) -> npt.NDArray[np.int64]:
    """The number of each node's group: nodes with the same neighbours and weights.

    >>> from kryograph.data import toy
    >>> twins(toy.star(5).adjacency).tolist()
    [0, 1, 1, 1, 1]
    """
    adjacency = sp.csr_array(adjacency)
    adjacency.sort_indices()
    groups: dict[tuple[bytes, bytes], int] = {}
    ends = zip(adjacency.indptr[:-1], adjacency.indptr[1:], strict=True)
    return np.array(
        [
            groups.setdefault(
                (adjacency.indices[a:b].tobytes(), adjacency.data[a:b].tobytes()), len(groups)
            )
            for a, b in ends
        ],
        dtype=np.int64,
    )


def spectrum(graph: Graph) -> Spectrum:
    """The spectrum of a graph."""
    groups = twins(graph.adjacency)
    walk = operator(graph, "rw").matrix
    eigenvalues = _eigenvalues(operator(graph, "sym").matrix, groups)
    squares = _eigenvalues(walk @ walk.T, groups)
    return Spectrum(
        eigenvalues=eigenvalues,
        singular_sym=np.sort(abs(eigenvalues))[::-1],
        singular_rw=np.sqrt(squares.clip(min=0)),
    )


def _eigenvalues(matrix: sp.csr_array, groups: npt.NDArray[np.int64]) -> Eigenvalues:
    """All of a symmetric matrix that does not tell twins apart, in decreasing order."""
    n, sizes = len(groups), np.bincount(groups)
    indicators = sp.csr_array((1 / np.sqrt(sizes[groups]), (np.arange(n), groups)))
    _check_memory(len(sizes))
    quotient = torch.from_numpy((indicators.T @ matrix @ indicators).toarray())
    first = np.unique(groups, return_index=True)[1]
    again = np.setdiff1d(np.arange(n), first)
    # u's own entry less that with a twin, which is 0 for `sym`, but not for R Rᵀ.
    chosen = (np.ones(len(again)), (np.arange(len(again)), first[groups[again]]))
    twin = sp.csr_array(chosen, shape=(len(again), n))
    own = matrix.diagonal()[again] - (matrix[again] * twin).sum(axis=1)
    found = torch.linalg.eigvalsh(quotient).numpy()
    return np.sort(np.concatenate([found, own]))[::-1].copy()


def _check_memory(n: int) -> None:
    # The matrix, and LAPACK's copy of it.
    needed, there_is = 2.2 * 8 * n**2, available_memory()
    if there_is is not None and needed > there_is:
        raise KryographError(
            f"The spectrum of {n:,} nodes needs {gigabytes(needed)}; there are "
            f"{gigabytes(there_is)}: choose other data sets with --datasets."
        )


def spectrum_rows(found: Mapping[str, Spectrum]) -> list[dict[str, object]]:
    """A row for each graph and place in the order."""
    return [
        {
            "graph": name,
            "place": place + 1,
            "eigenvalue": float(spectrum.eigenvalues[place]),
            "singular_sym": float(spectrum.singular_sym[place]),
            "singular_rw": float(spectrum.singular_rw[place]),
        }
        for name, spectrum in found.items()
        for place in range(len(spectrum.eigenvalues))
    ]


def spectrum_summary(found: Mapping[str, Spectrum]) -> dict[str, dict[str, float]]:
    """What stands out, for each graph."""
    return {
        name: {
            "nodes": len(spectrum.eigenvalues),
            "smallest_eigenvalue": float(spectrum.eigenvalues[-1]),
            "gap": spectrum.gap,
            "largest_singular_value_sym": float(spectrum.singular_sym[0]),
            "largest_singular_value_rw": float(spectrum.singular_rw[0]),
        }
        for name, spectrum in found.items()
    }
