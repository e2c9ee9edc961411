import os
import signal
import subprocess
import sys
import threading

import pytest

from corrvae.cli.signals import LateRequest, OneRequest, heed_termination
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


IGNORED = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
import corrvae.cli
from corrvae.cli.signals import heed_termination
from corrvae.training.interrupts import listen_for_interrupt
assert "numpy" not in sys.modules
with heed_termination():
    import numpy  # which begins threads
    over = threading.Event()
    threading.Thread(target=over.wait).start()
    with listen_for_interrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        print(interrupt.asked)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)
        print(interrupt.asked)
    over.set()
"""


def test_where_ctrl_c_is_ignored_threads_do_not_hear_it_either():
    """In a process of its own: in this one, NumPy has begun threads already."""
    two = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    run = subprocess.run([sys.executable, "-c", IGNORED], env=two, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True"]


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


def launch(monkeypatch):
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)


def test_one_of_several_processes_takes_signals_as_requests_and_stays_calm_after_the_end(monkeypatch):
    launch(monkeypatch)
    with heed_termination():
        with pytest.raises(KeyboardInterrupt):  # nothing has been learned yet
            signal.raise_signal(signal.SIGTERM)
        with OneRequest() as calm, listen_for_interrupt() as interrupt:
            calm(None)
            for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
                signal.raise_signal(number)
            assert interrupt.asked
        signal.raise_signal(signal.SIGTERM)  # comes late, while the model is being written
    signal.raise_signal(signal.SIGTERM)  # the launcher ends those that are left
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    assert calm.on_every_rank


def test_a_request_after_training_is_noted_once():
    late = LateRequest()
    with heed_termination(), late.heeded():
        with late, listen_for_interrupt():
            late(None)
        signal.raise_signal(signal.SIGTERM)
        assert late.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_request_that_training_heard_too_late_is_the_first():
    late = LateRequest()
    with late.heeded():
        with late:
            late.asked_late()
        assert late.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_request_after_one_that_ended_training_is_the_second():
    late = LateRequest()
    with late.heeded():
        with late:
            pass
        late.insist()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with late.heeded():
        with late:
            pass
        signal.raise_signal(signal.SIGINT)  # before it was known how training ended
        with pytest.raises(KeyboardInterrupt):
            late.insist()


def test_training_that_broke_is_followed_by_no_patience():
    late = LateRequest()
    with late.heeded():
        with pytest.raises(ValueError, match="broke"), late:
            raise ValueError("broke")
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert not late.asked


@pytest.mark.parametrize("listen", [lambda: OneRequest().__enter__(), lambda: LateRequest().__exit__(None)])
def test_in_another_thread_nothing_is_changed(listen):
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before
