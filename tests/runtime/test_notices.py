"""What a run says by itself: inputs of which nothing was accepted, and such as will never progress."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tidegate as tg
from tidegate.algebra.time import INF
from tidegate.runtime.engines import rejections
from tidegate.runtime.state.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

events = tg.stream("E", "n bigint, t timestamp", progress="t")
program = tg.program(All=events.select("n", "t"))


@pytest.mark.filterwarnings("error")
def test_an_input_of_which_every_row_is_rejected_is_an_error_of_run() -> None:
    with pytest.raises(tg.QueryError) as caught:
        program.run({"E": [("x", "2026-01-01"), ("y", "2026-01-01"), (1, None)]})
    assert str(caught.value).splitlines()[0] == "TG430 all 3 rows of E were rejected: 2 unparseable, 1 null"
    assert 'such as {"n": "y", "t": "2026-01-01"}: unparseable, for n' in str(caught.value)
    assert "a number is digits with a point at most" in caught.value.hint
    assert len(program.run({"E": [("x", "2026-01-01"), (1, "2026-01-01")]})["All"]) == 1
    assert len(program.run({"E": []})["All"]) == 0


@pytest.mark.parametrize("given", ["02.01.2026 10:00", 1_767_225_600])
def test_what_is_no_timestamp_is_told_with_how_one_is_written(given: object) -> None:
    with pytest.raises(tg.QueryError, match="TG430") as caught:
        program.run({"E": [(1, given)]})
    assert 'a timestamp is text such as "2026-03-02T12:00:00Z"' in caught.value.hint


def test_a_file_with_other_separators_is_told_with_what_reads_it(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("n;t\n1;2026-01-01\n")
    with pytest.raises(tg.QueryError, match="1 missing column") as caught:
        program.run({"E": tg.csv(tmp_path / "in.csv")})
    assert 'pl.scan_csv("in.csv", separator=";")' in caught.value.hint
    assert len(program.run({"E": tg.source(pl.scan_csv(tmp_path / "in.csv", separator=";"))})["All"]) == 1


def test_a_frame_without_a_column_is_told_with_its_stream() -> None:
    with pytest.raises(tg.QueryError, match="TG312 E: input lacks 't'"):
        program.run({"E": pl.DataFrame({"n": [1]})})
    with program.session() as session, pytest.raises(tg.QueryError, match="TG312 E: input lacks 't'"):
        session.push("E", pl.DataFrame({"n": [1]}))


def test_an_attribute_that_no_dictionary_has_is_told() -> None:
    rows = [{"t": "2026-01-01"}, {"t": "2026-01-02"}]
    with pytest.raises(tg.QueryError, match="TG312 E: no row has 'n'"):
        program.run({"E": rows})
    numbers = tg.table("N", "n bigint, name string")
    named = tg.program(All=events.as_("e").join(numbers, lambda e, n: e["e.n"] == n.n).select("e.n", "t", "name"))
    with pytest.raises(tg.QueryError, match="TG312 table N: no row has 'name'"):
        named.run({"E": [(1, "2026-01-01")], "N": [{"n": 1}]})
    assert len(program.run({"E": [*rows, {"n": 1, "t": "2026-01-03"}]})["All"]) == 3
    with program.session(sources={"E": tg.source(None, delay="1m")}) as session:
        with pytest.warns(tg.RunWarning, match="TG438 E: no row of this push has 'n'"):
            session.push("E", rows)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            session.push("E", rows)
    with program.session(sources={"E": tg.source(None, delay="1m")}) as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        session.push("E", [{"n": 1, "t": "2026-01-01"}, *rows])
        with pytest.warns(tg.RunWarning, match="TG438 E: no row of this push has 'n'"):
            session.push("E", rows)
        session.push("E", rows)


def test_a_session_warns_of_it_once_and_goes_on() -> None:
    with program.session(sources={"E": tg.source(None, delay="1m")}) as session:
        session.push("E", [(1, None)])
        with pytest.warns(tg.RunWarning, match="TG430 the only row of E in batch 1 was rejected: 1 null") as caught:
            session.step()
        assert [Path(one.filename).name for one in caught] == ["test_notices.py"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            session.push("E", [(2, None)])
            session.step()
            session.push("E", [(3, "2026-01-01")])
            session.step()


def told_by(session: tg.Session, *batches: Sequence[tuple[object, object]]) -> list[str]:
    """What is warned of while these batches run."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        for rows in batches:
            session.push("E", rows)
            session.step()
    return [str(one.message) for one in caught]


