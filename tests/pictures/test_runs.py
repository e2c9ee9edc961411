from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.experiments.records import Record, Sketches
from corrvae.pictures.runs import arrange, check_run
from support.results import make_record
from support.unchecked import unchecked

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def test_sections_come_in_the_order_of_the_tasks_and_recipes():
    kinds = [("links", "paper"), ("clustering", "quick"), ("links", "recommended"), ("matching", "paper")]
    sections = arrange([make_record(task, "ind", recipe=recipe) for task, recipe in kinds])
    assert [(section.task, section.recipe) for section in sections] == [
        ("matching", "paper"),
        ("clustering", "quick"),
        ("links", "recommended"),
        ("links", "paper"),
    ]


def test_seeds_of_a_model_are_together():
    records = [make_record("links", model, seed) for seed in range(3) for model in ("ind", "vae")]
    (section,) = arrange(records)
    assert [(entrant.model, len(entrant.runs)) for entrant in section.entrants] == [("ind", 3), ("vae", 3)]
    assert section.entrants[0].values("ncrr") == [r.scores["ncrr"] for r in records if r.model == "ind"]
    assert section.entrants[0].values("nothing") == []


def test_true_latents_are_a_ceiling():
    truth, ind = make_record("clustering", "truth"), make_record("clustering", "ind")
    latents = replace(truth, settings={"method": "latents", "parameters": {}})
    model = replace(ind, settings={"method": "cvae", "parameters": {"method": "latents"}})
    (section,) = arrange([latents, model])
    assert [entrant.is_ceiling for entrant in section.entrants] == [True, False]


def test_a_whole_record_loses_nothing():
    record = make_record("links", "corr")
    run = check_run(record)
    assert (run.scores, run.seconds, run.megabytes) == (record.scores, record.seconds, record.peak_megabytes)
    assert {name: values.tolist() for name, values in run.history.items()} == record.history
    assert run.drawing is not None
    assert record.sketches is not None
    for name in ("points", "groups", "edges", "linked", "random", "weight_counts", "weight_bounds"):
        assert getattr(run.drawing, name).tolist() == getattr(record.sketches, name)


def test_scores_that_are_no_numbers_are_left_out():
    record = replace(make_record("links", "ind"), scores={"ncrr": float("nan"), "auc": 0.5, "mrr": float("inf")})
    assert check_run(record).scores == {"auc": 0.5}


@pytest.mark.parametrize(
    "history",
    [None, {}, {"total": [1.0]}, {"step": [], "total": []}, {"step": [float("nan")], "total": [1.0]}],
)
def test_without_steps_there_is_no_history(history):
    assert check_run(replace(make_record("links", "ind"), history=history)).history == {}


def test_a_column_of_another_length_is_left_out():
    history = {"step": [1.0, 2.0], "total": [3.0, 4.0], "edge": [1.0]}
    assert list(check_run(replace(make_record("links", "ind"), history=history)).history) == ["step", "total"]


@pytest.mark.parametrize(
    ("counts", "bounds"),
    [([1, 2], [0.0, 1.0]), ([1], [1.0, 0.0]), ([-1], [0.0, 1.0]), ([], [0.0]), ([1], [0.0, float("nan")])],
)
def test_a_histogram_that_is_not_whole_is_not_drawn(counts, bounds):
    record = make_record("links", "ind")
    assert record.sketches is not None
    sketches = replace(record.sketches, weight_counts=counts, weight_bounds=bounds)
    drawing = check_run(replace(record, sketches=sketches)).drawing
    assert drawing is not None
    assert drawing.weight_counts.shape == drawing.weight_bounds.shape == (0,)


@given(
    st.fixed_dictionaries({field.name: JSON for field in fields(Record)[:-1]}), st.lists(JSON, min_size=8, max_size=8)
)
def test_any_json_can_stand_in_a_record(values, drawn):
    with unchecked():
        sketches = Sketches(**dict(zip([field.name for field in fields(Sketches)], drawn, strict=True)))
        record = Record(**values, sketches=sketches)
    run = check_run(record)
    assert all(np.isfinite(value) for value in run.scores.values())
    assert run.drawing is not None
    assert np.isfinite(run.drawing.points).all()
