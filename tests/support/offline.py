"""No test reaches another machine: whoever tries is stopped before anything is sent."""

import sys
from typing import Any

_LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_ADDRESSED = ("socket.connect", "socket.sendto", "socket.sendmsg")


class ReachesOutError(RuntimeError):
    """Something asked for another machine."""


def is_here(host: Any) -> bool:
    """Whether a host is this machine."""
    if isinstance(host, bytes | bytearray):
        host = host.decode(errors="replace")
    return host in (None, "", "localhost", "::1", "0.0.0.0") or str(host).startswith("127.")


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
