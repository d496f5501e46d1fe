"""CSV is read alike whatever its size: lines in quotes, long values and stray quotes beyond what is read at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

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
