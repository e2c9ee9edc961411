"""The folder that data sets are kept in."""

import os
import sys
from pathlib import Path

from corrvae.errors import MissingDataFileError


def cache_folder() -> Path:
    """Give the folder for data: ``CORRVAE_DATA``, else the platform's place for what can be fetched again.

    Examples
    --------
    >>> import os
    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, CORRVAE_DATA="/somewhere"):
    ...     cache_folder().as_posix()
    '/somewhere'
    """
    if chosen := os.environ.get("CORRVAE_DATA"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "corrvae" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "corrvae"
    # an XDG_CACHE_HOME that is not absolute is to be ignored, says its specification
    chosen = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (chosen if chosen.is_absolute() else Path.home() / ".cache") / "corrvae"


def places(name: str) -> tuple[Path, Path]:
    """Give the two places where a data set may lie: an archive, and a folder.

    Examples
    --------
    >>> [place.name for place in places("ml-1m")]
    ['ml-1m.zip', 'ml-1m']
    """
    folder = cache_folder()
    return folder / f"{name}.zip", folder / name


def locate(name: str) -> Path:
    """Give the archive or folder that a data set lies in, or say how to get it."""
    for place in places(name):
        if place.exists():
            return place
    raise MissingDataFileError(places(name)[0], f"{name} is not there yet; get it with: corrvae data get {name}")
