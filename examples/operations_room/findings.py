"""From a finished run to its report: results read back and compared, rows by fate, state against its bound, finality,
picture.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from examples.operations_room import data, expected, report
from examples.operations_room.data import Period, Replay
from examples.operations_room.engines import RESULTS, STREAMS, Ran
from examples.operations_room.picture import Hour, Lane, Picture
from tidegate.algebra.time import EPOCH, INF
from tidegate.analysis.report.report import finality as rules
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.inspect.live_state import StateUse, state_use
from tidegate.runtime.state.manifest import SourceCounts

#: Per result: what it is, and how its most telling rows are found: the column to sort by, descending, and those shown.
SHOWN: Final = {
    "HourlyDepartures": (
        "Departures per airport and hour: the longest average delays in minutes, of ten departures or more",
        "avg_delay",
        ("airport", "hour", "departures", "avg_delay"),
    ),
    "NotDeparted": (
        "No departure within two hours after the scheduled time: the most by airport and airline",
        "flights",
        ("origin", "airline", "flights"),
    ),
    "PoorVisibility": (
        "Episodes of less than three miles of visibility: the longest",
        "hours",
        ("origin", "start", "end", "hours"),
    ),
    "WorstDelay": (
        "The worst delay in minutes during an episode of poor visibility",
        "worst",
        ("origin", "start", "end", "departures", "worst", "avg_delay"),
    ),
    "Bunching": (
        "Planned half an hour apart or more, left within ten minutes: the most minutes apart",
        "apart",
        ("origin", "dest", "carrier_a", "sched_a", "dep_a", "carrier_b", "sched_b", "dep_b", "apart"),
    ),
    "Fog": (
        "A situation, less than two miles of visibility: the longest",
        "hours",
        ("origin", "ts", "te", "least", "hours"),
    ),
    "Wave": (
        "A situation, all departures more than half an hour late for an hour or longer: the most flights",
        "flights",
        ("origin", "ts", "te", "flights"),
    ),
    "LateInFog": (
        "A pattern, waves of late departures that began in fog, as known when detected; – had not ended then",
        "Wave.flights",
        ("origin", "Fog.ts", "Wave.ts", "Wave.te", "Wave.flights", "detected"),
    ),
}
#: Results that are not shown, by the result that reads them.
FED_BY: Final = {"PoorVisibility": ("PoorStart", "PoorEnd")}
TOP: Final = 5
PROGRESS: Final = {
    "Schedule": "announced",
    "Departure": "dep",
    "Weather": "time",
    "PoorStart": "start",
    "PoorEnd": "last",
    "PoorVisibility": "end",
    "Fog": "te",
    "Wave": "te",
}
#: Per result: the attribute that says when that was which a row tells.
HAPPENED: Final = {
    "HourlyDepartures": "hour",
    "NotDeparted": "sched_dep",
    "PoorVisibility": "end",
    "WorstDelay": "end",
    "Bunching": "dep_b",
    "Fog": "te",
    "Wave": "te",
    "LateInFog": "detected",
}


def full_report(
    ran: Ran, replay: Replay, where: Path, *, seconds: float, wanted: Mapping[str, pl.DataFrame]
) -> report.Report:
    """The report on a run whose results are below `where`, compared with the wanted ones."""
    answers = {name: read(where / "results" / name, wanted[name]) for name in RESULTS}
    accepted = instants(replay.period, answers)
    places = Counter(place for one in ran.reports for place in one.places.values())
    return report.Report(
        title=f"The operations room: New York's airports, {_days(replay.period)}",
        engine=ran.engine,
        seconds=seconds,
        batches=len(ran.reports),
        results=[_result(name, answers, wanted, where) for name in SHOWN],
        fates=fates(ran.reports, replay),
        states=[state(use, accepted[use.stream]) for use in state_use(ran.plan, ran.reports)],
        picture=picture(replay.period, answers),
        output_path=str(where / "results"),
        finality=[finality(name, ran, replay, answers[name]) for name in HAPPENED],
        notes=[
            "Increments (new rows of a result in a batch) evaluated: "
            + ", ".join(f"{count:,} {_PLACES[place]}" for place, count in places.items())
        ],
    )


_PLACES: Final = {
    "driver": "in this process (small enough)",
    "sharded": "by shards in Spark's workers",
    "catalyst": "as Spark DataFrames",
}


def read(directory: Path, like: pl.DataFrame) -> pl.DataFrame:
    """The rows of a result as anyone reads them from its directory."""
    files = sorted(directory.glob("*.parquet"))
    return pl.concat([pl.read_parquet(file) for file in files]) if files else like.clear()


def fates(reports: Sequence[BatchReport], replay: Replay) -> list[report.Fate]:
    """Rows by fate per stream, over all batches, beside the bad rows that the replay has."""
    totals: dict[str, SourceCounts] = {}
    for one in reports:
        for name, counts in one.counts.items():
            totals[name] = totals.get(name, SourceCounts()) + counts
    return [
        report.Fate(
            name,
            totals[name].rows_in,
            totals[name].accepted,
            totals[name].rejected,
            {str(kind): rows for kind, rows in replay.bad[path].items()},
        )
        for name, path in STREAMS.items()
        if name in totals
    ]


def state(use: StateUse, accepted: data.Times) -> report.State:
    """The most rows of a buffer against rate × span: the most that its stream accepted within so much time, and beside
    these its classes.
    """
    bound = None if use.span in (None, INF) else use.settled + _most_within(accepted, int(use.span))
    return report.State(f"{use.stream} for {', '.join(use.readers)}", use.most, bound, str(use.bound))


def instants(period: Period, answers: Mapping[str, pl.DataFrame]) -> dict[str, data.Times]:
    """When the accepted rows of every stream are, sorted, on the timeline on which it progresses; bad rows are not
    among them.
    """
    events = data.load(period)
    times = {name: getattr(events, path)[PROGRESS[name]].cast("int64").to_numpy() for name, path in STREAMS.items()}
    times |= {name: answers[name][PROGRESS[name]].cast(pl.Int64).to_numpy() for name in answers if name in PROGRESS}
    return {name: np.sort(found) for name, found in times.items()}


def _most_within(instants: data.Times, span: int) -> int:
    """The most instants in any closed interval of that length; `instants` are sorted."""
    if span < 0 or not len(instants):
        return 0
    return int((np.searchsorted(instants, instants + span, side="right") - np.arange(len(instants))).max())


def finality(name: str, ran: Ran, replay: Replay, answer: pl.DataFrame) -> report.Finality:
    """How long after what its rows tell the batch came with which they were final, on the clock of the replay.

    A row is final as soon as one of the attributes on which its stream progresses has come to the row's instant.
    """
    query = next(query for query in ran.plan.queries if query.name == name)
    clocks = np.array([_ticks(replay.clock(batch + 1, ran.per_batch)) for batch in range(len(ran.reports))])
    final = np.full(answer.height, clocks[-1])
    for attribute in query.facts.propagation:
        progress = np.array([float(one.progress[name][attribute]) for one in ran.reports])
        first = np.searchsorted(progress, answer[attribute].cast(pl.Int64).to_numpy())
        final = np.minimum(final, clocks[np.minimum(first, len(clocks) - 1)])
    waited = np.sort(final - answer[HAPPENED[name]].cast(pl.Int64).to_numpy())
    lengths = [timedelta(microseconds=int(waited[place])) for place in (len(waited) // 2, -1)] if len(waited) else []
    median, longest = lengths or (None, None)
    (rule,) = [rule for rule in rules(query.facts) if rule.startswith(f"{HAPPENED[name]} <= ")]
    return report.Finality(name, rule, median, longest)


def _ticks(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def local(frame: pl.DataFrame) -> pl.DataFrame:
    """Instants as the clocks of New York showed them, without a zone."""
    clock = pl.selectors.datetime(time_zone="*").dt.convert_time_zone("America/New_York").dt.replace_time_zone(None)
    return frame.with_columns(clock)


def local_moment(ticks: int) -> datetime:
    """One instant so."""
    moment: datetime = local(pl.DataFrame({"moment": [EPOCH + timedelta(microseconds=ticks)]}))["moment"][0]
    return moment


def picture(period: Period, answers: Mapping[str, pl.DataFrame]) -> Picture:
    """A lane per airport: average delay of each hour, episodes, scheduled times of flights that did not depart."""
    begun = (pl.col("hour") - pl.duration(hours=1)).alias("begun")  # the result's hours are called by their ends
    hourly = local(answers["HourlyDepartures"].with_columns(begun))
    episodes, missing = local(answers["PoorVisibility"]), local(answers["NotDeparted"])
    lanes = [
        Lane(
            name=origin,
            hours=[
                Hour(*row) for row in hourly.filter(origin=origin).select("begun", "departures", "avg_delay").rows()
            ],
            episodes=episodes.filter(origin=origin).sort("start").select("start", "end").rows(),
            missing=missing.filter(origin=origin)["sched_dep"].sort().to_list(),
        )
        for origin in ("EWR", "JFK", "LGA")
    ]
    return Picture(f"New York's airports, {_days(period)}", period.start, period.days, lanes)


def _result(
    name: str, answers: Mapping[str, pl.DataFrame], wanted: Mapping[str, pl.DataFrame], where: Path
) -> report.Result:
    meaning, best, columns = SHOWN[name]
    shown = local(_telling(name, answers[name]))
    top = shown.sort(pl.col(best), pl.exclude(best), descending=True, nulls_last=True).select(columns).head(TOP)
    return report.Result(
        name=name,
        meaning=meaning,
        columns=columns,
        top=top.rows(),
        total=answers[name].height,
        path=str(where / "results" / name),
        differences=_differences(name, answers, wanted),
    )


def _telling(name: str, answer: pl.DataFrame) -> pl.DataFrame:
    match name:
        case "NotDeparted":
            return answer.group_by("origin", "airline").agg(flights=pl.len())
        case "PoorVisibility":
            return answer.with_columns(hours=(pl.col("end") - pl.col("start")).dt.total_hours())
        case "Fog":
            return answer.with_columns(hours=(pl.col("te") - pl.col("ts")).dt.total_hours())
        case "Bunching":
            minutes = (pl.col("sched_b") - pl.col("sched_a")).dt.total_minutes()
            return answer.with_columns(apart=minutes)
        case "HourlyDepartures":
            return answer.filter(pl.col("departures") >= 10)  # one late flight at night tells little
        case _:
            return answer


def _differences(name: str, answers: Mapping[str, pl.DataFrame], wanted: Mapping[str, pl.DataFrame]) -> list[str]:
    """What differs from the wanted rows, in a result or in those that it reads and that are not shown."""
    return [
        found if one == name else f"{one}: {found}"
        for one in (name, *FED_BY.get(name, ()))
        for found in expected.differences(wanted[one], answers[one])
    ]


def _days(period: Period) -> str:
    return f"{period.start:%-d %B} to {period.last:%-d %B %Y}"