def told_of(caught: Sequence[warnings.WarningMessage]) -> list[warnings.WarningMessage]:
    """Our warnings: Spark may have its own."""
    return [one for one in caught if one.category is tg.RunWarning]


BAD, GOOD = (5, "z"), (4, "2026-01-03")


def test_many_rows_of_rejected_batches_in_a_row_are_told_and_ten_times_as_many_again() -> None:
    late = (9, "2026-01-01")
    with program.session(sources={"E": tg.source(None, delay="1m")}) as session:
        assert told_by(session, [(1, "2026-01-02"), (2, "x")]) == []
        (told,) = told_by(session, [(3, "y"), late, late])
        assert told.splitlines()[0] == "TG430 all 3 rows of E in batch 2 were rejected: 2 late, 1 unparseable"
        assert 'such as {"n": 9, "t": "2026-01-01"}: late, for t' in told
        assert "give the source a longer delay=" in told
        (told,) = told_by(session, [BAD], [], *[[late]] * 6, [])
        assert told.splitlines()[0] == "TG430 all 10 rows of E in batches 2 to 10 were rejected: 8 late, 2 unparseable"
        assert told_by(session, *[[late]] * 89) == []
        assert told_by(session, [late])[0].startswith("TG430 all 100 rows of E in batches 2 to 101 ")
        assert told_by(session, [GOOD], *[[BAD], [GOOD]] * 20) == []
        (told,) = told_by(session, [BAD] * 12)
        assert told.splitlines()[0] == "TG430 all 12 rows of E in batch 143 were rejected: 12 unparseable"
        assert 'such as {"n": 5, "t": "z"}: unparseable, for t' in told


@pytest.mark.parametrize(
    ("batches", "untold"),
    [
        ([[BAD]], 0),
        ([[BAD], [BAD]], 2),
        ([[BAD], [GOOD], [BAD], [GOOD], [BAD]], 3),
        ([[BAD], [BAD], [BAD] * 8], 0),
        ([[BAD], [GOOD], [BAD], [GOOD], [BAD] * 10, [GOOD]], 12),
        ([[BAD] * 3, [GOOD, BAD]], 0),
    ],
)
def test_rejected_batches_of_which_nothing_was_told_are_told_in_the_end(batches: list[Any], untold: int) -> None:
    source = {"E": tg.source(None, delay="1m")}
    session = program.session(sources=source)
    assert told_by(session, *batches)
    with warnings.catch_warnings(record=True, action="always") as caught:
        session.close()
        session.close()
    rejected = [batch for batch in batches if GOOD not in batch]
    assert [str(one.message).splitlines()[0] for one in caught] == [
        (
            f"TG430 all {untold} rows of E in {len(rejected)} batches, which brought no others, were rejected: "
            f"{untold} unparseable"
        )
    ] * (untold > 0)


def test_a_broken_relation_is_said_with_its_stream() -> None:
    columns = "a timestamp not null, b timestamp not null, c timestamp not null"
    trips = tg.stream("Trips", columns, progress="c", relations=lambda one: (one.a < one.b, one.b < one.c))
    both = tg.program(Done=trips, All=events)
    wrong = ("2026-01-02", "2026-01-01", "2026-01-03")
    said = "Trips declares a < b and b < c: correct the rows"
    with pytest.raises(tg.QueryError, match="TG430 the only row of Trips was rejected: 1 relation") as caught:
        both.run({"Trips": [wrong], "E": []})
    assert caught.value.hint.startswith(said)


def test_a_warning_that_is_an_error_comes_after_the_report() -> None:
    reports: list[tg.BatchReport] = []
    source = {"E": tg.source(None, delay="1m")}
    with program.session(sources=source, on_batch=reports.append) as session, warnings.catch_warnings():
        warnings.simplefilter("error", tg.RunWarning)
        session.push("E", [(1, None)])
        with pytest.raises(tg.RunWarning):
            session.step()
        assert [report.counts["E"].rows_in for report in reports] == [1]
        session.push("E", [(2, "2026-01-01")])
        assert session.step().seq == 2


