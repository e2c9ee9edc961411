"""What every pair network can do: read two vertices' features, give the correlation of their latent points."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from corrvae.nn.rows import Rows


class PairNetwork(nn.Module, ABC):
    """Correlation of q(z_i, z_j given x_i, x_j) in each latent dimension, symmetric in i and j.

    A network works in two steps: `prepare` turns each vertex's features into a vector, once for each vertex;
    `pre_activation` combines two prepared vectors into a. The correlation is rho = tanh(a). Everything downstream takes
    a rather than rho, since 1 - rho cannot be recovered from a rho that has been rounded to 1.

    Attributes
    ----------
    n_components : int
        Latent dimension.
    reads_means : bool
        Whether `prepare` is given the encoder's means in place of the features; its derivative then reaches the
        encoder.

    Examples
    --------
    >>> from corrvae.nn import DenseRows, PairPerceptron
    >>> network = PairPerceptron(5, 2, hidden=(8,))
    >>> prepared = network.prepare(DenseRows(torch.rand(3, 5)))
    >>> network.within(prepared).shape  # the pairs 01, 02 and 12
    torch.Size([3, 2])
    """

    n_components: int
    reads_means: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, rows: Rows) -> Float[Tensor, "vertices width"]:
        """Give what the network needs of each vertex."""

    @abstractmethod
    def pre_activation(
        self,
        prepared: Float[Tensor, "vertices width"],
        first: Int[Tensor, " pairs"],
        second: Int[Tensor, " pairs"],
    ) -> Float[Tensor, "pairs dim"]:
        """Give a for the pairs (first, second) of positions in `prepared`."""

    @property
    def products_a_pair(self) -> int:
        """About how many multiplications a pair takes; as many as there are parameters, if a network says nothing."""
        return sum(parameter.numel() for parameter in self.parameters())

    def block(
        self, prepared_i: Float[Tensor, "rows width"], prepared_j: Float[Tensor, "columns width"]
    ) -> Float[Tensor, "rows columns dim"]:
        """Give a for every row of one set of vertices against every row of another."""
        n_rows, n_columns = len(prepared_i), len(prepared_j)
        device = prepared_i.device
        first = torch.arange(n_rows, device=device).repeat_interleave(n_columns)
        second = torch.arange(n_rows, n_rows + n_columns, device=device).repeat(n_rows)
        pairs = self.pre_activation(torch.cat([prepared_i, prepared_j]), first, second)
        return pairs.view(n_rows, n_columns, self.n_components)

    def within(self, prepared: Float[Tensor, "vertices width"]) -> Float[Tensor, "pairs dim"]:
        """Give a for all pairs i < j of a set of vertices, in the order of `torch.triu_indices`."""
        first, second = torch.triu_indices(len(prepared), len(prepared), 1, device=prepared.device)
        return self.pre_activation(prepared, first, second)
