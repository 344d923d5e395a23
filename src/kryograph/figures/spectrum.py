"""Appendix IV: all eigenvalues and singular values of both renormalised adjacencies of a graph.

`sym`, D̃^{-1/2} Ã D̃^{-1/2}, is symmetric: its eigenvalues lie in (-1, 1], and its singular values
are their magnitudes. `rw`, R = D̃^{-1} Ã, has the same eigenvalues but is not symmetric. Its
singular values are the roots of the eigenvalues of R Rᵀ, and some are above 1.

Nodes with the same neighbours (such as papers whose only link is to one survey) are **twins**. A
matrix that does not change when twins are swapped, as `sym`, `rw` and R Rᵀ, multiplies the
difference of two twins by a number c, so a group of k twins has the eigenvalue c k - 1 times. The
other eigenvalues are those of Qᵀ L Q, where Q has a column of unit length for each group. For
PubMed this matrix has 13,013 rows instead of 19,717.

Eigenvalues are accurate to rounding, singular values near zero to about 1e-7, because they are
roots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from matplotlib.figure import Figure

from kryograph.data import Dataset, dataset_title
from kryograph.engine.machine import available_memory
from kryograph.errors import KryographError
from kryograph.figures import style
from kryograph.figures.figure import FigureResult
from kryograph.figures.style import add_legend, letter_titles, panels, styled
from kryograph.graph import Graph, Indices
from kryograph.operators import operator
from kryograph.text import OnProgress, gigabytes, ignore_progress

RW = r"$\tilde{D}^{-1}\tilde{A}$"
SYM = r"$\tilde{D}^{-1/2}\tilde{A}\tilde{D}^{-1/2}$"

Eigenvalues = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spectrum:
    """All N values of each kind, in decreasing order; both operators have the same eigenvalues."""

    eigenvalues: Eigenvalues
    singular_sym: Eigenvalues
    singular_rw: Eigenvalues

    @property
    def gap(self) -> float:
        """1 - |λ| for the largest |λ| below 1; powers of L converge like (1 - gap)^m."""
        below = self.singular_sym[self.singular_sym < 1 - 1e-9]
        return float(1 - below.max(initial=0.0))


def compute_spectra(
    datasets: Mapping[str, Dataset], progress: OnProgress = ignore_progress
) -> FigureResult:
    """Compute and draw the spectrum of each data set's graph."""
    spectra = {}
    for index, (name, dataset) in enumerate(datasets.items()):
        progress(f"{name}, {dataset.graph.n:,} nodes", index / len(datasets))
        spectra[name] = spectrum(dataset.graph)
    summary = spectrum_summary(spectra)
    headings = (
        *("graph", "nodes", "λ smallest", "1 − |λ₂|"),
        *("largest singular value, sym", "rw"),
    )
    forms = ("{:,}", "{:.4f}", "{:.2e}", "{:.4f}", "{:.4f}")
    lines = [
        (name, *(form.format(value) for form, value in zip(forms, row.values(), strict=True)))
        for name, row in summary.items()
    ]
    return FigureResult(
        {"": draw_spectra(spectra)},
        spectrum_rows(spectra),
        {"graphs": summary},
        [(headings, lines)],
    )


def twins(adjacency: sp.csr_array) -> Indices:
    """Group number of every node; nodes of a group have the same neighbours and weights.

    >>> from kryograph.data import toy
    >>> twins(toy.star(5).adjacency).tolist()
    [0, 1, 1, 1, 1]
    """
    adjacency = sp.csr_array(adjacency)
    adjacency.sort_indices()
    groups: dict[tuple[bytes, bytes], int] = {}
    ends = zip(adjacency.indptr[:-1], adjacency.indptr[1:], strict=True)
    keys = [(adjacency.indices[a:b].tobytes(), adjacency.data[a:b].tobytes()) for a, b in ends]
    return np.array([groups.setdefault(key, len(groups)) for key in keys], dtype=np.int64)


