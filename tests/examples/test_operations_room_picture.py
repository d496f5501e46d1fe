"""The operations room's picture, in text and as SVG, from hand-made data."""

import xml.etree.ElementTree as ElementTree
from datetime import datetime, timedelta

import pytest

from examples.operations_room import picture
from examples.operations_room.picture import Hour, Lane, Picture

START = datetime(2013, 1, 1)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
SVG = "{http://www.w3.org/2000/svg}"


def drawn(days: int = 4) -> Picture:
    jfk = Lane(
        "JFK",
        [Hour(START + 6 * HOUR, 10, 2.0), Hour(START + DAY, 1, 70.0), Hour(START + DAY + 23 * HOUR, 3, 10.0)],
        [(START + 12 * HOUR, START + DAY + 6 * HOUR), (START + 9 * DAY, START + 10 * DAY)],
        [START + 3 * DAY] * 2 + [START - HOUR],
    )
    return Picture("Four <days>", START.date(), days, [jfk, Lane("LGA & co", [], [], [])])


def test_days_add_up_their_hours() -> None:
    first, second, third, fourth = picture.days_of(drawn(), drawn().lanes[0])
    assert (first.departures, first.delay, first.poor, first.missing) == (10, 2.0, 12 * HOUR, 0)
    assert (second.departures, second.delay, second.poor) == (4, 25.0, 6 * HOUR)
    assert (third.departures, third.delay) == (0, 0.0)
    assert fourth.missing == 2


def test_text_picture_has_three_lines_for_an_airport() -> None:
    lines = picture.text_picture(drawn(), width=14 + 8).splitlines()
    assert lines[0:5] == [
        "Four <days>",
        "JFK",
        "average delay ▁▁██",
        "   visibility ██▄▄",
        "did not leave       ██",
    ]
    assert lines[6:9] == ["average delay", "   visibility", "did not leave"]


def test_text_picture_names_days() -> None:
    axis = picture.text_picture(drawn()).splitlines()[-3]
    assert [axis.index(f"│Jan {day}") for day in (1, 2, 3, 4)] == [14 + 21 * day for day in range(4)]


def test_a_year_fits_into_a_line() -> None:
    lines = picture.text_picture(drawn(365)).splitlines()
    assert max(len(line) for line in lines) <= 100
    assert "│Jan" in lines[-3]
    assert "│Nov" in lines[-3]


def paths(root: ElementTree.Element, kind: str) -> list[str]:
    return [path.get("d", "") for path in root.iter(f"{SVG}path") if path.get("class") == kind]


def test_svg_has_a_cell_for_each_hour_by_its_delay_and_bars_for_each_day() -> None:
    root = ElementTree.fromstring(picture.svg_picture(drawn(), width=1320))
    wide = (1320 - 104 - 16) / 4
    cells = {path.get("fill"): path.get("d", "") for path in root.iter(f"{SVG}path") if path.get("class") == "hours"}
    assert cells == {
        "#fdf0d5": f"M104.0 100h{wide:.1f}v5h-{wide:.1f}z",
        "#7f0000": f"M{104 + wide:.1f} 70h{wide:.1f}v5h-{wide:.1f}z",
        "#fdd49e": f"M{104 + wide:.1f} 185h{wide:.1f}v5h-{wide:.1f}z",
    }
    assert [path.count("M") for path in paths(root, "poor")] == [2, 0]
    assert [path.count("M") for path in paths(root, "missing")] == [1, 0]
    assert root.findtext(f"{SVG}title") == "Four <days>"
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    assert "Jan 2: 4 departures, 25 minutes late on average, 6 hours of poor visibility" in "\n".join(titles)


def test_when_clocks_go_back_two_hours_are_one_cell() -> None:
    lane = Lane("JFK", [Hour(START, 1, 10.0), Hour(START, 3, 50.0)], [], [])
    root = ElementTree.fromstring(picture.svg_picture(Picture("One day", START.date(), 1, [lane])))
    cells = [path for path in root.iter(f"{SVG}path") if path.get("class") == "hours"]
    assert [(path.get("fill"), path.get("d", "").count("M")) for path in cells] == [("#d7301f", 1)]


def test_a_year_stays_small() -> None:
    hours = [Hour(START + number * HOUR, 5, number % 70) for number in range(365 * 24)]
    assert len(picture.svg_picture(Picture("A year", START.date(), 365, [Lane("JFK", hours, [], [])]))) < 500_000


def test_an_empty_period_is_refused() -> None:
    with pytest.raises(ValueError, match="one day or more"):
        Picture("", START.date(), 0, [])
