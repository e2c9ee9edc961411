"""How much memory there is to spend."""

from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def default_budget() -> int:
    """Half of the memory that is free, in bytes; a container's limit counts as the machine's."""
    import psutil

    free = psutil.virtual_memory().available
    try:
        limit = int((_CGROUP / "memory.max").read_text())
        free = min(free, limit - int((_CGROUP / "memory.current").read_text()))
    except (OSError, ValueError):  # no such file, or no limit ("max")
        pass
    return max(free, 0) // 2


def in_words(size: float) -> str:
    """Bytes for people.

    Examples
    --------
    >>> in_words(4.9e9), in_words(120e6), in_words(1500)
    ('4.9 GB', '120 MB', '1.5 kB')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.{0 if size >= 10 * unit else 1}f} {name}"
    return f"{size:.0f} bytes"
