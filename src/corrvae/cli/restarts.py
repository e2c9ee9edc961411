"""What PyTorch's launcher tells of the starts of a command: which launch it is, and whether it was started again."""

import os
import platform


def launch_name() -> str | None:
    """Name the launch that this process belongs to, as its restarts will; ``None`` if no launcher started it.

    Examples
    --------
    >>> launch_name() is None
    True
    """
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    # A launch of the same name may have been there before. The launcher stays while it starts its processes again.
    return None if name is None else f"{name} {platform.node()} {os.getppid()}"


def is_restart() -> bool:
    """Say whether the launcher started this command before, and does so again because a process had ended.

    Examples
    --------
    >>> is_restart()
    False
    """
    count = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return launch_name() is not None and count.isdecimal() and int(count) > 0
