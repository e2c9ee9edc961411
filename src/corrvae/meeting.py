"""How processes that were started together find each other in a store that also remembers those started before.

A launcher that starts its processes again keeps the store, with all that those before have written; on several machines
no number that it hands out is the same for all. So a process that finds something in the store cannot know whether the
one that wrote it still lives. Rank 0 asks a new question; the others answer with a word of their own; and all take as
their name what rank 0 was answered, once their own word stands in it.
"""

import json
import time
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from corrvae.errors import LostRankError

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import Store

_QUESTION = "corrvae question"
_PAUSE = 0.05  # seconds between two looks


def meet(store: "Store", index: int, count: int, patience: timedelta = timedelta(minutes=10)) -> str:
    """Give a name that the processes of this start have in common, and those of no other.

    Parameters
    ----------
    store
        What all of them see, and others saw before.
    index, count
        Which process this is, of how many.
    patience
        How long to wait for the others.

    Examples
    --------
    >>> from torch._C._distributed_c10d import HashStore
    >>> store = HashStore()
    >>> meet(store, 0, 1) == meet(store, 0, 1)
    False
    """
    until = time.monotonic() + patience.total_seconds()
    own = uuid4().hex
    if index == 0:
        store.set(_QUESTION, own)
        answers = [_wait_for(store, _answer(own, other), until) for other in range(1, count)]
        store.set(_met(own), json.dumps(answers))
        return own
    while True:
        question = _wait_for(store, _QUESTION, until)
        store.set(_answer(question, index), own)  # again, if the one who asked before is gone
        if store.check([_met(question)]) and own in json.loads(store.get(_met(question))):
            return question
        _pause(until)


def _answer(question: str, index: int) -> str:
    return f"corrvae {question} answered by {index}"


def _met(question: str) -> str:
    return f"corrvae {question} met"


def _wait_for(store: "Store", key: str, until: float) -> str:
    while not store.check([key]):
        _pause(until)
    return store.get(key).decode()


def _pause(until: float) -> None:
    if time.monotonic() > until:
        raise LostRankError("not all processes came")
    time.sleep(_PAUSE)
