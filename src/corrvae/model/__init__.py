"""The mathematics: pair prior, objectives, posteriors, and the families that tie them together.

`CorrelatedModel` holds the networks. Its family (`families/`, one file each) draws batches, computes the objective's
terms and infers `Posterior`s.
"""

from corrvae.model.batch import Batch as Batch
from corrvae.model.batch import TrainingData as TrainingData
from corrvae.model.network import CorrelatedModel as CorrelatedModel
from corrvae.model.network import build_model as build_model
from corrvae.model.objectives import Terms as Terms
from corrvae.model.posterior import Posterior as Posterior
from corrvae.model.prior import LearnedTau as LearnedTau
from corrvae.model.prior import PairPrior as PairPrior
