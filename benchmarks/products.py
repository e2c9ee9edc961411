"""How long a step's matrix products take by themselves: record them once, then run nothing else."""

from collections.abc import Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode

DENSE = ("aten::mm", "aten::addmm", "aten::bmm")
SPARSE = ("aten::_embedding_bag", "aten::_embedding_bag_forward_only")


class Recorder(TorchDispatchMode):
    """Keeps every matrix product made while it is on, with copies of what was multiplied."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, list[tuple]] = {"dense": [], "sparse": []}

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        name = function.name().split(".")[0]
        for kind, names in (("dense", DENSE), ("sparse", SPARSE)):
            if name in names:
                self.calls[kind].append((function, [_copy(part) for part in arguments], keywords or {}))
        return function(*arguments, **(keywords or {}))


def _copy(part):
    """Copy a tensor with its strides: a transposed factor stays one."""
    if not isinstance(part, torch.Tensor) or part.numel() == 0:
        return part
    same = torch.empty_strided(part.shape, part.stride(), dtype=part.dtype, device=part.device)
    return same.copy_(part.detach())


def record(step: Callable[[], object]) -> Recorder:
    """Make a step and keep its matrix products."""
    recorder = Recorder()
    with recorder:
        step()
    return recorder


@torch.no_grad()
def replay(calls: list[tuple]) -> None:
    """Make recorded products again."""
    for function, arguments, keywords in calls:
        function(*arguments, **keywords)