def test_rows_that_were_dropped_have_no_example() -> None:
    with program.session(sources={"E": tg.source(None, policy="drop")}) as session:
        session.push("E", [(1, None)])
        with pytest.warns(tg.RunWarning, match="TG430") as caught:
            session.step()
        assert "such as" not in str(caught[0].message)


def test_a_session_whose_rows_are_pushed_and_never_said_to_be_complete_is_warned_of() -> None:
    told = pytest.warns(tg.RunWarning, match=r"TG431 E has not progressed(?s:.*)session.advance\(\"E\", ...\)")
    for sources in ({}, {"E": tg.source(None)}):
        with program.session(sources=sources) as session, warnings.catch_warnings():
            warnings.simplefilter("error")
            session.push("E", [(1, "2026-01-01")])
            session.step()
            with told:
                session.step()
            session.step()


def test_results_of_which_none_can_be_final_are_warned_of_where_they_are_asked_for() -> None:
    with program.session() as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert session.results("All") == []
        session.push("E", [(1, "2026-01-01")])
        session.step()
        with pytest.warns(
            tg.RunWarning, match=r"TG431 E has not progressed(?s:.*)session.advance\(\"E\", ...\)"
        ) as caught:
            assert session.results("All") == []
        assert Path(caught[0].filename).name == "test_notices.py"
        session.table("All")
    with program.session() as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        session.push("E", [(1, "2026-01-01")])
        session.step()
        session.finish()
        session.table("All")


def test_a_session_that_ends_before_anything_could_be_final_is_warned_of(tmp_path: Path) -> None:
    told = pytest.warns(tg.RunWarning, match="TG431 E has not progressed")
    with told, program.session() as session:
        session.push("E", [(1, "2026-01-01")])
        session.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ends in (False, True):
            with program.session() as session:
                session.push("E", [(1, "2026-01-01")])
                session.step()
                if ends:
                    session.finish()
                else:
                    session.advance("E", {"t": "2026-01-01"})  # also where no step follows
        with program.session(checkpoint=tmp_path / "state") as session:  # a later one can say more
            session.push("E", [(1, "2026-01-01")])
            session.step()


def test_results_that_are_asked_for_before_any_batch_are_warned_of(tmp_path: Path) -> None:
    told = pytest.warns(tg.RunWarning, match=r"TG439 no batch has run(?s:.*)session.step\(\)")
    with program.session() as session:
        session.push("E", [(1, "2026-01-01")])
        session.finish()
        with told as caught:
            assert session.results("All") == []
        assert Path(caught[0].filename).name == "test_notices.py"
        session.step()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(session.results("All")) == 1
    (tmp_path / "a.csv").write_text("n,t\n1,2026-01-01\n")
    with program.session({"E": tg.csv(tmp_path, bounded=True)}) as session, told:
        session.table("All")


MENDS = [
    ({"n": 2**70, "t": "2026-01-01"}, "declare string for names made of digits, or double where 15 digits are enough"),
    ({"n": 1, "t": None}, "E progresses on t, so each row needs one"),
    ({"n": 0, "t": "2026-01-01"}, "tg.when(...)"),
]


@pytest.mark.parametrize(("row", "hint"), MENDS)
def test_the_mend_fits_the_reason(row: dict[str, object], hint: str) -> None:
    ratio = tg.program(Ratio=events.select(events.t, part=1 / events.n))
    with pytest.raises(tg.QueryError, match="TG430") as caught:
        ratio.run({"E": [row]})
    assert hint in caught.value.hint
    needed = tg.stream("N", "n bigint not null, t timestamp", progress="t")
    with pytest.raises(tg.QueryError, match="n is declared `not null`: leave that out of the schema"):
        tg.program(All=needed).run({"N": [{"n": None, "t": "2026-01-01"}]})


def test_a_mend_names_types_that_can_be_declared() -> None:
    texts = [*rejections.MENDS.values(), *rejections._TEXTS.values(), *rejections._LARGER.values()]
    named = {type_ for text in texts for type_ in re.findall(r"decimal\([0-9, ]+\)", text)}
    assert named
    for type_ in named:
        tg.stream("E", f"n {type_}, t timestamp", progress="t")
    exact = tg.stream("E", "n decimal(4, 2), t timestamp", progress="t")
    with pytest.raises(tg.QueryError, match="TG430") as caught:
        tg.program(All=exact).run({"E": [("100.00", "2026-01-01")]})
    assert caught.value.hint == "declare a decimal of more digits, 18 at most, or double where 15 digits are enough"


