"""What the README shows is what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import kryograph as kg
from kryograph import cli
from kryograph.data import Dataset

pytestmark = pytest.mark.slow

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def test_the_python_examples_run(cora: Dataset) -> None:
    first, second = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict[str, object] = {}
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


def test_every_command_and_option_exists() -> None:
    shell = "\n".join(re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL))
    lines = re.findall(r"^kryograph ([^#\n]*)", shell, flags=re.MULTILINE)
    assert lines
    for line in lines:
        options = re.findall(r"--[a-z-]+", line)
        words = [word for word in line.split() if not word.startswith("-")]
        command = words[:2] if words[0] in ("data", "bench", "reproduce") else words[:1]
        shown = CliRunner().invoke(cli.app, [*command, "--help"])
        assert shown.exit_code == 0, line
        assert set(options) <= set(re.findall(r"--[a-z-]+", shown.output)), line


def test_files_that_it_links_to_exist() -> None:
    root = Path(__file__).parent.parent
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert target.startswith("https://") or (root / target).exists(), target
