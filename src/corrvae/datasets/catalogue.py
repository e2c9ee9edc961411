"""What can be got: where each data set is published, what it must hold, and on what terms."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import final


@final
@dataclass(frozen=True)
class PublishedFile:
    """A file at a publisher's address; `md5` is its checksum as it is published, if one is."""

    address: str
    md5: str | None = None

    @property
    def name(self) -> str:
        """The file's name."""
        return self.address.rpartition("/")[2]


@final
@dataclass(frozen=True)
class Publication:
    """A data set as published.

    Attributes
    ----------
    name
        What it is called here.
    files
        What there is to download: one zip archive, or the files themselves.
    members
        The files that are read, with the checksum of their contents where it is known, however they are packed.
    terms
        The licence note.
    """

    name: str
    files: tuple[PublishedFile, ...]
    members: tuple[tuple[str, str | None], ...]
    terms: str


_MOVIELENS_TERMS = (
    "MovieLens data are published by GroupLens, University of Minnesota, for research, on the terms of the README in "
    "the archive: among others, no commercial use without permission. Publications cite Harper and Konstan, The "
    "MovieLens Datasets: History and Context, ACM TiiS 2015."
)
_EPINIONS_TERMS = (
    "Epinions data were collected by Paolo Massa and published on trustlet.org for research; publications cite Massa "
    "and Avesani, Trust-aware Recommender Systems, RecSys 2007."
)


def _movielens(size: str, member: str, md5: str, member_md5: str | None = None) -> Publication:
    address = f"https://files.grouplens.org/datasets/movielens/ml-{size}.zip"
    return Publication(f"ml-{size}", (PublishedFile(address, md5),), ((member, member_md5),), _MOVIELENS_TERMS)


_PUBLICATIONS = (
    _movielens("1m", "ratings.dat", "c4d9eecfca2ab87c1945afe126590906", "a89aa3591bc97d6d4e0c89459ff39362"),
    _movielens("10m", "ratings.dat", "ce571fd55effeba0271552578f2648bd"),
    _movielens("20m", "ratings.csv", "cd245b17a1ae2cc31bb14903e1204af3"),
    _movielens("25m", "ratings.csv", "6b51fb2759a8657d3bfcbfc42b592ada"),
    _movielens("32m", "ratings.csv", "d472be332d4daa821edc399621853b57"),
    Publication(
        "epinions",
        (
            PublishedFile("http://www.trustlet.org/datasets/downloaded_epinions/ratings_data.txt.bz2"),
            PublishedFile("http://www.trustlet.org/datasets/downloaded_epinions/trust_data.txt.bz2"),
        ),
        (
            ("ratings_data.txt", "def8fb743332395e0a3260bf19f018fd"),
            ("trust_data.txt", "4d5d2196c8690e2fd63d3866d5bc2a7f"),
        ),
        _EPINIONS_TERMS,
    ),
)

CATALOGUE = MappingProxyType({publication.name: publication for publication in _PUBLICATIONS})


def published(name: str) -> Publication:
    """Give the publication of a name.

    Examples
    --------
    >>> published("ml-1m").files[0].name
    'ml-1m.zip'
    """
    if name not in CATALOGUE:
        raise ValueError(f"there is no data set named {name!r}; there are {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def published_as(md5: str) -> str | None:
    """Give the name of the data set that has a file of this checksum as published, packed or not, if one has.

    Examples
    --------
    >>> published_as("c4d9eecfca2ab87c1945afe126590906"), published_as("a89aa3591bc97d6d4e0c89459ff39362")
    ('ml-1m', 'ml-1m')
    """
    for publication in CATALOGUE.values():
        if md5 in (*(file.md5 for file in publication.files), *(known for _, known in publication.members)):
            return publication.name
    return None
