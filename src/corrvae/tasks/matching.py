"""The matching task: given one half of a user's items, find the other among the halves of many users."""

from dataclasses import dataclass
from math import ceil
from typing import final

import numpy as np
from jaxtyping import Int

from corrvae.tasks.metrics import hits_at, reciprocal_rank
from corrvae.tasks.ranks import BlockScores, rank_pairs

# As in the paper: so many test pairs, or all where there are fewer.
MOST_PAIRS = 1000


@final
@dataclass(frozen=True, eq=False)
class UserSplit:
    """Users in three parts that share none, each sorted.

    Attributes
    ----------
    train, validation, test
        Row numbers of users.

    Examples
    --------
    >>> parts = split_users(10, test=0.2, validation=0.25, random_state=0)
    >>> sorted([*parts.train, *parts.validation, *parts.test]) == list(range(10))
    True
    """

    train: Int[np.ndarray, " train"]
    validation: Int[np.ndarray, " validation"]
    test: Int[np.ndarray, " test"]


@final
@dataclass(frozen=True)
class MatchingScores:
    """How well halves found their other halves; all are better larger, and 1 at best.

    Attributes
    ----------
    reciprocal_rank
        Mean of 1 / rank over all halves, among all other halves.
    hits_1, hits_10
        Shares of halves whose other half is first, and among the first ten.
    n_pairs
        Number of users.

    Examples
    --------
    >>> from corrvae.tasks import embedding_scores
    >>> scores = score_matching(embedding_scores(np.array([[0.0], [1.0], [5.0], [6.0]])), 2)
    >>> scores.reciprocal_rank, scores.n_pairs
    (1.0, 2)
    """

    reciprocal_rank: float
    hits_1: float
    hits_10: float
    n_pairs: int


def split_users(
    n_users: int,
    *,
    test: float = 0.1,
    validation: float = 0.05,
    most_pairs: int = MOST_PAIRS,
    random_state: int | np.random.Generator | None = None,
) -> UserSplit:
    """Split users at random into train, validation and test.

    Parameters
    ----------
    n_users
        The number of users.
    test
        The share of users for testing, rounded up.
    validation
        The share of those that remain for choosing a model, rounded up.
    most_pairs
        Testing and validation keep at most so many users, drawn at random; the others are in no part.
    random_state
        Seed or generator.

    Examples
    --------
    >>> parts = split_users(100, random_state=0)
    >>> len(parts.train), len(parts.validation), len(parts.test)
    (85, 5, 10)
    """
    for name, share in (("test", test), ("validation", validation)):
        if not 0 <= share < 1:
            raise ValueError(f"{name} must be at least 0 and less than 1, but is {share}")
    order = np.random.default_rng(random_state).permutation(n_users)
    n_test = _share_of(n_users, test)
    n_validation = _share_of(n_users - n_test, validation)
    tested, validated, trained = np.split(order, [n_test, n_test + n_validation])
    return UserSplit(np.sort(trained), np.sort(validated[:most_pairs]), np.sort(tested[:most_pairs]))


def score_matching(scores: BlockScores, n_users: int) -> MatchingScores:
    """Score a matching of halves, rows 2u and 2u + 1 being those of user u.

    Parameters
    ----------
    scores
        Function of an array of rows that gives their scores with every row; larger is better.
    n_users
        The number of users: half the number of rows.

    Examples
    --------
    Halves at 0 and 1, and at 3 and 8 on a line. The first two find each other; 3 finds 1 and 0 before 8, and 8 finds 3
    first: (1 + 1 + 1/3 + 1) / 4 = 5/6.

    >>> from corrvae.tasks import embedding_scores
    >>> found = score_matching(embedding_scores(np.array([[0.0], [1.0], [3.0], [8.0]])), 2)
    >>> round(found.reciprocal_rank, 4), found.hits_1, found.hits_10
    (0.8333, 0.75, 1.0)
    """
    found = rank_pairs(scores, np.arange(2 * n_users).reshape(n_users, 2), 2 * n_users)
    return MatchingScores(
        reciprocal_rank(found.ranks), hits_at(found.ranks, 1), hits_at(found.ranks, 10), n_pairs=n_users
    )


def _share_of(count: int, share: float) -> int:
    return ceil(share * count - 1e-9)  # 0.07 * 100 is a little more than 7
