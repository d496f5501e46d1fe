"""What changed between two runs on a checkpoint: another program is refused and changes nothing, another engine goes
on.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.runtime.faults.scenarios import again, go_on, outcome, scenario, undisturbed
from tests.runtime.state.toy import Place
from tidegate.runtime.engines import setup
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.errors import PROGRAM, StateError
from tidegate.runtime.state.failpoints import crash
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = [{"k": k, "name": f"name {k}"} for k in range(3)]


def program(
    schema: str = "k bigint, t bigint, v bigint",
    *,
    progress: str = "t",
    relations: Callable[[tg.Relation], Any] | tuple[()] = (),
    window: int = 10,
    named: str = "Out",
    total: bool = True,
    more: bool = False,
) -> tg.Program:
    e, n = tg.stream("E", schema, progress=progress, relations=relations), tg.table("N", "k bigint, name string")
    a, b = e.as_("a"), n.as_("b")
    joined = a.join(b, a.k == b.k).select(t=a.t, v=a.v, name=b.name)
    sums = {"total": tg.sum(joined.v)} if total else {}
    found = {named: joined.group_by(joined.name, w=tg.ceil(joined.t, window)).agg(n=tg.count(), **sums)}
    return tg.program(**found, **({"More": e.select(t=e.t)} if more else {}))


def run(made: tg.Program, place: Path, names: Any = NAMES, key: tuple[str, ...] = (), rows: int = 1) -> list[Any]:
    sources = {"E": tg.source(None, delay=5, key=key)}
    with Session(made.facts, LocalStore(place, sync=False), sources, {"N": names}) as session:
        for number in range(rows):
            session.push("E", [{"k": number % 3, "t": number * 7, "v": 1}])
            session.step()
        if not rows:
            session.finish()
            session.step()
        return sorted(map(str, session.results(session._plan.queries[0].stream)))


CHANGES: dict[str, tuple[Callable[[], tg.Program], dict[str, Any]]] = {
    "an attribute more": (lambda: program("k bigint, t bigint, v bigint, x bigint"), {}),
    "an attribute of another type": (lambda: program("k bigint, t bigint, v double"), {}),
    "an attribute that may not be NULL": (lambda: program("k bigint not null, t bigint, v bigint"), {}),
    "attributes in another order": (lambda: program("t bigint, k bigint, v bigint"), {}),
    "another relation of instants": (
        lambda: program("k bigint, t bigint, v bigint, u bigint", relations=lambda e: e.t <= e.u),
        {},
    ),
    "another window": (lambda: program(window=20), {}),
    "another name": (lambda: program(named="Other"), {}),
    "an aggregate less": (lambda: program(total=False), {}),
    "another query more": (lambda: program(more=True), {}),
    "other rows of a static table": (program, {"names": NAMES[:2]}),
    "a key": (program, {"key": ("k", "t")}),
}


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_a_changed_program_is_refused_and_the_old_one_goes_on(change: str, tmp_path: Path) -> None:
    made, options = CHANGES[change]
    run(program(), tmp_path / "state", rows=4)
    store = LocalStore(tmp_path / "state")
    before = {path: store.read_bytes(path) for path in store.list_files("") if path != "lock"}
    with pytest.raises(StateError) as caught:
        run(made(), tmp_path / "state", **options)
    assert caught.value.code == PROGRAM
    assert caught.value.problems[0].because
    assert caught.value.hint
    assert {path: store.read_bytes(path) for path in store.list_files("") if path != "lock"} == before
    run(program(), tmp_path / "other", rows=4)
    assert run(program(), tmp_path / "state", rows=0) == run(program(), tmp_path / "other", rows=0)


def test_another_version_goes_on_in_the_same_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """The format has a version of its own; that of the package is only told when a program differs."""
    name = "chain of queries"
    store = MemoryStore()
    go_on(scenario(name), store, until=3)
    monkeypatch.setattr(setup, "VERSION", "99.0")
    go_on(scenario(name), again(store))
    assert outcome(scenario(name), store) == undisturbed(name)


@pytest.fixture
def elsewhere() -> Iterator[Callable[[str], None]]:
    """Moves this process to another time zone, and back in the end."""
    before = os.environ.get("TZ")

    def move(zone: str | None) -> None:
        os.environ.pop("TZ", None)
        if zone is not None:
            os.environ["TZ"] = zone
        time.tzset()

    yield move
    move(before)


def test_another_time_zone_changes_nothing(elsewhere: Callable[[str], None]) -> None:
    """Instants in text, of datetimes without a zone, dates and windows mean the same wherever a run goes on."""
    e = tg.stream("E", "t timestamp, day date", progress="t")
    made = tg.program(
        Out=e.group_by(w=tg.ceil(e.t, "1h"), day=e.t.to_date()).agg(n=tg.count(), last=tg.max(e.day)),
    )
    answers = []
    for zones in (["UTC"] * 4, ["Asia/Kathmandu", "America/New_York", "Pacific/Apia", "Europe/Berlin"]):
        place = Place(None)
        for number, zone in enumerate(zones):
            elsewhere(zone)
            with Session(made.facts, place.store()) as session:
                session.push(
                    "E",
                    [(f"2026-03-29T0{number}:30", "2026-03-29"), (f"2026-03-29T0{number}:30:00+05:45", "2026-03-28")],
                )
                if number == 3:
                    session.finish()
                session.step()
                answers.append(sorted(map(str, session.results("Out"))))
    assert answers[:4] == answers[4:]
    assert answers[3]


# --- one engine after the other


def write(directory: Path, numbers: range) -> None:
    directory.mkdir(exist_ok=True)
    for number in numbers:
        path = directory / f"{number:03d}.parquet"
        rows = [{"k": (number + i) % 3, "t": number * 10 + i * 3, "v": i} for i in range(4)]
        pq.write_table(pa.Table.from_pylist([*rows, {"k": 1, "t": None, "v": 0}]), path)
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def go_embedded(place: Path, *, bounded: bool = False, store: LocalStore | None = None) -> None:
    source = tg.parquet(place / "in", per_batch=1, delay=4, bounded=bounded)
    sinks = {"Out": tg.parquet_sink(place / "out")}
    at = store or LocalStore(place / "state")
    with Session(program().facts, at, {"E": source}, {"N": NAMES}, sinks) as session:
        session.process()


def go_spark(spark: SparkSession, place: Path, *, driver_bytes: int, store: LocalStore | None = None) -> None:
    source = tg.parquet(place / "in", per_batch=1, delay=4)
    sinks = {"Out": tg.parquet_sink(place / "out")}
    query = program().start(
        spark,
        sources={"E": source},
        statics={"N": NAMES},
        sinks=sinks,
        checkpoint=store or place / "state",
        driver_bytes=driver_bytes,
    )
    query.awaitTermination()


def found(place: Path) -> tuple[list[str], dict[str, Any]]:
    rows = [row for path in (place / "out").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    manifest = inspect(LocalStore(place / "state")).manifest
    assert manifest is not None
    return sorted(map(str, rows)), dict(manifest.counts)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("where", [None, "commit-before-manifest", "commit-after-manifest"])
def test_a_run_changes_engines_again_and_again(spark: SparkSession, tmp_path: Path, where: str | None) -> None:
    """Spark, embedded, Spark, embedded, each over new files; stopped in order, or by a crash in the second of its
    batches.
    """
    for number in range(4):
        write(tmp_path / "in", range(number * 3, number * 3 + 3))
        store = LocalStore(tmp_path / "state")
        if where is not None:
            store.failpoints.arm(where, crash, skip=1)
        try:
            if number % 2:
                go_embedded(tmp_path, store=store)
            else:
                go_spark(spark, tmp_path, driver_bytes=0, store=store)
        except BaseException as failure:
            if where is None or "SimulatedCrash" not in repr(failure):
                raise
    go_embedded(tmp_path, bounded=True)
    (tmp_path / "whole").mkdir()
    write(tmp_path / "whole" / "in", range(12))
    go_embedded(tmp_path / "whole", bounded=True)
    assert found(tmp_path) == found(tmp_path / "whole")


def test_the_order_of_queries_is_no_change(tmp_path: Path) -> None:
    """Three queries over one stream: two share a buffer and want its columns in different order, two have their own."""
    e = tg.stream("E", "k bigint, t bigint, v bigint, u bigint", progress=("t", "u"))
    a, b = e.as_("a"), e.as_("b")
    near = (a.k == b.k, a.t < b.t, b.t <= a.t + 5, a.u <= b.u, b.u <= a.u + 5)
    queries = {
        "Counted": e.group_by(w=tg.ceil(e.t, 10)).agg(n=tg.count()),
        "Alone": a.anti_join(b, *near).select(u=a.u, v=a.v, t=a.t),
        "Large": a.where(a.v > 1).anti_join(b, *near, b.v > a.v).select(t=a.t, u=a.u),
    }

    def go_on(names: list[str], number: int, place: Path) -> list[str]:
        made = tg.program(**{name: queries[name] for name in names})
        with made.session(checkpoint=place) as session:
            session.push("E", [(k, number * 4 + k, k, number * 3) for k in range(4)])
            if number == 3:
                session.finish()
            session.step()
            return sorted(str((name, row)) for name in names for row in session.results(name))

    orders = [list(order) for order in itertools.permutations(queries)]
    assert len({tg.program(**{n: queries[n] for n in order}).explain().lowered().fingerprint for order in orders}) == 1
    for number in range(4):
        whole = go_on(orders[0], number, tmp_path / "whole")
        mixed = go_on(orders[-1 - number], number, tmp_path / "mixed")
        assert mixed == whole
    assert whole


def test_the_order_of_what_follows_from_tables_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    names = tg.table("N", "k bigint")
    made, given = tg.program(Known=names.distinct()), {"N": [(1,), (2,), (3,)]}
    derived = setup._static_results
    store = MemoryStore()
    Session(made.facts, store, statics=given).close()
    monkeypatch.setattr(setup, "_static_results", lambda *of: {n: f.reverse() for n, f in derived(*of).items()})
    with Session(made.facts, store, statics=given) as session:
        session.step()
        assert sorted(row["k"] for row in session.results("Known")) == [1, 2, 3]
