"""`kryograph.figures.depth`: variants, depths and scores over seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from kryograph.data import Dataset, toy
from kryograph.errors import UsageError
from kryograph.figures.depth import (
    COMMON,
    VARIANT_LOOKS,
    VARIANTS,
    accuracy_over_seeds,
    at_depth,
    check_depths,
    compute_depth,
    draw_depths,
    format_interval,
)
from kryograph.nn import GCN
from kryograph.operators import operator
from kryograph.runs.job import Job, Scenario
from kryograph.runs.perform import perform
from kryograph.systems import system
from kryograph.systems.deep_krylov import DeepKrylov
from kryograph.systems.network import NetworkSystem


def test_all_lines_share_what_is_not_their_architecture() -> None:
    for variant in VARIANTS:
        settings = at_depth(variant, 8).settings.as_dict()
        assert settings["layers"] == 8
        assert {name: settings[name] for name in COMMON} == dict(COMMON)
    assert at_depth("truncated Krylov", 1).settings.order == 3


@pytest.mark.parametrize("f", ["relu", "tanh"])
def test_the_line_of_gcn_is_gcn(f: str) -> None:
    variant = {"relu": "GCN, ReLU", "tanh": "GCN, tanh"}[f]
    method = at_depth(variant, 3)
    assert isinstance(method, NetworkSystem)
    general = method.network(5, 2)
    assert isinstance(general, DeepKrylov)
    special = GCN(5, 16, 2, layers=3, activation=f)
    special.load_state_dict(general.state_dict())
    L, x = operator(toy.two_cliques(4)), torch.randn(8, 5, generator=torch.manual_seed(0))
    general.eval()
    special.eval()
    assert torch.allclose(general(x, L), special(x, L), atol=1e-6)


def test_depths_are_ordered_and_at_least_one() -> None:
    assert check_depths([4, 1, 4]) == (1, 4)
    with pytest.raises(UsageError, match="at least 1; got 0, 2"):
        check_depths([0, 2])
    with pytest.raises(UsageError, match="got none"):
        check_depths([])
    with pytest.raises(UsageError, match="Unknown variant 'gcn'"):
        at_depth("gcn", 1)


def test_a_point_has_an_interval_and_is_the_same_again(data: Dataset) -> None:
    method = at_depth("Snowball", 1)
    row = accuracy_over_seeds(method, data, 2, stop="3")
    assert (row["runs"], row["diverged"]) == (2, 0)
    assert 0 <= row["low"] <= row["mean"] <= row["high"] <= 1
    assert accuracy_over_seeds(method, data, 2, stop="3") == row
    alone = accuracy_over_seeds(method, data, 1, stop="3")
    assert (alone["low"], alone["std"]) == (None, None)


def test_a_random_split_is_drawn_for_each_seed(data: Dataset) -> None:
    method = at_depth("Snowball", 1)
    no_public = replace(data, public=None)
    with pytest.raises(UsageError, match="no public split"):
        accuracy_over_seeds(method, no_public, 2, stop="3")
    row = accuracy_over_seeds(method, no_public, 2, split="5 per class", stop="3")
    job = Job(method, "figure", Scenario(data.name, "5 per class", "validation"), 1, stop="3")
    scores = [perform(replace(job, seed=seed), no_public).test_accuracy for seed in (0, 1)]
    assert row["mean"] == pytest.approx(np.mean(np.array(scores, dtype=float)))


def test_runs_that_diverge_are_counted_and_left_out(data: Dataset) -> None:
    wild = system("linear-snowball", {"lr": 999.0, "layers": 30, "hidden": 8, "dropout": 0.0})
    row = accuracy_over_seeds(wild, data, 2, stop="40")
    assert row["diverged"] == 2
    assert (row["runs"], row["mean"], row["low"]) == (0, None, None)


@pytest.mark.slow
def test_the_figure_has_a_point_for_every_depth_and_variant(data: Dataset) -> None:
    result = compute_depth(data, (1, 2), seeds=1, stop="3")
    assert [(row["depth"], row["variant"]) for row in result.rows] == [
        (depth, variant) for depth in (1, 2) for variant in VARIANTS
    ]
    [(headings, lines)] = result.tables
    assert headings == ("test % after layers", "1", "2")
    first = result.rows[0]["mean"]
    assert isinstance(first, float)
    assert lines[0][:2] == ("GCN, ReLU", f"{100 * first:.1f}")
    assert result.about["settings"]["Snowball"]["layers"] == "depth"
    assert result.drawings[""].axes[0].get_title() == "Synthetic, public split, 1 seed"


def test_intervals_are_half_widths_in_per_cent() -> None:
    assert format_interval({"mean": 0.8, "low": 0.79, "high": 0.816}) == "80.0 ± 1.3"
    assert format_interval({"mean": 0.8, "low": None, "high": None}) == "80.0"
    assert format_interval({"mean": None}) == "diverged"


def test_every_variant_has_a_look_of_its_own() -> None:
    assert list(VARIANT_LOOKS) == list(VARIANTS)
    looks = [tuple(map(str, look.values())) for look in VARIANT_LOOKS.values()]
    assert len(set(looks)) == len(looks)


def test_points_without_a_mean_are_left_out() -> None:
    common = {"variant": "Snowball", "std": None, "low": None, "high": None}
    points = [{**common, "depth": 1, "mean": 0.8}, {**common, "depth": 2, "mean": None}]
    axis = draw_depths(points, "title").axes[0]
    drawn = {c.get_label(): c for c in axis.containers}["Snowball"]
    assert list(drawn.lines[0].get_ydata()) == [80]
