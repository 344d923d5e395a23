"""`kryograph.figures.spectrum`: every eigenvalue and singular value, also of twins."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kryograph.data import Dataset, toy
from kryograph.figures import spectrum as module
from kryograph.figures.spectrum import (
    Spectrum,
    compute_spectra,
    draw_spectra,
    spectrum,
    spectrum_rows,
    spectrum_summary,
    twins,
)
from kryograph.graph import Graph
from kryograph.operators import operator


def dense(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of `sym`, singular values of `rw`, without any trick."""
    sym, walk = (operator(graph, name).matrix.toarray() for name in ("sym", "rw"))
    return np.linalg.eigvalsh(sym)[::-1], np.linalg.svd(walk, compute_uv=False)


def agrees(graph: Graph) -> None:
    found = spectrum(graph)
    eigenvalues, singular = dense(graph)
    assert np.abs(found.eigenvalues - eigenvalues).max() < 1e-12
    # A singular value is a root: ε of its square are √ε of it, near zero.
    assert np.abs(found.singular_rw - singular).max() < 1e-6
    assert np.array_equal(found.singular_sym, np.sort(abs(found.eigenvalues))[::-1])


def test_leaves_of_a_star_are_twins_and_its_middle_is_not() -> None:
    assert twins(toy.star(6).adjacency).tolist() == [0, 1, 1, 1, 1, 1]
    assert twins(toy.isolated(3).adjacency).tolist() == [0, 0, 0]
    assert twins(toy.path(4).adjacency).tolist() == [0, 1, 2, 3]
    assert twins(toy.cycle(4).adjacency).tolist() == [0, 1, 0, 1]


def test_neighbours_of_other_weight_are_no_twins() -> None:
    weights = sp.csr_array(np.array([[0, 1, 2], [1, 0, 0], [2, 0, 0]], dtype=float))
    assert twins(weights).tolist() == [0, 1, 2]


def test_the_spectrum_of_a_star_can_be_said_aloud() -> None:
    # Leaves differ by 1/2 each; what is left is the star's middle and its leaves as one.
    found = spectrum(toy.star(5))
    assert found.eigenvalues == pytest.approx([1, 0.5, 0.5, 0.5, -0.3])
    assert found.gap == pytest.approx(0.5)


def test_the_complete_graph_has_a_single_eigenvalue_beside_zero() -> None:
    found = spectrum(toy.complete(6))
    assert found.eigenvalues == pytest.approx([1, 0, 0, 0, 0, 0], abs=1e-15)
    assert found.singular_rw[0] == pytest.approx(1)


@pytest.mark.parametrize(
    "graph",
    [
        toy.star(7),
        toy.cycle(4),
        toy.isolated(3),
        toy.two_cliques(4),
        toy.disjoint(toy.star(5), toy.path(4), toy.isolated(2), toy.cycle(4)),
    ],
    ids=str,
)
def test_twins_are_counted_as_they_should(graph: Graph) -> None:
    agrees(graph)


@settings(max_examples=40)
@given(st.integers(1, 9), st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=20))
def test_any_graph_has_the_spectrum_of_its_matrix(n: int, pairs: list[tuple[int, int]]) -> None:
    edges = {(min(i, j), max(i, j)) for i, j in pairs if i != j and max(i, j) < n}
    agrees(Graph.from_edges(np.array(sorted(edges), dtype=np.int64).reshape(-1, 2).T, n))


def test_walks_on_cora_have_singular_values_up_to_three(cora: Dataset) -> None:
    found = spectrum(cora.graph)
    assert found.singular_rw[0] == pytest.approx(3.0076, abs=1e-4)
    assert found.singular_sym[0] == pytest.approx(1)
    assert (abs(found.eigenvalues - 1) < 1e-9).sum() == 78  # one for each component
    assert len(found.eigenvalues) == cora.graph.n


def test_too_large_a_graph_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "available_memory", lambda: 100)
    with pytest.raises(module.KryographError, match="needs 0 MB of memory; 0 MB are available"):
        spectrum(toy.path(4))


def test_rows_summary_and_lines_have_the_same_numbers() -> None:
    spectra = {"star": Spectrum(np.array([1.0, -0.5]), np.array([1.0, 0.5]), np.array([2.0, 0.1]))}
    assert spectrum_rows(spectra)[1] == {
        "graph": "star",
        "place": 2,
        "eigenvalue": -0.5,
        "singular_sym": 0.5,
        "singular_rw": 0.1,
    }
    assert list(spectrum_rows(spectra)[0])[2:] == ["eigenvalue", "singular_sym", "singular_rw"]
    assert spectrum_summary(spectra)["star"] == {
        "nodes": 2,
        "smallest_eigenvalue": -0.5,
        "gap": 0.5,
        "largest_singular_value_sym": 1.0,
        "largest_singular_value_rw": 2.0,
    }
    [axis] = draw_spectra(spectra).axes
    drawn = [list(line.get_ydata()) for line in axis.lines[1:]]
    assert drawn == [[2.0, 0.1], [1.0, 0.5], [1.0, -0.5]]


def test_the_figure_has_a_panel_and_a_line_of_the_table_for_every_graph(data: Dataset) -> None:
    result = compute_spectra({"cora": data, "other": data})
    assert [axis.get_title() for axis in result.drawings[""].axes] == ["(a) Cora", "(b) other"]
    [(headings, lines)] = result.tables
    values = result.about["graphs"]["cora"]
    assert lines[0] == (
        *("cora", "300", f"{values['smallest_eigenvalue']:.4f}", f"{values['gap']:.2e}", "1.0000"),
        f"{values['largest_singular_value_rw']:.4f}",
    )
    assert len(headings) == len(lines[0])
    assert len(result.rows) == 600
