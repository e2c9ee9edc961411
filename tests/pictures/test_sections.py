import re
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np
import pytest

from corrvae.pictures.runs import arrange
from corrvae.pictures.sections import main_score, ranking, say_unclear, section_html
from corrvae.pictures.theme import assign_series
from support.markup import parse
from support.results import make_record

PAPER = {"vae": 0.0052, "ind": 0.016}


def section_of(records):
    (section,) = arrange(records)
    return section


def written(records, paper=PAPER):
    section = section_of(records)
    series = assign_series(run.model for run in section.runs if run.history)
    return parse(section_html(section, paper, series, name="s1"))


def bare(task, model, seed=0, **changes):
    return replace(make_record(task, model, seed), history=None, sketches=None, **changes)


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


LATENTS = bare("clustering", "truth", scores={"nmi": 0.99}, settings={"method": "latents"}, label="true z")


def best_rows(records):
    section = section_of(records)
    rows = re.findall(r'<tr class="best">(.*?)</tr>', section_html(section, {}, {}, name="s1"))
    return [parse(row).words for row in rows]


def test_a_ceiling_is_neither_first_nor_pointed_out():
    model, lost = bare("clustering", "ind", scores={"nmi": 0.4}), bare("clustering", "vae", scores={})
    ranked = ranking(section_of([LATENTS, model, lost]), {}, {})
    assert [entrant.model for entrant, _ in ranked] == ["ind", "vae", "truth"]
    (best,) = best_rows([LATENTS, model])
    assert best.startswith("CVAE_ind 0.4000")
    assert best_rows([LATENTS]) == []
    assert "true z is a ceiling, no competitor" in written([LATENTS, model]).words
    assert "ceiling" not in written([model]).words


def test_counts_are_not_shown_as_scores():
    scores = {"ncrr": 0.01, "hits_10": 0.5, "n_vertices": 1200.0, "n_pairs": 77.0, "validation_ncrr": 0.02}
    page = written([bare("links", "ind", scores=scores)])
    head = page.words[: page.words.index("Minutes")]
    assert "NCRR ± s.d. Paper hits@10 validation NCRR Seeds" in head
    assert "1,200" not in page.words
    assert "77" not in page.words.split()


def test_without_the_papers_numbers_nothing_speaks_of_the_paper():
    records = [bare("links", "ind", recipe="quick"), bare("links", "vae", recipe="quick")]
    page = written(records, paper={})
    words = page.words.replace("not to be held against the paper's numbers", "")
    assert "paper" not in words.lower().split()
    assert "paper's" not in words
    assert not [one for one in page.all("span") if one.get("class") == "key mark"]
    compared = written(records)
    assert "against the paper" in compared.words
    assert [one for one in compared.all("span") if one.get("class") == "key mark"]


@pytest.mark.parametrize(
    ("residuals", "said"),
    [((0.1, 0.0), ""), ((0.11, 3.0), "no clear cut"), ((0.05, 0.2), "no clear cut in 1 of 2 seeds"), ((), "")],
)
def test_scores_without_a_clear_cut_are_marked(residuals, said):
    records = [
        bare("clustering", "ind", seed, scores={"nmi": 0.3, "residual": residual})
        for seed, residual in enumerate(residuals)
    ]
    (entrant,) = section_of(records or [bare("clustering", "ind")]).entrants
    assert say_unclear(entrant) == said
    if records:
        words = written(records, paper={}).words
        assert f"CVAE_ind 0.3000 ({said})" in words if said else "CVAE_ind 0.3000 0.0000" in words
        assert "The residual tells how far the eigenvector of the cut is from exact" in words


def test_validation_and_test_are_told_apart_by_their_pairs():
    scores = {"reciprocal_rank": 0.8, "n_pairs": 1604.0, "validation_n_pairs": 302.0}
    words = written([bare("matching", "ind", scores=scores)]).words
    assert "Test has 1,604 pairs and validation 302:" in words
    assert "cannot be compared" in words
    assert "cannot be compared" not in written([bare("matching", "ind", scores={"reciprocal_rank": 0.8})]).words


@pytest.mark.parametrize(
    ("task", "linked", "shown"),
    [
        ("clustering", "Linked pairs are training edges.", "a connected piece of the graph"),
        ("links", "Linked pairs are test edges", "a connected piece of the graph"),
        ("matching", "Linked pairs are the two halves of test users.", "an edge joins the two of a user"),
    ],
)
def test_captions_say_what_is_linked_and_what_is_drawn(task, linked, shown):
    words = written([make_record(task, "ind")]).words
    assert linked in words
    assert shown in words
