"""Headless Chromium, where there is one."""

import base64
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PROGRAMS = (("chromedriver",), _NAMES)
_WEBGL = ("--enable-unsafe-swiftshader",)
_FLAGS = (
    "--headless",
    "--no-sandbox",
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


class Browser:
    """A page in headless Chromium, driven over WebDriver; skips the test where there is no driver.

    Everything but this machine is unreachable, and every request is in `requests`.
    """

    def __init__(self, profile: Path, *, size=(1280, 800), flags=()):
        driver, browser = (next((path for path in map(shutil.which, names) if path), None) for names in _PROGRAMS)
        if driver is None or browser is None:
            pytest.skip("no Chromium with its driver here")
        self._driver = subprocess.Popen(
            [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
        )
        assert self._driver.stdout is not None
        ports = (re.search(r"successfully on port (\d+)", line) for line in self._driver.stdout)
        port = next(found[1] for found in ports if found)
        self._base = f"http://127.0.0.1:{port}/session"
        options = {
            "binary": browser,
            "args": [*_FLAGS, *_WEBGL, *flags, f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}"],
        }
        capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"}}
        try:
            self._base += "/" + self._ask("", {"capabilities": {"alwaysMatch": capabilities}})["sessionId"]
        except BaseException:
            self.close()
            raise

    def _ask(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from error

    def open(self, address):
        self._ask("/url", {"url": address})

    def run(self, script, *arguments):
        """What a script returns."""
        return self._ask("/execute/sync", {"script": script, "args": arguments})

    def run_async(self, script):
        """What a script passes to the function that is its argument."""
        return self._ask("/execute/async", {"script": script, "args": []})

    def wait(self, expression):
        """Until an expression is true; returns its value."""
        script = f"""const done = arguments[0], end = performance.now() + 60000;
            const look = () => {{ const value = ({expression}); value || performance.now() > end ? done(value)
                                  : setTimeout(look, 20); }}; look();"""
        value = self.run_async(script)
        assert value, f"{expression} did not become true"
        return value

    def press(self, *keys):
        steps = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._ask("/actions", {"actions": [{"type": "key", "id": "keys", "actions": steps}]})

    def drag(self, *places, press=True):
        """Press at the first place, move through the others, and let go."""
        moves = [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 16} for x, y in places]
        down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
        steps = [moves[0], down, *moves[1:], up] if press else moves
        self._ask("/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": steps}]})

    def resize(self, width, height):
        self._ask("/window/rect", {"width": width, "height": height})

    def emulate(self, width, height, ratio):
        """Take the size and the pixels of another screen, a phone's if it is narrow."""
        size = {"width": width, "height": height, "deviceScaleFactor": ratio, "mobile": width < 500}
        self._ask("/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": size})

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self._ask("/screenshot", method="GET")))

    def processor_seconds(self):
        """What the browser's processes have computed for so far."""
        times = [process.cpu_times() for process in psutil.Process(self._driver.pid).children(recursive=True)]
        return sum(time.user + time.system for time in times)

    def log(self, kind):
        return self._ask("/se/log", {"type": kind})

    @property
    def requests(self):
        """Addresses asked for since the last look."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        found = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [address for address in found if not address.startswith(("chrome:", "data:"))]

    def close(self):
        try:
            if self._base.count("/") > 3:
                self._ask("", method="DELETE")
        finally:
            self._driver.terminate()
            self._driver.wait(60)
            self._driver.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
