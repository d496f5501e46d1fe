"""Processes that collect tests, and children of these that run them: what a child changes is gone with it."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

MEMORY = 8 << 30


def environment(root: Path, *, uncompiled: bool) -> dict[str, str]:
    """The environment of a process that collects tests, beside others; with `uncompiled`, kernels run as Python.

    Modules that it compiles are written, also where the machine says not to: of the tree they are as they stand there.
    """
    own = {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "", "POLARS_MAX_THREADS": "1"}
    return {**os.environ, **own, **({"NUMBA_DISABLE_JIT": "1"} if uncompiled else {})}


def collected(tests: Iterable[str], marked: str, plugin: object) -> int:
    """Collects tests with these marks for a plugin that runs them; the exit status. Their files are deleted."""
    with tempfile.TemporaryDirectory(prefix="mutation-", ignore_cleanup_errors=True) as folder:
        own = ["-q", "-p", "no:cacheprovider", "-m", marked, "--no-header", "--no-summary"]
        place = [f"--basetemp={folder}/tests", "-o", "tmp_path_retention_policy=none"]
        return int(pytest.main([*own, *place, *tests], plugins=[plugin]))


def failed(item: pytest.Item) -> str | None:
    """Runs a test alone, with all of its fixtures; what it says where it fails."""
    from _pytest.runner import runtestprotocol

    for report in runtestprotocol(item, log=False, nextitem=None):
        if report.failed:
            return str(report.longrepr)[-2000:]
    return None


def limit_own_time(seconds: float) -> None:
    """Ends this process when it has computed for so long from now on."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, most))


def forked(run: Callable[[], dict[str, Any]], waiting: float | None) -> dict[str, Any] | None:
    """What a function returns in a child of this process; None where the child died or took too long."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:  # pragma: no cover  # ends here, whatever happens
        status = 1
        try:
            os.setpgid(0, 0)
            os.close(reading)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(nowhere, number)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            try:
                found = run()
            except Exception as error:  # noqa: BLE001  # told to the parent
                found = {"error": f"{type(error).__name__}: {error}"}
            with os.fdopen(writing, "w") as pipe:
                json.dump(found, pipe)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    watch = threading.Timer(waiting, _kill, [child]) if waiting is not None else None
    if watch is not None:
        watch.daemon = True
        watch.start()
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if watch is not None:
        watch.cancel()
    _kill(child)
    return json.loads(text) if text else None


def _kill(child: int) -> None:
    """Ends a child's process group: the child, and what its tests have started."""
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
