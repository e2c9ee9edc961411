"""``python -m corrvae`` is the command line, and so is the program ``corrvae``."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is being read ends it with a word, as later on."""
    try:
        from corrvae.cli.streams import secure_streams

        secure_streams()
        from corrvae.cli import app
        from corrvae.cli.exits import leave

        try:
            app()
        except SystemExit as ended:
            leave(ended)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
