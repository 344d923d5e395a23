"""Several seeds of a default run, as `kryograph train` does them, against literal runs in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

from torch import nn

from kryograph.data import load
from kryograph.engine.forward import Forward, Nodes, WholeGraph
from kryograph.experiments.resolve import resolve_settings
from kryograph.nn.functional import Masks, NodeFeatures
from kryograph.operators import Operator
from kryograph.runs.job import Scenario
from kryograph.runs.runner import Plan
from kryograph.systems.truncated_krylov import TruncatedKrylovSystem
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SEEDS, QUICK_SEEDS = 10, 2
LITERAL_EPOCHS = 25
"""So many say what an epoch of the literal form takes: each does the same work."""


class LiteralKrylov(TruncatedKrylovSystem):
    """The same system, computed as it is written."""

    def forward(
        self, network: nn.Module, x: NodeFeatures, L: Operator, nodes: Nodes, masks: Masks
    ) -> Forward:
        """Every node, every time."""
        return WholeGraph(network, x, L, nodes, masks)


def measure_seeds(
    *, quick: bool = False, on_case: Callable[[str], None] = lambda case: None
) -> dict[str, Any]:
    """Wall-clock seconds of all seeds, and those that as many literal epochs would take.

    Args:
        quick: Two seeds, not ten.
        on_case: Told what is measured next.
    """
    column = Scenario("cora", "public", "validation")
    system, source = resolve_settings("truncated-krylov", column)
    seeds = QUICK_SEEDS if quick else SEEDS
    plan = Plan(system, source, load("cora"), column, seeds)
    estimate = plan.estimate()
    assert estimate is not None
    jobs = plan.choose_jobs(estimate)
    on_case(f"{seeds} seeds of truncated-krylov on cora, {jobs} at a time")
    start = perf_counter()
    runs = list(replace(plan, jobs=jobs).runs())
    together = perf_counter() - start
    on_case("the literal form")
    few = Conditions(rule=StopRule(max_epochs=LITERAL_EPOCHS))
    literal = replace(plan, system=LiteralKrylov(system.settings), seeds=1, conditions=few).run(0)
    each = literal.seconds / literal.epochs
    sequential = each * sum(run.epochs for run in runs)
    return {
        "seeds": seeds,
        "jobs": jobs,
        "seconds": together,
        "literal_epoch_seconds": each,
        "literal_seconds": sequential,
        "speedup": sequential / together,
    }
