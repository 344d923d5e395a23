"""Python examples and links of the README; `test_docs.py` checks its commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import kryograph as kg
from kryograph.data import Dataset

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


@pytest.mark.slow
def test_python_examples_run(cora: Dataset) -> None:
    tables, first, second = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(tables, names)
    labelled = names["labelled"]
    assert isinstance(labelled, kg.LabelledGraph)
    table = labelled.predictions()
    assert table["predicted"].to_pylist() == ["art", "art", "art", "law", "law", "law"]
    exec(first, names)
    fit = names["fit"]
    assert isinstance(fit, kg.Fit)
    assert kg.final_score(fit, cora) > 0.8
    assert fit.predict()[0] in cora.classes

    data = cora.graph.to_pyg()
    names = {"x": data.x, "edge_index": data.edge_index}
    exec(second, names)
    out = names["out"]
    assert isinstance(out, torch.Tensor)
    assert out.shape == (2708, 64)


def test_linked_files_exist() -> None:
    root = Path(__file__).parent.parent
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert target.startswith("https://") or (root / target).exists(), target
