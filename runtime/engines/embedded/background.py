"""A session in the background: threads push events into bounded queues, and one thread runs batches over them."""

from __future__ import annotations

import atexit
import datetime as dt
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Condition, RLock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import checked_calls
from tidegate.algebra.dsl.expression import DurationOption, duration_given
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import Problem, QueryError
from tidegate.algebra.printing.plans import count_of
from tidegate.algebra.time import INF, Extended, duration_ticks
from tidegate.runtime.batch.status import Line, Status
from tidegate.runtime.connectors.sinks import MemorySink
from tidegate.runtime.engines.embedded.input_queue import Full, InputQueue, Queued, QueuedProgress, QueuedRows
from tidegate.runtime.engines.notices import RunWarning
from tidegate.runtime.ingest.raw_rows import Raw, Rows, put_together
from tidegate.runtime.state.store.memory import MemoryStore

if TYPE_CHECKING:
    from tidegate.runtime.engines.embedded.session import Session

_T = TypeVar("_T")
#: Seconds after which a session is asked what is due though nothing came: files, and what goes by the clock.
_LOOK: Final = 1.0
#: Seconds that the oldest row waits for a batch, unless something else is asked for.
BATCH_SECONDS: Final = 0.1
_SECOND: Final = 1_000_000
_MOST_ROWS: Final = 1 << 40
#: Seconds that a thread can be told to wait.
_LONGEST: Final = 1e9


class QueueFullError(QueryError):
    """A push found no room within the time that it may wait: nothing of it was taken, and it can be tried again.

    Examples:
        >>> remind = tg.callback(lambda table, batch: None)
        >>> with program.session(sinks={"Unpaid": remind}) as session:
        ...     with session.background(queue_rows=1, when_full="refuse", batch_time="1h") as run:
        ...         run.push("Payments", [(1, "2026-03-02T12:10Z")])
        ...         try:
        ...             run.push("Payments", [(3, "2026-03-03T11:00Z")])
        ...         except tg.QueueFullError as error:
        ...             print(error.code)
        TG441
    """


@dataclass(frozen=True, slots=True)
class BackgroundOptions:
    """How a background session queues and batches; `Session.background` says what each option means."""

    queue_rows: int
    wait: float | None
    """Seconds that a push may wait for room; None: for ever."""
    batch_rows: int
    batch_seconds: float | None
    """Seconds that the oldest row waits at most; None: as the session is tuned."""

    @classmethod
    def of(
        cls, queue_rows: int, when_full: DurationOption, batch_rows: int, batch_time: DurationOption | None
    ) -> BackgroundOptions:
        """`QueryError` TG401 for what is no such option."""
        _check_rows("queue_rows", queue_rows)
        _check_rows("batch_rows", batch_rows)
        seconds = None
        if batch_time is not None:
            seconds = _seconds("batch_time", batch_time, 'give a duration such as "100ms"')
        return cls(queue_rows, _wait(when_full), batch_rows, seconds)


