"""Scores between data points: exact neighbours, ranks and link scores, never with an n-by-n matrix.

`CorrelatedVAE` is the door for its own rows and new ones; `nearest` and `rank` search any `Points`.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.scoring.assignment import assign as assign
    from corrvae.scoring.calibration import LinkCalibration as LinkCalibration
    from corrvae.scoring.calibration import calibrate as calibrate
    from corrvae.scoring.metrics import Cosine as Cosine
    from corrvae.scoring.metrics import ExpectedDistance as ExpectedDistance
    from corrvae.scoring.metrics import LogOdds as LogOdds
    from corrvae.scoring.metrics import MeanDistance as MeanDistance
    from corrvae.scoring.metrics import Parts as Parts
    from corrvae.scoring.neighbors import nearest as nearest
    from corrvae.scoring.points import Exclusions as Exclusions
    from corrvae.scoring.points import Points as Points
    from corrvae.scoring.ranks import rank as rank
    from corrvae.scoring.results import Matches as Matches
    from corrvae.scoring.results import Neighbors as Neighbors
    from corrvae.scoring.results import PairRanks as PairRanks
    from corrvae.scoring.results import PairScores as PairScores

_HOMES = {
    "Cosine": ".metrics",
    "Exclusions": ".points",
    "ExpectedDistance": ".metrics",
    "LinkCalibration": ".calibration",
    "LogOdds": ".metrics",
    "Matches": ".results",
    "MeanDistance": ".metrics",
    "Neighbors": ".results",
    "PairRanks": ".results",
    "PairScores": ".results",
    "Parts": ".metrics",
    "Points": ".points",
    "assign": ".assignment",
    "calibrate": ".calibration",
    "nearest": ".neighbors",
    "rank": ".ranks",
}
__all__ = [
    "Cosine",
    "Exclusions",
    "ExpectedDistance",
    "LinkCalibration",
    "LogOdds",
    "Matches",
    "MeanDistance",
    "Neighbors",
    "PairRanks",
    "PairScores",
    "Parts",
    "Points",
    "assign",
    "calibrate",
    "nearest",
    "rank",
]

__getattr__, __dir__ = _attach(__name__, _HOMES)
