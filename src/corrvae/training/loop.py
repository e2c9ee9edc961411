"""The training loop: Adam on unbiased estimates of the objective."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import torch
from torch import Tensor

from corrvae.errors import CorrvaeError, TrainingError
from corrvae.model import CorrelatedModel, LearnedTau, TrainingData
from corrvae.model.adaptive import AdaptiveForests, ForestAdapter, ForestWeights
from corrvae.training.distributed import Workers, current_workers, lost_workers_as
from corrvae.training.history import History, Progress
from corrvae.training.validation import OBJECTIVE, broken_term, evaluate

Callback = Callable[[Progress], None]
Stopped = Literal["finished", "early", "interrupted"]

# Most evaluations of a run, and most steps between two of validation data; otherwise there is one an epoch.
_EVALUATIONS, _STEPS = 200, 500
# Models up to so many multiplications a step train on one thread: several gain little there, and beside other programs
# they wait for each other after every product, ten times as long.
_SMALL_STEP = 300_000_000
# The steps of the last part, on all rows, for each step that led to the best weights.
_LAST_PART = 0.5


@torch.inference_mode(False)
@torch.enable_grad()
def train(
    model: CorrelatedModel,
    data: TrainingData,
    *,
    device: str = "cpu",
    callbacks: Sequence[Callback] = (),
    **settings: Any,
) -> "Run":
    """Train a model in place, with the settings of `Run`, and return the run when it is over.

    Under torchrun all processes train one model; every process makes the same call (see `training.distributed`).

    Callbacks get a `Progress` after every step. One that is a context manager is entered before the first step and left
    after the last; one with a method ``start`` gets the `Run` before the first. A `TrainingError` names a term, or a
    weight, that becomes infinite or not a number.
    """
    if data.n_vertices == 0:
        raise ValueError("there are no rows to train on")
    workers = current_workers()
    model.to(choose_device(device))
    run = Run(model, data, workers=workers, **settings)
    mode = model.training
    model.train()
    try:
        with _limited_threads(model, data), ExitStack() as stack:
            for callback in callbacks:
                if workers.is_main and hasattr(callback, "__enter__"):
                    stack.enter_context(callback)  # pyright: ignore[reportArgumentType]
                if hasattr(callback, "start"):
                    callback.start(run)  # pyright: ignore[reportFunctionMemberAccess]
            with _catch_interrupt() as interrupt, lost_workers_as(_lost(run, callbacks)):
                while run.stopped is None:
                    progress = run.advance(interrupt)
                    for callback in callbacks if workers.is_main else ():
                        callback(progress)
        kept = run.averages if run.best_weights is None else run.best_weights
        if kept is not None:
            model.load_state_dict(kept)
        run.check_weights()
    except TrainingError as error:
        raise TrainingError(error.step, error.term, error.rows, run.checkpoint) from error
    finally:
        run.close()
        model.train(mode)
    return run


@final
class Run:
    """A run between two steps: all that a checkpoint holds.

    All terms but the reconstruction grow to the weight `beta` over `warmup_steps`; with 1 the objective is a bound on
    the evidence. The model ends with weights that are averages over the last `average_steps`, if that is not 0, and
    with those under which `validation` data were reconstructed best at any evaluation; training stops after `patience`
    evaluations without improvement. It then continues from there with `everything`, for half as many steps as led
    there: without, what is held out would teach the model nothing. `forests` is how weights of edges follow the
    posterior. A checkpoint with another `identity` is not resumed.

    After so many steps (`step`), `stopped` is why the run is over: "finished", all steps were taken; "early",
    validation stopped improving; "interrupted", by Ctrl-C. `best_step` and `best_weights` are the best evaluation on
    validation data, `between_steps` is false while a step is being taken, and `checkpoint` is where the state was last
    saved.
    """

    checkpoint: Path | None

    def __init__(
        self,
        model: CorrelatedModel,
        data: TrainingData,
        *,
        max_steps: int,
        learning_rate: float = 1e-3,
        warmup_steps: int = 0,
        beta: float = 1.0,
        average_steps: int = 0,
        validation: TrainingData | None = None,
        everything: TrainingData | None = None,
        patience: int | None = None,
        forests: AdaptiveForests | None = None,
        identity: str = "",
        workers: Workers,
    ) -> None:
        self.model, self.data, self.validation, self.workers = model, data, validation, workers
        self.max_steps, self.warmup_steps, self.patience, self.identity = max_steps, warmup_steps, patience, identity
        self.average_steps, self.averages = average_steps, None
        self.beta, self.everything, self.is_last_part = beta, everything, False
        self.forests = forests
        self._begin(data)
        per_epoch = model.family.steps_per_epoch(data)
        per_evaluation = min(per_epoch, _STEPS) if validation is not None else per_epoch
        self.evaluate_every = max(per_evaluation, math.ceil(max_steps / _EVALUATIONS))
        self.optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, maximize=True, fused=True)
        self.step, self.history = 0, History()
        self.stopped: Stopped | None = None
        self.best_value, self.best_step, self.best_weights, self.stale = -math.inf, None, None, 0
        self.between_steps, self.checkpoint = True, None
        self._sums: dict[str, float] = {}
        self._generator = torch.Generator(model.device)
        self._terms = workers.wrap(model, lambda: model(model.family.draw(data, 0).to(model.device), self._generator))
        self._begun = time.monotonic()

    @property
    def seconds(self) -> float:
        """Time spent, that of an interrupted run included."""
        return time.monotonic() - self._begun

    @property
    def epoch(self) -> float:
        """How many times each vertex has been drawn, on average."""
        return self.step / self.model.family.steps_per_epoch(self.data)

    def _begin(self, data: TrainingData) -> None:
        """Train on these data from now on."""
        self.data = data
        self.model.family.observe(data)
        self._adapter = None
        if self.forests is not None and data.edges is not None:
            maximal = self.model.family.draws_forests(data)
            self._adapter = ForestAdapter(data.graph, self.forests, maximal=maximal, seed=data.seed)

    def _is_time_to_adapt(self, options: AdaptiveForests) -> bool:
        if self.is_last_part and self.data.adapted is None:
            return True
        start = options.first * self.model.family.steps_per_epoch(self.data)
        return options.is_due(self.step, max(start, self.warmup_steps))

    def _adapt(self, adapter: ForestAdapter) -> None:
        """Adapt the weights of edges to the posterior."""

        def find() -> ForestWeights:
            table = self.data.table
            return adapter.adapt(self.model.edge_terms(self.model.encode(table), table, self.data.graph))

        self.data = self.data.adapt(self.workers.from_main(find))

    def advance(self, interrupt: threading.Event) -> Progress:
        """Take a step, and evaluate if it is time to."""
        if self._adapter is not None and self._is_time_to_adapt(self._adapter.options):
            self._adapt(self._adapter)
        warmup = self.beta * (min(1.0, self.step / self.warmup_steps) if self.warmup_steps else 1.0)
        batch = self.model.family.draw(self.data, self.step)
        batch = self.workers.share(batch).to(self.model.device)
        # As draws, noise depends on the seed and the step alone.
        self._generator.manual_seed(int(np.random.SeedSequence((self.data.seed, 3, self.step)).generate_state(1)[0]))
        terms = self._terms(batch, self._generator)
        self.optimizer.zero_grad(set_to_none=True)
        terms.total(warmup).backward()
        values, asked = self.workers.average(terms.numbers(warmup), interrupt.is_set())
        if not math.isfinite(values["total"]):
            self.check_weights()
            errors = self.workers.gather(broken_term(terms, batch, self.step, self.data.table))
            raise next((error for error in errors if error.term != OBJECTIVE), errors[0])
        self.between_steps = False
        self.optimizer.step()
        self.step += 1
        self._average()
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        row = None
        if self.step % self.evaluate_every == 0 or self.step == self.max_steps:
            row = self._evaluate()
        if self.stopped is None and self.step >= self.max_steps:
            self.stopped = "finished"
        if self.stopped is not None and self.everything is not None and not self.is_last_part:
            self._start_last_part(math.ceil(_LAST_PART * (self.best_step or self.step)))
        if self.stopped is None and asked:
            self.stopped = "interrupted"
        self.between_steps = True
        return Progress(self.step, self.max_steps, self.epoch, self.seconds, values["total"], row, self.stopped)

    def _average(self) -> None:
        """Move the averages towards the weights: by 1 / average_steps, and by more during the first steps."""
        if not self.average_steps:
            return
        weights = self.model.state_dict()
        if self.averages is None:
            self.averages = {name: tensor.detach().clone() for name, tensor in weights.items()}
        share = max(1.0 / self.average_steps, 1.0 / (1.0 + 0.1 * self.step))
        for name, tensor in self.averages.items():
            tensor.lerp_(weights[name], share) if tensor.is_floating_point() else tensor.copy_(weights[name])

    def _evaluate(self) -> dict[str, float]:
        since = self.step - (int(self.history.columns["step"][-1]) if self.history.n_rows else 0)
        row: dict[str, float] = {"step": self.step, "epoch": self.epoch, "seconds": self.seconds}
        row |= {name: value / since for name, value in self._sums.items()}
        self._sums = {}
        if self._adapter is not None:
            row.setdefault("forests", 0.0)  # before the first update
        if isinstance(self.model.tau, LearnedTau):
            row["tau"] = float(self.model.tau().detach().mean())
        if self.validation is not None:
            weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
            self.model.load_state_dict(weights if self.averages is None else self.averages)
            found = self.workers.from_main(partial(self._validate, self.validation))
            row |= {f"validation_{name}": value for name, value in found.items()}
            self._compare(found["reconstruction"])
            self.model.load_state_dict(weights)
        self.history.append(row)
        return row

    def _start_last_part(self, n_steps: int) -> None:
        """Continue from the best weights, with the rows that were held out among those trained on."""
        if self.best_weights is not None:
            self.model.load_state_dict(self.best_weights)
            self.averages = None
        self._switch(self.step + n_steps)
        self.stopped = None

    def _switch(self, max_steps: int) -> None:
        if self.everything is not None:
            self._begin(self.everything)
            self.validation, self.best_weights = None, None
        self.max_steps, self.is_last_part = max_steps, True

    def _validate(self, data: TrainingData) -> dict[str, float]:
        try:
            return evaluate(self.model, data, seed=data.seed, step=self.step)
        except TrainingError as error:
            raise TrainingError(error.step, f"{error.term} of the validation data", error.rows) from error

    def _compare(self, value: float) -> None:
        if self.step < min(self.warmup_steps, self.max_steps):
            return  # the objective is not yet what is being evaluated
        if value > self.best_value:
            self.best_value, self.best_step, self.stale = value, self.step, 0
            self.best_weights = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        else:
            self.stale += 1
        if self.patience is not None and self.stale >= self.patience:
            self.stopped = "early"

    def close(self) -> None:
        """Release the other workers, whether or not the run is over."""
        self.workers.unwrap(self._terms)

    def check_weights(self) -> None:
        """Raise a `TrainingError` if a weight is infinite or not a number."""
        for name, parameter in self.model.named_parameters():
            if not bool(torch.isfinite(parameter).all()):
                raise TrainingError(self.step, f"the weight {name}")

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the state as JSON and tensors."""
        document = {
            "step": self.step,
            "seconds": self.seconds,
            "sums": self._sums,
            "history": self.history.columns,
            "best": None if self.best_step is None else [self.best_value, self.best_step],
            "stale": self.stale,
            "stopped": self.stopped,
            "last_part": self.max_steps if self.is_last_part else None,
        }
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in (self.best_weights or {}).items()}
        tensors |= {f"average.{name}": tensor for name, tensor in (self.averages or {}).items()}
        adapted = self.data.adapted
        if adapted is not None:
            document["forests"] = [adapted.divergence, adapted.eta]
            for name in ("conductances", "weights"):
                tensors[f"forests.{name}"] = torch.from_numpy(getattr(adapted, name).copy())
        for index, values in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": tensor for name, tensor in values.items()}
        return document, {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}

    def restore(self, document: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Continue from a state that `state` returned."""
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "average": {}, "optimizer": {}, "forests": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        self.model.load_state_dict(parts["model"])
        optimizer = self.optimizer.state_dict()
        for name, tensor in parts["optimizer"].items():
            index, _, key = name.partition(".")
            optimizer["state"].setdefault(int(index), {})[key] = tensor
        for index, values in optimizer["state"].items():
            if values.keys() != {"step", "exp_avg", "exp_avg_sq"}:
                raise ValueError(f"it lacks part of the optimizer's state of parameter {index}")
        self.optimizer.load_state_dict(optimizer)
        self.step, self.stale, self._sums = int(document["step"]), int(document["stale"]), dict(document["sums"])
        self.history = History({name: list(column) for name, column in document["history"].items()})
        device = self.model.device
        if parts["average"]:
            self.averages = {name: tensor.to(device) for name, tensor in parts["average"].items()}
        if document["best"] is not None:
            self.best_value, self.best_step = document["best"]
            self.best_weights = {name: tensor.to(device) for name, tensor in parts["best"].items()}
        self._begun = time.monotonic() - float(document["seconds"])
        if document["last_part"] is not None:
            self._switch(int(document["last_part"]))
        if parts["forests"]:
            conductances, weights = (parts["forests"][name].numpy() for name in ("conductances", "weights"))
            self.data = self.data.adapt(ForestWeights(conductances, weights, *document["forests"]))
        if document["stopped"] == "early" or self.step >= self.max_steps:
            self.stopped = "finished" if self.step >= self.max_steps else "early"


def choose_device(name: str) -> torch.device:
    """Return the device of this name; "auto" takes CUDA, then MPS, then the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, ImportError, AttributeError) as error:  # each kind of device has its own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f'device={name!r} cannot be used here ({reason}); use "auto" or "cpu"') from error
    return device


