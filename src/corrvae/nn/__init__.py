"""The networks: encoder, decoder, pair networks, likelihoods, and the rows of features they read.

Plain torch modules that know neither graph nor objective and run on any device. A batch enters as `Rows`, dense or
sparse by its density; a sparse one is never made dense.
"""

from corrvae.nn.layers import NORMALIZATIONS as NORMALIZATIONS
from corrvae.nn.layers import InputTransform as InputTransform
from corrvae.nn.layers import RowsLinear as RowsLinear
from corrvae.nn.layers import perceptron as perceptron
from corrvae.nn.likelihoods import LIKELIHOODS as LIKELIHOODS
from corrvae.nn.likelihoods import EntrywiseLikelihood as EntrywiseLikelihood
from corrvae.nn.likelihoods import Likelihood as Likelihood
from corrvae.nn.likelihoods import choose_likelihood as choose_likelihood
from corrvae.nn.likelihoods import make_likelihood as make_likelihood
from corrvae.nn.networks import Decoder as Decoder
from corrvae.nn.networks import Encoder as Encoder
from corrvae.nn.networks import Marginals as Marginals
from corrvae.nn.pair_networks import PAIR_NETWORKS as PAIR_NETWORKS
from corrvae.nn.pair_networks import PairBilinear as PairBilinear
from corrvae.nn.pair_networks import PairMetric as PairMetric
from corrvae.nn.pair_networks import PairNetwork as PairNetwork
from corrvae.nn.pair_networks import PairPerceptron as PairPerceptron
from corrvae.nn.rows import DenseRows as DenseRows
from corrvae.nn.rows import FeatureTable as FeatureTable
from corrvae.nn.rows import Rows as Rows
from corrvae.nn.rows import Scaling as Scaling
from corrvae.nn.rows import SparsePattern as SparsePattern
from corrvae.nn.rows import SparseRows as SparseRows
