"""A pair network that looks at where the encoder puts two points."""

from collections.abc import Sequence
from typing import ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from corrvae.nn.layers import check_columns, check_widths, perceptron
from corrvae.nn.pairs import PairNetwork
from corrvae.nn.rows import DenseRows, Rows

# Latent points of one standard deviation are a squared distance of 1 or so apart in each dimension.
_START, _SLOPE, _SCALE = 1.0, 0.05, 3.0


@final
class PairMetric(PairNetwork):
    """A correlation that falls with the distance of the two points' means, in a metric that is learned.

    An image v of each mean is learned (linear unless there are hidden layers), and a_k = b_k - c_k |v_i - v_j|^2 with a
    learned b_k and a positive c_k for each latent dimension k. The other networks read the features with weights of
    their own; this one has few weights and shares the encoder's, which learns from edges and non-edges alike what
    tells linked points from others. So it does not learn edges by heart, and where edges are few it goes furthest.

    Parameters
    ----------
    n_features, n_components
        Number of features of one vertex, which it does not read; latent dimension.
    hidden
        Widths of hidden layers between a mean and its image.

    Examples
    --------
    >>> network = PairMetric(20, 4)
    >>> prepared = network.prepare(DenseRows(torch.rand(3, 4)))
    >>> network.block(prepared[:1], prepared).shape
    torch.Size([1, 3, 4])
    """

    reads_means: ClassVar[bool] = True

    def __init__(self, n_features: int, n_components: int, *, hidden: Sequence[int] = ()) -> None:
        super().__init__()
        self.n_components = n_components
        if hidden:
            self.image = perceptron((n_components, *check_widths("pair_hidden", hidden), n_components))
        else:
            self.image = nn.Linear(n_components, n_components, bias=False)  # a difference would not see a bias
            self.image.weight = nn.Parameter(_SCALE * torch.eye(n_components))
        self.start = nn.Parameter(torch.full((n_components,), _START))
        self.slope = nn.Parameter(torch.full((n_components,), _SLOPE).log())

    def prepare(self, rows: Rows) -> Float[Tensor, "vertices width"]:
        """Give the image of each mean."""
        check_columns(rows, self.n_components)
        if not isinstance(rows, DenseRows):
            raise TypeError(f"the encoder's means are asked for, as DenseRows; got {type(rows).__name__}")
        return self.image(rows.values)

    @property
    def products_a_pair(self) -> int:
        """Those of a distance, and of its slopes."""
        return 2 * self.n_components

    def pre_activation(
        self,
        prepared: Float[Tensor, "vertices width"],
        first: Int[Tensor, " pairs"],
        second: Int[Tensor, " pairs"],
    ) -> Float[Tensor, "pairs dim"]:
        """Give a for the pairs (first, second) of positions in `prepared`."""
        difference = prepared.index_select(0, first) - prepared.index_select(0, second)
        return self.start - self.slope.exp() * difference.square().sum(1, keepdim=True)
