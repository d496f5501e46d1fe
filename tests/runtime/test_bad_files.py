"""Files that cannot be read: they fail the batch, or are set aside once; and which names of files a source takes."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import warnings
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.runtime.connectors.sources import Files
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.ingest.ingest import UnreadableFile
from tidegate.runtime.ingest.inputs import read_file
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = tg.stream("S", "k bigint, t bigint, s string", progress="t")
PROGRAM = tg.program(Out=S)


def written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())


FINE = written(pa.table({"k": [1, 2], "t": [1, 2], "s": ["a", "b"]}))
TWICE = written(pa.Table.from_arrays([pa.array([1])] * 4, names=["k", "t", "s", "t"]))
BROKEN_PAGE = FINE[:4] + bytes(40) + FINE[44:]

#: Content of a file by the reader's format: nothing can be made of it, and why.
BAD: dict[str, tuple[str, bytes, str]] = {
    "zero bytes": ("parquet", b"", "TG412"),
    "another format": ("parquet", b"k,t,s\n1,1,a\n", "TG412"),
    "damaged": ("parquet", BROKEN_PAGE, "TG412"),
    "truncated": ("parquet", FINE[: len(FINE) // 2], "TG412"),
    "a column twice": ("parquet", TWICE, "TG312"),
    "Parquet instead of CSV": ("csv", FINE, "TG412"),
    "no UTF-8": ("csv", "k,t,s\n1,1,café\n".encode("latin-1"), "TG412"),
    "a column twice in CSV": ("csv", b"k,t,t,s\n1,1,1,a\n", "TG312"),
    "CSV that ends within quotes": ("csv", b'k,t,s\n1,1,"a\n2,2,b\n', "TG412"),
    "Parquet instead of JSON": ("json", FINE, "TG412"),
}
GOOD = {"parquet": FINE, "csv": b"k,t,s\n1,1,a\n2,2,b\n", "json": b'{"k":1,"t":1,"s":"a"}\n{"k":2,"t":2,"s":"b"}\n'}
LATER = {
    "parquet": written(pa.table({"k": [3], "t": [3], "s": ["c"]})),
    "csv": b"k,t,s\n3,3,c\n",
    "json": b'{"k":3,"t":3,"s":"c"}\n',
}


def put(folder: Path, number: int, content: bytes, name: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (name or f"{number}.data")
    path.write_bytes(content)
    os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))  # the oldest is read first
    return path


def source(format_: str, folder: Path, **options: Any) -> tg.Source:
    make: dict[str, Callable[..., tg.Source]] = {"parquet": tg.parquet, "csv": tg.csv, "json": tg.json}
    return make[format_](folder, delay=0, **options)


def keys(session: Session) -> list[int]:
    return sorted(row["k"] for row in session.results("Out"))


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("policy", ["quarantine", "drop", "fail"])
def test_a_file_is_set_aside_once(tmp_path: Path, what: str, policy: str) -> None:
    """Whatever becomes of rows; the rows of the other files count, in the batch and after a restart."""
    format_, content, code = BAD[what]
    put(tmp_path / "in", 1, GOOD[format_])
    bad = put(tmp_path / "in", 2, content)
    sources = {"S": source(format_, tmp_path / "in", on_bad_file="quarantine", policy=policy)}
    store = LocalStore(tmp_path / "state")
    with Session(PROGRAM.facts, store, sources=sources) as session:
        report = session.step()
        assert report.unreadable == {"S": 1}
        counts = report.counts["S"]
        assert (counts.rows_in, counts.accepted, dict(counts.rejected)) == (2, 2, {})
        (entry,) = session.quarantine_rows()
        assert (entry["source"], entry["origin"], entry["position"]) == ("S", str(bad), -1)
        assert (entry["reason"], entry["attribute"]) == ("unreadable", None)
        assert entry["error"].startswith(f"{code} {bad}")
        assert json.loads(entry["row"]).keys() == {"bytes", "modified", "set_aside"}
        assert json.loads(entry["row"])["bytes"] == len(content)
    put(tmp_path / "in", 3, LATER[format_])
    with Session(PROGRAM.facts, store, sources=sources) as session:
        assert session.step().unreadable == {}
        session.finish()
        session.step()
        assert keys(session) == [1, 2, 3]
        assert len([one for one in session.quarantine_rows() if one["reason"] == "unreadable"]) == 1
        text = list_state(store)
        assert "set aside   1 file of S: unreadable" in str(text)
        assert text.to_dict()["unreadable"] == {"S": 1}


def test_a_file_whose_name_is_no_text_is_passed_over(tmp_path: Path) -> None:
    """By default it fails each batch until somebody renames it (TG500)."""
    put(tmp_path / "in", 1, FINE, "1.parquet")
    bad = put(tmp_path / "in", 2, LATER["parquet"], "\udcff.parquet")

    def told(session: Session) -> list[str]:
        with warnings.catch_warnings(record=True, action="always") as caught:
            list(session.process())
        return [str(one.message).splitlines()[0] for one in caught]

    with (
        PROGRAM.session(sources={"S": source("parquet", tmp_path / "in")}, checkpoint=tmp_path / "refused") as session,
        pytest.raises(tg.TidegateError, match=r"TG500 S: the name of a file is not UTF-8: '.*udcff\.parquet'"),
    ):
        session.process()
    sources = {"S": source("parquet", tmp_path / "in", on_bad_file="quarantine")}
    with PROGRAM.session(sources=sources, checkpoint=tmp_path / "state") as session:
        assert told(session) == ["TG444 S: 1 file is not read, as no log can have a name that is not UTF-8"]
        assert session.counts["S"].accepted == 2
        for number in range(3, 12):
            assert told(session) == []
            put(tmp_path / "in", number, FINE, f"\udcff{number}.parquet")
        assert told(session) == ["TG444 S: 10 files are not read, as no log can have a name that is not UTF-8"]
        assert session.counts["S"].rows_in == 2
        bad.rename(tmp_path / "in" / "2.parquet")
        assert told(session) == []
        assert session.counts["S"].accepted == 3
        assert len(session._setup.directories["S"].unnamed) == 9


def test_what_is_no_file_is_left_out(tmp_path: Path) -> None:
    """A reader of a pipe waits until somebody writes to it, perhaps for ever."""
    put(tmp_path / "in", 1, FINE, "1.parquet")
    os.mkfifo(tmp_path / "in" / "2.parquet")
    (tmp_path / "in" / "3.parquet").symlink_to(tmp_path / "in" / "2.parquet")
    (tmp_path / "in" / "4.parquet").symlink_to("/dev/null")
    assert [Path(file.path).name for file in Files(str(tmp_path / "in"), "parquet").found()] == ["1.parquet"]
    with PROGRAM.session(sources={"S": source("parquet", tmp_path / "in")}) as session:
        session.process()
        assert session.counts["S"].accepted == 2


def test_a_file_that_changed_after_it_was_read_is_passed_over(tmp_path: Path) -> None:
    """By default it fails each batch until somebody moves it away (TG411)."""
    first = put(tmp_path / "in", 1, FINE, "1.parquet")
    sources = {"S": source("parquet", tmp_path / "in", on_bad_file="quarantine")}

    def told(session: Session) -> list[str]:
        with warnings.catch_warnings(record=True, action="always") as caught:
            list(session.process())
        return [str(one.message) for one in caught]

    with PROGRAM.session(sources=sources, checkpoint=tmp_path / "state") as session:
        assert told(session) == []
        os.utime(first, (1_700_000_000, 1_700_000_000))
        put(tmp_path / "in", 2, LATER["parquet"], "2.parquet")
        (warning,) = told(session)
        assert warning.startswith("TG443 S: 1 file that changed after it was read, so what changed is in no result\n")
        assert f"S: {first} was read with {len(FINE)} bytes and was written again, and is not read again" in warning
        assert session.counts["S"].accepted == 3
        for _ in range(10):
            assert told(session) == []  # once
        first.write_bytes(LATER["parquet"])
        assert told(session) == []  # of ten next
        more = {n: written(pa.table({"k": [n], "t": [n], "s": [str(n)]})) for n in range(4, 13)}
        for number, content in more.items():
            put(tmp_path / "in", number, content, f"{number}.parquet")
        assert told(session) == []
        for number, content in more.items():
            put(tmp_path / "in", number + 100, content, f"{number}.parquet")
        (warning,) = told(session)
        assert warning.startswith("TG443 S: 10 files that changed after they were read, ")
    with PROGRAM.session(sources=sources, checkpoint=tmp_path / "state") as session:
        (warning,) = told(session)
        assert warning.startswith("TG443 S: 10 files ")
        session.finish()
        session.step()
        assert keys(session) == list(range(1, 13))
        assert session.counts["S"].rows_in == 12


@pytest.mark.parametrize("what", BAD)
def test_by_default_it_fails_the_batch(tmp_path: Path, what: str) -> None:
    format_, content, code = BAD[what]
    put(tmp_path / "in", 1, GOOD[format_])
    bad = put(tmp_path / "in", 2, content)
    with PROGRAM.session(sources={"S": source(format_, tmp_path / "in")}) as session:
        with pytest.raises(tg.QueryError, match=code):
            session.step()
        bad.unlink()
        session.step()
        session.finish()
        session.step()
        assert keys(session) == [1, 2]


def test_only_what_a_file_holds_is_held_against_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the file system refuses now it may give later; memory that is short is no fault of the file."""
    path = put(tmp_path / "in", 1, FINE)
    schema = S._node.schema
    for error in (
        PermissionError(13, "denied"),
        OSError(5, "input/output error"),
        MemoryError(),
        pa.ArrowMemoryError(),
    ):

        def refuse(*_: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr("tidegate.runtime.ingest.inputs.read_parquet", refuse)
        sources = {"S": source("parquet", tmp_path / "in", on_bad_file="quarantine")}
        with PROGRAM.session(sources=sources) as session:
            with pytest.raises(tg.TidegateError) as raised:
                session.step()
            assert raised.value.code == ("TG510" if isinstance(error, MemoryError) else "TG412")
            assert not isinstance(raised.value, UnreadableFile)
            assert "on_bad_file" not in str(raised.value)  # it would not help
            assert session.quarantine_rows() == []
            monkeypatch.undo()
            assert session.step().counts["S"].accepted == 2
    with pytest.raises(tg.QueryError) as gone:
        read_file(f"{path}.gone", "parquet", schema)
    assert not isinstance(gone.value, UnreadableFile)


@pytest.mark.parametrize("what", [what for what, (format_, *_) in BAD.items() if format_ == "parquet"])
def test_a_bad_file_with_the_name_of_merged_results_is_a_bad_file(tmp_path: Path, what: str) -> None:
    """What was merged into it is asked before it is read."""
    _, content, code = BAD[what]
    bad = put(tmp_path / "in", 1, content, "part-0000000001-to-0000000002-Out-00000.parquet")
    put(tmp_path / "in", 2, FINE)
    with (
        PROGRAM.session(sources={"S": source("parquet", tmp_path / "in")}) as session,
        pytest.raises(tg.QueryError, match=code),
    ):
        session.step()
    sources = {"S": source("parquet", tmp_path / "in", on_bad_file="quarantine")}
    with PROGRAM.session(sources=sources) as session:
        assert session.step().unreadable == {"S": 1}
        (entry,) = session.quarantine_rows()
        assert (entry["origin"], entry["reason"]) == (str(bad), "unreadable")
        assert session.counts["S"].accepted == 2


def test_files_side_by_side_and_read_ahead(tmp_path: Path) -> None:
    for number in range(8):
        put(tmp_path / "in", number, FINE[:100] if number % 3 == 1 else FINE)
    for options in ({"threads": 4}, {"per_batch": 1}):
        threads = options.pop("threads", 1)
        given = source("parquet", tmp_path / "in", on_bad_file="quarantine", bounded=True, policy="drop", **options)
        results = PROGRAM.run({"S": given}, threads=threads)
        assert sum(report.unreadable.get("S", 0) for report in results.reports) == 3
        assert [Path(row["origin"]).name for row in results.quarantine.rows()] == ["1.data", "4.data", "7.data"]


def test_an_unknown_choice_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "in", 1, FINE)
    with pytest.raises(tg.QueryError, match="TG401 there is no on_bad_file='drop'"):
        PROGRAM.session(sources={"S": source("parquet", tmp_path / "in", on_bad_file="drop")})


