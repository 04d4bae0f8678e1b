"""Stopping a stream cleanly."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """While it is entered, Ctrl-C and SIGTERM only ask to stop; the second time they are as impatient as ever.

    Spark would cancel what is running at Ctrl-C, and the stream would end with an error.
    """

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._former: dict[signal.Signals, Any] = {}

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def ask(self) -> None:
        self._asked.set()

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():  # only there can handlers be set
            self._former = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._restore()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            self._restore()
            raise KeyboardInterrupt
        self.ask()

    def _restore(self) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former = {}
