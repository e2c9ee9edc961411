"""The networks: encoder, decoder, pair networks, likelihoods, and the rows of features they read.

Plain torch modules that know neither graph nor objective. A batch enters as `Rows`, dense or sparse by its density, and
a sparse one is never made dense.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.nn.bilinear import PairBilinear as PairBilinear
    from corrvae.nn.decoder import Decoder as Decoder
    from corrvae.nn.encoder import Encoder as Encoder
    from corrvae.nn.encoder import Marginals as Marginals
    from corrvae.nn.features import FeatureTable as FeatureTable
    from corrvae.nn.inputs import InputTransform as InputTransform
    from corrvae.nn.likelihoods import EntrywiseLikelihood as EntrywiseLikelihood
    from corrvae.nn.likelihoods import Likelihood as Likelihood
    from corrvae.nn.likelihoods import make_likelihood as make_likelihood
    from corrvae.nn.metric import PairMetric as PairMetric
    from corrvae.nn.pairs import PairNetwork as PairNetwork
    from corrvae.nn.perceptron import PairPerceptron as PairPerceptron
    from corrvae.nn.prior import LearnedTau as LearnedTau
    from corrvae.nn.prior import PairPrior as PairPrior
    from corrvae.nn.rows import DenseRows as DenseRows
    from corrvae.nn.rows import Rows as Rows
    from corrvae.nn.rows import SparsePattern as SparsePattern
    from corrvae.nn.rows import SparseRows as SparseRows

_HOMES = {
    "Decoder": ".decoder",
    "DenseRows": ".rows",
    "Encoder": ".encoder",
    "EntrywiseLikelihood": ".likelihoods",
    "FeatureTable": ".features",
    "InputTransform": ".inputs",
    "LearnedTau": ".prior",
    "Likelihood": ".likelihoods",
    "Marginals": ".encoder",
    "PairBilinear": ".bilinear",
    "PairMetric": ".metric",
    "PairNetwork": ".pairs",
    "PairPerceptron": ".perceptron",
    "PairPrior": ".prior",
    "Rows": ".rows",
    "SparsePattern": ".rows",
    "SparseRows": ".rows",
    "make_likelihood": ".likelihoods",
}
__all__ = [
    "Decoder",
    "DenseRows",
    "Encoder",
    "EntrywiseLikelihood",
    "FeatureTable",
    "InputTransform",
    "LearnedTau",
    "Likelihood",
    "Marginals",
    "PairBilinear",
    "PairMetric",
    "PairNetwork",
    "PairPerceptron",
    "PairPrior",
    "Rows",
    "SparsePattern",
    "SparseRows",
    "make_likelihood",
]

__getattr__, __dir__ = _attach(__name__, _HOMES)
