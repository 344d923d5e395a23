"""`kryograph.figures.embedding`: hidden features of trained systems in the plane."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from kryograph.data import Dataset
from kryograph.figures.embedding import (
    CLASS_LOOKS,
    EMBEDDED_SYSTEMS,
    PlacedFeatures,
    compute_embedding,
    draw_embeddings,
    embed_nodes,
    embedding_rows,
)
from kryograph.figures.figure import draw_file
from kryograph.graph import UNKNOWN
from kryograph.runs.job import Job, Scenario
from kryograph.runs.perform import perform
from kryograph.systems import system


def test_the_score_is_that_of_the_same_run_and_neighbours_have_the_same_class(
    data: Dataset,
) -> None:
    embedding = embed_nodes(data, "snowball", seed=2, stop="20")
    job = Job(system("snowball"), "default", Scenario(data.name, "public", "validation"), seed=2)
    assert embedding.test_accuracy == perform(replace(job, stop="20"), data).test_accuracy
    assert embedding.positions.shape == (300, 2)
    distance = np.linalg.norm(embedding.positions[:, None] - embedding.positions, axis=2)
    nearest = np.argsort(distance, axis=1)[:, 1]
    assert (data.labels == data.labels[nearest]).mean() > 0.6  # by chance, a third
    random = embed_nodes(data, "snowball", 2, "5 per class", "20")
    drawn = replace(job, scenario=Scenario(data.name, "5 per class", "validation"), stop="20")
    assert random.test_accuracy == perform(drawn, data).test_accuracy
    assert embedding.width == system("snowball").settings.as_dict()["hidden"]


def test_the_figure_has_a_panel_a_row_and_a_score_for_every_proposal(data: Dataset) -> None:
    stages: list[str] = []
    result = compute_embedding(data, stop="3", progress=lambda stage, _: stages.append(stage))
    titles = [axis.get_title() for axis in result.drawings[""].axes]
    assert titles == ["(a) Linear Snowball", "(b) Snowball", "(c) Truncated Krylov"]
    assert stages == [f"training and placing {name}" for name in EMBEDDED_SYSTEMS]
    assert (result.about["dataset"], result.about["seed"]) == (data.name, 0)
    [(_, lines)] = result.tables
    for (name, _, score), (key, entry) in zip(lines, result.about["systems"].items(), strict=True):
        assert (name, score) == (key, f"{100 * entry['test_accuracy']:.1f}")
    assert len(result.rows) == 3 * 300


def test_a_node_without_class_has_an_empty_class_in_its_row(data: Dataset) -> None:
    partly = replace(data, labels=np.where(np.arange(300) == 7, UNKNOWN, data.labels))
    positions = np.arange(600.0).reshape(300, 2)
    rows = embedding_rows(partly, [PlacedFeatures("snowball", 0.75, 64, positions)])
    assert rows[7] == {"system": "snowball", "node": 7, "class": "", "x": 14.0, "y": 15.0}
    assert rows[8]["class"] == data.classes[data.labels[8]]


def test_every_class_has_its_nodes_in_its_colour(data: Dataset) -> None:
    positions = np.random.default_rng(0).standard_normal((300, 2))
    [axis] = draw_embeddings(data, [PlacedFeatures("snowball", 0.75, 64, positions)]).axes
    assert axis.get_xlabel() == "test accuracy 75.0 %"
    sizes = [len(np.asarray(points.get_offsets())) for points in axis.collections]
    assert sizes == np.bincount(data.labels).tolist()
    assert [points.get_label() for points in axis.collections] == list(data.classes)
    offsets = np.concatenate([np.asarray(points.get_offsets()) for points in axis.collections])
    assert np.ptp(offsets, axis=0).max() == pytest.approx(1)
    assert (offsets.max(axis=0) + offsets.min(axis=0)).tolist() == pytest.approx([0, 0])


@pytest.mark.parametrize("classes", [2, 3, 7])  # one row of the legend, and two
def test_no_title_is_cut(data: Dataset, tmp_path: Path, classes: int) -> None:
    drawn = replace(
        data, labels=data.labels % classes, classes=tuple(f"topic {c}" for c in range(classes))
    )
    positions = np.random.default_rng(0).standard_normal((300, 2))
    figure = draw_embeddings(
        drawn, [PlacedFeatures(name, 0.5, 64, positions) for name in EMBEDDED_SYSTEMS]
    )
    draw_file(figure, tmp_path / "map")
    pixels = imread(tmp_path / "map.png")[..., :3]
    assert pixels[:4].min() == 1  # white above the titles
    assert pixels[:30].min() < 0.5


def test_no_two_classes_share_colour_or_marker() -> None:
    colours, markers = zip(*CLASS_LOOKS, strict=True)
    assert len(set(colours)) == len(set(markers)) == len(CLASS_LOOKS)
