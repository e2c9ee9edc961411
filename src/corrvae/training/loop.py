"""The training loop."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import final

import torch

from corrvae.errors import LostRankError
from corrvae.model import CorrelatedModel
from corrvae.nn.kernels.choice import pay_off, using
from corrvae.ranks import Ranks
from corrvae.threads import computing_with, worth_having
from corrvae.training.callbacks import Callback, check_callbacks
from corrvae.training.data import TrainingData
from corrvae.training.history import History
from corrvae.training.interrupts import listen_for_interrupt
from corrvae.training.run import Run, Stopped
from corrvae.training.settings import TrainingSettings


@final
@dataclass(frozen=True, eq=False)
class TrainingResult:
    """How a run went.

    Attributes
    ----------
    history
        Every term at every evaluation.
    n_steps
        Steps made.
    stopped
        "finished": all steps were made; "early": validation did not improve any more; "interrupted": by Ctrl-C.
    best_step
        With validation data, the step whose weights the model now has; ``None`` if these are the last ones.

    Examples
    --------
    >>> import numpy as np
    >>> from corrvae.nn import Decoder, Encoder, FeatureTable, make_likelihood
    >>> model = CorrelatedModel(Encoder(6, 2), Decoder(2, 6), make_likelihood("gaussian", 6))
    >>> result = train(model, TrainingData(FeatureTable(np.ones((50, 6)))), TrainingSettings(max_steps=3))
    >>> result.n_steps, result.stopped
    (3, 'finished')
    """

    history: History
    n_steps: int
    stopped: Stopped
    best_step: int | None = None


# The caller may have turned derivatives off, for something else.
@torch.inference_mode(False)
@torch.enable_grad()
def train(
    model: CorrelatedModel,
    data: TrainingData,
    settings: TrainingSettings,
    *,
    validation: TrainingData | None = None,
    callbacks: Sequence[Callback] = (),
) -> TrainingResult:
    """Train a model in place, by Adam on unbiased estimates of its objective.

    In a torch process group all processes train one model together, and must make the same call on the same data. A
    step draws as many vertices, edges and pairs as that of one process, and each process takes a part of them; without
    dropout and features drawn anew, the steps are those of one process up to rounding. Every process ends with the
    model. Rank 0 alone looks at the validation data, and reads and writes checkpoints, which any number of processes
    can go on from.

    Parameters
    ----------
    model
        The model. It is moved to the run's device and stays there.
    data
        What to train on.
    settings
        The numbers of the run.
    validation
        Data held out. The model ends with the weights that were best on it, at any evaluation.
    callbacks
        Functions called with a `Progress` after every step; one that is a context manager too is entered before the
        first step and left after the last, whatever happens. Of several processes rank 0 calls them; the others call
        those that have an attribute ``on_every_rank`` that is true. If Ctrl-C came when there was no step left to stop
        before, a method ``asked_late`` of those that have one is called.

    Raises
    ------
    TrainingError
        If a term, or a weight, becomes infinite or not a number.
    LostRankError
        If another process of the group has ended.

    Examples
    --------
    >>> import numpy as np
    >>> from corrvae.nn import Decoder, Encoder, FeatureTable, make_likelihood
    >>> model = CorrelatedModel(Encoder(6, 2), Decoder(2, 6), make_likelihood("gaussian", 6))
    >>> data = TrainingData(FeatureTable(np.ones((50, 6))), np.array([[0, 1], [1, 2]]))
    >>> train(model, data, TrainingSettings(max_steps=20, evaluate_every=10)).history["step"]
    array([10, 20])
    """
    _check(model, data, settings, validation)
    callbacks = check_callbacks(callbacks)
    run = Run(model, data, settings, validation)
    callbacks = [callback for callback in callbacks if run.ranks.is_first or getattr(callback, "on_every_rank", False)]
    mode = model.training
    model.train()
    try:
        with (
            using(pay_off(data.n_vertices)),
            computing_with(_n_threads(model, data, settings)),
            _entered(callbacks, run.ranks),
        ):
            with listen_for_interrupt() as run.interrupt:
                while run.stopped is None:
                    progress = run.advance()
                    with run.by_itself():
                        for callback in callbacks:
                            callback(progress)
                    if run.asked and run.stopped is None:
                        run.stopped = "interrupted"
                    with run.by_itself():
                        run.save_if_due()
                run.tell_failure()
            with run.ranks.agreed():
                if run.interrupt.asked and run.stopped != "interrupted":
                    _tell_late_request(callbacks)
    except LostRankError as error:
        raise run.lost(error) from error
    finally:
        run.close()
        model.train(mode)
    run.finish()
    return TrainingResult(run.history, run.step, run.stopped or "finished", run.best.step)


def _n_threads(model: CorrelatedModel, data: TrainingData, settings: TrainingSettings) -> int | None:
    """Say with how many threads to train; ``None``: with all that there are."""
    n_drawn, n_edges = min(settings.vertex_batch, data.n_vertices), min(settings.edge_batch, data.n_edges)
    n_rows = min(data.n_vertices, n_drawn + 2 * n_edges)
    n_pairs = n_drawn * (n_drawn - 1) // 2 if settings.pair_batch is None else settings.pair_batch
    return worth_having(data.n_vertices, model.products_a_step(n_rows, n_edges + n_pairs))


@contextmanager
def _entered(callbacks: Sequence[Callback], ranks: Ranks) -> Iterator[None]:
    """Enter those callbacks that can be, and leave them at the end; what that fails by is told to all ranks."""
    with ExitStack() as stack:
        with ranks.agreed():
            for callback in callbacks:
                if hasattr(callback, "__enter__"):
                    stack.enter_context(callback)  # pyright: ignore[reportArgumentType]
        yield
        with ranks.agreed():
            stack.pop_all().close()


def _tell_late_request(callbacks: Sequence[Callback]) -> None:
    """Tell those who want to know it that training was asked to stop as it came to its end by itself."""
    for callback in callbacks:
        if hasattr(callback, "asked_late"):
            callback.asked_late()  # pyright: ignore[reportFunctionMemberAccess]


def _check(
    model: CorrelatedModel, data: TrainingData, settings: TrainingSettings, validation: TrainingData | None
) -> None:
    if data.n_vertices == 0:
        raise ValueError("there are no rows to train on")
    if model.pair_network is not None and data.n_edges and settings.vertex_batch < 2:
        raise ValueError("vertex_batch must be at least 2 with a pair network: its non-edge term needs a pair")
    if settings.patience is not None and validation is None:
        raise ValueError("patience needs validation data to stop early on")
    if validation is not None and validation.n_vertices == 0:
        raise ValueError("there are no rows to validate on")
