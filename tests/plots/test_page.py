import re

import numpy as np
import pytest

from corrvae import CorrelatedVAE
from corrvae.errors import FolderError
from corrvae.plots import draw_embedding, draw_map, page, write_page
from corrvae.plots.facts import as_words, describe, explain_pairs, link_metric, score_links
from corrvae.scoring import METRICS
from support.browser import rendered
from support.markup import parse
from support.runs import trained

NASTY = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;$x$"


def write(model, path, **options):
    write_page(model, path, **options)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pairwise(tmp_path_factory):
    return write(trained("pairwise"), tmp_path_factory.mktemp("page") / "page.html", n_clusters=3)


def test_everything_is_there(pairwise):
    found = parse(pairwise)
    sections = ["map", "training", "links", "uncertainty", "weights"]
    assert [section["id"] for section in found.all("section")] == sections
    assert len(set(found.ids)) == len(found.ids)
    n_terms = len(set(trained("pairwise").history_) - {"step", "epoch", "seconds"})
    assert len(found.all("img")) == 1 + n_terms + 1 + 1 + 1
    assert all(image["alt"] and image["src"].startswith("data:image/svg+xml;base64,") for image in found.all("img"))
    assert "All 36 points and 36 edges" in found.words
    assert "The most certain points" in found.words
    assert "Training ended as planned after 24 steps." in found.words


def test_nothing_is_loaded_from_elsewhere(pairwise):
    found = parse(pairwise)
    named = [value for _, a in found.elements for key, value in a.items() if key in ("src", "href")]
    assert all(target.startswith("data:") for target in named)
    assert "url(" not in pairwise
    assert "http" not in re.sub(r"data:[^\"]*", "", pairwise).replace("http-equiv", "")
    assert found.all("script") == []
    assert "default-src 'none'" in found.all("meta")[1]["content"]


def test_the_same_run_gives_the_same_page(pairwise, tmp_path):
    assert write(trained("pairwise"), tmp_path / "again.html", n_clusters=3) == pairwise


def test_words_of_users_stay_words(tmp_path):
    found = parse(write(trained(), tmp_path / "page.html", title=NASTY))
    assert found.all("script") == []
    assert all(image["src"].startswith("data:") for image in found.all("img"))
    assert NASTY in found.words


def test_runs_of_every_kind_have_a_page(tmp_path):
    assert "overfits" in parse(write(trained(validation=0.3), tmp_path / "a.html")).words
    plain = parse(write(trained(graph=False), tmp_path / "b.html"))
    assert [section["id"] for section in plain.all("section")] == ["map", "training", "uncertainty"]


def test_a_run_that_ends_on_all_rows_has_a_page_with_its_choices(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 4))
    model = CorrelatedVAE(2, hidden=(4,), patience=1, warmup_steps=2, random_state=0).fit(X)
    assert len(model.history_["validation_total"]) < model.history_.n_rows
    words = parse(write(model, tmp_path / "page.html")).words
    assert all(choice.why in words for choice in model.choices_)


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    with pytest.raises(FolderError, match="there is no such folder"):
        write_page(trained(), tmp_path / "nowhere" / "page.html")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def seen(monkeypatch):
    """What `draw_map` was called with last."""
    found = {}

    def spy(places, values, **options):
        found.update(places=places, values=values, **options)
        return draw_map(places, values, **options)

    monkeypatch.setattr(page.figures, "draw_map", spy)
    return found


def test_a_map_is_coloured_by_clusters(seen):
    draw_embedding(trained(), n_clusters=3)
    counts = np.bincount(seen["values"])
    assert len(counts) == 3
    assert (np.diff(counts) <= 0).all()
    assert seen["title"] == "cluster"


def test_a_large_map_shows_some_points_and_their_edges(seen, monkeypatch):
    monkeypatch.setattr(page, "MAX_POINTS", 20)
    draw_embedding(trained())
    all_places, _ = page.project(trained().embedding_)
    shown = [int(np.flatnonzero((all_places == place).all(axis=1))[0]) for place in seen["places"]]
    assert len(shown) == 20
    linked = {tuple(edge) for edge in trained().graph_.edges.tolist()}
    assert {(shown[i], shown[j]) for i, j in seen["edges"]} <= linked


def test_the_share_of_linked_before_unlinked_is_that_of_all_comparisons():
    links = score_links(trained(), np.random.default_rng(0))
    sign = 1.0 if METRICS[links.metric].larger_is_better else -1.0
    better = np.sign(sign * (links.linked[:, None] - links.unlinked))
    assert page._share_before(links) == pytest.approx((better.mean() + 1) / 2)


def test_facts_are_those_of_the_model():
    facts = describe(trained("pairwise"))
    assert facts["model"]["family"] == "Pairwise"
    assert facts["data"] | {"points": 36, "edges": 36, "connected_parts": 3, "features_stored": True} == facts["data"]
    assert facts["training"]["steps"] == 24
    assert facts["parameters"]["random_state"] == 0
    assert link_metric(trained("pairwise")) == "expected_distance"
    assert link_metric(trained()) == "log_odds"


def test_shares_are_rounded_honestly():
    assert [page._percent(share) for share in (0.0, 0.001, 0.5, 0.999, 1.0)] == [
        "0 %",
        "under 1 %",
        "50 %",
        "over 99 %",
        "100 %",
    ]
    assert as_words({"a": None, "b": [1234, 0.5]}) == "a none, b 1,234, 0.5"


def test_a_browser_shows_it(pairwise, tmp_path):
    (tmp_path / "page.html").write_text(pairwise, encoding="utf-8")
    shown = parse(rendered((tmp_path / "page.html").as_uri(), tmp_path / "profile", "--window-size=390,800"))
    assert "Map of the embedding" in shown.words


def test_links_are_explained_where_entries_or_features_are_missing():
    X = np.random.default_rng(0).normal(size=(6, 3))
    X[0, 1] = np.nan
    model = CorrelatedVAE(2, family="joint", missing="mask", max_steps=3, random_state=0)
    model.fit(X, graph=[(0, 1), (1, 2), (2, 6)])  # vertex 6 has no features
    names, cosines, distances = explain_pairs(model, np.array([[0, 2], [1, 6]]))
    one, other = np.nan_to_num(X[[0, 2]])
    assert names == ["1", "2"]
    assert cosines[0] == pytest.approx(one @ other / np.linalg.norm(one) / np.linalg.norm(other), rel=1e-5)
    assert np.isnan(cosines[1])
    assert (distances > 0).all()
    assert [len(part) for part in explain_pairs(model, np.empty((0, 2), np.int64))] == [0, 0, 0]
