"""Memory of this process, and of all that it started as it is sampled while a block runs."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from tools.processes import family

_SECONDS = 0.2


class Peak:
    """Sampled peak beyond what there was before the block, in bytes; pages that processes share count once."""

    def __enter__(self) -> Peak:
        self.base = self.greatest = _held()
        self._done = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._sampler.join()

    @property
    def more(self) -> int:
        return self.greatest - self.base

    def _sample(self) -> None:
        while not self._done.wait(_SECONDS):
            self.greatest = max(self.greatest, _held())


def _held() -> int:
    return sum(_shared_out(Path(f"/proc/{pid}")) for pid in family(os.getpid()))


def _shared_out(process: Path) -> int:
    try:
        lines = (process / "smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def resident(field: str) -> int:
    """Bytes of this process that are resident now (`VmRSS`), or were at most (`VmHWM`)."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def forget_peak() -> None:
    """From here on the most that is resident (`VmHWM`) is counted anew, where the system lets a process do that."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def gained(base: int) -> int:
    """Bytes of this process at most beyond those that were resident before. The kernel counts pages on each processor
    and adds them up now and then, so a peak may read some pages below what was there: that is nothing gained.
    """
    return max(0, resident("VmHWM") - base)