def test_a_file_that_is_set_aside_is_never_deleted(tmp_path: Path) -> None:
    put(tmp_path / "in", 1, FINE)
    put(tmp_path / "in", 2, FINE[:90])
    with pytest.raises(tg.QueryError, match="TG440"):
        source("parquet", tmp_path / "in", on_bad_file="quarantine", delete=True)
    given = source("parquet", tmp_path / "in", on_bad_file="quarantine", archive=tmp_path / "read")
    with PROGRAM.session(sources={"S": given}, checkpoint=tmp_path / "kept") as session:
        assert session.step().unreadable == {"S": 1}
        session.step()
    assert (tmp_path / "read" / "2.data").read_bytes() == FINE[:90]


def test_a_source_takes_the_names_that_fit_a_pattern(tmp_path: Path) -> None:
    names = [
        "a.parquet",
        "b.parquet",
        "b.csv",
        "day/c.parquet",
        "day.parquet/d.csv",
        "_e.parquet",
        "B.PARQUET",
        "x1.csv",
    ]
    for number, name in enumerate(names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        put(tmp_path, number, b"", name)
    for pattern, expected in [
        ("*.parquet", {"a.parquet", "b.parquet", "day/c.parquet"}),
        ("b.*", {"b.parquet", "b.csv"}),
        ("[!a].parquet", {"b.parquet", "day/c.parquet"}),
        ("?1.csv", {"x1.csv"}),
        ("nothing", set()),
    ]:
        files = Files(str(tmp_path), "csv", pattern=pattern)
        found = {file.path for file in files.found()}
        assert found == {str(tmp_path / name) for name in expected}
        assert {path for name in names if files.takes(path := str(tmp_path / name))} == found
    for wrong in ("", "day/*.csv", 3):
        with pytest.raises(tg.QueryError, match="TG401"):
            tg.csv(tmp_path, pattern=wrong)  # type: ignore[arg-type]


def test_two_streams_of_one_directory_by_their_names(tmp_path: Path) -> None:
    put(tmp_path, 1, FINE, "a.parquet")
    put(tmp_path, 2, b"k,t\n7,7\n", "b.csv")
    other = tg.stream("T", "k bigint, t bigint", progress="t")
    program = tg.program(Out=S, Other=other)
    results = program.run({"S": tg.parquet(tmp_path, pattern="*.parquet"), "T": tg.csv(tmp_path, pattern="*.csv")})
    assert [row["k"] for row in results.rows("Out")] == [1, 2]
    assert [row["k"] for row in results.rows("Other")] == [7]


def test_a_static_table_takes_the_names_that_fit_a_pattern(tmp_path: Path) -> None:
    put(tmp_path, 1, b"k,name\n1,one\n", "a.csv")
    put(tmp_path, 2, b"no table", "readme.txt")
    table, s = tg.table("N", "k bigint, name string").as_("n"), S.as_("s")
    program = tg.program(Named=s.join(table, table.k == s.k).select(t=s.t, name=table.name))
    results = program.run({"S": [(1, 1, "a")], "N": tg.csv(tmp_path, pattern="*.csv")})
    assert [row["name"] for row in results.rows("Named")] == ["one"]


@pytest.mark.spark
@pytest.mark.parametrize("driver_bytes", [64 << 20, 0])
def test_on_spark_by_the_driver_or_by_workers(spark: SparkSession, tmp_path: Path, driver_bytes: int) -> None:
    for number, (content, name) in enumerate(
        [(FINE, "1.parquet"), (FINE[:90], "2.parquet"), (b"", "3.parquet"), (TWICE, "4.parquet"), (b"?", "5.txt")]
    ):
        put(tmp_path / "in", number, content, name)

    def run(**options: Any) -> list[Any]:
        given = source("parquet", tmp_path / "in", pattern="*.parquet", **options)
        state: dict[str, Any] = {"checkpoint": tmp_path / "state", "driver_bytes": driver_bytes}
        query = PROGRAM.start(spark, sources={"S": given}, **state)
        query.awaitTermination()
        return list(query.reports)

    with pytest.raises(tg.QueryError, match="TG412"):
        run()
    (report,) = run(on_bad_file="quarantine")
    assert (report.counts["S"].rows_in, report.counts["S"].accepted, report.unreadable) == (2, 2, {"S": 3})
    put(tmp_path / "in", 9, FINE[:90], "9.parquet")
    (report,) = run(on_bad_file="quarantine")
    assert (report.counts["S"].rows_in, report.unreadable) == (0, {"S": 1})
    store = LocalStore(tmp_path / "state")
    given = source("parquet", tmp_path / "in", pattern="*.parquet")
    with Session(PROGRAM.facts, store, sources={"S": given}) as session:
        assert session.step().counts["S"].rows_in == 0  # whichever engine goes on
        aside = session.quarantine_rows()
    assert sorted(Path(row["origin"]).name for row in aside) == [f"{n}.parquet" for n in (2, 3, 4, 9)]
    assert {row["reason"] for row in aside} == {"unreadable"}


RAGGED = 'k,t,s\n1,1,a\n2,2\n\nx,2,b\n3,3,"c\nd"\n4,4,d,e\n5,y,e\n'
#: Position, attribute, error and row of what is rejected.
RAGGED_ROWS = [
    (1, None, "2 fields instead of 3", '"2,2"'),
    (2, "k", None, '{"k": "x", "t": "2", "s": "b"}'),
    (4, None, "4 fields instead of 3", '"4,4,d,e"'),
    (5, "t", None, '{"k": "5", "t": "y", "s": "e"}'),
]
OTHER_HEADER = "K,t,Text\n007,1,a\n2,2,b\nbroken\n"
OTHER_ROWS = [
    (0, "k", "the columns of the file are: K, t, Text", '{"K": "007", "t": "1", "Text": "a"}'),
    (1, "k", "the columns of the file are: K, t, Text", '{"K": "2", "t": "2", "Text": "b"}'),
    (2, None, "1 field instead of 3", '"broken"'),
]


def rejected_of(rows: list[dict[str, Any]], name: str) -> list[tuple[Any, ...]]:
    found = [row for row in rows if row["origin"].endswith(name)]
    return [(row["position"], row["attribute"], row["error"], row["row"]) for row in found]


def test_broken_lines_stand_where_they_are_and_are_said_once(tmp_path: Path) -> None:
    put(tmp_path / "in", 1, RAGGED.encode(), "a.csv")
    with PROGRAM.session(sources={"S": tg.csv(tmp_path / "in", delay=1)}) as session:
        (report,) = session.process()
        assert (report.counts["S"].accepted, report.counts["S"].rejected) == (2, {"unparseable": 4})
        assert rejected_of(session.quarantine_rows(), "a.csv") == RAGGED_ROWS


def test_a_line_of_json_that_is_no_object_is_said_once(tmp_path: Path) -> None:
    put(tmp_path / "in", 1, b'{"k": 1, "t": 1, "s": "a"}\n[1, 2]\n', "a.json")
    with PROGRAM.session(sources={"S": tg.json(tmp_path / "in", delay=1)}) as session:
        list(session.process())
        assert rejected_of(session.quarantine_rows(), "a.json") == [(1, None, "no JSON object", '"[1, 2]"')]


def test_a_file_that_is_one_array_says_how_it_is_written_instead(tmp_path: Path) -> None:
    for number, content in enumerate((b'[{"k": 1, "t": 1, "s": "a"}]', b'[\n{"k": 1, "t": 1, "s": "a"},\n]\n')):
        put(tmp_path / str(number), 1, content, "a.json")
        with pytest.raises(tg.QueryError, match=r"TG430(?s:.)*each line of such a file is one object, \{\.\.\.\}"):
            PROGRAM.run({"S": tg.json(tmp_path / str(number), bounded=True)})


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("GZ", gzip.compress)])
def test_compressed_lines_of_json_are_read(tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]) -> None:
    content = BOM_UTF8 + '{"k": 1, "t": 1, "s": "ü"}\r\n\n{"k": 2, "t": 2}'.encode()
    put(tmp_path / "in", 1, pack(content), f"a.json.{ending}")
    found = PROGRAM.run({"S": tg.json(tmp_path / "in", bounded=True)})
    assert [row["k"] for row in sorted(found.rows("Out"), key=lambda row: row["t"])] == [1, 2]
    put(tmp_path / "in", 2, b'{"k": 1, "t": 1}', f"plain.json.{ending}")
    with pytest.raises(tg.QueryError, match=rf"TG412 (?s:.)*plain\.json\.{ending} cannot be read as json"):
        PROGRAM.run({"S": tg.json(tmp_path / "in", bounded=True)})


