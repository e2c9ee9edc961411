"""What a run reports: its progress while it goes, its history when it is over."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, final

import numpy as np


def is_number(value: Any) -> bool:
    """Whether a value from a file is a number that a float can hold.

    Examples
    --------
    >>> is_number(3), is_number(0.5), is_number(True), is_number(10**400)
    (True, True, False, False)
    """
    return type(value) is float or (type(value) is int and abs(value) < 2**1000)


TERMS = ("reconstruction", "singleton", "edge", "non_edge", "total")


@final
@dataclass(frozen=True, eq=False)
class History(Mapping[str, np.ndarray]):
    """The terms of the objective at every evaluation of a run, as columns by name.

    ``step``, ``epoch`` and ``seconds`` say when. ``reconstruction``, ``singleton``, ``edge``, ``non_edge`` and
    ``total`` are means over the steps since the evaluation before, per vertex; the same names after ``validation_`` are
    those of the validation data, in the proportions that they have in training. ``tau`` is there if it is learned.

    Examples
    --------
    >>> history = History()
    >>> history.append({"step": 10, "total": -3.5})
    >>> history["total"], len(history), history.n_rows
    (array([-3.5]), 2, 1)
    """

    columns: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Any) -> "History":
        """Take up columns from a file; a `ValueError` says that they are none.

        Examples
        --------
        >>> History.of({"step": [10, 20], "total": [-3.5]})
        Traceback (most recent call last):
        ValueError: these are no columns of as many numbers each
        """
        lists = isinstance(columns, dict) and all(isinstance(column, list) for column in columns.values())
        if not lists or len({len(column) for column in columns.values()}) > 1:
            raise ValueError("these are no columns of as many numbers each")
        if not all(map(is_number, chain.from_iterable(columns.values()))):
            raise ValueError("these are no columns of as many numbers each")
        return cls(columns)

    def __getitem__(self, name: str) -> np.ndarray:
        return np.array(self.columns[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"History({self.n_rows} evaluations: {', '.join(self.columns)})"

    @property
    def n_rows(self) -> int:
        """Number of evaluations."""
        return len(self.columns.get("step", ()))

    def append(self, row: Mapping[str, float]) -> None:
        """Add an evaluation; each has the same columns."""
        for name, value in row.items():
            self.columns.setdefault(name, []).append(value)


@final
@dataclass(frozen=True, eq=False)
class Progress:
    """Where a run stands after a step.

    Attributes
    ----------
    step, max_steps
        Steps made, and to be made.
    epoch
        How many times each vertex has been drawn.
    seconds
        Time since training began.
    total
        The objective of this step's batch.
    evaluation
        The history's new row, if there was an evaluation after this step.

    Examples
    --------
    >>> progress = Progress(step=10, max_steps=20, epoch=0.5, seconds=0.1, total=-3.0)
    >>> f"{progress.step / progress.max_steps:.0%}"
    '50%'
    """

    step: int
    max_steps: int
    epoch: float
    seconds: float
    total: float
    evaluation: Mapping[str, float] | None = None


@final
class RunningMeans:
    """Means of the terms over steps."""

    def __init__(self) -> None:
        self.count = 0
        self.sums: dict[str, float] = {}

    def add(self, values: Mapping[str, float]) -> None:
        """Take in the terms of a step."""
        self.count += 1
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def take(self) -> dict[str, float]:
        """Give the means, and begin anew."""
        means = {name: self.sums.get(name, 0.0) / max(1, self.count) for name in TERMS}
        self.count, self.sums = 0, {}
        return means

    def state(self) -> dict[str, Any]:
        """Give the sums as JSON."""
        return {"count": self.count, "sums": dict(self.sums)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from sums that `state` gave; a `ValueError` says that these are none."""
        count, sums = state["count"], dict(state["sums"])
        if type(count) is not int or not all(map(is_number, (count, *sums.values()))) or count < 0:
            raise ValueError("these are no sums over steps")
        self.count, self.sums = count, sums
