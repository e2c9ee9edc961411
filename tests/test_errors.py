import copy
import pickle
from pathlib import Path

import pytest

from corrvae.errors import CorrvaeError, DataFileError


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
