"""Looks while Spark is idle: again and again, also after one that failed, until the query ends."""

from __future__ import annotations

from contextlib import nullcontext
from threading import Event
from threading import enumerate as threads
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]  # it has no types

from tidegate.runtime.engines.spark.input import watching
from tidegate.runtime.engines.spark.input.watching import Watcher


def watchers() -> list[Any]:
    return [thread for thread in threads() if thread.name == "tidegate-watching"]


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("APART", "AGAIN", "ALIVE"):
        monkeypatch.setattr(watching, name, 0.001)


def test_a_look_that_fails_is_tried_again_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    looks, done = [], Event()

    def look(clock: bool) -> None:
        looks.append(clock)
        if len(looks) < 5:
            raise OSError("no")
        done.set()

    watch = Watcher(look, lambda: True, nullcontext())
    assert done.wait(60)
    watch.stop()
    assert not watchers()
    assert [record.getMessage() for record in caplog.records] == [
        "looking for what is new failed, and is tried again: OSError('no')"
    ]


def test_the_clock_goes_on_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "CLOCK", 0.05)
    looks: list[bool] = []
    done = Event()

    def look(clock: bool) -> None:
        looks.append(clock)
        if looks.count(True) == 2:
            done.set()

    watch = Watcher(look, lambda: True, nullcontext())
    assert done.wait(60)
    watch.stop()
    assert looks.count(True) < len(looks)


def test_a_look_that_waited_for_a_batch_does_not_put_off_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the batch took: what has come meanwhile is looked for as soon as ever."""
    now, done, looks = [0.0], Event(), list[bool]()
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: now[0]))

    class Idle(nullcontext[None]):
        def __enter__(self) -> None:
            now[0] += 1000.0  # a batch that runs for so long

    def look(clock: bool) -> None:
        looks.append(clock)
        if len(looks) == 3:
            done.set()

    watch = Watcher(look, lambda: True, Idle())
    assert done.wait(60)
    watch.stop()


@pytest.mark.parametrize("end", ["ended", "no JVM"])
def test_it_ends_with_the_query(end: str) -> None:
    def is_active() -> bool:
        if end == "no JVM":
            raise Py4JNetworkError
        return False

    Watcher(lambda _: None, is_active, nullcontext())
    for thread in watchers():
        thread.join(60)
    assert not watchers()


def test_a_look_may_stop_it() -> None:
    made: list[Watcher] = []
    ready = Event()

    def look(_: bool) -> None:
        assert ready.wait(60)
        made[0].stop()

    made.append(Watcher(look, lambda: True, nullcontext()))
    ready.set()
    for thread in watchers():
        thread.join(60)
    assert not watchers()
