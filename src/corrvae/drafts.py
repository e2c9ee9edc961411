"""Folders and files in the making: written beside the one that they are to become, and put in its place in one step.

A draft is locked while someone writes it, so that what a killed writer left behind can be told from what another one is
writing at this moment.
"""

import ctypes
import errno
import glob
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SWAP = 2  # both RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS
_HERE = -100  # AT_FDCWD: paths are relative to the working folder
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
_RACED = (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY)
_TRIES, _CODE_BYTES = 100, 4


@contextmanager
def draft_of(target: Path) -> Iterator[Path]:
    """Make an empty folder beside another; what is left of it in the end is removed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as parent:
    ...     with draft_of(Path(parent, "run")) as draft:
    ...         _ = (draft / "note").write_text("whole")
    ...         put_in_place(draft, Path(parent, "run"))
    ...     [path.name for path in Path(parent).iterdir()]
    ['run']
    """
    draft, lock = _begin(target, "writing", Path.mkdir)
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def draft_of_file(target: Path) -> Iterator[Path]:
    """Make an empty file beside another, to be written; it takes the other's place at the end, if all went well.

    A link keeps pointing to where it does, and a file keeps its permissions. A device or a pipe has no place that could
    be taken: it is given itself, to be written straight through. What writers that were killed left behind is removed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as parent:
    ...     with draft_of_file(Path(parent, "note")) as draft:
    ...         _ = draft.write_text("whole")
    ...     [path.name for path in Path(parent).iterdir()]
    ['note']
    """
    with naming(target):
        if is_special(target):
            yield target
            return
        target = Path(os.path.realpath(target))
        for left in _left_behind(target, "part"):
            left.unlink(missing_ok=True)
        draft, lock = _begin(target, "part", lambda place: place.touch(exist_ok=False))
        try:
            yield draft
            with suppress(FileNotFoundError):  # what is new has the permissions that new files have
                draft.chmod(stat.S_IMODE(target.stat().st_mode))
            _write_through(draft)
            draft.replace(target)
            sync(target.parent)
        finally:
            draft.unlink(missing_ok=True)
            if lock is not None:
                os.close(lock)


def is_special(path: Path) -> bool:
    """Say whether a path leads to what is neither a file nor a folder: a device, a pipe, a socket.

    Examples
    --------
    >>> is_special(Path(os.devnull)), is_special(Path("no", "such"))
    (True, False)
    """
    try:
        mode = path.stat().st_mode
    except OSError:  # it is not there, or what is wrong with it is told when it is written
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def naming(target: Path | str) -> Iterator[None]:
    """Let a failure to write say what was written, where the system does not.

    Examples
    --------
    >>> try:
    ...     with naming("z.csv"):
    ...         raise OSError(28, "No space left on device")
    ... except OSError as error:
    ...     print(error.filename)
    z.csv
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(target)
        raise


def put_in_place(draft: Path, target: Path) -> None:
    """Give a draft the name of its target, and what had this name that of the draft.

    Where the system can exchange two names at once, there is a whole folder of the target's name at every moment.
    Elsewhere the old one steps aside first, and `sweep` brings it back if the program is killed in between.
    """
    for _ in range(_TRIES):  # another writer may come in between any two lines
        try:
            if exchange(draft, target):
                break
            if target.exists():
                _step_aside(draft, target)
            else:
                draft.rename(target)
            break
        except OSError as error:
            if error.errno not in _RACED or not draft.exists():
                raise
    else:
        raise OSError(errno.EBUSY, "others keep writing it")
    sync(target.parent)


def exchange(first: Path, second: Path) -> bool:
    """Let two paths change names in one step; False if one is missing, or the system cannot do it.

    Examples
    --------
    >>> exchange(Path("no", "such"), Path("thing"))
    False
    """
    call = _exchanging_call()
    if call is None or not (os.path.lexists(first) and os.path.lexists(second)):
        return False
    if call(os.fsencode(first), os.fsencode(second)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(second))


def sweep(target: Path) -> None:
    """Remove drafts of a folder that nobody writes any more, and bring back one that stepped aside for no other."""
    for aside in named_as(target, "old"):
        if aside.is_symlink() or not aside.is_dir():
            continue
        if not os.path.lexists(target):
            aside.rename(target)
        else:
            shutil.rmtree(aside, ignore_errors=True)
    for draft in _left_behind(target, "writing"):
        shutil.rmtree(draft, ignore_errors=True)


def named_as(target: Path, purpose: str) -> Iterator[Path]:
    """Give what has the name that a draft of a target would have, and none that a person would choose.

    Examples
    --------
    >>> list(named_as(Path("no", "such"), "writing"))
    []
    """
    return iter(target.parent.glob(f".{glob.escape(target.name)}.{'[0-9a-f]' * (2 * _CODE_BYTES)}.{purpose}"))


def discard(folder: Path) -> None:
    """Remove a folder, after taking its name from it: what is left if the program is killed is a draft, to be swept."""
    try:
        folder = folder.rename(_beside(folder, "writing"))
    except OSError:
        return
    shutil.rmtree(folder, ignore_errors=True)


def sync(folder: Path) -> None:
    """Write a folder's list of names through to the disk."""
    if os.name == "nt":  # where a folder cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder if it is not there, with those above it, and write the names of all that were made through.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as parent:
    ...     make_folder(Path(parent, "deep", "run"))
    ...     Path(parent, "deep", "run").is_dir()
    True
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        with suppress(PermissionError):  # where names may be added and not listed
            sync(made.parent)