def test_a_term_without_a_value_is_told_with_its_values() -> None:
    ratio = tg.program(Ratio=events.select(events.t, part=1 / events.n))
    with pytest.raises(tg.QueryError, match=r'such as \{"n": 0, .*\}: TG302 1 / n: division by zero: ') as caught:
        ratio.run({"E": [(0, "2026-01-01")]})
    assert "written in test_notices.py:" in str(caught.value)
    assert "part=1 / events.n" in str(caught.value)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_rejected_row_of_a_file_is_told_with_its_place_and_the_columns_there(tmp_path: Path, kind: str) -> None:
    frame, place = pl.DataFrame({"n": [1], "time": ["2026-01-01"]}), tmp_path / f"in.{kind}"
    frame.write_csv(place) if kind == "csv" else frame.write_parquet(place)
    with pytest.raises(tg.QueryError, match="1 missing column") as caught:
        program.run({"E": getattr(tg, kind)(place)})
    said = str(caught.value)
    assert f"such as row 0 of {place}: " in said
    assert "separator" not in said
    assert "the columns of the file are: n, time" in said


@pytest.mark.filterwarnings("error")
def test_a_session_that_is_told_later_is_not_warned_of() -> None:
    with program.session() as session:
        session.push("E", [(1, "2026-01-01")])
        session.step()
        session.advance("E", {"t": "2026-01-01"})
        session.step()
    with program.session(sources={"E": tg.source(None, delay="5m")}) as session:
        session.push("E", [(1, "2026-01-01")])
        session.step()
        session.step()


def written(folder: Path) -> Path:
    folder.mkdir()
    pl.DataFrame({"n": [1], "t": ["2026-01-01T00:00Z"]}).write_parquet(folder / "1.parquet")
    return folder


