"""No test reaches another machine, nor a program that a test starts: who tries is stopped before anything is sent."""

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

_LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_UNGUARDED = {"-I", "-E", "-S"}  # with which Python does not read what guards it
_STARTUP = str(Path(__file__).parent / "startup")
_ADDRESSED = ("socket.connect", "socket.sendto", "socket.sendmsg")
_OWN_NAME = platform.node()  # the launcher of several processes asks for it


class ReachesOutError(RuntimeError):
    """Something asked for another machine."""


def is_here(host: Any) -> bool:
    """Whether a host is this machine."""
    if isinstance(host, bytes | bytearray):
        host = host.decode(errors="replace")
    return host in (None, "", "localhost", "::1", "0.0.0.0", _OWN_NAME) or str(host).startswith("127.")


def refuse_elsewhere(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise an error for what would leave this machine (an audit hook)."""
    host: Any = None
    if event in _LOOKUPS:
        host = arguments[0]
    elif event in _ADDRESSED and isinstance(arguments[1], tuple) and arguments[1]:  # else a file of the system
        host = arguments[1][0]
    if not is_here(host):
        raise ReachesOutError(f"{event} to {host!r}: only `corrvae data get` may use the network, and no test")


def guard() -> None:
    """Refuse it in this process from now on."""
    sys.addaudithook(refuse_elsewhere)


def guard_children() -> None:
    """Refuse it in every Python that this process starts, and in those that they start."""
    os.environ["PYTHONPATH"] = _guarded_path(os.environ)
    begin = subprocess.Popen.__init__

    def guarded(self: Any, args: Any, *others: Any, env: Any = None, **options: Any) -> None:
        words = [str(word) for word in args] if isinstance(args, list | tuple) else []
        if words[:1] == [sys.executable] and _UNGUARDED & {*words[1:4]}:
            raise ReachesOutError(f"{words[:4]}: a test's programs are not to leave PYTHONPATH unread")
        if env is not None:
            env = {**env, "PYTHONPATH": _guarded_path(env)}
        begin(self, args, *others, env=env, **options)

    subprocess.Popen.__init__ = guarded


def _guarded_path(environment: Any) -> str:
    parts = [part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part and part != _STARTUP]
    return os.pathsep.join([*parts, _STARTUP])
