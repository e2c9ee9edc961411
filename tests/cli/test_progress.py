import io

from corrvae.cli.progress import TermBar, TermLines, choose_progress, describe
from corrvae.training.history import Progress

TERMS = {"step": 5, "total": -3.25, "reconstruction": -2.0, "singleton": 1.0, "edge": 0.25, "non_edge": 0.0}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_terms_that_are_there_are_told():
    assert describe(-9.0, TERMS) == "objective -3.25 (reconstruction -2.00, singleton 1.00, edge 0.25)"
    assert describe(0.0, {**TERMS, "non_edge": 2, "validation_total": -4}).endswith("non-edge 2.00), validation -4.00")


def test_lines_come_seconds_apart_and_at_the_end():
    stream = io.StringIO()
    lines = TermLines(stream)
    for step in range(1, 101):
        lines(Progress(500 + step, 600, step / 10, 1000.0 + step / 10, -1.0, TERMS if step == 5 else None))
    said = stream.getvalue().splitlines()
    assert [line.split(" (")[0] for line in said] == ["step 551 of 600", "step 600 of 600"]
    assert said[0].endswith("objective -3.25 (reconstruction -2.00, singleton 1.00, edge 0.25), about 5 s left")
    assert said[1].endswith("edge 0.25)")


def test_long_times_are_told_in_minutes_and_hours():
    for total, left in ((7_000, "about 10 min left"), (200_000, "about 6 h left")):
        stream = io.StringIO()
        lines = TermLines(stream)
        for step in (1, 1000):
            lines(Progress(step, total, 1.0, step / 10, -1.0))
        assert stream.getvalue().strip().endswith(left)


def test_a_terminal_gets_a_bar_with_terms():
    stream = Terminal()
    (bar,) = choose_progress(stream, quiet=False)
    assert isinstance(bar, TermBar)
    with bar:
        bar(Progress(1, 10, 0.1, 0.0, -7.0))
        bar(Progress(10, 10, 1.0, 0.1, -3.0, TERMS))
    assert "10/10" in stream.getvalue()
    assert "objective" in stream.getvalue()


def test_other_streams_get_lines_and_the_quiet_nothing():
    (lines,) = choose_progress(io.StringIO(), quiet=False)
    assert isinstance(lines, TermLines)
    assert choose_progress(Terminal(), quiet=True) == []
