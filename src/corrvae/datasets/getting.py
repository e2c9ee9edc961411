"""Put a data set into the cache folder, from its publisher or a file at hand, and check that it is the right one."""

import hashlib
import os
import shutil
import tempfile
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, final

from corrvae.datasets.archives import beside, open_member
from corrvae.datasets.cache import cache_folder, places
from corrvae.datasets.catalogue import Publication, published, published_as
from corrvae.datasets.download import WHAT_TO_DO, download, md5_of, part_of
from corrvae.errors import DataFileError
from corrvae.monitor import DONE, Monitor, watch

_CHUNK = 1 << 20


@final
@dataclass(frozen=True)
class GotData:
    """Where a data set lies, whether it had been there before, and on what terms it may be used."""

    path: Path
    was_there: bool
    terms: str


def get(name: str, source: str | os.PathLike[str] | None = None, *, progress: bool | None = None) -> GotData:
    """Put a data set into the cache folder, if it is not there yet.

    Parameters
    ----------
    name
        "ml-1m", "ml-10m", "ml-20m", "ml-25m", "ml-32m" or "epinions".
    source
        A file or folder at hand to take it from; without, it is downloaded from its publisher.
    progress
        Whether to show a bar; None: when standard error is a terminal.

    Raises
    ------
    DataFileError
        If the publisher's site does not answer, or if it is not the right data. Nothing is then left in its place.

    Examples
    --------
    >>> get("ml-2m")
    Traceback (most recent call last):
    ...
    ValueError: there is no data set named 'ml-2m'; there are ml-1m, ml-10m, ml-20m, ml-25m, ml-32m, epinions
    """
    publication = published(name)
    given = None if source is None else beside(Path(source), [name for name, _ in publication.members])

    def work(monitor: Monitor) -> GotData:
        if given is None:
            for place in places(name):
                if place.exists():
                    _check_there(place, publication, monitor)
                    return GotData(place, True, publication.terms)
            return GotData(_from_publisher(publication, monitor), False, publication.terms)
        check_contents(given, publication, monitor)
        _refuse_another(given, publication)
        monitor.phase(f"copying {given.name}")
        return GotData(_from_file(given, publication), False, publication.terms)

    return watch(work, progress=progress)


def check_contents(path: Path, publication: Publication, monitor: Monitor) -> None:
    """Read all that will be needed of a data set, and compare checksums where they are known."""
    for name, md5 in publication.members:
        digest = hashlib.md5(usedforsecurity=False)
        with open_member(path, (name,)) as member:
            monitor.phase(f"checking {name}")
            while chunk := member.stream.read(_CHUNK):
                digest.update(chunk)
                monitor.control[DONE] += len(chunk)
                monitor.check()
        found = digest.hexdigest()
        if md5 is not None and found != md5:
            raise DataFileError(path, f"{name} has MD5 {found} where {publication.name} as published has {md5}")
        if md5 is None and (other := published_as(found)) is not None:
            raise DataFileError(path, f"{name} is that of {other} as published, not of {publication.name}")


def _check_there(place: Path, publication: Publication, monitor: Monitor) -> None:
    """Check what is in the cache; what is wrong may be someone's own, and is not removed without asking."""
    try:
        check_contents(place, publication, monitor)
    except DataFileError as error:
        raise DataFileError(
            place, f"{error.problem}; remove it, and the next try gets it anew, or hand another over with --from FILE"
        ) from error


def _refuse_another(source: Path, publication: Publication) -> None:
    """Refuse the archive of another data set: those of MovieLens hold files of the same names."""
    if source.is_file() and (name := published_as(md5_of(source))) not in (None, publication.name):
        raise DataFileError(source, f"is {name} as published, not {publication.name}")


def _from_publisher(publication: Publication, monitor: Monitor) -> Path:
    archive, folder = places(publication.name)
    if len(publication.files) == 1:
        file = publication.files[0]
        download(
            file.address,
            archive,
            md5=file.md5,
            check=lambda part: check_contents(part, publication, monitor),
            monitor=monitor,
        )
        return archive
    # several files: in a folder of their own, which takes its name when all of them are there and right
    unfinished = part_of(folder)
    try:
        for file in publication.files:
            if not (unfinished / file.name).exists():
                download(file.address, unfinished / file.name, md5=file.md5, monitor=monitor)
    finally:
        with suppress(OSError):  # it stays where something has arrived to go on from
            unfinished.rmdir()
    try:
        check_contents(unfinished, publication, monitor)
    except DataFileError as error:
        shutil.rmtree(unfinished)
        site = publication.files[0].address.rpartition("/")[0]
        raise DataFileError(
            folder, f"what {site} sent is not as published ({error.problem}); it was removed. {WHAT_TO_DO}"
        ) from error
    unfinished.rename(folder)
    return folder


def _from_file(source: Path, publication: Publication) -> Path:
    """Copy a checked file or folder into the cache, in place of what is there, when all has been copied.

    What an earlier download has left is of no use any more, and goes too.
    """
    archive, folder = places(publication.name)
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_folder(), prefix=".getting-") as temporary:
            copied = Path(temporary, "copied")
            if zipfile.is_zipfile(source):
                shutil.copyfile(source, copied)
                target = archive
            else:
                _copy_members(source, copied, publication)
                target = folder
            for place in (archive, folder, part_of(archive), part_of(folder)):
                if place.exists():
                    place.rename(Path(temporary, place.name))
            copied.rename(target)
            return target
    except OSError as error:
        raise DataFileError(cache_folder(), f"cannot be written ({error.strerror or error})") from error


def _copy_members(source: Path, target: Path, publication: Publication) -> None:
    target.mkdir()
    for name, _ in publication.members:
        with (target / name).open("wb") as file, open_member(source, (name,)) as member:
            while chunk := member.stream.read(_CHUNK):
                _write(file, chunk)


def _write(file: BinaryIO, chunk: bytes) -> None:
    """Write to the cache; a disk that is full is no fault of the file that is open to be read meanwhile."""
    try:
        file.write(chunk)
        file.flush()
    except OSError as error:
        raise DataFileError(cache_folder(), f"cannot be written ({error.strerror or error})") from error
