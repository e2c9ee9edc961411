from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from corrvae.scoring.found import Found, FoundRanks


def test_results_do_not_change():
    found = Found(np.ones((1, 1)), np.ones((1, 1), np.int64), 0, 1)
    ranks = FoundRanks(np.ones(1, np.int64), np.ones(1), 0, 1)
    for result in (found, ranks):
        with pytest.raises(FrozenInstanceError):
            result.scores = np.zeros(1)
