"""``python -m corrvae`` is the command line, and so is the program ``corrvae``."""

import sys


def main() -> None:
    """Run the command line, which ends in `SystemExit`; Ctrl-C while it is being read ends it with a word, as later."""
    try:
        from corrvae.cli.streams import secure_streams

        secure_streams()
        from corrvae.cli import app

        app()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(1)


def run() -> None:
    """Run the command line as a program of its own: the process ends with it."""
    try:
        main()
    except SystemExit as ended:
        if "corrvae.cli.exits" not in sys.modules:  # stopped while it was being read
            raise
        from corrvae.cli.exits import leave

        leave(ended)


if __name__ == "__main__":
    run()
