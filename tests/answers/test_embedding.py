import numpy as np
import pytest
from scipy import sparse

from corrvae.answers import embedding as module
from corrvae.answers.embedding import embedding_blocks, write_blocks, write_npy
from corrvae.answers.run import Run
from corrvae.answers.writing import writing
from corrvae.reading import Features
from support.runs import DIM, IDS, N_POINTS, make_frame, trained


@pytest.fixture(params=[7, 4096])
def block(request, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", request.param)
    return request.param


def test_training_points_come_as_they_were_learned(block):
    model, blocks = trained(), list(embedding_blocks(Run(trained())))
    assert len(blocks) == -(-N_POINTS // block)
    assert np.concatenate([one.ids for one in blocks]).tolist() == IDS
    np.testing.assert_array_equal(np.concatenate([one.mean for one in blocks]), model.embedding_)
    np.testing.assert_array_equal(np.concatenate([one.stddev for one in blocks]), model.stddev_)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_rows_of_a_file_are_embedded(block, make):
    frame = make_frame(20, seed=4, prefix="new")
    features = Features(make(frame.to_numpy(np.float32)), np.array(frame.index, object), tuple(frame.columns))
    blocks = list(embedding_blocks(Run(trained()), features))
    posterior = trained().infer_posterior(frame)
    np.testing.assert_allclose(np.concatenate([one.mean for one in blocks]), posterior.mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.concatenate([one.stddev for one in blocks]), posterior.stddev, rtol=1e-5)
    assert np.concatenate([one.ids for one in blocks]).tolist() == list(frame.index)


def test_rows_without_ids_are_counted(block):
    features = Features(make_frame().to_numpy(np.float32), None, None)
    assert np.concatenate([one.ids for one in embedding_blocks(Run(trained()), features)]).tolist() == list(range(36))


def test_columns_are_means_then_deviations():
    (columns,) = (one.columns for one in embedding_blocks(Run(trained())))
    assert list(columns) == ["id", "z0", "z1", "z2", "s0", "s1", "s2"]
    np.testing.assert_array_equal(columns["s1"], trained().stddev_[:, 1])


def test_an_array_holds_both_and_ids_lie_beside_it(block, tmp_path):
    beside = write_npy(tmp_path / "z.npy", embedding_blocks(Run(trained())), N_POINTS, DIM)
    found = np.load(tmp_path / "z.npy")
    np.testing.assert_array_equal(found, np.concatenate([trained().embedding_, trained().stddev_], axis=1))
    assert beside.read_text().split() == ["id", *IDS]
    assert {path.name for path in tmp_path.iterdir()} == {"z.npy", "z.ids.csv"}


def test_blocks_make_one_file(block, tmp_path):
    with writing(tmp_path / "z.csv") as writer:
        assert write_blocks(writer, embedding_blocks(Run(trained()))) == N_POINTS
    found = np.loadtxt(tmp_path / "z.csv", delimiter=",", skiprows=1, usecols=range(1, 2 * DIM + 1))
    np.testing.assert_array_equal(found[:, :DIM].astype(np.float32), trained().embedding_)
