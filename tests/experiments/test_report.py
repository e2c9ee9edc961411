import re
from html.parser import HTMLParser

import pytest

from corrvae.errors import DataFileError, FolderError
from corrvae.experiments.records import read_records, write_record
from corrvae.experiments.report import build_report, write_report
from corrvae.experiments.tables import result_table
from support.results import make_record, make_results


class Page(HTMLParser):
    """What a browser would load, and the text it shows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = make_results(tmp_path_factory.mktemp("results"))
    write_record(folder, make_record("links", "adamic", recipe="quick"))
    return folder


@pytest.fixture(scope="module")
def page(results):
    return Page(write_report(results).read_text(encoding="utf-8"))


def test_nothing_is_loaded_from_elsewhere(page):
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert not {"script", "iframe", "object", "embed"} & set(page.tags)
    assert page.tags.count("img") > 6


def test_every_task_recipe_and_model_is_shown(page):
    for words in (
        "Matching",
        "Clustering",
        "Links",
        "recommended recipe",
        "quick",
        "CVAE_corr",
        "Adamic-Adar",
        "GraphSAGE",
    ):
        assert words in page.text
    assert "25 runs of 12 models in 3 tasks. The last run finished 2026-03-02T10:00:00+00:00." in page.text
    assert "corrvae reproduce links --models ind --seeds 2" in page.text
    assert "tree <10>" in page.text  # escaped


def test_tables_are_those_of_the_markdown_file(page, results):
    links = [record for record in read_records(results) if (record.task, record.recipe) == ("links", "recommended")]
    table = result_table(links)
    for row in (table.columns, *table.rows):
        assert " ".join(" ".join(row).split()) in page.text
    assert table.caption in page.text


def test_cards_compare_with_the_paper_and_the_best_of_the_others(page):
    card = page.text[: page.text.index("Each user's ratings")]
    assert "paper: 0.7129; best of the others: LSA, 20 components 0.6" in card
    assert "paper: 0.0171; best of the others: Adamic-Adar 0.08" in card


def test_quick_results_are_not_compared_with_the_paper():
    text = Page(build_report([make_record("links", "ind", recipe="quick")])).text
    assert "paper: 0.0160" not in text
    assert "not comparable with the paper's numbers" in text


def test_the_same_records_give_the_same_page(results):
    records = list(read_records(results))[:4]
    assert build_report(records) == build_report(records)


def test_it_is_written_where_it_is_asked_for(tmp_path):
    write_record(tmp_path / "results", make_record("links", "adamic"))
    path = write_report(tmp_path / "results", tmp_path / "pages" / "links.html")
    assert path == tmp_path / "pages" / "links.html"
    assert re.match(r"<!DOCTYPE html>", path.read_text(encoding="utf-8"))


def test_folders_without_results_are_named(tmp_path):
    with pytest.raises(FolderError, match="there is no such folder"):
        write_report(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="is not a folder"):
        write_report(tmp_path / "file")
    with pytest.raises(FolderError, match="has no results in it"):
        write_report(tmp_path)


def test_a_damaged_record_is_named(tmp_path):
    path = write_record(tmp_path, make_record("links", "adamic"))
    path.write_text("rubbish")
    with pytest.raises(DataFileError, match="cannot be read as the record"):
        write_report(tmp_path)
