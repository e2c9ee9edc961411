"""``python -m corrvae`` is the command line."""

from corrvae.cli import main

if __name__ == "__main__":
    main()