def test_a_source_that_can_never_progress_is_warned_of(tmp_path: Path) -> None:
    folder = written(tmp_path / "in")
    told = pytest.warns(tg.RunWarning, match=r"TG431 E never progresses(?s:.*)delay=\"5m\"")
    with program.session(sources={"E": tg.parquet(folder)}) as session, told:
        session.step()
    promises: list[tg.Source] = [
        tg.parquet(folder, delay="1m"),
        tg.parquet(folder, bounded=True),
        tg.parquet(folder, idle="5m"),
        tg.parquet(folder, progress_columns={"t": "up_to"}),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in promises:
            with program.session(sources={"E": source}) as session:
                session.step()
        with program.session(sources={"E": tg.parquet(folder)}) as session:
            session.advance("E", {"t": "2026-01-01"})
            session.step()
        session = program.session()
        session.push("E", [(1, "2026-01-01")])
        session.step()  # whoever pushes rows can say more each time, up to the end
    with pytest.warns(tg.RunWarning, match="TG431 E has not progressed"):
        session.close()


def test_a_source_that_can_never_progress_is_warned_of_while_nothing_has_come(tmp_path: Path) -> None:
    with program.session(sources={"E": tg.parquet(tmp_path)}) as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert session.waiting_files() == 0
        with pytest.warns(tg.RunWarning, match=r"TG431 E never progresses(?s:.*)delay=\"5m\"") as caught:
            session.process()
        assert [Path(one.filename).name for one in caught] == ["test_notices.py"]
        session.process()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in ({"delay": "1m"}, {"bounded": True}, {"idle": "5m"}):
            with program.session(sources={"E": tg.parquet(tmp_path, **options)}) as session:
                session.process()
        with program.session(sources={"E": tg.parquet(tmp_path)}) as session:
            session.advance("E", "2026-01-01")
            session.process()


def test_a_warning_of_a_silent_source_is_given_again_where_warnings_are_errors(tmp_path: Path) -> None:
    with program.session(sources={"E": tg.parquet(tmp_path)}) as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(tg.RunWarning, match="TG431"):
                session.step()


@pytest.mark.spark
@pytest.mark.parametrize("trigger", ["available_now", "100 ms"])
def test_on_spark_sources_of_which_nothing_can_come_are_warned_of(
    spark: SparkSession, tmp_path: Path, trigger: str
) -> None:
    """No batch runs, since there is nothing to do."""
    folder = written(tmp_path / "in")
    sources = {"E": tg.parquet(folder, pattern="*.json")}
    with warnings.catch_warnings(record=True, action="always") as caught:
        query = program.start(spark, sources=sources, checkpoint=tmp_path / "state", trigger=trigger)
        limit = time.monotonic() + 60
        while len(told_of(caught)) < 2:
            assert time.monotonic() < limit
            query.awaitTermination(0.1)
        query.stop()
    assert sorted(str(one.message)[:7] for one in told_of(caught)) == ["TG431 E", "TG436 E"]
    assert {Path(one.filename).name for one in told_of(caught)} == {"test_notices.py"}


def test_a_directory_that_goes_is_told_whenever_it_goes(tmp_path: Path) -> None:
    folder = written(tmp_path / "in")
    told = f"TG434 E: {re.escape(str(folder))} is gone, so no files of it are read"
    with program.session(sources={"E": tg.parquet(folder, bounded=True)}) as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            away = folder.rename(tmp_path / "away")
            with pytest.warns(tg.RunWarning, match=told):
                session.step()
            session.step()
            assert session.progress["All"] == {"t": -INF}  # a stream does not end by it
            away.rename(folder)
            assert session.waiting_files() == 1
        assert session.step().results == {"All": 1}
        assert session.progress["All"] == {"t": INF}


def test_a_directory_for_results_that_goes_is_told(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options: dict[str, Any] = {
        "sources": {"E": tg.source(None, delay=0)},
        "sinks": {"All": tg.parquet_sink(out)},
        "checkpoint": tmp_path / "state",
    }
    with program.session(**options) as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        session.push("E", [(1, "2026-01-01"), (2, "2026-01-02")])
        session.step()
        for _ in range(2):
            away = out.rename(tmp_path / "away")
            with pytest.warns(tg.RunWarning, match=f"TG434 All: {out} is gone, to which its results go") as caught:
                session.step()
            assert [Path(one.filename).name for one in caught] == ["test_notices.py"]
            session.step()
            with pytest.raises(tg.QueryError, match=f"TG405 {out} is gone"):
                session.results("All")
            away.rename(out)
            session.step()
        assert len(session.results("All")) == 1
        shutil.rmtree(out)
        session.push("E", [(3, "2026-01-03")])
        with pytest.warns(tg.RunWarning, match="TG434"), pytest.raises(tg.TidegateError, match=f"TG508 {out} is gone"):
            session.step()
    with program.session(**options) as session:
        with pytest.warns(tg.RunWarning, match=f"TG434 All: {out} was gone, and is made anew"):
            session.step()
        assert [row["n"] for row in session.results("All")] == [2]  # what was not published then
    with program.session(**options) as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        session.step()


def test_a_damaged_file_of_results_is_named(tmp_path: Path) -> None:
    sinks = {"All": tg.parquet_sink(tmp_path / "out")}
    with program.session(sinks=sinks, checkpoint=tmp_path / "state") as session:
        session.push("E", [(1, "2026-01-01")])
        session.finish()
        session.step()
        (file,) = (tmp_path / "out").iterdir()
        file.write_bytes(file.read_bytes()[:-20])
        with pytest.raises(tg.TidegateError, match=f"TG505 {file} cannot be read as Parquet"):
            session.results("All")


def test_a_directory_that_is_gone_fails_every_step_where_warnings_are_errors(tmp_path: Path) -> None:
    folder = written(tmp_path / "in")
    with program.session(sources={"E": tg.parquet(folder, delay="1m")}) as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        away = folder.rename(tmp_path / "away")
        for _ in range(2):
            with pytest.raises(tg.RunWarning, match="TG434"):
                session.step()
        away.rename(folder)
        assert session.step().counts["E"].accepted == 1


@pytest.mark.parametrize("engine", ["session", "start", "command"])
def test_sources_are_looked_for_before_anything_that_takes_long(tmp_path: Path, engine: str) -> None:
    (tmp_path / "shop.py").write_text(
        "import tidegate as tg\n"
        'program = tg.program(All=tg.stream("E", "t timestamp", progress="t"))\n'
        'sources = {"E": tg.parquet("nowhere")}\n'
        'deployment = tg.deployment(program, sources=sources, checkpoint="state", engine="spark")\n'
    )
    begins = {
        "session": "program.session(sources=sources)",
        "start": 'program.start(None, sources=sources, checkpoint="state")',
        "command": "operate(deployment)",
    }
    script = (
        "import sys, tidegate\nfrom shop import *\nfrom tidegate.runtime.cli.operation import operate\n"
        f"try:\n    {begins[engine]}\nexcept tidegate.QueryError as error:\n    print(error)\n"
        "print(sorted({'numba', 'pyspark'} & set(sys.modules)))\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": root}
    )
    assert done.stdout.splitlines() == [
        f"TG413 E: there is no file or directory {tmp_path / 'nowhere'}",
        '  shop.py:3   sources = {"E": tg.parquet("nowhere")}',
        "  hint          check the path; for files still to come, make the directory",
        "[]",
    ]


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), StateError("TG505", "damaged")])
def test_where_the_quarantine_cannot_be_read_a_notice_has_no_example_and_the_run_goes_on(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*given: object, **options: object) -> object:
        raise error

    with program.session(sources={"E": tg.source(None, delay="1m")}) as session:
        monkeypatch.setattr("tidegate.runtime.ingest.quarantine.kept_rows", failing)
        (told,) = told_by(session, [BAD])
        assert told.startswith("TG430 the only row of E in batch 1 was rejected: 1 unparseable")
        assert "such as" not in told
        session.push("E", [GOOD])
        assert session.step().counts["E"].accepted == 1


