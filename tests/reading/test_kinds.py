import numpy as np
import pytest
from scipy import sparse

from corrvae.nn.likelihoods import LIKELIHOODS
from corrvae.reading import kinds
from corrvae.reading.kinds import choose_likelihood
from support.shards import counts, sharded

RNG = np.random.default_rng(0)
SPARSE = (RNG.random((40, 30)) < 0.1).astype(np.float32)
TABLES = {
    "0 or 1, mostly 0, many columns": (SPARSE, "multinomial"),
    "0 or 1, mostly 0, few columns": (SPARSE[:, :10], "bernoulli"),
    "0 or 1, mostly 1": (1 - SPARSE, "bernoulli"),
    "ratings with halves": (SPARSE * 4.5, "multinomial"),
    "counts of few things": (SPARSE[:, :10] * 3, "negative_binomial"),
    "counts with some zeros": ((RNG.poisson(2.0, (40, 30))).astype(np.float32), "negative_binomial"),
    "years": (RNG.integers(1950, 2020, (40, 3)).astype(np.float32), "gaussian"),
    "lengths": (RNG.random((40, 30)).astype(np.float32), "gaussian"),
    "sparse, but with a negative number": (-SPARSE, "gaussian"),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_the_numbers_decide_however_they_are_kept(name, make, monkeypatch):
    table, likelihood = TABLES[name]
    choice = choose_likelihood(make(table))
    assert choice.likelihood == likelihood
    monkeypatch.setattr(kinds, "_CELLS", 50)
    assert choose_likelihood(make(table)) == choice


@pytest.mark.parametrize("name", TABLES)
def test_what_is_chosen_can_explain_the_numbers(name):
    table, likelihood = TABLES[name]
    assert LIKELIHOODS[likelihood](table.shape[1]).admits(table).all()


def test_missing_numbers_do_not_count():
    holes = np.where(RNG.random((40, 30)) < 0.9, np.nan, 1.0 - SPARSE).astype(np.float32)
    assert choose_likelihood(holes).likelihood == "bernoulli"


def test_the_reason_is_told():
    choice = choose_likelihood(sparse.csr_array(([3.0, 1.0], ([0, 1], [0, 5])), shape=(50, 20), dtype=np.float32))
    assert choice.reason == "all features are whole numbers from 0 up, and 99.8 % of them are 0"


@pytest.mark.parametrize("change", [{}, {"sign": -1.0}, {"factor": 0.5}, {"n_columns": 15}])
def test_shards_are_judged_as_the_same_table_in_memory(tmp_path, change):
    table = counts(n_columns=change.get("n_columns", 25))
    table.data *= change.get("factor", 1.0)
    table.data[-1] *= change.get("sign", 1.0)
    assert choose_likelihood(sharded(tmp_path, table, 25)) == choose_likelihood(table)
