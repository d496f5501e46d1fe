"""`tidegate timeline`: the same picture from a query over files and from the files of its results."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.runtime.cli.commands import main

EVENTS = [("one", t, x) for t, x in enumerate([0, 1, 1, 3, 2, 2, 0, 0, 1])] + [("two", 0, 2), ("two", 4, 0)]
QUERY = "FROM R PARTITION BY key DEFINE A AS x = 1 OR x = 3, B AS x >= 2 PATTERN A overlaps B WITHIN 99 RETURN detected"

readings = tg.stream("R", "key string, t bigint, x bigint", progress="t")
derived = readings.partition_by("key").derive(A=tg.situation(readings.x.is_in(1, 3)), B=tg.situation(readings.x >= 2))
program = tg.program(A=derived.A, B=derived.B, Hits=derived.match(derived.A.overlaps(derived.B), within=99))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "r.csv").write_text("key,t,x\n" + "".join(f"{key},{t},{x}\n" for key, t, x in EVENTS))
    (tmp_path / "q.tps").write_text(QUERY)
    found = program.run({"R": EVENTS})
    for name in ("A", "B", "Hits"):
        pq.write_table(found[name].arrow(), tmp_path / f"{name}.parquet")
    return tmp_path


def asked(files: Path, *more: str) -> list[str]:
    schema = "key string, t bigint, x bigint"
    return [
        "timeline", f"--query={files}/q.tps", f"--input=R={files}/r.csv", "--time=t", f"--schema={schema}", *more
    ]  # fmt: skip


def test_of_a_query_and_of_result_files(files: Path) -> None:
    assert main(asked(files, f"--out={files}/query.html")) == 0
    results = [
        f"--situations=A={files}/A.parquet",
        f"--situations=B={files}/B.parquet",
        f"--matches={files}/Hits.parquet",
    ]
    assert main(["timeline", *results, "--by=key", f"--out={files}/results.html"]) == 0
    page = (files / "query.html").read_text()
    assert page == (files / "results.html").read_text()
    assert (
        page
        == tg.timeline(
            {name: program.run({"R": EVENTS})[name] for name in "AB"},
            program.run({"R": EVENTS})["Hits"],
            partition_by="key",
        ).html()
    )


def test_a_picture_of_the_first_partition_with_what_is_open(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked(files, f"--out={files}/one.svg")) == 0
    assert capsys.readouterr().err == f"key = one in {files}/one.svg, the first of 2 partitions; a page has all\n"
    assert main(asked(files, "--close-open=12", f"--out={files}/closed.svg")) == 0
    one, closed = ((files / name).read_text() for name in ("one.svg", "closed.svg"))
    assert one.startswith("<svg")
    assert one.count("te: ") < closed.count("te: ")
    assert "te: 12" in closed


def test_a_limit_of_matches_and_a_zone(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matches = files / "many.parquet"
    pq.write_table(pa.table({"A.ts": [1, 2], "A.te": [2, 3], "detected": [2, 3]}), matches)
    given = ["timeline", f"--situations=A={files}/A.parquet", f"--matches={matches}", f"--out={files}/page.html"]
    assert main([*given, "--most-matches=1"]) == 0
    assert "1 more match: most_matches=2 draws all" in (files / "page.html").read_text()
    assert main([*given, "--tz=Mars/Olympus"]) == 1
    assert "tz='Mars/Olympus' is no time zone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], "TG402"),
        (["--situations=A=nowhere.parquet"], "TG413"),
        (["--situations=A={files}/r.csv"], "TG412"),
        (["--situations=A={files}/A.parquet", "--by=car"], "TG402"),
    ],
)
def test_what_can_not_be_drawn(
    files: Path, arguments: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [argument.replace("{files}", str(files)) for argument in arguments]
    assert main(["timeline", *given, f"--out={files}/page.html"]) == 1
    assert code in capsys.readouterr().err
