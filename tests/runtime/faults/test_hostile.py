"""Names and values at their limits, as docs/reference/values.md states them, and secrets that nothing shows."""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.algebra.errors import QueryError, TidegateError
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.types import BIGINT
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGE = "x" * (1 << 20)
events = tg.stream("E", "k bigint, t timestamp, s string", progress="t")

#: Names that are taken as they are: what looks alike is not the same, and nothing in them is a command, a path or a
#: pattern.
NAMES = [
    "it's",
    'a "quoted" name',
    "back`tick",
    "back\\slash",
    "semi;colon -- comment",
    "${HOME} $(true) %s {0}",
    "/etc/passwd",
    "/",
    "a b",
    "select",
    "a*",
    "été",
    "ﬁ",
    "\u0430",  # Cyrillic, beside the Latin letter
    "a",
    "名前",
    "x" * 1000,
]
#: Names that do not print, so that a message or a listing could show something else than there is.
UNPRINTABLE = ["", "nul\0", "line\nbreak", "\x1b[31mred", "\u202eright to left", "zero\u200bwidth", "\ud800", "\u2028"]


def run_named(name: str, place: Path | None = None) -> list[dict[str, Any]]:
    """A program with the name wherever users choose one, run with a restart in between; its results."""
    schema = pa.schema([pa.field(name, pa.string()), pa.field("when", pa.int64())])
    e = tg.stream("E", schema, progress="when")
    counted = e.group_by(e[name], w=tg.ceil(e.when, 10)).agg(**{f"n {name}": tg.count()})
    made = tg.program(**{f"Out {name}": counted})
    with made.session(checkpoint=place) as session:
        session.push("E", [{name: name, "when": 1}, {name: "other", "when": 2}])
        if place is None:
            session.finish()
        session.step()
        if place is None:
            return session.results(f"Out {name}")
    with made.session(checkpoint=place) as session:
        session.finish()
        session.step()
        assert name in str(made.explain())
        return session.results(f"Out {name}")


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:20]))
def test_a_name_is_taken_as_it_is(name: str, tmp_path: Path) -> None:
    rows = run_named(name, tmp_path / "state")
    assert sorted(row[name] for row in rows) == sorted([name, "other"])
    assert all(row[f"n {name}"] == 1 for row in rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state"]


def test_a_dot_is_fine_where_it_cannot_be_a_prefix(tmp_path: Path) -> None:
    """In the name of a result, of which no path is made; in an attribute it would name a relation, and is refused."""
    made = tg.program(**{"../../out.parquet": tg.stream("E", "t bigint", progress="t")})
    with made.session(checkpoint=tmp_path / "a" / "b" / "state") as session:
        session.push("E", [(1,)])
        session.finish()
        session.step()
        assert session.results("../../out.parquet") == [{"t": 1}]
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["state"]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    with pytest.raises(QueryError, match="TG103"):
        tg.stream("E", pa.schema([("../x", pa.int64()), ("t", pa.int64())]), progress="t")


def test_names_that_look_alike_are_different() -> None:
    e = tg.stream("E", pa.schema([("a", pa.int64()), ("\u0430", pa.int64())]), progress="a")
    with tg.program(Out=e.select(e["\u0430"], e.a)).session() as session:
        session.push("E", [{"a": 1, "\u0430": 2}])
        session.finish()
        session.step()
        assert session.results("Out") == [{"\u0430": 2, "a": 1}]


@pytest.mark.parametrize("name", UNPRINTABLE, ids=ascii)
def test_a_name_that_does_not_print_is_refused_everywhere(name: str) -> None:
    """At once, and without printing it."""
    e = tg.stream("E", "k bigint, t bigint", progress="t")
    uses: list[Callable[[], object]] = [
        lambda: tg.stream("E", Schema((Attribute(name, BIGINT), Attribute("t", BIGINT))), progress="t"),
        lambda: tg.table("E", Schema((Attribute(name, BIGINT),))),
        lambda: tg.stream(name, "t bigint", progress="t"),
        lambda: tg.table(name, "t bigint"),
        lambda: tg.result(name, "t bigint", progress="t"),
        lambda: e.as_(name),
        lambda: e.select(**{name: e.k, "t": e.t}),
        lambda: e.with_(**{name: e.k}),
        lambda: e.rename(k=name),
        lambda: e.group_by(**{name: e.t}).agg(n=tg.count()),
        lambda: e.group_by(e.t).agg(**{name: tg.count()}),
        lambda: tg.program(**{name: e}),
        lambda: tg.result_of(name, e),
    ]
    for use in uses:
        with pytest.raises(QueryError, match="TG114") as caught:
            use()
        assert str(caught.value).replace("\n", "").isprintable()


@pytest.mark.parametrize("text", ["nul\0", "\u202eback", "\x1b[2J", "'; drop table x; --", "a\u0301", "\u00e1", LARGE])
def test_text_is_kept_as_it_is(text: str, tmp_path: Path) -> None:
    """As a value, as a key of groups and joins and in a condition, over a restart; not normalised."""
    a, b = events.as_("a"), events.as_("b")
    made = tg.program(
        Counted=events.group_by(events.s, w=tg.ceil(events.t, "1h")).agg(n=tg.count()),
        Chosen=events.where(events.s == text).select(events.k, events.t),
        Pairs=a.join(b, a.s == b.s, a.t < b.t, b.t <= a.t + tg.hours(1)).select(s=a.s, t=b.t),
    )
    with made.session(checkpoint=tmp_path / "state") as session:
        session.push("E", [(1, "2026-03-02T12:00Z", text), (2, "2026-03-02T12:00Z", "á or not")])
        session.step()
    with made.session(checkpoint=tmp_path / "state") as session:
        session.push("E", [(3, "2026-03-02T12:01Z", text)])
        session.finish()
        session.step()
        assert sorted((row["s"], row["n"]) for row in session.results("Counted")) == sorted(
            [(text, 1), (text, 1), ("á or not", 1)]
        )
        assert sorted(row["k"] for row in session.results("Chosen")) == [1, 3]
        assert [row["s"] for row in session.results("Pairs")] == [text]


def test_ten_thousand_columns() -> None:
    schema = pa.schema([("t", pa.int64()), *((f"c{i}", pa.int64()) for i in range(10_000))])
    wide = tg.stream("W", schema, progress="t")
    with tg.program(Out=wide).session() as session:
        session.push("W", pa.table({name: [1, 2] for name in schema.names}))
        session.finish()
        session.step()
        assert session.table("Out").arrow().shape == (2, 10_001)


# --- instants


def windows(*instants: Any, finish: bool = True) -> Session:
    made = tg.program(Out=events.group_by(w=tg.ceil(events.t, "1h")).agg(n=tg.count()))
    session = made.session(sources={"E": tg.source(None, delay="2d", skew_guard=None)})
    for at in instants:
        session.push("E", [(1, at, "")])
        session.step()
    if finish:
        session.finish()
        session.step()
    return session


def ends(*instants: Any) -> list[str]:
    with windows(*instants) as session:
        return [row["w"].isoformat() for row in session.results("Out")]


def test_the_first_and_the_last_years() -> None:
    """Instants count in ticks: the years 1 to 9999 and what lies two days before and after, as progress and as
    results.
    """
    assert ends("0001-01-01T00:00Z", "0001-01-01T00:00:00.000001Z") == [
        "0001-01-01T00:00:00+00:00",
        "0001-01-01T01:00:00+00:00",
    ]
    assert ends("9999-12-31T22:30Z") == ["9999-12-31T23:00:00+00:00"]
    with windows("0001-01-01T00:00Z", finish=False) as session:
        assert "ticks" in str(session.why("Out"))  # two days before the year 1
    with windows("9999-12-31T23:30Z") as session:
        (end,) = session.table("Out").arrow().column("w").cast(pa.int64()).to_pylist()
        assert end == 253_402_300_800_000_000  # the year 10000
        with pytest.raises(QueryError, match="TG405") as caught:
            session.results("Out")
        assert "table" in caught.value.hint


def test_instants_far_beyond_the_year_9999() -> None:
    """They come in tables only; accepted up to 2⁶¹ microseconds, rejected with their place, and never an accident."""
    far = pa.array([10**18, 10**18 - 10**15, 2**61 + 1, 10**18 + 1], pa.timestamp("us", "UTC"))
    with tg.program(Out=events).session(sources={"E": tg.source(None, delay="1d", skew_guard=None)}) as session:
        for number in range(4):
            session.push("E", pa.table({"k": [number], "t": far.slice(number, 1), "s": [""]}))
            session.step()
        session.finish()
        session.step()
        assert session.counts["E"].rejected == {"late": 1, "out of range": 1}
        assert session.table("Out").arrow().column("k").to_pylist() == [0, 3]
        assert sorted(row["reason"] for row in session.quarantine_rows()) == ["late", "out of range"]


def test_leap_days() -> None:
    assert ends("2024-02-29T12:30Z", "2000-02-29T00:00Z")[0] == "2024-02-29T13:00:00+00:00"
    with windows("2023-02-29T12:00Z", "2100-02-29T12:00Z", "1900-02-29T12:00Z", "1500-02-29") as session:
        assert session.counts["E"].rejected == {"unparseable": 4}


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("given", "hour"),
    [
        ("2026-03-29T02:30", 3),  # without a zone it is UTC, where no hour is missing
        ("2026-03-29T02:30:00+01:00", 2),
        (dt.datetime(2026, 3, 29, 2, 30, tzinfo=BERLIN), 2),  # an hour that Berlin leaves out, by the offset before it
        (dt.datetime(2026, 3, 29, 2, 30, tzinfo=BERLIN, fold=1), 1),  # and by the one after it
        ("2026-10-25T02:30:00+02:00", 1),
        (dt.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN), 1),  # the first of two such hours
        (dt.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1), 2),  # and the second
    ],
)
def test_hours_that_a_zone_leaves_out_or_has_twice(given: Any, hour: int) -> None:
    (end,) = ends(given)
    assert end[11:13] == f"{hour:02}"


