"""Stopping a stream cleanly."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from cepheid.local.signals import Stop


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _interrupt_in_compiled_code() -> None:
    try:
        _interrupt()
    except KeyboardInterrupt as interrupt:
        raise SystemError("returned a result with an exception set") from interrupt


class _Finalized:
    def __del__(self) -> None:
        _interrupt()


def _interrupt_in_a_finalizer() -> None:
    _Finalized()


def _fail() -> None:
    raise SystemError("something else")


def _after_a_first_signal(do: Callable[[], None]) -> None:
    with Stop() as stop:
        _interrupt()
        assert stop.asked
        do()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("do", [_interrupt, _interrupt_in_compiled_code, _interrupt_in_a_finalizer])
def test_the_second_time_it_interrupts(do: Callable[[], None]) -> None:
    with pytest.raises(KeyboardInterrupt):
        _after_a_first_signal(do)


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(SystemError, match="something else"):
        _after_a_first_signal(_fail)
