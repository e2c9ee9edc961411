import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from corrvae.cli.streams import UnfailingStream


@pytest.mark.parametrize("place", ["a pipe that nobody reads", "/dev/full"])
def test_what_cannot_be_said_is_lost_and_nothing_fails(place):
    if place == "/dev/full":
        if not Path(place).exists():
            pytest.skip("there is no device that is always full")
        descriptor = os.open(place, os.O_WRONLY)
    else:
        reader, descriptor = os.pipe()
        os.close(reader)
    stream = io.TextIOWrapper(io.BufferedWriter(UnfailingStream(descriptor)), line_buffering=True)
    for _ in range(3):
        print("a line", file=stream, flush=True)
    assert stream.fileno() == descriptor
    assert not stream.isatty()
    assert os.fstat(descriptor).st_rdev == Path(os.devnull).stat().st_rdev
    os.close(descriptor)


def test_what_can_be_said_is_heard():
    reader, writer = os.pipe()
    print("grün", file=io.TextIOWrapper(io.BufferedWriter(UnfailingStream(writer)), "utf-8"), flush=True)
    assert os.read(reader, 100).decode() == "grün\n"
    os.close(reader)
    os.close(writer)


CLOSED = """
import sys
from corrvae.cli.streams import secure_streams
secure_streams()
with open(sys.argv[1], "w") as file:
    print("answer", flush=True)
    print("word", file=sys.stderr)
    print(sys.stdin.read(), file=sys.stderr)
    file.write(f"{file.fileno() > 2}")
"""


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_streams_that_were_closed_do_not_become_files(tmp_path):
    words = [sys.executable, "-c", CLOSED, str(tmp_path / "file")]
    ended = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words], check=False)
    assert ended.returncode == 0
    assert (tmp_path / "file").read_text() == "True"
