import numpy as np
import pytest

from corrvae.datasets import movielens
from corrvae.errors import DataFileError, MissingDataFileError
from support.published import RATINGS, archive, at_hand, csv_lines, dat_lines


def written(folder, form):
    if form == "ml-1m.zip":
        return archive(folder / form, {"ml-1m/ratings.dat": dat_lines(), "ml-1m/users.dat": "1::F\n"})
    if form == "ml-10m.zip":
        return archive(folder / form, {"ml-10M100K/ratings.dat": dat_lines(), "ml-10M100K/tags.dat": ""})
    if form.endswith(".zip"):
        inside = form.removesuffix(".zip")
        return archive(folder / form, {f"{inside}/ratings.csv": csv_lines(), f"{inside}/links.csv": "movieId,imdbId\n"})
    name, content = ("ratings.dat", dat_lines()) if form.startswith("dat") else ("ratings.csv", csv_lines())
    (folder / name).write_text(content)
    return folder if form.endswith("folder") else folder / name


ARCHIVES = ["ml-1m.zip", "ml-10m.zip", "ml-20m.zip", "ml-25m.zip", "ml-32m.zip"]
FORMS = [*ARCHIVES, "dat folder", "csv folder", "dat file", "csv file"]


@pytest.mark.parametrize("form", FORMS)
def test_every_published_form_is_read_alike(tmp_path, form):
    data = movielens(written(tmp_path, form), min_ratings=20, validation=0.2, random_state=0)
    counts = {movie: sum(other == movie for _, other, _ in RATINGS) for _, movie, _ in RATINGS}
    kept = sorted(movie for movie, count in counts.items() if count >= 20)
    assert data.movies.tolist() == kept
    assert data.users.tolist() == sorted({user for user, _, _ in RATINGS})
    seen = {(user, movie) for user, movie, _ in RATINGS if movie in kept}
    found = set()
    for part, rows in (
        (data.train, data.split.train),
        (data.validation, data.split.validation),
        (data.test, data.split.test),
    ):
        assert part.features.shape == (2 * len(rows), len(kept))
        halves, columns = part.features.nonzero()
        users = data.users[rows][halves // 2]
        pairs = list(zip(users.tolist(), data.movies[columns].tolist(), strict=True))
        assert len(pairs) == len(set(pairs))  # no item in both halves
        found |= set(pairs)
    assert found == seen
    assert [len(part) for part in (data.split.train, data.split.validation, data.split.test)] == [28, 8, 4]


@pytest.mark.parametrize("form", ARCHIVES)
def test_names_are_looked_up_in_the_data_folder(tmp_path, monkeypatch, form):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    name = form.removesuffix(".zip")
    with pytest.raises(MissingDataFileError, match=f"corrvae data get {name}"):
        movielens(name)
    written(tmp_path, form)
    assert len(movielens(name, min_ratings=1, random_state=0).users) == 40


def test_one_seed_one_split(tmp_path):
    path = written(tmp_path, "csv file")
    first, second, other = (movielens(path, min_ratings=1, random_state=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.split.test, second.split.test)
    assert (first.train.features != second.train.features).nnz == 0
    assert not np.array_equal(first.split.train, other.split.train)


def test_at_most_so_many_pairs_are_evaluated(tmp_path):
    data = movielens(written(tmp_path, "csv file"), min_ratings=1, test=0.5, most_pairs=3, random_state=0)
    assert (data.test.n_users, len(data.split.test), data.train.n_users) == (3, 3, 19)


def test_users_of_a_single_movie_are_left_out(tmp_path):
    (tmp_path / "ratings.csv").write_text("userId,movieId,rating,timestamp\n1,5,3,0\n2,5,3,0\n2,6,1,0\n")
    assert movielens(tmp_path, min_ratings=1, test=0.0, validation=0.0).users.tolist() == [2]
    with pytest.raises(DataFileError, match="no user has two movies with 2 ratings or more; lower min_ratings"):
        movielens(tmp_path, min_ratings=2)


def test_the_published_million():
    data = movielens(at_hand("ml-1m"), min_ratings=1, random_state=0)
    assert (len(data.users), len(data.movies)) == (6040, 3706)
    assert sum(part.items.nnz for part in (data.train, data.validation, data.test)) == 1_000_209
    assert (data.train.n_users, data.validation.n_users, data.test.n_users) == (5164, 272, 604)