@pytest.mark.parametrize(
    "field", ['"a"', '"a""b"', '"a"""', '""', '"a\nb"', 'a"', 'a"b', '"a"b', '"""a"', '"\n"', '""""']
)
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_quotes_at_the_end_of_a_file_that_are_closed_are_fine(tmp_path: Path, field: str, end: str) -> None:
    path = put(tmp_path, 1, f"k,t,s\n1,1,{field}{end}".encode(), "a.csv")
    assert len(next(iter(read_columns(path).values()))) == 1


@pytest.mark.parametrize("field", ['"', '"\n', '"a', '"a""', '"a""b', '"a\n2,2,b\n', '"a\r\n2,2,""b""\r\n', '"é'])
@pytest.mark.parametrize("columns", ["k,t,s", "k,t,more"])
def test_a_file_that_ends_within_quotes_cannot_be_read(tmp_path: Path, field: str, columns: str) -> None:
    path = put(tmp_path, 1, f"{columns}\n1,1,{field}".encode(), "a.csv")
    with pytest.raises(
        UnreadableFile, match=r"TG412 .*a\.csv cannot be read as csv: its last field begins with a quote"
    ):
        read_columns(path)


def test_a_broken_line_at_the_end_of_a_file_is_rejected_alone(tmp_path: Path) -> None:
    """Also where it ends as an open quote after the line before it would."""
    path = put(tmp_path, 1, b'k,t,s\n1,1,\n","', "a.csv")
    assert read_columns(path)["k"][0] == "1"
    with pytest.raises(UnreadableFile, match="begins with a quote"):
        read_columns(put(tmp_path, 1, b'k,t,s\n1,1\n1,1,"a\n', "a.csv"))


