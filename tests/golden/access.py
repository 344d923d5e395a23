"""The only golden-test functions that import internal modules; adapt them when modules move."""

from __future__ import annotations

from typing import Any

import torch
import typer
from torch import nn

from kryograph import System, Task
from kryograph.cli import app
from kryograph.runs.job import Job, Scenario
from kryograph.training.loop import Conditions
from kryograph.training.stopping import exactly


def command_line() -> Any:
    """The command group of `kryograph`, of a class of the click that is part of typer."""
    return typer.main.get_command(app)


def job_record(system: System, dataset: str, split: str, protocol: str) -> dict[str, Any]:
    """The identity and the key of the job with seed 0 in one scenario."""
    job = Job(system, "default", Scenario(dataset, split, protocol), seed=0)
    return {"identity": job.identity, "key": job.key}


def for_epochs(epochs: int) -> Conditions:
    """Training conditions that run exactly this many epochs and keep the last one."""
    return Conditions(rule=exactly(epochs))


def initial_network(system: System, task: Task) -> nn.Module | None:
    """The network of a system with the weights of seed 0; None if the system has no network."""
    build = getattr(system, "network", None)
    if build is None:
        return None
    network: nn.Module = build(task.graph.features.shape[1], len(task.classes))
    network.reset_parameters(torch.Generator().manual_seed(0))  # type: ignore[operator]
    return network
