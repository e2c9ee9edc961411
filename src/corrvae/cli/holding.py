"""One program at a time has a folder."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from corrvae.drafts import sync, take_folder
from corrvae.errors import FolderError

_TRIES = 100  # to make and lock a folder that others make and remove


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Keep a folder for this program, where the system has locks; refuse one that another program keeps.

    It is made if it is not there, and is gone in the end if nothing was put in it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as parent:
    ...     with hold(Path(parent, "run")):
    ...         Path(parent, "run").is_dir()
    ...     Path(parent, "run").exists()
    True
    False
    """
    made: list[Path] = []
    lock = None
    try:
        lock = _take(path, made)
        yield
    finally:
        for folder in reversed(made):
            with suppress(OSError):  # there is something in it
                folder.rmdir()
        if lock is not None:
            os.close(lock)


def refuse_a_file(path: Path) -> None:
    """Refuse a file, or a link that leads nowhere, where there should be a folder or nothing.

    Examples
    --------
    >>> refuse_a_file(Path(os.devnull))
    Traceback (most recent call last):
    corrvae.errors.FolderError: /dev/null: there is a file of this name; choose another
    """
    try:
        is_file = not stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        is_file = path.is_symlink()  # which leads nowhere
    except OSError:  # that of a folder above, which is told when this one is made
        return
    if is_file:
        raise FolderError(path, "there is a file of this name; choose another")


def _take(path: Path, made: list[Path]) -> int | None:
    """Lock the folder; what had to be made for this is added to a list."""
    failure: OSError | None = None
    for _ in range(_TRIES):
        refuse_a_file(path)
        try:
            for folder in reversed((path, *path.parents)):
                if not folder.exists():
                    folder.mkdir()
                    made.append(folder)
                    with suppress(PermissionError):  # where names may be added and not listed
                        sync(folder.parent)
            lock = take_folder(path.resolve())  # a link to a folder will do
            if lock is None or os.path.samestat(os.fstat(lock), path.stat()):
                return lock
            os.close(lock)
        except BlockingIOError as error:
            made.clear()  # it is the other's now
            raise FolderError(
                path, "another corrvae is training in this folder; wait for its end, or choose another"
            ) from error
        except (FileNotFoundError, FileExistsError) as error:  # others make and remove it
            failure = error
        except OSError as error:
            failure = error
            break
    problem = "others keep making and removing it" if failure is None else failure.strerror or str(failure)
    raise FolderError(path, f"cannot be written ({problem})") from failure
