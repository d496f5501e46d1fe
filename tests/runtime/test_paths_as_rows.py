"""A path given where rows are: it is read by what its name says, or the error says how to write it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import polars as pl
import pytest

import tidegate as tg

events = tg.stream("E", "n bigint, t bigint", progress="t")
kinds = tg.table("K", "n bigint, kind string")
program = tg.program(All=events.select("n", "t"))
FRAME = pl.DataFrame({"n": [1, 2], "t": [1, 2]})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for folder in ("parquet", "csv", "mixed"):
        (tmp_path / folder).mkdir()
    FRAME.write_parquet(tmp_path / "parquet" / "1.parquet")
    FRAME.write_csv(tmp_path / "csv" / "1.csv")
    FRAME.write_ndjson(tmp_path / "rows.jsonl")
    FRAME.write_csv(tmp_path / "mixed" / "1.csv")
    FRAME.write_parquet(tmp_path / "mixed" / "2.parquet")
    return tmp_path


@pytest.mark.parametrize(
    "path",
    ["parquet", "parquet/1.parquet", "parquet/*.parquet", "csv", "csv/1.csv", "rows.jsonl", "mixed/*.csv", "csv/*"],
)
@pytest.mark.parametrize("kind", [str, Path])
def test_paths_and_patterns_are_read(place: Path, path: str, kind: type) -> None:
    assert program.run({"E": kind(place / path)})["All"]["n"] == [1, 2]


def test_static_tables_are_read_too(place: Path) -> None:
    pl.DataFrame({"n": [1], "kind": ["odd"]}).write_csv(place / "kinds.csv")
    k, e = kinds.as_("k"), events.as_("e")
    joined = tg.program(Out=e.join(k, k.n == e.n).select(e.t, k.kind))
    assert joined.run({"E": FRAME, "K": place / "kinds.csv"}).rows("Out") == [{"t": 1, "kind": "odd"}]
    with joined.session(statics={"K": str(place / "kinds.csv")}) as session:
        session.push("E", FRAME)
        session.finish()
        session.step()
        assert session.results("Out") == [{"t": 1, "kind": "odd"}]


@pytest.mark.parametrize(
    ("path", "names"),
    [("csv/*.csv", ["1.csv"]), ("**/1.csv", ["1.csv"] * 3), ("csv/none-*.csv", []), ("[x]", ["1.csv"])],
)
def test_readers_take_a_pattern_of_names_in_a_path(place: Path, path: str, names: list[str]) -> None:
    (place / "[x]").mkdir()
    FRAME.write_csv(place / "[x]" / "1.csv")
    found = tg.csv(place / path).data.found()
    assert [Path(file.path).name for file in found] == names


def test_a_pattern_reads_folders_below_where_it_says_so(place: Path) -> None:
    """As in shells, Python and Polars; a directory is read with all its folders, whatever the names in it."""
    FRAME.write_csv(place / "top.csv")
    for path in (place / "*.csv", str(place / "*.csv")):
        assert [Path(file.path).name for file in tg.csv(path).data.found()] == ["top.csv"]
    assert len(pl.scan_csv(place / "*.csv").collect()) == 2
    below = {place / "top.csv", place / "csv" / "1.csv", place / "mixed" / "1.csv"}
    for source in (tg.csv(place / "**" / "*.csv"), tg.csv(place, pattern="*.csv")):
        assert {Path(file.path) for file in source.data.found()} == below
        assert all(source.data.takes(str(path)) for path in below)
    assert not tg.csv(place / "*.csv").data.takes(str(place / "csv" / "1.csv"))
    with program.session(sources={"E": tg.csv(place / "*.csv", bounded=True)}) as session:
        session.process()
        assert session.counts["E"].rows_in == 2
        (place / "later").mkdir()
        FRAME.write_csv(place / "later" / "2.csv")
        assert session.waiting_files() == 0


def test_a_pattern_that_only_files_below_fit_is_told_how_they_are_read(place: Path) -> None:
    with (
        program.session(sources={"E": tg.csv(place / "*.csv", delay=0)}) as session,
        pytest.warns(tg.RunWarning, match=r"TG436(?s:.*)csv/1.csv is there, but a pattern without \*\*") as caught,
    ):
        session.process()
    assert f"write '{place}/**/*.csv' to read them too" in str(caught[0].message)


def test_the_home_directory_is_meant_by_a_tilde(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.chdir(place / "mixed")
    for path in ("~/csv", "~/csv/*.csv", "~/csv/1.csv", Path("~/csv/1.csv")):
        assert len(tg.csv(path).data.found()) == 1
    sinks, source = {"All": tg.parquet_sink("~/out")}, tg.csv("~/csv", archive="~/read")
    with program.session(sources={"E": source}, sinks=sinks, checkpoint="~/state") as session:
        session.process()
        session.finish()
        session.process()
        assert len(session.results("All")) == 2
    assert all((place / name).is_dir() for name in ("out", "state", "read"))
    assert tg.read_quarantine("~/state").read_all().num_rows == 0
    assert sorted(path.name for path in (place / "mixed").iterdir()) == ["1.csv", "2.parquet"]


def test_a_pattern_of_folders_is_refused_with_what_is_read(place: Path) -> None:
    with pytest.raises(tg.QueryError, match=r"TG401 .* has a pattern of folders, '\*'") as caught:
        tg.csv(place / "*" / "1.csv")
    assert caught.value.hint == f"write {str(place / '**' / '1.csv')!r}, and read all folders"
    assert caught.value.site is not None
    with pytest.raises(tg.QueryError, match=r"TG401 .*pattern of folders") as caught:
        program.run({"E": str(place / "c*" / "days")})
    assert caught.value.hint == f"write {str(place)!r}, and read all folders"
    with pytest.raises(tg.QueryError, match=r"TG401 .* has a pattern of names, and pattern='a\*' is another"):
        tg.csv(place / "*.csv", pattern="a*")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("in/*.csv", r"TG311 \w+: 'in/\*.csv' is a path(?s:.*)sources=\{\"Name\": tg.csv\('in/\*.csv'\)\}"),
        (Path("in"), r"TG311 \w+: 'in' is a path(?s:.*)tg.parquet\('in'\), tg.csv\(...\) or tg.json\(...\)"),
        (tg.csv("in"), r"TG311 \w+: a source is no table of rows(?s:.*)sources=\{\"Name\": ...\}"),
    ],
)
def test_a_path_or_a_source_that_is_pushed_is_told_where_it_belongs(rows: object, said: str) -> None:
    with program.session() as session, pytest.raises(tg.QueryError, match=said) as caught:
        session.push("E", rows)
    assert caught.value.site is not None
    assert caught.value.site.file.endswith("test_paths_as_rows.py")


@pytest.mark.parametrize("path", ["mixed", "nothing", "parquet/1.data"])
def test_a_path_that_does_not_say_its_format_is_refused(place: Path, path: str) -> None:
    with pytest.raises(tg.QueryError, match=r"TG401 .* does not say the format(?s:.*)tg.parquet"):
        program.run({"E": str(place / path)})


def test_what_no_stream_could_have_is_told_where_it_is_written() -> None:
    with pytest.raises(tg.QueryError, match=r"TG104 delay: '1 minutess' is not a duration(?s:.*)did you mean minutes"):
        tg.parquet("x", delay="1 minutess")
    with pytest.raises(tg.QueryError, match="TG401 delay='-5m' is negative") as caught:
        tg.source(None, delay="-5m")
    assert caught.value.site is not None
    assert caught.value.site.file.endswith("test_paths_as_rows.py")
    with pytest.raises(tg.QueryError, match="TG401 there is no policy='ignore'"):
        tg.csv("x", policy="ignore")  # type: ignore[arg-type]


def test_no_delay_is_nothing_of_any_unit() -> None:
    times = tg.stream("T", "t timestamp", progress="t")
    with tg.program(All=times.select("t")).session(sources={"T": tg.source(None, delay=0)}) as session:
        session.push("T", [("2026-01-01",), ("2026-01-02",)])
        session.step()
        assert len(session.results("All")) == 1


def test_a_duration_of_a_query_goes_wherever_a_duration_goes() -> None:
    untimed = tg.stream("T", "t timestamp", progress="t")
    half = tg.minutes(20) + tg.seconds(600)
    assert str(half) == "30m"
    source = tg.source(None, delay=tg.minutes(5), skew_guard=half, idle=half)
    assert (source.delay, source.skew_guard, source.idle) == (dt.timedelta(minutes=5), *2 * [dt.timedelta(minutes=30)])
    assert tg.source(None, delay={"t": half}).delay == {"t": dt.timedelta(minutes=30)}
    waits = tg.schedule(every={"All": half}, budget=tg.seconds(1))
    assert (waits.every, waits.budget) == ({"All": dt.timedelta(minutes=30)}, dt.timedelta(seconds=1))
    deployed = tg.deployment(
        program, sources={"E": tg.parquet("x")}, checkpoint="y", every=half, quarantine_keep=tg.days(30)
    )
    assert deployed.seconds == 1800
    assert str(tg.duration(half)) == "30m"
    for changing in (untimed.t - untimed.t, tg.lit(5)):
        with pytest.raises(tg.QueryError, match="is no duration"):
            tg.source(None, delay=changing)
