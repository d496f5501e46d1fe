"""A line on the terminal, or in a notebook, that shows a long run to be alive: batches, rows, results, and the time
since it began.
"""

from __future__ import annotations

import sys
from threading import Lock, Timer
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from tidegate.algebra.printing.plans import count_of

if TYPE_CHECKING:
    from tidegate.runtime.batch.report import BatchReport

#: Seconds that a run takes before it is shown: short ones need no display, and it takes a tenth of a second to load.
DELAY: Final = 1.0


class LiveDisplay:
    """`with LiveDisplay(...) as display:` shows a run while it lasts, and nothing of it stays. `display.after(report)`
    tells of a batch.

    `wanted` None: where standard error is a terminal, and in notebooks.
    """

    def __init__(self, wanted: bool | None, what: str) -> None:
        self._wanted = _has_reader() if wanted is None else wanted
        self._text, self._rows, self._results = what, 0, 0
        self._lock = Lock()
        self._timer: Timer | None = None
        self._progress: Any = None
        self._task: Any = None
        self._over = False

    def __enter__(self) -> LiveDisplay:
        if self._wanted:
            self._timer = Timer(DELAY, self._begin)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._over = True
            if self._progress is not None:
                self._progress.stop()

    def after(self, report: BatchReport) -> None:
        """Tells of a batch."""
        self._rows += sum(counts.rows_in for counts in report.counts.values())
        self._results += sum(report.results.values())
        text = f"batch {report.seq:,}: {count_of(self._rows, 'row')} in, {count_of(self._results, 'result')} out"
        with self._lock:
            self._text = text
            if self._progress is not None:
                self._progress.update(self._task, description=text)

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._over:
                return
            if _in_notebook():
                self._progress = _NotebookLine()
            else:
                columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
                self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._progress.add_task(self._text, total=None)
            self._progress.start()


class _NotebookLine:
    """A line of a cell's output, used as a `Progress` of rich is, which warns in notebooks that have no ipywidgets."""

    def __init__(self) -> None:
        self._text = ""
        self._shown: Any = None

    def add_task(self, description: str, total: None) -> None:
        """Says what is shown first."""
        self._text = description

    def start(self) -> None:
        """Shows the line."""
        from IPython.display import display

        show: Any = display  # it has no types
        self._shown = show({"text/plain": self._text}, raw=True, display_id=True)

    def update(self, task: None, description: str) -> None:
        """Shows another text in its place."""
        self._shown.update({"text/plain": description}, raw=True)

    def stop(self) -> None:
        """Takes the line away."""
        self._shown.update({"text/plain": ""}, raw=True)


def _has_reader() -> bool:
    """Whether somebody looks at what is shown: at a terminal, or in a notebook."""
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None
