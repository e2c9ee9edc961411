"""How much do members of a group correlate? Under the prior: as a group with a vertex of its own, and as a clique.

Through the vertex of their group, members correlate by tau^2 whatever their number. In a clique the model sees trees
drawn from it, in which two members are farther apart the more there are.

Run: python examples/groups.py [FILE.svg]
"""

import sys
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure
from scipy.sparse.csgraph import shortest_path

from corrvae import CorrelationGraph
from corrvae.graphs import sample_forest

TAU, SIZES, N_TREES = 0.9, (2, 3, 5, 10, 20, 50), 200
rng = np.random.default_rng(0)


def correlation(graph: CorrelationGraph) -> float:
    """Return the prior correlation of the first two vertices: the mean of tau to their distance over random trees."""
    powers = []
    for _ in range(N_TREES):
        tree = CorrelationGraph(graph.edges[sample_forest(graph, rng)], graph.n_vertices)
        distance = shortest_path(tree.to_scipy(), directed=False, unweighted=True, indices=[0])[0, 1]
        powers.append(TAU**distance)
    return float(np.mean(powers))


found = {"group": [], "clique": []}
for size in SIZES:
    members = [f"p{k}" for k in range(size)]
    group = CorrelationGraph.from_groups({"household": members})
    clique = CorrelationGraph.from_edges(list(combinations(members, 2)), vertices=members)
    found["group"].append(correlation(group))
    found["clique"].append(correlation(clique))
    print(f"{size:3} members: group {found['group'][-1]:.3f} clique {found['clique'][-1]:.3f}")

for path in [name for name in sys.argv[1:] if name.endswith(".svg")]:
    figure = Figure(figsize=(8.0, 2.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.6))
    angle = 2 * np.pi * np.arange(5) / 5 + np.pi / 2
    places = np.column_stack([np.cos(angle), np.sin(angle)])
    for first, second in combinations(range(5), 2):
        left.plot(*places[[first, second]].T, color="#9aa3ad", lw=1)
    for place in places:
        middle.plot([0, place[0]], [0, place[1]], color="#9aa3ad", lw=1)
    middle.plot(0, 0, "s", color="#d95f02", ms=9)
    for axes, title in ((left, "clique: 10 edges"), (middle, "group: 5 edges")):
        axes.plot(*places.T, "o", color="#1b6ca8", ms=9)
        axes.set(title=title, aspect="equal", xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
        axes.set_axis_off()
    for name, colour in (("group", "#d95f02"), ("clique", "#1b6ca8")):
        right.semilogx(SIZES, found[name], "o-", color=colour, label=name)
    right.set(xlabel="members", ylabel=f"correlation, tau = {TAU}", ylim=(0, 1), xticks=SIZES, xticklabels=SIZES)
    right.minorticks_off()
    right.legend()
    figure.savefig(path)
