"""Small files as publishers give them, and the real ones where they are at hand."""

import zipfile
from pathlib import Path

import pytest

from corrvae.datasets.cache import locate
from corrvae.errors import MissingDataFileError

# user, movie, rating: the users watch different shares of nine movies
RATINGS = [(user, 10 * movie, 0.5 + movie % 5) for user in range(1, 41) for movie in range(user % 5, 9)]


def dat_lines() -> str:
    """Ratings as the older archives have them."""
    return "".join(f"{user}::{movie}::{int(rating) + 1}::97830{user}\n" for user, movie, rating in RATINGS)


def csv_lines() -> str:
    """Ratings as the newer archives have them."""
    return "userId,movieId,rating,timestamp\n" + "".join(f"{u},{m},{r},112{u}\n" for u, m, r in RATINGS)


def archive(path: Path, members: dict[str, str]) -> Path:
    """Write a zip archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def at_hand(name: str) -> Path:
    """Give the place of real data, or skip the test."""
    try:
        return locate(name)
    except MissingDataFileError:
        pytest.skip(f"{name} is not in the data folder")
