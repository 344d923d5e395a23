"""Dropout on the features: a step sees others than the step before it, so nothing of them is kept.

Scores see them whole, and are computed as fast as ever.
"""

from __future__ import annotations

from torch import Tensor

from kryograph.engine.cost import Cost, gemm, pass_through, spmm
from kryograph.engine.forward import Forward, Literal
from kryograph.nn.functional import Layered


class InputDropped(Literal):
    """Training on the whole graph, scores by another form of the same network.

    Args:
        scoring: That form.
    """

    def __init__(self, scoring: Forward) -> None:
        super().__init__(scoring.network, scoring.x, scoring.L, scoring.nodes, scoring.masks)
        self.scoring = scoring

    def scored(self) -> Tensor:
        """As the other form does it."""
        return self.scoring.scored()

    def everything(self) -> Tensor:
        """As the other form does it."""
        return self.scoring.everything()

    def cost(self) -> Cost:
        """Scoring, and of a step what meets features: X W and L (X W) on every node, and back.

        Weights with k F entries stand for k columns of W. What hidden layers add is left out.
        """
        n, features = self.x.shape
        columns = sum(weight.numel() // features for weight in self.network.parameters())
        with_x = (
            gemm(n, features, columns)
            if isinstance(self.x, Tensor)
            else spmm(self.x.nnz, n, columns)
        )
        step = with_x + spmm(self.L.matrix.nnz, n, columns)
        return self.scoring.cost() + step * 2 + pass_through(3 * n * columns)


def dropping_features(form: Forward) -> Forward:
    """A form, or what stands for it if its network drops features."""
    assert isinstance(form.network, Layered)
    return InputDropped(form) if form.network.input_dropout > 0 else form
