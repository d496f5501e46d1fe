"""Steps in another process, where the hashes of texts are others: a set of texts comes in another order there.

python -m tidegate.runtime.ordered.process.other_seed    # answers steps until its input ends
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from typing import IO, Any, Final

import polars as pl

from tidegate.algebra.ordered.process import Operator, Reach
from tidegate.runtime.ordered.process.checks import Step

#: Set in the other process, so that it asks no further one.
_IS_OTHER: Final = "TIDEGATE_OTHER_SEED"
#: Seconds after which a process that does not answer is given up.
_PATIENCE: Final = 120.0
_SEED: Final = "PYTHONHASHSEED"


def elsewhere(operator: Operator) -> Step | None:
    """The step of an operator in the other process; None where that can not have it, or looks at no texts.

    It can where the class is found by the names of its module and its own, and its fields are plain values.
    """
    class_ = type(operator)
    if (
        _IS_OTHER in os.environ
        or class_.__module__ == "__main__"
        or _found(class_.__module__, class_.__qualname__) is not class_
    ):
        return None
    try:
        description = json.dumps([class_.__module__, class_.__qualname__, vars(operator), repr(operator)])
    except TypeError:
        return None

    def step(events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: Reach) -> object:
        if not any(map(_has_texts, (events, *state.values()))):
            return operator.step(events, state, reach)
        answer = _other(os.getpid()).answer(description, events, state, reach)
        return operator.step(events, state, reach) if answer is None else answer

    return step


class OtherProcess:
    """The process, and what is said to it: a line of JSON, and frames as streams of Arrow."""

    def __init__(self) -> None:
        seed = "2" if os.environ.get(_SEED) == "1" else "1"
        environment = {**os.environ, _SEED: seed, _IS_OTHER: "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )

    def answer(
        self, description: str, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: Reach
    ) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]] | None:
        """What the step yields there; None where it can not be done there."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with self._lock:
            watch = threading.Timer(_PATIENCE, process.kill)
            watch.start()
            try:
                _write(
                    process.stdin,
                    [description, reach.after, reach.until, reach.close_at, [*state]],
                    [events, *state.values()],
                )
                names, frames = _read(process.stdout)
            except (OSError, ValueError):  # the process is gone
                return None
            finally:
                watch.cancel()
        return None if names is None else (frames[0], dict(zip(names, frames[1:], strict=True)))


@lru_cache(maxsize=1)
def _other(of: int) -> OtherProcess:
    """The other process of this one, which may be a copy of one that had its own."""
    return OtherProcess()


def _has_texts(rows: pl.DataFrame) -> bool:
    return not all(type_.is_numeric() or type_.is_temporal() or type_ == pl.Boolean for type_ in rows.dtypes)


def _found(module: str, name: str) -> object:
    """What a name of a module stands for; None for one that is not found, as of a class in a function."""
    target: object = sys.modules.get(module)
    for part in name.split("."):
        target = getattr(target, part, None)
    return target


def _write(file: IO[bytes], message: object, frames: list[pl.DataFrame]) -> None:
    parts = []
    for frame in frames:
        stream = BytesIO()
        frame.write_ipc_stream(stream)
        parts.append(stream.getvalue())
    file.write(json.dumps([message, [len(part) for part in parts]]).encode() + b"\n" + b"".join(parts))
    file.flush()


def _read(file: IO[bytes]) -> tuple[Any, list[pl.DataFrame]]:
    message, sizes = json.loads(file.readline())
    return message, [pl.read_ipc_stream(BytesIO(file.read(size))) for size in sizes]


def _answered(message: Any, frames: list[pl.DataFrame]) -> tuple[list[str] | None, list[pl.DataFrame]]:
    """The names of the tables and the frames that a step returns; None where it can not be done here, or fails."""
    description, after, until, close_at, names = message
    module, name, fields, shown = json.loads(description)
    try:
        importlib.import_module(module)
        operator: Any = _found(module, name)
        operator = operator(**fields)
        if repr(operator) != shown:
            return None, []
        rows, left = operator.step(frames[0], dict(zip(names, frames[1:], strict=True)), Reach(after, until, close_at))
        return [*left], [rows, *left.values()]
    except Exception:  # noqa: BLE001  # of a user's code; whether it fails is for the first process to say
        return None, []


def main() -> None:
    """Answers until the input ends. What a user's code prints does not come between the answers."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with contextlib.suppress(ValueError, BrokenPipeError):  # the input has ended
        while True:
            _write(answers, *_answered(*_read(requests)))


if __name__ == "__main__":
    main()
