"""The training loop."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import torch
from torch import Tensor

from corrvae.errors import FolderError, TrainingError
from corrvae.model import CorrelatedModel
from corrvae.nn.prior import LearnedTau
from corrvae.objectives import Terms
from corrvae.training.batches import BatchSource, Drawn
from corrvae.training.callbacks import Callback
from corrvae.training.checkpoints import CheckpointFolder, Timetable, describe_run
from corrvae.training.data import TrainingData
from corrvae.training.evaluation import Evaluator
from corrvae.training.history import History, Progress, RunningMeans, term_values
from corrvae.training.interrupts import listen_for_interrupt
from corrvae.training.settings import TrainingSettings, choose_device

Stopped = Literal["finished", "early", "interrupted"]


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
    """

    history: History
    n_steps: int
    stopped: Stopped
    best_step: int | None = None


def train(
    model: CorrelatedModel,
    data: TrainingData,
    settings: TrainingSettings,
    *,
    validation: TrainingData | None = None,
    callbacks: Sequence[Callback] = (),
) -> TrainingResult:
    """Train a model in place, by Adam on unbiased estimates of its objective.

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
        first step and left after the last, whatever happens.

    Raises
    ------
    TrainingError
        If a term becomes infinite or not a number. The model keeps the weights from before that step.

    Examples
    --------
    >>> from corrvae.nn import Decoder, Encoder, FeatureTable, make_likelihood
    >>> model = CorrelatedModel(Encoder(6, 2), Decoder(2, 6), make_likelihood("gaussian", 6))
    >>> data = TrainingData(FeatureTable(np.ones((50, 6))), np.array([[0, 1], [1, 2]]))
    >>> train(model, data, TrainingSettings(max_steps=20, evaluate_every=10)).history["step"]
    array([10, 20])
    """
    run = _Run(model, data, settings, validation)
    mode = model.training
    model.train()
    try:
        with ExitStack() as stack:
            for callback in callbacks:
                if hasattr(callback, "__enter__"):
                    stack.enter_context(callback)  # pyright: ignore[reportArgumentType]
            with listen_for_interrupt() as interrupt:
                while run.stopped is None:
                    progress = run.advance()
                    for callback in callbacks:
                        callback(progress)
                    if interrupt.asked and run.stopped is None:
                        run.stopped = "interrupted"
                    run.save_if_due()
    finally:
        model.train(mode)
    return run.finish()


