import re

import pytest

from corrvae.datasets.catalogue import CATALOGUE, published


def test_every_publication_says_where_what_and_on_what_terms():
    assert list(CATALOGUE) == ["ml-1m", "ml-10m", "ml-20m", "ml-25m", "ml-32m", "epinions"]
    for name, publication in CATALOGUE.items():
        assert publication.name == name
        assert publication.terms.endswith(".")
        for file in publication.files:
            assert re.fullmatch(r"https?://(files\.grouplens\.org|www\.trustlet\.org)/[\w/.-]+", file.address)
        checksums = [file.md5 for file in publication.files] + [md5 for _, md5 in publication.members]
        assert any(checksums)
        assert all(md5 is None or re.fullmatch("[0-9a-f]{32}", md5) for md5 in checksums)


def test_other_names_are_refused_with_those_there_are():
    with pytest.raises(ValueError, match="no data set named 'netflix'; there are ml-1m, ml-10m"):
        published("netflix")