def _step_aside(draft: Path, target: Path) -> None:
    aside = _beside(target, "old")
    target.rename(aside)
    try:
        draft.rename(target)
    except OSError:
        if not os.path.lexists(target):
            aside.rename(target)
        raise
    sync(target.parent)
    shutil.rmtree(aside, ignore_errors=True)


def _beside(target: Path, purpose: str) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(_CODE_BYTES)}.{purpose}")


def _begin(target: Path, purpose: str, make: Callable[[Path], object]) -> tuple[Path, int | None]:
    """Make a draft and lock it; another program's `sweep` may come between the two, and then it takes another one."""
    for _ in range(_TRIES):
        draft = _beside(target, purpose)
        make(draft)
        try:
            lock = take_folder(draft)
        except (BlockingIOError, FileNotFoundError):
            continue
        if lock is None or draft.exists():
            return draft, lock
        os.close(lock)
    raise OSError(errno.EBUSY, "others keep writing it")


def _left_behind(target: Path, purpose: str) -> Iterator[Path]:
    """Give the drafts that nobody writes any more, each locked until the next is asked for.

    What has the name of one and is something else, a link or a pipe for example, is left alone.
    """
    is_draft = stat.S_ISREG if purpose == "part" else stat.S_ISDIR
    for draft in named_as(target, purpose):
        try:
            lock = take_folder(draft)
        except OSError:  # another program has it, or has just removed it, or it is no draft
            continue
        if lock is not None:
            try:
                if is_draft(os.fstat(lock).st_mode):
                    yield draft
            finally:
                os.close(lock)


def _write_through(file: Path) -> None:
    """Write a file's contents through to the disk, before its name is."""
    with file.open("rb+") as stream:
        os.fsync(stream.fileno())


def take_folder(folder: Path) -> int | None:
    """Take a folder, or a draft of a file, for this program until the descriptor is closed.

    ``None`` where the system has no locks; a `BlockingIOError` says that another program has it. Links are not
    followed, and nobody waits for what is neither a file nor a folder: both are an `OSError`.
    """
    try:
        import fcntl
    except ImportError:  # on Windows
        return None
    _refuse_special(folder, folder.lstat().st_mode)  # before it is opened: a device may act on that
    descriptor = os.open(folder, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        _refuse_special(folder, os.fstat(descriptor).st_mode)  # it may have become another since
    except OSError:
        os.close(descriptor)
        raise
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:  # as on some file systems of a network
        os.close(descriptor)
        return None
    return descriptor


def _refuse_special(place: Path, mode: int) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "neither a file nor a folder", str(place))


def _exchanging_call() -> Callable[[bytes, bytes], int] | None:
    """Give the system's function that exchanges two paths, if it has one."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            renamex = library.renamex_np
            return lambda first, second: renamex(first, second, ctypes.c_uint(_SWAP))
        rename = library.renameat2
        return lambda first, second: rename(_HERE, first, _HERE, second, ctypes.c_uint(_SWAP))
    except (OSError, AttributeError, TypeError):
        return None
