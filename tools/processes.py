"""Processes as Linux tells of them: which ones a process has started, what they are, and what they took."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def family(pid: int) -> list[int]:
    """A process, those that it has started, and those that they have; who ends meanwhile is left out."""
    found = [pid]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found += map(int, children.read_text(encoding="ascii").split())
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def descendants(pid: int) -> list[int]:
    """`family` without the process itself."""
    return family(pid)[1:]


def command_line(pid: int) -> bytes:
    """The command line of a process; none where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU time of processes that still run, with all their threads."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def open_descriptors(pids: Iterable[int]) -> int:
    """The descriptors that processes which still run have open; those of other users' processes do not count."""
    found = 0
    for pid in pids:
        try:
            found += len(os.listdir(f"/proc/{pid}/fd"))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def resident_bytes(pids: Iterable[int]) -> int:
    """Memory that processes which still run have resident; what they share counts for each."""
    pages = 0
    for pid in pids:
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE")
