"""What PyTorch's launcher tells of a command that it starts, and starts again: which launch it is."""

import os
import platform
from pathlib import Path


def launch_name() -> str | None:
    """Name the launch that this process belongs to, as its restarts will; ``None`` if no launcher started it.

    Examples
    --------
    >>> launch_name() is None
    True
    """
    name, launcher = os.environ.get("TORCHELASTIC_RUN_ID"), os.getppid()
    if name is None:
        return None
    # The launcher stays while it starts its processes again. Another one may have the same name, and, in a container
    # or after a restart of the machine, the same number.
    return f"{name} {platform.node()} {launcher} {_begin_of(launcher)}"


def _begin_of(process: int) -> str:
    """Tell when a process began, where the system tells: by a name of the machine's start, and ticks since then."""
    try:
        ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {ticks}"
    except (OSError, IndexError):
        return "unknown"