def _lost(run: Run, callbacks: Sequence[Callback]) -> Callable[[str], Exception]:
    """Return the error of a run that lost a worker, after a last checkpoint if no step is half done."""

    def error(reason: str) -> Exception:
        saving = [callback for callback in callbacks if hasattr(callback, "save")]
        if run.workers.is_main and run.between_steps:
            for callback in saving:
                callback.save()  # pyright: ignore[reportFunctionMemberAccess]
        saved = run.checkpoint is not None if run.workers.is_main else bool(saving)
        advice = "resume from its checkpoint (corrvae fit --resume)" if saved else "there is no checkpoint"
        return CorrvaeError(f"another worker of this run ended after {run.step:,} steps ({reason}); {advice}")

    return error


@contextmanager
def _catch_interrupt() -> Iterator[threading.Event]:
    """Collect Ctrl-C while training, so that the step is finished; the second one interrupts at once."""
    asked = threading.Event()
    previous = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or previous in (None, signal.SIG_IGN):  # handled outside Python, or ignored: a job in the background
        yield asked
        return

    def handle(number: int, frame: Any) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    signal.signal(signal.SIGINT, handle)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def _limited_threads(model: CorrelatedModel, data: TrainingData) -> Iterator[None]:
    """Use one thread for small models."""
    n_rows = data.batch_size  # that pass through all layers; the ends of edges only through the encoder
    if not data.table.sparse_batches:
        n_rows += 2 * data.edge_batch_size
    products = min(n_rows, data.n_vertices) * sum(parameter.numel() for parameter in model.parameters())
    threads = torch.get_num_threads()
    if products <= _SMALL_STEP:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
