"""When a run ends and which epoch it keeps: the paper's stop rule.

With s_t the watched score after epoch t (validation accuracy, or training accuracy where there is
no validation) and a_t the accuracy on training nodes, both measured without dropout, a run ends at
the first of

* `max_epochs` epochs;
* `patience` epochs in a row with s_t below the best so far (a tie starts the count again);
* `after_peak` epochs after the first with a_t ≥ `peak`.

The epoch that is kept is the last that reached the best score. All of it is the state of one run:
nothing is carried into the next (deviation D5).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StopRule:
    """The constants of the rule; the defaults are the paper's and its authors' code's."""

    max_epochs: int = 3000
    patience: int = 100
    after_peak: int = 200
    peak: float = 0.99

    def __post_init__(self) -> None:
        if min(self.max_epochs, self.patience, self.after_peak) < 1:
            raise ValueError(f"a stop rule counts epochs from 1: {self}")


class Watch:
    """One run under a stop rule.

    >>> watch = Watch(StopRule(patience=2))
    >>> [watch.update(score, training_accuracy=0.5) for score in (0.4, 0.6, 0.6, 0.5, 0.5)]
    [True, True, True, False, False]
    >>> watch.best_epoch, watch.over
    (3, True)
    """

    def __init__(self, rule: StopRule) -> None:
        self.rule = rule
        self.epoch = 0
        self.best = float("-inf")
        self.best_epoch = 0
        self.last_epoch = rule.max_epochs
        self._peaked = False

    def update(self, score: float, training_accuracy: float) -> bool:
        """Record an epoch; true if its score is the best so far or ties with it."""
        self.epoch += 1
        if training_accuracy >= self.rule.peak and not self._peaked:
            self._peaked = True
            self.last_epoch = min(self.last_epoch, self.epoch + self.rule.after_peak)
        if score < self.best:
            return False
        self.best, self.best_epoch = score, self.epoch
        return True

    @property
    def over(self) -> bool:
        """Whether the run ends here."""
        waited = self.epoch - self.best_epoch
        return self.epoch >= self.last_epoch or waited >= self.rule.patience
