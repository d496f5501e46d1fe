"""What the benchmarks say is what they measured, the page of figures has a row for each of them, and limits can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import large, papers, run
from benchmarks.figures import BEGIN, DECLARED, END, UNMEASURED, declared, rows_of, table, write_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "figures.md"
PAPERS = PAGE.with_name("tpstream-figures.md")


def test_the_table_of_the_page_has_the_figures_that_are_measured() -> None:
    assert rows_of(PAGE.read_text()) == list(DECLARED), "run make bench ARGS='--write docs/explanation/figures.md'"


def test_targets_and_verdicts_of_the_page_are_those_of_its_figures() -> None:
    """A value that was edited by hand, or a target that has moved, does not keep its verdict."""
    for line in PAGE.read_text().partition(BEGIN)[2].partition(END)[0].splitlines():
        name, *cells = line.removeprefix("| ").split(" | ")
        if name in DECLARED and cells[0] != UNMEASURED:
            value = float(cells[0].split()[0].replace(",", ""))
            assert cells[1] == str(DECLARED[name])
            if cells[2]:
                assert declared(name, value).verdict == cells[2].strip() or cells[0] == f"{_limit(name):.2f}"


def _limit(name: str) -> float:
    """A value that is rounded to its limit may be on either side."""
    target = DECLARED[name]
    limit = target.most if target.most is not None else target.least
    assert limit is not None
    return limit


def test_a_table_is_written_in_the_place_of_the_old_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    figures = [declared(name, 7.0, "of two") for name in reversed(DECLARED)]
    write_table(page, figures, "On a machine.")
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\nOn a machine.\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert rows_of(text) == list(DECLARED)


def test_figures_that_were_not_measured_are_told_as_such() -> None:
    text = table([declared("tumbling, embedded", 7.0, "of two")], "On a machine.")
    assert rows_of(text) == list(DECLARED)
    assert "| tumbling, embedded | 7.00 rows/s |  |  | of two |" in text
    assert f"| tumbling, Spark | {UNMEASURED} |  | | |" in text


def test_a_page_without_markers_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no table")
    with pytest.raises(ValueError, match="has no lines"):
        write_table(page, [], "On a machine.")


def test_verdicts_follow_targets() -> None:
    floor = "a batch of 50 rows, five queries, embedded"
    assert [declared(floor, value).verdict for value in (9.9, 10.1)] == ["met", "missed"]
    assert [declared("tumbling: rows/s, Spark / native", value).verdict for value in (1.9, 2.1)] == ["missed", "met"]
    assert declared("tumbling, embedded", 1.0).verdict == ""


def test_a_run_goes_on_after_the_sections_that_are_there(tmp_path: Path) -> None:
    file, size = tmp_path / "bench.json", {"rows": 7}
    done = {"floor": ([declared("a batch of 50 rows, five queries, embedded", 9.5, "of two")], True)}
    assert run._load(file, size) == {}
    run._save(file, size, done)
    assert run._load(file, size) == done
    with pytest.raises(SystemExit, match="another run"):
        run._load(file, {"rows": 8})


GOOD = {
    "equal": True,
    "place": "catalyst",
    "bytes": 2_200_000_000,
    "driver before": 150 << 20,
    "driver": 160 << 20,
    "heap": 2 << 30,
    "JVM": 2 << 30,
}


def test_an_increment_of_gigabytes_is_good_within_its_limits() -> None:
    assert large.faults(GOOD, "rule", 2.2) == []
    assert large.faults(GOOD, "catalyst", 2.2) == []


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ({"equal": False}, "RESULTS DIFFER"),
        ({"place": "driver"}, "evaluated driver"),
        ({"bytes": 1_900_000_000}, "1.90 GB only"),
        ({"driver": 300 << 20}, "grew by 150 MiB"),
        ({"JVM": 4 << 30}, "beyond its heap"),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else "",
)
def test_each_limit_of_an_increment_of_gigabytes_can_fail(bad: dict[str, object], what: str) -> None:
    (fault,) = large.faults(GOOD | bad, "rule", 2.2)
    assert what in fault


def test_a_place_that_was_asked_for_is_checked() -> None:
    assert large.faults(GOOD, "sharded", 2.2) == ["the increment was evaluated catalyst"]


def test_the_papers_page_has_the_tables_that_are_made(capsys: pytest.CaptureFixture[str]) -> None:
    """On few events, whose times say nothing; counts are compared with lists inside."""
    page = papers.Page()
    papers.windows(page, 20_000)
    papers.application_time(page, 200_000)
    papers.adaptation(page, 50_000)
    papers.live(page, 20_000)
    assert "does not hold" not in capsys.readouterr().out
    assert _titles("\n".join(page.lines)) <= _titles(PAPERS.read_text())
    assert len(_titles(PAPERS.read_text())) == len(papers.SECTIONS) + 2


def _titles(text: str) -> set[str]:
    return {line for line in text.splitlines() if line.startswith("### ")}
