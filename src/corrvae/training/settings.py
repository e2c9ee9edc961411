"""How to train: the numbers of a run, and the device it runs on."""

from dataclasses import dataclass
from math import ceil, isfinite
from pathlib import Path
from typing import Any, Literal, final, get_args

import torch

from corrvae.objectives import Gamma, gamma_pair

EdgeSampling = Literal["uniform", "weighted"]


@final
@dataclass(frozen=True)
class TrainingSettings:
    """The numbers of a training run.

    Parameters
    ----------
    max_steps
        Steps to make, unless training stops early.
    vertex_batch, edge_batch
        Vertices and edges that a step draws (B1, B2); all there are, if there are fewer.
    pair_batch
        Pairs of the drawn vertices for the non-edge term; ``None`` takes all of them.
    edge_sampling
        "uniform" draws edges alike and weighs their terms; "weighted" draws them in proportion to their weights.
    learning_rate
        Of Adam.
    gamma
        Strength of the regulariser of CVAE_corr: one number, or (singleton, pairs).
    warmup_steps
        Over the first so many steps all terms but the reconstruction are scaled up from 0 to 1.
    evaluate_every
        Steps between evaluations: each adds a row to the history.
    patience
        Evaluations without a better validation objective before training stops; ``None`` never stops early.
    seed
        Of every draw.
    device
        "auto" takes CUDA if it is there, else MPS if it is there, else the CPU.
    checkpoint
        Folder for checkpoints; ``None`` writes none.
    checkpoint_steps, checkpoint_minutes
        A checkpoint is written after so many steps, or so many minutes, and at the end.
    resume
        Whether to go on from the folder's checkpoint, if it has one.

    Examples
    --------
    >>> TrainingSettings(max_steps=1000).vertex_batch
    64
    """

    max_steps: int
    vertex_batch: int = 64
    edge_batch: int = 256
    pair_batch: int | None = None
    edge_sampling: EdgeSampling = "uniform"
    learning_rate: float = 1e-3
    gamma: Gamma = 1.0
    warmup_steps: int = 0
    evaluate_every: int = 500
    patience: int | None = None
    seed: int = 0
    device: str = "auto"
    checkpoint: Path | None = None
    checkpoint_steps: int | None = None
    checkpoint_minutes: float | None = 10.0
    resume: bool = True

    def __post_init__(self) -> None:
        for name in ("max_steps", "vertex_batch", "edge_batch", "evaluate_every"):
            _check_at_least(name, getattr(self, name), 1)
        for name in ("pair_batch", "patience", "checkpoint_steps"):
            if getattr(self, name) is not None:
                _check_at_least(name, getattr(self, name), 1)
        for name in ("warmup_steps", "seed"):
            _check_at_least(name, getattr(self, name), 0)
        for name in ("learning_rate", "checkpoint_minutes"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and isfinite(value)):
                raise ValueError(f"{name} must be positive and finite, got {value}")
        if self.edge_sampling not in get_args(EdgeSampling):
            raise ValueError(f"edge_sampling must be one of {get_args(EdgeSampling)}, got {self.edge_sampling!r}")
        gamma_pair(self.gamma)


def steps_for_epochs(n_epochs: float, n_vertices: int, vertex_batch: int) -> int:
    """Steps after which every vertex has been drawn `n_epochs` times.

    Examples
    --------
    >>> steps_for_epochs(2, 100, 64)
    4
    """
    return max(1, ceil(n_epochs * n_vertices / min(vertex_batch, n_vertices)))


def choose_device(name: str, *, together: bool = False) -> torch.device:
    """Give the device of this name; "auto" chooses among those that are there.

    Parameters
    ----------
    name
        Its name.
    together
        Whether several processes train together, which cannot exchange what is on MPS.

    Examples
    --------
    >>> choose_device("cpu")
    device(type='cpu')
    """
    if name != "auto":
        return _usable_device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() and not together else "cpu")


def _usable_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, ImportError, AttributeError) as error:  # each kind of device has its own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f'device={name!r} cannot be used on this machine ({reason}); use "auto" to take the best that can, or "cpu"'
        ) from error
    return device


def _check_at_least(name: str, value: Any, least: int) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
