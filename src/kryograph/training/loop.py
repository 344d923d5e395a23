"""The training loop: steps on the training nodes, each followed by a scoring without dropout.

The loop receives a task, which has no test labels. The weights of the kept epoch are copied when
it is scored and put back at the end. If the stop rule watches nothing and there is no callback,
only the last epoch is scored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor, nn

from kryograph.engine.forward import Forward, Nodes
from kryograph.engine.machine import check_bfloat16
from kryograph.errors import KryographError, UsageError, check_known
from kryograph.graph import NO_NODES, Task
from kryograph.threads import adapt_threads
from kryograph.training.optimizers import Optimizer
from kryograph.training.stopping import StopRule, Watch

PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class Epoch:
    """Number of one epoch, from 1, its loss, and the shares of nodes that are classified correctly.

    Loss and `step_accuracy` (0 if not measured) are those of the training step, with dropout; the
    other accuracies are measured without it, and None without validation labels.
    """

    number: int
    loss: float
    training_accuracy: float
    validation_accuracy: float | None
    step_accuracy: float = 0.0


OnEpoch: TypeAlias = Callable[[Epoch], None]
"""Callback that receives each epoch after it was scored."""


def ignore_epoch(epoch: Epoch) -> None:
    """Default callback for `on_epoch`; does nothing."""


@dataclass(frozen=True)
class Conditions:
    """Stop rule, device and precision of a run.

    A plain value: a system calls `check` before a run. The precision "bfloat16" is mixed: weights
    and sparse products stay in float32, dense products run in bfloat16 (the paper used float16 on
    a GPU; deviation D8).
    """

    rule: StopRule = field(default_factory=StopRule)
    device: str = "cpu"
    precision: str = "float32"

    def __post_init__(self) -> None:
        check_known("precision", self.precision, PRECISIONS)

    def check(self) -> None:
        """Raise a `UsageError` if the device or the precision does not work on this machine."""
        try:
            torch.empty(1, device=self.device)
            torch.Generator(self.device)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise UsageError(
                f"The device {self.device!r} cannot be used here: "
                f"{str(error).splitlines()[0].rstrip('.')}. Try --device cpu."
            ) from None
        if self.precision == "bfloat16" and torch.device(self.device).type == "cpu":
            check_bfloat16()

    def autocast(self) -> torch.autocast:
        """Context manager in which networks are computed."""
        mixed = self.precision == "bfloat16"
        return torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=mixed)


DEFAULT_CONDITIONS = Conditions()
"""The paper's stop rule, on the CPU, in float32."""


def nodes_of(task: Task, device: str) -> Nodes:
    """Training nodes of a task, and its validation nodes if their labels are known."""
    train = task.split.train
    validation = task.split.validation if task.has_validation else NO_NODES
    return Nodes(*(torch.from_numpy(part.copy()).to(device) for part in (train, validation)))


class Diverged(KryographError):
    """Training produced a number that is not finite."""


def train_network(
    forward: Forward,
    task: Task,
    optimizer: Optimizer,
    conditions: Conditions,
    on_epoch: OnEpoch = ignore_epoch,
) -> Watch:
    """Train a network in place, leave it with the weights of the kept epoch, and say how it went.

    The optimiser is a new one. `on_epoch` is called after each epoch that is scored.
    """
    labels = torch.from_numpy(task.labels.copy()).to(conditions.device)
    rule, watch = conditions.rule, Watch(conditions.rule)
    only_last = rule.watch == "nothing" and on_epoch is ignore_epoch
    kept = {name: value.clone() for name, value in forward.network.state_dict().items()}
    while not watch.over:
        adapt_threads()
        loss, logits = _step(forward, labels, optimizer, conditions, watch)
        if only_last and watch.epochs + 1 < rule.max_epochs:
            watch.skip()
            continue
        forward.network.eval()
        with torch.no_grad(), conditions.autocast():
            scores = forward.scored()
        _check("network's output", scores, watch, optimizer)
        epoch = _epoch(watch.epochs + 1, loss, logits, scores, labels, forward.nodes)
        if watch.update(epoch):
            # Copies: a reference would follow the weights to the last epoch.
            for name, value in forward.network.state_dict().items():
                kept[name].copy_(value)
        on_epoch(epoch)
    forward.network.load_state_dict(kept)
    return watch


def _step(
    forward: Forward, labels: Tensor, optimizer: Optimizer, conditions: Conditions, watch: Watch
) -> tuple[Tensor, Tensor]:
    """Do one training step; return its loss and its logits, detached so that memory is freed."""
    forward.network.train()
    optimizer.zero_grad()
    with conditions.autocast():
        logits = forward.training()
    loss = nn.functional.cross_entropy(logits.float(), labels[forward.nodes.training])
    penalty = forward.penalty()
    if penalty is not None:
        loss = loss + penalty
    _check("loss", loss, watch, optimizer)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss.detach(), logits.detach()


def _epoch(
    number: int, loss: Tensor, logits: Tensor, scores: Tensor, labels: Tensor, nodes: Nodes
) -> Epoch:
    """Record of an epoch, from the logits of its training step and of its scoring."""

    def accuracy(logits: Tensor, nodes: Tensor) -> float:
        return (logits.argmax(dim=1) == labels[nodes]).double().mean().item()

    training, validation = torch.split(scores, [len(nodes.training), len(nodes.validation)])
    return Epoch(
        number,
        loss.item(),
        training_accuracy=accuracy(training, nodes.training),
        validation_accuracy=accuracy(validation, nodes.validation) if len(validation) else None,
        step_accuracy=accuracy(logits, nodes.training),
    )


def _check(what: str, value: Tensor, watch: Watch, optimizer: Optimizer) -> None:
    """Raise `Diverged` if a number is not finite."""
    if torch.isfinite(value).all():
        return
    cause = f"the learning rate {optimizer.lr:g} is too high"
    if watch.epochs == 0 and what == "loss":  # no step was made yet
        cause = "features or edge weights are too large for float32"
    raise Diverged(
        f"Training stopped: the {what} is not finite in epoch {watch.epochs + 1}, most likely "
        f"because {cause}."
    )
