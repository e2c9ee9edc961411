"""A process that has imported everything once and forks children for dangerous work: to be killed, starved, fenced in.

Importing torch takes seconds, forking a process that has done so takes milliseconds. The process keeps to one thread,
since what other threads hold would stay locked in its children. A piece of work is a function ``module:name`` of
JSON arguments that gives JSON.
"""

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NOBODY = 65534
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# It belongs to an allocator that knows how to be forked.
_HARMLESS_THREAD = "jemalloc_bg_thd"


@dataclass(frozen=True)
class Call:
    """A piece of work for a child.

    `kill_after` are the seconds after which `signals` are sent, one after the other, `apart` seconds apart; they count
    from the moment at which there is a file `once`, if that is given. `limits` are limits of the system by name, such
    as ``{"FSIZE": 4096}``; `harmless` gives up the rights of the superuser. Standard output goes into the file or pipe
    `stdout`; without one, it is told with standard error.
    """

    work: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    kill_after: float | None = None
    once: str | None = None
    signals: tuple[int, ...] = (int(signal.SIGKILL),)
    apart: float = 0.2
    limits: Mapping[str, int] = field(default_factory=dict)
    harmless: bool = False
    stdout: str | None = None
    timeout: float = 120.0


@dataclass(frozen=True)
class Ending:
    """How a child ended: its exit code (minus the signal that ended it), what it gave, what it said on stderr."""

    code: int
    result: Any
    errors: str
    seconds: float


class Nursery:
    """The process, to be used as a context manager.

    Parameters
    ----------
    works
        Modules to import before the first fork; each may have a function ``prepare()``, which is called.
    """

    def __init__(self, *works: str) -> None:
        self._works = works

    def __enter__(self) -> "Nursery":
        here = Path(__file__).parent
        path = os.pathsep.join([str(here), str(here.parent / "src"), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, str(here / "nursery.py"), *self._works],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": path, **_ONE_THREAD},
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)  # its input ends, and so does it

    def run(self, *calls: Call) -> list[Ending]:
        """Run calls side by side, each in a child of its own, and wait for all of them."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("not started")
        request = [vars(call) | {"signals": list(call.signals)} for call in calls]
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the process that forks children has ended; what it said is on stderr")
        return [Ending(**ending) for ending in json.loads(answer)]

    def do(self, work: str, **arguments: Any) -> Any:
        """Run one call that is to end well, and give its result."""
        (ending,) = self.run(Call(work, arguments))
        if ending.code != 0:
            raise RuntimeError(f"{work} ended with {ending.code}:\n{ending.errors}")
        return ending.result


class _Child:
    def __init__(self, call: dict[str, Any]) -> None:
        self.call, self.begun = call, time.monotonic()
        self.said, said = os.pipe()
        self.wrong, wrong = os.pipe()
        self.texts = {self.said: b"", self.wrong: b""}
        self.code: int | None = None
        self.seconds = 0.0
        self.pending = list(call["signals"]) if call["kill_after"] is not None else []
        self.next_signal = self.begun + (call["kill_after"] or 0.0)
        self.pid = os.fork()
        if self.pid == 0:
            _live(call, said, wrong)
        os.close(said)
        os.close(wrong)

    def look(self) -> None:
        """Read what it says, send the signals that are due, and see whether it has ended."""
        ready, _, _ = select.select([*self.texts], [], [], 0)
        for pipe in ready:
            self.texts[pipe] += os.read(pipe, 1 << 16)
        now = time.monotonic()
        if now - self.begun > self.call["timeout"]:
            self.pending, self.next_signal = [int(signal.SIGKILL)], now
        if self.call["once"] is not None and Path(self.call["once"]).exists():
            self.call["once"], self.next_signal = None, now + self.call["kill_after"]
        waits = self.call["once"] is not None and now - self.begun <= self.call["timeout"]
        if self.pending and now >= self.next_signal and not waits:
            os.kill(self.pid, self.pending.pop(0))
            self.next_signal = now + self.call["apart"]
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self.code, self.seconds = os.waitstatus_to_exitcode(status), now - self.begun

    def ending(self) -> dict[str, Any]:
        for pipe in self.texts:
            while part := os.read(pipe, 1 << 16):
                self.texts[pipe] += part
            os.close(pipe)
        said = self.texts[self.said].decode()
        result = json.loads(said) if said.endswith("\n") else None  # else it was killed before it had said all
        return {
            "code": self.code,
            "result": result,
            "errors": self.texts[self.wrong].decode(errors="replace"),
            "seconds": self.seconds,
        }


def _live(call: dict[str, Any], said: int, wrong: int) -> None:
    """Do a piece of work in a child, and end it."""
    import resource

    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(wrong, 2)
        os.dup2(wrong if call["stdout"] is None else os.open(call["stdout"], os.O_WRONLY | os.O_CREAT), 1)
        for name, most in call["limits"].items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
        if call["harmless"] and os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        result = _function(call["work"])(**call["arguments"])
        os.write(said, json.dumps(result).encode() + b"\n")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        os.write(wrong, traceback.format_exc().encode())
    os._exit(code)


def _function(work: str) -> Any:
    module, _, name = work.partition(":")
    return getattr(importlib.import_module(module), name)


def _threads() -> list[str]:
    """Name the threads beside this one, where the system tells."""
    tasks = Path("/proc/self/task")
    names = [(task / "comm").read_text().strip() for task in tasks.iterdir()] if tasks.is_dir() else ["main"]
    return [name for name in names[1:] if name != _HARMLESS_THREAD]


def _serve(works: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is for those who started this
    for name in works:
        module = importlib.import_module(name)
        getattr(module, "prepare", lambda: None)()
    if threads := _threads():
        raise RuntimeError(f"forking is not safe beside the threads {threads}")
    for line in sys.stdin:
        children = [_Child(call) for call in json.loads(line)]
        while any(child.code is None for child in children):
            for child in children:
                if child.code is None:
                    child.look()
            time.sleep(0.001)
        print(json.dumps([child.ending() for child in children]), flush=True)
    os._exit(0)  # taking torch down in good order takes seconds


if __name__ == "__main__":
    _serve(sys.argv[1:])
