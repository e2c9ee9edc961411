"""The settings of `corrvae fit`: what each may be, and where it comes from (options, a TOML file, defaults)."""

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, final

from corrvae.errors import DataFileError, MissingDataFileError
from corrvae.regular import open_regular

LIKELIHOODS = ("multinomial", "bernoulli", "gaussian", "poisson", "negative_binomial")
NORMALIZATIONS = ("raw", "binary", "l2", "log1p")
FOUND = "found"  # the table of a run's file that tells what was found, and sets nothing
_MOST_BYTES, _MOST_DOTS = 1 << 20, 1 << 12


@final
@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes
    ----------
    wanted
        What it may be, for people.
    accepts
        Whether a value is that.
    default
        What it is if nobody says; ``None``: nothing.
    parameter
        The parameter of `CorrelatedVAE` that it sets, if it sets one.
    """

    wanted: str
    accepts: Callable[[Any], bool]
    default: Any = None
    parameter: str | None = None


def _is_whole(value: Any, least: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any, low: float = float("-inf"), high: float = float("inf")) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return isfinite(value) and low <= value <= high
    except OverflowError:  # a whole number beyond what a float can hold
        return False


def _text(default: str | None = None, parameter: str | None = None) -> Setting:
    return Setting("a text", lambda value: isinstance(value, str) and value != "", default, parameter)


def _choice(options: tuple[str, ...], default: str | None, parameter: str | None = None) -> Setting:
    return Setting(
        f"one of {', '.join(options)}", lambda value: isinstance(value, str) and value in options, default, parameter
    )


def _count(parameter: str | None, default: int | None = None, least: int = 1) -> Setting:
    return Setting(f"a whole number from {least} up", lambda value: _is_whole(value, least), default, parameter)


def _one_or_two(wanted: str, accepts: Callable[[Any], bool], default: Any, parameter: str) -> Setting:
    def fits(value: Any) -> bool:
        return len(value) == 2 and all(map(accepts, value)) if isinstance(value, list) else accepts(value)

    return Setting(f"{wanted}, or two of them", fits, default, parameter)


def _widths(default: list[int] | None, parameter: str) -> Setting:
    def fits(value: Any) -> bool:
        return all(map(_is_whole, value)) if isinstance(value, list) else _is_whole(value)

    return Setting("whole numbers from 1 up, the widths of hidden layers", fits, default, parameter)


def _is_tau(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("learned", "learned_per_dimension")
    return _is_number(value) and -1 < value < 1


def _are_columns(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(v, str) or _is_whole(v, 0) for v in value)


SETTINGS: dict[str, Setting] = {
    "features": _text(),
    "id_column": _text(),
    "layout": _choice(("auto", "wide", "long"), "auto"),
    "empty_cells": _choice(("error", "mask"), "error", "missing"),
    "graph": _text(),
    "graph_columns": Setting("two names or positions of columns", _are_columns),
    "conductance": _text(),
    "directed": _choice(("mutual",), None),
    "missing": _choice(("drop", "error"), "drop"),
    "posterior": _choice(("independent", "pairwise"), "independent", "posterior"),
    "components": _count("n_components", 100),
    "likelihood": _choice(("auto", *LIKELIHOODS), "auto", "likelihood"),
    "tau": Setting("a number between -1 and 1, learned or learned_per_dimension", _is_tau, 0.99, "tau"),
    "gamma": _one_or_two("a number from 0 up", lambda value: _is_number(value, 0), 1.0, "gamma"),
    "normalize": _one_or_two(
        f"auto, {', '.join(NORMALIZATIONS)}",
        lambda value: isinstance(value, str) and value in ("auto", *NORMALIZATIONS),
        "auto",
        "normalize",
    ),
    "dropout": _one_or_two("a share from 0 to below 1", lambda v: _is_number(v, 0) and v < 1, 0.0, "dropout"),
    "min_stddev": Setting("a number above 0", lambda v: _is_number(v) and v > 0, 1e-4, "min_stddev"),
    "hidden": _widths([300], "hidden"),
    "pair_network": _choice(("perceptron", "bilinear", "metric"), "perceptron", "pair_network"),
    "pair_hidden": _widths(None, "pair_hidden"),
    "epochs": _count("max_epochs"),
    "steps": _count("max_steps"),
    "vertex_batch": _count("vertex_batch", 64),
    "edge_batch": _count("edge_batch", 256),
    "pair_batch": _count("pair_batch"),
    "edge_sampling": _choice(("uniform", "weighted"), "uniform", "edge_sampling"),
    "learning_rate": Setting("a number above 0", lambda v: _is_number(v) and v > 0, 1e-3, "learning_rate"),
    "warmup_steps": _count("warmup_steps", 0, 0),
    "validation": Setting(
        "a share from 0 to below 1", lambda v: _is_number(v, 0) and v < 1, 0.0, "validation_fraction"
    ),
    "patience": _count("patience"),
    "evaluate_every": _count("evaluate_every"),
    "seed": Setting("a whole number from 0 to 4294967295", lambda v: _is_whole(v, 0) and v < 2**32, 0, "random_state"),
    "device": _text("auto", "device"),
    "threads": _count(None),
    "checkpoint_every": _count(None),
}
_EPOCHS = 40
_PATHS = ("features", "graph")


def resolve(options: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Put options, a file's settings and defaults together; options win, and paths become absolute.

    Parameters
    ----------
    options
        Checked settings of the command line.
    config
        Checked settings of a TOML file.

    Examples
    --------
    >>> settings = resolve({"features": "/x.csv", "steps": 10}, {"epochs": 5, "tau": 0.5})
    >>> settings["steps"], settings["epochs"], settings["tau"], settings["seed"]
    (10, None, 0.5, 0)
    """
    given = {**config, **options}
    # training has one length: what the options say of it replaces what the file says
    if "steps" in options or "epochs" in options:
        given = {name: value for name, value in given.items() if name in options or name not in ("steps", "epochs")}
    settings = {name: given.get(name, setting.default) for name, setting in SETTINGS.items()}
    settings = {name: kept_form(name, value) for name, value in settings.items()}
    if settings["features"] is None:
        raise ValueError("which features? Name their file with --features")
    if settings["steps"] is not None and settings["epochs"] is not None:
        raise ValueError("training lasts a number of steps or a number of epochs: give --steps or --epochs, not both")
    if settings["steps"] is None and settings["epochs"] is None:
        settings["epochs"] = _EPOCHS
    if settings["patience"] is not None and not settings["validation"]:
        raise ValueError("--patience needs rows to validate with: give --validation too, 0.1 for example")
    if settings["posterior"] == "pairwise" and settings["vertex_batch"] < 2:
        raise ValueError("--posterior pairwise looks at pairs of a step's rows: --vertex-batch must be 2 or more")
    if settings["graph"] is None:
        if settings["posterior"] == "pairwise":
            raise ValueError("--posterior pairwise learns correlations from edges: give a graph with --graph")
        for name in ("graph_columns", "conductance", "directed"):
            if settings[name] is not None:
                raise ValueError(f"{name} = {settings[name]!r} says how to read a graph, but there is no --graph")
    return settings


