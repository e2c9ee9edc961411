"""Linear layers with ReLU between them as one differentiable function.

On the batches of a training step, a layer's bookkeeping (a module call, a node in the graph of derivatives) costs as
much as its arithmetic. A chain pays for it once. The derivative is the textbook's, layer by layer from the last.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from corrvae.nn.kernels import choice, sums
from corrvae.nn.kernels.softplus import soften
from corrvae.nn.layers import RowsLinear
from corrvae.nn.rows import Rows


def parameters_of(layers: nn.Sequential) -> list[Tensor]:
    """Give weight and bias of each linear layer, one after the other.

    Examples
    --------
    >>> len(parameters_of(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))))
    4
    """
    # Several times faster than `parameters()`, which looks for repetitions.
    return [part for layer in layers if isinstance(layer, nn.Linear) for part in weight_and_bias(layer)]


def weight_and_bias(layer: nn.Linear | RowsLinear) -> tuple[Tensor, Tensor]:
    """Give a layer's weight and bias.

    As attributes they are searched for in several places, which takes a hundredth of a small step.

    Examples
    --------
    >>> weight_and_bias(nn.Linear(2, 3))[1].shape
    torch.Size([3])
    """
    own = layer._parameters
    weight, bias = own.get("weight"), own.get("bias")
    # one that is not there is computed
    return layer.weight if weight is None else weight, layer.bias if bias is None else bias


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
        outputs, inputs = chain_forward(points, parameters)
        ctx.save_for_backward(*inputs, *parameters)
        return outputs

    @staticmethod
    def backward(ctx, *gradients: Tensor):
        saved = ctx.saved_tensors
        n_layers = len(saved) // 3
        inputs, parameters = saved[:n_layers], saved[n_layers:]
        gradient, of_parameters = chain_backward(gradients[0], gradients[0].sum(0), inputs, parameters)
        return gradient.mm(parameters[0]) if ctx.needs_input_grad[0] else None, *of_parameters


class _EncodeChain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Rows, floor: float, *parameters: Tensor) -> Tensor:
        ctx.rows = rows
        outputs, *read = encode_forward(rows, floor, parameters)
        ctx.save_for_backward(*read, *parameters[2:])
        return outputs

    @staticmethod
    def backward(ctx, *gradients: Tensor):
        n_read = len(ctx.saved_tensors) // 3 + 1
        read, parameters = ctx.saved_tensors[:n_read], ctx.saved_tensors[n_read:]
        return None, None, *encode_backward(gradients[0], ctx.rows, read, parameters)


def chain_forward(points: Tensor, parameters: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Apply a chain without a derivative: give the outputs, and what each layer read."""
    inputs: list[Tensor] = []
    for number in range(0, len(parameters), 2):
        if number:
            points = points.relu_()
        inputs.append(points)
        points = torch.addmm(parameters[number + 1], points, parameters[number].t())
    return points, inputs


def chain_backward(
    gradient: Tensor, total: Tensor, inputs: Sequence[Tensor], parameters: Sequence[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """Give the gradient with respect to what a chain's first layer puts out, and to each parameter.

    `gradient` is that of the outputs, `total` the sum of its rows, `inputs` what each layer read.
    """
    found: list[Tensor] = []
    for number in reversed(range(len(inputs))):
        found += (total, gradient.t().mm(inputs[number]))
        if number:
            gradient, total = _through_relu(gradient.mm(parameters[2 * number]), inputs[number])
    return gradient, found[::-1]


def encode_forward(rows: Rows, floor: float, parameters: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Apply an encoder's chain without a derivative: give the outputs, and what `encode_backward` reads."""
    weight, bias, *others = parameters
    outputs, inputs = rows.times(weight).add_(bias), ()
    if others:
        outputs, inputs = chain_forward(outputs.relu_(), others)
    return outputs, _soften(outputs, floor), *inputs


def encode_backward(
    gradient: Tensor, rows: Rows, read: Sequence[Tensor], parameters: Sequence[Tensor], *, spare: bool = False
) -> tuple[Tensor, ...]:
    """Give the gradient with respect to each parameter of an encoder's chain.

    `parameters` are those after the first layer. A gradient that nobody needs any more (`spare`) is overwritten.
    """
    slopes, *inputs = read
    gradient, total = _soften_gradient(gradient, slopes, spare)
    of_parameters: list[Tensor] = []
    if inputs:
        gradient, of_parameters = chain_backward(gradient, total, inputs, parameters)
        gradient, total = _through_relu(gradient.mm(parameters[0]), inputs[0])
    return rows.transposed_times(gradient), total, *of_parameters


def _through_relu(gradient: Tensor, rectified: Tensor) -> tuple[Tensor, Tensor]:
    """Lead a gradient back through ReLU, in place where a kernel does it: give it, and the sum of its rows."""
    if gradient.is_cpu and choice.used():
        array = gradient.numpy()
        total = np.empty(array.shape[1], array.dtype)
        sums.rectify_gradient(array, rectified.numpy(), total)
        return gradient, torch.from_numpy(total)
    gradient = torch.ops.aten.threshold_backward.default(gradient, rectified, 0)
    return gradient, gradient.sum(0)


def _soften(outputs: Tensor, floor: float) -> Tensor:
    """Turn the right half x into floor + softplus(x), in place, and give the derivative of softplus."""
    half = outputs.shape[1] // 2
    if outputs.is_cpu and outputs.dtype == torch.float32 and choice.used():
        slopes = np.empty((outputs.shape[0], half), np.float32)
        soften(outputs.numpy(), np.float32(floor), slopes)
        return torch.from_numpy(slopes)
    # One exponential serves both ways, e with softplus(x) = log(1 + e). From 20 on softplus(x) is x to the last digit
    # in single precision, and from 40 on in double precision.
    right = outputs[:, half:]
    exponential = right.clamp(max=40.0).exp_()
    torch.maximum(exponential.log1p(), right, out=right).add_(floor)
    return exponential / (exponential + 1.0)


def _soften_gradient(gradient: Tensor, slopes: Tensor, spare: bool) -> tuple[Tensor, Tensor]:
    """Lead a gradient back through `_soften`: give it, and the sum of its rows."""
    into = gradient.contiguous() if spare else gradient.clone(memory_format=torch.contiguous_format)
    if into.is_cpu and choice.used():
        array = into.numpy()
        total = np.empty(array.shape[1], array.dtype)
        sums.soften_gradient(array, slopes.numpy(), total)
        return into, torch.from_numpy(total)
    into[:, slopes.shape[1] :].mul_(slopes)
    return into, into.sum(0)
