"""The embedded session: fates of rows, progress, restart, sinks, garbage collection."""

from __future__ import annotations

import inspect
import itertools
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.algebra.errors import QueryError
from tidegate.runtime.batch.loop import _Step
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sinks import CallbackSink, DiscardSink, ParquetSink, Sink
from tidegate.runtime.connectors.sources import Files, Source, source
from tidegate.runtime.engines.embedded import file_polling
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.failpoints import SimulatedCrash, crash
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore

events = tg.stream("E", "k bigint, t bigint, v double", progress="t")
spans = tg.stream("S", "a bigint, b bigint", progress="a", relations=lambda s: s.a <= s.b)


def counted() -> tg.Program:
    """Events per key and window of ten, window ends included."""
    return tg.program(
        Counted=events.group_by(events.k, w=tg.ceil(events.t, 10)).agg(n=tg.count(), total=tg.sum(events.v))
    )


def silent() -> tg.Program:
    """Events with no event of the same key in the five ticks after."""
    a, b = events.as_("a"), events.as_("b")
    return tg.program(Silent=a.anti_join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 5).select(k=a.k, t=a.t))


def event(k: int, t: int | None, v: float = 1.0) -> dict[str, Any]:
    return {"k": k, "t": t, "v": v}


def rows(session: Session, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in session.results(name))


def test_windows_are_final_when_progress_reaches_their_end() -> None:
    with Session(counted().facts) as session:
        session.push("E", [event(1, 3), event(1, 10), event(1, 11)])
        session.advance("E", {"t": 9})
        session.step()
        assert rows(session, "Counted") == []
        session.advance("E", {"t": 10})
        session.step()
        assert rows(session, "Counted") == [(1, 10, 2, 2.0)]
        session.finish()
        session.step()
        assert rows(session, "Counted") == [(1, 10, 2, 2.0), (1, 20, 1, 1.0)]


@pytest.mark.parametrize("shift", [-10, 7])
def test_windows_named_by_another_instant_are_final_with_their_end(shift: int) -> None:
    grouped = events.group_by(w=tg.ceil(events.t, 10)).agg(n=tg.count())
    program = tg.program(Named=grouped.with_(named=grouped.w + shift).select("named", "n"))
    with Session(program.facts, options=RunOptions(collect_garbage="exact")) as session:
        session.push("E", [event(1, 3), event(1, 10), event(1, 11)])
        for reached, windows, live in ((9, 0, 2), (10, 1, 1), (19, 1, 1), (20, 2, 0)):
            session.advance("E", {"t": reached})
            report = session.step()
            assert len(rows(session, "Named")) == windows
            assert sum(report.live_rows.values()) == live
        assert rows(session, "Named") == [(10 + shift, 2), (20 + shift, 1)]


def test_a_row_at_progress_is_late_and_one_tick_later_is_not() -> None:
    with Session(counted().facts) as session:
        session.advance("E", {"t": 10})
        session.step()
        session.push("E", [event(1, 10), event(1, 11)])
        report = session.step()
    assert report.counts["E"].rejected == {"late": 1}
    assert report.counts["E"].accepted == 1
    assert session.quarantine_rows()[0]["reason"] == "late"


def test_the_declared_delay_leaves_ties_on_time() -> None:
    with Session(counted().facts, sources={"E": Source(None, delay=5)}) as session:
        session.push("E", [event(1, 20)])
        session.step()
        session.push("E", [event(1, 15), event(1, 14)])
        report = session.step()
    assert report.counts["E"].rejected == {"late": 1}  # 14 = 20 - 5 - 1


def test_malformed_rows_and_broken_relations_are_set_aside_with_a_reason() -> None:
    program = tg.program(Spans=spans)
    with Session(program.facts) as session:
        session.push(
            "S", [{"a": 1, "b": 2}, {"a": None, "b": 2}, {"a": 5, "b": 4}, {"a": "x", "b": 9}, {"a": 2**62, "b": 2**62}]
        )
        report = session.step()
        reasons = {row["position"]: row["reason"] for row in session.quarantine_rows()}
    counts = report.counts["S"]
    assert counts.accepted == 1
    assert counts.rows_in == 5 == counts.accepted + sum(counts.rejected.values())
    assert reasons[1] == "null"
    assert reasons[2] == "relation"
    assert set(reasons) == {1, 2, 3, 4}


