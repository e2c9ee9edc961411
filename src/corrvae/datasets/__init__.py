"""The data of the experiments (a synthetic tree; MovieLens, Epinions, Ciao, Citeseer), and data to try.

Published data are kept in one folder, ``CORRVAE_DATA`` or the platform's cache; `get` puts them there.
"""

from corrvae.datasets.citations import Citations as Citations
from corrvae.datasets.citations import citeseer as citeseer
from corrvae.datasets.published import CATALOGUE as CATALOGUE
from corrvae.datasets.published import cache_folder as cache_folder
from corrvae.datasets.published import get as get
from corrvae.datasets.published import locate as locate
from corrvae.datasets.ratings import HalvedRatings as HalvedRatings
from corrvae.datasets.ratings import TrustData as TrustData
from corrvae.datasets.ratings import ciao as ciao
from corrvae.datasets.ratings import epinions as epinions
from corrvae.datasets.ratings import movielens as movielens
from corrvae.datasets.ratings import rated_products as rated_products
from corrvae.datasets.ratings import watched as watched
from corrvae.datasets.synthetic import Listeners as Listeners
from corrvae.datasets.synthetic import TreeData as TreeData
from corrvae.datasets.synthetic import listeners as listeners
from corrvae.datasets.synthetic import tree as tree
from corrvae.datasets.users import HalvedUsers as HalvedUsers
from corrvae.datasets.users import UserSplit as UserSplit
from corrvae.datasets.users import halve_users as halve_users
from corrvae.datasets.users import split_users as split_users
