import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corrvae.scoring.correlated.bounds import bounds, lower_bounds, rounding_slack
from corrvae.scoring.correlated.kernels.distances import distances


def random_sides(seed, dim, scale, offset):
    generator = np.random.default_rng(seed)
    mean = (scale * generator.normal(size=(2, 7, dim)) + offset).astype(np.float32)
    stddev = np.exp(generator.normal(size=(2, 7, dim)) * scale).astype(np.float32)
    mean[1, :3], stddev[1, :3] = mean[0, :3], stddev[0, :3]  # equal points, where nothing may cancel
    return mean[0], stddev[0], mean[1], stddev[1]


@given(
    seed=st.integers(0, 10**6),
    dim=st.integers(1, 130),
    scale=st.sampled_from([1e-3, 0.1, 1.0, 3.0]),
    offset=st.sampled_from([0.0, 10.0, 1e4]),
    size=st.sampled_from([0.0, 0.5, 3.0, 1e3]),
)
def test_no_evaluated_distance_is_outside(seed, dim, scale, offset, size):
    sides = random_sides(seed, dim, scale, offset)
    found = bounds(*sides)
    rows, columns = (part.reshape(-1).astype(np.int32) for part in np.mgrid[:7, :7])
    a = (size * np.random.default_rng(seed).choice([-1, -0.3, 0.7, 1], size=(49, dim))).astype(np.float32)
    values = np.empty(49, np.float32)
    distances(*sides, rows, columns, a, values)
    assert (found.lower.reshape(-1) <= values).all()
    assert (values <= found.upper.reshape(-1)).all()
    assert (lower_bounds(*sides).reshape(-1) <= values).all()


@given(seed=st.integers(0, 10**6), dim=st.integers(1, 130))
def test_bounds_are_those_of_full_correlation(seed, dim):
    sides = random_sides(seed, dim, 1.0, 0.0)
    mean_i, stddev_i, mean_j, stddev_j = (side.astype(float) for side in sides)
    apart = ((mean_i[:, None] - mean_j) ** 2).sum(2)
    sizes = sum((side**2).sum(1) for side in (mean_i, stddev_i))[:, None]
    sizes = sizes + sum((side**2).sum(1) for side in (mean_j, stddev_j))
    found, room = bounds(*sides), 2 * rounding_slack(dim) * sizes
    for lower in (found.lower, lower_bounds(*sides)):
        assert (abs(lower - apart - ((stddev_i[:, None] - stddev_j) ** 2).sum(2)) <= room).all()
    assert (abs(found.upper - apart - ((stddev_i[:, None] + stddev_j) ** 2).sum(2)) <= room).all()