def test_policy_fail_stops_the_batch_and_the_session_can_go_on() -> None:
    store = MemoryStore()
    session = Session(counted().facts, store, sources={"E": Source(None, policy="fail")})
    session.push("E", [event(1, None)])
    with pytest.raises(QueryError, match=r"TG410 (.|\n)*row 0 of push: t is null: "):
        session.step()
    session.close()
    with Session(counted().facts, store, sources={"E": Source(None, policy="fail")}) as again:
        again.push("E", [event(1, 5)])
        again.finish()
        again.step()
        assert rows(again, "Counted") == [(1, 10, 1, 1.0)]


def test_policy_drop_counts_without_storing() -> None:
    with Session(counted().facts, sources={"E": Source(None, policy="drop")}) as session:
        session.push("E", [event(1, None)])
        assert session.step().counts["E"].rejected == {"null": 1}
        assert session.quarantine_rows() == []


@pytest.mark.parametrize("collect", ["amortised", "exact", "off"])
def test_garbage_collection_changes_no_result(collect: Any) -> None:
    with Session(silent().facts, options=RunOptions(collect_garbage=collect)) as session:
        for t in range(0, 60, 3):
            session.push("E", [event(t % 2, t), event(7, t)])
            session.advance("E", {"t": t})
            session.step()
        live = sum(session.live_rows().values())
        session.finish()
        session.step()
        found = rows(session, "Silent")
    everything = [(t % 2, t) for t in range(0, 60, 3)] + [(7, t) for t in range(0, 60, 3)]
    expected = sorted((k, t) for k, t in everything if not any(k2 == k and t < t2 <= t + 5 for k2, t2 in everything))
    assert found == expected
    if collect == "exact":
        assert live <= 2 * 2 * 3
    if collect == "off":
        assert live == 40


def test_a_new_session_on_the_same_store_goes_on() -> None:
    store = MemoryStore()
    for t in range(0, 40, 4):
        with Session(silent().facts, store) as session:
            session.push("E", [event(1, t), event(t, t)])
            session.advance("E", {"t": t - 1})
            session.step()
    with Session(silent().facts, store) as session:
        session.finish()
        session.step()
        assert rows(session, "Silent") == sorted([(1, 36), *((t, t) for t in range(0, 40, 4))])


def test_another_program_is_refused_on_the_same_store() -> None:
    store = MemoryStore()
    with Session(silent().facts, store) as session:
        session.step()
    with pytest.raises(StateError, match="TG501"):
        Session(counted().facts, store)


def write(directory: Path, number: int, ts: list[int]) -> None:
    directory.mkdir(exist_ok=True)
    table = pa.table({"k": [1] * len(ts), "t": ts, "v": [1.0] * len(ts)})
    pq.write_table(table, directory / f"{number:03d}.parquet")


def test_a_bounded_directory_is_read_to_its_end_and_a_crash_reads_no_file_twice(tmp_path: Path) -> None:
    for number in range(6):
        write(tmp_path / "in", number, [number * 10 + 1, number * 10 + 5])
    files = source(Files(str(tmp_path / "in"), "parquet", per_batch=2), delay=3, bounded=True)
    store = LocalStore(tmp_path / "checkpoint")
    out = ParquetSink(str(tmp_path / "out"))
    session = Session(counted().facts, store, sources={"E": files}, sinks={"Counted": out})
    session.step()
    store.failpoints.arm("commit-after-manifest", crash)
    with pytest.raises(SimulatedCrash):
        session.step()
    session.close()
    store = LocalStore(tmp_path / "checkpoint")
    with Session(counted().facts, store, sources={"E": files}, sinks={"Counted": out}) as again:
        again.process()
        assert again.counts["E"].accepted == 12
        assert sorted(row["n"] for row in again.results("Counted")) == [2] * 6


