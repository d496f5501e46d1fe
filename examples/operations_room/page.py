"""The whole of a run as one page of HTML that needs nothing else: what was asked, what was found, what it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

import polars as pl

import tidegate as tg
from examples.operations_room.picture import svg_picture
from examples.operations_room.report import (
    Report,
    Result,
    Table,
    cell_text,
    fates_table,
    finality_table,
    judgement,
    states_table,
    verdict,
)
from examples.operations_room.tour import Stop

_STYLE: Final = """
body { font-family: system-ui, sans-serif; color: #222; background: #fff; line-height: 1.45;
       max-width: 1240px; margin: 1.5em auto; padding: 0 1em; }
h1 { font-size: 1.6em; } h2 { font-size: 1.2em; margin-top: 2em; } h3 { font-size: 1em; margin-bottom: 0.3em; }
pre { background: #f5f5f2; padding: 0.8em 1em; overflow-x: auto; font-size: 0.85em; line-height: 1.35; }
.wide { overflow-x: auto; } svg { max-width: 100%; height: auto; } .wide > svg { min-width: 1100px; }
table { border-collapse: collapse; font-size: 0.9em; }
th, td { padding: 0.2em 0.9em 0.2em 0; text-align: left; white-space: nowrap; }
th { border-bottom: 1px solid #999; } td.number { text-align: right; font-variant-numeric: tabular-nums; }
.good { color: #1b6e3c; } .bad { color: #b00020; font-weight: bold; } .faint { color: #666; }
p { max-width: 52em; } nav a { display: inline-block; margin-right: 1.2em; }
"""


def page(reports: Sequence[Report], stops: Sequence[Stop], situations: Mapping[str, pl.DataFrame]) -> str:
    """The page on the runs of one replay, first the one that is told in full.

    `situations`: the rows of `Fog`, `Wave` and `LateInFog`, for the timeline.
    """
    told = reports[0]
    body = [
        f"<h1>{escape(told.title)}</h1>",
        f"<p>{_LEAD}</p>",
        "".join(_ran(report) for report in reports),
        "<nav>" + "".join(f'<a href="#{name}">{text}</a>' for name, text in _PLACES.items()) + "</nav>",
        f'<h2 id="picture">{_PLACES["picture"]}</h2>',
        f"<p>{_PICTURE}</p>",
        f'<div class="wide">{svg_picture(told.picture)}</div>',
        f'<h2 id="query">{_PLACES["query"]}</h2>',
        *(f"<h3>{escape(stop.title)}</h3><pre>{escape(stop.text)}</pre>" for stop in stops),
        f'<h2 id="results">{_PLACES["results"]}</h2>',
        f"<p>{_RESULTS}</p>",
        *(_result(result) for result in told.results),
        f'<h2 id="timeline">{_PLACES["timeline"]}</h2>',
        "<p>A match was detected at its red line. What had not ended then is dashed.</p>",
        f'<div class="wide">{_timeline(situations)}</div>',
        f'<h2 id="finality">{_PLACES["finality"]}</h2>',
        (
            "<p>In the time of the replay: from the event that a row tells of to the end of the batch with which "
            "the row was final.</p>"
        ),
        _table(finality_table(told.finality)),
        f'<h2 id="state">{_PLACES["state"]}</h2>',
        f"<p>{_STATE}</p>",
        _table(states_table(told.states)),
        f'<h2 id="rows">{_PLACES["rows"]}</h2>',
        f"<p>{_ROWS}</p>",
        _table(fates_table(told.fates)),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(told.title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


_PLACES: Final = {
    "picture": "What happened",
    "query": "What was asked",
    "results": "What was found",
    "timeline": "Fog, waves of late departures, and matches",
    "finality": "How long until a row was final",
    "state": "Rows held, against their proven bounds",
    "rows": "Rows by fate",
}


_LEAD: Final = (
    "Flights and weather were replayed as they would have arrived: in disorder, and some rows of them bad. "
    "Tidegate answered the queries below meanwhile. It reported each row of a result once, as soon as the "
    "row was <b>final</b>: when no row still to come could change it."
)
_PICTURE: Final = (
    "A column is a day, a row an hour of it, in New York's time. The bars below are the hours of the day "
    "with less than three miles of visibility, and the flights that had not left two hours after their time; "
    "at the left is what a bar of full height stands for. Pointing at a day shows its figures. All of it is "
    "drawn from the results."
)
_RESULTS: Final = (
    "Of each result the rows that tell most. Times are New York's. The same questions were also answered by "
    "plain Polars over the complete data, the batch computation, and all rows were compared. The queries are in "
    "<code>examples/operations_room/queries.py</code>."
)
_STATE: Final = (
    "A row is held while a result may still need it. The bound follows from the query alone: the rows of a "
    "stream in a span of time. <b>rate</b>: rows in a unit of time. <b>matches</b>: the rows of a table that "
    "fit a row. <b>skew</b>: how far rows are ahead of the time up to which their stream is complete. "
    "<b>lag</b>: how far the slowest stream is behind the fastest."
)
_ROWS: Final = (
    "Each row is accepted, or rejected for one reason. The bad rows were put in on purpose. <b>null</b>: "
    "without an instant. <b>relation</b>: breaks what the stream declares. <b>late</b>: further behind than "
    "the declared delay. <b>unparseable</b>: a time that is no time."
)


def save(path: Path, reports: Sequence[Report], stops: Sequence[Stop], situations: Mapping[str, pl.DataFrame]) -> None:
    """Writes the page."""
    path.write_text(page(reports, stops, situations), encoding="utf-8")


def _ran(report: Report) -> str:
    look = "good" if report.ok else "bad"
    return (
        f"<p>{escape(report.engine)}: {report.batches:,} batches in {report.seconds:.1f} s. "
        f'<span class="{look}">{escape(verdict(report))}.</span></p>'
    )


def _result(result: Result) -> str:
    look = "bad" if result.differences else "faint"
    return (
        f"<h3>{escape(result.name)}: {result.total:,} rows</h3><p>{escape(result.meaning)}</p>"
        f"{_table(Table(result.columns, result.top))}"
        f'<p class="{look}">{escape(judgement(result))}</p>'
    )


def _table(table: Table) -> str:
    """Numbers to the right; what does not fit into a narrow window is scrolled to."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td class="number">{escape(cell_text(value))}</td>'
            if isinstance(value, (int, float))
            else f"<td>{escape(cell_text(value))}</td>"
            for value in row
        )
        + "</tr>"
        for row in table.rows
    )
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _timeline(situations: Mapping[str, pl.DataFrame]) -> str:
    """The situations that a match is of, and the matches."""
    matches = situations["LateInFog"]
    of_matches = {
        name: situations[name].join(matches, left_on=["origin", "ts"], right_on=["origin", f"{name}.ts"], how="semi")
        for name in ("Fog", "Wave")
    }
    detected = matches.sort("detected")
    drawn = tg.timeline(of_matches, detected, partition_by="origin", title="Late in fog", tz="America/New_York")
    return drawn._repr_html_()