@checked_calls
class BackgroundSession:
    """The batches of a session in a thread of its own, over rows that other threads push; `Session.background` opens
    it.

    Each stream has a queue of `queue_rows` rows. A push into a full one waits for room, for as long as `when_full`
    says. A batch takes what waits: when there are `batch_rows` rows, when the oldest has waited for `batch_time`, or
    when a push has found no room. While a batch runs the next rows gather, so batches grow with the load. Callbacks of
    sinks are called in the thread of the batches, one after the other. A slow one makes the queues full, and then
    pushes wait.

    `push` returns once rows are queued. They survive a crash once they are in a committed batch: `flush` waits for
    that.

    Examples:
        >>> def remind(table, batch):
        ...     print("remind", *table["customer"].to_pylist())
        >>> with program.session(sinks={"Unpaid": tg.callback(remind)}) as session:
        ...     with session.background() as run:
        ...         run.push("Orders", inputs["Orders"])  # from any thread
        ...         run.push("Payments", inputs["Payments"])
        ...         run.finish()
        remind Bob Ada
    """

    def __init__(self, session: Session, options: BackgroundOptions) -> None:
        _check_sinks(session)
        self._session, self._options = session, options
        self._queue = InputQueue(options.queue_rows)
        #: Held by a batch, and by whoever looks at the session between two.
        self._between_batches = RLock()
        self._done = Condition()
        #: What was taken from the queues and not given to the session yet.
        self._in_hand: Sequence[Queued] = ()
        self._committed = self._last_rows = 0
        self._error: BaseException | None = None
        self._has_ended = False
        self._thread = Thread(target=self._run, name="tidegate batches", daemon=True)
        session._batches.run_by(self._thread)
        self._thread.start()
        atexit.register(self._warn_of_rows)

    def push(self, stream: str, rows: Rows) -> None:
        """Queue rows for one of the next batches; the rows are those of `Session.push`.

        A push of more rows than a queue holds is taken once the queue is empty. `QueueFullError` TG441 where a push may
        wait no longer; `QueryError` TG402 and TG311 as for `Session.push`, TG416 once this is closed or has failed.

        Examples:
            >>> session = program.session(sinks={"Unpaid": tg.callback(lambda table, batch: None)})
            >>> with session.background() as run:
            ...     run.push("Payments", inputs["Payments"])
            >>> session.counts["Payments"].accepted
            2
        """
        with Here():
            self._check_open()
            self._session._stream(stream)
            raw_rows = self._session._input.made(stream, rows)
            entry = QueuedRows(stream, raw_rows)
            if not entry.rows:
                return
            self._session._notices.pushed(stream, raw_rows, self._session._progress())
            # Who empties the queues can not wait for room in them.
            wait = 0.0 if threading.current_thread() is self._thread else self._options.wait
            try:
                if not self._queue.put(entry, wait):
                    raise self._closed()
            except Full:
                waiting = count_of(self._queue.waiting().get(stream, 0), "row")
                raise QueueFullError(
                    "TG441",
                    f"the queue of {stream} is full: {waiting} wait, and it holds {self._options.queue_rows}",
                    hint="push again later, or more slowly; `queue_rows` says how many wait at most, `when_full` "
                    "how long a push waits for room",
                ) from None

    def advance(self, stream: str, progress: Any) -> None:
        """Declare that, with the rows pushed so far, everything up to these instants has arrived; as
        `Session.advance`.

        Examples:
            >>> with program.session(sinks={"Unpaid": tg.callback(lambda table, batch: None)}) as session:
            ...     with session.background() as run:
            ...         run.push("Orders", inputs["Orders"])
            ...         run.advance("Orders", "2026-03-03T10:00Z")
            ...         run.advance("Payments", "2026-03-02T12:40Z")
            ...     print(session.progress["Unpaid"])
            {'ordered': 1772453400000000}
        """
        with Here():
            self._check_open()
            advances = self._session._told(stream, progress)
            self._session._notices.advanced(self._session._progress(), advances)
            self._tell(stream, advances)

    def finish(self, stream: str | None = None) -> None:
        """Declare the end of a stream, or of all.

        Examples:
            >>> with program.session(sinks={"Unpaid": tg.callback(lambda table, batch: None)}) as session:
            ...     with session.background() as run:
            ...         run.push("Orders", inputs["Orders"])
            ...         run.finish()
            ...         run.flush()
            ...     print(session.progress["Unpaid"])
            {'ordered': inf}
        """
        with Here():
            self._check_open()
            for name in self._session._setup.streams if stream is None else [stream]:
                self._tell(name, {(name, a): INF for a in self._session._stream(name).progress})

    def flush(self, timeout: DurationOption | None = None) -> None:
        """Wait until all that was queued before is in a committed batch, and callbacks have had its results.

        `TimeoutError` after `timeout`; what makes a batch fail is raised here.

        Examples:
            >>> with program.session(sinks={"Unpaid": tg.callback(lambda table, batch: None)}) as session:
            ...     with session.background(batch_time="1h") as run:
            ...         run.push("Payments", inputs["Payments"])
            ...         run.flush()
            ...         print(run.waiting_rows())
            {}
        """
        with Here():
            wait = None if timeout is None else _seconds("timeout", timeout, 'give a duration such as "5s"')
            if threading.current_thread() is self._thread:
                raise QueryError(
                    "TG416",
                    "a callback can not wait for batches: it is called by one",
                    hint="flush from another thread",
                )
        wanted = self._queue.want()
        with self._done:
            self._done.wait_for(lambda: self._committed >= wanted or self._has_ended, wait)
            if self._committed >= wanted:
                return
            if self._error is not None:
                raise self._error
            if self._has_ended:
                raise self._closed()
            raise TimeoutError(f"what was pushed is not committed after {timeout}; in queues are {self.waiting_rows()}")

    def waiting_rows(self) -> dict[str, int]:
        """Rows that wait in queues, by stream.

        Examples:
            >>> session = program.session(sinks={"Unpaid": tg.callback(lambda table, batch: None)})
            >>> with session.background(batch_time="1h") as run:
            ...     run.push("Payments", inputs["Payments"])
            ...     print(run.waiting_rows())
            {'Payments': 3}
        """
        return self._queue.waiting()

    def status(self) -> Status:
        """How the session stands after its last batch, with what waits in queues; it waits for the batch that runs.

        Examples:
            >>> session = program.session(sinks={"Unpaid": tg.callback(lambda table, batch: None)})
            >>> with session.background(batch_time="1h") as run:
            ...     run.push("Payments", inputs["Payments"])
            ...     print(run.status())
            session of Unpaid in memory, after batch 0
              in      Orders    0 rows
                      Payments  0 rows
            ...
              queued  Payments  3 rows
        """
        status = self.look(lambda session: session.status())
        queued = tuple(Line("queued", name, count_of(rows, "row")) for name, rows in self.waiting_rows().items())
        return Status(status.title, (*status.lines, *queued))

    def look(self, at: Callable[[Session], _T]) -> _T:
        """What a function says of the session between two batches: `run.look(lambda session: session.why())`.

        Examples:
            >>> session = program.session(sinks={"Unpaid": tg.callback(lambda table, batch: None)})
            >>> with session.background() as run:
            ...     run.push("Payments", inputs["Payments"])
            ...     run.flush()
            ...     print(run.look(lambda session: session.counts["Payments"].rejected))
            {'null': 1}
        """
        with self._between_batches:
            return at(self._session)

    def close(self, *, drain: bool = True) -> None:
        """Take no more, run batches over what waits, and give the session back; leaving a `with` block does it too.

        What made a batch fail is raised, with a note of the rows that are in no committed batch. Without `drain`, and
        after a failure, these go to the session, whose next `step` reads them if it can still run one: after a failed
        callback (TG414) it cannot. Leaving a `with` block by an exception does not drain. A batch that runs is waited
        for, and so are its callbacks.

        Examples:
            >>> session = program.session(sinks={"Unpaid": tg.callback(lambda table, batch: None)})
            >>> run = session.background(batch_time="1h")
            >>> run.push("Payments", inputs["Payments"])
            >>> run.close(drain=False)
            >>> session.step().counts["Payments"].accepted
            2
        """
        self._queue.close(drain=drain)
        if threading.current_thread() is self._thread:
            return  # the batch that called back ends first
        self._thread.join()
        atexit.unregister(self._warn_of_rows)
        with self._between_batches:  # of several that close it the first gives back what waits
            if not self._session._batches.given_back(self._thread):
                return
            for entry in (*self._in_hand, *self._queue.rest()):
                if isinstance(entry, QueuedRows):
                    self._session._input.push(entry.stream, entry.content)
                else:
                    self._session._input.advance(entry.told)
        if self._error is not None:
            if waiting := self._session._input.waiting_rows():
                self._error.add_note(f"Rows that were pushed and are in no committed batch: {_listed(waiting)}")
            raise self._error

    def __enter__(self) -> BackgroundSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close(drain=kind is None)
        except Exception as failure:
            if error is None:
                raise
            if error.__cause__ is not failure:  # else it says so: a push was refused for it
                error.add_note(f"Besides, a batch in the background failed: {failure}")

    def _run(self) -> None:
        """What the thread does: batches until it is closed and nothing waits, or one fails."""
        try:
            while not self._queue.is_over():
                self._batch()
        except BaseException as error:  # noqa: BLE001  # whoever pushes, flushes or closes is told
            self._error = error
            self._queue.close(drain=False)
        with self._done:
            self._has_ended = True
            self._done.notify_all()

    def _batch(self) -> None:
        entries = self._queue.take(*self._due_at(), _LOOK)
        self._last_rows = sum(entry.rows for entry in entries if isinstance(entry, QueuedRows))
        with self._between_batches:
            self._in_hand = entries
            self._give(entries)
            self._in_hand = ()
            if entries or self._session.due:
                self._session.step()
        with self._done:
            self._committed += len(entries)
            self._done.notify_all()

    def _due_at(self) -> tuple[int, float]:
        """How many rows make a batch due, and how long the oldest waits: as asked for, or as the session is tuned."""
        rows, seconds = self._options.batch_rows, self._options.batch_seconds
        tuner = self._session._runner.executor.tuner
        left = tuner.time_left(self._last_rows)
        if seconds is None:
            seconds = BATCH_SECONDS if left is None else left
        # Where starting a batch takes most of the time, rows that are left for the next one wait for that once more.
        # All at once wait less than twice as long as in the best of divisions, whatever a row costs (decision 85).
        return min(rows, tuner.most_rows() or rows) if tuner.has_time else rows, seconds

    def _give(self, entries: Sequence[Queued]) -> None:
        """Hands the session what was queued: rows of many pushes together, since each part costs some time."""
        pushed: dict[str, list[Raw]] = {}
        for entry in entries:
            if isinstance(entry, QueuedRows):
                pushed.setdefault(entry.stream, []).append(entry.content)
        together = {stream: put_together(parts) for stream, parts in pushed.items()}
        for stream, parts in together.items():
            for part in parts:
                self._session._input.push(stream, part)
        for entry in entries:
            if isinstance(entry, QueuedProgress):
                self._session._input.advance(entry.told)

    def _warn_of_rows(self) -> None:
        """At the end of the program, of what nobody will run a batch over."""
        if waiting := self.waiting_rows():
            hint = "close() it, or leave its `with` block, before the program ends"
            problem = Problem(
                "TG437", f"the program ends, and rows wait in a background session: {_listed(waiting)}", hint=hint
            )
            warnings.warn(RunWarning(str(problem)), stacklevel=1)

    def _tell(self, stream: str, advances: Mapping[tuple[str, str], Extended]) -> None:
        if not self._queue.tell(stream, advances):
            raise self._closed()

    def _check_open(self) -> None:
        if self._queue.closed:
            raise self._closed()

    def _closed(self) -> QueryError:
        if self._error is None:
            return QueryError("TG416", "this background session is closed", hint="open another one on its session")
        error = QueryError(
            "TG416",
            f"this background session has ended, since a batch failed: {str(self._error).splitlines()[0]}",
            hint="close() raises what it was, and says which rows are in no committed batch",
        )
        error.__cause__ = self._error
        return error