def check_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the options that were given; lists are written with commas, such as ``0,30``.

    Examples
    --------
    >>> check_options({"gamma": "0,30", "tau": "0.9", "steps": None})
    {'gamma': [0, 30], 'tau': 0.9}
    """
    checked: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        read = value if name in _WORDS else _read(value)
        if not SETTINGS[name].accepts(read):
            raise ValueError(f"--{name.replace('_', '-')} must be {SETTINGS[name].wanted}; got {value!r}")
        checked[name] = read
    return checked


# What is a text even if it looks like a number or a list.
_WORDS = ("features", "graph", "id_column", "conductance", "device")


def _read(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if "," in value:
        return [_read(part.strip()) for part in value.split(",")]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return value


def read_config(path: Path) -> dict[str, Any]:
    """Read settings from a TOML file, and refuse what is none.

    Names may have hyphens, as options have, in place of underscores. The table ``found`` of a run's file is left out.

    Parameters
    ----------
    path
        The file.
    """
    settings: dict[str, Any] = {}
    for written, value in read_toml(path).items():
        name = written.replace("-", "_")
        if name == FOUND:
            continue
        if name not in SETTINGS:
            raise DataFileError(path, f"there is no setting {written!r}; there are {', '.join(SETTINGS)}")
        if name in settings:
            raise DataFileError(path, f"{name!r} is there twice, with a hyphen and with an underscore")
        if not SETTINGS[name].accepts(value):
            raise DataFileError(path, f"{written} must be {SETTINGS[name].wanted}; it is {_shown(value)}")
        settings[name] = value
    if "steps" in settings and "epochs" in settings:
        raise DataFileError(path, "training lasts a number of steps or a number of epochs: keep one of the two")
    return settings


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file of no more than a megabyte."""
    try:
        with open_regular(path) as stream:
            data = stream.read(_MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise MissingDataFileError(path) from error
    except OSError as error:
        raise DataFileError(path, f"cannot be read ({error.strerror or error})") from error
    if len(data) > _MOST_BYTES:
        raise DataFileError(path, f"has more than {_MOST_BYTES:,} bytes, too many for settings")
    # Reading a name of many parts takes time in proportion to their number squared.
    if data.count(b".") > _MOST_DOTS:
        raise DataFileError(path, f"has more than {_MOST_DOTS:,} dots, too many for settings")
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # such as a number of thousands of digits
        raise DataFileError(path, f"is not TOML ({error})") from error


def to_toml(values: Mapping[str, Any]) -> str:
    r"""Write settings as TOML; those that are ``None`` are left out.

    Examples
    --------
    >>> to_toml({"graph": "my edges.csv", "gamma": [0.0, 30.0], "steps": None})
    'graph = "my edges.csv"\ngamma = [0.0, 30.0]\n'
    """
    return "".join(f"{name} = {_toml_value(value)}\n" for name, value in values.items() if value is not None)


def estimator_parameters(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Give the parameters of a `CorrelatedVAE` that settings stand for.

    Examples
    --------
    >>> estimator_parameters({"components": 2, "gamma": [0.0, 1.0], "steps": None})
    {'n_components': 2, 'gamma': (0.0, 1.0)}
    """
    named = {SETTINGS[name].parameter: value for name, value in settings.items() if value is not None}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in named.items() if name is not None}


def kept_form(name: str, value: Any) -> Any:
    """Give a setting as a run keeps it: whole paths, lists of widths, floats where numbers need not be whole.

    Examples
    --------
    >>> kept_form("hidden", 300), kept_form("gamma", [0, 30])
    ([300], [0.0, 30.0])
    """
    if name in _PATHS and value is not None:
        return str(Path(value).absolute())
    if name in ("hidden", "pair_hidden") and _is_whole(value):
        return [value]
    if name in ("tau", "gamma", "dropout", "min_stddev", "learning_rate", "validation"):
        return [float(part) for part in value] if isinstance(value, list) else _as_float(value)
    return value


def _as_float(value: Any) -> Any:
    return float(value) if isinstance(value, int) else value


def _toml_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, str):
        # TOML's strings are JSON's, but for this character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _shown(value: Any) -> str:
    try:
        shown = repr(value)
    except RecursionError:
        return "nested too deep"
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