def test_callbacks_get_new_rows_and_discarded_results_still_feed_queries() -> None:
    first = tg.result("First", "t bigint, k bigint", progress="t")
    a = first.as_("a")
    program = tg.program(
        tg.query(first, events.select(t=events.t, k=events.k)), Second=a.where(a.k == 1).select(t=a.t, k=a.k)
    )
    seen: list[tuple[int, int]] = []
    sinks: dict[str, Sink] = {
        "First": DiscardSink(),
        "Second": CallbackSink(lambda table, batch: seen.append((batch, table.num_rows))),
    }
    with Session(program.facts, sinks=sinks) as session:
        session.push("E", [event(1, 1), event(2, 2), event(1, 3)])
        session.advance("E", {"t": 2})
        session.step()
        session.finish()
        session.step()
    assert seen == [(1, 1), (2, 1)]


def test_results_of_static_tables_alone_are_there_after_the_first_batch() -> None:
    table = tg.table("T", "k bigint, name string")
    big = tg.result_of("Big", table.where(table.k > 1))
    b = big.as_("b")
    program = tg.program(Named=events.join(b, b.k == events.k).select(t=events.t, name=b.name))
    with Session(program.facts, statics={"T": [{"k": 1, "name": "one"}, {"k": 2, "name": "two"}]}) as session:
        session.push("E", [event(1, 1), event(2, 2)])
        session.finish()
        session.step()
        assert rows(session, "Big") == [(2, "two")]
        assert rows(session, "Named") == [(2, "two")]


def test_a_progress_column_speaks_for_its_stream() -> None:
    with Session(counted().facts, sources={"E": Source(None, progress_columns={"t": "upto"})}) as session:
        session.push("E", [event(1, 3) | {"upto": 2}, event(1, 12) | {"upto": 10}])
        session.step()
        assert rows(session, "Counted") == [(1, 10, 1, 1.0)]


def test_unknown_names_are_refused_with_those_that_exist() -> None:
    with pytest.raises(QueryError, match=r"TG402.*'X'"):
        Session(counted().facts, sources={"X": Source(None)})
    with Session(counted().facts) as session:
        with pytest.raises(QueryError, match="TG402"):
            session.push("X", [])
        with pytest.raises(QueryError, match="TG401"):
            session.advance("E", {"k": 3})
        with pytest.raises(QueryError, match="TG403"):
            session.advance("E", {"t": "soon"})


def test_a_file_that_changed_after_it_was_read_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, [1, 2])
    with Session(counted().facts, sources={"E": source(Files(str(tmp_path / "in"), "parquet"))}) as session:
        session.step()
        write(tmp_path / "in", 0, [1, 2, 3, 4])
        with pytest.raises(QueryError, match="TG411"):
            session.step()


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_text_files_are_judged_row_by_row(tmp_path: Path, format_: Any) -> None:
    (tmp_path / "in").mkdir()
    text = {
        "csv": "k,t,v\n1,3,0.5\n1,x,0.5\n1,2,3,4,5\n2,4,\n",
        "json": '{"k": 1, "t": 3, "v": 0.5}\n{"k": 1, "t": "x", "v": 0.5}\nno json\n{"k": 2, "t": 4}\n',
    }[format_]
    (tmp_path / "in" / f"a.{format_}").write_text(text)
    files = source(Files(str(tmp_path / "in"), format_), bounded=True)
    with Session(counted().facts, sources={"E": files}) as session:
        report = session.step()
        assert report.counts["E"].accepted == 2
        assert report.counts["E"].rejected == {"unparseable": 2}
        assert rows(session, "Counted") == [(1, 10, 1, 0.5), (2, 10, 1, None)]


