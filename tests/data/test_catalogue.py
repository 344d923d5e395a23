from __future__ import annotations

import pytest

from kryograph.data import DATASETS, Dataset, fetch, load
from kryograph.errors import UsageError


def test_the_order_and_the_names() -> None:
    assert list(DATASETS) == ["cora", "citeseer", "pubmed", "synthetic"]
    assert all(entry.name == name for name, entry in DATASETS.items())


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
