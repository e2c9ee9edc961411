import re

import pytest

from corrvae.pictures.theme import INK, SERIES, SOFT, assign_series, css_names, css_values


def luminance(colour: str) -> float:
    """Relative luminance as the Web Content Accessibility Guidelines define it."""
    shares = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_colours_stand_out_from_the_surface(dark):
    values = dict(re.findall(r"--([\w-]+):(#\w{6})", css_values(dark=dark)))
    for name, least in {"ink": 7.0, "soft": 4.5, **{f"series-{k}": 3.0 for k in range(len(SERIES))}}.items():
        assert contrast(values[name], values["surface"]) >= least, name
    assert contrast(values["soft"], values["back"]) >= 4.5
    assert contrast(values["ink"], values["best"]) >= 7.0


def test_every_stand_in_has_a_name_with_a_value():
    names = css_names()
    assert {INK, SOFT, *SERIES} <= names.keys()
    assert len(set(names.values())) == len(names)
    for dark in (False, True):
        declared = {f"var({name})" for name in re.findall(r"--[\w-]+", css_values(dark=dark))}
        assert set(names.values()) <= declared


def test_a_model_keeps_its_colour_whatever_order_they_come_in():
    models = ["zeta", "vae", "alpha", "corr", "ind"]
    colours = assign_series(models)
    assert colours == assign_series(reversed(models))
    assert len(set(colours.values())) == len(models)
    assert assign_series(["corr"])["corr"] == colours["corr"]


def test_more_models_than_colours_share_the_last():
    colours = assign_series([f"m{k:02}" for k in range(20)])
    assert max(colours.values()) == len(SERIES) - 1
