"""The training loop: a step on the training nodes, a score without dropout, until the rule ends it.

The loop sees a task, never a data set: there is no test label that it could read. The weights of
the best epoch are copied when it happens and put back at the end. Where a rule keeps the last epoch
and nobody listens, that one alone is scored.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from kryograph.engine.forward import Forward, Nodes
from kryograph.errors import KryographError, UsageError, unknown
from kryograph.graph import Task
from kryograph.training.optimizers import Optimizer
from kryograph.training.stopping import StopRule, Watch

PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class Epoch:
    """What one epoch came to."""

    number: int
    loss: float
    training_accuracy: float
    validation_accuracy: float | None


def ignore_epoch(epoch: Epoch) -> None:
    """Does not want to hear of epochs."""


@dataclass(frozen=True)
class Conditions:
    """How to train, apart from the method: when to stop, where, and in which precision.

    `bfloat16` is mixed precision: weights and sparse products stay in float32, dense products run
    in bfloat16 (the paper used float16 on a GPU; deviation D8). Float64 is for layers and tests.
    """

    rule: StopRule = field(default_factory=StopRule)
    device: str = "cpu"
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)
        try:
            torch.empty(1, device=self.device)
            torch.Generator(self.device)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise UsageError(
                f"The device {self.device!r} cannot be used here: "
                f"{str(error).splitlines()[0].rstrip('.')}. Try --device cpu."
            ) from None

    def autocast(self) -> contextlib.AbstractContextManager[object]:
        """The context in which networks run."""
        if self.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(torch.device(self.device).type, dtype=torch.bfloat16)


def nodes_of(task: Task, device: str) -> Nodes:
    """The nodes that a run on a task trains on and scores."""
    train, validation = task.split.train, task.split.validation
    seen = validation if task.has_validation else validation[:0]
    return Nodes(*(torch.from_numpy(part.copy()).to(device) for part in (train, seen)))


@dataclass(frozen=True)
class Trained:
    """What happened in a run.

    Args:
        epochs: How many there were.
        kept: The one whose weights were kept, counted from 1.
        history: Those that were scored, in order.
    """

    epochs: int
    kept: int
    history: tuple[Epoch, ...]


class Diverged(KryographError):
    """The loss is no longer a number."""


def train(
    forward: Forward,
    task: Task,
    optimizer: Optimizer,
    conditions: Conditions,
    on_epoch: Callable[[Epoch], None] = ignore_epoch,
) -> Trained:
    """Train a network in place and leave it with the weights of its best epoch.

    Args:
        forward: A network, whose parameters are the optimiser's, and how to compute it.
        task: Labels and split. Without validation labels, training accuracy is watched instead.
        optimizer: New, for this run.
        conditions: Stop rule, device, precision.
        on_epoch: Called after each epoch.
    """
    device = conditions.device
    labels = torch.from_numpy(task.labels.copy()).to(device)
    network, training, scored = forward.network, forward.nodes.training, forward.nodes.scored
    rule = conditions.rule
    watch = Watch(rule)
    history: list[Epoch] = []
    best = {key: value.clone() for key, value in network.state_dict().items()}
    unseen = rule.watch == "nothing" and on_epoch is ignore_epoch
    last = rule.keep_last and not task.has_validation
    while not watch.over:
        loss, out = _step(forward, labels[training], optimizer, conditions, watch)
        if unseen and watch.epoch + 1 < rule.max_epochs:
            watch.update(0.0, training_accuracy=0.0)
            continue
        network.eval()
        with torch.no_grad(), conditions.autocast():
            scores = forward.scored()
        _check("network's output", scores, watch, optimizer)
        right = scores.argmax(dim=1) == labels[scored]
        training_accuracy = right[: training.numel()].double().mean().item()
        validation_accuracy = (
            right[training.numel() :].double().mean().item() if task.has_validation else None
        )
        learned = training_accuracy
        if rule.with_dropout:
            learned = (out.argmax(dim=1) == labels[training]).double().mean().item()
        score = learned if validation_accuracy is None else validation_accuracy
        score = {"score": score, "training": learned, "nothing": 0.0}[rule.watch]
        if watch.update(score, learned) or last:
            # copies: a reference would follow the weights to the last epoch
            for key, value in network.state_dict().items():
                best[key].copy_(value)
        history.append(Epoch(watch.epoch, loss.item(), training_accuracy, validation_accuracy))
        on_epoch(history[-1])
    network.load_state_dict(best)
    return Trained(watch.epoch, watch.epoch if last else watch.best_epoch, tuple(history))


def _step(
    forward: Forward, targets: Tensor, optimizer: Optimizer, conditions: Conditions, watch: Watch
) -> tuple[Tensor, Tensor]:
    """One training step: its loss and logits, without the graph behind them: its memory is free."""
    forward.network.train()
    optimizer.zero_grad()
    with conditions.autocast():
        out = forward.training()
    loss = nn.functional.cross_entropy(out.float(), targets)
    penalty = forward.penalty()
    if penalty is not None:
        loss = loss + penalty
    _check("loss", loss, watch, optimizer)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss.detach(), out.detach()


def _check(what: str, value: Tensor, watch: Watch, optimizer: Optimizer) -> None:
    if torch.isfinite(value).all():
        return
    rate = f"the learning rate {optimizer.lr:g} is too high"
    before_any_step = watch.epoch == 0 and what == "loss"
    cause = "features or edge weights are too large for float32" if before_any_step else rate
    raise Diverged(
        f"Training stopped: the {what} is not finite in epoch {watch.epoch + 1}, most likely "
        f"because {cause}."
    )
