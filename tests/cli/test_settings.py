import inspect
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.cli.fit import fit
from corrvae.cli.settings import (
    LIKELIHOODS,
    NORMALIZATIONS,
    SETTINGS,
    check_options,
    estimator_parameters,
    kept_form,
    read_config,
    resolve,
    to_toml,
)
from corrvae.errors import DataFileError
from corrvae.estimator import CorrelatedVAE
from corrvae.nn import inputs
from corrvae.nn.likelihoods import LIKELIHOODS as KNOWN
from corrvae.parameters import check_parameters


def config(folder, text):
    path = folder / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_settings_are_what_the_estimator_and_the_command_know():
    parameters = CorrelatedVAE().get_params()
    assert {setting.parameter for setting in SETTINGS.values()} - {None} <= parameters.keys()
    assert parameters.keys() - {setting.parameter for setting in SETTINGS.values()} == {"warm_start"}
    assert set(LIKELIHOODS) == set(KNOWN)
    assert set(NORMALIZATIONS) == set(inputs.NORMALIZATIONS)
    told = ["graph_columns", "directed", "edge_sampling", "min_stddev", "pair_hidden", "warmup_steps", "evaluate_every"]
    assert SETTINGS.keys() - inspect.signature(fit).parameters.keys() == set(told)
    assert all(
        name in str(inspect.signature(fit).parameters["config"].annotation.__metadata__[0].help) for name in told
    )


def test_defaults_are_those_of_the_estimator():
    settings = resolve({"features": "x", "likelihood": "gaussian", "normalize": "raw"}, {})
    made = CorrelatedVAE(**estimator_parameters(settings))
    assert made.get_params() == {**CorrelatedVAE().get_params(), "random_state": 0}
    check_parameters(made)


def test_options_win_over_the_file_and_this_over_defaults():
    settings = resolve({"features": "/x", "tau": 0.5}, {"tau": 0.1, "components": 7})
    assert (settings["tau"], settings["components"], settings["seed"]) == (0.5, 7, 0)


@pytest.mark.parametrize(
    ("options", "config", "steps", "epochs"),
    [
        ({}, {}, None, 40),
        ({"steps": 5}, {}, 5, None),
        ({"steps": 5}, {"epochs": 3}, 5, None),
        ({"epochs": 3}, {"steps": 5}, None, 3),
        ({}, {"epochs": 3}, None, 3),
    ],
)
def test_training_has_one_length(options, config, steps, epochs):
    settings = resolve({"features": "/x", **options}, config)
    assert (settings["steps"], settings["epochs"]) == (steps, epochs)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "which features"),
        ({"features": "x", "steps": 1, "epochs": 1}, "give --steps or --epochs, not both"),
        ({"features": "x", "patience": 1}, "--patience needs rows to validate with"),
        ({"features": "x", "posterior": "pairwise"}, "--posterior pairwise learns correlations from edges"),
        ({"features": "x", "conductance": "w"}, "conductance = 'w' says how to read a graph, but there is no --graph"),
    ],
)
def test_settings_that_do_not_go_together(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        resolve(options, {})


def test_options_are_read_as_what_they_are():
    given = {
        "gamma": "0,30",
        "tau": "learned",
        "hidden": "64, 32",
        "normalize": "l2,raw",
        "features": "1,2.csv",
        "steps": None,
    }
    assert check_options(given) == {
        "gamma": [0, 30],
        "tau": "learned",
        "hidden": [64, 32],
        "normalize": ["l2", "raw"],
        "features": "1,2.csv",
    }


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("tau", "1", "--tau must be a number between -1 and 1, learned or learned_per_dimension; got '1'"),
        ("gamma", "1,2,3", "--gamma must be a number from 0 up, or two of them; got '1,2,3'"),
        ("gamma", "nan", "--gamma must be a number from 0 up, or two of them; got 'nan'"),
        ("likelihood", "normal", "--likelihood must be one of auto, multinomial, "),
        ("hidden", "0", "--hidden must be whole numbers from 1 up, the widths of hidden layers; got '0'"),
        ("vertex_batch", 0, "--vertex-batch must be a whole number from 1 up; got 0"),
        ("seed", -1, "--seed must be a whole number from 0 to 4294967295; got -1"),
        ("dropout", "1", "--dropout must be a share from 0 to below 1, or two of them; got '1'"),
    ],
)
def test_options_that_cannot_be(name, value, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        check_options({name: value})
    assert str(caught.value).startswith(sentence)


def test_a_file_may_have_hyphens_and_what_a_run_found(tmp_path):
    path = config(tmp_path, 'pair-network = "bilinear"\ngamma = [0, 3]\n[found]\nrows = 3\n')
    assert read_config(path) == {"pair_network": "bilinear", "gamma": [0, 3]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("gama = 1", "there is no setting 'gama'; there are features, id_column, "),
        ("[model]\ntau = 0.5", "there is no setting 'model'; "),
        ('components = "two"', "components must be a whole number from 1 up; it is 'two'"),
        ("components = true", "components must be a whole number from 1 up; it is True"),
        ("learning-rate = 0", "learning-rate must be a number above 0; it is 0"),
        ("steps = 1\nepochs = 1", "training lasts a number of steps or a number of epochs: keep one of the two"),
        ("pair-batch = 1\npair_batch = 1", "'pair_batch' is there twice"),
        ("tau = ", "is not TOML ("),
        (b"\xff", "is not TOML ("),
        ("#" * (1 << 20) + "\n", "has more than 1,048,576 bytes, too many for settings"),
    ],
)
def test_files_that_cannot_be(text, problem, tmp_path):
    path = config(tmp_path, text)
    with pytest.raises(DataFileError) as caught:
        read_config(path)
    assert str(caught.value).startswith(f"{path}: {problem}")
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataFileError, match="there is no such file"):
        read_config(tmp_path / "nowhere.toml")
    with pytest.raises(DataFileError, match="cannot be read"):
        read_config(tmp_path)


VALUES = st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.integers(-(2**60), 2**60), st.booleans())
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.dictionaries(st.sampled_from(["a", "b_c", "d"]), st.one_of(VALUES, NUMBERS, st.lists(NUMBERS), st.lists(VALUES)))
)
def test_what_is_written_is_read_again(values):
    assert tomllib.loads(to_toml(values)) == values


def test_settings_are_kept_in_one_form(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert kept_form("features", "x.csv") == str(tmp_path / "x.csv")
    assert kept_form("tau", 0) == 0.0
    assert isinstance(kept_form("tau", 0), float)
    assert (kept_form("pair_hidden", 5), kept_form("tau", "learned"), kept_form("graph", None)) == (
        [5],
        "learned",
        None,
    )
