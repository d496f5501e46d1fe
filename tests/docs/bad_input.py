"""What can be wrong with input: one case per row of docs/reference/bad-input.md, by the text of its first cell.

Each case feeds a run and tells what became of it: the reasons of rejected rows, an error's code, or that rows were
accepted.
"""

from __future__ import annotations

import datetime as dt
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import tidegate as tg
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sources import Source
from tidegate.runtime.engines.embedded.session import Session

NOON = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)


def stream(name: str) -> tg.Relation:
    """A stream with an attribute of every type."""
    return tg.stream(
        name,
        "t timestamp, began timestamp not null, i bigint, x double, s string, b boolean, m decimal(9,2), day date",
        progress="t",
        relations=lambda s: s.began <= s.t,
    )


S = stream("S")
#: A row of it that is fine.
FINE: dict[str, Any] = {
    "t": NOON,
    "began": NOON,
    "i": 1,
    "x": 0.5,
    "s": "text",
    "b": True,
    "m": Decimal("1.50"),
    "day": dt.date(2026, 3, 2),
}
CSV_LINE = "2026-03-02T12:00Z,2026-03-02T12:00Z,1,0.5,text,true,1.50,2026-03-02\n"
HEADER = ",".join(FINE) + "\n"

ENDLESS: list[object] = []
ENDLESS.append(ENDLESS)

Case = Callable[[Path], str]


def session(source: Source | None = None) -> Session:
    options = {} if source is None else {"S": source}
    return tg.program(Out=S).session(sources=options, clock=lambda: NOON)


def fate(report: BatchReport, stream: str = "S") -> str:
    """What a batch made of the rows of a stream."""
    counts = report.counts.get(stream)
    if counts is None or (not counts.rows_in and not counts.punctuations):
        return "no rows"
    if counts.rejected:
        return ", ".join(f"`{reason}`" for reason in sorted(counts.rejected))
    return "accepted" if counts.accepted else "punctuation"


def of_error(work: Callable[[], Any]) -> str:
    try:
        work()
    except tg.TidegateError as error:
        return error.code
    return "no error"


@dataclass(frozen=True)
class Fed:
    """Rows or a file for S, and what is promised of them."""

    rows: Any = None
    source: Source | None = None
    name: str | None = None
    content: bytes = b""
    options: Mapping[str, Any] = field(default_factory=dict)

    def in_directory(self, folder: Path) -> Source:
        """The file in the directory, with the reader for its name."""
        assert self.name is not None
        path = folder / self.name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(self.content)
        make: Mapping[str, Callable[..., Source]] = {".csv": tg.csv, ".json": tg.json, ".parquet": tg.parquet}
        return make[Path(self.name).suffix](folder, **self.options)

    def __call__(self, folder: Path) -> str:
        with session(self.source if self.name is None else self.in_directory(folder)) as live:
            if self.name is None:
                live.push("S", self.rows)
            try:
                return fate(live.step())
            except tg.TidegateError as error:
                return error.code


def pushed(rows: Any, source: Source | None = None) -> Case:
    return Fed(rows, source)


def value(**values: Any) -> Case:
    return pushed([FINE | values])


def refused(rows: Any) -> Case:
    def case(_: Path) -> str:
        with session() as live:
            return of_error(lambda: live.push("S", rows))

    return case


def in_file(name: str, content: bytes | str, **options: Any) -> Case:
    return Fed(name=name, content=content if isinstance(content, bytes) else content.encode(), options=options)


def parquet(columns: Mapping[str, Any], *, name: str = "a.parquet", **options: Any) -> Case:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return in_file(name, sink.getvalue().to_pybytes(), **options)


def lists(**changed: Any) -> dict[str, Any]:
    """One fine row as columns, some of them replaced, those that are None left out."""
    columns = {name: [one] for name, one in FINE.items()} | changed
    return {name: column for name, column in columns.items() if column is not None}


def late(_: Path) -> str:
    with session() as live:
        live.advance("S", {"t": NOON})
        live.step()
        live.push("S", [FINE])
        return fate(live.step())


def behind(_: Path) -> str:
    with session(tg.source(None, delay="5m")) as live:
        live.push("S", [FINE])
        live.step()
        early = NOON - dt.timedelta(minutes=5, microseconds=1)
        live.push("S", [FINE | {"t": early, "began": early}])
        return fate(live.step())


def changed(folder: Path) -> str:
    (folder / "a.csv").write_text(HEADER + CSV_LINE)
    with session(tg.csv(folder)) as live:
        live.step()
        (folder / "a.csv").write_text(HEADER + CSV_LINE * 2)
        return of_error(live.step)