def _listed(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{count_of(count, 'row')} of {stream}" for stream, count in rows.items())


def _check_sinks(session: Session) -> None:
    """`QueryError` TG408 for results that would pile up in memory."""
    kept = sorted(name for name, sink in session._setup.sinks.items() if isinstance(sink, MemorySink))
    if kept and isinstance(session._store, MemoryStore):
        raise QueryError(
            "TG408",
            f"results of {', '.join(kept)} would pile up in memory",
            hint=f'give them sinks: session(sinks={{"{kept[0]}": tg.callback(function)}}), or the session a checkpoint',
        )


def _check_rows(option: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_ROWS:
        raise QueryError("TG401", f"{option}={shown(value)} is no number of rows", hint="give 1 or more")


def _wait(when_full: object) -> float | None:
    """Seconds that a push may wait for room; None: for as long as it takes."""
    match when_full:
        case "block":
            return None
        case "refuse":
            return 0.0
    return _seconds("when_full", when_full, 'give "block", "refuse", or how long a push may wait, such as "5s"')


def _seconds(option: str, value: object, hint: str) -> float:
    """A duration in seconds; `QueryError` TG401 for what is none."""
    given = duration_given(value)
    try:
        ticks = duration_ticks(given) if isinstance(given, str | dt.timedelta) else -1
    except QueryError:
        ticks = -1
    if ticks < 0:
        raise QueryError("TG401", f"{option}={shown(value)} is no duration", hint=hint)
    return min(ticks / _SECOND, _LONGEST)
