import re

import pytest

from corrvae.answers.run import Run
from corrvae.errors import FolderError
from corrvae.pictures import run_view
from corrvae.pictures.run_page import build_page, write_page
from corrvae.pictures.run_view import view_run
from support.browser import rendered
from support.markup import parse
from support.runs import make_files, write_rows

NASTY = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;$x$"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("run"), "pairwise")


@pytest.fixture(scope="module", autouse=True)
def _few_links_will_do():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_view, "_FEWEST_CALIBRATED", 30)
        yield


@pytest.fixture(scope="module")
def page(files):
    return build_page(view_run(Run.open(files.run), n_clusters=3))


def test_everything_that_was_promised_is_there(page):
    found = parse(page)
    assert [figure["id"] for figure in found.all("figure")] == ["map", "curves", "links"]
    assert "certainty" in found.ids
    assert len(set(found.ids)) == len(found.ids)
    for words in (
        "run: a trained CVAE_corr",
        "cluster 0",
        "Total bound",
        "linked pairs",
        "Calibration",
        "most certain",
    ):
        assert words in found.words
    assert "36 points, 36 edges drawn." in found.words


def test_nothing_is_asked_for_from_elsewhere(page):
    found = parse(page)
    named = [value for _, a in found.elements for key, value in a.items() if key in ("src", "href")]
    assert all(target.startswith(("#", "data:")) for target in named)
    assert re.findall(r"url\((?!#)", page) == []
    assert "http" not in page.replace("http-equiv", "")
    assert found.all("script") == []


def test_the_same_run_gives_the_same_page(files, page):
    assert build_page(view_run(Run.open(files.run), n_clusters=3)) == page


def test_words_of_files_stay_words(files, tmp_path):
    table = write_rows(tmp_path / "t.csv", [("id", NASTY), *((f"p{k}", NASTY * (k % 2 + 1)) for k in range(36))])
    view = view_run(Run.open(files.run), color=f"{table}:{NASTY}")
    found = parse(build_page(view))
    assert found.all("script") == []
    assert found.all("img") == []


def test_runs_of_every_kind_have_a_page(tmp_path):
    (tmp_path / "a").mkdir()
    validated = make_files(tmp_path / "a", validation=0.3)
    assert "validation" in parse(build_page(view_run(Run.open(validated.run)))).words
    (tmp_path / "b").mkdir()
    plain = make_files(tmp_path / "b", graph=False)
    found = parse(build_page(view_run(Run.open(plain.run))))
    assert [figure["id"] for figure in found.all("figure")] == ["map", "curves"]


def test_it_is_written_whole_or_not_at_all(files, page, tmp_path):
    view = view_run(Run.open(files.run), n_clusters=3)
    path = write_page(view, tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == page
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(FolderError, match="cannot be written"):
        write_page(view, tmp_path / "nowhere" / "page.html")


def test_a_browser_shows_it(files, tmp_path):
    path = write_page(view_run(Run.open(files.run)), tmp_path / "page.html")
    shown = parse(rendered(path.as_uri(), tmp_path / "profile", "--window-size=390,800"))
    assert "Map of the embedding" in shown.words
