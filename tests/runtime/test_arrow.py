"""Arrow in and out: whatever exports Arrow data is taken, results are exported, and pandas is not needed for it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.runtime.eval.columns import user_arrow_schema

stream = tg.stream(
    "T", "k bigint, at timestamp, name string, day date, price decimal(10,2), weight double, ok boolean", progress="at"
)
ROWS: list[dict[str, object]] = [
    {"k": 1, "at": "2026-03-02T12:00:00.000001Z", "name": "a", "day": "2026-03-02", "price": "1.25", "weight": 0.5, "ok": True},
    {"k": None, "at": "2026-03-02T12:10Z", "name": None, "day": None, "price": None, "weight": None, "ok": None},
    {"k": 3, "at": "2026-03-02T13:00Z", "name": "ß\0", "day": "1969-12-31", "price": "-0.01", "weight": -1e300, "ok": False},
]  # fmt: skip


@dataclass
class Stream:
    """Exports a stream of batches and has nothing else of a frame."""

    table: Any

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


@dataclass
class Array:
    """Exports one array."""

    array: Any

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
        return self.array.__arrow_c_array__(requested_schema)


def program() -> tg.Program:
    return tg.program(All=stream)


def table() -> pa.Table:
    return program().run({"T": ROWS})["All"].arrow()


FORMS: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda t: t,
    "batch": lambda t: t.to_batches()[0],
    "reader": lambda t: t.to_reader(max_chunksize=2),
    "polars": pl.DataFrame,
    "polars series of structs": lambda t: pl.DataFrame(t).to_struct("rows"),
    "capsule": Stream,
    "capsule of chunks": lambda t: Stream(pa.concat_tables([t.slice(0, 1), t.slice(1)])),
    "capsule of string views": lambda t: Stream(pl.DataFrame(t)),
    "capsule of one batch": lambda t: Array(t.combine_chunks().to_batches()[0]),
    "capsule of structs": lambda t: Array(t.to_struct_array().combine_chunks()),
    "other columns, other order": lambda t: Stream(
        t.select(t.column_names[::-1]).append_column("more", pa.nulls(t.num_rows))
    ),
    "dictionaries": lambda t: Stream(t.set_column(2, "name", t.column("name").dictionary_encode())),
    "duckdb": lambda t: duckdb.connect().from_arrow(t.set_column(1, "at", t.column("at").cast(pa.timestamp("us")))),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_arrow_data_is_taken(form: str) -> None:
    expected = table()
    assert expected.num_rows == len(ROWS)
    found = program().run({"T": FORMS[form](expected)})
    assert len(found.quarantine) == 0
    assert found["All"].arrow().equals(expected)


def test_a_static_table_may_be_a_stream() -> None:
    names = tg.table("N", "k bigint, name string")
    t, n = stream.as_("t"), names.as_("n")
    joined = tg.program(Named=t.join(n, t.k == n.k).select(at=t.at, name=n.name))
    rows = Stream(pa.table({"k": [1, 3], "name": ["one", "three"]}))
    assert joined.run({"T": ROWS, "N": rows}).rows("Named")[0]["name"] == "one"


@pytest.mark.parametrize(
    "data", [Stream(pa.chunked_array([[1, 2]])), Array(pa.array([1, 2])), pa.array([1, 2]), pl.Series([1, 2])]
)
def test_what_exports_no_records_is_refused(data: Any) -> None:
    with program().session() as session, pytest.raises(tg.QueryError) as caught:
        session.push("T", data)
    assert caught.value.code == "TG311"
    assert "one field per attribute" in str(caught.value)


def test_results_are_streams_of_arrow_data(tmp_path: Path) -> None:
    sinks = {"All": tg.parquet_sink(tmp_path / "out")}
    ways: tuple[dict[str, Any], ...] = (
        {},
        {"checkpoint": tmp_path / "a"},
        {"checkpoint": tmp_path / "b", "sinks": sinks},
    )
    for options in ways:
        with program().session(**options) as session:
            empty = session.reader("All")
            assert empty.schema == session.table("All").arrow().schema == user_arrow_schema(stream.schema)
            assert empty.read_all().num_rows == 0
            for row in ROWS:
                session.push("T", [row])
                session.advance("T", {"at": str(row["at"])})
                session.step()
            reader = session.reader("All")
            assert isinstance(reader, pa.RecordBatchReader)
            batches = list(reader)
            assert len(batches) == 3
            assert pa.Table.from_batches(batches).equals(session.table("All").arrow())
            assert pl.DataFrame(session.reader("All")).equals(pl.DataFrame(table()))
            with pytest.raises(tg.QueryError, match="no result 'Nothing'"):
                session.reader("Nothing")


def test_a_reader_that_nobody_reads_leaves_no_directory_open(tmp_path: Path) -> None:
    def times_open() -> int:
        gc.collect()
        return sum(os.path.realpath(path) == str(tmp_path / "out") for path in Path("/proc/self/fd").iterdir())

    sinks = {"All": tg.parquet_sink(tmp_path / "out")}
    with program().session(checkpoint=tmp_path / "state", sinks=sinks) as session:
        session.push("T", ROWS)
        session.finish()
        session.step()
        before = times_open()
        readers = [session.reader("All") for _ in range(3)]
        assert times_open() == before + 3
        readers.pop().read_next_batch()  # one is read to a part, one whole, one not at all
        assert readers.pop().read_all().num_rows == len(ROWS)
        assert times_open() <= before + 1
        readers.clear()
        assert times_open() == before


def test_a_single_result_is_exported_by_itself() -> None:
    assert pl.DataFrame(program().run({"T": ROWS})).equals(pl.DataFrame(table()))
    several = tg.program(All=stream, Some=stream.where(stream.k > 1)).run({"T": ROWS})
    with pytest.raises(tg.QueryError, match="2 results, not one") as caught:
        pl.DataFrame(several)
    assert caught.value.code == "TG402"


def test_arrow_in_and_out_works_where_pandas_can_not_be_imported() -> None:
    """pyarrow looks for pandas by itself where it is installed; here any import of it fails."""
    text = """
