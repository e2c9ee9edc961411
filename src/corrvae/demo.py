"""What `corrvae demo` shows: the clustering experiment on a small tree, in a table and a report."""

from pathlib import Path

from corrvae.experiments.reproduce import Request, reproduce
from corrvae.experiments.running import Start, Tally
from corrvae.pictures.report import write_report


def run_demo(folder: Path, *, start: Start | None = None) -> Tally:
    """Train a VAE, CVAE_ind and CVAE_corr on a small tree, print how well each finds its two groups, write the report.

    What is in the folder already is not computed again.

    Parameters
    ----------
    folder
        Where results and report go.
    start
        How a run is made; ``None``: in a process of its own.
    """
    tally = reproduce(Request("clustering", quick=True, out=folder), start=start)
    if tally.records:
        print(f"The report is in {write_report(folder, None)}")
    return tally
