"""What is open when the input ends, closed at an instant that the user states: once, and as one more event would do
it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import tidegate as tg
from tests.properties.engines import as_given
from tests.runtime.conftest import EITHER, Start
from tests.strategies.situations import random_situation_case
from tidegate.algebra.errors import QueryError, TidegateError
from tidegate.algebra.semantics import as_bag, evaluate_program
from tidegate.analysis.pipeline import analyse
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.plan.lower import lower
from tidegate.runtime.plan.operator_state import queries_that_keep
from tidegate.runtime.state.store.memory import MemoryStore

readings = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")
found = readings.partition_by("k").derive(
    High=tg.situation(readings.x > 4, top=tg.max(readings.x)), Low=tg.situation(readings.x < 2, at_least=3)
)
EVENTS = [(1, 0, 9), (1, 3, 0), (2, 1, 7), (2, 2, 5)]


def test_open_situations_end_there() -> None:
    program = tg.program(High=found.High, Low=found.Low)
    open_ = program.run({"R": EVENTS})
    closed = program.run({"R": EVENTS}, close_at=6)
    assert [row["te"] for row in open_.rows("High")] == [3]
    assert sorted(row["te"] for row in closed.rows("High")) == [3, 6]
    assert [(row["ts"], row["te"]) for row in closed.rows("Low")] == [(3, 6)]
    assert not program.run({"R": EVENTS}, close_at=5).rows("Low")  # too short by one


def test_matches_that_this_completes() -> None:
    program = tg.program(M=tg.match(found.High.meets(found.Low), within=20, emission="final"))
    assert not program.run({"R": EVENTS}).rows("M")
    (row,) = program.run({"R": EVENTS}, close_at=8).rows("M")
    assert (row["High.ts"], row["Low.te"], row["detected"]) == (0, 8, 8)


def test_it_is_recorded_and_happens_once(tmp_path: Path) -> None:
    program = tg.program(High=found.High)
    with program.session(checkpoint=tmp_path / "state") as run:
        run.push("R", EVENTS)
        run.step()
        run.finish(close_at=6)
        run.step()
        assert len(run.results("High")) == 2
    with program.session(checkpoint=tmp_path / "state") as run:
        run.finish(close_at=6)
        run.step()
        assert len(run.results("High")) == 2
        with pytest.raises(QueryError, match="TG417"):
            run.finish(close_at=7)


def test_refused_where_it_makes_no_sense() -> None:
    others = tg.stream("O", "k bigint, u bigint", progress="u").rename(k="j")
    earlier = readings.over(by="k", order="t", before=tg.lag(readings.x))
    queries = {"Kept": readings.where(readings.x > 3), "Earlier": earlier}
    with pytest.raises(QueryError, match="TG417 nothing can be open: the program has no operator that leaves rows"):
        tg.program(**queries, Last=readings.asof_join(others, by=[("k", "j")])).run({"R": EVENTS, "O": []}, close_at=9)
    program = tg.program(High=found.High)
    with program.session() as run:
        with pytest.raises(QueryError, match="TG417"):
            run.finish("R", close_at=9)
        with pytest.raises(QueryError, match=r"^TG403 close_at: 'soon' is no instant of type bigint"):
            run.finish(close_at="soon")
        with pytest.raises(QueryError, match="TG417"):
            run.finish(close_at=float("inf"))
        run.push("R", EVENTS)
        run.finish(close_at=2)  # an event is at 2
        with pytest.raises(TidegateError, match="TG417"):
            run.step()
        run.discard()
        run.push("R", EVENTS)
        run.finish()
        run.step()
        with pytest.raises(QueryError, match="TG417"):
            run.finish(close_at=9)


@pytest.mark.parametrize("place", [None, "commit-before-manifest", "commit-after-manifest"])
def test_on_either_engine(start: Start, place: str | None) -> None:
    """What is open is closed in the batch with the end, also where that dies, and never before."""
    matched = tg.match(found.High.meets(found.Low), within=20, emission="final")
    with start(tg.program(High=found.High, M=matched), sources={"R": tg.source(None, delay=0)}) as run:
        run.add("R", EVENTS)
        run.advance("R", t=3)
        run.close_open(5)
        run.step()
        run.restart()
        run.expect(High=[(1, 0, 3, 9)], M=[])
        run.add("R", [(2, 4, 8), (3, 5, 1)])
        run.finish(close_at=9)
        if place is not None:
            run.kill(place)
        run.step()
        run.expect(High=[(2, 1, 9, 8)], M=[(1, 0, 3, 9, 3, 9, 9)])
        assert run.live_rows == {"R#0": 0, "High: situations": 0, "M: situations": 0}
        run.finish(close_at=9)
        run.step()
        run.expect(High=[], M=[])


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_the_instant_is_judged_on_either_engine(start: Start) -> None:
    with start(tg.program(High=found.High)) as run:
        with pytest.raises(QueryError, match="TG417 close_at is about the end of all streams"):
            run.finish("R", close_at=9)
        run.add("R", EVENTS)
        run.advance("R", t=50)
        run.finish(close_at=50)
        with pytest.raises(
            TidegateError,
            match=r"TG417 High: .* at 50: High is final up to te = 50\n.*R\.t has come to 50.*\n.*at 51 or later",
        ):
            run.step()
        run.close_open(51)
        run.step()
        run.expect(High=[(1, 0, 3, 9), (2, 1, 51, 7)])
        run.close_open(52)
        with pytest.raises(TidegateError, match="TG417 the streams have ended before"):
            run.step()


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tidegate.runtime.cli.commands import main

    (tmp_path / "r.csv").write_text("k,t,x\n" + "".join(f"{k},{t},{x}\n" for k, t, x in EVENTS))
    query = "FROM R PARTITION BY k DEFINE H AS x > 4, L AS x < 2 PATTERN H meets L WITHIN 20 EMIT final"
    (tmp_path / "q.tps").write_text(query)
    asked = ["run", "--query", f"{tmp_path}/q.tps", "--input", f"R={tmp_path}/r.csv", "--time", "t"]
    assert main([*asked, "--schema", "k bigint, t bigint, x bigint", "--close-open", "8"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "1,0,3,3,8,8"


def test_like_one_more_event_for_which_nothing_is_true() -> None:
    checked = sum(map(_is_like_one_more_event, range(60)))
    assert checked > 20


def _is_like_one_more_event(seed: int, at: int = 100) -> bool:
    """Whether the case of a seed is one that says something; fails where closing is anything else."""
    case = random_situation_case(seed)
    try:
        facts = analyse(case.program)
    except QueryError:
        return False
    if not queries_that_keep(lower(facts)):
        return False
    complete: dict[str, list[tuple[object, ...]]] = {}
    for stream in case.streams:
        names = stream.schema.names
        rows = [tuple(row[name] for name in names) for row in case.rows[stream.name]]
        if "t" in names:
            last = {"t": at, "n": 1000, "x": None, "y": None}
            rows += [tuple({"k": key, **last}[name] for name in names) for key in {row[0] for row in rows}]
        complete[stream.name] = rows
    expected = evaluate_program(case.program, complete)  # type: ignore[arg-type]  # values of generated rows
    with Session(facts, MemoryStore()) as run:
        for stream in case.streams:
            run.push(stream.name, [as_given(row, stream.schema) for row in case.rows[stream.name]])
        run.finish(close_at=at)
        run.step()
        for name, wanted in expected.items():
            found = [tuple(row.values()) for row in run.table(name).arrow().to_pylist()]
            assert as_bag(found) == as_bag(wanted), (seed, name)
    return True
