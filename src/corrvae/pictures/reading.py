"""Values of records as a report can show them: a record is a file, and a file may hold anything.

What is missing, of the wrong kind, infinite or not a number becomes ``None`` or is left out; nothing here raises.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from jaxtyping import Float, Int

NOT_GIVEN = "not given"
_LONGEST_TEXT, _DEEPEST, _LARGE = 300, 4, 1e7
_HIDDEN = {0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}  # these turn the direction of what follows


def as_text(value: Any, *, longest: int = _LONGEST_TEXT) -> str:
    r"""One line that can be printed, cut where it grows too long.

    Examples
    --------
    >>> as_text("two\nlines"), as_text(None), as_text(0.1), as_text("  ")
    ('two lines', 'not given', '0.1', 'not given')
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return NOT_GIVEN
    try:
        words = " ".join(str(value).split())
    except (ValueError, RecursionError):  # an integer of too many digits, lists in lists
        return NOT_GIVEN
    hidden = {ord(letter) for letter in words if not letter.isprintable()} | _HIDDEN
    shown = words.translate(dict.fromkeys(hidden, "\N{REPLACEMENT CHARACTER}"))
    return (shown if len(shown) <= longest else f"{shown[: longest - 1]}…") or NOT_GIVEN


def as_moment(value: Any) -> str:
    """A time in ISO form, to the minute, in UTC if it says how far it is from it.

    Examples
    --------
    >>> as_moment("2026-03-01T12:30:59+02:00"), as_moment("yesterday")
    ('2026-03-01 10:30 UTC', 'not given')
    """
    try:
        moment = datetime.fromisoformat(value)
        return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if moment.tzinfo else f"{moment:%Y-%m-%d %H:%M}"
    except (TypeError, ValueError, OverflowError):
        return NOT_GIVEN


def as_number(value: Any) -> float | None:
    """A finite number, or ``None``.

    Examples
    --------
    >>> as_number(3), as_number(float("nan")), as_number("3"), as_number(True)
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    # Sums and squares of a few of these stay finite.
    return number if abs(number) < 1e100 else None


def show_number(value: float | None, otherwise: str = NOT_GIVEN, *, digits: int = 4) -> str:
    """A number with so many digits behind the point, short however large it is.

    Examples
    --------
    >>> show_number(0.71294), show_number(1234.5, digits=0), show_number(1e30), show_number(None)
    ('0.7129', '1,234', '1e+30', 'not given')
    """
    if value is None:
        return otherwise
    return f"{value:,.{digits}f}" if abs(value) < _LARGE else f"{value:.4g}"


def as_numbers(values: Any) -> Float[np.ndarray, " values"]:
    """Numbers of a list, with NaN for whatever is none; nothing for what is no list.

    Examples
    --------
    >>> as_numbers([1, "a", 2.5]).tolist(), as_numbers(7).tolist()
    ([1.0, nan, 2.5], [])
    """
    listed = values if isinstance(values, list | tuple) else []
    numbers = (as_number(value) for value in listed)
    return np.array([math.nan if number is None else number for number in numbers], dtype=float)


def as_points(values: Any, most: int) -> Float[np.ndarray, "points 2"]:
    """The first points of a list of pairs of numbers; nothing if one of them is no such pair.

    Examples
    --------
    >>> as_points([[0, 1], [2, 3]], 10).tolist(), as_points([[0, 1], "a"], 10).shape
    ([[0.0, 1.0], [2.0, 3.0]], (0, 2))
    """
    rows = [as_numbers(value) for value in values[:most]] if isinstance(values, list) else []
    if not rows or any(row.shape != (2,) or not np.isfinite(row).all() for row in rows):
        return np.empty((0, 2))
    return np.array(rows)


def as_edges(values: Any, n_points: int, most: int) -> Int[np.ndarray, "edges 2"]:
    """The first edges among so many points; those that lead elsewhere are left out.

    Examples
    --------
    >>> as_edges([[0, 1], [1, 5], [0.5, 1]], 3, 10).tolist()
    [[0, 1]]
    """
    pairs = values if isinstance(values, list) else []
    kept = [
        pair for pair in pairs if isinstance(pair, list) and len(pair) == 2 and all(_is_of(n_points, v) for v in pair)
    ]
    return np.array(kept[:most], dtype=np.int64).reshape(-1, 2)


def as_facts(values: Any) -> dict[str, str]:
    """A tree of settings as lines of text, ``"outer.inner"`` for what lies deeper.

    Examples
    --------
    >>> as_facts({"hidden": [300], "adam": {"rate": 0.001}, "tau": None})
    {'hidden': '300', 'adam.rate': '0.001', 'tau': 'not given'}
    """
    facts: dict[str, str] = {}
    _collect(values, "", facts, _DEEPEST)
    return facts


def _collect(value: Any, name: str, facts: dict[str, str], deeper: int) -> None:
    if isinstance(value, Mapping) and deeper and (value or not name):
        for key, part in value.items():
            _collect(part, f"{name}.{as_text(key)}" if name else as_text(key), facts, deeper - 1)
    elif isinstance(value, list | tuple) and not any(isinstance(part, list | tuple | Mapping) for part in value):
        facts[name or "value"] = as_text(", ".join(as_text(part) for part in value[:100]))
    else:
        facts[name or "value"] = as_text(value)


def _is_of(n_points: int, value: Any) -> bool:
    return type(value) is int and 0 <= value < n_points
