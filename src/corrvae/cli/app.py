"""The program: its group of commands, the decorator that adds one, and how a command ends.

Exit codes: 0 done; 1 interrupted (what is done is kept); 2 bad input; 3 training failed, or disk or memory is full.
"""

import errno
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, NoReturn, cast, final

import typer
from typer.core import TyperGroup

from corrvae.errors import CorrvaeError, TrainingError

INTERRUPTED, BAD_INPUT, FAILED = 1, 2, 3

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_MEMORY = ("out of memory", "allocate memory", "not enough memory")
# The base class of wrong options; typer exports only this subclass of it, and some versions carry their own click.
_UsageError = cast(type[Exception], typer.BadParameter.__base__)
_logger = logging.getLogger("corrvae")


@final
class Commands(TyperGroup):
    """A group whose usage errors are one line on stderr, as all other errors."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run a command and exit."""
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except _UsageError as error:
            if type(error).__name__ != "NoArgsIsHelpError":  # then help has been shown
                _print_error(_usage_sentence(error))
            code = BAD_INPUT
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    help="Correlated variational auto-encoders: embeddings for data points whose correlations are known as a graph.",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Large tables, and the data sets of the experiments.", no_args_is_help=True)
app.add_typer(data_app, name="data")


@app.callback(invoke_without_command=True)
def _corrvae(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        from corrvae import __version__

        typer.echo(__version__)
        raise typer.Exit


def keyword(name: str, annotation: Any, default: Any) -> Parameter:
    """Return an option of a command, for `command`."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_QUIET = keyword(
    "quiet", Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the answer and errors.")], False
)


def command(
    group: typer.Typer = app, name: str | None = None, *, options: Sequence[Parameter] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function to the program; its parameters are the command's arguments and options, its docstring the help.

    Errors inside become one sentence and an exit code. An option ``--quiet`` silences `notify`, warnings and the log.
    `options` are further ones, for the function's ``**options``.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(*args: Any, quiet: bool = False, **given: Any) -> None:
            with _errors_as_exits(), _sigterm_as_interrupt(), _messages(quiet):
                function(*args, **given)

        own = [each for each in signature(function).parameters.values() if each.kind != Parameter.VAR_KEYWORD]
        run.__signature__ = Signature([*own, *options, _QUIET])  # pyright: ignore[reportAttributeAccessIssue]
        return group.command(name)(run)

    return add


def notify(message: str) -> None:
    """Print a message on stderr, unless the command is quiet or another worker reports."""
    _logger.info("%s", message)


def is_quiet() -> bool:
    """Return whether the command was called with --quiet."""
    return not _logger.isEnabledFor(logging.INFO)


def show_progress() -> bool | None:
    """Return whether to show a bar; None lets a terminal decide."""
    return False if is_quiet() else None


def is_main() -> bool:
    """Return whether this process reports and saves: all do, but for workers of torchrun other than the first."""
    return "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("RANK", "0") == "0"


@contextmanager
def _errors_as_exits() -> Iterator[None]:
    """Turn errors into a sentence on stderr and an exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:  # the reader of the output, such as head, has gone
        with suppress(OSError):  # what the stream still holds must not fail again when Python ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from error
    except TrainingError as error:
        _fail(str(error), FAILED, error)
    except (CorrvaeError, ValueError, TypeError, OSError) as error:
        cause = error if isinstance(error, OSError) and error.errno else error.__cause__
        no_room = isinstance(cause, OSError) and cause.errno in _NO_ROOM
        # Of a lost worker all others report: it may be the one that usually does.
        lost = type(error) is CorrvaeError
        _fail(_sentence(error), FAILED if no_room or lost else BAD_INPUT, error, everywhere=lost)
    except (MemoryError, RuntimeError) as error:
        problem = next(iter(str(error).splitlines()), "")
        # torch has no class of its own for the memory of a CPU
        if isinstance(error, RuntimeError) and not any(words in problem.lower() for words in _NO_MEMORY):
            raise
        _fail("there is not enough memory for this" + (f" ({problem})" if problem else ""), FAILED, error)
    except KeyboardInterrupt as error:
        _fail(str(error) or "interrupted", INTERRUPTED, error)


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Answer SIGTERM as Ctrl-C: training finishes its step, all else ends."""

    def interrupt(number: int, frame: Any) -> None:
        answer = signal.getsignal(signal.SIGINT)
        if callable(answer):
            answer(signal.SIGINT, frame)
        else:  # started in the background, where Ctrl-C is ignored
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


@contextmanager
def _messages(quiet: bool) -> Iterator[None]:
    """Print what is logged on stderr, and log warnings; both only if not quiet."""

    class Printer(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if is_main():
                _print_error(record.getMessage())

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, UserWarning) and "training was interrupted" not in str(message):
            notify(str(message))

    handler, level = Printer(), _logger.level
    _logger.addHandler(handler)
    _logger.setLevel(logging.CRITICAL if quiet else logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show
            yield
    finally:
        _logger.removeHandler(handler)
        _logger.setLevel(level)


def _fail(sentence: str, code: int, cause: BaseException, *, everywhere: bool = False) -> NoReturn:
    if everywhere or is_main():
        _print_error(sentence)
    raise typer.Exit(code) from cause


def _print_error(sentence: str) -> None:
    with suppress(OSError):  # a log that cannot be written is no reason to end training
        typer.echo(" ".join(sentence.split()), err=True)


def _sentence(error: BaseException) -> str:
    """Return what went wrong; the system's errors with the name of the file."""
    if isinstance(error, OSError) and not isinstance(error, CorrvaeError) and error.strerror:
        problem = "the disk is full" if error.errno in _NO_ROOM else error.strerror[0].lower() + error.strerror[1:]
        return f"{os.fsdecode(error.filename)}: {problem}" if isinstance(error.filename, str | bytes) else problem
    return str(error) or type(error).__name__


def _usage_sentence(error: Any) -> str:
    problem = " ".join(error.format_message().split()).removesuffix(".")
    return problem if error.ctx is None else f"{problem}; see {error.ctx.command_path} --help"