def test_rows_that_a_query_sets_aside_are_told_at_the_first_at_ten_and_so_on() -> None:
    cars = tg.stream("Cars", "car string, t bigint, speed double", progress="t")
    fast = cars.partition_by("car").derive(Fast=tg.situation(cars.speed > 80)).Fast
    counted = tg.program(Counted=fast.group_by(w=tg.tumbling(fast.te, 5)).agg(n=tg.count()))
    told: list[str] = []
    with counted.session() as session, warnings.catch_warnings(record=True, action="always") as caught:
        for second in range(8):
            session.push("Cars", [("a", second, 90.0), ("a", second, 3.0), ("b", second, 90.0)])
            session.advance("Cars", second)
            session.step()
            told += [f"{second}: {one.message}" for one in caught]
            caught.clear()
    first, tenth = (text.splitlines() for text in told)
    assert first == [
        "0: TG435 Counted (its situations) set aside 2 rows up to batch 1: tie",
        (
            '  because       such as {"car": "a", "t": 0}: TG304 two events of one partition at 0: nothing says '
            "which comes first"
        ),
        (
            '  hint          name an attribute that orders events of one instant: tie="sequence" in '
            "partition_by(...), over(...) or sequences(...)"
        ),
    ]
    assert tenth[0] == "4: TG435 Counted (its situations) set aside 10 rows up to batch 5: tie"


def test_an_advance_to_before_is_told() -> None:
    with program.session() as session:
        session.advance("E", {"t": "2026-01-02"})
        session.advance("E", {"t": "2026-01-02"})
        with pytest.warns(tg.RunWarning, match="TG432 E.t has progressed to 2026-01-02T00:00:00Z already"):
            session.advance("E", {"t": "2026-01-01"})
        session.step()
        assert session.progress["All"] == {"t": 1767312000000000}


def test_rows_for_a_stream_that_has_ended_are_told() -> None:
    given = program.session(sources={"E": tg.source([], delay="1m")})
    with given as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        session.push("E", [(1, "2026-01-01")])  # the first batch reads the source as well
        assert session.step().counts["E"].accepted == 1
        with pytest.raises(
            tg.RunWarning, match=r"TG433 E has ended(?s:.*)the whole of a stream(?s:.*)tg.source\(None, "
        ):
            session.push("E", [(2, "2026-01-02")])
        session.push("E", [(3, "2026-01-02")])
        assert session.step().counts["E"].rejected == {"late": 1}
    with program.session() as session:
        session.finish("E")
        session.step()
        with pytest.warns(tg.RunWarning, match=r"TG433 E has ended(?s:.*)finish\(...\)") as told:
            session.push("E", [(1, "2026-01-01")])
        assert "whole of a stream" not in str(told[0].message)
        assert Path(told[0].filename).name == "test_notices.py"


