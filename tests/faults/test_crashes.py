"""Killed, starved, damaged or raced: nothing is lost, nothing half-written is read. The long form is ``faults.py``."""

import tempfile
from pathlib import Path

import pytest

import faults
from nursery import Call


def test_training_killed_ten_times_ends_as_if_it_had_not_been(nursery, tmp_path):
    record = faults.kill_training(nursery, tmp_path, kills=10, seed=1)
    assert record["kills"] == 10
    assert record["kills_with_a_checkpoint"] > 0  # or the kills came too early to prove anything


def test_saving_killed_ten_times_leaves_a_whole_model(nursery, tmp_path):
    record = faults.kill_saving(nursery, tmp_path, kills=10, seed=1)
    assert record["kills"] == 10
    assert record["saves"] >= 10  # each kill came after a save had replaced the model


def test_the_program_killed_at_its_file_operations_goes_on_to_the_same_files(nursery, tmp_path):
    record = faults.kill_program(nursery, tmp_path, every=20)
    assert record["kills"] >= 10
    assert 0 < record["begun_again"] < record["kills"]


def test_the_program_killed_as_it_replaces_a_run_goes_on_to_the_same_files(nursery, tmp_path):
    """At the worst moment: when its settings are written and have not got their name yet."""
    record = faults.kill_program(nursery, tmp_path, only=(7,), overwrite=True)
    assert (record["kills"], record["begun_again"]) == (1, 1)


def test_files_that_cannot_grow_leave_the_checkpoint_before(nursery, tmp_path):
    record = faults.starve(nursery, tmp_path, limits=[100, 3000])
    assert record["cut_off"] == 2


def test_a_full_disk_leaves_the_checkpoint_before(nursery):
    record = faults.fill_disk(nursery)
    assert record in ({"cut_off": 1}, {"skipped": "a file system cannot be mounted here"})


def test_a_read_only_folder_is_told(nursery, tmp_path):
    outside = Path(tempfile.gettempdir()).parents
    for place in (tmp_path, *tmp_path.parents):  # somebody else must be able to come as far as here
        if place not in outside and place != Path(tempfile.gettempdir()):
            place.chmod(0o755)
    assert faults.lock_folder(nursery, tmp_path)["refused"] == 4


def test_damage_is_refused_by_name(tmp_path):
    record = faults.damage(tmp_path, times=20, seed=1)
    assert record["refused"] > 100


def test_damage_to_the_newest_checkpoint_costs_some_steps_and_no_bits(nursery, tmp_path):
    record = faults.damage_newest(nursery, tmp_path, times=8, seed=1)
    assert record["set_aside"] >= 6
    assert record["set_aside"] + record["unchanged_in_meaning"] == 8


def test_two_writers_and_a_reader_never_meet_half_a_folder(nursery, tmp_path):
    assert faults.race(nursery, tmp_path, times=25)["reads"] == 25


def test_the_checks_can_fail(nursery, tmp_path):
    """What all of the above rests on: that a child's failure is seen."""
    (ending,) = nursery.run(Call("fragile:recognise", {"folder": str(tmp_path / "nowhere")}))
    assert ending.code == 1
    assert "there is no such folder" in ending.errors
    with pytest.raises(AssertionError, match="lost"):
        faults.expect(False, "lost")
