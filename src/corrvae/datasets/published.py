"""Published data sets: where they come from, where they are kept, and how a file in them is opened."""

import bz2
import io
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from corrvae.errors import DataFileError
from corrvae.io import replace_file

_CURE = "Try again later, or take the file from elsewhere and pass it on: corrvae data get NAME --from FILE"
_MOVIELENS_TERMS = (
    "For research, on the terms of the README in the archive: no commercial use without permission, among others. Cite "
    "Harper and Konstan, The MovieLens Datasets: History and Context, ACM TiiS 2015."
)
_EPINIONS_TERMS = "For research. Cite Massa and Avesani, Trust-aware Recommender Systems, RecSys 2007."
_CIAO_TERMS = "For research. Cite Tang, Gao and Liu, mTrust: Multi-Faceted Trust in a Connected World, WSDM 2012."
_CITESEER_TERMS = (
    "The graph of Sen et al., Collective Classification in Network Data, AI Magazine 2008, with the parts of Yang, "
    "Cohen and Salakhutdinov, ICML 2016."
)


@final
@dataclass(frozen=True)
class Publication:
    """A data set as published: what to download, the files in it that are read, and the terms of its use.

    Without addresses, it is not to be downloaded.
    """

    addresses: dict[str, str | None]  # a zip archive or several files, with the MD5 where it is published
    members: tuple[str, ...]
    terms: str


def _movielens(size: str, md5: str, member: str = "ratings.csv") -> Publication:
    return Publication(
        {f"https://files.grouplens.org/datasets/movielens/ml-{size}.zip": md5}, (member,), _MOVIELENS_TERMS
    )


_TRUSTLET = "http://www.trustlet.org/datasets/downloaded_epinions"
_TRUST = ("ratings_data.txt", "trust_data.txt")
CATALOGUE = {
    "ml-1m": _movielens("1m", "c4d9eecfca2ab87c1945afe126590906", "ratings.dat"),
    "ml-10m": _movielens("10m", "ce571fd55effeba0271552578f2648bd", "ratings.dat"),
    "ml-20m": _movielens("20m", "cd245b17a1ae2cc31bb14903e1204af3"),
    "ml-25m": _movielens("25m", "6b51fb2759a8657d3bfcbfc42b592ada"),
    "ml-32m": _movielens("32m", "d472be332d4daa821edc399621853b57"),
    "epinions": Publication({f"{_TRUSTLET}/{name}.bz2": None for name in _TRUST}, _TRUST, _EPINIONS_TERMS),
    "citeseer": Publication({}, ("words.csv", "links.csv", "labels.csv"), _CITESEER_TERMS),
    "ciao": Publication({}, ("ratings.csv", "trust.csv"), _CIAO_TERMS),
}


def cache_folder() -> Path:
    """Return the folder of data sets: ``CORRVAE_DATA``, otherwise the platform's cache."""
    if chosen := os.environ.get("CORRVAE_DATA"):
        return Path(chosen).expanduser()
    import pooch

    return Path(pooch.os_cache("corrvae"))


def locate(name: str) -> Path:
    """Return the archive or folder of a data set in `cache_folder`; an error names the command that gets it."""
    members = _published(name).members
    archive, folder = cache_folder() / f"{name}.zip", cache_folder() / name
    if archive.is_file():
        return archive
    # A download of several files that was interrupted leaves some of them.
    if folder.is_dir() and all(_members(folder, [member]) for member in members):
        return folder
    source = "" if _published(name).addresses else " --from FILE"
    raise DataFileError(archive, f"{name} is not there; get it with: corrvae data get {name}{source}")


def get(name: str, source: str | os.PathLike[str] | None = None, *, quiet: bool = False) -> Path:
    """Put a data set of the `CATALOGUE` into `cache_folder`, if it is not there yet, and return its path.

    It is copied from `source`, a zip archive or folder, or downloaded from its publisher. `quiet`: without a message on
    the standard error.
    """
    if source is not None:
        return _copy(name, Path(source))
    with suppress(DataFileError):
        return locate(name)
    return _download(name, quiet)


def _published(name: str) -> Publication:
    if name not in CATALOGUE:
        raise ValueError(f"there is no data set named {name!r}; there are {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


@contextmanager
def open_member(path: Path, names: Sequence[str]) -> Iterator[tuple[str, io.BufferedIOBase]]:
    """Open the one file that has one of some names, through bzip2 if it is compressed; yield its name and bytes.

    The path is a folder, a zip archive, the file itself or one beside it; names are without the ending ``.bz2``.
    """
    try:
        with ExitStack() as stack:
            root: Any = path
            if zipfile.is_zipfile(path):
                root = zipfile.Path(stack.enter_context(zipfile.ZipFile(path)))
            found = _members(root, names)
            if len(found) != 1:
                listed = ", ".join(sorted(map(str, found))) or "none"
                raise DataFileError(path, f"it should hold one {' or '.join(names)}; it holds {listed}")
            stream = stack.enter_context(found[0].open("rb"))
            if found[0].name.endswith(".bz2"):
                stream = stack.enter_context(bz2.open(stream))
            yield found[0].name.removesuffix(".bz2"), stream
    except FileNotFoundError as error:
        raise DataFileError(path, "there is no such file") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise DataFileError(path, f"it is damaged or cannot be read ({error})") from error


def _members(root: Any, names: Sequence[str]) -> list[Any]:
    """Return the files of some names in a folder or archive; a plain file goes before a compressed one."""
    if root.is_file():
        if root.name.removesuffix(".bz2") in names:
            return [root]
        root = root.parent
    inside = list(root.iterdir())
    inside += [place for folder in inside if folder.is_dir() for place in folder.iterdir()]
    found = [place for place in inside if place.name.removesuffix(".bz2") in names and place.is_file()]
    return [place for place in found if not place.name.endswith(".bz2")] or found


def _copy(name: str, source: Path) -> Path:
    members, is_zip = _published(name).members, zipfile.is_zipfile(source)
    place = cache_folder() / (f"{name}.zip" if is_zip else name)
    (place.parent if is_zip else place).mkdir(parents=True, exist_ok=True)
    for member in members:
        with open_member(source, [member]) as (_, stream):
            if not is_zip:
                with replace_file(place / member) as target:
                    shutil.copyfileobj(stream, target)
    if is_zip:
        with source.open("rb") as stream, replace_file(place) as target:
            shutil.copyfileobj(stream, target)
    return place


def _download(name: str, quiet: bool) -> Path:
    import pooch

    pooch.get_logger().setLevel("WARNING" if quiet else "INFO")
    addresses = _published(name).addresses
    is_folder = len(addresses) > 1
    place = cache_folder() / (name if is_folder else f"{name}.zip")
    if not addresses:
        raise DataFileError(place, f"{name} cannot be downloaded; pass it on: corrvae data get {name} --from FILE")
    downloader: Any = pooch.HTTPDownloader(headers={"User-Agent": "corrvae"})
    for address, md5 in addresses.items():
        file = place / address.rpartition("/")[2] if is_folder else place
        known = None if md5 is None else f"md5:{md5}"
        try:
            pooch.retrieve(address, known, fname=file.name, path=file.parent, downloader=downloader)
        except OSError as error:
            raise DataFileError(file, f"{address} cannot be downloaded ({error}). {_CURE}") from error
        except ValueError as error:  # another MD5
            raise DataFileError(file, f"what {address} sent is not as published. {_CURE}") from error
    return place
