"""Adam (Kingma and Ba, 2015), uphill, as one fused kernel for all parameters."""

from collections.abc import Mapping, Sequence
from typing import final

import torch
from torch import Tensor, nn

_DECAY, _DECAY_OF_SQUARES, _EPSILON = 0.9, 0.999, 1e-8


@final
class Adam:
    """Adam's state, and its step.

    `torch.optim.Adam` calls the same kernel, but on models of this size sorts its arguments for as long as the kernel
    takes.

    Parameters
    ----------
    parameters
        What to maximise over; every step needs the gradients of all of them.
    learning_rate
        Step size.

    Examples
    --------
    >>> point = nn.Parameter(torch.zeros(2))
    >>> adam = Adam([point], 0.1)
    >>> point.grad = torch.tensor([1.0, -3.0])
    >>> adam.step()
    >>> point.data
    tensor([ 0.1000, -0.1000])
    """

    def __init__(self, parameters: Sequence[nn.Parameter], learning_rate: float) -> None:
        self.parameters = list(parameters)
        self.learning_rate = learning_rate
        self._means = [torch.zeros_like(parameter, requires_grad=False) for parameter in self.parameters]
        self._squares = [torch.zeros_like(mean) for mean in self._means]
        # in the type that the kernel takes, whatever the caller's default: half precision cannot count beyond 256
        self._made = torch.zeros((), dtype=torch.float32, device=self.parameters[0].device)

    def forget_gradients(self) -> None:
        """Let go of all gradients, so that the next ones are written and not added."""
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        """Move the parameters along their gradients; one that has none stays where it is."""
        gradients = [parameter.grad for parameter in self.parameters]
        columns = self.parameters, gradients, self._means, self._squares
        if any(gradient is None for gradient in gradients):
            moved = [number for number, gradient in enumerate(gradients) if gradient is not None]
            columns = tuple([column[number] for number in moved] for column in columns)
        with torch.no_grad():
            self._made += 1
            torch.ops.aten._fused_adam_.default(
                *columns,
                [],
                [self._made] * len(columns[0]),
                lr=self.learning_rate,
                beta1=_DECAY,
                beta2=_DECAY_OF_SQUARES,
                weight_decay=0.0,
                eps=_EPSILON,
                amsgrad=False,
                maximize=True,
            )

    def tensors(self) -> dict[str, Tensor]:
        """Give the state as tensors by name."""
        named = {"steps": self._made}
        for number, (mean, square) in enumerate(zip(self._means, self._squares, strict=True)):
            named |= {f"{number}.mean": mean, f"{number}.square": square}
        return named

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take up a state that `tensors` gave; a `ValueError` says that it is not one of these parameters."""
        for name, tensor in self.tensors().items():
            if name not in tensors or tensors[name].shape != tensor.shape:
                raise ValueError(f"Adam's state {name} is missing or has another shape")
            tensor.copy_(tensors[name])