def spectrum(graph: Graph) -> Spectrum:
    """Compute the spectrum of a graph."""
    groups = twins(graph.adjacency)
    walk = operator(graph, "rw").matrix
    eigenvalues = _eigenvalues(operator(graph, "sym").matrix, groups)
    squares = _eigenvalues(walk @ walk.T, groups)
    return Spectrum(
        eigenvalues=eigenvalues,
        singular_sym=np.sort(abs(eigenvalues))[::-1],
        singular_rw=np.sqrt(squares.clip(min=0)),
    )


def _eigenvalues(matrix: sp.csr_array, groups: Indices) -> Eigenvalues:
    """Eigenvalues, in decreasing order, of a symmetric matrix on which twins can be swapped."""
    n, sizes = len(groups), np.bincount(groups)
    # LAPACK needs a copy of the matrix with a row for each group.
    needed, available = 2.2 * 8 * len(sizes) ** 2, available_memory()
    if available is not None and needed > available:
        raise KryographError(
            f"The spectrum of {len(sizes):,} nodes needs {gigabytes(needed)} of memory; "
            f"{gigabytes(available)} are available. Choose other data sets with --datasets."
        )
    indicators = sp.csr_array((1 / np.sqrt(sizes[groups]), (np.arange(n), groups)))
    quotient = torch.from_numpy((indicators.T @ matrix @ indicators).toarray())
    # For each twin after the first of its group: its diagonal entry minus the entry at (twin,
    # first), which is 0 for `sym` but not for R Rᵀ.
    first = np.unique(groups, return_index=True)[1]
    later = np.setdiff1d(np.arange(n), first)
    selection = (np.ones(len(later)), (np.arange(len(later)), first[groups[later]]))
    partner = sp.csr_array(selection, shape=(len(later), n))
    of_twins = matrix.diagonal()[later] - (matrix[later] * partner).sum(axis=1)
    of_groups = torch.linalg.eigvalsh(quotient).numpy()
    return np.sort(np.concatenate([of_groups, of_twins]))[::-1].copy()


def spectrum_rows(spectra: Mapping[str, Spectrum]) -> list[dict[str, object]]:
    """Values of each graph at each place in the decreasing order."""
    return [
        {"graph": name, "place": i, "eigenvalue": value, "singular_sym": sym, "singular_rw": rw}
        for name, s in spectra.items()
        for i, (value, sym, rw) in enumerate(
            np.stack([s.eigenvalues, s.singular_sym, s.singular_rw], axis=1).tolist(), start=1
        )
    ]


def spectrum_summary(spectra: Mapping[str, Spectrum]) -> dict[str, dict[str, float]]:
    """Size, smallest eigenvalue, gap and largest singular values of each graph."""
    return {
        name: {
            "nodes": len(spectrum.eigenvalues),
            "smallest_eigenvalue": float(spectrum.eigenvalues[-1]),
            "gap": spectrum.gap,
            "largest_singular_value_sym": float(spectrum.singular_sym[0]),
            "largest_singular_value_rw": float(spectrum.singular_rw[0]),
        }
        for name, spectrum in spectra.items()
    }


@styled
def draw_spectra(spectra: Mapping[str, Spectrum]) -> Figure:
    """Draw a panel for each graph with the values of both operators in decreasing order."""
    figure, axes = panels(1, len(spectra), 2.75, sharey=True)
    for axis, spectrum in zip(axes, spectra.values(), strict=True):
        n = len(spectrum.eigenvalues)
        axis.axhline(0, color=style.BLACK, linewidth=0.6)
        for values, colour, dashes, label in (
            (spectrum.singular_rw, style.RED, "-", f"singular values, {RW}"),
            (spectrum.singular_sym, style.BLUE, style.DASHED, f"singular values, {SYM}"),
            (spectrum.eigenvalues, style.GREY, style.DOTTED, "eigenvalues of both"),
        ):
            axis.plot(np.arange(1, n + 1), values, color=colour, linestyle=dashes, label=label)
        # Room on the left, because the largest values are a few of thousands.
        axis.set(xlim=(-0.02 * n, n), xlabel="place in the order")
        axis.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        axis.locator_params(axis="x", nbins=4)
    letter_titles(axes, [dataset_title(name) for name in spectra])
    axes[0].set_ylabel("value")
    add_legend(figure, loc="outside lower center", ncols=3)
    return figure
