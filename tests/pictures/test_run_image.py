import numpy as np
import pytest
from matplotlib.image import imread

from corrvae.answers.run import Run
from corrvae.errors import FolderError
from corrvae.pictures.run_image import colours, write_map
from corrvae.pictures.run_view import view_run
from support.runs import trained


def shade(name):
    return np.array([int(colours()[name][k : k + 2], 16) for k in (1, 3, 5)]) / 255


def test_the_map_has_the_colours_of_its_groups(tmp_path):
    view = view_run(Run(trained()), n_clusters=3)
    picture = imread(write_map(view, tmp_path / "map.png"))[..., :3].reshape(-1, 3)
    for series in range(3):
        # dots are slightly transparent over white
        seen = 0.9 * shade(f"series-{series}") + 0.1
        assert (np.abs(picture - seen).max(axis=1) < 0.02).sum() > 20
    assert (np.abs(picture - shade("surface")).max(axis=1) < 0.01).mean() > 0.5


def test_the_same_run_gives_the_same_bytes(tmp_path):
    view = view_run(Run(trained()))
    one, two = (write_map(view, tmp_path / f"{k}.png").read_bytes() for k in range(2))
    assert one == two


def test_a_place_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FolderError, match="cannot be written"):
        write_map(view_run(Run(trained())), tmp_path / "nowhere" / "map.png")
