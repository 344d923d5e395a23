"""Estimate: what a run will take, before it starts, and whether there is room for it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from kryograph.engine.cost import EPOCHS, NOMINAL, Cost, Rates, hold, stream
from kryograph.engine.forward import Forward
from kryograph.errors import UsageError
from kryograph.nn.functional import Matrix


@dataclass(frozen=True)
class Estimate:
    """What one run costs.

    Args:
        weights: How many parameters are trained.
        epoch: A training step with the optimiser's, and a scoring.
    """

    weights: int
    epoch: Cost

    def seconds(self, rates: Rates = NOMINAL) -> float:
        """How long a usual run takes, on a machine."""
        return EPOCHS * self.epoch.seconds(rates)

    @property
    def memory(self) -> float:
        """Bytes at the peak, beyond what the program itself holds."""
        return self.epoch.memory

    def check(self, available: float | None, runs: int = 1) -> None:
        """Refuse what cannot fit.

        Args:
            available: Bytes that are free; None if nobody knows.
            runs: How many are to be done at once.
        """
        if available is None or runs * self.memory <= available:
            return
        each = f" for each of {runs} runs at once" if runs > 1 else ""
        fewer = "fewer --jobs, or " if runs > 1 else ""
        raise UsageError(
            f"This needs about {gigabytes(self.memory)} of memory{each}, and "
            f"{gigabytes(available)} are free; the network has {self.weights:,} weights. "
            f"Try {fewer}a smaller network, such as --set hidden=64."
        )


def estimate(forward: Forward, moments: int) -> Estimate:
    """What a run costs.

    Args:
        forward: How the network will be computed; its weights need not have storage yet.
        moments: How many numbers per weight the optimiser remembers.
    """
    weights = sum(parameter.numel() for parameter in forward.network.parameters())
    # The optimiser reads weights, gradients and moments and writes all but the gradients. Kept are
    # these, and the best epoch's weights.
    step = stream((3 + 2 * moments) * weights) + hold((3 + moments) * weights)
    data = _numbers(forward.x) + 4 * forward.L.matrix.nnz
    return Estimate(weights, forward.cost() + step + hold(2 * data))


def _numbers(x: Matrix) -> int:
    return x.numel() if isinstance(x, Tensor) else 2 * x.nnz


def gigabytes(count: float) -> str:
    """Bytes for people.

    >>> gigabytes(3.42e9), gigabytes(57e6)
    ('3.4 GB', '57 MB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