def test_a_failing_term_names_query_source_and_row_and_the_session_goes_on_without_it() -> None:
    halves = tg.program(Halves=events.select(t=events.t, half=tg.lit(10).div(events.k)))
    with Session(halves.facts, sources={"E": source(None, on_error="fail")}) as session:
        session.push("E", [event(1, 1), event(2, 2), event(0, 3), event(4, 4)])
        with pytest.raises(QueryError, match=r"TG302.*E, row 2 of push") as raised:
            session.step()
        assert "half=tg.lit(10).div(events.k)" in str(raised.value)
        session.discard()
        session.push("E", [event(5, 5)])
        session.finish()
        session.step()
        assert rows(session, "Halves") == [(5, 2)]
    a, b = events.as_("a"), events.as_("b")
    joined = a.join(b, a.t == b.t, tg.lit(1).div(a.k - b.k) > 0).select(t=a.t)
    with Session(
        tg.program(Fine=events.select(t=events.t), Joined=joined).facts, options=RunOptions(on_error="fail")
    ) as session:
        session.push("E", [event(1, 1), event(1, 1)])
        session.finish()
        with pytest.raises(QueryError, match=r"TG302(.|\n)*in query +Joined"):
            session.step()
    joined = joined.as_("j")
    late = joined.partition_by(time="t").derive(Late=tg.situation(joined.t > 0)).Late
    counted = late.group_by(w=tg.tumbling(late.te, 5)).agg(n=tg.count())
    with tg.program(Counted=counted).session(on_error="fail") as session:  # a part of it has the term
        session.push("E", [event(1, 1)])
        session.finish()
        with pytest.raises(QueryError, match=r"TG302(.|\n)*in query +Counted\n"):
            session.step()


def test_a_broken_file_and_a_missing_directory_are_named(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="TG413"):
        counted().session(sources={"E": tg.parquet(tmp_path / "nowhere")})
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.parquet").write_bytes(b"no parquet")
    with Session(counted().facts, sources={"E": source(Files(str(tmp_path / "in"), "parquet"))}) as session:
        with pytest.raises(QueryError, match=r"TG412 .*a\.parquet"):
            session.step()
        (tmp_path / "in" / "a.parquet").unlink()
        assert session.step().counts["E"].rows_in == 0


def test_rows_of_a_wrong_shape_are_refused_where_they_are_pushed() -> None:
    with Session(counted().facts) as session:
        with pytest.raises(QueryError):
            session.push("E", [(1, 2)])
        session.push("E", [event(1, 1)])
        assert session.step().counts["E"].accepted == 1


def test_a_changed_query_is_refused_with_what_changed() -> None:
    store = MemoryStore()
    with Session(counted().facts, store) as session:
        session.step()
    other = tg.program(
        Counted=events.group_by(events.k, w=tg.ceil(events.t, 20)).agg(n=tg.count(), total=tg.sum(events.v))
    )
    with pytest.raises(StateError, match=r"ceil\(t, 20\)"):
        Session(other.facts, store)


def test_queries_in_another_order_are_the_same_program() -> None:
    """Buffers are numbered by what they hold, not as queries come."""
    near, far = (
        a.join(b, a.k == b.k, a.t <= b.t, b.t < a.t + 5).select(k=a.k, t=a.t)
        for a, b in ((events.where(events.v > least).as_("a"), events.as_("b")) for least in (0, 1))
    )
    store = MemoryStore()
    with Session(tg.program(Near=near, Far=far).facts, store) as session:
        session.push("E", [(1, 1, 0.5), (1, 2, 1.5)])
        session.step()
    with Session(tg.program(Far=far, Near=near).facts, store) as session:
        session.finish()
        session.step()
        assert [len(session.results(name)) for name in ("Near", "Far")] == [3, 1]