def test_rows_for_a_stream_that_goes_on_are_not_told() -> None:
    other = tg.stream("F", "t timestamp", progress="t")
    both = tg.program(All=events, Other=other)
    source = {"E": tg.source(None, delay="1m"), "F": tg.source([])}
    with both.session(sources=source) as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        for minute in range(3):
            session.push("E", [(minute, f"2026-01-01T00:0{minute}")])
            session.step()


def test_files_that_cannot_be_read_are_warned_of_and_shown(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_bytes(b"n,t\n\xff,\xff\n")
    source = {"E": tg.csv(tmp_path, on_bad_file="quarantine", bounded=True)}
    told = rf"TG435 E set aside 1 file up to batch 1: unreadable(?s:.*)such as TG412 {tmp_path}/bad.csv"
    with pytest.warns(tg.RunWarning, match=told):
        results = program.run(source)
    assert "1 file that cannot be read" in str(results)
    with program.session(sources=source) as session:
        with pytest.warns(tg.RunWarning, match=told):
            session.step()
        assert "1 file that cannot be read" in str(session)


def test_a_pattern_that_no_file_fits_is_warned_of(tmp_path: Path) -> None:
    folder = written(tmp_path / "in")
    told = (
        rf"TG436 E: no file of {folder} was read\n  because +1.parquet is there, but names that fit "
        r"pattern='\*.json' are read"
    )
    with pytest.warns(tg.RunWarning, match=told):
        program.run({"E": tg.parquet(folder, pattern="*.json")})
    (folder / "1.parquet").rename(folder / "_1.parquet")
    with pytest.warns(tg.RunWarning, match="TG436(?s:.*)_1.parquet is there"):
        program.run({"E": tg.parquet(folder)})
    (folder / "_1.parquet").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program.run({"E": tg.parquet(folder)})
        (folder / "_1.parquet").touch()
        with program.session(sources={"E": tg.parquet(folder, delay="1m")}) as session:  # they may come yet
            session.step()


def test_a_session_is_warned_of_a_pattern_that_no_file_fits(tmp_path: Path) -> None:
    folder = written(tmp_path / "in")
    told = rf"TG436 E: no file of {folder} was read(?s:.*)1.parquet is there, but names that fit pattern='\*.parqet'"
    for options in ({"delay": "1m"}, {"bounded": True}):
        with program.session(sources={"E": tg.parquet(folder / "*.parqet", **options)}) as session:
            with pytest.warns(tg.RunWarning, match=told) as caught:
                session.process()
            assert [Path(one.filename).name for one in caught] == ["test_notices.py"]
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                session.process()
                session.close()


@pytest.mark.filterwarnings("error")
def test_a_pattern_is_not_warned_of_where_others_have_been_read_or_are_another_sources(tmp_path: Path) -> None:
    folder = written(tmp_path / "in")
    other = tg.stream("F", "n bigint, t timestamp", progress="t")
    both = tg.program(All=events.select("n", "t"), Others=other.select("n", "t"))
    sources = {"E": tg.parquet(folder / "*.parquet", delay="1m"), "F": tg.json(folder / "*.json", delay="1m")}
    with both.session(sources=sources) as session:
        session.process()
    source = {"E": tg.parquet(folder / "*.parquet", delay="1m", archive=tmp_path / "read")}
    with program.session(sources=source, checkpoint=tmp_path / "state") as session:
        session.process()
        (folder / "notes.txt").touch()
        session.process()
    with program.session(sources=source, checkpoint=tmp_path / "state") as session:
        session.process()


def test_what_is_told_in_the_end_is_told_once(tmp_path: Path) -> None:
    source = tg.parquet(written(tmp_path / "in"), pattern="*.json", bounded=True)
    with (
        warnings.catch_warnings(record=True, action="always") as caught,
        program.session(sources={"E": source}) as session,
    ):
        session.step()
        session.close()
    assert [str(one.message)[:5] for one in caught] == ["TG436"]
