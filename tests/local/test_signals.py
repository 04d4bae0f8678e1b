"""Ctrl-C asks a stream to stop; the second is not so polite."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from cepheid.local.signals import Stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_asks(number: signal.Signals) -> None:
    former = signal.getsignal(number)
    with Stop() as stop:
        assert not stop.asked
        os.kill(os.getpid(), number)
        assert stop.asked
    assert signal.getsignal(number) is former


def test_the_second_interrupts() -> None:
    with Stop():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_outside_the_main_thread_nothing_is_changed() -> None:
    asked = []

    def elsewhere() -> None:
        with Stop() as stop:
            stop.ask()
            asked.append(stop.asked)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert asked == [True]
