"""CSV is read alike whatever its size: lines in quotes, long values and stray quotes beyond what is read at once."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyarrow import csv

import tidegate as tg
from tidegate.runtime.ingest import inputs
from tidegate.runtime.state.manifest import SourceCounts

S = tg.stream("S", "id bigint, txt string, t bigint", progress="t")
PROGRAM = tg.program(Out=S)


def read(path: Path) -> tuple[SourceCounts, list[dict[str, Any]]]:
    done = PROGRAM.run({"S": tg.csv(path)})
    return done.counts["S"], done.rows("Out")


@pytest.fixture(params=[1 << 12, 1 << 20])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes that are taken apart at a time."""
    size: int = request.param
    monkeypatch.setattr(inputs, "_CSV_BLOCK", size)
    return size


def test_lines_within_quotes_are_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However they look, and wherever what is read at once ends."""
    monkeypatch.setattr(inputs, "_CSV_BLOCK", 1 << 12)
    for ahead in range(30):
        texts = ["x" * ahead, *(["note\n7,forged,8\nend"] * 400)]
        pl.DataFrame({"id": range(401), "txt": texts, "t": range(401)}).write_csv(tmp_path / "in.csv")
        counts, rows = read(tmp_path / "in.csv")
        assert (counts.rows_in, counts.accepted) == (401, 401)
        assert [(row["id"], row["txt"] or "") for row in rows] == list(enumerate(texts))


def test_lines_within_quotes_beyond_a_mebibyte(tmp_path: Path) -> None:
    texts = ["note\n7,forged,8\nend"] * 90_000
    pl.DataFrame({"id": range(90_000), "txt": texts, "t": range(90_000)}).write_csv(tmp_path / "in.csv")
    counts, rows = read(tmp_path / "in.csv")
    assert (counts.rows_in, counts.accepted) == (90_000, 90_000)
    assert [row["id"] for row in rows] == list(range(90_000))


def test_a_quote_that_none_closes_loses_no_line(tmp_path: Path, block: int) -> None:
    """What follows it is one value, which the rejected row has."""
    count = block // 4
    stray = count // 2
    lines = [f'{n},"5 inch,{n}' if n == stray else f"{n},plain,{n}" for n in range(count)]
    (tmp_path / "in.csv").write_text("\n".join(("id,txt,t", *lines, "")))
    with PROGRAM.session(sources={"S": tg.csv(tmp_path / "in.csv")}) as session:
        session.process()
        counts = session.counts["S"]
        assert (counts.accepted, counts.rejected) == (stray, {"unparseable": 1})
        assert counts.rows_in == stray + 1
        (row,) = session.quarantine_rows()
    assert f"{count - 1},plain,{count - 1}" in str(row)


@pytest.mark.parametrize("text", ["x" * 40_000, "x\n" * 20_000, 'x"\n' * 20_000], ids=["long", "lines", "quotes"])
def test_a_value_may_be_longer_than_what_is_read_at_once(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "_CSV_BLOCK", 1 << 12)
    pl.DataFrame({"id": range(20), "txt": [text] * 20, "t": range(20)}).write_csv(tmp_path / "in.csv")
    counts, rows = read(tmp_path / "in.csv")
    assert (counts.rows_in, counts.accepted) == (20, 20)
    assert {row["txt"] for row in rows} == {text}


def test_broken_lines_are_where_they_stand(tmp_path: Path, block: int) -> None:
    count = block // 4
    broken = {count // 5, count // 2, count - 2}
    lines = [f"{n},x" if n in broken else f'{n},"p\nq",{n}' for n in range(count)]
    (tmp_path / "in.csv").write_text("\n".join(("id,txt,t", *lines, "")))
    counts, rows = read(tmp_path / "in.csv")
    assert (counts.rows_in, counts.accepted) == (count, count - 3)
    assert counts.rejected == {"unparseable": 3}
    assert [row["id"] for row in rows] == [n for n in range(count) if n not in broken]


@pytest.mark.parametrize("text", ["", "\n", "\r\n\n", "id,txt,t", "id,txt,t\n", "\ufeffid,txt,t", "\nid,txt,t"])
def test_a_header_alone_has_no_rows_whether_or_not_its_line_ends(tmp_path: Path, text: str) -> None:
    (tmp_path / "in.csv").write_text(text, encoding="utf-8", newline="")
    counts, rows = read(tmp_path / "in.csv")
    assert (counts.rows_in, counts.accepted, rows) == (0, 0, [])


def test_one_line_without_an_end_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,txt,t\n1,a,2")
    assert read(tmp_path / "in.csv")[1] == [{"id": 1, "txt": "a", "t": 2}]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_line_ends_within_quotes_stay_what_they_are(tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where what is read at once ends between the two characters of one."""
    monkeypatch.setattr(inputs, "_CSV_BLOCK", 1 << 10)
    text = f"a{end}{end}7,forged,8{end}"
    for ahead in range(34):
        lines = ["id,txt,t", f"0,{'x' * ahead},0", *(f'{n},"{text}",{n}' for n in range(1, 200)), ""]
        (tmp_path / "in.csv").write_bytes(end.join(lines).encode())
        counts, rows = read(tmp_path / "in.csv")
        assert (counts.rows_in, counts.accepted) == (200, 200)
        assert [row["txt"] for row in rows[1:]] == [text] * 199


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_file_that_ends_within_quotes_is_cut_off_wherever_that_is(
    tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "_CSV_BLOCK", 1 << 10)
    schema = tg.stream("S", "id bigint, t bigint, txt string", progress="t")
    for ahead in range(1000, 1034):
        lines = ["id,t,txt", f"0,0,{'x' * (ahead - 25)}", f'1,1,"a{end}b']
        for name, text in (
            ("in.csv", end.join(lines).encode()),
            ("in.csv.gz", gzip.compress(end.join(lines).encode())),
        ):
            (tmp_path / name).write_bytes(text)
            with pytest.raises(tg.QueryError, match=r"TG412.*begins with a quote that none closes"):
                tg.program(Out=schema).run({"S": tg.csv(tmp_path / name)})


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize(
    "last", ['"b', '"b\nc', '"b\nc\n', '"', '"b ""c"" d'], ids=["text", "lines", "a line end", "nothing", "quotes"]
)
def test_a_file_of_one_column_may_be_cut_off(tmp_path: Path, end: str, last: str) -> None:
    words = tg.stream("S", "txt string, received timestamp", progress="received")
    source = tg.csv(tmp_path, arrival="received", pattern="*.csv")
    (tmp_path / "in.csv").write_bytes(end.join(["txt", "a", last]).encode())
    with pytest.raises(tg.QueryError, match=r"TG412.*begins with a quote that none closes"):
        tg.program(Out=words).run({"S": source})
    (tmp_path / "in.csv").write_bytes(end.join(["txt", "a", f'{last}"', ""]).encode())
    counts = tg.program(Out=words).run({"S": source}).counts["S"]
    assert (counts.rows_in, counts.accepted) == (2, 2)


