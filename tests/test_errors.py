import copy
import pickle
from pathlib import Path

import pytest

from corrvae.errors import CorrvaeError, DataFileError, FolderError, TrainingError

TWINS = [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))]


@pytest.mark.parametrize("path", ["folder/edges.csv", Path("folder/edges.csv")])
def test_a_file_error_names_the_file_the_line_and_the_problem(path):
    error = DataFileError(path, "there is one column", line=3)
    assert (error.path, error.problem, error.line) == (Path("folder/edges.csv"), "there is one column", 3)
    assert str(error) == f"{Path('folder/edges.csv')}, line 3: there is one column"
    assert str(DataFileError(path, "it is empty")) == f"{Path('folder/edges.csv')}: it is empty"


def test_a_folder_error_names_the_folder_and_has_no_number():
    error = FolderError("run", "it is empty")
    assert (error.path, error.problem, str(error)) == (Path("run"), "it is empty", "run: it is empty")
    assert error.errno is None


@pytest.mark.parametrize(
    ("kind", "of_python"), [(DataFileError, ValueError), (FolderError, OSError), (TrainingError, ArithmeticError)]
)
def test_errors_can_be_caught_as_ours_or_as_pythons(kind, of_python):
    assert issubclass(kind, CorrvaeError)
    assert issubclass(kind, of_python)
    assert not issubclass(CorrvaeError, of_python)


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize(
    "error",
    [
        CorrvaeError("a run broke"),
        DataFileError(Path("edges.csv"), "it is empty", 7),
        FolderError("run", "it is empty"),
        TrainingError(12, "the edge term", (3, 4), Path("run/checkpoint")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_a_trip_between_processes(error, twin):
    again = twin(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_training_error_says_where_it_happened_and_what_to_do():
    error = TrainingError(1200, "the edge term", tuple(range(12)), Path("saved"))
    assert str(error).startswith("the edge term is infinite or not a number after 1,200 steps (rows 0, 1, 2,")
    assert "9, ...)" in str(error)
    assert 'normalize="log1p"' in str(error)
    assert str(error).endswith("The last checkpoint is saved.")
    nowhere = str(TrainingError(0, "the edge term"))
    assert "rows 0" not in nowhere
    assert "checkpoint" not in nowhere


def test_rows_are_spoken_of_only_where_they_are_known():
    assert "Check these rows" in str(TrainingError(0, "the edge term", (3,)))
    assert "these rows" not in str(TrainingError(3, "the weight decoder.bias"))
