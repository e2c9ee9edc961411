"""What the ranks of a run tell each other: gradients and terms at every step, a checkpoint when they begin."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributed import DistError
from torch.nn.parallel import DistributedDataParallel

from corrvae.errors import FolderError
from corrvae.objectives import Terms
from corrvae.persistence import Folder
from corrvae.ranks import Ranks, lost_by
from corrvae.training.checkpoints import CheckpointFolder

# gloo has no error of its own, and its words are all there is to know it by
_OF_CONNECTIONS = ("gloo", "nccl", "connection", "socket", "broken pipe", "timed out")


@final
@dataclass(frozen=True)
class Agreed:
    """What all ranks know after a step.

    Attributes
    ----------
    values
        The terms and the total of the whole step.
    asked
        Whether any rank was asked to stop.
    failed
        Whether any rank failed in what it did by itself since the step before.
    """

    values: dict[str, float]
    asked: bool
    failed: bool


@final
class GradientExchange:
    """Leads the gradients of all ranks together, by DistributedDataParallel.

    Its hooks stand on the parameters that the objective depends on. Which these are is found out at the first step: a
    model may have others (a pair network that is trained without edges), and to look for them at every step would cost
    a further exchange each time.

    Parameters
    ----------
    model
        The model.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._parallel: DistributedDataParallel | None = None

    def climb(self, make_terms: Callable[[], Terms]) -> Terms:
        """Give every parameter the mean of all ranks' gradients; there must be no gradient yet.

        Parameters
        ----------
        make_terms
            Gives this rank's terms; the same ones if it is called again.
        """
        if self._parallel is None:
            make_terms().climb()
            used = [parameter for parameter in self._model.parameters() if parameter.grad is not None]
            for parameter in used:
                parameter.grad = None
            with told_as_loss():
                self._parallel = DistributedDataParallel(_Step(used))
        with told_as_loss():
            terms = self._parallel(make_terms)
            terms.climb()
        return terms

    def close(self) -> None:
        """Let go of the process group while others still have it.

        Whoever lets go last waits for the group's threads, which may wait for the interpreter's lock. Torch gives that
        up meanwhile, but not where the last one is the reducer, which an error's traceback can keep for long.
        """
        if self._parallel is not None:
            del self._parallel.reducer, self._parallel.logger
            self._parallel = None


@final
class _Step(nn.Module):
    """A step as a module, because that is what DistributedDataParallel takes."""

    def __init__(self, used: list[nn.Parameter]) -> None:
        super().__init__()
        self.used = nn.ParameterList(used)

    def forward(self, make_terms: Callable[[], Terms]) -> Terms:
        return make_terms()


def weigh_share(terms: Terms, shares: Mapping[str, float]) -> Terms:
    """Weigh the terms of one rank's part of a step, so that their mean over ranks is the estimate of the whole step.

    Parameters
    ----------
    terms
        Of the part.
    shares
        As `corrvae.training.batches.Drawn` has them.

    Examples
    --------
    >>> from corrvae.objectives import Mean
    >>> part = Terms({"edge": Mean(torch.tensor([2.0, 4.0]), 0.5)}, {"edge": -1.0})  # two of the three of two ranks
    >>> weigh_share(part, {"edge": 4 / 3}).total
    tensor(-4.)
    """
    means = {name: replace(mean, scale=mean.scale * shares[name]) for name, mean in terms.means.items()}
    return Terms(means, terms.factors)


def agree(ranks: Ranks, values: Mapping[str, float], *, asked: bool, failed: bool) -> Agreed:
    """Give the means of all ranks' terms, and whether any was asked to stop or has failed, in one exchange.

    Examples
    --------
    >>> agree(Ranks(), {"total": -3.0}, asked=False, failed=False)
    Agreed(values={'total': -3.0}, asked=False, failed=False)
    """
    *sums, n_asked, n_failed = ranks.sum(np.array([*values.values(), float(asked), float(failed)])).tolist()
    means = {name: total / ranks.count for name, total in zip(values, sums, strict=True)}
    return Agreed(means, n_asked > 0, n_failed > 0)


def hear(ranks: Ranks, value: Any) -> list[Any]:
    """Give every rank what each rank says, in order: anything that JSON can say.

    Examples
    --------
    >>> hear(Ranks(), {"broken": None})
    [{'broken': None}]
    """
    said = np.frombuffer(json.dumps(value).encode(), np.uint8)
    return [json.loads(words.tobytes()) for words in ranks.gather(said)]


def check_alike(ranks: Ranks, run: Mapping[str, Any]) -> None:
    """Refuse ranks that were called with different things.

    Parameters
    ----------
    ranks
        Who takes part.
    run
        What this rank's run is, as `corrvae.training.checkpoints.describe_run` says it.

    Examples
    --------
    >>> check_alike(Ranks(), {"seed": 0})
    """
    if ranks.count == 1:
        return
    mine, first = json.loads(json.dumps(run)), ranks.tell(run)
    odd = next((name for name in {**first, **mine} if first.get(name) != mine.get(name)), None)
    for index, name in enumerate(hear(ranks, odd)):
        if name is not None:
            raise ValueError(
                f"process {index} of {ranks.count} was given other {name} than process 0; every process must make the "
                "same call, on the same data"
            )


def read_checkpoint(ranks: Ranks, checkpoints: CheckpointFolder) -> Folder | None:
    """Let rank 0 read the newest checkpoint, and give it to all: they begin at one step, and need no common disk.

    Raises
    ------
    FolderError
        On every rank, if rank 0 cannot read it.
    """
    if ranks.count == 1:
        return checkpoints.read()
    found, problem = None, None
    with ranks.agreed():
        if ranks.is_first:
            try:
                found = checkpoints.read()
            except FolderError as error:
                problem = [str(error.path), error.problem]
    document, problem = ranks.tell([None if found is None else found.document, problem])
    if problem is not None:
        raise FolderError(*problem)
    if document is None:
        return None
    return Folder(document, hand_out(ranks, {} if found is None else found.tensors))


def hand_out(ranks: Ranks, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give every rank the tensors that rank 0 has, on the CPU.

    Examples
    --------
    >>> hand_out(Ranks(), {"weight": torch.ones(2)})
    {'weight': tensor([1., 1.])}
    """
    if ranks.count == 1:
        return dict(tensors)
    outline = {name: [str(tensor.dtype).removeprefix("torch."), list(tensor.shape)] for name, tensor in tensors.items()}
    received = {}
    for name, (kind, shape) in ranks.tell(outline).items():
        tensor = torch.zeros(shape, dtype=getattr(torch, kind))
        if ranks.is_first:
            tensor.copy_(tensors[name].detach())
        if tensor.numel():
            # bytes of which all but one rank's are zeros: their sum is exact
            data = ranks.sum(tensor.reshape(-1).view(torch.uint8).numpy())
            tensor = torch.from_numpy(data).view(tensor.dtype).reshape(shape)
        received[name] = tensor
    return received


@contextmanager
def told_as_loss() -> Iterator[None]:
    """Tell an error of the connection to other ranks as a `LostRankError`, and leave every other as it is."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, DistError) and not any(part in str(error).lower() for part in _OF_CONNECTIONS):
            raise
        raise lost_by(error) from error
