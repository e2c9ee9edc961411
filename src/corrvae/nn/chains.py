"""Linear layers with ReLU between them as one differentiable function.

On the batches of a training step, a layer's bookkeeping (a module call, a node in the graph of derivatives) costs as
much as its arithmetic. A chain pays for it once. The derivative is the textbook's, layer by layer from the last.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from corrvae.nn.kernels import sums
from corrvae.nn.rows import Rows


def parameters_of(layers: nn.Sequential) -> list[Tensor]:
    """Give weight and bias of each linear layer, one after the other.

    Examples
    --------
    >>> len(parameters_of(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))))
    4
    """
    # Several times faster than `parameters()`, which looks for repetitions.
    linear = (layer for layer in layers if isinstance(layer, nn.Linear))
    return [part for layer in linear for part in (layer.weight, layer.bias)]


def apply_chain(
    points: Float[Tensor, "points inputs"], parameters: Sequence[Tensor]
) -> Float[Tensor, "points outputs"]:
    """Apply linear layers, weights (outputs, inputs) and biases in turn, with ReLU between them.

    Examples
    --------
    >>> layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> points = torch.rand(4, 2)
    >>> apply_chain(points, parameters_of(layers)).allclose(layers(points))
    True
    """
    return _Chain.apply(points, *parameters)  # pyright: ignore[reportReturnType]


def encode_chain(rows: Rows, floor: float, parameters: Sequence[Tensor]) -> Float[Tensor, "rows both"]:
    """Apply a first layer with weight (features, outputs) to rows, then linear layers, then softplus on the right half.

    The right half of the result is ``floor + softplus(output)``.

    Examples
    --------
    >>> from corrvae.nn import DenseRows
    >>> encode_chain(DenseRows(torch.zeros(1, 3)), 0.0, (torch.ones(3, 2), torch.zeros(2)))
    tensor([[0.0000, 0.6931]])
    """
    return _EncodeChain.apply(rows, floor, *parameters)  # pyright: ignore[reportReturnType]


class _Chain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, points: Tensor, *parameters: Tensor) -> Tensor:
        outputs, inputs = _forward(points, parameters)
        ctx.save_for_backward(*inputs, *parameters)
        return outputs

    @staticmethod
    def backward(ctx, *gradients: Tensor):
        saved = ctx.saved_tensors
        n_layers = len(saved) // 3
        return _backward(gradients[0], saved[:n_layers], saved[n_layers:], to_input=ctx.needs_input_grad[0])


class _EncodeChain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Rows, floor: float, weight: Tensor, bias: Tensor, *parameters: Tensor) -> Tensor:
        outputs, inputs = rows.times(weight).add_(bias), ()
        if parameters:
            outputs, inputs = _forward(outputs.relu_(), parameters)
        ctx.rows = rows
        exponential = _soften(outputs, floor)
        ctx.save_for_backward(exponential, *inputs, *parameters)
        return outputs

    @staticmethod
    def backward(ctx, *gradients: Tensor):
        exponential, *saved = ctx.saved_tensors
        n_layers = len(saved) // 3
        gradient, of_parameters = _soften_gradient(gradients[0], exponential), ()
        if n_layers:
            inputs = saved[:n_layers]
            gradient, *of_parameters = _backward(gradient, inputs, saved[n_layers:], to_input=True)
            gradient = _through_relu(gradient, inputs[0])
        return None, None, ctx.rows.transposed_times(gradient), gradient.sum(0), *of_parameters


def _forward(points: Tensor, parameters: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Give the outputs, and what each layer read."""
    inputs: list[Tensor] = []
    for number in range(0, len(parameters), 2):
        if number:
            points = points.relu_()
        inputs.append(points)
        points = torch.addmm(parameters[number + 1], points, parameters[number].t())
    return points, inputs


def _backward(
    gradient: Tensor, inputs: Sequence[Tensor], parameters: Sequence[Tensor], *, to_input: bool
) -> tuple[Tensor | None, ...]:
    """Give the gradient with respect to the input (if it is asked for) and to each parameter."""
    found: list[Tensor] = []
    for number in reversed(range(len(inputs))):
        found += (gradient.sum(0), gradient.t().mm(inputs[number]))
        if number:
            gradient = _through_relu(gradient.mm(parameters[2 * number]), inputs[number])
    return gradient.mm(parameters[0]) if to_input else None, *reversed(found)


def _through_relu(gradient: Tensor | None, rectified: Tensor) -> Tensor:
    return torch.ops.aten.threshold_backward(gradient, rectified, 0)


def _soften(outputs: Tensor, floor: float) -> Tensor:
    """Turn the right half x into floor + softplus(x), in place, and give e^x.

    One exponential serves both ways: softplus(x) = log(1 + e) and its derivative e / (1 + e), with e = exp(x). From 20
    on softplus(x) is x to the last digit.
    """
    right = outputs[:, outputs.shape[1] // 2 :]
    exponential = right.clamp(max=20.0).exp_()
    torch.maximum(exponential.log1p(), right, out=right).add_(floor)
    return exponential


def _soften_gradient(gradient: Tensor, exponential: Tensor) -> Tensor:
    if gradient.device.type == "cpu":
        into = torch.empty_like(gradient, memory_format=torch.contiguous_format)
        sums.soften_gradient(gradient.contiguous().numpy(), exponential.numpy(), into.numpy())
        return into
    into = gradient.clone()
    into[:, exponential.shape[1] :].mul_(exponential).div_(exponential + 1.0)
    return into
