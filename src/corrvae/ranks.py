"""The processes that do one job together, as PyTorch's launcher started them.

`join_ranks` makes a process one of them; `current_ranks` says which. A process by itself is the only rank of one, and
nothing is sent. Arrays travel as tensors, objects as JSON: no rank reads a pickle of another.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, final

import numpy as np

from corrvae.errors import LostRankError
from corrvae.meeting import meet

# What the launcher (torchrun) tells the processes that it starts.
_LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# How long a rank waits while another works (exact weights, validation, saving). One that ends is noticed at once.
_PATIENCE = timedelta(days=1)
# What the others can be told an error of one rank as; any other is a RuntimeError to them.
_FAILURES = (MemoryError, OSError, TypeError, ValueError, RuntimeError)
_TOLD = "told_to_all_ranks"  # of an error that every rank raises
_alone: ContextVar[bool] = ContextVar("alone", default=False)


@final
@dataclass(frozen=True)
class Ranks:
    """Which process this is, and how many there are. All of them must make the same calls, in the same order.

    Attributes
    ----------
    index
        Number of this process, from 0.
    count
        How many there are.

    Examples
    --------
    >>> Ranks(1, 3).share(8)
    slice(3, 6, None)
    """

    index: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which writes files and speaks to the user."""
        return self.index == 0

    def share(self, length: int) -> slice:
        """Give this rank's part of `length` things: parts follow each other, and differ by one thing at most."""
        least, more = divmod(length, self.count)
        begin = self.index * least + min(self.index, more)
        return slice(begin, begin + least + (self.index < more))

    def sum(self, array: np.ndarray) -> np.ndarray:
        """Give every rank the sum of all ranks' arrays, which have one shape and type."""
        if self.count == 1:
            return array
        import torch
        import torch.distributed as group

        total = torch.from_numpy(array.copy()).to(_device())
        with _told_as_loss():
            group.all_reduce(total)
        return total.cpu().numpy()

    def gather(self, part: np.ndarray) -> list[np.ndarray]:
        """Give every rank all ranks' arrays, in order; these may differ in length, but not in type or further axes."""
        if self.count == 1:
            return [part]
        import torch
        import torch.distributed as group

        lengths = self.sum(np.eye(1, self.count, self.index, dtype=np.int64)[0] * len(part))
        padded = np.zeros((int(lengths.max()), *part.shape[1:]), part.dtype)
        padded[: len(part)] = part
        sent = torch.from_numpy(padded).to(_device())
        received = [torch.empty_like(sent) for _ in range(self.count)]
        with _told_as_loss():
            group.all_gather(received, sent)
        return [tensor.cpu().numpy()[:length] for tensor, length in zip(received, lengths.tolist(), strict=True)]

    def gather_rows(self, part: np.ndarray) -> np.ndarray:
        """Give every rank all ranks' arrays as one, in order."""
        return part if self.count == 1 else np.concatenate(self.gather(part))

    def tell(self, value: Any = None) -> Any:
        """Give every rank the value that rank 0 has: anything that JSON can say."""
        if self.count == 1:
            return value
        said = json.dumps(value).encode() if self.is_first else b""
        return json.loads(self.gather(np.frombuffer(said, np.uint8))[0].tobytes())

    def hand_out(self, array: np.ndarray) -> np.ndarray:
        """Give every rank the array that rank 0 has; the others bring one of the same shape and type."""
        if self.count == 1:
            return array
        import torch
        import torch.distributed as group

        handed = torch.from_numpy(np.frombuffer(bytearray(array.tobytes()), np.uint8)).to(_device())
        if len(handed):
            with _told_as_loss():
                group.broadcast(handed, 0)
        return handed.cpu().numpy().view(array.dtype).reshape(array.shape)

    @contextmanager
    def agreed(self) -> Iterator[None]:
        """Raise on every rank what one of them raises inside, so that none waits for a rank that has given up.

        A rank may fail here by itself only where the next exchange of the others is the end of this, or that of another
        `agreed` inside. Of several errors that of the first rank counts. A lost rank and Ctrl-C are not told.

        Examples
        --------
        >>> with Ranks().agreed():
        ...     print("done")
        done
        """
        if self.count == 1:
            yield
            return
        failure: Exception | None = None
        try:
            yield
        except Exception as error:
            if isinstance(error, LostRankError) or hasattr(error, _TOLD):
                raise
            failure = error
        said = json.dumps(_described(failure)).encode() if failure is not None else b""
        told = self.gather(np.frombuffer(said, np.uint8))
        failed = next((index for index, words in enumerate(told) if len(words)), None)
        if failed is None:
            return
        same = failure if failed == self.index else None
        agreed = same or _made(*json.loads(told[failed].tobytes()))
        setattr(agreed, _TOLD, "by me" if same else "by another")
        raise agreed

    def any(self, mine: bool) -> bool:
        """Say whether any rank says so."""
        return mine if self.count == 1 else bool(self.sum(np.array([mine], np.int64))[0])

    def wait(self) -> None:
        """Wait until every rank is here."""
        self.any(False)


