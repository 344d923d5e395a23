from __future__ import annotations

from pathlib import Path

import pytest

from kryograph.data import DATASETS, Dataset, Source, catalogue, dataset_title, fetch, load
from kryograph.errors import UsageError
from kryograph.registry import Registry


def test_the_order_and_the_names() -> None:
    assert list(DATASETS)[:4] == ["cora", "citeseer", "pubmed", "synthetic"]
    assert all(source.name == name for name, source in DATASETS.items())
    assert [DATASETS[name].title for name in DATASETS][:3] == ["Cora", "CiteSeer", "PubMed"]


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_summaries_say_the_true_counts(name: str, request: pytest.FixtureRequest) -> None:
    data: Dataset = request.getfixturevalue(name)
    graph = data.graph
    for count in (graph.n, graph.edges, graph.features.shape[1], len(data.classes)):
        assert f" {count:,} " in DATASETS[name].summary


def test_cora_names_its_classes(cora: Dataset) -> None:
    assert cora.classes[1] == "Reinforcement Learning"
    assert cora.labels[cora.classes.index("Neural Networks") == cora.labels].size == 818


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="Unknown data set 'coar': did you mean 'cora'"):
        load("coar")
    with pytest.raises(UsageError, match="did you mean 'pubmed'"):
        fetch(["cora", "pubmd"])


def test_what_needs_no_files_is_not_fetched() -> None:
    assert fetch(["synthetic"]) == {}
    assert load("synthetic", normalise=False).graph.features.sum() > 2708


def test_titles_are_for_figures() -> None:
    names = ("citeseer", "folder/graph.npz#0123abcd", "two cliques")
    assert [dataset_title(name) for name in names] == ["CiteSeer", "graph.npz", "two cliques"]


PLUGIN = """
from kryograph.data import LoadOptions, Source, synthetic_citations

def small(options: LoadOptions):
    return synthetic_citations(n=100, classes=2, seed=3)

SOURCE = Source("small", "Small", "100 papers", "none", compute=small)
"""


def test_a_plug_in_is_a_source_of_an_installed_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small_plugin.py").write_text(PLUGIN)
    about = tmp_path / "small_plugin-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: small-plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[kryograph.datasets]\nsmall = small_plugin:SOURCE\nlarge = small_plugin:SOURCE\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    fresh: Registry[Source] = Registry("data set", DATASETS.group, catalogue._check)
    monkeypatch.setattr("kryograph.data.catalogue.DATASETS", fresh)
    assert load("small").graph.n == 100
    assert fresh.distribution("small") == ("small-plugin", "1.0")
    with pytest.raises(UsageError, match="Unknown data set 'smal': did you mean 'small'"):
        load("smal")
    with pytest.raises(
        UsageError, match=r"'large' must be a Source of that name, not Source\(name="
    ):
        load("large")
