from __future__ import annotations

import csv
from collections import Counter
from importlib import resources

import pytest

from kryograph.data import DATASETS
from kryograph.errors import UsageError
from kryograph.experiments.published import Published, find_published, paper_settings, published
from kryograph.runs.job import Scenario
from kryograph.systems import SYSTEMS, system

ROWS = list(
    csv.DictReader(
        resources.files("kryograph.experiments")
        .joinpath("published_settings.csv")
        .read_text("utf-8")
        .splitlines()
    )
)
CORA_PUBLIC = Scenario("cora", "public", "validation")


def row_of(system_name: str, dataset: str, split: str, protocol: str = "validation") -> Published:
    row = find_published(system_name, Scenario(dataset, split, protocol))
    assert row is not None
    return row


# The table


def test_there_are_81_rows_33_and_48() -> None:
    assert len(published()) == len(ROWS) == 81
    per_protocol = Counter(row.scenario.protocol for row in published())
    assert per_protocol == {"validation": 33, "no-validation": 48}


@pytest.mark.parametrize("name", ["linear-snowball", "snowball", "truncated-krylov"])
def test_rows_per_system_and_data_set(name: str) -> None:
    counts = Counter(
        (row.scenario.protocol, row.scenario.dataset) for row in published() if row.system == name
    )
    assert counts == {
        ("validation", "cora"): 4,
        ("validation", "citeseer"): 3,
        ("validation", "pubmed"): 4,
        ("no-validation", "cora"): 6,
        ("no-validation", "citeseer"): 6,
        ("no-validation", "pubmed"): 4,
    }


def test_no_column_has_two_rows() -> None:
    cells = Counter((row.system, row.scenario) for row in published())
    assert max(cells.values()) == 1


@pytest.mark.parametrize("at", range(81))
def test_each_row_is_accepted_by_its_system(at: int) -> None:
    row, printed = published()[at], ROWS[at]
    assert row.scenario.dataset in DATASETS
    assert type(row.settings) is SYSTEMS[row.system].settings_type
    assert system(row.system, row.settings).settings == row.settings
    assert row.accuracy == pytest.approx(float(printed["accuracy"]) / 100, abs=1e-12)
    assert 0.5 < row.accuracy < 0.9
    assert row.source.startswith("Luan et al. 2019, hyperparameter table with")
    assert ("without validation" in row.source) is (row.scenario.protocol == "no-validation")
    values = row.settings.as_dict()
    for name in ("weight_decay", "dropout", "hidden", "layers"):
        assert values[name] == float(printed[name])
    assert values["lr"] == float(printed["lr_read"] or printed["lr"])
    assert values["optimizer"] == printed["optimizer"]
    if row.system == "truncated-krylov":
        assert values["order"] == int(printed["order"])
        assert (values["layers"], values["classifier"]) == (1, True)
    else:
        assert printed["order"] == ""


def test_the_odd_learning_rate_stands_as_printed_and_is_read_otherwise() -> None:
    odd = [(row, printed) for row, printed in zip(published(), ROWS, strict=True) if row.note]
    assert len(odd) == 1
    row, printed = odd[0]
    assert (row.system, str(row.scenario)) == ("truncated-krylov", "pubmed 0.05%, no-validation")
    assert printed["lr"] == "2.3342E+04"
    assert row.settings.as_dict()["lr"] == 2.3342e-04
    assert "2.3342E+04" in row.note
    assert [printed["lr_read"] for printed in ROWS if printed["lr_read"]] == ["2.3342E-04"]


def test_public_columns() -> None:
    public = {
        (row.scenario.dataset, row.scenario.protocol) for row in published() if is_public(row)
    }
    assert public == {(name, "validation") for name in ("cora", "citeseer", "pubmed")}
    assert sum(is_public(row) for row in published()) == 9
    assert {printed["label_rate"] for printed in ROWS if printed["public"] == "yes"} == {
        *("5.2%", "3.6%", "0.3%")
    }


def is_public(row: Published) -> bool:
    return row.scenario.split == "public"


@pytest.mark.parametrize(
    ("name", "dataset", "split", "protocol", "accuracy"),
    [
        ("truncated-krylov", "cora", "public", "validation", 0.8351),
        ("truncated-krylov", "citeseer", "public", "validation", 0.7389),
        ("truncated-krylov", "pubmed", "public", "validation", 0.7988),
        ("snowball", "cora", "public", "validation", 0.8360),
        ("linear-snowball", "citeseer", "public", "validation", 0.7354),
        ("truncated-krylov", "cora", "0.5%", "validation", 0.7389),
        ("truncated-krylov", "cora", "0.5%", "no-validation", 0.7296),
        ("linear-snowball", "pubmed", "0.03%", "no-validation", 0.64133),
        ("snowball", "citeseer", "5%", "no-validation", 0.728),
    ],
)
def test_cells_of_the_paper(
    name: str, dataset: str, split: str, protocol: str, accuracy: float
) -> None:
    assert row_of(name, dataset, split, protocol).accuracy == accuracy


def test_a_row_by_hand() -> None:
    assert row_of("truncated-krylov", "cora", "public").settings.as_dict() == {
        "hidden": 1950,
        "layers": 1,
        "dropout": 0.98403,
        "lr": 1.0922e-03,
        "weight_decay": 3.5966e-02,
        "optimizer": "adam",
        "input_dropout": 0.0,
        "order": 10,
        "classifier": True,
    }


# Columns


@pytest.mark.parametrize("text", ["1%", "1.0 %", "0.01", " 1 %", "1e-2", "1.00%"])
def test_a_rate_is_matched_however_it_is_written(text: str) -> None:
    assert row_of("truncated-krylov", "cora", text).accuracy == 0.7738


def test_columns_differ_by_data_set_rate_and_protocol() -> None:
    column = Scenario("cora", "1%", "validation")
    assert column == Scenario("cora", "0.01", "validation")
    others = [
        Scenario("citeseer", "1%", "validation"),
        Scenario("cora", "1%", "no-validation"),
        Scenario("cora", "2%", "validation"),
        Scenario("cora", "1 per class", "validation"),
        CORA_PUBLIC,
    ]
    assert column not in others
    assert str(column) == str(Scenario("cora", "1.0 %", "validation")) == "cora 1%, validation"


def test_a_column_with_a_bad_rate_cannot_be_made() -> None:
    with pytest.raises(UsageError, match="The label rate '5' is more than 100%"):
        Scenario("cora", "5", "validation")
    with pytest.raises(UsageError, match="The label rate 'x per class'"):
        Scenario("cora", "x per class", "validation")


def test_the_public_split_is_not_the_random_one_of_its_size() -> None:
    assert find_published("truncated-krylov", Scenario("cora", "5.2%", "validation")) is None


@pytest.mark.parametrize("dataset", ["cora", "synthetic"])
@pytest.mark.parametrize("split", ["20 per class", "1 per class"])
def test_a_number_of_nodes_per_class_is_no_published_column(dataset: str, split: str) -> None:
    assert find_published("snowball", Scenario(dataset, split, "validation")) is None


def test_a_missing_column_lists_those_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        paper_settings("snowball", Scenario("cora", "2%", "validation"))
    message = str(caught.value)
    assert message.startswith("The paper prints no settings of snowball for cora 2%, validation")
    assert message.endswith(", only for 0.5%, 1%, 3%, public: use --settings default.")
    with pytest.raises(UsageError, match="for synthetic public, validation, nor for any other"):
        paper_settings("snowball", Scenario("synthetic", "public", "validation"))
