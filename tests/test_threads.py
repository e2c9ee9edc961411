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


def test_many_rows_or_many_parameters_are_worth_threads():
    assert worth_having(1, 1) == 1
    assert worth_having(1_999, 250_000) == 1
    assert worth_having(2_000, 1) is None
    assert worth_having(1, 250_001) is None
