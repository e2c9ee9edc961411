"""How a command ends: what went wrong as one sentence on stderr, and the exit code that says what kind it was."""

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, ENOSPC
from typing import NoReturn

import typer

INTERRUPTED = 1  # stopped, or not all of it done; what is done is kept
BAD_INPUT = 2
FAILED = 3  # training broke, the disk or the memory is full, or another process of the run was lost

_NO_ROOM = (ENOSPC, EDQUOT, EFBIG)
_NO_MEMORY = ("out of memory", "allocate memory", "not enough memory")


@contextmanager
def plainly(stopped: str = "stopped") -> Iterator[None]:
    """Turn what goes wrong inside into a sentence and an exit code.

    Heavy imports belong inside, so that Ctrl-C during them is answered too.

    Parameters
    ----------
    stopped
        What to say after Ctrl-C.

    Examples
    --------
    >>> with plainly():
    ...     print("done")
    done
    """
    from corrvae.errors import CorrvaeError, LostRankError, TrainingError

    try:
        yield
    except (TrainingError, LostRankError) as error:
        _end(str(error), FAILED, error)
    except OSError as error:
        _end(_of_system(error), FAILED if error.errno in _NO_ROOM else BAD_INPUT, error)
    except (CorrvaeError, ValueError, TypeError) as error:
        cause = error.__cause__
        no_room = isinstance(cause, OSError) and cause.errno in _NO_ROOM
        _end(str(error), FAILED if no_room else BAD_INPUT, error)
    except MemoryError as error:
        _end(_of_memory(error), FAILED, error)
    except RuntimeError as error:
        # torch has no error of its own for the memory of a CPU
        if any(words in str(error).lower() for words in _NO_MEMORY):
            _end(_of_memory(error), FAILED, error)
        from corrvae.cli.together import speaks
        from corrvae.ranks import was_told

        if speaks() or not was_told(error):
            raise
        _end(str(error), FAILED, error)  # of the one that speaks, which tells it
    except KeyboardInterrupt as error:
        _end(stopped, INTERRUPTED, error)


def drop_output() -> None:
    """Forget what stdout still holds and cannot write, which would fail again when Python ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def leave(ended: SystemExit) -> NoReturn:
    """End the process when all is done, without taking Python's objects down one by one.

    That takes half a second once torch is there, and a thread of gloo or Arrow that lets go of such an object meanwhile
    aborts the process. What is to be done at the end is done. Where there is more to it (a thread to wait for, output
    that cannot be written, a profiler, a prompt that follows), Python ends the process itself.

    Parameters
    ----------
    ended
        What the command line ended with.
    """
    waits = any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread())
    watched = sys.flags.interactive or sys.flags.inspect or sys.getprofile() or sys.gettrace()
    if waits or watched or not (ended.code is None or isinstance(ended.code, int)):
        raise ended
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            raise ended from None
    os._exit(ended.code or 0)


def _of_system(error: OSError) -> str:
    from corrvae.errors import CorrvaeError

    if isinstance(error, CorrvaeError) or not error.strerror:  # it has its own words
        return str(error)
    reason = str(error.strerror)
    if reason[1:2].islower():  # after a colon; but not the names of protocols and formats
        reason = reason[0].lower() + reason[1:]
    # a descriptor is a number, and tells nobody which file it is
    named = isinstance(error.filename, str | bytes)
    return f"{os.fsdecode(error.filename)}: {reason}" if named else reason


def _of_memory(error: BaseException) -> str:
    problem = next(iter(str(error).splitlines()), "")
    return "there is not enough memory for this" + (f" ({problem})" if problem else "")


def _end(sentence: str, code: int, cause: BaseException) -> None:
    from corrvae.cli.together import speaks
    from corrvae.errors import LostRankError

    drop_output()
    # of a lost rank all that are left tell: it may be the one that speaks
    if speaks() or isinstance(cause, LostRankError):
        typer.echo(sentence, err=True)
    raise typer.Exit(code) from cause
