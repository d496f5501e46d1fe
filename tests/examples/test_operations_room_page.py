"""The operations room's page, from hand-made data: it explains itself, and fits a narrow window."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from examples.operations_room.page import page
from examples.operations_room.picture import Lane, Picture
from examples.operations_room.report import Fate, Finality, Report, Result, State
from tests.docs.browser import chromium, look_at

START = datetime(2013, 1, 13, 20, tzinfo=ZoneInfo("UTC"))  # 15:00 in New York
HOUR = timedelta(hours=1)


def situations() -> dict[str, pl.DataFrame]:
    whole = {"origin": ["JFK"], "ts": [START], "te": [START + 4 * HOUR]}
    match = {
        "origin": ["JFK"],
        "Fog.ts": [START],
        "Fog.te": [None],
        "Wave.ts": [START],
        "Wave.te": [None],
        "detected": [START + HOUR],
    }
    instants = pl.Datetime("us", "UTC")
    return {
        "Fog": pl.DataFrame(whole),
        "Wave": pl.DataFrame(whole),
        "LateInFog": pl.DataFrame(match, schema_overrides={"Fog.te": instants, "Wave.te": instants}),
    }


@pytest.fixture(scope="module")
def text() -> str:
    told = Report(
        title="Operations <room>",
        engine="In this process",
        seconds=12.3,
        batches=62,
        results=[Result("Q", "Flights & delays", ["flight", "left"], [[7, datetime(2013, 1, 1)]], 1, "out/q", [])],
        fates=[Fate("Departure", 10, 9, {"late": 1})],
        states=[State("Departure for Q", 90, 100, "rate(Departure) × 3h")],
        picture=Picture("One day", START.date(), 1, [Lane("JFK", [], [], [])]),
        output_path="out",
        finality=[Finality("Q", "left <= Departure.dep", HOUR, 3 * HOUR)],
    )
    return page([told], [], situations())


def test_every_table_is_one_that_can_be_scrolled(text: str) -> None:
    assert text.count("<table>") == text.count('<div class="wide"><table>') == 4
    for cells in (
        '<td class="number">7</td><td>2013-01-01 00:00</td>',
        (
            '<td>Departure for Q</td><td class="number">90</td><td '
            'class="number">100</td><td>90%</td><td>rate(Departure) × 3h</td>'
        ),
        "<td>Q</td><td>1 h 00 min</td><td>3 h 00 min</td><td>left &lt;= Departure.dep</td>",
        (
            '<td>Departure</td><td class="number">10</td><td class="number">9</td><td '
            'class="number">1</td><td>adds up</td>'
        ),
    ):
        assert f"<tr>{cells}</tr>" in text


def test_words_of_the_tables_are_explained(text: str) -> None:
    for word in ("final", "rate", "matches", "skew", "lag", "null", "relation", "late", "unparseable"):
        assert f"<b>{word}</b>" in text


def test_the_timeline_has_the_clock_of_the_tables(text: str) -> None:
    drawn = text[text.index('id="timeline"') :]
    assert "01-13 15:00" in drawn
    assert "20:00" not in drawn


@pytest.mark.xdist_group("browser")
@pytest.mark.skipif(chromium() is None, reason="there is no Chromium on this machine: install the package chromium")
def test_letters_of_the_picture_are_read_on_a_phone(text: str, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    look = """async (window, document) => {
      const picture = document.querySelector('.wide > svg');
      return {scale: picture.getBoundingClientRect().width / picture.viewBox.baseVal.width,
              sideways: document.documentElement.scrollWidth > window.innerWidth};
    }"""
    for found in look_at(tmp_path, [("/report.html", [390, 1280])], look):
        assert found.told["scale"] > 0.9
        assert not found.told["sideways"]