def warned(run: Callable[[], object]) -> str:
    """The code of the warning that a run gives, beside that its source is not told to progress."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run()
    codes = {str(one.message).partition(" ")[0] for one in told if issubclass(one.category, tg.RunWarning)}
    return ", ".join(sorted(codes - {"TG431"}))


def changed_and_passed_over(folder: Path) -> str:
    (folder / "a.csv").write_text(HEADER + CSV_LINE)
    with session(tg.csv(folder, on_bad_file="quarantine")) as live:
        live.step()
        (folder / "a.csv").write_text(HEADER + CSV_LINE * 2)
        return warned(live.step)


def unnamed(folder: Path) -> str:
    (folder / "\udcff.csv").write_text(HEADER + CSV_LINE)
    with session(tg.csv(folder, on_bad_file="quarantine")) as live:
        return warned(live.step)


def pipe(folder: Path) -> str:
    os.mkfifo(folder / "a.csv")
    with session(tg.csv(folder)) as live:
        return fate(live.step())


def missing_directory(folder: Path) -> str:
    return of_error(lambda: session(tg.csv(folder / "nowhere")))


def policy_fail(_: Path) -> str:
    with session(tg.source(None, policy="fail")) as live:
        live.push("S", [FINE, FINE | {"i": "many"}])
        return of_error(live.step)


#: A program with a term that has no value where `i` is 0.
DIVIDED = tg.program(Out=S.select(S.t, share=tg.lit(1) / S.i))


def divided(source: Source | None = None) -> Callable[[Path], str]:
    def case(_: Path) -> str:
        with DIVIDED.session(sources={"S": source or tg.source(None)}, clock=lambda: NOON) as live:
            live.push("S", [FINE | {"i": 0}])
            try:
                return fate(live.step())
            except tg.TidegateError as error:
                return error.code

    return case


def static_table(_: Path) -> str:
    s, table = S.as_("s"), tg.table("T", "i bigint").as_("r")
    joined = tg.program(Out=s.join(table, table.i == s.i).select(s.t))
    return of_error(lambda: joined.session(statics={"T": [("many",)]}))


def advance(**progress: Any) -> Case:
    def case(_: Path) -> str:
        with session() as live:
            return of_error(lambda: live.advance("S", progress))

    return case


def unknown_stream(_: Path) -> str:
    with session() as live:
        return of_error(lambda: live.push("T", [FINE]))


def keyed(*rows: dict[str, Any]) -> Case:
    return pushed(list(rows), tg.source(None, key=("i", "t")))


def lines(*texts: str) -> str:
    return "\n".join(texts) + "\n"


JSON_FINE = (
    '{"t": "2026-03-02T12:00Z", "began": "2026-03-02T12:00Z", "i": 1, "x": 0.5, "s": "text", "b": true, "m": 1.50,'
    ' "day": "2026-03-02"}'
)
UPTO = tg.source(None, progress_columns={"t": "upto"})
AGED = tg.source(None, age_guard="30d")

CASES: dict[str, Case] = {
    # values
    "NULL for an instant": value(t=None),
    "NULL elsewhere": value(i=None, x=None, s=None, b=None, m=None, day=None),
    "text for a number": value(i="many"),
    "a number as text": value(i=" 12 ", x="1e3", m="1.5"),
    "an integer written `1.0`, `1e3` or `+5`": in_file(
        "a.csv",
        HEADER
        + "".join(CSV_LINE.replace(",1,", f",{text},") for text in ("1.0", "1e3", "+5", " 7. ", "9007199254740993.0")),
    ),
    "a number written `1_000`, `0x1F` or `1,5`": pushed(
        [FINE | {name: text} for name in "ixm" for text in ("1_000", "0x1F", "1,5", "\u0665")]
    ),
    "a fraction for an integer": value(i=1.5),
    "a whole double for an integer": value(i=2.0),
    "an integer beyond 64 bits": value(i=2**63),
    "NaN or infinity for an integer": value(i=float("nan")),
    "NaN or infinity for a double": pushed([FINE | {"x": float("nan")}, FINE | {"x": float("-inf")}]),
    "a boolean for a number": value(i=True),
    "a number for text": value(s=1),
    "a number for a boolean": value(b=1),
    "a number for a timestamp": value(t=1_772_452_800),
    "a list or a struct for a value": value(s=["a"]),
    "a decimal with too many places": value(m=Decimal("1.505")),
    "a decimal that is too large": value(m=Decimal("12345678.00")),
    "a date with a time of day": value(day=NOON),
    "a day that does not exist": value(t="2026-02-30T00:00Z"),
    "a leap second": value(t="2026-06-30T23:59:60Z"),
    "an instant without an offset": value(t="2026-03-02T12:00", began="2026-03-02"),
    "an instant in nanoseconds": pushed(
        pa.table(lists(t=pa.array([1_772_452_800_000_000_999], pa.timestamp("ns", tz="UTC"))))
    ),
    "an instant beyond 2⁶¹ microseconds": pushed(pa.table(lists(t=pa.array([2**62], pa.timestamp("us", tz="UTC"))))),
    "an instant of a time zone that nobody knows": pushed(
        pa.table(lists(t=pa.array([1_772_452_800_000_000], pa.timestamp("us", tz="Mars/Phobos"))))
    ),
    "an integer of thousands of digits": value(i=10**5000),
    "`NaT` for an instant": value(t=pd.NaT),
    "an array for a value": value(i=np.array([1, 2])),
    "a dictionary with keys that are no text, a list that contains itself": pushed(
        [FINE | {"s": {(1, 2): 3}}, FINE | {"s": ENDLESS}]
    ),
    "half a surrogate pair in text": value(s="\ud800"),
    "NUL, line breaks, bidirectional marks in text": value(s="a\0b\r\n\u202e"),
    # rows
    "a tuple of another length": refused([(NOON, NOON)]),
    "columns of different lengths": refused(lists(i=[1, 2])),
    "something that is no table": refused(3),
    "a key missing in a mapping": pushed([{name: one for name, one in FINE.items() if name != "t"}]),
    "a key that is nearly an attribute's name, which no row has": refused(
        [{name.replace("began", "begun"): one for name, one in FINE.items()}]
    ),
    "a row that breaks a declared relation": value(began=NOON + dt.timedelta(seconds=1)),
    "a row at or below progress": late,
    "a row further behind than the delay": behind,
    "a row too far behind the clock": pushed([FINE | {"t": "1970-01-01", "began": "1970-01-01"}], AGED),
    "a row too far ahead": value(t=NOON + dt.timedelta(hours=1, microseconds=1)),
    "a row for which a term of a query has no value": divided(),
    'the same under `on_error="fail"`': divided(tg.source(None, on_error="fail")),
    "the same row again": keyed(FINE, FINE),
    "a row with the key of another": keyed(FINE, FINE | {"x": 0.25}),
    "a row with progress and nothing else": pushed([{"upto": NOON}], UPTO),
    "progress that is no instant": pushed([FINE | {"upto": "soon"}], UPTO),
    "progress too far ahead": pushed([FINE | {"upto": "2999-01-01"}], UPTO),
    'any of these under `policy="fail"`': policy_fail,
    # columns
    "a column missing in pushed rows": refused(lists(i=None)),
    "a column missing in a file": parquet(lists(i=None)),
    "a column missing in a file in a folder `column=value`": parquet(lists(i=None), name="i=7/a.parquet"),
    "a value of a folder that its type cannot hold": parquet(lists(i=None), name="i=many/a.parquet"),
    "a key missing in a line of JSON": in_file("a.json", JSON_FINE.replace('"i": 1, ', "")),
    "a progress column missing in a file": parquet(lists(), progress_columns={"t": "upto"}),
    "a column too many": parquet(lists(more=[1])),
    "columns in another order": parquet(dict(reversed(lists().items()))),
    "a name in another case": parquet(lists(i=None, I=[1])),
    "a column twice": in_file("a.csv", HEADER.replace("began", "t") + CSV_LINE),
    "a column with another type that fits": parquet(lists(i=["12"], x=[3], s=pa.array(["a"]).dictionary_encode())),
    "a column with another type that does not fit": parquet(lists(i=["many"])),
    # files
    "an empty file": in_file("a.csv", ""),
    "a header and no line": in_file("a.csv", HEADER),
    "a line with too few or too many fields": in_file("a.csv", HEADER + "1,2\n"),
    "a line that is no JSON object": in_file("a.json", lines("[1, 2]", '{"t": ', "[" * 100_000)),
    "a quoted line break in CSV": in_file("a.csv", HEADER + CSV_LINE.replace("text", '"a\nb"')),
    "a byte order mark, or Windows line ends": in_file("a.csv", "\ufeff" + (HEADER + CSV_LINE).replace("\n", "\r\n")),
    "text that is not UTF-8 in CSV or JSON": in_file(
        "a.csv", (HEADER + CSV_LINE.replace("text", "caf\xe9")).encode("latin-1")
    ),
    "text that is not UTF-8 in a Parquet file": parquet(lists(s=pa.array([b"caf\xe9"]).view(pa.string()))),
    "a CSV file that ends within quotes in its last column": in_file(
        "a.csv", HEADER + CSV_LINE.replace(",2026-03-02\n", ',"2026-03-02\n')
    ),
    "a damaged Parquet file": in_file("a.parquet", b"PAR1" + bytes(100) + b"PAR1"),
    "a file of another format": in_file("a.parquet", HEADER + CSV_LINE),
    'any of these four under `on_bad_file="quarantine"`': in_file(
        "a.parquet", HEADER + CSV_LINE, on_bad_file="quarantine"
    ),
    "a file that is not complete yet": in_file("_a.csv", HEADER + CSV_LINE[:20]),
    "a file that changed after it was read": changed,
    'the same under `on_bad_file="quarantine"`': changed_and_passed_over,
    "a name that is not UTF-8": in_file("\udcff.csv", HEADER + CSV_LINE),
    'a name that is not UTF-8, under `on_bad_file="quarantine"`': unnamed,
    "a pipe, a socket or a device": pipe,
    "a directory that does not exist": missing_directory,
    # calls
    "a malformed row of a static table": static_table,
    "rows for a stream that the program has not": unknown_stream,
    "progress on another attribute": advance(began=NOON),
    "progress up to something that is no instant": advance(t="soon"),
    "progress up to `NaT`": advance(t=pd.NaT),
}
