"""What the tables of pages for who comes from elsewhere call the way to write it here is a query that can be run."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tidegate as tg
from tools.docs_pages import ROOT

PAGES = ("from-spark-and-polars.md", "from-flink-and-esper.md", "from-broadcast-state.md")
#: Code that has three dots in it, is a part of a call, or is of a run or another library.
PARTS = re.compile(r"\.\.\.|^[a-z_]+[(=]|^[^(]*$|^(pl|program|session)\.")


def spans() -> list[tuple[str, str]]:
    """Each piece of code in a last column, and each `temporal_join` of a text, with its page."""
    found = []
    for page in PAGES:
        for line in (ROOT / "docs" / "how-to" / page).read_text().splitlines():
            if line.startswith("|") and page != PAGES[-1]:  # whose table has no queries
                found += [(page, code) for code in re.findall(r"`([^`]+)`", line.rpartition(" | ")[2])]
            elif "temporal_join(" in line:
                found += [(page, code) for code in re.findall(r"`([^`]+)`", line) if "temporal_join(" in code]
    return [(page, code) for page, code in found if not PARTS.search(code)]


def names(code: str) -> dict[str, Any]:
    """What the names in a piece of code stand for."""
    text = re.search("regexp|contains|split_part|string_agg", code)
    windows = tg.stream("Windows", "k bigint, end timestamp, x double, total double", progress="end")
    rows = tg.stream(
        "R",
        f"k bigint, t timestamp, x {'string' if text else 'double'}, ts timestamp, te timestamp, number bigint",
        progress="t",
    )
    r = windows if 'by="end"' in code else rows
    parts = rows.partition_by("k", time="t").derive(A=tg.situation(rows.number > 5), B=tg.situation(rows.number < 5))
    return {
        "tg": tg,
        "r": r,
        "a": r.as_("a"),
        "b": r.as_("b"),
        "A": parts.A,
        "B": parts.B,
        "speed": rows.number,
        "function": print,
        "orders": tg.stream("Orders", "id bigint, currency string, time timestamp", progress="time"),
        "rates": tg.stream("Rates", "currency string, time timestamp, rate double", progress="time"),
        "rows": tg.stream("Rows", "id bigint, t timestamp", progress="t"),
        "c": tg.stream("Changes", "id bigint, t timestamp, op string", progress="t").as_("c"),
        "changes": tg.stream("Changes", "id bigint, t timestamp, op string", progress="t"),
        "readings": tg.stream("Readings", "sensor bigint, time timestamp, value double", progress="time"),
        "limits": tg.stream("Limits", "sensor bigint, time timestamp, value double", progress="time"),
    }


@pytest.mark.parametrize(("page", "code"), spans())
def test_what_a_table_writes_can_be_written(page: str, code: str) -> None:
    made = eval(code, names(code))  # noqa: S307  # of our own pages
    if isinstance(made, tg.Relation) and "anti" not in code:  # for which a bound in time is left out
        tg.program(Q=made).explain()


def test_there_are_many() -> None:
    assert len(spans()) > 35
    assert sum("temporal_join(" in code for _, code in spans()) == 3
