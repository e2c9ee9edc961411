"""Synthetic data: the tree of the clustering task, and people who listen to music and know each other."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.graphs import CorrelationGraph


@final
@dataclass(frozen=True, eq=False)
class TreeData:
    """Points on a tree: binary features, the tree, the true positions z, and labels.

    A label is 1 for points above the median of the first principal component of z, otherwise 0.
    """

    features: Float[np.ndarray, "points features"]
    graph: CorrelationGraph
    latents: Float[np.ndarray, "points dim"]
    labels: Int[np.ndarray, " points"]


def tree(
    n_points: int = 10_000,
    n_features: int = 1000,
    *,
    n_components: int = 100,
    n_hidden: int = 300,
    tau: float = 0.99,
    random_state: int | np.random.Generator | None = None,
) -> TreeData:
    """Draw points whose latent positions follow a random tree.

    The parent of point i is uniform among the points before it. With standard normal noise e,

        z_0 = e_0,    z_i = tau z_parent(i) + sqrt(1 - tau^2) e_i,

    so that every position is standard normal and neighbours correlate by tau. Features are Bernoulli; their logits are
    a network with one hidden layer of rectified units, standard normal weights and no biases.

    Examples
    --------
    >>> data = tree(50, 8, random_state=0)
    >>> data.features.shape, data.graph, int(data.labels.sum())
    ((50, 8), CorrelationGraph(50 vertices, 49 edges), 25)
    """
    generator = np.random.default_rng(random_state)
    parents = generator.integers(0, np.arange(1, n_points))
    latents = generator.standard_normal((n_points, n_components))
    latents[1:] *= np.sqrt(1 - tau**2)
    for point, parent in enumerate(parents, start=1):  # a parent comes before its children
        latents[point] += tau * latents[parent]
    hidden = np.maximum(latents @ generator.standard_normal((n_components, n_hidden)), 0.0)
    logits = hidden @ generator.standard_normal((n_hidden, n_features))
    # A logistic variable is below the logit with the probability that the logit stands for.
    features = (generator.logistic(size=logits.shape) < logits).astype(np.float32)
    edges = np.column_stack([parents, np.arange(1, n_points)])
    centred = latents - latents.mean(axis=0)
    position = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -1]
    labels = (position > np.median(position)).astype(np.int64)
    return TreeData(features, CorrelationGraph.from_edges(edges, n_vertices=n_points), latents, labels)


_SCENES = {
    "jazz": "bebop swing fusion cool_jazz hard_bop ragtime big_band gypsy_jazz",
    "blues": "delta_blues chicago_blues boogie jump_blues soul_blues swamp_blues",
    "folk": "ballads bluegrass fado sea_shanties celtic americana klezmer",
    "classical": "baroque opera chamber_music symphony choral lied minimalism",
    "electronic": "techno house trance ambient drum_and_bass dub synthwave breakbeat",
    "hip hop": "boom_bap trap grime lofi turntablism g_funk",
    "metal": "doom thrash black_metal sludge power_metal grindcore djent",
    "latin": "salsa bossa_nova tango cumbia bachata samba son_cubano",
}
_NAMES = """
ada ali amir ana ben bob carla cem chen dana dee eli emma eva fay finn gia hugo ida ines ivan jana
jin joe kai kim lea leo lina liv luca mara max mia mona nils nina noah olga omar pia ravi rosa ruth
sam sara selma tara tim tom uma vera yan yuki zoe
"""
_TOWNS = ("Arden", "Brook", "Calder", "Dale", "Esker", "Firth")


@final
@dataclass(frozen=True, eq=False)
class Listeners:
    """People who listen to music: names, how often each played each style, who knows whom, and town of each person.

    The scene of a person is hidden in the plays.
    """

    ids: np.ndarray
    plays: Int[np.ndarray, "people styles"]
    styles: tuple[str, ...]
    graph: CorrelationGraph
    scenes: np.ndarray
    towns: np.ndarray


def listeners(n_people: int = 2000, *, random_state: int | np.random.Generator | None = None) -> Listeners:
    """Draw people with a taste in music, and friends of similar taste: data to try the library with.

    A person belongs to one of eight scenes, likes a second one a little, and plays its styles in proportions of their
    own; some play a lot and some hardly anything. Most friends are of the same scene, more of them of the same town,
    and friends of friends become friends.

    Examples
    --------
    >>> data = listeners(100, random_state=0)
    >>> data.plays.shape, data.graph.n_vertices, data.styles[0]
    ((100, 56), 100, 'bebop')
    """
    generator = np.random.default_rng(random_state)
    scenes, styles = [*_SCENES], tuple(style for names in _SCENES.values() for style in names.split())
    belongs = np.repeat(np.arange(len(scenes)), [len(names.split()) for names in _SCENES.values()])
    first = generator.choice(len(scenes), n_people, p=np.arange(12, 12 - len(scenes), -1) / 68)
    second = generator.integers(0, len(scenes), n_people)
    leaning = generator.dirichlet(np.ones(len(_TOWNS)), len(scenes))
    towns = np.array([generator.choice(len(_TOWNS), p=leaning[scene]) for scene in first])
    liking = np.full((n_people, len(scenes)), 0.04)
    people = np.arange(n_people)
    liking[people, second] += 0.9 * generator.random(n_people) ** 2
    liking[people, first] += 1.0
    shares = liking[:, belongs] * generator.gamma(0.5, size=(n_people, len(styles)))
    plays = generator.poisson(
        generator.lognormal(3.0, 0.9, (n_people, 1)) * shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    )
    plays[people, shares.argmax(axis=1)] += 1  # everybody plays something
    friends: list[set[int]] = [set() for _ in people]
    for person in generator.permutation(np.repeat(people, 3)).tolist():
        known = [other for friend in friends[person] for other in friends[friend] if other != person]
        if known and generator.random() < 0.4:
            other = known[generator.integers(len(known))]
        else:
            others = generator.integers(0, n_people, 40)
            alike = 3.0 * (first[others] == first[person]) + (towns[others] == towns[person]) + generator.random(40)
            other = int(others[alike.argmax()]) if generator.random() < 0.85 else int(others[0])
        if other != person:
            friends[person].add(other)
            friends[other].add(person)
    names = _NAMES.split()
    ids = np.array([f"{names[i % len(names)]}{i // len(names) + 1}" for i in range(n_people)], dtype=object)
    edges = [(person, friend) for person in people.tolist() for friend in sorted(friends[person]) if person < friend]
    graph = CorrelationGraph(np.array(edges).reshape(-1, 2), n_people, vertices=ids)
    return Listeners(ids, plays, styles, graph, np.array(scenes)[first], np.array(_TOWNS)[towns])
