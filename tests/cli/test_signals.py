import signal
import threading

import pytest

from corrvae.cli.signals import heed_termination
from corrvae.training.interrupts import listen_for_interrupt


@pytest.fixture(autouse=True)
def handlers():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    for number, handler in before.items():
        signal.signal(number, handler)


def test_termination_is_a_request_while_training_and_the_second_ends_at_once():
    with heed_termination(), listen_for_interrupt() as interrupt:
        signal.raise_signal(signal.SIGTERM)
        assert interrupt.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


def test_either_signal_may_be_the_second():
    with heed_termination(), listen_for_interrupt():
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_where_ctrl_c_is_ignored_it_stays_so_and_termination_is_heard():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with heed_termination(), listen_for_interrupt() as interrupt:
        signal.raise_signal(signal.SIGINT)
        assert not interrupt.asked
        signal.raise_signal(signal.SIGTERM)
        assert interrupt.asked
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_what_was_there_before_is_there_again():
    answer = signal.getsignal(signal.SIGTERM)
    with heed_termination():
        assert signal.getsignal(signal.SIGTERM) is not answer
    assert signal.getsignal(signal.SIGTERM) == answer


def test_other_threads_have_no_signals():
    done = []

    def work():
        with heed_termination():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
