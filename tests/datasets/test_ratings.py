import bz2
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from corrvae.datasets import ciao, epinions, movielens, rated_products
from corrvae.errors import DataFileError

_DRAWN = np.random.default_rng(0).random((40, 12)) < 0.6
RATED = [(user + 1, 10 * movie + 3) for user, movie in np.argwhere(_DRAWN).tolist()]
CSV = "userId,movieId,rating,timestamp\n" + "".join(f"{user},{movie},3.5,97830\n" for user, movie in RATED)
DAT = "".join(f"{user}::{movie}::4::97830\n" for user, movie in RATED)
# Products 10 and 20 are rated three times, 30 once; user 5 has rated only 30.
RATINGS = "1 10 4\n2 10 5\n3 10 1\n1 20 3\n4 20 2\n6 20 2\n5 30 5\n"
# Mutual: 1-2, 3-4, 1-5; one way: 6 to 1; a loop; and mistrust between 2 and 3.
TRUST = " 1 2 1\n 2 1 1\n 3 4 1\n 4 3 1\n 1 5 1\n 5 1 1\n 6 1 1\n 2 2 1\n 2 3 -1\n 3 2 -1\n"


def archive(path, members):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def at_hand(name):
    """Return the real archive in CORRVAE_DATA, or skip the test."""
    path = Path(os.environ.get("CORRVAE_DATA", "")) / f"{name}.zip"
    if not os.environ.get("CORRVAE_DATA") or not path.exists():
        pytest.skip(f"{name}.zip is not in the folder CORRVAE_DATA")
    return path


def written(folder, form):
    if form == "zip of dat":
        return archive(folder / "ml-1m.zip", {"ml-1m/ratings.dat": DAT, "ml-1m/users.dat": "1::F\n"})
    if form == "zip of csv":
        return archive(folder / "ml-20m.zip", {"ml-20m/ratings.csv": CSV, "ml-20m/links.csv": "movieId\n"})
    name, content = ("ratings.dat", DAT) if form.startswith("dat") else ("ratings.csv", CSV)
    (folder / name).write_text(content)
    return folder if form.endswith("folder") else folder / name


@pytest.mark.parametrize("form", ["zip of dat", "zip of csv", "dat folder", "csv folder", "dat file", "csv file"])
def test_every_form_of_movielens_is_read_alike(tmp_path, form):
    data = movielens(written(tmp_path, form), min_ratings=24, validation=0.2, random_state=0)
    counts = {movie: sum(other == movie for _, other in RATED) for _, movie in RATED}
    kept = sorted(movie for movie, count in counts.items() if count >= 24)
    assert 0 < len(kept) < 12
    assert data.items.tolist() == kept
    seen = {(user, movie) for user, movie in RATED if movie in kept}
    assert data.users.tolist() == sorted({user for user, _ in seen if sum(u == user for u, _ in seen) > 1})
    found = set()
    parts = ((data.train, data.split.train), (data.validation, data.split.validation), (data.test, data.split.test))
    for part, rows in parts:
        assert part.features.shape == (2 * len(rows), len(kept))
        halves, columns = part.features.nonzero()
        users = data.users[rows][halves // 2]
        pairs = list(zip(users.tolist(), data.items[columns].tolist(), strict=True))
        assert len(pairs) == len(set(pairs))  # no item in both halves
        found |= set(pairs)
    assert found == {(user, movie) for user, movie in seen if user in data.users}
    assert sum(len(rows) for _, rows in parts) == len(data.users)


def test_names_are_looked_up_in_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    for read, name in ((movielens, "ml-20m"), (epinions, "epinions")):
        with pytest.raises(DataFileError, match=f"{name} is not there; get it with: corrvae data get {name}"):
            read(name)
    written(tmp_path, "zip of csv")
    assert len(movielens("ml-20m", min_ratings=1, random_state=0).users) == 40
    (tmp_path / "epinions").mkdir()
    written_epinions(tmp_path / "epinions", "bz2")
    assert epinions(min_ratings=3).graph.n_edges == 2


def test_one_seed_one_split(tmp_path):
    path = written(tmp_path, "csv file")
    first, second, other = (movielens(path, min_ratings=1, random_state=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.split.test, second.split.test)
    assert (first.train.features != second.train.features).nnz == 0
    assert not np.array_equal(first.split.train, other.split.train)
    data = movielens(path, min_ratings=1, test=0.5, most_pairs=3, random_state=0)
    assert (data.test.n_users, len(data.split.test), data.train.n_users) == (3, 3, 19)


def test_users_of_a_single_movie_are_left_out(tmp_path):
    (tmp_path / "ratings.csv").write_text("userId,movieId,rating,timestamp\n1,5,3,0\n2,5,3,0\n2,6,1,0\n")
    assert movielens(tmp_path, min_ratings=1, test=0.0, validation=0.0).users.tolist() == [2]
    with pytest.raises(DataFileError, match="no user has two movies with 2 ratings or more; lower min_ratings"):
        movielens(tmp_path, min_ratings=2)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("ratings.csv", "userId,movieId\n1,x\n", r"ratings\.csv is not as published \(.*invalid value 'x'"),
        ("ratings.csv", "user,movie\n1,2\n", r"ratings\.csv is not as published \(.*userId"),
        ("ratings.csv", "userId,movieId\n", r"ratings\.csv holds no rows"),
        ("ratings.dat", "1::2::3\n", r"ratings\.dat is not as published \(.*Expected 7 columns"),
        ("other.csv", "", r"it should hold one ratings\.dat or ratings\.csv; it holds none"),
    ],
)
def test_other_files_are_not_movielens(tmp_path, name, content, sentence):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataFileError, match=sentence):
        movielens(tmp_path)


