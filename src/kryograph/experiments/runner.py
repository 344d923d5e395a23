"""Repeat a run over seeds: each draws its own weights and, unless it is public, its own split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from kryograph.data import Dataset
from kryograph.systems import System
from kryograph.training.loop import Conditions, Epoch
from kryograph.training.protocol import Run, run


def repeat(
    system: System,
    dataset: Dataset,
    how: str | int,
    *,
    seeds: range,
    protocol: str = "validation",
    conditions: Conditions | None = None,
    on_epoch: Callable[[int, Epoch], None] = lambda seed, epoch: None,
) -> Iterator[Run]:
    """Yield the runs one by one, so that what is finished survives an interruption.

    `how` names the split: "public", a label rate ("1%") or a number of nodes per class.
    """
    splits = [dataset.split(how, seed=seed) for seed in seeds]
    for seed, split in zip(seeds, splits, strict=True):
        yield run(
            system,
            dataset,
            split,
            seed=seed,
            protocol=protocol,
            conditions=conditions,
            on_epoch=partial(on_epoch, seed),
        )