# --- secrets


SECRET = "hunter2-not-to-be-shown"


def shown(error: TidegateError) -> str:
    told, cause = f"{error} {error!r} {error.problems}", error.__cause__
    return told + repr(cause)


@pytest.mark.parametrize(
    "place",
    [
        f"s3://key:{SECRET}@bucket/state",
        f"abfss://box@account.example/state?sig={SECRET}",
        f"https://user:{SECRET}@host/state#token={SECRET}",
        f"file://user:{SECRET}@host/state",
    ],
)
def test_secrets_in_locations_are_not_shown(place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Such locations are refused wherever one is given; the refusal names scheme and host, and nothing is made
    locally.
    """
    made = tg.program(Out=events)
    uses: list[Callable[[], object]] = [
        lambda: made.session(checkpoint=place),
        lambda: LocalStore(place),
        lambda: tg.parquet(place),
        lambda: tg.csv(place),
        lambda: tg.json(place),
        lambda: tg.parquet_sink(place),
        lambda: made.why(place, "Out"),
        lambda: made.session(sources={"E": place}),
    ]
    with caplog.at_level(logging.DEBUG):
        for use in uses:
            with pytest.raises(TidegateError, match="TG500") as caught:
                use()
            assert SECRET not in shown(caught.value)
        # Nor where a location stands in the place of something else.
        with pytest.raises(TidegateError, match="TG401") as caught:
            made.session(checkpoint=tmp_path, sinks={"Out": place})  # type: ignore[dict-item]  # that is the point
        assert SECRET not in shown(caught.value)
    assert SECRET not in caplog.text


@pytest.mark.long
@pytest.mark.spark
def test_secrets_in_options_are_not_shown(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Options of a DataFrame that is read are with Spark; neither a file of the checkpoint nor a message repeats
    them.
    """
    (tmp_path / "in").mkdir()
    reader = spark.readStream.schema("k bigint, t timestamp, s string").option("password", SECRET)
    source = tg.source(reader.json(str(tmp_path / "in")), delay="1h", on_error="fail")
    (tmp_path / "in" / "1.json").write_text('{"k": 1, "t": "2026-03-02T12:00:00Z", "s": "0"}\n')
    failing = events.select(events.t, x=events.s.cast("bigint").div(events.s.cast("bigint")))
    with caplog.at_level(logging.DEBUG, "tidegate"):
        for made in (tg.program(Out=events), tg.program(Failing=failing)):
            name = made.facts.queries[0].query.name
            query = made.start(
                spark, sources={"E": source}, checkpoint=tmp_path / name, advance={"E": {"t": float("inf")}}
            )
            with contextlib.suppress(TidegateError):
                query.awaitTermination()
            failure = query.exception()
            assert (failure is None) == (name == "Out")
            assert failure is None or SECRET not in f"{failure} {failure!r}"
            assert SECRET not in repr(query) + str(made.explain())
            for path in (tmp_path / name).rglob("*"):
                assert not path.is_file() or SECRET.encode() not in path.read_bytes()
            assert SECRET not in str(list_state(LocalStore(tmp_path / name)))
    assert SECRET not in caplog.text
    assert SECRET not in "".join(capfd.readouterr())
