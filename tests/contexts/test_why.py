"""Why a query in a context has no rows: where its context holds, and what holds instead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tidegate as tg
from tests.contexts.traffic import program
from tidegate import testing
from tidegate.runtime.inspect import suspension

MINUTES = [(1, 10, 60, 30.0), (2, 10, 60, 30.0), (2, 20, 10, 60.0), (3, 12, 60, 30.0)]


def lines(text: str) -> list[str]:
    """What is said of contexts."""
    kept, on = [], False
    for line in text.splitlines():
        on = line.lstrip().startswith(("in context", "suspended")) or (on and not line[2:3].strip())
        kept += [re.sub(" {2,}", "  ", line.strip())] if on else []
    return kept


def test_where_a_query_is_suspended(tmp_path: Path) -> None:
    with program().session(checkpoint=tmp_path) as session:
        assert lines(str(session.why("Toll"))) == []
        session.push("Minutes", MINUTES)
        session.push("Stopped", [(2, 21, 7, False), (4, 5, 7, False)])
        session.advance("Minutes", 30)
        session.advance("Stopped", 30)
        session.step()
        told = lines(str(session.why("Toll")))
        assert told == [
            "in context  congestion has held since 10 where segment = 1",
            "congestion has held since 12 where segment = 3",
            "suspended  no context congestion where segment = 4: accident has held since 5",
            "no context congestion where segment = 2: accident has held since 21",
            "no context congestion in every other partition: clear has held since ever",
        ]
        assert lines(str(session.why("Toll", {"time": 40}))) == told
        assert lines(str(session.why("Free"))) == lines(str(session.why("Accidents"))) == []
    assert lines(str(program().why(tmp_path, "Toll"))) == told


def test_the_default_since_an_instant(tmp_path: Path) -> None:
    with program().session(checkpoint=tmp_path) as session:
        session.push("Minutes", MINUTES[1:3])
        session.advance("Minutes", 30)
        session.advance("Stopped", 30)
        session.step()
        assert lines(str(session.why("PerWindow"))) == [
            "suspended  no context congestion where segment = 2: clear has held since 20",
            "no context congestion in every other partition: clear has held since ever",
        ]


def test_many_partitions_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with program().session(checkpoint=tmp_path) as session:
        session.push("Minutes", [(segment, 10, 60, 30.0) for segment in range(8)])
        session.push("Stopped", [(segment, 10, 7, False) for segment in range(20, 27)])
        session.advance("Minutes", 30)
        session.advance("Stopped", 30)
        session.step()
        text = str(session.why("Toll"))
        assert "… and in 3 more partitions" in text
        assert "… and in 2 more partitions" in text
        monkeypatch.setattr(suspension, "MOST_WINDOWS", 14)
        assert lines(str(session.why("Toll"))) == [
            "suspended  where no context congestion holds: Traffic has 15 windows that hold"
        ]
        session.finish()
        session.step()
        assert lines(str(session.why("Toll"))) == []


def test_without_partitions_there_are_no_others(tmp_path: Path) -> None:
    events = tg.stream("Events", "time bigint, on boolean", progress="time")
    model = tg.context_model("Switch", by=(), default="off", contexts="on").initiate("on", when=events.where(events.on))
    told = tg.program(Q=events.in_context(model, "on"))
    with told.session(checkpoint=tmp_path) as session:
        session.push("Events", [(1, False)])
        session.advance("Events", 1)
        session.step()
        assert lines(str(session.why("Q"))) == ["suspended  no context on: off has held since ever"]
        session.push("Events", [(2, True)])
        session.advance("Events", 2)
        session.step()
        assert lines(str(session.why("Q"))) == ["in context  on has held since 2"]


@pytest.mark.spark
@pytest.mark.long
def test_on_spark(spark: object) -> None:
    with testing.drive(program(), spark=spark) as run:  # type: ignore[arg-type]  # a session
        run.add("Minutes", MINUTES)
        run.advance("Minutes", end=30)
        run.advance("Stopped", time=30)
        run.step()
        assert "congestion has held since 10 where segment = 1" in str(run.why("Toll"))
