"""The best weights of a run, by the objective of its validation data."""

import math
from typing import Any, final

from torch import Tensor, nn

from corrvae.training.history import is_number


@final
class BestWeights:
    """The best weights so far.

    Attributes
    ----------
    value, step
        The best objective, and the step after which it was reached; ``None`` if there was no evaluation yet.
    stale
        Evaluations since then.
    weights
        A copy of the model's weights at that step.
    """

    def __init__(self) -> None:
        self.value = -math.inf
        self.step: int | None = None
        self.stale = 0
        self.weights: dict[str, Tensor] | None = None

    def offer(self, value: float, step: int, model: nn.Module) -> None:
        """Keep a copy of the weights if they are better than all before."""
        if value > self.value:
            self.value, self.step, self.stale = value, step, 0
            self.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        else:
            self.stale += 1

    def state(self) -> dict[str, Any]:
        """Give all but the weights as JSON."""
        return {"value": self.value if self.step is not None else None, "step": self.step, "stale": self.stale}

    def restore(self, state: dict[str, Any], weights: dict[str, Tensor]) -> None:
        """Take up what `state` gave; a `ValueError` says that it is none."""
        if state["step"] is None:
            return
        if type(state["step"]) is not int or type(state["stale"]) is not int or not is_number(state["value"]):
            raise ValueError("this is no best evaluation")
        self.value, self.step, self.stale, self.weights = state["value"], state["step"], state["stale"], weights
