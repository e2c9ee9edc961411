import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from corrvae import CorrelationGraph, spanning_weights
from corrvae.pictures.spanning import draw_weights


def test_edges_are_drawn_where_they_are_and_broader_the_heavier():
    graph = CorrelationGraph.from_edges([(0, 1), (0, 2), (1, 2), (2, 3)])
    positions = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])
    weights = spanning_weights(graph).weights
    axes = Figure().add_subplot()
    draw_weights(graph, weights, positions, axes, label_edges=True)
    lines = next(c for c in axes.collections if isinstance(c, LineCollection))
    assert np.array_equal([segment.tolist() for segment in lines.get_segments()], positions[graph.edges])
    assert np.array_equal(np.argsort(lines.get_linewidths(), kind="stable"), np.argsort(weights, kind="stable"))
    assert [text.get_text() for text in axes.texts] == ["0.67", "0.67", "0.67", "1.00"]


def test_labels_are_left_out_unless_asked_for():
    graph = CorrelationGraph.from_edges([(0, 1)])
    axes = Figure().add_subplot()
    draw_weights(graph, np.ones(1), np.eye(2), axes)
    assert not axes.texts
