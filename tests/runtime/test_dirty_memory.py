"""Many dirty rows take a few times the memory of their table: they become Python values a part at a time. What is said
of each is the same.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.shards import shards
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.types import BIGINT
from tidegate.runtime.eval import unevaluable
from tidegate.runtime.ingest import ingest, validation
from tidegate.runtime.ingest.raw_rows import Raw
from tidegate.runtime.ingest.validation import ValidatedRows
from tidegate.runtime.ordered.new_events import set_aside_ties

#: Prints by how many bytes more are resident at most while the rows of the last files are judged, and how many are in
#: quarantine.
PROGRAMS = """
import json, sys
from pathlib import Path
import tidegate as tg

kind, place = sys.argv[1], Path(sys.argv[2])
events = tg.stream("E", "k bigint, w string, t timestamp", progress="t")
situation = tg.situation(events.k >= 0, n=tg.count(events.w))
program = {
    "terms": lambda: tg.program(All=events.with_(n=events.w.cast("bigint"))),
    "over": lambda: tg.program(All=events.over(by="k", order="t", before=tg.lag(events.w))),
    "situations": lambda: tg.program(All=events.partition_by("k").derive(A=situation).A),
}.get(kind, lambda: tg.program(All=events.select("k", "w", "t")))()


def resident(name):  # what getrusage says has the memory of the process in it that has started this one
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith(name))


source = tg.parquet(place / "in", delay="1s", per_batch=2, key=("k", "t") if kind == "key" else ())
with program.session(sources={"E": source}, checkpoint=place / "state") as session:
    for number in range(3):
        before = resident("VmRSS")
        for path in (place / "waiting").glob(f"{number}*"):
            path.rename(place / "in" / path.name)
        session.process()
    session.finish()
    session.step()
    kept = sum(batch.num_rows for batch in session.quarantine())
    print(json.dumps({"grown": resident("VmHWM") - before, "kept": kept}))