def read_columns(path: Path) -> dict[str, list[object]]:
    rows = read_file(str(path), "csv", S._node.schema).rows
    return rows.to_pydict() if isinstance(rows, pa.Table) else dict(rows)


@pytest.mark.parametrize(("format_", "name"), [("parquet", "a.csv"), ("csv", "a.parquet"), ("json", "a.csv")])
def test_a_file_that_another_reader_reads_is_told_so(tmp_path: Path, format_: str, name: str) -> None:
    put(tmp_path / "in", 1, FINE if name == "a.parquet" else b"\xff", name)
    with (
        PROGRAM.session(sources={"S": source(format_, tmp_path / "in")}) as session,
        pytest.raises(tg.QueryError, match=rf"TG412(?s:.*)hint +by its name it is read with tg\.{name[2:]}\(\.\.\.\);"),
    ):
        session.step()


def test_broken_lines_of_a_large_file_are_numbered(tmp_path: Path) -> None:
    """Arrow reads it in blocks of a megabyte."""
    lines = [f"{n},{n}" + (",text" if n % 50_000 else "") for n in range(200_001)]
    (tmp_path / "a.csv").write_text("k,t,s\n" + "\n".join(lines) + "\n")
    rows = read_file(str(tmp_path / "a.csv"), "csv", S._node.schema).rows
    assert [n for n, value in enumerate(rows["k"]) if not isinstance(value, str)] == [
        0,
        50_000,
        100_000,
        150_000,
        200_000,
    ]
    assert rows["k"][-2] == "199999"


