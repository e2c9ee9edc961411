import numpy as np

from corrvae.scoring.correlated.kernels.hashing import mix_rows


def test_equal_rows_have_equal_hashes_and_others_do_not():
    generator = np.random.default_rng(0)
    words = generator.integers(0, 3, (4000, 9)).astype(np.uint32)
    hashes = np.zeros(4000, np.uint64)
    mix_rows(words, hashes)
    _, group = np.unique(words, axis=0, return_inverse=True)
    _, by_hash = np.unique(hashes, return_inverse=True)
    assert len(np.unique(np.stack([group, by_hash]), axis=1).T) == group.max() + 1 == by_hash.max() + 1


def test_parts_are_mixed_in_their_order():
    words = np.array([[1, 2], [2, 1]], np.uint32)
    whole, parts = np.zeros(2, np.uint64), np.zeros(2, np.uint64)
    mix_rows(words, whole)
    for column in range(2):
        mix_rows(np.ascontiguousarray(words[:, [column]]), parts)
    np.testing.assert_array_equal(whole, parts)
    assert whole[0] != whole[1]
