import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.checks import check_first_batch, check_run, check_y, mention_empty_rows, mention_ids, refuse_without_edges
from corrvae.nn.likelihoods import Gaussian, Poisson
from support.pairs import QUICK, paired_rows
from support.unchecked import unchecked

SEEDED = CorrelatedVAE(device="cpu", random_state=0)


def test_a_checkpoint_needs_a_seed():
    with pytest.raises(ValueError, match="integer random_state"):
        check_run(CorrelatedVAE(device="cpu"), "there", None, None)
    check_run(SEEDED, "there", None, None)


@pytest.mark.parametrize("when", [{"checkpoint_steps": 5}, {"checkpoint_minutes": 5.0}])
def test_a_time_to_save_needs_a_folder(when):
    name = next(iter(when))
    options = {"checkpoint": None, "checkpoint_steps": None, "checkpoint_minutes": None, **when}
    with pytest.raises(ValueError, match=rf"{name}=5.* needs a folder to save to"):
        check_run(SEEDED, **options)
    check_run(SEEDED, **{**options, "checkpoint": "there"})
    for wrong in (0, -1.0, float("inf"), float("nan"), "often"):
        with unchecked(), pytest.raises(ValueError, match=f"{name} must be a positive number"):
            check_run(SEEDED, **{**options, "checkpoint": "there", name: wrong})


def test_a_device_that_is_not_there_is_said_before_anything_is_read():
    with pytest.raises(ValueError, match="device='foo' cannot be used"):
        CorrelatedVAE(device="foo").fit(None)


@pytest.mark.parametrize(
    "ids",
    [
        np.array([pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02")], dtype=object),
        pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]).to_numpy(),
        np.array([1, "b"], dtype=object),
    ],
)
def test_ids_that_cannot_be_saved_are_said_at_once(ids):
    with pytest.warns(UserWarning, match="not saved: ids of the kind .* integers or strings"):
        mention_ids(ids)


@pytest.mark.parametrize("ids", [np.arange(3), np.array(["a", "b"], dtype=object), np.array([0.5, 1.5], dtype=object)])
def test_ids_that_can_be_saved_are_not_spoken_of(ids):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mention_ids(ids)


def test_fit_speaks_of_ids_that_cannot_be_saved(tmp_path):
    X = paired_rows().X
    frame = pd.DataFrame(X, index=pd.date_range("2020-01-01", periods=60), columns=list("abcde"))
    with pytest.warns(UserWarning, match="not saved"):
        model = CorrelatedVAE(**QUICK).fit(frame)
    with pytest.raises(TypeError, match="integers or strings"):
        model.save(tmp_path / "run")


def test_empty_rows_are_counted():
    with pytest.warns(UserWarning, match=r"2 rows of X hold zeros only \(the first is row 1\)"):
        mention_empty_rows(np.array([[1.0], [0.0], [0.0]]))
    with pytest.warns(UserWarning, match="1 row of X holds"):
        mention_empty_rows(sparse.csr_array(np.array([[1.0], [0.0]])))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_rows_of_zeros_and_missing_entries_are_counted_too(make):
    counts = paired_rows().counts + 1
    counts[3], counts[7, :2], counts[7, 2:] = np.nan, 0.0, np.nan
    model = CorrelatedVAE(likelihood="multinomial", missing="mask", **QUICK)
    with pytest.warns(UserWarning, match=r"2 rows of X hold zeros and missing entries only \(the first is row 3\)"):
        model.fit(make(counts))


def test_a_pairwise_fit_without_edges_says_which_are_lacking():
    for graph in (None, CorrelationGraph([], 3)):
        with pytest.raises(ValueError, match="needs a graph that has some"):
            refuse_without_edges(graph)
    with pytest.raises(ValueError, match="of the 2 in the graph none lies between two rows that are trained on"):
        refuse_without_edges(CorrelationGraph([[0, 1], [1, 2]], 3))


def test_fit_says_that_no_edge_is_left_beside_rows_held_out():
    model = CorrelatedVAE(posterior="pairwise", validation_fraction=0.5, **QUICK)
    with pytest.raises(ValueError, match=r"of the 1 in the graph none lies .* lower validation_fraction"):
        model.fit(np.eye(2), graph=CorrelationGraph([[0, 1]], 2))


def drawing(*batches):
    """A function that gives one batch after the other, whatever it is asked for."""
    left = iter(batches)
    return lambda rows, generator: next(left)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_the_first_batch_drawn_anew_is_checked(make):
    wrong = np.array([[1.0, 2.0], [3.0, -4.0]])
    redraw = check_first_batch(drawing(make(wrong)), Poisson(2))
    with pytest.raises(ValueError, match="redraw gave -4 in column 1 of row 9, but the Poisson likelihood needs"):
        redraw(np.array([5, 9]), np.random.default_rng(0))
    redraw = check_first_batch(drawing(make(-wrong.clip(None, 0)), make(wrong)), Poisson(2))
    for _ in range(2):  # later batches cost nothing
        redraw(np.array([5, 9]), np.random.default_rng(0))


def test_what_training_names_itself_is_left_to_it():
    holes = np.array([[np.inf, np.nan]])
    assert check_first_batch(drawing(holes), Gaussian(2))(np.array([3]), np.random.default_rng(0)) is holes
    assert check_first_batch(None, Gaussian(2)) is None


def test_what_is_drawn_anew_must_be_a_matrix_and_drawn_by_a_function():
    with unchecked(), pytest.raises(TypeError, match=r"redraw must return an array .* got list"):
        check_first_batch(drawing([[1.0]]), Gaussian(1))(np.array([0]), np.random.default_rng(0))
    with unchecked(), pytest.raises(TypeError, match=r"redraw must be a function .* got int"):
        check_first_batch(3, Gaussian(1))


def test_fit_checks_what_is_drawn_anew():
    counts = paired_rows().counts + 1
    with pytest.raises(ValueError, match=r"redraw gave -1 in column 0 of row \d+"):
        CorrelatedVAE(likelihood="poisson", **QUICK).fit(counts, redraw=lambda rows, _: np.full((len(rows), 5), -1.0))


def test_a_graph_in_the_place_of_labels_is_refused():
    graph = CorrelationGraph.from_edges([(0, 1)])
    check_y(None)
    check_y([0, 1])
    with pytest.raises(TypeError, match=r"give the graph by name: fit\(X, graph=graph\)"):
        CorrelatedVAE(2, max_steps=1).fit(np.eye(2), graph)
    with pytest.raises(TypeError, match="give the graph by name"):
        CorrelatedVAE(2, max_steps=1).fit(np.eye(2)).score(np.eye(2), graph)