def test_a_file_may_be_cut_off_within_a_column_that_nobody_reads(tmp_path: Path) -> None:
    """Also where that is no text."""
    (tmp_path / "in.csv").write_bytes(b'id,txt,t,more\n1,a,1,\xff\n2,a,2,"b\n3,c,3,d\n')
    with pytest.raises(tg.QueryError, match=r"TG412.*begins with a quote that none closes"):
        read(tmp_path / "in.csv")


@pytest.mark.parametrize("value", ["12", " 1.5", "true", "2026-03-02", "2026-03-02T12:00:00.000000001Z"])
def test_a_file_may_be_cut_off_within_a_number_that_nobody_reads(
    tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also within an instant of more digits than Python has, where pandas is not there to take it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    for name, pack in (("in.csv", bytes), ("in.csv.gz", gzip.compress)):
        lines = f'id,txt,t,more\n1,"a,",1,{value}\n2,a,2,"{value}'.encode()
        (tmp_path / name).write_bytes(pack(lines))
        with pytest.raises(tg.QueryError, match=r"TG412.*begins with a quote that none closes"):
            read(tmp_path / name)
        for end in (b'"', b'"\n'):
            (tmp_path / name).write_bytes(pack(lines + end))
            assert len(read(tmp_path / name)[1]) == 2


def test_a_value_that_is_no_text_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Larger blocks would make no text of it, and take memory."""
    monkeypatch.setattr(inputs, "_CSV_BLOCK", 1 << 10)
    asked: list[int] = []
    options = csv.ReadOptions

    def noted(*, use_threads: bool, block_size: int) -> csv.ReadOptions:
        asked.append(block_size)
        return options(use_threads=use_threads, block_size=block_size)

    monkeypatch.setattr(csv, "ReadOptions", noted)
    (tmp_path / "in.csv").write_bytes(b"id,txt,t\n" + b"1,x,1\n" * 1000 + b"2,\xff,2\n")
    with pytest.raises(tg.QueryError, match=r"TG412(?s:.)*invalid UTF8"):
        read(tmp_path / "in.csv")
    assert asked == [1 << 10]


@pytest.mark.parametrize("ending", ["gz", "GZ", "Gz"])
def test_endings_of_compressed_files_may_be_capital(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"in.csv.{ending}").write_bytes(gzip.compress(b"id,txt,t\n1,a,2\n"))
    assert read(tmp_path / f"in.csv.{ending}")[1] == [{"id": 1, "txt": "a", "t": 2}]


@pytest.mark.parametrize("count", [0, 1, 2, 100_000])
def test_compressed_files_have_the_same_rows(tmp_path: Path, count: int) -> None:
    """Whatever their compressed bytes look like: the time in the header of gzip is any bytes."""
    lines = "\n".join(["id,txt,t", *(f"{n},x,{n}" for n in range(count))]).encode()
    for time in range(0, 3072, 256 if count < 3 else 3072):
        (tmp_path / "in.csv.gz").write_bytes(gzip.compress(lines, mtime=time + 10))
        counts, rows = read(tmp_path / "in.csv.gz")
        assert (counts.rows_in, counts.accepted, len(rows)) == (count, count, count)


def test_a_value_may_be_longer_than_its_compressed_file(tmp_path: Path) -> None:
    text = "x\n" * (1 << 20)
    (tmp_path / "in.csv.gz").write_bytes(gzip.compress(f'id,txt,t\n1,"{text}",2\n'.encode()))
    counts, rows = read(tmp_path / "in.csv.gz")
    assert (counts.rows_in, counts.accepted) == (1, 1)
    assert rows == [{"id": 1, "txt": text, "t": 2}]


@pytest.mark.parametrize(
    "header", ['id,"txt",t', '"id","txt","t"', 'id,txt,t,"two\nlines"'], ids=["one", "all", "lines"]
)
def test_a_header_may_be_quoted(tmp_path: Path, header: str) -> None:
    (tmp_path / "in.csv").write_text(header)
    counts, rows = read(tmp_path / "in.csv")
    assert (counts.rows_in, counts.accepted, rows) == (0, 0, [])
