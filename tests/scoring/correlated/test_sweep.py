import threading

import numpy as np
import pytest
import torch

from corrvae.monitor import DONE, Monitor
from corrvae.scoring.correlated import sweep as module
from corrvae.scoring.correlated.sweep import Chosen, Goal, Sweep
from support.correlated import literal_distances, make_model, make_points, random_rows


class Everything(Goal):
    """Asks for every pair, and writes down what it is told, by the positions of points."""

    def __init__(self, n_rows, n_columns):
        self.costs = np.full((n_rows, n_columns), np.nan)
        self.times = np.zeros((n_rows, n_columns), int)

    def choose(self, block):
        kept = np.ones((len(block.left), len(block.right)), bool)
        rows, columns = np.nonzero(np.triu(kept) if block.diagonal else kept)
        return Chosen(rows.astype(np.int32), columns.astype(np.int32), np.zeros(kept.shape, np.float32))

    def settle(self, block, chosen, estimates):
        costs = np.full((len(block.left), len(block.right)), np.nan)
        costs[chosen.rows, chosen.columns] = estimates.values
        if block.diagonal:
            costs[chosen.columns, chosen.rows] = estimates.values
        self._write(block.left, block.right, costs)
        if block.mirrored:
            self._write(block.right, block.left, costs.T)

    def _write(self, left, right, costs):
        row_of = np.repeat(np.arange(len(left)), np.diff(left.offsets))
        column_of = np.repeat(np.arange(len(right)), np.diff(right.offsets))
        where = np.ix_(left.members, right.members)
        self.costs[where] = costs[np.ix_(row_of, column_of)]
        self.times[where] += 1


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("memory", [1, 2**20, 2**28])
@pytest.mark.parametrize("same", [True, False])
def test_every_pair_is_settled_once(same, memory, n_threads):
    points = make_points(make_model("perceptron"), random_rows(90, repeated=20))
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        monitor = Monitor()
        sweep = Sweep(points, points, same=same, memory=memory, monitor=monitor)
        everything = Everything(90, 90)
        sweep.run("testing", everything)
        assert torch.get_num_threads() == n_threads
    finally:
        torch.set_num_threads(before)
    assert (everything.times == 1).all()
    np.testing.assert_allclose(everything.costs, literal_distances(points, points), rtol=1e-5, atol=1e-5)
    n_groups = len(sweep.left_groups)
    assert n_groups < 90
    assert sweep.n_evaluated == (n_groups * (n_groups + 1) // 2 if same else n_groups**2)
    assert monitor.control[DONE] == pytest.approx(monitor.total, abs=n_groups)


def test_few_queries_against_many():
    model = make_model("bilinear")
    queries, candidates = make_points(model, random_rows(2)), make_points(model, random_rows(1100, seed=1))
    everything = Everything(2, 1100)
    Sweep(queries, candidates, same=False, memory=2**26, monitor=Monitor()).run("testing", everything)
    assert (everything.times == 1).all()
    np.testing.assert_allclose(everything.costs, literal_distances(queries, candidates), rtol=1e-5, atol=1e-5)


def test_less_memory_makes_smaller_blocks():
    points = make_points(make_model("perceptron"), random_rows(70))
    sweeps = [Sweep(points, points, same=True, memory=memory, monitor=Monitor()) for memory in (1, 2**22, 2**40)]
    sides = [sweep._side_for(sweep.n_threads) for sweep in sweeps]
    assert sides[0] == module._SMALLEST < sides[1] < sides[2] == module._LARGEST


def test_the_first_error_ends_all_and_state_is_restored():
    model = make_model("own")
    model.train()
    points = make_points(model, random_rows(70))
    sweep = Sweep(points, points, same=True, memory=2**26, monitor=Monitor())
    before = torch.get_num_threads()

    def fail(job):
        assert not model.training
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        sweep.each(range(1000), fail)
    assert model.training
    assert torch.get_num_threads() == before
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert seen == [before]


def test_searches_at_the_same_time_leave_the_number_of_threads_alone():
    points = make_points(make_model("own"), random_rows(70))
    before, counts = torch.get_num_threads(), []
    inside, go_on = threading.Event(), threading.Event()

    def make():
        return Sweep(points, points, same=True, memory=2**26, monitor=Monitor())

    def first():
        def wait(job):
            inside.set()
            go_on.wait()

        make().each(range(1), wait)

    def second():
        sweep = make()
        counts.append(sweep.n_threads)
        sweep.each(range(3), lambda job: None)

    def third():
        counts.append(torch.get_num_threads())

    torch.set_num_threads(3)
    try:
        threads = [threading.Thread(target=work) for work in (first, second)]
        threads[0].start()
        inside.wait()
        threads[1].start()
        threads[1].join(0.3)  # long enough to read the number of threads while the first search holds it at one
        go_on.set()
        for thread in threads:
            thread.join()
        afterwards = threading.Thread(target=third)
        afterwards.start()
        afterwards.join()
        assert counts == [3, 3]
    finally:
        torch.set_num_threads(before)


def test_exact_distances_do_not_depend_on_their_surroundings():
    points = make_points(make_model("perceptron"), random_rows(70))
    sweep = Sweep(points, points, same=True, memory=2**26, monitor=Monitor())
    whole = sweep.read_left(np.arange(70))
    rows, columns = np.random.default_rng(0).integers(0, 70, (2, 50)).astype(np.int32)
    together = sweep.exact(whole, whole, rows, columns)
    for n in range(50):
        one, other = sweep.read_left(rows[[n]]), sweep.read_right(columns[[n]])
        zero = np.zeros(1, np.int32)
        assert sweep.exact(one, other, zero, zero) == sweep.exact(other, one, zero, zero) == together[n]