def test_a_file_that_lacks_a_column_keeps_its_content_and_is_warned_of(tmp_path: Path) -> None:
    """Among good files too; also where one of its lines is broken, and none of the columns is there."""
    put(tmp_path / "in", 1, b"k,t,s\n1,1,a\n", "a.csv")
    put(tmp_path / "in", 2, OTHER_HEADER.encode(), "b.csv")
    put(tmp_path / "in", 3, b"K;t;s\n1;1;a\n1,2\n", "c.csv")
    with PROGRAM.session(sources={"S": tg.csv(tmp_path / "in", delay=1)}) as session:
        with pytest.warns(tg.RunWarning) as told:
            (report,) = session.process()
        assert report.counts["S"].rejected == {"missing column": 5}
        assert rejected_of(session.quarantine_rows(), "b.csv") == OTHER_ROWS
        assert [row for *_, row in rejected_of(session.quarantine_rows(), "c.csv")] == ['{"K;t;s": "1;1;a"}', '"1,2"']
    (warning,) = map(str, (one.message for one in told))
    assert warning.startswith("TG430 3 rows of S, all of a file, were rejected: missing column\n")
    assert 'b.csv: {"K": "007", "t": "1", "Text": "a"}: missing column, for k\n' in warning
    assert "the columns of the file are: K, t, Text\n" in warning