def current_ranks() -> Ranks:
    """Give the ranks that this process is one of: those of torch's process group, if there is one.

    Examples
    --------
    >>> current_ranks()
    Ranks(index=0, count=1)
    """
    # without the import there is no group, and what needs no torch stays quick
    group = sys.modules.get("torch.distributed")
    if _alone.get() or group is None or not (group.is_available() and group.is_initialized()):
        return Ranks()
    return Ranks(group.get_rank(), group.get_world_size())


@contextmanager
def alone() -> Iterator[None]:
    """Work by oneself inside, where the other ranks do not make the same calls.

    Examples
    --------
    >>> with alone():
    ...     current_ranks().count
    1
    """
    before = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(before)


def was_told(error: BaseException) -> bool:
    """Say whether this is an error that another rank has met, and told.

    Examples
    --------
    >>> was_told(ValueError("mine"))
    False
    """
    return getattr(error, _TOLD, None) == "by another"


def is_launched() -> bool:
    """Say whether the launcher started this process as one of several; it takes no import to know.

    Examples
    --------
    >>> is_launched()
    False
    """
    return all(name in os.environ for name in _LAUNCHED) and int(os.environ["WORLD_SIZE"]) > 1


@contextmanager
def join_ranks() -> Iterator[Ranks]:
    """Join the other processes that the launcher started, and leave them at the end.

    A process group that the caller has made is taken as it is, and left standing. A process that was not launched with
    others is alone.

    Examples
    --------
    >>> with join_ranks() as ranks:
    ...     ranks.count
    1
    """
    import torch
    import torch.distributed as group
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    if not is_launched() or (group.is_available() and group.is_initialized()):
        yield current_ranks()
        return
    # DistributedDataParallel imports it. It keeps the group that it finds then, whose threads would outlive the group's
    # end, and abort the process if they let go of a tensor while Python ends.
    import torch._dynamo

    own_device = int(os.environ.get("LOCAL_RANK", "0"))
    if own_device < torch.cuda.device_count():  # there may be more processes than devices, and all on the CPU
        torch.cuda.set_device(own_device)
    with _told_as_loss():
        # A launcher that starts its processes again keeps the store, with the addresses of those that have ended.
        store, index, count = next(rendezvous("env://"))
        store = PrefixStore(meet(store, index, count), store)
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        group.init_process_group(backend, store=store, rank=index, world_size=count, timeout=_PATIENCE)
    try:
        yield current_ranks()
    finally:
        group.destroy_process_group()


@contextmanager
def _told_as_loss() -> Iterator[None]:
    import torch.distributed as group

    try:
        yield
    except (group.DistError, RuntimeError) as error:
        raise lost_by(error) from error


def lost_by(error: Exception) -> LostRankError:
    """Give the error of a connection as that of a lost rank, in its first words, without a place in a library's source.

    Examples
    --------
    >>> print(lost_by(RuntimeError("[/gloo/pair.cc:5] Connection reset by peer. This is typically caused by others.")))
    another process of this run has ended or cannot be reached (Connection reset by peer)
    """
    words = re.sub(r"\[[^]\s]+:\d+\] ", "", next(iter(str(error).splitlines()), ""))
    return LostRankError(words.partition(". ")[0].removesuffix(".") or "no reason given")


def _described(error: Exception) -> tuple[str, str, int | None]:
    """Say of an error which kind it is, in its own words."""
    kind = next((kind for kind in _FAILURES if isinstance(error, kind)), None)
    if kind is None:
        return RuntimeError.__name__, f"{type(error).__name__}: {error}", None
    return kind.__name__, str(error), error.errno if isinstance(error, OSError) else None


def _made(kind: str, words: str, number: int | None) -> Exception:
    if number is not None:
        return OSError(number, words)
    return next(one for one in _FAILURES if one.__name__ == kind)(words)


def _device() -> Any:
    """Give the device whose tensors the ranks can exchange."""
    import torch
    import torch.distributed as group

    return torch.device("cuda" if group.get_backend() == "nccl" else "cpu")
