"""Memory that is refused: in every way to say it, at a use of a store, or at a line of the library."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.algebra.errors import TidegateError

REFUSALS: dict[str, Callable[[], BaseException]] = {
    "python": MemoryError,
    "arrow": lambda: pa.ArrowMemoryError("malloc of size 64 failed"),
    "numpy": lambda: np._core._exceptions._ArrayMemoryError((2**40,), np.dtype(np.int64)),  # type: ignore[attr-defined]
    "parquet": lambda: OSError("std::bad_alloc"),
    "system": lambda: OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    "polars": lambda: pl.exceptions.ComputeError("memory allocation of 8 bytes failed"),
    "thread": lambda: RuntimeError("can't start new thread"),
    "worker": lambda: pa.ArrowException("Failed to launch worker thread: Resource temporarily unavailable"),
}


class Refuses:
    """One use of an operation of the store is refused memory."""

    def __init__(self, operation: str, kind: str, skip: int = 0) -> None:
        self.operation, self.kind, self.skip = operation, kind, skip
        self.uses = 0
        self.path = ""

    def __call__(self, operation: str, path: str) -> None:
        if operation == self.operation:
            self.uses += 1
            if self.uses == self.skip + 1:
                self.path = path
                error = REFUSALS[self.kind]()
                raise error


class RefusesAtLine:
    """Counts the lines of some files that this thread executes within a block, and refuses memory at one of them.

    `files` is a part of their paths. What is compiled has no lines.
    """

    def __init__(self, files: str, line: int = 0, kind: str = "python") -> None:
        self.files, self.line, self.kind = files, line, kind
        self.lines = 0
        self.place = ""

    def __enter__(self) -> RefusesAtLine:
        self._before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        sys.settrace(self._before)

    def _called(self, frame: FrameType, _: str, __: object) -> Callable[..., Any] | None:
        return self._at if self.files in frame.f_code.co_filename else None

    def _at(self, frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        if event == "line":
            self.lines += 1
            if self.lines == self.line:
                self.place = f"{frame.f_code.co_filename}:{frame.f_lineno} ({self.kind})"
                error = REFUSALS[self.kind]()
                raise error
        return self._at


def told(run: Callable[[], object]) -> TidegateError | None:
    try:
        run()
    except TidegateError as error:
        return error
    return None