def test_files_that_lack_a_column_are_counted_and_not_listed(tmp_path: Path) -> None:
    """Their rows are merged with those of batches before, which are not counted again."""
    warned = []
    (tmp_path / "in").mkdir()
    with PROGRAM.session(sources={"S": tg.csv(tmp_path / "in", delay=1)}, checkpoint=tmp_path / "state") as session:
        for n in range(1, 13):
            put(tmp_path / "in", 2 * n, b"k,t,s\n1,1,a\n", f"fine {n}.csv")
            put(tmp_path / "in", 2 * n + 1, OTHER_HEADER.encode(), f"other {n}.csv")
            with warnings.catch_warnings(record=True, action="always") as caught:
                list(session.process())
            warned += [(n, str(one.message).splitlines()[0]) for one in caught]
        assert session._notices.lacking == {"S": (12, str(tmp_path / "in" / "other 12.csv"))}
    text = "TG430 3 rows of S, all of a file, were rejected: missing column"
    assert warned == [(1, text), (10, f"{text}; it is file 10 of its kind")]


@pytest.mark.parametrize("lines", [b"1;1;a\n", b"1;1,5;a\n"])
def test_a_file_whose_fields_are_apart_by_something_else_is_told_what_to_do(tmp_path: Path, lines: bytes) -> None:
    put(tmp_path / "in", 1, b"k;t;s\n" + lines, "a.csv")
    with (
        PROGRAM.session(sources={"S": tg.csv(tmp_path / "in", delay=1)}) as session,
        pytest.warns(tg.RunWarning, match="columns of a file are apart by commas"),
    ):
        list(session.process())


