"""``corrvae`` and ``python -m corrvae``: the command line."""

import sys


def main() -> None:
    """Run the program, or print one sentence if what it needs is not installed."""
    try:
        from corrvae.cli import main as run
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit('the command line needs more packages: pip install "corrvae[cli]"')
    run()


if __name__ == "__main__":
    main()
