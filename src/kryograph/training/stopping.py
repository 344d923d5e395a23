"""Stop rules: when a run ends, and which of its epochs is kept.

With s_t the watched score after epoch t (validation accuracy, or training accuracy if there are no
validation labels) and a_t the accuracy on the training nodes, both without dropout, a run ends at
the first of

* `max_epochs` epochs;
* `patience` epochs in a row with s_t below the best so far (a tie starts the count again);
* `after_peak` epochs after the first with a_t ≥ `peak`.

The kept epoch is the last one that reached the best score. Each run has a new `Watch`, so nothing
is carried into the next run (deviation D5). `RULES` holds this rule, which is that of the authors'
code of November 2019, and three variants (deviations D10, D11 and D31).

This module does not import torch: the command line reads the summaries for its help.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kryograph.errors import check_known

if TYPE_CHECKING:
    from kryograph.training.loop import Epoch


@dataclass(frozen=True)
class StopRule:
    """Constants of a stop rule; the defaults are those of the paper and of its authors' code.

    Args:
        max_epochs: Largest number of epochs of a run.
        patience: Number of epochs in a row below the best score after which a run ends.
        after_peak: Number of epochs that follow the first one at the peak.
        peak: Training accuracy, from 0 to 1, that counts as the peak.
        strict: Whether an epoch must exceed the best score to be kept; otherwise a tie is enough.
        watch: What is compared between epochs: "score", as above; "training", the training
            accuracy even if there are validation labels; or "nothing", so that all epochs tie and
            the last one is kept.
        with_dropout: Whether training accuracy is that of the training step, with dropout.
        keep_last: Whether the last epoch is kept if there are no validation labels.
        summary: Words for help texts; ignored by `==`.
    """

    max_epochs: int = 3000
    patience: int = 100
    after_peak: int = 200
    peak: float = 0.99
    strict: bool = False
    watch: str = "score"
    with_dropout: bool = False
    keep_last: bool = False
    summary: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.watch not in ("score", "training", "nothing"):
            raise ValueError(f"a stop rule watches score, training or nothing: {self}")
        if min(self.max_epochs, self.patience, self.after_peak) < 1:
            raise ValueError(f"a stop rule counts epochs from 1: {self}")


def exactly(epochs: int) -> StopRule:
    """Stop rule of a run with a fixed number of epochs, which keeps the last one."""
    summary = f"{epochs} epochs, of which the last is kept"
    return StopRule(epochs, epochs, epochs, watch="nothing", summary=summary)


RULES: dict[str, StopRule] = {
    "paper": StopRule(summary="the authors' code of November 2019"),
    "june": StopRule(
        peak=1.0, with_dropout=True, keep_last=True, summary="their code of June 2019"
    ),
    "text": StopRule(after_peak=3000, summary="the paper's text"),
    "li": StopRule(
        *(200, 200, 200),
        strict=True,
        watch="training",
        with_dropout=True,
        summary="Li, Han, Wu 2018: the printed rows without validation",
    ),
    "200": exactly(200),
}
"""Stop rules by name."""


def stop_rule(name: str) -> StopRule:
    """Stop rule with that name; a whole number is exactly that many epochs.

    >>> stop_rule("20") == exactly(20)
    True
    """
    if re.fullmatch("[1-9][0-9]{0,5}", name):
        return exactly(int(name))
    check_known("stop rule", name, RULES)
    return RULES[name]


class Watch:
    """State of one run under a stop rule.

    `epochs` is the number of epochs so far, `history` holds those that were scored, and
    `kept` is the number of the epoch whose weights are kept, counted from 1.

    >>> from kryograph.training.loop import Epoch
    >>> watch = Watch(StopRule(patience=2))
    >>> scores = enumerate([0.4, 0.6, 0.6, 0.5, 0.5], start=1)
    >>> [watch.update(Epoch(t, 0.1, 0.5, score)) for t, score in scores]
    [True, True, True, False, False]
    >>> watch.kept, watch.over
    (3, True)
    """

    def __init__(self, rule: StopRule) -> None:
        self.rule, self.last_epoch = rule, rule.max_epochs
        self.epochs = self.best_epoch = self.kept = 0
        self.best = float("-inf")
        self.history: list[Epoch] = []

    def update(self, epoch: Epoch) -> bool:
        """Record an epoch; return whether its weights are kept instead of those before."""
        rule, self.epochs = self.rule, epoch.number
        self.history.append(epoch)
        training = epoch.step_accuracy if rule.with_dropout else epoch.training_accuracy
        if training >= rule.peak:  # the first such epoch leaves fewer epochs than any later one
            self.last_epoch = min(self.last_epoch, self.epochs + rule.after_peak)
        validation = training if epoch.validation_accuracy is None else epoch.validation_accuracy
        score = {"score": validation, "training": training, "nothing": 0.0}[rule.watch]
        if score > self.best or (score == self.best and not rule.strict):
            self.best, self.best_epoch, self.kept = score, self.epochs, self.epochs
        if rule.keep_last and epoch.validation_accuracy is None:
            self.kept = self.epochs
        return self.kept == self.epochs

    def skip(self) -> None:
        """Count an epoch that was not scored. Only for rules that watch nothing."""
        self.epochs += 1
        self.best_epoch = self.kept = self.epochs

    @property
    def over(self) -> bool:
        """Whether the run has ended."""
        waited = self.epochs - self.best_epoch
        return self.epochs >= self.last_epoch or waited >= self.rule.patience
