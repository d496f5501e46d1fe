"""The operations room on the screen, from hand-made data."""

import io
from datetime import datetime, timedelta

import pytest

from examples.operations_room import report
from examples.operations_room.picture import Lane, Picture
from examples.operations_room.report import Fate, Finality, Live, Report, Result, State, Tick

START = datetime(2013, 1, 1)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def tick(batch: int, seconds: float) -> Tick:
    return Tick(batch, 62, 1_000 * batch, {"NotDeparted": batch}, 250, START + timedelta(hours=batch), seconds)


def whole(**changes: object) -> Report:
    given: dict[str, object] = {
        "title": "Operations room",
        "engine": "embedded",
        "seconds": 12.34,
        "batches": 62,
        "results": [
            Result("NotDeparted", "Missing flights.", ["flight", "at"], [[3944, START], [7, None]], 1_114, "out/nd", [])
        ],
        "fates": [Fate("departure", 26_520, 26_483, {"late": 12, "malformed": 25}), Fate("weather", 10, 10, {})],
        "states": [State("NotDeparted.d", 90, 100, "rate × 3 h")],
        "picture": Picture("Four days", START.date(), 4, [Lane("JFK", [], [], [])]),
        "finality": [
            Finality("NotDeparted", "a <= b", timedelta(minutes=61), timedelta(hours=3)),
            Finality("Fog", "c", None, None),
        ],
        "output_path": "out",
    }
    return Report(**{**given, **changes})  # type: ignore[arg-type]  # the changes are of each field's own type


def test_progress_line() -> None:
    line = report.progress_line(tick(3, 4.5))
    assert "batch    3/62" in line
    assert "in     3,000" in line
    assert "final to 2013-01-01 03:00" in line
    assert line.endswith("NotDeparted 3")
    assert "nothing final yet" in report.progress_line(Tick(1, None, 0, {}, 0, None, 0.0))


def test_a_terminal_shows_every_batch_in_place() -> None:
    out = Terminal()
    live = Live(out)
    live.update(tick(1, 0.1))
    live.update(tick(2, 0.2))
    live.close()
    assert out.getvalue().count("\r\x1b[2K") == 2
    assert out.getvalue().count("\n") == 1


def test_a_log_gets_a_line_now_and_then_and_the_last_one() -> None:
    out = io.StringIO()
    live = Live(out, every=10)
    for batch in range(1, 26):
        live.update(tick(batch, float(batch)))
    live.close()
    assert [line.split()[1] for line in out.getvalue().splitlines()] == ["1/62", "11/62", "21/62", "25/62"]


def test_table_aligns_numbers_to_the_right_and_shows_null() -> None:
    assert report.table(["name", "n"], [["a", 10], ["long", 5], [None, None]]).splitlines() == [
        "name   n",
        "────  ──",
        "a     10",
        "long   5",
        "–      –",
    ]
    assert report.table(["x"], []).splitlines() == ["x", "─"]


def test_report_in_order_says_so() -> None:
    given = whole()
    text = report.final_report(given)
    assert given.ok
    assert "embedded: 62 batches in 12.3 s" in text
    assert "Times are New York's here, and UTC in the files." in text
    assert "NotDeparted: 1,114 rows. Missing flights." in text
    assert "checked equal to the batch computation; all rows: out/nd" in text
    assert "90%" in text
    assert "NotDeparted  1 h 01 min  3 h 00 min  a <= b" in text
    assert "Fog          no rows     no rows     c" in text
    assert "All as expected: 1 of 1 results checked equal" in text
    assert max(len(line) for line in text.splitlines()) <= 120


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fates": [Fate("departure", 10, 8, {"late": 1})]}, "DOES NOT ADD UP"),
        ({"states": [State("x", 101, 100, "rate × 3 h")]}, "101% EXCEEDED"),
        ({"states": [State("x", 1, 0, "0")]}, "EXCEEDED"),
        (
            {"results": [Result("Q", "", ["a"], [], 0, "q", ["0 rows instead of 1: {'a': 1}"])]},
            "DIFFERS from the batch computation in 1 places, first: 0 rows instead of 1",
        ),
    ],
)
def test_report_out_of_order_says_what(changes: dict[str, object], words: str) -> None:
    given = whole(**changes)
    assert not given.ok
    text = report.final_report(given)
    assert words in text
    assert "NOT AS EXPECTED" in text


def test_an_unproven_bound_and_an_uncompared_result_are_not_failures() -> None:
    given = whole(states=[State("x", 5, None, "unbounded")], results=[Result("Q", "", ["a"], [], 0, "q", None)])
    assert given.ok
    assert "not compared" in report.final_report(given)


def test_the_table_of_state_fits_a_hundred_columns() -> None:
    buffers = "Departure for NotDeparted, WorstDelay, Bunching, Wave, LateInFog"
    formula = "rate(Departure) × matches(Airports) × (59m 59s 999ms 999us + skew(Departure)) + 12345678"
    text = report.states_text([State(buffers, 2_053_000, 2_114_000, formula), State("x", 5, None, "unbounded")])
    assert max(map(len, text.splitlines())) <= 98
    assert f"{buffers}  2,053,000  2,114,000  97%\n  {formula}\n" in text
    assert text.endswith("unbounded")


def test_rows_rejected_for_other_reasons_than_they_should_be_are_told() -> None:
    right = Fate("departure", 10, 8, {"late": 2}, {"late": 2, "null": 0})
    wrong = Fate("departure", 10, 8, {"null": 2}, {"late": 2})
    assert right.rightly
    assert "adds up, all bad rows found" in str(report.fates_table([right]))
    assert not wrong.rightly
    assert "SHOULD BE 2 late" in str(report.fates_table([wrong]))
    assert not whole(fates=[wrong]).ok


def test_the_last_batch_leaves_nothing_open() -> None:
    last = Tick(62, 62, 9, {"NotDeparted": 1}, 0, None, 3.0, ended=True)
    assert "all final" in report.progress_line(last)


def test_a_further_run_is_told_in_a_few_lines() -> None:
    assert report.again(whole()).splitlines() == [
        "embedded: 62 batches in 12.3 s",
        "results  out",
        "All as expected: 1 of 1 results checked equal, all rows accounted for, state within bounds",
    ]
    wrong = whole(results=[Result("Q", "", ["a"], [], 0, "q", ["0 rows instead of 1: {'a': 1}"])])
    assert "Q DIFFERS from the batch computation in 1 places" in report.again(wrong)
