import numpy as np
import pytest

from corrvae.answers.tables import AnswerTable, better, neighbors_table, score_table
from corrvae.scoring.metrics import Cosine, ExpectedDistance, LogOdds, MeanDistance, Parts
from corrvae.scoring.results import Neighbors


@pytest.mark.parametrize("metric", [Cosine, ExpectedDistance, LogOdds, MeanDistance])
def test_the_direction_is_the_metrics(metric):
    assert better(metric.name) == ("higher" if metric.larger_is_better else "lower")


def test_every_table_of_scores_ends_in_the_same_columns():
    parts = Parts(np.ones(2), np.zeros(2), np.zeros(2))
    table = score_table({"left": np.arange(2)}, parts.score, parts, "cosine", {"exact": True})
    assert [*table.columns, *table.repeated][1:] == [
        "score",
        "mean_part",
        "variance_part",
        "correlation_part",
        "metric",
        "better",
    ]
    assert table.facts == {"metric": "cosine", "better": "higher", "exact": True}
    assert len(table) == 2


def test_places_without_a_neighbour_have_no_row():
    scores = np.array([[1.0, 2.0], [3.0, np.nan]])
    ids = np.array([[7, 8], [9, None]], dtype=object)
    found = Neighbors(scores, ids, Parts(scores, 0 * scores, 0 * scores), np.array([1, 2]), "mean_distance", 0, 4)
    table = neighbors_table(found)
    assert table.columns["query"].tolist() == [1, 1, 2]
    assert table.columns["rank"].tolist() == [1, 2, 1]
    assert table.columns["neighbor"].tolist() == [7, 8, 9]
    assert table.columns["neighbor"].dtype == np.int64


def test_a_table_without_columns_is_empty():
    assert len(AnswerTable({})) == 0
