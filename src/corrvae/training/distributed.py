"""Several processes that train one model: torch's DistributedDataParallel, started by torchrun.

Every worker draws the same batch and computes its share of the terms; DistributedDataParallel averages the gradients.
So the steps are those of one process up to rounding, whatever the number of workers. Worker 0 (`main`) evaluates,
saves and reports; the others follow. Nothing outside this room knows of processes.
"""

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, final

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from corrvae.model import Batch, CorrelatedModel, Terms

T = TypeVar("T")


@final
@dataclass(frozen=True)
class Workers:
    """The processes of a run, this one by its index; one, unless torchrun started several."""

    index: int = 0
    count: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this process evaluates, saves and reports."""
        return self.index == 0

    def wrap(self, model: CorrelatedModel, example: Callable[[], Terms]) -> CorrelatedModel | DistributedDataParallel:
        """Return the model, or one that averages gradients over the workers when they are computed.

        `example` computes the terms of a batch. It shows whether they leave parameters unused (a learned tau without a
        graph): torch has to know, and warns if none are unused.
        """
        if self.count == 1:
            return model
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        gradients = torch.autograd.grad(example().total(), parameters, allow_unused=True)
        return DistributedDataParallel(model, find_unused_parameters=any(gradient is None for gradient in gradients))

    def unwrap(self, wrapped: CorrelatedModel | DistributedDataParallel) -> None:
        """Release the process group while others still hold it.

        The last holder waits for the group's threads, and these for Python's lock, which the reducer does not release.
        The traceback of an error can hold a reducer for long.
        """
        if isinstance(wrapped, DistributedDataParallel):
            del wrapped.reducer, wrapped.logger

    def share(self, batch: Batch) -> Batch:
        """Return this worker's share of a batch."""
        return batch if self.count == 1 else batch.share(self.index, self.count)

    def average(self, values: dict[str, float], stop: bool) -> tuple[dict[str, float], bool]:
        """Return the mean of every worker's values, and whether any worker is to stop."""
        if self.count == 1:
            return values, stop
        packed = torch.tensor([*values.values(), float(stop)], dtype=torch.float64)
        dist.all_reduce(packed)
        means = (packed[:-1] / self.count).tolist()
        return dict(zip(values, means, strict=True)), bool(packed[-1] > 0)

    def gather(self, value: T) -> list[T]:
        """Return the values of all workers, in their order, on every worker."""
        if self.count == 1:
            return [value]
        found: list[Any] = [None] * self.count
        dist.all_gather_object(found, value)
        return found

    def from_main(self, compute: Callable[[], T]) -> T:
        """Return what the main worker computes, on every worker; an error of its is raised on all."""
        if self.count == 1:
            return compute()
        found: list[Any] = [None, None]
        if self.is_main:
            try:
                found[0] = compute()
            except Exception as error:  # raised below, on every worker
                found[1] = error
        dist.broadcast_object_list(found, src=0)
        if found[1] is not None:
            raise found[1]
        return found[0]


def agree(value: T) -> T:
    """Return the main worker's value on every worker."""
    return current_workers().from_main(lambda: value)


def current_workers() -> Workers:
    """Return the workers of this run; join those that torchrun started, at the first call."""
    if not dist.is_available():
        return Workers()
    if not dist.is_initialized() and dist.is_torchelastic_launched() and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("gloo", timeout=timedelta(minutes=30))
        atexit.register(_leave)
    return Workers(dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else Workers()


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


@contextmanager
def lost_workers_as(error: Callable[[str], Exception]) -> Iterator[None]:
    """Turn the connection errors that follow the death of another worker into one error."""
    try:
        yield
    except RuntimeError as cause:
        # torch's message: the place in its source in brackets, a sentence, advice
        first = str(cause).partition("\n")[0].rpartition("] ")[2].partition(". ")[0]
        gone = ("connection", "gloo", "peer", "socket", "timed out", "timeout")
        if dist.is_available() and dist.is_initialized() and any(word in str(cause).lower() for word in gone):
            raise error(first) from cause
        raise
