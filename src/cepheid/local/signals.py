"""Stopping a stream cleanly."""

from __future__ import annotations

import contextlib
import select
import signal
import socket
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """While it is entered, Ctrl-C and SIGTERM only ask to stop; the second time they are as impatient as ever.

    Spark would cancel what is running at Ctrl-C, and the stream would end with an error.

    Who waits, waits for this too: with :meth:`wait`, or with a selector, as it can be read from once it was asked.
    """

    def __init__(self) -> None:
        self._asked = self._interrupted = False
        self._former: dict[signal.Signals, Any] = {}
        # A socket and no lock: a handler may run while the thread that it interrupts holds the lock.
        self._ear, self._mouth = socket.socketpair()

    @property
    def asked(self) -> bool:
        return self._asked

    def ask(self) -> None:
        if not self._asked:
            self._asked = True
            with contextlib.suppress(OSError):  # closed: nobody waits any more
                self._mouth.send(b"!")

    def fileno(self) -> int:
        return self._ear.fileno()

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until it was asked; whether it was."""
        if not self._asked and seconds > 0:
            select.select([self], [], [], seconds)
        return self._asked

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():  # only there can handlers be set
            self._former = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._restore()
        self._ear.close()
        self._mouth.close()
        # In the midst of a finalizer Python drops it, and compiled code makes an error of its own of it.
        if self._interrupted and (error is None or isinstance(error, SystemError)):
            raise KeyboardInterrupt from error

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            self._restore()
            self._interrupted = True
            raise KeyboardInterrupt
        self.ask()

    def _restore(self) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former = {}
