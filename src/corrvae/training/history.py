"""What a run reports: its progress after each step, its history at the end."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np


@final
@dataclass(frozen=True, eq=False)
class History(Mapping[str, np.ndarray]):
    """The terms of the objective at every evaluation of a run, as columns by name.

    ``step``, ``epoch`` and ``seconds`` are the time. ``reconstruction``, ``singleton``, ``edge``, ``non_edge`` and
    ``total`` are means over the steps since the previous evaluation, per vertex. The same names after ``validation_``
    are those of the validation data, in the proportions that they have in training; these columns are shorter if
    training ends on all rows. ``tau`` is there if it is learned.
    """

    columns: dict[str, list[float]] = field(default_factory=dict)

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
        """Add an evaluation."""
        for name, value in row.items():
            self.columns.setdefault(name, []).append(value)


@final
@dataclass(frozen=True, eq=False)
class Progress:
    """State of a run after a step.

    `epoch` is how many times each vertex has been drawn, on average; `seconds` include those of a resumed run; `total`
    is the objective at this step's batch; `evaluation` is the new row of the history, if there was one after this step;
    `stopped` is "finished", "early" or "interrupted" after the last step.
    """

    step: int
    max_steps: int
    epoch: float
    seconds: float
    total: float
    evaluation: Mapping[str, float] | None = None
    stopped: str | None = None
