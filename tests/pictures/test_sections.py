from dataclasses import replace
from statistics import fmean, stdev

import numpy as np

from corrvae.pictures.runs import arrange
from corrvae.pictures.sections import main_score, ranking, section_html
from corrvae.pictures.theme import assign_series
from support.markup import parse
from support.results import make_record

PAPER = {"vae": 0.0052, "ind": 0.016}


def section_of(records):
    (section,) = arrange(records)
    return section


def written(records):
    section = section_of(records)
    series = assign_series(run.model for run in section.runs if run.history)
    return parse(section_html(section, PAPER, series, name="s1"))


RECORDS = [make_record("links", model, seed) for model in ("vae", "ind", "adamic_adar") for seed in range(3)]


def test_every_figure_is_there_with_a_caption_and_a_text():
    page = written(RECORDS)
    assert [one["id"] for one in page.all("figure")] == ["s1-bars", "s1-weights", "s1-curves", "s1-map", "s1-pairs"]
    assert len(page.all("figcaption")) == 5
    drawings = page.all("svg")
    assert len(drawings) == 1 + 1 + 4 + 2 + 2
    for drawing in drawings:
        assert set(drawing["aria-labelledby"].split()) <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)


def test_the_table_gives_mean_deviation_paper_time_and_memory():
    runs = [record for record in RECORDS if record.model == "ind"]
    values = [record.scores["ncrr"] for record in runs]
    words = written(RECORDS).words
    assert f"CVAE_ind {fmean(values):.4f} {stdev(values):.4f} 0.0160" in words
    minutes = fmean(record.seconds for record in runs) / 60
    assert f"3 {minutes:.1f} {max(record.peak_megabytes for record in runs):,.0f}" in words


def test_the_best_comes_first_and_what_has_no_score_last():
    lost = replace(make_record("links", "corr"), scores={})
    ranked = ranking(section_of([*RECORDS, lost]), PAPER, {})
    assert [entrant.model for entrant, _ in ranked] == ["adamic_adar", "ind", "vae", "corr"]
    means = [bar.mean for _, bar in ranked[:-1]]
    assert means == sorted(means, reverse=True)
    assert "CVAE_corr not given" in written([*RECORDS, lost]).words


def test_scores_alone_make_a_table_and_bars():
    page = written([replace(record, history=None, sketches=None) for record in RECORDS])
    assert [one["id"] for one in page.all("figure")] == ["s1-bars"]


def test_maps_without_groups_are_drawn():
    record = make_record("links", "ind")
    assert record.sketches is not None
    page = written([replace(record, sketches=replace(record.sketches, groups=None))])
    assert "s1-map" in page.ids
    assert "group 0" not in page.words
    assert "group 0" in written([record]).words


def test_an_unknown_task_is_judged_by_its_first_score():
    record = replace(make_record("links", "ind"), task="guessing", scores={"luck": 0.25, "skill": 0.5})
    assert main_score(section_of([record])) == "luck"
    assert "0.2500" in written([record]).words


def test_settings_that_differ_between_seeds_are_told():
    first, second = (replace(make_record("links", "ind", seed), settings={"tau": 0.9 + seed / 20}) for seed in (0, 1))
    assert "tau 0.9 | 0.95" in written([first, second]).words


def test_settings_versions_and_commands_can_be_opened():
    page = written(RECORDS)
    assert len(page.all("details")) == 1
    for text in (
        "adam.learning_rate",
        "2.13.0",
        "corrvae reproduce links --models ind --seeds 1",
        "2026-03-01 10:00 UTC",
    ):
        assert text in page.words


def test_colours_of_groups_are_the_same_on_all_maps():
    one, other = make_record("links", "ind"), make_record("links", "vae")
    assert one.sketches is not None
    assert other.sketches is not None
    n_points = len(one.sketches.points)
    # group 1 is alone on the first map, group 0 on the second
    one = replace(one, sketches=replace(one.sketches, groups=[1] * n_points))
    other = replace(other, sketches=replace(other.sketches, groups=[0] * n_points))
    paths = [path.get("style", "") for path in written([one, other]).all("path")]
    dots = [style for style in paths if "stroke-linecap:round" in style and "stroke-width:8.4" in style]
    assert ["series-1" in style for style in dots] == [True, False]
    assert np.all(["series-0" in style for style in dots] == np.array([False, True]))