def test_files_that_were_read_wait_no_more(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text(f"k,t,v\n1,{number},1.0\n")
    with Session(tg.program(All=events).facts, sources={"E": tg.csv(tmp_path, per_batch=1)}) as session:
        waiting = [session.waiting_files()]
        for _ in range(3):
            session.step()
            waiting.append(session.waiting_files())
    assert waiting == [3, 2, 1, 0]


def test_files_that_were_read_are_in_no_batch_before_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look would find that they were read; batches between two looks take what the last one has left."""
    monkeypatch.setattr(file_polling, "_LOOKS_APART", float("inf"))
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text(f"k,t,v\n1,{number},1.0\n")
    batches = itertools.count(1)

    def reading_each_once(_: BatchReport) -> None:
        assert next(batches) == session.counts["E"].rows_in <= 3  # more batches of read files would have no end

    options = RunOptions(on_batch=reading_each_once)
    with Session(
        tg.program(All=events).facts, sources={"E": tg.csv(tmp_path, per_batch=1, delay=0)}, options=options
    ) as session:
        assert len(session.process()) == 3


def test_numbers_in_json_are_read_as_they_are_written(tmp_path: Path) -> None:
    money = tg.stream("M", "t bigint, amount decimal(18,2)", progress="t")
    (tmp_path / "in").mkdir()
    lines = ['{"t": 9007199254740993, "amount": 1234567890123456.78}', '{"t": 1.0, "amount": 0.125}']
    (tmp_path / "in" / "a.json").write_text("\n".join(lines))
    with Session(tg.program(Out=money).facts, sources={"M": tg.json(tmp_path / "in", bounded=True)}) as session:
        report = session.step()
        assert [(r["t"], str(r["amount"])) for r in session.results("Out")] == [
            (9007199254740993, "1234567890123456.78")
        ]
        assert report.counts["M"].rejected == {"inexact": 1}


def test_an_instant_beyond_the_calendar_is_rejected_and_set_aside() -> None:
    late = tg.stream("L", "k bigint, t timestamp", progress="t")
    with Session(tg.program(Out=late).facts) as session:
        session.push("L", pa.table({"k": [1, 2], "t": pa.array([2**62, 1], pa.timestamp("us"))}))
        assert session.step().counts["L"].rejected == {"out of range": 1}
        assert str(2**62) in session.quarantine_rows()[0]["row"]


def test_a_row_without_values_may_carry_progress() -> None:
    with Session(counted().facts, sources={"E": Source(None, progress_columns={"t": "upto"})}) as session:
        session.push("E", [event(1, 3) | {"upto": 2}])
        session.step()
        session.push("E", [{"k": None, "t": None, "v": None, "upto": 10}])
        counts = session.step().counts["E"]
        assert (counts.rows_in, counts.rejected, counts.punctuations) == (0, {}, 1)
        assert rows(session, "Counted") == [(1, 10, 1, 1.0)]


def test_directories_are_used_for_one_thing(tmp_path: Path) -> None:
    program = tg.program(A=events.select(t=events.t), B=events.select(t=events.t, k=events.k))
    same = ParquetSink(str(tmp_path / "out"))
    with pytest.raises(QueryError, match="TG409"):
        Session(program.facts, LocalStore(tmp_path / "c"), sinks={"A": same, "B": same})
    (tmp_path / "out").mkdir()
    with pytest.raises(QueryError, match="TG409"):
        Session(program.facts, LocalStore(tmp_path / "c"), {"E": tg.parquet(tmp_path / "out")}, sinks={"A": same})


def test_options_that_do_nothing_useful_are_refused(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="TG401"):
        tg.parquet(tmp_path, per_batch=0)
    with pytest.raises(QueryError, match="TG401"):
        Session(counted().facts, options=RunOptions(collect_garbage="bogus"))  # type: ignore[arg-type]  # that is the point
    with Session(counted().facts) as session, pytest.raises(QueryError, match="TG403"):
        session.advance("E", {"t": 2**70})


def test_a_failing_callback_says_that_the_batch_is_committed(tmp_path: Path) -> None:
    def fail(table: pa.Table, batch: int) -> None:
        raise ValueError("no room")

    store = LocalStore(tmp_path)
    session = Session(counted().facts, store, sinks={"Counted": CallbackSink(fail)})
    session.push("E", [event(1, 3)])
    session.finish()
    with pytest.raises(QueryError, match=r"TG414 batch 1 is committed.*no room"):
        session.step()
    session.close()
    seen: list[int] = []
    with Session(counted().facts, store, sinks={"Counted": CallbackSink(lambda table, batch: seen.append(batch))}):
        assert seen == [1]
    with Session(counted().facts, sinks={"Counted": CallbackSink(fail)}) as session:
        session.push("E", [event(1, 3)])
        session.finish()
        with pytest.raises(QueryError, match=r"TG414 in batch 1 the function .*no room") as caught:
            session.step()
        assert "open the checkpoint" not in caught.value.hint


def test_a_session_prints_as_what_it_is() -> None:
    with Session(counted().facts) as session:
        session.step()
        assert repr(session).splitlines() == [
            "session of Counted in memory, after batch 1",
            "  in    E        0 rows",
            "  out   Counted  nothing final yet",
            "  kept  E        0 partial aggregates",
        ]


def test_a_session_says_what_waits_for_a_step() -> None:
    with Session(counted().facts) as session:
        session.push("E", [(1, 1, 2.0)])
        assert repr(session).splitlines()[1] == "  in    E        0 rows; 1 row waits for step()"
        session.push("E", [(1, 2, 2.0)])
        assert repr(session).splitlines()[1] == "  in    E        0 rows; 2 rows wait for step()"
        session.step()
        assert repr(session).splitlines()[1] == "  in    E        2 rows, accepted"


def test_run_takes_a_directory_as_complete(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, [1, 2])
    assert counted().run({"E": tg.parquet(tmp_path / "in")}).rows("Counted") == [
        {"k": 1, "w": 10, "n": 2, "total": 2.0}
    ]


def test_what_is_no_sink_is_refused_before_anything_runs(tmp_path: Path) -> None:
    not_sinks: list[tuple[Any, str]] = [
        (print, "tg.callback(print)"),
        (tmp_path / "out", f"tg.parquet_sink('{tmp_path}/out')"),
        ("out", "tg.parquet_sink('out')"),
        (5, "tg.parquet_sink(directory)"),
    ]
    for sink, hint in not_sinks:
        with pytest.raises(QueryError, match=r"TG401 Counted: .* is no sink") as found:
            Session(counted().facts, LocalStore(tmp_path / "checkpoint"), sinks={"Counted": sink})
        assert hint in found.value.hint
    assert not (tmp_path / "checkpoint").exists()


def test_a_source_that_is_no_table_leaves_the_checkpoint_free(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="TG312"):
        Session(counted().facts, LocalStore(tmp_path), sources={"E": source(pa.table({"k": [1]}))})
    with Session(counted().facts, LocalStore(tmp_path), sources={"E": source([event(1, 5)])}) as session:
        assert session.step().counts["E"].accepted == 1


def test_queries_in_another_order_do_not_take_each_others_buffers(tmp_path: Path) -> None:
    """Buffers are numbered per stream by what they hold, so each query finds its own again."""
    a, b = events.as_("a"), events.as_("b")
    queries = {
        "Counted": events.where(events.k > 5).group_by(w=tg.ceil(events.t, 10)).agg(n=tg.count()),
        "Silent": a.anti_join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 5).select(k=a.k, t=a.t),
    }
    with tg.program(**queries).session(checkpoint=tmp_path) as session:
        session.push("E", [event(6, 1), event(7, 2)])
        session.step()
    with tg.program(**dict(reversed(queries.items()))).session(checkpoint=tmp_path) as session:
        session.finish()
        session.step()
        assert [row["n"] for row in session.results("Counted")] == [2]
        assert [row["t"] for row in session.results("Silent")] == [1, 2]


def test_queries_in_another_order_go_on_with_the_operator_that_they_share(tmp_path: Path) -> None:
    """Also with contexts that they look up at once."""
    model = tg.context_model("M", by="k", default="low", contexts="high").switch(
        "high", when=events.where(events.t % 3 == 0), within="low"
    )
    within = events.in_context(model, "high")
    queries = {
        "Numbered": events.over(by="k", order="t", n=tg.row_number()),
        "Before": events.over(by="k", order="t", before=tg.lag(events.t)),
        "Total": events.over(by="k", order="t", n=tg.sum(events.t)).where(events.k > 0),
        "Even": within.where(within.k % 2 == 0),
        "Odd": within.where(within.k % 2 == 1),
        "Above": within.where(within.k > 5),
    }
    with tg.program(**queries).session(checkpoint=tmp_path) as session:
        session.push("E", [event(6, 1), event(7, 3)])
        session.step()
    for order in (dict(reversed(queries.items())), dict(sorted(queries.items()))):
        with tg.program(**order).session(checkpoint=tmp_path) as session:
            session.step()
    with tg.program(**order).session(checkpoint=tmp_path) as session:
        session.push("E", [event(6, 9), event(7, 9)])
        session.finish()
        session.step()
        assert sorted((row["k"], row["t"], row["n"]) for row in session.results("Numbered")) == [
            (6, 1, 1), (6, 9, 2), (7, 3, 1), (7, 9, 2)
        ]  # fmt: skip
        assert sorted((row["k"], row["before"]) for row in session.results("Before") if row["before"]) == [
            (6, 1),
            (7, 3),
        ]
        assert [(row["k"], row["t"]) for row in session.results("Odd")] == [(7, 9)]
    fewer = {name: relation for name, relation in queries.items() if name != "Before"}
    with pytest.raises(StateError, match="TG501"):
        tg.program(**fewer).session(checkpoint=tmp_path)


def test_a_closed_session_takes_no_rows() -> None:
    session = counted().session()
    session.close()
    with pytest.raises(QueryError, match="TG416 this session is closed"):
        session.push("E", [event(1, 3)])
    with pytest.raises(QueryError, match="TG416 this session is closed"):
        session.step()


def test_one_row_as_a_mapping_is_told_from_columns() -> None:
    with (
        counted().session() as session,
        pytest.raises(QueryError, match="TG311 E: 'k' is a value, not a column: 1") as caught,
    ):
        session.push("E", event(1, 3))
    assert "one row is [{...}]" in str(caught.value)


def test_a_file_is_no_directory_for_results(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(StateError, match=r"TG500 .*/out is not a directory"):
        counted().session(sinks={"Counted": tg.parquet_sink(tmp_path / "out")}, checkpoint=tmp_path / "state")


@pytest.mark.parametrize(("one", "other"), [("new", "brand-new"), ("Both", None), ("A-B", "B"), ("1", "00001")])
def test_a_directory_is_read_once_whatever_the_queries_that_feed_it_are_called(
    tmp_path: Path, one: str, other: str | None
) -> None:
    """The name of one query may be a part of another's, or look like the number of a file."""
    e, f = (tg.stream(name, "k bigint, t bigint", progress="t") for name in ("E", "F"))
    both = tg.result("Both", "k bigint, t bigint", progress="t")
    second = tg.query(both, f) if other is None else tg.query(both, f, name=other)
    program = tg.program(tg.query(both, e, name=one), second)
    sinks = {"Both": tg.parquet_sink(tmp_path / "out")}
    with program.session(checkpoint=tmp_path / "state", sinks=sinks) as session:
        for n in (1, 2):
            session.push("E", [(n, n)])
            session.push("F", [(n + 10, n)])
            session.advance("E", {"t": n})
            session.advance("F", {"t": n})
            session.step()
        assert [row["k"] for row in session.results("Both")] == [1, 2, 11, 12]
        assert session.table("Both").arrow().num_rows == 4


def test_directories_of_results_are_durable_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries: set[Path] = set()
    fsync = os.fsync

    def recording(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_dir():
            entries.update(path.iterdir())

    (tmp_path / "there").mkdir()  # made by a process that may have died before it was synced
    monkeypatch.setattr(os, "fsync", recording)
    out = tmp_path / "there" / "results" / "out"
    counted().session(sinks={"Counted": tg.parquet_sink(out)}, checkpoint=tmp_path / "state").close()
    assert {tmp_path / "there", out.parent, out} <= entries


def test_memory_that_is_refused_names_the_step() -> None:
    seconds: dict[str, float] = {}
    with pytest.raises(StateError, match="in its step 'collect'"), _Step("collect", seconds):
        raise MemoryError
    with pytest.raises(KeyError), _Step("collect", seconds):
        raise KeyError("another error")
    with _Step("commit", seconds):
        assert seconds.keys() == {"collect"}
    assert seconds.keys() == {"collect", "commit"}


@pytest.mark.parametrize("shown", [tg.Session, tg.Program, tg.RunningQuery])
def test_what_editors_complete_is_methods_and_properties(shown: type) -> None:
    """What a run is made of is private: neither completed nor named by hints."""
    public = {name: value for name, value in vars(shown).items() if not name.startswith("_")}
    assert [name for name, one in public.items() if not (inspect.isfunction(one) or isinstance(one, property))] == []


def test_hints_name_nothing_that_is_private() -> None:
    with tg.program(Copy=events).session() as session:
        assert not {"store", "facts", "sources", "clock", "purging"} & set(dir(session))
        with pytest.raises(tg.QueryError, match=r"TG131 a Session has no 'store'") as found:
            session.store  # type: ignore[attr-defined]  # what it is refused for
    assert "facts" not in found.value.hint
