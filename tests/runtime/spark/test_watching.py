"""Looks while Spark is idle: again and again, also after one that failed, until the query ends."""

from __future__ import annotations

from threading import Event
from threading import enumerate as threads
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

    watch = Watcher(look, lambda: True)
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

    watch = Watcher(look, lambda: True)
    assert done.wait(60)
    watch.stop()
    assert looks.count(True) < len(looks)


@pytest.mark.parametrize("end", ["ended", "no JVM"])
def test_it_ends_with_the_query(end: str) -> None:
    def is_active() -> bool:
        if end == "no JVM":
            raise Py4JNetworkError
        return False

    Watcher(lambda _: None, is_active)
    for thread in watchers():
        thread.join(60)
    assert not watchers()


def test_a_look_may_stop_it() -> None:
    made: list[Watcher] = []
    ready = Event()

    def look(_: bool) -> None:
        assert ready.wait(60)
        made[0].stop()

    made.append(Watcher(look, lambda: True))
    ready.set()
    for thread in watchers():
        thread.join(60)
    assert not watchers()
