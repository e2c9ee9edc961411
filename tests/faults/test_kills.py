"""Killed at random moments, nothing is lost. The long form is ``benchmarks/faults.py``."""

import faults
import fragile


def test_training_killed_ten_times_ends_in_the_same_bits(helper, tmp_path):
    record = faults.kill_training(helper, tmp_path, kills=10, seed=1)
    assert record["kills"] == 10
    assert record["resumed"] > 0  # or the kills came too early to prove anything


def test_saving_killed_ten_times_leaves_a_whole_model(helper, tmp_path):
    record = faults.kill_saving(helper, tmp_path, kills=10, seed=1)
    assert sum(record["found_each"]) == 10


def test_the_checks_can_fail(helper, tmp_path):
    """What all of the above rests on: that a child's error is seen."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}")
    ending = helper.run(fragile.train, folder=str(tmp_path / "run"), steps=3)
    assert ending.code == 1
    assert ending.result.startswith(f"FolderError: {tmp_path / 'run' / 'config.json'}: damaged")
    assert helper.run(fragile.train, folder=None, steps=3, beats=1).code == fragile.KILLED
