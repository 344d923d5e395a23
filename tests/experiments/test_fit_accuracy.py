from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from kryograph.cli.bench import app
from kryograph.data import Dataset, synthetic_citations
from kryograph.errors import UsageError
from kryograph.experiments import fit_accuracy as fitting
from kryograph.experiments.fit_accuracy import FitEvaluation, draw, draws
from kryograph.labelling.label import FitProgress

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=1700, classes=2, words=30, signal=0.6, seed=1)


@pytest.fixture(scope="module")
def told() -> list[tuple[str, float]]:
    return []


@pytest.fixture(scope="module")
def one(data: Dataset, told: list[tuple[str, float]]) -> FitEvaluation:
    return draw(
        data, 2, seed=0, progress=lambda stage, done, total: told.append((stage, done / total))
    )


def test_a_draw_says_what_came_of_it(data: Dataset, one: FitEvaluation) -> None:
    split = data.split(2, seed=0)
    assert (one.dataset, one.per_class, one.seed) == (data.name, 2, 0)
    assert one.split_digest == split.digest
    assert one.test_accuracy > 0.7
    assert 0 <= one.held_out_accuracy <= 1
    assert 1 <= one.set_size <= 2
    # Four labels are too few to leave any class out of a 90 % set.
    assert one.coverage == 1


def test_a_draw_tells_how_far_it_is(one: FitEvaluation, told: list[tuple[str, float]]) -> None:
    case = f"seed 0 of {one.dataset}, 2 labels per class"
    stages = dict.fromkeys(stage for stage, _ in told)
    assert list(stages) == [f"{case}, {what}" for what in ("choosing", "checking", "training")]
    shares = [share for stage, share in told if stage.endswith("choosing")]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)


def test_labels_that_were_not_given_change_only_the_scores(
    data: Dataset, one: FitEvaluation
) -> None:
    split = data.split(2, seed=0)
    wrong = data.labels.copy()
    wrong[split.test] = 1 - wrong[split.test]

    class Same(Dataset):
        def split(self, how: object = "public", *, seed: int = 0) -> object:  # type: ignore[override]
            return split

    other = draw(Same(**vars(replace(data, labels=wrong))), 2, seed=0)
    assert other.test_accuracy == pytest.approx(1 - one.test_accuracy)
    assert other.prototypes_accuracy == pytest.approx(1 - one.prototypes_accuracy)
    assert (other.chosen, other.held_out_accuracy) == (one.chosen, one.held_out_accuracy)


def test_a_file_keeps_the_draws_that_it_has(
    data: Dataset, one: FitEvaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def instant(
        dataset: Dataset, per_class: int, seed: int, progress: FitProgress
    ) -> FitEvaluation:
        asked.append(seed)
        return replace(one, seed=seed)

    monkeypatch.setattr(fitting, "draw", instant)
    file = tmp_path / "new" / "fit.csv"
    first = draws(data, 2, 2, file)
    again = draws(data, 2, 3, file)
    assert asked == [0, 1, 2]
    assert len(file.read_text().splitlines()) == 4
    for before, after in zip(first, again, strict=False):
        assert after.seed == before.seed
        assert np.isclose(after.test_accuracy, before.test_accuracy, atol=1e-4)


def test_bad_input_is_a_sentence(data: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--draws must be at least 1; it is 0"):
        draws(data, 2, 0)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="was not written by `kryograph bench fit`"):
        draws(data, 2, 1, tmp_path / "other.csv")


def test_the_command_shows_intervals_and_gives_json(
    one: FitEvaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def instant(
        dataset: Dataset, per_class: int, seed: int, progress: FitProgress
    ) -> FitEvaluation:
        return replace(one, seed=seed, test_accuracy=0.8 + 0.02 * seed)

    monkeypatch.setattr(fitting, "draw", instant)
    asked = ["fit", "--dataset", "synthetic", "--per-class", "2", "--draws", "3"]
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    assert "82.0" in shown.stdout
    assert "77.0 to 87.0" in shown.stdout
    found = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert [each["seed"] for each in found["draws"]] == [0, 1, 2]
    assert found["summary"]["test_accuracy"]["n"] == 3
