"""Download a file so that it is either whole and right under its name, or not there under its name at all.

What has arrived lies beside it, under its name with ``.part``, and the next try goes on from there. A download that
turns out to be wrong is removed.
"""

import hashlib
import http.client
import re
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from corrvae.errors import DataFileError
from corrvae.monitor import DONE, Monitor

_TRIES, _PAUSE, _TIMEOUT = 3, 1.0, 30.0
_CHUNK = 1 << 18
_NOT_SATISFIABLE = 416

WHAT_TO_DO = "Try again later, or take the file from elsewhere and hand it over with --from FILE"


def part_of(target: Path) -> Path:
    """Give the file that a download lies in until it is whole.

    Examples
    --------
    >>> part_of(Path("ml-1m.zip")).name
    'ml-1m.zip.part'
    """
    return target.with_name(target.name + ".part")


def download(
    address: str,
    target: Path,
    *,
    md5: str | None = None,
    check: Callable[[Path], None] | None = None,
    monitor: Monitor | None = None,
) -> None:
    """Download to `target`, going on from an earlier try if there was one.

    Parameters
    ----------
    address
        Where from, over HTTP.
    target
        Where to; it is replaced in one go.
    md5
        The checksum it must have.
    check
        A further check, given the file before it has its name; it raises `DataFileError` to refuse it.
    monitor
        Counts the bytes, and may ask to stop.

    Raises
    ------
    DataFileError
        If the site does not answer, or breaks off again and again; or if it is not the right file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, target = Path(folder, "there"), Path(folder, "here")
    ...     _ = source.write_text("data")
    ...     download(source.as_uri(), target)
    ...     target.read_text()
    'data'
    """
    monitor = Monitor() if monitor is None else monitor
    part = part_of(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        resumed = part.exists()
        _fetch(address, part, target, monitor)
        if resumed and md5 is not None and md5_of(part) != md5:
            part.unlink()  # the site's file may have changed since the earlier try: begin again
            _fetch(address, part, target, monitor)
        try:
            if md5 is not None and (found := md5_of(part)) != md5:
                raise DataFileError(
                    target, f"what {address} sent has MD5 {found}, not {md5}; it was removed. {WHAT_TO_DO}"
                )
            if check is not None:
                check(part)
        except DataFileError:
            part.unlink()
            raise
        part.replace(target)
    except OSError as error:
        raise DataFileError(target, f"cannot be written ({error.strerror or error})") from error


def md5_of(path: Path) -> str:
    """Give the MD5 checksum of a file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "empty")
    ...     _ = path.write_bytes(b"")
    ...     md5_of(path)
    'd41d8cd98f00b204e9800998ecf8427e'
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _fetch(address: str, part: Path, target: Path, monitor: Monitor) -> None:
    """Fill `part`; a connection that breaks off is taken up again, a few times without progress at most."""
    failures, problem = 0, ""
    while failures < _TRIES:
        before = part.stat().st_size if part.exists() else 0
        try:
            if _fetch_rest(address, part, monitor):
                return
            problem = "the connection broke off"
        except HTTPError as error:
            problem = f"the site says {error.code} {error.reason}"
            if error.code < 500:
                break
        except (URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            problem = f"the site does not answer: {_reason(error)}"
        monitor.check()
        time.sleep(_PAUSE)
        after = part.stat().st_size if part.exists() else 0
        failures = 0 if after > before else failures + 1
    kept = "; what has arrived is kept, and the next try goes on from there" if part.exists() else ""
    raise DataFileError(target, f"could not be downloaded from {address} ({problem}){kept}. {WHAT_TO_DO}")


def _reason(error: Exception) -> str:
    """Say why there was no answer in the system's words, which errors keep in different places."""
    cause = getattr(error, "reason", None) or error
    return str(getattr(cause, "strerror", None) or cause) or type(cause).__name__


def _fetch_rest(address: str, part: Path, monitor: Monitor) -> bool:
    """Fetch what is missing, and say whether that was all of it."""
    begin = part.stat().st_size if part.exists() else 0
    request = Request(address, headers={"User-Agent": "corrvae", "Accept-Encoding": "identity"})
    if begin:
        request.add_header("Range", f"bytes={begin}-")
    try:
        response = urlopen(request, timeout=_TIMEOUT)
    except HTTPError as error:
        if error.code != _NOT_SATISFIABLE or not begin:
            raise
        if re.fullmatch(rf"bytes \*/{begin}", error.headers.get("Content-Range", "")):
            return True  # there is no more: all of it had arrived
        part.unlink()
        return False
    with response:
        if response.status == http.client.PARTIAL_CONTENT:
            given = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
            if given is None or int(given[1]) != begin:
                part.unlink()  # another piece than was asked for
                return False
        else:
            begin = 0  # the site sends the whole, whatever was asked for
        length = response.headers.get("Content-Length", "")
        # what is no number tells nothing, and is passed over as Python's own client does
        total = begin + int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None
        monitor.phase(f"downloading {part.stem}", total)
        with part.open("ab" if begin else "wb") as file:
            while chunk := _next_chunk(response.read):
                file.write(chunk)
                monitor.control[DONE] = file.tell()
                monitor.check()
            return total is None or file.tell() == total


def _next_chunk(read: Callable[[int], bytes]) -> bytes:
    try:
        return read(_CHUNK)
    except (OSError, http.client.HTTPException):
        return b""  # the length tells whether that was the end