"""
#: So many times the bytes of the table are resident at most beside what was before: twice what was measured, and less
#: than where each row has an error, of its term (19 times) or of its tie (15 times).
TIMES = {"format": 11, "terms": 15, "over": 14, "late": 12, "key": 10, "situations": 17, "column": 16}


def dirty(kind: str, rows: int, first: int) -> list[pa.Table]:
    """Rows of one file, or of two that hold the same keys and instants."""
    numbers = np.arange(first, first + rows)
    texts = [f"{number} of many rows, each with a text of its own {'.' * 40}" for number in numbers]
    instants = numbers * 1000 if kind == "late" and first else 1_772_409_600_000_000 + numbers * 1000
    times = pa.array(instants, pa.timestamp("us", "UTC"))
    if kind == "format" and first:
        times = pa.array([f"{1 + n % 28:02}.01.2026 10:{n // 60 % 60:02}:{n % 60:02}.{n}" for n in numbers.tolist()])
    made = pa.table({"k": numbers % 7, "w": pa.array(texts), "t": times})
    if kind == "column" and first:
        made = made.drop_columns(["k"])
    if kind == "key":
        return [made, made]
    other = made.set_column(1, "w", pa.array([f"{text} again" for text in texts]))
    return [made, other] if kind in ("over", "situations") else [made]


def measured(place: Path, kind: str, rows: int) -> dict[str, Any]:
    (place / "in").mkdir()
    (place / "waiting").mkdir()
    for number, (count, first) in enumerate(((2, 0), (100, 1000), (rows, 10_000))):
        files = dirty(kind, count, first)
        for part, table in zip("ab", files, strict=False):
            pq.write_table(table, place / "waiting" / f"{number}{part}.parquet")
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAMS, kind, str(place)], check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    return found | {"size": sum(table.nbytes for table in files)}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc elsewhere")
@pytest.mark.long
@pytest.mark.parametrize("kind", TIMES)
def test_many_dirty_rows_take_a_few_times_the_memory_of_their_table(tmp_path: Path, kind: str) -> None:
    found = measured(tmp_path, kind, 300_000)
    assert found["kept"] >= 300_000
    assert found["grown"] < TIMES[kind] * found["size"], found


events = tg.stream("E", "k bigint, w string, d double, t timestamp", progress="t")
DIRTY = tg.program(All=events.with_(n=events.w.cast("bigint")))


def judged(place: Path, judge: int, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[Any]:
    """What a session says of a file, with so many rows judged together."""
    for module in (validation, ingest):
        monkeypatch.setattr(module, "JUDGED", judge)
    source = tg.csv(place, delay="1m", key=("k", "t"), pattern="*.csv", **options)
    with DIRTY.session(sources={"E": source}) as session:
        session.process()
        session.finish()
        session.step()
        rejected = sorted(map(str, session.quarantine_rows()))
        return [session.counts["E"], rejected, session.results("All"), session.progress]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", shards(20, 4))
def test_pieces_of_an_arrival_say_the_same_as_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    dirty = rng.choice((0.0, 0.05, 0.4))

    def field(fine: str, *others: str) -> str:
        return rng.choice(others) if rng.random() < dirty else fine

    for name in ("a", "b"):
        lines = ["k,w,d,t,p"]
        for n in range(rng.choice((1, 6, 7, 40))):
            row = [
                field(str(rng.randint(1, 3)), "x", "1.0", "1.5", "9" * 30, ""),
                field(str(n), "many", "2" * 30, ""),
                field("0.5", "half", "1e3", "inf", ""),
                field(f"2026-01-01T00:{n:02}:00Z", "01.01.2026", "", f"2026-01-01 00:{n:02}", "2025-01-01T00:00Z"),
                field("", f"2026-01-01T00:{n:02}:00Z"),
            ]
            if rng.random() < dirty / 8:
                row = ["", "", "", "", "2026-01-01T00:05:00Z"]
            lines.append(",".join(row[: rng.choice((5, 5, 5, 4)) if rng.random() < dirty / 4 else 5]))
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    options = {"progress_columns": {"t": "p"}} if rng.random() < 0.5 else {}
    whole = judged(tmp_path, 1 << 16, monkeypatch, **options)
    assert judged(tmp_path, rng.choice((1, 2, 3, 5)), monkeypatch, **options) == whole


@pytest.mark.filterwarnings("ignore")
def test_columns_that_a_file_lacks_are_told_of_each_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("k,w,d\n" + "".join(f"{n},{n},0.5\n" for n in range(10)))
    whole = judged(tmp_path, 1 << 16, monkeypatch)
    assert whole[0].rejected == {"missing column": 10}
    assert judged(tmp_path, 3, monkeypatch) == whole


def test_bytes_that_are_no_text_are_told_of_in_their_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.array([b"\xff" if n in (1, 8) else b"%d" % n for n in range(10)]).cast(pa.string(), safe=False)
    table = pa.table({"k": range(10), "w": texts, "d": [0.5] * 10, "t": [f"2026-01-01T00:0{n}Z" for n in range(10)]})
    said = []
    for judge in (1 << 16, 3):
        for module in (validation, ingest):
            monkeypatch.setattr(module, "JUDGED", judge)
        with DIRTY.session() as session:
            session.push("E", table)
            session.finish()
            session.step()
            said.append((session.counts["E"], sorted(map(str, session.quarantine_rows())), session.results("All")))
    assert sum(said[0][0].rejected.values()) == 2
    assert said[0] == said[1]


# --- what is a Python value at a time


def test_no_more_rows_are_judged_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    validate, counts = validation.validate, list[int]()

    def counting(rows: Raw, schema: Schema) -> ValidatedRows:
        counts.append(rows.count)
        return validate(rows, schema)

    monkeypatch.setattr(validation, "validate", counting)
    lines = [f"{n},{n},0.5,{'noon' if n == 8 else f'2026-01-01T00:{n:02}:00Z'}\n" for n in range(10)]
    (tmp_path / "a.csv").write_text("k,w,d,t\n" + "".join(lines))
    assert judged(tmp_path, 3, monkeypatch)[0].rejected == {"unparseable": 1}
    assert counts == [3, 3, 3, 1]


def test_no_more_errors_of_a_term_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of each row is its own error."""
    monkeypatch.setattr(unevaluable, "MOST_ERRORS", 4)
    (query,) = DIRTY.definition.queries
    texts = [f"no. {n // 2}" for n in range(20)]
    rows = pl.DataFrame({"k": 1, "w": texts, "d": 0.5, "t": 0}, schema_overrides={"t": pl.Int64})
    found = unevaluable.failures((query.node,), rows, {})
    (part,) = found.parts
    for place, error in found:
        assert texts[place] in str(error)
        assert len(part.failures._known) <= 4
    assert len(found) == len(found.texts()) == 20
    fine = unevaluable.failures((query.node,), rows.with_columns(w=pl.lit("7")), {})
    assert (len(fine), fine.numbers.to_list()) == (0, [])


def test_events_that_nothing_orders_stay_a_table() -> None:
    rows = pl.DataFrame({"k": [1] * 6, "t": [5, 5, 5, 7, 7, 7]})
    schema = Schema((Attribute("k", BIGINT), Attribute("t", BIGINT)))
    (some,) = set_aside_ties(rows, schema, "t")
    assert some.count == 6
    told = list(some.as_rows("Q", 10))
    assert [row.position for row in told] == [10, 11, 12, 13, 14, 15]
    assert [row.row for row in told] == [json.dumps({"k": 1, "t": t}) for t in (5, 5, 5, 7, 7, 7)]
    assert len({row.error for row in told}) == 2
    assert set_aside_ties(rows.clear(), schema, "t") == []


@pytest.mark.filterwarnings("ignore:TG435")
def test_a_term_that_reads_nothing_has_no_value_for_any_row() -> None:
    """Rows of results are set aside, each with its error."""
    a, b = events.as_("a"), events.as_("b")
    pairs = a.join(b, a.k == b.k, a.t < b.t, b.t <= a.t + tg.minutes(1)).select(k=a.k, t=b.t)
    program = tg.program(All=pairs.with_(n=tg.lit("many").cast("bigint")))
    with program.session() as session:
        session.push("E", [(1, "", 0.5, f"2026-01-01T00:00:0{n}Z") for n in range(3)])
        session.finish()
        session.step()
        assert len(session.results("All")) == 0
        assert [row["error"] for row in session.quarantine_rows()] == [
            "TG303 cast_bigint('many'): 'many' is no bigint"
        ] * 3
