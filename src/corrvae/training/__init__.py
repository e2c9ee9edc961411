"""Training: what a fit draws from, the loop, validation, checkpoints, callbacks, and several processes."""

from corrvae.training.callbacks import CSVLog as CSVLog
from corrvae.training.callbacks import ProgressBar as ProgressBar
from corrvae.training.checkpoints import Checkpoint as Checkpoint
from corrvae.training.data import PreparedData as PreparedData
from corrvae.training.data import prepare_data as prepare_data
from corrvae.training.history import History as History
from corrvae.training.history import Progress as Progress
from corrvae.training.loop import Callback as Callback
from corrvae.training.loop import Run as Run
from corrvae.training.loop import train as train
