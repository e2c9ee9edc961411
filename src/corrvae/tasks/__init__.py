"""The three tasks of the experiments, as protocols that know no model: whatever scores or measures pairs can be judged.

`score_matching` and `score_links` judge ranks among candidates, `score_clustering` a cut of the points in two. Scores
and distances come as functions of some rows that give a value for every vertex, so that only a block is ever held.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.tasks.clustering import ClusteringScores as ClusteringScores
    from corrvae.tasks.clustering import score_clustering as score_clustering
    from corrvae.tasks.halves import HalvedUsers as HalvedUsers
    from corrvae.tasks.halves import halve_users as halve_users
    from corrvae.tasks.links import LinkScores as LinkScores
    from corrvae.tasks.links import rank_links as rank_links
    from corrvae.tasks.links import score_links as score_links
    from corrvae.tasks.matching import MatchingScores as MatchingScores
    from corrvae.tasks.matching import UserSplit as UserSplit
    from corrvae.tasks.matching import score_matching as score_matching
    from corrvae.tasks.matching import split_users as split_users
    from corrvae.tasks.metrics import adjusted_rand_index as adjusted_rand_index
    from corrvae.tasks.metrics import area_under_curve as area_under_curve
    from corrvae.tasks.metrics import hits_at as hits_at
    from corrvae.tasks.metrics import ncrr as ncrr
    from corrvae.tasks.metrics import normalised_mutual_information as normalised_mutual_information
    from corrvae.tasks.metrics import reciprocal_rank as reciprocal_rank
    from corrvae.tasks.ranks import PairRanks as PairRanks
    from corrvae.tasks.ranks import rank_pairs as rank_pairs
    from corrvae.tasks.scorers import adamic_adar_scores as adamic_adar_scores
    from corrvae.tasks.scorers import common_neighbour_scores as common_neighbour_scores
    from corrvae.tasks.scorers import degree_scores as degree_scores
    from corrvae.tasks.scorers import embedding_distances as embedding_distances
    from corrvae.tasks.scorers import embedding_scores as embedding_scores

_HOMES = {
    "ClusteringScores": ".clustering",
    "HalvedUsers": ".halves",
    "LinkScores": ".links",
    "MatchingScores": ".matching",
    "PairRanks": ".ranks",
    "UserSplit": ".matching",
    "adamic_adar_scores": ".scorers",
    "adjusted_rand_index": ".metrics",
    "area_under_curve": ".metrics",
    "common_neighbour_scores": ".scorers",
    "degree_scores": ".scorers",
    "embedding_distances": ".scorers",
    "embedding_scores": ".scorers",
    "halve_users": ".halves",
    "hits_at": ".metrics",
    "ncrr": ".metrics",
    "normalised_mutual_information": ".metrics",
    "rank_links": ".links",
    "rank_pairs": ".ranks",
    "reciprocal_rank": ".metrics",
    "score_clustering": ".clustering",
    "score_links": ".links",
    "score_matching": ".matching",
    "split_users": ".matching",
}

__all__ = [
    "ClusteringScores",
    "HalvedUsers",
    "LinkScores",
    "MatchingScores",
    "PairRanks",
    "UserSplit",
    "adamic_adar_scores",
    "adjusted_rand_index",
    "area_under_curve",
    "common_neighbour_scores",
    "degree_scores",
    "embedding_distances",
    "embedding_scores",
    "halve_users",
    "hits_at",
    "ncrr",
    "normalised_mutual_information",
    "rank_links",
    "rank_pairs",
    "reciprocal_rank",
    "score_clustering",
    "score_links",
    "score_matching",
    "split_users",
]

__getattr__, __dir__ = _attach(__name__, _HOMES)
