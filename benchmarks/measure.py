"""Run one measurement in a process of its own, so that memory and warm-up are its own too."""

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def in_child(script: str, name: str, *, threads: int, timeout: float = 3600.0, **arguments: object) -> dict:
    """Call the function registered as `name` in a fresh process of `script` and return what it reports.

    A child that fails or takes too long returns ``{"failed": reason}``.
    """
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
    call = json.dumps({"name": name, "threads": threads, "arguments": arguments})
    command = [sys.executable, script, "--child", call]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"over {timeout:.0f} s"}
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def answer_if_child(functions: dict[str, Callable[..., dict]]) -> None:
    """In a child process: make the call asked for, print the report, exit."""
    if "--child" not in sys.argv:
        return
    call = json.loads(sys.argv[sys.argv.index("--child") + 1])
    report = functions[call["name"]](threads=call["threads"], **call["arguments"])
    report["peak_megabytes"] = round(_peak_kilobytes() / 1024)
    print(json.dumps(report))
    sys.exit(0)


def _peak_kilobytes() -> int:
    """Of this process alone: what getrusage tells begins with the parent's memory."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def timed(work: Callable[[], object], repeats: int = 1) -> tuple[float, object]:
    """Least wall-clock seconds over `repeats` calls, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        begun = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - begun)
    return best, result


def versions(*packages: str) -> dict[str, str]:
    """Versions that a table was made with."""
    found = {package: version(package) for package in packages}
    return {"python": platform.python_version(), **found, "machine": f"{platform.machine()}, {os.cpu_count()} cores"}


def merged(name: str, key: str, rows: list[dict]) -> list[dict]:
    """Put new rows in the place of those with the same key in benchmarks/results/NAME.json, and keep the others."""
    path = Path(__file__).parent / "results" / f"{name}.json"
    before = json.loads(path.read_text())["rows"] if path.exists() else []
    by_key = {row[key]: row for row in [*before, *rows]}
    return list(by_key.values())


def write_results(name: str, rows: list[dict], **about: object) -> Path:
    """Write a table's rows, and what made them, to benchmarks/results/NAME.json."""
    path = Path(__file__).parent / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    return path