@final
class _Run:
    """A run between two steps: all that a checkpoint holds."""

    def __init__(
        self, model: CorrelatedModel, data: TrainingData, settings: TrainingSettings, validation: TrainingData | None
    ) -> None:
        _check(model, data, settings, validation)
        self.model, self.data, self.settings = model, data, settings
        self.device = choose_device(settings.device)
        model.to(self.device)
        of_batches, of_noise, of_validation = np.random.SeedSequence(settings.seed).spawn(3)
        self.batches = BatchSource(data, settings, of_batches, self.device)
        self.generator = torch.Generator(self.device).manual_seed(int(of_noise.generate_state(1, np.uint64)[0]))
        self.evaluator: Evaluator | None = None
        if validation is not None:
            self.evaluator = Evaluator(validation, settings.gamma, of_validation, self.device)
        # One fused kernel where torch has it.
        fused = self.device.type in ("cpu", "cuda")
        self._parameters = list(model.parameters())
        self.optimizer = torch.optim.Adam(self._parameters, lr=settings.learning_rate, maximize=True, fused=fused)
        self.population = data.population
        self.means, self.history, self.best = RunningMeans(), History(), _Best()
        self.step, self.seconds = 0, 0.0
        self.stopped: Stopped | None = None
        self.checkpoints: CheckpointFolder | None = None
        if settings.checkpoint is not None:
            run = describe_run(model, data, settings, validation, self.device)
            self.checkpoints = CheckpointFolder(Path(settings.checkpoint), run)
            if settings.resume:
                self._resume(self.checkpoints)
            else:
                self.checkpoints.clear()
        self.timetable = Timetable(settings)
        self._begun = time.monotonic() - self.seconds

    def advance(self) -> Progress:
        """Make a step, and evaluate if it is time to."""
        settings = self.settings
        warmup = 1.0 if self.step >= settings.warmup_steps else self.step / settings.warmup_steps
        drawn = self.batches.next()
        terms = self.model.terms(
            drawn.batch, self.population, gamma=settings.gamma, warmup=warmup, generator=self.generator
        )
        for parameter in self._parameters:
            parameter.grad = None
        terms.total.backward()
        values = term_values(terms)
        if not math.isfinite(values["total"]):
            self._break(*_broken(terms, values, drawn))
        self.optimizer.step()
        self.means.add(values)
        self.step += 1
        evaluation = None
        if self.step % settings.evaluate_every == 0 or self.step == settings.max_steps:
            evaluation = self._evaluate()
        if self.step == settings.max_steps and self.stopped is None:
            self.stopped = "finished"
        self.seconds = time.monotonic() - self._begun
        return Progress(self.step, settings.max_steps, self.epoch, self.seconds, values["total"], evaluation)

    @property
    def epoch(self) -> float:
        """How many times each vertex has been drawn."""
        return self.step * self.batches.n_drawn / self.data.n_vertices

    def save_if_due(self) -> None:
        """Write a checkpoint if it is time to, or the run is over."""
        if self.checkpoints is None or not (self.stopped is not None or self.timetable.is_due(self.step)):
            return
        for name, parameter in self.model.named_parameters():
            if not bool(torch.isfinite(parameter).all()):
                self._break(f"the weight {name}", ())
        self.checkpoints.write(self.step, self._document(), self._tensors())
        self.timetable.written()

    def finish(self) -> TrainingResult:
        """Give the model its best weights, and the result."""
        best_step = self.best.step
        if self.best.weights is not None:
            self.model.load_state_dict(self.best.weights)
        return TrainingResult(self.history, self.step, self.stopped or "finished", best_step)

    def _evaluate(self) -> dict[str, float]:
        row: dict[str, float] = {"step": self.step, "epoch": self.epoch, "seconds": time.monotonic() - self._begun}
        row |= self.means.take()
        if isinstance(self.model.tau, LearnedTau):
            row["tau"] = float(self.model.tau().detach().mean())
        if self.evaluator is not None:
            values = self.evaluator(self.model)
            for name, value in values.items():
                if not math.isfinite(value):
                    self._break(f"{name} of the validation data", ())
                row[f"validation_{name}"] = value
            self.best.offer(values["total"], self.step, self.model)
            if self.settings.patience is not None and self.best.stale >= self.settings.patience:
                self.stopped = "early"
        self.history.append(row)
        return row

    def _break(self, term: str, rows: tuple[int, ...]) -> None:
        checkpoint = None if self.checkpoints is None else self.checkpoints.latest()
        raise TrainingError(self.step, term, rows, checkpoint)

    def _document(self) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "batches": self.batches.state(),
            "means": self.means.state(),
            "history": self.history.columns,
            "best": self.best.state(),
            "stopped": self.stopped,
        }

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{name}": tensor for name, tensor in state.items()}
        tensors |= {f"best.{name}": tensor for name, tensor in (self.best.weights or {}).items()}
        return {**tensors, "noise": self.generator.get_state()}

    def _resume(self, checkpoints: CheckpointFolder) -> None:
        found = checkpoints.read()
        if found is None:
            return
        document, tensors = found.document, found.tensors
        place = checkpoints.latest() or checkpoints.path
        with _told_as_damage(place):
            self.model.load_state_dict(_under(tensors, "model."))
            state: dict[int, dict[str, Tensor]] = {}
            for name, tensor in _under(tensors, "optimizer.").items():
                number, _, part = name.partition(".")
                state.setdefault(int(number), {})[part] = tensor
            groups = self.optimizer.state_dict()["param_groups"]
            self.optimizer.load_state_dict({"state": state, "param_groups": groups})
            self.generator.set_state(tensors["noise"])
            self.batches.restore(document["batches"])
            self.means.restore(document["means"])
            self.history = History(document["history"])
            self.best.restore(document["best"], _under(tensors, "best."))
            self.step, self.seconds = document["step"], document["seconds"]
            if self.step >= self.settings.max_steps or document["stopped"] == "early":
                self.stopped = document["stopped"] or "finished"


@final
class _Best:
    """The best weights so far, by the validation objective."""

    def __init__(self) -> None:
        self.value = -math.inf
        self.step: int | None = None
        self.stale = 0
        self.weights: dict[str, Tensor] | None = None

    def offer(self, value: float, step: int, model: CorrelatedModel) -> None:
        """Keep a copy of the weights if they are better than all before."""
        if value > self.value:
            self.value, self.step, self.stale = value, step, 0
            self.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        else:
            self.stale += 1

    def state(self) -> dict[str, Any]:
        """Give all but the weights as JSON."""
        return {"value": self.value if self.step is not None else None, "step": self.step, "stale": self.stale}

    def restore(self, state: dict[str, Any], weights: dict[str, Tensor]) -> None:
        """Take up what `state` gave."""
        if state["step"] is not None:
            self.value, self.step, self.stale, self.weights = state["value"], state["step"], state["stale"], weights


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


def _broken(terms: Terms, values: dict[str, float], drawn: Drawn) -> tuple[str, tuple[int, ...]]:
    """Find the first term that broke, and the vertices it broke at."""
    for name, mean in terms.means.items():
        wrong = torch.nonzero(~torch.isfinite(mean.values.detach()))[:, 0].cpu()
        if len(wrong):
            batch = drawn.batch
            places = {"edge": batch.edges, "non_edge": batch.pairs}.get(name)
            if name == "non_edge" and places is None:
                places = torch.triu_indices(batch.n_drawn, batch.n_drawn, 1).T
            positions = wrong if places is None else places.cpu()[wrong].reshape(-1).unique()
            return f"the {name} term", tuple(drawn.vertices[positions.numpy()].tolist())
    return "the objective", tuple(drawn.vertices.tolist())


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


@contextmanager
def _told_as_damage(place: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise FolderError(place, f"damaged: it is not a whole checkpoint ({error})") from error
