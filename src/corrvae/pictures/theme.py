"""Colours of the report, for light and for dark screens, and who gets which.

A figure is drawn in stand-in colours, one for each name below; `corrvae.pictures.vector` puts the names in their place,
and the page gives each name its value for light and for dark. The hues stay apart for colour-blind readers.
"""

from collections.abc import Iterable

INK, SOFT, LINE, SURFACE = "#0a0001", "#0a0002", "#0a0003", "#0a0004"
SERIES = tuple(f"#0a001{position}" for position in range(8))

# name: (stand-in, on light, on dark)
_VALUES = {
    "ink": (INK, "#1b1f24", "#e8eaed"),
    "soft": (SOFT, "#5f6873", "#a3abb5"),
    "line": (LINE, "#d9dde2", "#3a4149"),
    "surface": (SURFACE, "#ffffff", "#1b1f24"),
    "series-0": (SERIES[0], "#0068b0", "#5fb0f2"),
    "series-1": (SERIES[1], "#c2410c", "#ff9360"),
    "series-2": (SERIES[2], "#007d5a", "#3fcf9f"),
    "series-3": (SERIES[3], "#a0447f", "#ee9acb"),
    "series-4": (SERIES[4], "#8a6200", "#e3b53f"),
    "series-5": (SERIES[5], "#3a8fc0", "#a6dcff"),
    "series-6": (SERIES[6], "#5b4bb5", "#b3a6ff"),
    "series-7": (SERIES[7], "#6e5a4b", "#cdb6a3"),
}
_PAGE_VALUES = {"back": ("#f4f5f7", "#121518"), "best": ("#e6f1fa", "#17324a")}

# The models that every experiment has come first, so that they look the same on every page.
_FIRST = ("ind", "corr", "vae")


def css_names() -> dict[str, str]:
    """Each stand-in colour with the CSS that takes its place.

    Examples
    --------
    >>> css_names()[INK]
    'var(--ink)'
    """
    return {stand_in: f"var(--{name})" for name, (stand_in, _, _) in _VALUES.items()}


def css_values(*, dark: bool) -> str:
    """Declarations of all colours, for a light or a dark screen.

    Examples
    --------
    >>> css_values(dark=True).split(";")[0]
    '--ink:#e8eaed'
    """
    values = {name: (light, night) for name, (_, light, night) in _VALUES.items()} | _PAGE_VALUES
    return ";".join(f"--{name}:{pair[dark]}" for name, pair in values.items())


def assign_series(models: Iterable[str]) -> dict[str, int]:
    """Give each model a colour of its own, by position in `SERIES`, the same whatever order they come in.

    With more models than colours the last ones share.

    Examples
    --------
    >>> assign_series(["vae", "corr", "sage"])
    {'corr': 1, 'vae': 2, 'sage': 3}
    """
    found = set(models)
    colours = {model: position for position, model in enumerate(_FIRST) if model in found}
    others = sorted(found.difference(_FIRST))
    return colours | {model: min(len(_FIRST) + k, len(SERIES) - 1) for k, model in enumerate(others)}
