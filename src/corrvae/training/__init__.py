"""Training: what a step draws, the loop over steps, checkpoints, callbacks and the history of a run.

`train` is the door. It leaves global state alone: every draw comes from generators of its own, seeded once.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.training.callbacks import Callback as Callback
    from corrvae.training.callbacks import CSVLog as CSVLog
    from corrvae.training.callbacks import ProgressBar as ProgressBar
    from corrvae.training.callbacks import TensorBoardLog as TensorBoardLog
    from corrvae.training.data import TrainingData as TrainingData
    from corrvae.training.history import History as History
    from corrvae.training.history import Progress as Progress
    from corrvae.training.holdout import HoldOut as HoldOut
    from corrvae.training.holdout import hold_out as hold_out
    from corrvae.training.loop import TrainingResult as TrainingResult
    from corrvae.training.loop import train as train
    from corrvae.training.settings import TrainingSettings as TrainingSettings
    from corrvae.training.settings import steps_for_epochs as steps_for_epochs

_HOMES = {
    "CSVLog": ".callbacks",
    "Callback": ".callbacks",
    "History": ".history",
    "HoldOut": ".holdout",
    "Progress": ".history",
    "ProgressBar": ".callbacks",
    "TensorBoardLog": ".callbacks",
    "TrainingData": ".data",
    "TrainingResult": ".loop",
    "TrainingSettings": ".settings",
    "hold_out": ".holdout",
    "steps_for_epochs": ".settings",
    "train": ".loop",
}
__all__ = [
    "CSVLog",
    "Callback",
    "History",
    "HoldOut",
    "Progress",
    "ProgressBar",
    "TensorBoardLog",
    "TrainingData",
    "TrainingResult",
    "TrainingSettings",
    "hold_out",
    "steps_for_epochs",
    "train",
]

__getattr__, __dir__ = _attach(__name__, _HOMES)