def test_a_parquet_file_that_lacks_a_column_keeps_its_content(tmp_path: Path) -> None:
    put(tmp_path / "in", 1, written(pa.table({"k": [1], "T": [2], "more": ["x"]})), "a.parquet")
    put(tmp_path / "in", 2, FINE, "b.parquet")
    with PROGRAM.session(sources={"S": tg.parquet(tmp_path / "in", delay=1)}) as session:
        with pytest.warns(tg.RunWarning, match="the columns of the file are: k, T, more"):
            list(session.process())
        ((_, _, error, row),) = rejected_of(session.quarantine_rows(), "a.parquet")
    assert (error, row) == ("the columns of the file are: k, T, more", '{"k": 1, "T": 2, "more": "x"}')


@pytest.mark.spark
def test_on_spark_broken_lines_and_lacking_columns_are_said_alike(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", 1, RAGGED.encode(), "a.csv")
    put(tmp_path / "in", 2, OTHER_HEADER.encode(), "b.csv")
    sources = {"S": tg.csv(tmp_path / "in", delay=1, bounded=True)}
    for bytes_ in (None, 0):  # in the driver, and in a worker
        place = tmp_path / f"state {bytes_}"
        with pytest.warns(tg.RunWarning, match="all of a file, were rejected: missing column"):
            PROGRAM.start(spark, sources=sources, checkpoint=place, driver_bytes=bytes_).awaitTermination()
        rows = tg.read_quarantine(place).read_all().to_pylist()
        assert rejected_of(rows, "a.csv") == RAGGED_ROWS
        assert rejected_of(rows, "b.csv") == OTHER_ROWS
