"""With several threads, large states and some of the segments of a batch are written beside other steps."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tidegate.runtime.ordered import operators
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.packs import PackWriter

readings = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")
other = tg.stream("S", "k bigint, t bigint", progress="t")
WRITER = "tidegate-writer"


def program() -> tg.Program:
    """An operator that keeps a row a key, and two buffers of rows that wait for others."""
    running = readings.over(by="k", order="t", total=tg.sum(readings.x))
    a, b = readings.as_("a"), other.as_("b")
    pairs = a.join(b, a.k == b.k, b.t >= a.t - 20, b.t <= a.t + 20).select(k=a.k, t=a.t, u=b.t)
    return tg.program(Running=running, Pairs=pairs)


def before_writes(monkeypatch: pytest.MonkeyPatch, called: Callable[[str], None]) -> None:
    """Has it called with the path of each file before that is written."""
    for name in ("write_table", "write_bytes"):
        original = getattr(LocalStore, name)

        def writing(self: LocalStore, path: str, *given: Any, of: Any = original, **more: Any) -> Any:
            called(path)
            return of(self, path, *given, **more)

        monkeypatch.setattr(LocalStore, name, writing)


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What was written in files of its own: the area, and by which thread."""
    seen: list[tuple[str, str]] = []

    def note(path: str) -> None:
        seen.append((path.partition("/")[0], threading.current_thread().name.partition("_")[0]))

    before_writes(monkeypatch, note)
    monkeypatch.setattr(operators, "MANY", 0)
    monkeypatch.setattr(PackWriter, "takes", lambda *_: False)
    return seen


def give(session: tg.Session, batch: int) -> None:
    """Ten rows of either stream, and that there are no others up to the last one."""
    times = range(10 * batch, 10 * batch + 10)
    session.push("R", [(t % 3, t, t) for t in times])
    session.push("S", [(t % 3, t) for t in times])
    for name in ("R", "S"):
        session.advance(name, times[-1])


def run(place: Path, threads: int) -> dict[str, list[str]]:
    for batch in range(4):
        with program().session(checkpoint=place, threads=threads) as session:
            for step in range(2):
                give(session, 2 * batch + step)
                session.step()
            found = {name: sorted(map(str, session.results(name))) for name in ("Running", "Pairs")}
    return found


def test_states_and_segments_are_written_beside(tmp_path: Path, writes: list[tuple[str, str]]) -> None:
    beside = run(tmp_path / "2", 2)
    assert {("packs", WRITER), ("segments", WRITER), ("segments", "MainThread")} <= set(writes)
    assert ("packs", "MainThread") not in writes
    writes.clear()
    assert run(tmp_path / "1", 1) == beside
    assert {thread for _, thread in writes} == {"MainThread"}
    assert all(beside.values())


@pytest.mark.parametrize("area", ["packs", "segments"])
@pytest.mark.usefixtures("writes")
def test_a_batch_fails_if_what_is_written_beside_does(
    tmp_path: Path, area: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = [True]

    def fail(path: str) -> None:
        if full and path.startswith(area) and threading.current_thread().name.startswith(WRITER):
            full.clear()
            raise OSError(errno.ENOSPC, "no space left")

    with program().session(checkpoint=tmp_path / "state", threads=2) as session:
        give(session, 0)
        before_writes(monkeypatch, fail)
        with pytest.raises(StateError, match="no space left"):
            session.step()
        assert not full
        assert session.step().counts["R"].accepted == 10
        assert len(session.results("Running")) == 10


def test_threads_end_with_the_session(tmp_path: Path) -> None:
    run(tmp_path / "state", 2)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(WRITER)]