import sys
from importlib.machinery import ModuleSpec
class NoPandas:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name.partition(".")[0] == "pandas" else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        raise ImportError("there is no pandas here")
sys.meta_path.insert(0, NoPandas())
import polars as pl, pyarrow as pa
import tidegate as tg
t = tg.stream("T", "k bigint, at timestamp, name string, day date, price decimal(10,2)", progress="at")
program = tg.program(PerHour=t.group_by(end=tg.tumbling(t.at, "1h")).agg(n=tg.count(), price=tg.sum(t.price)), All=t)
rows = program.run({"T": [{"k": 1, "at": "2026-03-02T12:00Z", "name": "a", "day": "2026-03-02", "price": "1.25"}]})
class Stream:
    def __arrow_c_stream__(self, requested_schema=None):
        return rows["All"].__arrow_c_stream__(requested_schema)
with program.session() as session:
    session.push("T", Stream())
    session.push("T", [{"k": 1, "at": "no instant", "name": None, "day": None, "price": None}])
    session.finish()
    session.step()
    print(pl.DataFrame(session.reader("PerHour")).to_dicts()[0]["n"], session.table("All").arrow().equals(rows["All"].arrow()))
    print(len(session.quarantine_rows()))
print([name for name in sys.modules if name.partition(".")[0] == "pandas"])
"""
    root = Path(__file__).resolve().parents[2]
    answer = subprocess.run([sys.executable, "-c", text], cwd=root, capture_output=True, text=True, check=False)
    assert (answer.stdout, answer.stderr) == ("1 True\n1\n[]\n", "")


def test_pandas_is_not_loaded_for_rows_of_python() -> None:
    text = """
import sys
import tidegate as tg
t = tg.stream("T", "k bigint, at timestamp, name string, day date, x double, yes boolean", progress="at")
program = tg.program(PerHour=t.group_by(end=tg.tumbling(t.at, "1h")).agg(n=tg.count(), x=tg.sum(t.x)), All=t)
with program.session() as session:
    session.push("T", [(k, f"2026-03-02T{10 + k}:00Z", None if k else "a", "2026-03-02", 0.5, True) for k in range(3)])
    session.push("T", [{"k": 1, "at": "2026-03-02T13:00Z", "name": None, "day": None, "x": None, "yes": None}])
    session.finish()
    session.step()
    print(max(session.table("PerHour")["end"]), len(session.results("All")), max(session.table("All")["at"]))
print("pandas" in sys.modules)
"""
    root = Path(__file__).resolve().parents[2]
    answer = subprocess.run([sys.executable, "-c", text], cwd=root, capture_output=True, text=True, check=False)
    assert (answer.stdout, answer.stderr) == (
        "2026-03-02 14:00:00+00:00 4 2026-03-02 13:00:00+00:00\nFalse\n",
        "",
    )


def test_pandas_is_not_loaded_by_the_files_of_a_session(tmp_path: Path) -> None:
    """Not by the log of files, which begins anew at some number of them, rejected rows, situations, row patterns."""
    text = """
import sys
from pathlib import Path
import polars as pl
import tidegate as tg
folder = Path(sys.argv[1])
t = tg.stream("T", "k bigint, at bigint, x double", progress="at")
high = t.partition_by("k").derive(High=tg.situation(t.x > 0.5))
program = tg.program(
    High=high.High, Twice=t.sequences("A B", by="k", define={"A": lambda m: m.A.x > 0}, within=9), All=t
)
(folder / "in").mkdir()
with program.session(sources={"T": tg.parquet(folder / "in", delay=0)}, checkpoint=folder / "checkpoint") as session:
    for n in range(70):
        rows = [(k, n, float((n + k) % 3)) for k in range(2)] + [(0, None if n == 3 else n, None)] * (n == 3)
        pl.DataFrame(rows, schema=["k", "at", "x"], orient="row").write_parquet(folder / "in" / f"{n:03}.parquet")
        session.step()
    print(len(session.results("All")), len(session.results("High")) > 9, len(session.results("Twice")) > 9)
    print(len(session.quarantine_rows()))
print("pandas" in sys.modules)
"""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", text, str(tmp_path)]
    answer = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert answer.stdout == "138 True True\n1\nFalse\n", answer.stderr
