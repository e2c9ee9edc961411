import json

import numpy as np
import pytest

from corrvae.answers.run import Run, is_run_folder
from corrvae.errors import DataFileError, FolderError
from corrvae.reading import Features, read_features
from support.runs import IDS, N_POINTS, make_files, make_frame, make_graph, trained


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("ind"))


def test_a_folder_of_a_model_is_recognised_by_what_it_says(files, tmp_path):
    assert is_run_folder(files.run)
    assert not is_run_folder(files.folder)
    assert not is_run_folder(files.features)
    for text in ("{}", "[]", "rubbish", '{"format": 3}', '{"format": {"kind": "corrvae checkpoint"}}'):
        (tmp_path / "config.json").write_text(text)
        assert not is_run_folder(tmp_path)


def test_files_are_taken_where_an_estimator_takes_frames(files):
    run, model = Run.open(files.run), trained()
    new = make_frame(12, seed=5, prefix="new")
    new.rename_axis("id").to_csv(files.folder / "new.csv")
    found, expected = run.kneighbors(run.read(files.folder / "new.csv")), model.kneighbors(new)
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.query_ids.tolist() == list(new.index)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-6)


def test_columns_are_found_by_their_names(files):
    shuffled = make_frame()[["f3", "f0", "f4", "f2", "f1"]]
    shuffled.rename_axis("id").to_csv(files.folder / "shuffled.csv")
    run = Run.open(files.run)
    np.testing.assert_array_equal(run.read(files.folder / "shuffled.csv").matrix, run.read(files.features).matrix)


def test_other_numbers_of_columns_are_refused(tmp_path):
    files = make_files(tmp_path, named=False)
    np.save(tmp_path / "few.npy", np.zeros((3, 4), np.float32))
    with pytest.raises(DataFileError, match=r"it has 4 features, but .*run was trained on 5"):
        Run.open(files.run).read(tmp_path / "few.npy")


def test_training_features_are_recognised(files):
    run = Run.open(files.run)
    features = read_features(files.features)
    assert run.recognises(None)
    assert run.recognises(features)
    assert run.recognises(Features(features.matrix, None, None))
    assert not run.recognises(Features(features.matrix[:5], None, None))
    assert not Run(trained(named=False)).recognises(Features(features.matrix[:5], np.arange(5), None))


def test_links_are_those_of_the_graph_both_ways(files):
    run = Run.open(files.run)
    named = run.points(None, "cosine")
    left_out, graph = run.linked(named), make_graph()
    for k in range(N_POINTS):
        here = left_out.candidates[left_out.offsets[k] : left_out.offsets[k + 1]]
        assert set(named.ids[here]) == {IDS[k], *graph.neighbors(IDS[k])}


def test_a_pairwise_run_without_features_asks_for_them(tmp_path):
    run = Run.open(make_files(tmp_path, "pairwise", store_features=False).run)
    with pytest.raises(FolderError, match="give them with --features FILE"):
        run.require_features("expected_distance", "--features")
    run.require_features("log_odds", "--features")
    Run(trained("pairwise")).require_features("expected_distance", "--features")


def test_the_score_of_links_knows_correlations_where_there_are_some():
    assert Run(trained()).link_metric == "log_odds"
    assert Run(trained("pairwise")).link_metric == "expected_distance"


def test_numbers_that_cannot_be_are_refused():
    matrix = np.full((2, 5), np.inf, np.float32)
    with pytest.raises(ValueError, match=r"infinity \(inf\) in row 0"):
        Run(trained()).kneighbors(Features(matrix, None, None))


def test_the_kind_of_a_folder_is_what_models_say(files):
    assert json.loads((files.run / "config.json").read_text())["format"]["kind"] == "corrvae model"
