from __future__ import annotations

from pathlib import Path

import pytest

from kryograph.errors import UsageError
from kryograph.labelling.calibration import Calibration
from kryograph.labelling.output import calibration_of, read_suggestions


def test_a_calibration_is_read_back() -> None:
    said = {"calibration": {"temperature": 2.0, "coverage": 0.9, "threshold": 0.1}}
    assert calibration_of(said) == Calibration(2.0, 0.9, 0.1)


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"calibration": None},
        {"calibration": {"temperature": "hot", "coverage": 0.9, "threshold": 0}},
        {"calibration": {"temperature": 0, "coverage": 0.9, "threshold": 0}},
        {"calibration": {"temperature": 1, "coverage": 2, "threshold": 0}},
    ],
)
def test_a_model_without_a_calibration_gets_a_sentence(extra: object) -> None:
    with pytest.raises(UsageError, match="calibration"):
        calibration_of(extra)


def test_suggestions_that_are_no_text_get_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "suggestions.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read"):
        read_suggestions(tmp_path)
