from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch

from corrvae.threads import computing_with, worth_having


@pytest.fixture(autouse=True)
def _two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_threads_are_what_was_asked_for_and_then_what_they_were():
    with computing_with(1):
        assert torch.get_num_threads() == 1
        with computing_with(3):
            assert torch.get_num_threads() == 3
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with computing_with(None):
        assert torch.get_num_threads() == 2
    with pytest.raises(ValueError, match="wrong"), computing_with(1):
        raise ValueError("wrong")
    assert torch.get_num_threads() == 2


def count_in_a_new_thread():
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.get_num_threads).result()


def test_threads_that_are_inside_at_once_leave_the_number_for_new_ones_as_it_was():
    entered, left = Barrier(3), Barrier(3)

    def work():
        with computing_with(1):
            entered.wait()
        left.wait()
        return torch.get_num_threads()

    with ThreadPoolExecutor(3) as pool:
        assert [future.result() for future in [pool.submit(work) for _ in range(3)]] == [2, 2, 2]
    assert torch.get_num_threads() == 2
    assert count_in_a_new_thread() == 2


def test_a_thread_with_a_number_of_its_own_keeps_it():
    def work():
        torch.set_num_threads(3)
        with computing_with(1):
            pass
        return torch.get_num_threads()

    with computing_with(1), ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == 3
    assert count_in_a_new_thread() == 2


def test_one_that_is_told_no_number_has_that_from_before_others_came():
    def work():
        inherited = torch.get_num_threads()
        with computing_with(None):
            return inherited, torch.get_num_threads()

    with computing_with(1), ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == (1, 2)
        with computing_with(None):
            assert torch.get_num_threads() == 1  # within the same thread it is meant
    assert torch.get_num_threads() == 2
    assert count_in_a_new_thread() == 2


def test_many_rows_or_much_work_a_step_are_worth_threads():
    assert worth_having(1, 1) == 1
    assert worth_having(1_999, 150_000_000) == 1
    assert worth_having(2_000, 1) is None
    assert worth_having(1, 150_000_001) is None
