"""Headless Chromium, where there is one."""

import shutil
import subprocess
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
)


def rendered(address: str, profile: Path, *flags: str) -> str:
    """The document that the browser makes of an address; skips the test where no browser runs."""
    browser = next((path for path in map(shutil.which, _NAMES) if path), None)
    if browser is None or subprocess.run([browser, "--version"], capture_output=True, timeout=60).returncode != 0:
        pytest.skip(f"no Chromium here to open the report in (looked for {', '.join(_NAMES)})")
    command = [browser, *_FLAGS, *flags, f"--user-data-dir={profile}", "--dump-dom", address]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True, timeout=300).stdout
