"""Scores between data points: nearest neighbours, ranks, matches, probabilities of links; and of features at points.

Everything works on a `corrvae.model.posterior.Posterior` and on positions in it; `corrvae.CorrelatedVAE` puts ids on.
Memory never grows with the product of queries and candidates.
"""

from corrvae.scoring.calibration import LinkCalibration as LinkCalibration
from corrvae.scoring.calibration import calibrate as calibrate
from corrvae.scoring.calibration import calibrate_links as calibrate_links
from corrvae.scoring.calibration import random_unlinked as random_unlinked
from corrvae.scoring.effects import Balance as Balance
from corrvae.scoring.effects import Effect as Effect
from corrvae.scoring.features import alike_features as alike_features
from corrvae.scoring.features import top_features as top_features
from corrvae.scoring.matching import Matches as Matches
from corrvae.scoring.matching import assign as assign
from corrvae.scoring.matching import match as match
from corrvae.scoring.metrics import METRICS as METRICS
from corrvae.scoring.metrics import Metric as Metric
from corrvae.scoring.metrics import Points as Points
from corrvae.scoring.metrics import make_metric as make_metric
from corrvae.scoring.results import EdgeSupport as EdgeSupport
from corrvae.scoring.results import Neighbors as Neighbors
from corrvae.scoring.results import PairRanks as PairRanks
from corrvae.scoring.results import PairScores as PairScores
from corrvae.scoring.results import RankedFeatures as RankedFeatures
from corrvae.scoring.search import Parts as Parts
from corrvae.scoring.search import best_pairs as best_pairs
from corrvae.scoring.search import nearest as nearest
from corrvae.scoring.search import parts as parts
from corrvae.scoring.search import rank as rank
from corrvae.scoring.search import score as score
from corrvae.scoring.search import score_matrix as score_matrix
