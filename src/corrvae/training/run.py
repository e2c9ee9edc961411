"""A training run between two steps: all that it draws, keeps count of, saves and takes up again."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NoReturn, final

import numpy as np
import torch
from torch import Tensor

from corrvae.errors import FolderError, LostRankError, TrainingError
from corrvae.model import CorrelatedModel
from corrvae.nn.prior import LearnedTau
from corrvae.objectives import Terms
from corrvae.ranks import current_ranks
from corrvae.training.adam import Adam
from corrvae.training.batches import BatchSource, Drawn
from corrvae.training.best import BestWeights
from corrvae.training.breakage import broken_term
from corrvae.training.checkpoints import CheckpointFolder, Timetable, describe_run
from corrvae.training.data import TrainingData
from corrvae.training.evaluation import Evaluator
from corrvae.training.exchange import GradientExchange, agree, check_alike, hand_out, hear, read_checkpoint, weigh_share
from corrvae.training.history import History, Progress, RunningMeans, is_number
from corrvae.training.interrupts import Interrupt
from corrvae.training.noise import SharedNoise
from corrvae.training.settings import TrainingSettings, choose_device

Stopped = Literal["finished", "early", "interrupted"]


@final
class Run:
    """A run between two steps: all that a checkpoint holds.

    In a process group every rank has a run, and they make each step together. Rank 0 alone evaluates and writes.

    Parameters
    ----------
    model, data, settings, validation
        As in `train`. A checkpoint in the settings' folder is taken up, if it is to be.

    Attributes
    ----------
    step : int
        Steps made.
    history : History
        The evaluations.
    best : BestWeights
        The best of them.
    stopped : str or None
        Why the run is over; ``None`` while it is not.
    interrupt : Interrupt
        Whether this rank has been asked to stop.
    """

    def __init__(
        self, model: CorrelatedModel, data: TrainingData, settings: TrainingSettings, validation: TrainingData | None
    ) -> None:
        self.model, self.data, self.settings = model, data, settings
        self.ranks = current_ranks()
        self.device = choose_device(settings.device, together=self.ranks.count > 1)
        model.to(self.device)
        of_batches, of_noise, of_validation = np.random.SeedSequence(settings.seed).spawn(3)
        pairwise = model.pair_network is not None
        self.batches = BatchSource(data, settings, of_batches, self.device, self.ranks, with_pairs=pairwise)
        self.generator = torch.Generator(self.device).manual_seed(int(of_noise.generate_state(1, np.uint64)[0]))
        self.evaluator: Evaluator | None = None
        if validation is not None:
            self.evaluator = Evaluator(validation, settings.gamma, of_validation, self.device, data.population)
        self.adam = Adam(list(model.parameters()), settings.learning_rate)
        self.population = data.population
        self._vertices = np.empty(0, dtype=np.int64)  # of the step before
        self.means, self.history, self.best = RunningMeans(), History(), BestWeights()
        self.step, self.seconds = 0, 0.0
        self.stopped: Stopped | None = None
        self.interrupt, self._any_asked = Interrupt(), False
        self._failure: Exception | None = None
        self.checkpoints: CheckpointFolder | None = None
        self._exchange: GradientExchange | None = None
        self._noise = SharedNoise(model, self.generator, self.ranks, self.batches.n_drawn)
        if settings.checkpoint is not None or self.ranks.count > 1:
            run = describe_run(model, data, settings, validation, self.device)
            if self.ranks.count > 1:
                alone = {"checkpoint": settings.checkpoint is not None, "resume": settings.resume}
                check_alike(self.ranks, {**run, **alone, "max_steps": settings.max_steps})
                model.load_state_dict(hand_out(self.ranks, model.state_dict()))
                self._exchange = GradientExchange(model)
            if settings.checkpoint is not None:
                self.checkpoints = CheckpointFolder(Path(settings.checkpoint), run)
        if self.checkpoints is not None:
            if settings.resume:
                self._resume(self.checkpoints)
            else:
                with self.ranks.agreed():
                    if self.ranks.is_first:
                        self.checkpoints.clear()
        self.timetable = Timetable(settings)
        self._begun = time.monotonic() - self.seconds

    def advance(self) -> Progress:
        """Make a step, and evaluate if it is time to."""
        settings = self.settings
        warmup = 1.0 if self.step >= settings.warmup_steps else self.step / settings.warmup_steps
        drawn = self.batches.next()
        self.adam.forget_gradients()
        if self._exchange is None:
            terms = self.model.terms(
                drawn.batch,
                self.population,
                gamma=settings.gamma,
                warmup=warmup,
                generator=self.generator,
                taped=not any(map(_has_hooks, self.adam.parameters)),
            )
            terms.climb()
            values = terms.numbers()
        else:
            terms = self._exchange.climb(self._share_of_terms(drawn, warmup))
            failed = self._failure is not None
            agreed = agree(self.ranks, terms.numbers(), asked=self.interrupt.asked, failed=failed)
            if agreed.failed:
                self.tell_failure()
            values, self._any_asked = agreed.values, agreed.asked
        if not math.isfinite(values["total"]):
            self._break_at(terms, drawn)
        self.adam.step()
        self._vertices = drawn.vertices
        self.means.add(values)
        self.step += 1
        evaluation = None
        if self.step % settings.evaluate_every == 0 or self.step == settings.max_steps:
            evaluation = self._evaluate()
        if self.step == settings.max_steps and self.stopped is None:
            self.stopped = "finished"
        self.seconds = time.monotonic() - self._begun
        return Progress(self.step, settings.max_steps, self.epoch, self.seconds, values["total"], evaluation)

    @contextmanager
    def by_itself(self) -> Iterator[None]:
        """Do what the other ranks do not do; if it fails, all of them raise the error at their next exchange.

        That is the one of the next step, which is not made, or `tell_failure` after the last.
        """
        try:
            yield
        except Exception as error:
            if self.ranks.count == 1:
                raise
            self._failure = self._failure or error

    def tell_failure(self) -> None:
        """Raise on every rank what any of them failed by when it was by itself."""
        with self.ranks.agreed():
            if self._failure is not None:
                raise self._failure

    @property
    def asked(self) -> bool:
        """Whether to stop; of several ranks, whether any was to at the last step, so that all leave at one."""
        return self.interrupt.asked if self.ranks.count == 1 else self._any_asked

    @property
    def epoch(self) -> float:
        """How many times each vertex has been drawn."""
        return self.step * self.batches.n_drawn / self.data.n_vertices

    def save_if_due(self) -> None:
        """Write a checkpoint if it is time to, or the run is over."""
        if self.checkpoints is None or not (self.stopped is not None or self.timetable.is_due(self.step)):
            return
        if not self.ranks.is_first:
            return
        self._check_weights()
        self.checkpoints.write(self.step, self._document(), self._tensors())
        self.timetable.written()

    def finish(self) -> None:
        """Give the model its best weights, if there was an evaluation on validation data, and check those it has."""
        if self.best.weights is not None:
            self.model.load_state_dict(self.best.weights)
        self._check_weights()  # no term has seen yet what the last step made of them

    def close(self) -> None:
        """Let go of the other ranks, whether or not the run is over."""
        if self._exchange is not None:
            self._exchange.close()

    def lost(self, error: LostRankError) -> LostRankError:
        """Say of a lost rank when it was, and where the last checkpoint is."""
        checkpoint = None if self.checkpoints is None else self.checkpoints.latest()
        return LostRankError(error.problem, self.step, checkpoint)

    def _share_of_terms(self, drawn: Drawn, warmup: float) -> Callable[[], Terms]:
        """Give a function that makes the terms of this rank's part of a step, the same ones at every call."""
        noise = self._noise.draw(drawn.batch)

        def make() -> Terms:
            given = {"gamma": self.settings.gamma, "warmup": warmup, "noise": noise.latent}
            terms = self.model.terms(drawn.batch, self.population, generator=noise.generator(), **given)
            return weigh_share(terms, drawn.shares or {})

        return make

    def _validate(self) -> dict[str, float]:
        """Let rank 0 evaluate the validation data, and every rank know the result."""
        values, broken, evaluator = None, None, self.evaluator
        with self.ranks.agreed():
            if self.ranks.is_first and evaluator is not None:
                values = evaluator(self.model)
                if not all(map(math.isfinite, values.values())):
                    broken = evaluator.find_broken(self.model)
        values, broken = self.ranks.tell([values, broken])
        if broken is not None:
            self._check_weights()
            self._break(broken[0], tuple(broken[1]), held_out=True)
        return values

    def _evaluate(self) -> dict[str, float]:
        row: dict[str, float] = {"step": self.step, "epoch": self.epoch, "seconds": time.monotonic() - self._begun}
        row |= self.means.take()
        if isinstance(self.model.tau, LearnedTau):
            row["tau"] = float(self.model.tau().detach().mean())
        row = self.ranks.tell(row)  # there is one history, also of the seconds
        if self.evaluator is not None:
            values = self._validate()
            row |= {f"validation_{name}": value for name, value in values.items()}
            self.best.offer(values["total"], self.step, self.model)
            if self.step <= self.settings.warmup_steps:
                self.best.stale = 0  # the objective is not yet what is being evaluated
            if self.settings.patience is not None and self.best.stale >= self.settings.patience:
                self.stopped = "early"
        self.history.append(row)
        return row

    def _break_at(self, terms: Terms, drawn: Drawn) -> NoReturn:
        self._check_weights()  # if these are broken already, the step before is to blame
        broken = broken_term(terms, drawn.batch, drawn.vertices)
        if self.ranks.count > 1:
            fine = all(map(math.isfinite, terms.numbers().values()))
            found = [other for other in hear(self.ranks, None if fine else broken) if other is not None]
            broken = (found[0][0], tuple(found[0][1])) if found else broken
        self._break(*broken)

    def _check_weights(self) -> None:
        for name, parameter in self.model.named_parameters():
            if not bool(torch.isfinite(parameter).all()):
                self._break(f"the weight {name}", tuple(self._vertices.tolist()))

    def _break(self, term: str, rows: tuple[int, ...], held_out: bool = False) -> NoReturn:
        checkpoint = None if self.checkpoints is None else self.checkpoints.latest()
        raise TrainingError(self.step, term, rows, checkpoint, held_out)

    def _check_best(self) -> None:
        weights, own = self.best.weights, self.model.state_dict()
        if weights is not None and {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in own.items()}:
            raise ValueError("its best weights are not those of this model")

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
        tensors |= {f"optimizer.{name}": tensor for name, tensor in self.adam.tensors().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in (self.best.weights or {}).items()}
        return {**tensors, "noise": self.generator.get_state()}

    def _resume(self, checkpoints: CheckpointFolder) -> None:
        found = read_checkpoint(self.ranks, checkpoints)
        if found is None:
            return
        document, tensors = found.document, found.tensors
        place = checkpoints.latest() or checkpoints.path
        with _told_as_damage(place):
            self.model.load_state_dict(_under(tensors, "model."))
            self.adam.restore(_under(tensors, "optimizer."))
            self.generator.set_state(tensors["noise"])
            self.batches.restore(document["batches"])
            self.means.restore(document["means"])
            self.history = History.of(document["history"])
            self.best.restore(document["best"], _under(tensors, "best."))
            self.step, self.seconds = document["step"], document["seconds"]
            if type(self.step) is not int or not all(map(is_number, (self.step, self.seconds))):
                raise ValueError("its step and seconds are none")
            if self.step < 1 or self.seconds < 0:
                raise ValueError("its step and seconds are none")
            self._check_best()
            if document["stopped"] == "early":
                self.stopped = "early"
            elif self.step >= self.settings.max_steps:
                self.stopped = "finished"


def _has_hooks(parameter: Tensor) -> bool:
    """Say whether somebody waits for a parameter's gradient; torch has no public way to ask."""
    return bool(parameter._backward_hooks or parameter._post_accumulate_grad_hooks)


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


@contextmanager
def _told_as_damage(place: Path) -> Iterator[None]:
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError, AttributeError) as error:
        raise FolderError(place, f"damaged: it is not a whole checkpoint ({error})") from error
