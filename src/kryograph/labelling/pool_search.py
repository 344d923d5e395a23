"""Search for better settings of the heads of a pool, on held-out labels."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kryograph.basis import Basis
from kryograph.errors import KryographError
from kryograph.graph import NO_NODES, Task
from kryograph.labelling.candidates import create_study
from kryograph.systems import System, system
from kryograph.systems.base import member_text
from kryograph.systems.head import HeadSystem
from kryograph.systems.pool import PoolSystem
from kryograph.systems.pool_members import held_out_losses, pool_folds
from kryograph.systems.settings import sample_settings
from kryograph.training.purpose import drawn_shares

LEAST_GAIN = 0.5
"""Standard errors by which other settings must be better than the present ones."""


def search_pool(
    pool: PoolSystem,
    task: Task,
    seconds: float,
    seed: int,
    progress: Callable[[float], None] = lambda fraction: None,
) -> PoolSystem:
    """Vary the settings of one head after the other; return the pool with the better ones.

    Args:
        pool: The pool to improve.
        task: Graph and labels.
        seconds: Time limit. A trial that is running when it is reached is finished.
        seed: Determines folds and the settings that are tried.
        progress: Called after each trial with the fraction of the time that is over.
    """
    basis, folds = Basis(task.graph), pool_folds(task, seed)
    members = list(pool.members)
    searched = [
        k
        for k, member in enumerate(members)
        if isinstance(member, HeadSystem)
        and member.settings.search_space()
        and member.exists(basis)
    ]
    studies = {k: create_study(seed + k, "minimize") for k in searched}
    ignorance = math.log(len(task.classes))
    held = np.isin(task.split.train, np.concatenate([NO_NODES, *(f.held_out for f in folds)]))
    labels = task.labels[task.split.train][held]
    importance = pool.settings.purpose.importance(labels, drawn_shares(task))

    def losses_of(head: System) -> np.ndarray:
        return held_out_losses(head, basis, task, folds, seed) * importance

    best = {k: losses_of(members[k]) for k in searched}
    present = dict(best)
    start = time.monotonic()
    while searched and time.monotonic() - start < seconds:
        for k in searched:
            if time.monotonic() - start >= seconds:
                break
            trial = studies[k].ask()
            method = pool.members[k]
            try:
                changes = sample_settings(trial, method.settings.search_space(), method.settings)
                settings = method.settings.replace(changes)
                tried: System = system(method.name, settings, operator=method.operator)
                losses = losses_of(tried)
            except KryographError:  # a representation that this graph does not have
                studies[k].tell(trial, ignorance)
                continue
            studies[k].tell(trial, float(losses.mean()))
            if losses.mean() < best[k].mean() and _clearly_below(losses, present[k]):
                best[k], members[k] = losses, tried
            progress(min((time.monotonic() - start) / seconds, 1.0))
    text = " + ".join(member_text(member) for member in members)
    return PoolSystem(replace(pool.settings, members=text), pool.operator)


def _clearly_below(losses: np.ndarray, present: np.ndarray) -> bool:
    difference = present - losses
    error = difference.std() / math.sqrt(len(difference))
    return bool(difference.mean() > LEAST_GAIN * error)
