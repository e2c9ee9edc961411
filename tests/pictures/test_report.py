import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.errors import DataFileError, FolderError
from corrvae.experiments.published import TASKS
from corrvae.experiments.records import Sketches, write_record
from corrvae.pictures.report import build_report, write_report
from support.browser import rendered
from support.markup import parse
from support.results import LEVELS, make_record, make_results
from support.server import Site, serving
from support.unchecked import unchecked

FIGURES = ("bars", "weights", "curves", "map", "pairs")
NASTY = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;$x$"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return make_results(tmp_path_factory.mktemp("results"), seeds=2)


@pytest.fixture(scope="module")
def report(results):
    return write_report(results).read_text(encoding="utf-8")


def outward(markup):
    """Whatever a browser would fetch from elsewhere."""
    page = parse(markup)
    named = [value for _, attributes in page.elements for key, value in attributes.items() if key in ("src", "href")]
    styled = [value for _, attributes in page.elements for value in attributes.values()] + page.styles
    named += [target for style in styled for target in re.findall(r"url\(([^)]*)\)", style)]
    return [target for target in named if not target.startswith(("#", "data:"))]


def test_every_task_has_every_figure(report):
    page = parse(report)
    assert [one["id"] for one in page.all("figure")] == [f"s{k}-{name}" for k in (1, 2, 3) for name in FIGURES]
    assert len(page.all("details")) == len(LEVELS)
    assert len(set(page.ids)) == len(page.ids)


def test_links_inside_lead_somewhere_and_none_leads_out(report):
    page = parse(report)
    inside = {value[1:] for _, a in page.elements for key, value in a.items() if key == "href" and value[:1] == "#"}
    assert inside <= set(page.ids)
    assert outward(report) == []
    assert "http" not in report.replace("http-equiv", "")
    assert "@import" not in report


def test_the_paper_stands_beside_each_model(report):
    words = parse(report).words
    for number in ("0.3498", "0.6608", "0.7129", "0.0031", "0.2821", "0.2748", "0.0052", "0.0115", "0.0160", "0.0171"):
        assert number in words


def test_other_numbers_can_be_held_against():
    record = replace(make_record("links", "ind"), history=None, sketches=None)
    page = build_report([record], published={"links": {"ind": 0.1234}})
    assert "0.1234" in page
    assert "0.0160" not in page


def card_of(records):
    markup = build_report([replace(record, history=None, sketches=None) for record in records])
    return parse(re.search(r'<a class="card".*?</a>', markup, re.DOTALL).group()).words


def test_quick_results_are_not_held_against_the_paper():
    paper = [make_record("links", "ind", recipe="paper")]
    quick = [make_record("links", "ind", recipe="quick")]
    assert "paper: 0.0160" in card_of(paper)
    assert "paper" not in card_of(quick)
    markup = build_report([replace(record, history=None, sketches=None) for record in quick])
    assert "0.0160" not in markup
    assert "Epinions?" not in markup


def test_the_ceiling_is_not_on_the_card():
    latents = replace(make_record("clustering", "truth"), scores={"nmi": 0.99}, settings={"method": "latents"})
    model, linear = make_record("clustering", "ind"), make_record("clustering", "pca")
    assert "best of the others: PCA of x" in card_of([latents, model, linear])
    assert "0.9900" not in card_of([latents, model])
    assert "not given" in card_of([latents])


def test_the_card_says_when_there_is_no_clear_cut():
    model = replace(make_record("clustering", "ind"), scores={"nmi": 0.3, "residual": 0.5})
    assert "no clear cut" in card_of([model])
    assert "no clear cut" not in card_of([replace(model, scores={"nmi": 0.3, "residual": 0.01})])


def test_the_same_records_give_the_same_bytes(results, report, tmp_path):
    assert write_report(results, tmp_path / "again.html").read_text(encoding="utf-8") == report


def test_everything_in_a_record_is_text():
    record = make_record("links", "ind")
    assert record.sketches is not None
    nasty = replace(
        record,
        **dict.fromkeys(("task", "recipe", "model", "label", "command", "finished"), NASTY),
        scores={NASTY: 0.5},
        settings={NASTY: NASTY, "list": [NASTY]},
        data={"name": NASTY},
        versions={NASTY: NASTY},
        history={"step": [1.0, 2.0], NASTY: [1.0, 2.0]},
        sketches=replace(record.sketches, metric=NASTY),
    )
    markup = build_report([nasty], published={NASTY: {NASTY: 0.4}})
    page = parse(markup)
    assert page.all("script") == page.all("img") == []
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on")]
    assert outward(markup) == []
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in parse(build_report([record])).elements}
    assert NASTY in page.words


