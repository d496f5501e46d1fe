"""The batches of a session: one over what waits, or as many as there are files for."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Thread, current_thread

from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError
from tidegate.runtime.batch.executor import Work
from tidegate.runtime.batch.loop import Runner
from tidegate.runtime.batch.report import KEPT_REPORTS, BatchReport, Reports
from tidegate.runtime.engines.clock import read_clock
from tidegate.runtime.engines.embedded.file_polling import FilePolling
from tidegate.runtime.engines.embedded.pending_input import PendingInput
from tidegate.runtime.engines.notices import Notices
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.setup import Setup, UnreadFiles
from tidegate.runtime.inspect.live_display import LiveDisplay
from tidegate.runtime.state.errors import memory_errors
from tidegate.runtime.state.inputs.positions import Offer
from tidegate.runtime.state.manifest import Engine
from tidegate.version import VERSION

_ENGINE = Engine("embedded", VERSION)


@dataclass(slots=True)
class SessionBatches:
    """Runs batches until the session is closed."""

    setup: Setup
    runner: Runner
    options: RunOptions
    notices: Notices
    given: PendingInput
    polling: FilePolling
    closed: bool = False
    is_running: bool = False
    thread: Thread | None = None
    """The thread that runs batches in the background, if one does."""

    def run_by(self, thread: Thread) -> None:
        """Leaves batches to a thread."""
        self.check_open()
        self.thread = thread

    def given_back(self, thread: Thread) -> bool:
        """Takes batches back from a thread; False where others have them."""
        was_its = self.thread is thread
        if was_its:
            self.thread = None
        return was_its

    def check_open(self) -> None:
        """`QueryError` TG416 once the session is closed, or while another thread runs its batches."""
        if self.thread is not None and self.thread is not current_thread():
            with Here():
                raise QueryError(
                    "TG416",
                    "this session runs in the background",
                    hint="push to what background() gave, look at the session with look(...), or close() it first",
                )
        if self.is_running:
            with Here():
                raise QueryError(
                    "TG416",
                    "a batch of this session is running, and what is given to it meanwhile would be lost with it",
                    hint="call it when step() has returned, not from a callback; of a session in the background "
                    "a callback may call push of what background() gave",
                )
        if self.closed:
            with Here():
                raise QueryError(
                    "TG416", "this session is closed", hint="open a new one on the same checkpoint: it goes on"
                )

    def unread(self) -> UnreadFiles:
        self.check_open()
        return self.polling.unread()

    def step(self, fresh: UnreadFiles, *, ahead: bool) -> BatchReport:
        """One batch over files that were not read yet; with `ahead` another follows, its files are read meanwhile."""
        self.is_running = True
        try:
            clock = read_clock(self.options.clock)
            with memory_errors("a batch was run"):
                report = self._committed(fresh, clock, ahead)
        finally:
            self.is_running = False
        if self.options.on_batch is not None:
            self.options.on_batch(report)
        with memory_errors("a batch was looked at"):
            self.notices.after(report, self.runner.state.counts)
        return report

    def _committed(self, fresh: UnreadFiles, clock: int, ahead: bool) -> BatchReport:
        setup, given = self.setup, self.given
        files = self.polling.for_one_batch(fresh, setup.checkpoint.next_seq)
        offer = Offer(files=files, pushed=given.digest())
        batch = setup.checkpoint.begin(clock, offer, engine=_ENGINE)
        reading = batch.intent.offer.files
        arrivals = given.arrivals() | self.polling.arrivals(reading, given.pushed)
        beside = self.options.threads > 1 and self.polling.tuner.lets_go_ahead
        following = self.polling.following(fresh, reading) if beside else None
        if ahead:
            self.polling.read_ahead(fresh, reading, others=beside)
        advances = given.advances | setup.ended(setup.read_by(reading, fresh)) | given.ended()
        waiting = setup.waiting(reading, fresh)
        try:
            work = Work(arrivals, advances, given.close_at, given.declared, waiting, following)
            report = self.runner.run(batch, work)
        finally:
            # A batch that fails after its commit, as where a callback does, has what was given all the same.
            if (last := setup.checkpoint.manifest) is not None and last.seq == batch.seq:
                given.read()
                setup.read(reading)
        setup.compactions.after(report)
        return report

    def process(self, display: LiveDisplay) -> Reports:
        """Batches until nothing pushed and no unread file is left, and no recursion goes on; at least one."""
        reports: deque[BatchReport] = deque(maxlen=KEPT_REPORTS)
        fresh: UnreadFiles = {}
        while True:
            if self.polling.is_due(fresh):
                self.check_open()
                fresh = self.polling.unread()
                goes_on = any(fresh.values()) or self.given.pushed or self.runner.state.is_unfinished
                if reports and not goes_on:
                    return Reports(reports)
            reports.append(self.step(fresh, ahead=True))
            display.after(reports[-1])
            fresh = self.polling.known()

    def close(self) -> None:
        self.closed = True
        with ExitStack() as closing:  # the last one first, and each whatever another one raises
            closing.callback(lambda: self.notices.ended(self.runner.state.counts, self.given.advances))
            closing.callback(self.setup.close)
            closing.callback(self.runner.executor.close)
            closing.callback(self.polling.close)
