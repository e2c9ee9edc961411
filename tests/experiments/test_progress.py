from corrvae.experiments.progress import Bar, Lines, choose_display
from support.experiments import Stream


def test_lines_say_each_thing_once():
    stream = Stream()
    with Lines(stream) as display:
        for number, title in enumerate(("VAE, seed 0", "CVAE_ind, seed 0"), 1):
            display.begin(title, number, 2)
            display.advance("reading the data", 0, None)
            for step in range(5):
                display.advance("training", step, 5)
        display.say("over")
    assert stream.getvalue().splitlines() == [
        "VAE, seed 0 (1 of 2)",
        "  reading the data",
        "  training (5 steps)",
        "CVAE_ind, seed 0 (2 of 2)",
        "  reading the data",
        "  training (5 steps)",
        "over",
    ]


def test_a_terminal_gets_a_bar(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Stream(terminal=True)
    display = choose_display(stream)
    assert isinstance(display, Bar)
    with display:
        display.begin("VAE, seed 0", 1, 2)
        display.advance("training", 3, 5)
        display._bar.refresh()
        display.say("VAE, seed 0: NMI 0.5 [not markup]")
        display.begin("CVAE_ind, seed 0", 2, 2)
        display._bar.refresh()
    written = stream.getvalue()
    assert "VAE, seed 0 (1 of 2): training" in written
    assert "3/5" in written
    assert "NMI 0.5 [not markup]" in written
    assert "CVAE_ind, seed 0 (2 of 2)" in written


def test_a_file_gets_lines():
    assert isinstance(choose_display(Stream()), Lines)
