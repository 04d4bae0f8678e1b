"""Stopping a stream cleanly."""

from __future__ import annotations

import os
import signal

import pytest

from cepheid.local.signals import Stop


def _interrupted_in_compiled_code() -> None:
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt as interrupt:
        raise SystemError("returned a result with an exception set") from interrupt


def test_the_first_time_it_is_asked_the_second_time_it_interrupts() -> None:
    with pytest.raises(KeyboardInterrupt), Stop() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.asked
        os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_that_compiled_code_makes_an_error_of() -> None:
    with pytest.raises(KeyboardInterrupt), Stop() as stop:
        stop.ask()
        _interrupted_in_compiled_code()


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(SystemError), Stop() as stop:
        stop.ask()
        raise SystemError("something else")