def test_what_a_record_lacks_is_said():
    bare = make_record("clustering", "ind")
    empty = {"scores": {}, "settings": {}, "data": {}, "versions": {}, "finished": "", "history": None}
    words = parse(build_report([replace(bare, **empty, sketches=None, seconds=float("nan"))])).words
    assert "Data: not given" in words
    assert "Versions: not given" in words
    assert "nan" not in words.split()


VALUES = st.none() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.floats() | st.none(), max_size=4)


@settings(max_examples=20)
@given(st.dictionaries(st.sampled_from(["scores", "settings", "data", "seconds", "label", "seed", "history"]), VALUES),
       st.lists(VALUES, min_size=8, max_size=8))  # fmt: skip
def test_no_record_breaks_the_report(values, drawn):
    with unchecked():
        record = replace(make_record("links", "ind"), **values, sketches=Sketches(*drawn))
    ids = parse(build_report([record])).ids
    assert len(set(ids)) == len(ids)


def test_a_full_set_of_results_stays_small():
    records = [make_record("links", model, n_points=800) for model in ("ind", "corr", "vae")]
    assert len(build_report(records).encode()) < 3 * 2**20 / 6


def test_it_opens_in_a_browser_and_asks_for_nothing(report, tmp_path):
    with serving(Site(files={"report.html": report.encode()})) as site:
        shown = parse(rendered(f"{site.address}/report.html", tmp_path / "profile"))
    assert len(site.asked) == 1
    # the browser finds the elements that were written, no more and no fewer
    assert [name for name, _ in shown.elements] == [name for name, _ in parse(report).elements]
    assert [one["id"] for one in shown.all("figure")] == [one["id"] for one in parse(report).all("figure")]
    assert shown.all("svg")


# shows a page in a frame of a width, and tells how much room each table of scores needs and has
MEASURE = """<iframe src="report.html" style="width:%dpx;height:600px"></iframe><output></output><script>
document.querySelector("iframe").onload = event => {
  const frames = [...event.target.contentDocument.querySelectorAll(".scroll:not(details .scroll)")]
  document.querySelector("output").textContent = frames.map(one => `${one.scrollWidth} ${one.clientWidth}`).join(";")
}</script>"""


def test_tables_fit_a_wide_window(tmp_path):
    records = [
        replace(make_record(name, "ind"), label="CVAE_ind, graph features", scores=dict.fromkeys(scores, 0.12345))
        for name, task in TASKS.items()
        for scores in [(task.metric, *task.others)]
    ]
    pages = {"report.html": build_report(records).encode(), "": (MEASURE % 1280).encode()}
    with serving(Site(files=pages)) as site:
        shown = rendered(f"{site.address}/", tmp_path / "profile", "--window-size=1400,800")
    measured = re.search(r"<output>(.*?)</output>", shown).group(1).split(";")
    assert len(measured) == len(TASKS)
    assert all(int(needed) <= int(room) for needed, room in map(str.split, measured)), measured


# Folders


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def one_result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    write_record(folder, make_record("links", "adamic_adar"))
    return folder


def test_it_is_written_into_the_folder_unless_told_otherwise(one_result, tmp_path):
    assert write_report(one_result) == one_result / "report.html"
    assert write_report(one_result, tmp_path / "below" / "page.html") == tmp_path / "below" / "page.html"
    assert names(tmp_path / "below") == ["page.html"]


def test_a_folder_that_is_missing_or_empty_or_a_file_is_refused(tmp_path):
    with pytest.raises(FolderError, match="there is no such folder"):
        write_report(tmp_path / "nowhere")
    with pytest.raises(FolderError, match="holds no results"):
        write_report(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="is not a folder"):
        write_report(tmp_path / "file")
    assert names(tmp_path) == ["file"]


def test_a_folder_with_a_model_is_told_from_results(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(FolderError, match="holds a model"):
        write_report(tmp_path)


def test_a_damaged_record_is_named_and_nothing_is_written(tmp_path):
    path = make_results(tmp_path, seeds=1) / "links" / "recommended" / "ind" / "seed-0.json"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(DataFileError, match=re.escape(str(path))):
        write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_report_that_cannot_be_written_leaves_nothing(one_result, tmp_path):
    (tmp_path / "report.html").mkdir()
    with pytest.raises(FolderError, match="cannot be written"):
        write_report(one_result, tmp_path / "report.html")
    assert names(tmp_path) == ["report.html"]
