"""What a trained run answers: neighbours, likely links, matches, clusters, scores, embeddings, as tables under ids.

`Run` opens a folder; the other modules each hold one question. Answers are `AnswerTable`, which `writing` puts into
CSV, Parquet or JSON. Nothing here knows the command line.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.answers.clusters import Clusters as Clusters
    from corrvae.answers.clusters import find_clusters as find_clusters
    from corrvae.answers.likely_links import BestPairs as BestPairs
    from corrvae.answers.likely_links import best_pairs as best_pairs
    from corrvae.answers.run import Run as Run
    from corrvae.answers.run import is_run_folder as is_run_folder
    from corrvae.answers.tables import AnswerTable as AnswerTable

_HOMES = {
    "AnswerTable": ".tables",
    "BestPairs": ".likely_links",
    "Clusters": ".clusters",
    "Run": ".run",
    "best_pairs": ".likely_links",
    "find_clusters": ".clusters",
    "is_run_folder": ".run",
}

__all__ = ["AnswerTable", "BestPairs", "Clusters", "Run", "best_pairs", "find_clusters", "is_run_folder"]

__getattr__, __dir__ = _attach(__name__, _HOMES)
