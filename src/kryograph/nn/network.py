"""TODO: say what this module is."""

from __future__ import annotations

from torch import Tensor, nn

from kryograph.nn.functional import (
    INPUT,
    Activation,
    Masks,
    NodeFeatures,
    activation,
    check_rate,
    dropout,
)


class Layered(nn.Module):
    """A network whose hidden layers have one activation and one rate of dropout.

    Args:
        f: The activation.
        rate: Of dropout, on hidden outputs.
        input_rate: Of dropout on the features.
    """

    def __init__(self, f: Activation, rate: float, input_rate: float = 0.0) -> None:
        super().__init__()
        self.activation, self.dropout = activation(f), check_rate(rate)
        self.input_dropout = check_rate(input_rate)

    @property
    def drops_features(self) -> bool:
        """Whether the features differ from one forward pass to the next."""
        return self.training and self.input_dropout > 0

    def entering(self, x: NodeFeatures, masks: Masks | None = None) -> NodeFeatures:
        """The features as the first layer sees them."""
        if not self.drops_features:
            return x
        return dropout(x, self.input_dropout, masks or Masks(), INPUT)

    def hidden(
        self, z: Tensor, layer: int, masks: Masks | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """A hidden layer's output given what goes into its activation; of all nodes, or some."""
        h = self.activation(z)
        if not self.training:
            return h
        return dropout(h, self.dropout, masks or Masks(), layer, nodes)