def written_epinions(folder, form):
    if form == "zip":
        return archive(folder / "epinions.zip", {"ratings_data.txt": RATINGS, "trust_data.txt": TRUST})
    for name, content in (("ratings_data.txt", RATINGS), ("trust_data.txt", TRUST)):
        if form == "bz2":
            (folder / f"{name}.bz2").write_bytes(bz2.compress(content.encode()))
        else:
            (folder / name).write_text(content)
    return folder / "trust_data.txt" if form == "file" else folder


@pytest.mark.parametrize("form", ["zip", "folder", "bz2", "file"])
def test_every_form_of_epinions_is_read_alike(tmp_path, form):
    data = epinions(written_epinions(tmp_path, form), min_ratings=3)
    assert data.graph.ids.tolist() == [1, 2, 3, 4]
    assert data.graph.id_pairs.tolist() == [[1, 2], [3, 4]]
    assert data.products.tolist() == [10, 20]
    assert data.features.toarray().tolist() == [[1, 1], [1, 0], [1, 0], [0, 1]]
    assert data.features.dtype == np.float32


def test_users_of_products_are_halved(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    ratings = [(user, product) for user in range(40) for product in range(user % 10 + 8)]
    (tmp_path / "epinions").mkdir()
    (tmp_path / "epinions" / "ratings_data.txt").write_text("".join(f"{u} {p} 5\n" for u, p in ratings))
    (tmp_path / "epinions" / "trust_data.txt").write_text("1 2 1\n")
    (tmp_path / "ciao").mkdir()
    (tmp_path / "ciao" / "ratings.csv").write_text("user,product\n" + "".join(f"{u},{p}\n" for u, p in ratings))
    (tmp_path / "ciao" / "trust.csv").write_text("source,target\n1,2\n")
    for name in ("ciao", "epinions"):
        data = rated_products(name, min_ratings=10, random_state=0)
        assert data.users.tolist() == [user for user in range(40) if user % 10 >= 2]
        assert data.items.tolist() == [p for p in range(17) if sum(p == product for _, product in ratings) >= 10]
        assert sum(part.items.nnz for part in (data.train, data.validation, data.test)) == sum(
            min(user % 10 + 8, len(data.items)) for user in data.users
        )
    with pytest.raises(DataFileError, match="no user has 18 items with 10 ratings or more"):
        rated_products("ciao", min_ratings=10, min_items=18)


def test_other_files_are_not_epinions(tmp_path):
    with pytest.raises(DataFileError, match="no two users trust each other and have a product with 4 ratings"):
        epinions(written_epinions(tmp_path, "folder"), min_ratings=4)
    for content in ("1 x 1\n", "1 2\n", "", "1 2 3\n1 2\n"):
        (tmp_path / "trust_data.txt").write_text(content)
        with pytest.raises(DataFileError, match=r"trust_data\.txt is not as published, three numbers on each line"):
            epinions(tmp_path)


def test_the_published_million():
    data = movielens(at_hand("ml-1m"), min_ratings=1, random_state=0)
    assert (len(data.users), len(data.items)) == (6040, 3706)
    assert sum(part.items.nnz for part in (data.train, data.validation, data.test)) == 1_000_209
    assert (data.train.n_users, data.validation.n_users, data.test.n_users) == (5164, 272, 604)


def test_the_published_epinions():
    data = epinions(at_hand("epinions"))
    assert data.features.shape == (16_101, 679)
    assert (data.graph.n_vertices, data.graph.n_edges) == (16_101, 76_315)
    assert data.graph.degrees.min() >= 1
    assert np.diff(data.features.indptr).min() >= 1
    assert len(data.products) == 679


def test_ciao_is_read_as_epinions_is(tmp_path):
    ratings = "user,product,rating\n" + "".join(",".join(line.split()) + "\n" for line in RATINGS.splitlines())
    lines = [line.split() for line in TRUST.splitlines()]
    trust = "source,target\n" + "".join(f"{a},{b}\n" for a, b, value in lines if value == "1")
    found = ciao(archive(tmp_path / "ciao.zip", {"ratings.csv": ratings, "trust.csv": trust}), min_ratings=2)
    for name, content in (("ratings_data.txt", RATINGS), ("trust_data.txt", TRUST)):
        (tmp_path / name).write_text(content)
    same = epinions(tmp_path, min_ratings=2)
    assert found.features.toarray().tolist() == same.features.toarray().tolist()
    assert found.graph.id_pairs.tolist() == same.graph.id_pairs.tolist()
    with pytest.raises(DataFileError, match="lacks what is read"):
        ciao(archive(tmp_path / "other.zip", {"ratings.csv": "a,b\n1,2\n", "trust.csv": trust}))
