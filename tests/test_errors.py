import copy
import pickle
from pathlib import Path

import pytest

from corrvae.errors import CorrvaeError, DataFileError, FolderError, TrainingError


@pytest.mark.parametrize("path", ["folder/edges.csv", Path("folder/edges.csv")])
def test_a_file_error_names_the_file_and_the_problem(path):
    error = DataFileError(path, "line 3 has 1 field")
    assert error.path == Path("folder/edges.csv")
    assert error.problem == "line 3 has 1 field"
    assert str(error) == f"{Path('folder/edges.csv')}: line 3 has 1 field"


def test_a_file_error_can_be_caught_as_either_kind():
    assert issubclass(DataFileError, CorrvaeError)
    assert issubclass(DataFileError, ValueError)
    assert not issubclass(CorrvaeError, ValueError)


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_survive_a_trip_between_processes(twin):
    error = DataFileError(Path("edges.csv"), "is empty")
    again = twin(error)
    assert type(again) is DataFileError
    assert (again.path, again.problem, str(again)) == (error.path, error.problem, str(error))
    plain = twin(CorrvaeError("a run broke"))
    assert type(plain) is CorrvaeError
    assert str(plain) == "a run broke"


def test_a_folder_error_names_the_folder_and_the_problem():
    error = FolderError("run", "is empty")
    assert (error.path, str(error)) == (Path("run"), "run: is empty")
    assert isinstance(error, CorrvaeError)


def test_a_training_error_says_where_it_happened():
    error = pickle.loads(pickle.dumps(TrainingError(1200, "edge", tuple(range(12)), Path("saved/step-1000"))))
    assert (error.step, error.term, error.rows[:2], error.checkpoint) == (1200, "edge", (0, 1), Path("saved/step-1000"))
    assert "1,200 steps edge" in str(error)
    assert "9, ...)" in str(error)
    assert f"last checkpoint is {Path('saved/step-1000')}" in str(error)
    assert "look at these rows" in str(error)
    assert 'normalize="log1p"' in str(error)
    assert "--normalize log1p" in str(error)
    nowhere = str(TrainingError(0, "edge", (), None))
    assert "no checkpoint" in nowhere
    assert "these rows" not in nowhere


@pytest.mark.parametrize(("step", "said"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps"), (1001, "1,001 steps")])
def test_one_step_is_not_many(step, said):
    assert str(TrainingError(step, "the edge term", (), None)).startswith(f"after {said} the edge term is infinite")
