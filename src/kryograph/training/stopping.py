"""When a run ends and which epoch it keeps: the paper's stop rule, and others that were in use.

With s_t the watched score after epoch t (validation accuracy, or training accuracy where there is
no validation) and a_t the accuracy on training nodes, both measured without dropout, a run ends at
the first of

* `max_epochs` epochs;
* `patience` epochs in a row with s_t below the best so far (a tie starts the count again);
* `after_peak` epochs after the first with a_t ≥ `peak`.

The epoch that is kept is the last that reached the best score. All of it is the state of one run:
nothing is carried into the next (deviation D5).

`paper` is that rule with the constants of the authors' code of November 2019. `june` is the code of
June: training accuracy is that of the training step, with dropout, and all of it has to be right;
without validation labels the last epoch is kept. `text` is what the paper's text says: there is no
`after_peak` (deviations D10 and D11).

The rule of Li, Han, Wu, which made the printed rows without validation, has 200 epochs and keeps
the first that reached the best accuracy of a training step, with dropout (deviation D31).
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
    strict: bool = False
    """Whether a tie with the best score is not enough to be kept."""
    watch: str = "score"
    """`score`, as above; `training`: training accuracy in any case; `nothing`: every epoch is as
    good as those before it, and the last one is kept."""
    with_dropout: bool = False
    """Whether training accuracy is that of the training step, with dropout."""
    keep_last: bool = False
    """Whether the last epoch is kept where there are no validation labels."""

    def __post_init__(self) -> None:
        if self.watch not in ("score", "training", "nothing"):
            raise ValueError(f"a stop rule watches score, training or nothing: {self}")
        if min(self.max_epochs, self.patience, self.after_peak) < 1:
            raise ValueError(f"a stop rule counts epochs from 1: {self}")


def exactly(epochs: int) -> StopRule:
    """As many epochs as that, and the last one is kept."""
    return StopRule(epochs, patience=epochs, after_peak=epochs, watch="nothing")


RULES: dict[str, StopRule] = {
    "paper": StopRule(),
    "june": StopRule(peak=1.0, with_dropout=True, keep_last=True),
    "text": StopRule(after_peak=3000),
    "li": StopRule(
        200, patience=200, after_peak=200, strict=True, watch="training", with_dropout=True
    ),
    "200": exactly(200),
}
"""Rules by name."""


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
        """Record an epoch; true if its score is the best so far (a tie counts, unless strict)."""
        self.epoch += 1
        if training_accuracy >= self.rule.peak and not self._peaked:
            self._peaked = True
            self.last_epoch = min(self.last_epoch, self.epoch + self.rule.after_peak)
        if score < self.best or (self.rule.strict and score == self.best):
            return False
        self.best, self.best_epoch = score, self.epoch
        return True

    @property
    def over(self) -> bool:
        """Whether the run ends here."""
        waited = self.epoch - self.best_epoch
        return self.epoch >= self.last_epoch or waited >= self.rule.patience
