import math

import torch

from corrvae.objectives import Mean, Terms
from corrvae.training.breakage import broken_term
from corrvae.training.run import Run
from support.training import small_data, small_model, small_settings


def test_the_rows_of_each_term_are_found():
    run = Run(small_model("perceptron"), small_data(), small_settings(), None)
    drawn = run.batches.next()
    terms = run.model.terms(drawn.batch, run.population)

    def broken(name: str, place: int, value: float) -> tuple[str, tuple[int, ...]]:
        means = {key: Mean(mean.values.detach().clone(), mean.scale, mean.weights) for key, mean in terms.means.items()}
        means[name].values[place] = value
        return broken_term(Terms(means, terms.factors), drawn.batch, drawn.vertices)

    vertices, edges = drawn.vertices, drawn.batch.edges.numpy()
    assert broken("reconstruction", 3, math.nan) == ("the reconstruction term", (vertices[3],))
    assert broken("singleton", 2, math.inf) == ("the singleton term", (vertices[2],))
    term, rows = broken("edge", 4, -math.inf)
    assert (term, sorted(rows)) == ("the edge term", sorted(vertices[edges[4]].tolist()))
    first, second = torch.triu_indices(8, 8, 1)[:, 11].tolist()
    term, rows = broken("non_edge", 11, math.nan)
    assert (term, sorted(rows)) == ("the non_edge term", sorted([vertices[first], vertices[second]]))
    assert broken("edge", 0, 0.0) == ("the objective", tuple(vertices.tolist()))
