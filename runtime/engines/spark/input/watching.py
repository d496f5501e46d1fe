"""What has a query run a batch that lasts: somebody looks at its directories and its clock while Spark is idle."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Event, Thread, current_thread

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types

#: Seconds between two looks at the least.
APART = 0.1
#: So many times as long as a look took, there is no other.
TIMES = 20
#: Seconds after which a clock counts as having gone on.
CLOCK = 1.0
#: Seconds after which it is asked whether the query still runs.
ALIVE = 1.0
#: Seconds after which a look that failed is tried again.
AGAIN = 1.0
_logger = logging.getLogger("tidegate.spark")


class Watcher:
    """A thread that calls `look` again and again until the query ends or `stop` is called.

    `look` is told whether the clock may have gone on; one that fails is tried again. It is called with `idle` held,
    which a batch holds as long as it runs: to wait for that is no part of a look. `is_active` says whether the query
    runs.
    """

    def __init__(
        self, look: Callable[[bool], None], is_active: Callable[[], bool], idle: AbstractContextManager[object]
    ) -> None:
        self._look, self._is_active, self._idle = look, is_active, idle
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="tidegate-watching", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No look begins after this."""
        self._stopped.set()
        if self._thread is not current_thread():
            self._thread.join()

    def _run(self) -> None:
        wait, asked, ticked = APART, time.monotonic(), time.monotonic()
        said = ""
        while not self._stopped.wait(wait):
            began = time.monotonic()
            if began - asked > ALIVE:
                if not self._runs():
                    return
                asked = began
            clock = began - ticked >= CLOCK
            try:
                with self._idle:
                    looking = time.monotonic()
                    self._look(clock)
                    took = time.monotonic() - looking
            except Exception as error:  # noqa: BLE001 - without another look the query would wait for ever
                if repr(error) != said:
                    said = repr(error)
                    _logger.warning("looking for what is new failed, and is tried again: %s", said)
                wait = AGAIN
                continue
            if clock:
                ticked = began
            wait = max(APART, TIMES * took)

    def _runs(self) -> bool:
        try:
            return self._is_active()
        except Py4JError:  # the JVM has gone
            return False
