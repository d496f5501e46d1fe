"""Timelines: situations and matches of each partition, to be drawn: people would rather look at intervals than read
them.

A lane per name of situations, a lane per match below them, a line where each match was detected.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypedDict

import pyarrow as pa

from tidegate.algebra.diagnostics.shown import kind_of, shown
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError
from tidegate.algebra.printing.plans import count_of, printable
from tidegate.algebra.time import instant_ticks
from tidegate.runtime.eval.columns import user_rows
from tidegate.runtime.inspect.timelines.axis import Axis
from tidegate.runtime.inspect.timelines.drawing import drawn, page, part
from tidegate.runtime.inspect.timelines.zones import in_zone, zone_of

_OTHER_PICTURES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf")


class DrawingOptions(TypedDict, total=False):
    """The options of `timeline` that say how much is drawn, and in whose time."""

    most: int
    most_matches: int
    tz: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A period in a lane.

    `end` None: it is not known, as the period had not ended when results were made. `open_from`: the instant at which a
    match was detected, where the period had not ended then. `about`: what is shown of it besides.
    """

    start: int
    end: int | None
    about: str
    symbol: str = ""
    open_from: int | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """Periods under one name; `detected` where the lane is a match, and `why` then."""

    name: str
    bars: tuple[Bar, ...]
    detected: int | None = None
    why: str = ""


@checked_calls
@dataclass(frozen=True, slots=True, repr=False)
class Timeline:
    """The lanes of each partition, by what its keys are; `instants`: times are timestamps, not plain numbers.

    All partitions have one axis, in the clock of the zone `tz`. `left_out`: how many matches of a partition have no
    lane; `partitions_left_out`: how many partitions there are besides. In a browser Ctrl and the wheel or two fingers
    zoom in time, dragging moves, a click on the name of a match shows it alone, pointing at a bar or a tap shows its
    values and how long it was, and a page has a field to search for partitions.

    Examples:
        >>> drawn = tg.program(Hits=tg.match(Fast.overlaps(Braking), within=10)).timeline(driven)
        >>> list(drawn.partitions)
        ['car = red']
    """

    partitions: Mapping[str, tuple[Lane, ...]]
    instants: bool
    title: str = "Timelines"
    tz: str = "UTC"
    left_out: Mapping[str, int] = field(default_factory=dict)
    partitions_left_out: int = 0

    def svg(self, partition: str) -> str:
        """The timeline of a partition as one SVG element; text is escaped, and nothing in it loads anything.

        `QueryError` TG402 for a partition that there is not.

        Examples:
            >>> drawn = tg.program(Hits=tg.match(Fast.overlaps(Braking), within=10)).timeline(driven)
            >>> drawn.svg("car = red")
            '<svg ...</svg>...'
        """
        if partition not in [*self.partitions]:  # a list is no key, and no partition either
            with Here():
                names = ", ".join(map(repr, list(self.partitions)[:5])) or "none"
                raise QueryError("TG402", f"there is no partition {shown(partition)} here", hint=f"partitions: {names}")
        return self._drawn(partition, self._axis())

    def html(self) -> str:
        """A page with all partitions, which needs nothing else.

        Examples:
            >>> drawn = tg.program(Hits=tg.match(Fast.overlaps(Braking), within=10)).timeline(driven)
            >>> drawn.html()
            '<!DOCTYPE html>...'
        """
        return page(*self._shown())

    def save(self, path: str | Path) -> None:
        """Writes `html` to a file, or `svg` of the first partition where its name ends with `.svg`.

        `QueryError` TG402 for the name of another picture, and for a picture of no partition.

        Examples:
            >>> drawn = tg.program(Hits=tg.match(Fast.overlaps(Braking), within=10)).timeline(driven)
            >>> drawn.save("hits.html")
            >>> open("hits.html").readline()
            '<!DOCTYPE html>...'
        """
        suffix = Path(path).suffix.lower()
        with Here():
            if suffix in _OTHER_PICTURES:
                hint = "save a page, .html, or a picture, .svg: a browser prints either"
                raise QueryError("TG402", f"timelines are not drawn as {suffix}", hint=hint)
            if suffix == ".svg" and not self.partitions:
                raise QueryError("TG402", "there is no situation to draw", hint='save a page: "page.html"')
        text = self.html() if suffix != ".svg" else self.svg(next(iter(self.partitions))) + "\n"
        Path(path).write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        """A line for each partition."""
        lines = [
            (
                f"  {name or 'all'}: "
                f"{count_of(sum(len(lane.bars) for lane in lanes if lane.detected is None), 'situation')}, "
            )
            + count_of(sum(lane.detected is not None for lane in lanes) + self.left_out.get(name, 0), "match")
            for name, lanes in self.partitions.items()
        ]
        head = self._not_drawn() or count_of(len(lines), "partition")
        return printable("\n".join([f"{self.title}: {head}", *lines]))

    def _repr_html_(self) -> str:
        """For notebooks."""
        return part(*self._shown())

    def _not_drawn(self) -> str:
        """How many partitions are drawn, where that is not all."""
        drawn = len(self.partitions)
        whole = drawn + self.partitions_left_out
        return f"{drawn:,} of {count_of(whole, 'partition')}: most={whole} draws all" if whole > drawn else ""

    def _shown(self) -> tuple[str, dict[str, str], tuple[Lane, ...], str | None, str]:
        """The title, the chart of each partition, lanes for a legend, the zone, and what is not drawn."""
        axis = self._axis()
        charts = {name: self._drawn(name, axis) for name in self.partitions}
        lanes = next(iter(self.partitions.values()), ())
        return self.title, charts, lanes, self.tz if self.instants else None, self._not_drawn()

    def _drawn(self, partition: str, axis: Axis) -> str:
        return drawn(self.partitions[partition], axis, self.left_out.get(partition, 0))

    def _axis(self) -> Axis:
        """From the first instant of any partition to the last."""
        lanes = [lane for several in self.partitions.values() for lane in several]
        known = [at for lane in lanes for bar in lane.bars for at in (bar.start, bar.end) if at is not None]
        known += [lane.detected for lane in lanes if lane.detected is not None]
        first, last = (min(known), max(known)) if known else (0, 1)
        return Axis.of(first, max(last, first + 1), zone_of(self.tz) if self.instants else None)


@called()
def timeline(
    situations: Mapping[str, Any],
    matches: Any = None,
    *,
    partition_by: str | Sequence[str] = (),
    most: int = 20,
    most_matches: int = 100,
    title: str = "Timelines",
    tz: str = "UTC",
) -> Timeline:
    """The timeline of results: tables of situations by name, with `ts` and `te`, and the table of a match of them.

    Tables are Arrow's, or frames that have Arrow data, such as those of Polars. Rows are told apart by the attributes
    `partition_by`; of at most `most` partitions, those with matches first, and of at most `most_matches` matches in
    each: a line says how many more there are. Times are shown as the clocks of the zone `tz` show them,
    `"America/New_York"`. `QueryError` TG402 for what is no such table or zone.

    Examples:
        >>> hits = tg.match(Fast.overlaps(Braking), within=10)
        >>> results = tg.program(Fast=Fast, Braking=Braking, Hits=hits).run(driven)
        >>> lanes = {"Fast": results["Fast"], "Braking": results["Braking"]}
        >>> drawn = tg.timeline(lanes, results["Hits"], partition_by="car")
        >>> [lane.name for lane in drawn.partitions["car = red"]]
        ['Fast', 'Braking', 'match 1']
    """
    with Here():
        if not isinstance(situations, Mapping):
            raise QueryError(
                "TG402",
                f"situations are tables by name, not {kind_of(situations)}",
                hint='write {"A": results["A"]}, or draw the pattern of a program: program.timeline(inputs)',
            )
        for option, given, what in (("most", most, "partitions"), ("most_matches", most_matches, "matches")):
            if not (type(given) is int and given >= 1):
                raise QueryError("TG402", f"{option}={shown(given)} is no number of {what}", hint="give 1 or more")
        zone = zone_of(tz)
        keys = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
        lanes = _Lanes(keys, most_matches)
        tables = {name: _table(given) for name, given in situations.items()}
        of_matches = None if matches is None else _table(matches)
        for name, table in tables.items():
            lanes.add_situations(name, _rows(table, zone))
        if of_matches is not None:
            lanes.add_matches(_rows(of_matches, zone))
        lanes.check_zone(tz)
        order = lanes.partitions()
        drawn_first = order[:most]
        return Timeline(
            {key: lanes.of(key, situations) for key in drawn_first},
            lanes.instants,
            title,
            tz,
            {key: lanes.left_out[key] for key in drawn_first if key in lanes.left_out},
            len(order) - len(drawn_first),
        )


@dataclass(slots=True)
class _Lanes:
    """The lanes of all partitions as rows are read: periods by name, and at most `most_matches` matches each."""

    keys: Sequence[str]
    most_matches: int
    bars: dict[str, dict[str, list[Bar]]] = field(default_factory=dict)
    matches: dict[str, list[Lane]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    """How many matches of a partition have no lane."""
    instants: bool = False
    """Whether some time is a timestamp or a date, not a number."""
    clocked: bool = False
    """Whether some time is a timestamp, which zones show differently."""

    def add_situations(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        for row in rows:
            _require(row, (*self.keys, "ts", "te"), name)
            self._note(row["ts"])
            bar = Bar(_ticks(row["ts"]), _ticks(row["te"]), _about(row), name)
            self.bars.setdefault(_key(row, self.keys), {}).setdefault(name, []).append(bar)

    def add_matches(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Matches of the situations that were added before: a bar ends where its situation does."""
        ends = {
            (key, name, bar.start): bar.end
            for key, named in self.bars.items()
            for name, bars in named.items()
            for bar in bars
        }
        for number, row in enumerate(rows, start=1):
            _require(row, (*self.keys, "detected"), "matches")
            self._note(row["detected"])
            key = _key(row, self.keys)
            lanes = self.matches.setdefault(key, [])
            if len(lanes) < self.most_matches:
                lanes.append(_match(number, row, self.keys, ends))
            else:
                self.left_out[key] = self.left_out.get(key, 0) + 1

    def check_zone(self, tz: str) -> None:
        """`QueryError` TG402 for a zone other than UTC where no time depends on one."""
        if tz != "UTC" and (self.bars or self.matches) and not self.clocked:
            what = "dates" if self.instants else "numbers"
            raise QueryError(
                "TG402", f"tz={shown(tz)}: times here are {what}, the same in every zone", hint="leave tz out"
            )

    def partitions(self) -> list[str]:
        """All of them, those with matches first."""
        return [*self.matches, *(key for key in self.bars if key not in self.matches)]

    def of(self, partition: str, names: Iterable[str]) -> tuple[Lane, ...]:
        """A lane per name of situations, then the matches."""
        bars = self.bars.get(partition, {})
        return (*(Lane(name, tuple(bars.get(name, ()))) for name in names), *self.matches.get(partition, ()))

    def _note(self, time: Any) -> None:
        self.instants = self.instants or isinstance(time, dt.date)
        self.clocked = self.clocked or isinstance(time, dt.datetime)


def _match(
    number: int, row: Mapping[str, Any], keys: Sequence[str], ends: Mapping[tuple[str, str, int], int | None]
) -> Lane:
    """The lane of a match: each of its situations up to where it ended, though the match was detected before."""
    detected = _ticks(row["detected"])
    bars, then = [], []
    for column in row:
        if not column.endswith(".ts"):
            continue
        symbol, start = column[:-3], _ticks(row[column])
        row_end = _ticks(row.get(f"{symbol}.te"))
        end = ends.get((_key(row, keys), symbol, start)) if row_end is None else row_end
        values = {name: value for name, value in row.items() if name.startswith(f"{symbol}.")}
        bars.append(Bar(start, end, _about(values), symbol, detected if row_end is None else None))
        then += [f"{symbol} began"] if start == detected else [f"{symbol} ended"] if row_end == detected else []
    why = " and ".join(then)
    return Lane(f"match {number}", tuple(bars), detected, why and f"when {why}")


def _rows(table: pa.Table, zone: dt.tzinfo) -> Iterator[dict[str, Any]]:
    """Rows with their instants as the clocks of the zone show them."""
    for row in user_rows(table):
        yield {name: in_zone(value, zone) if isinstance(value, dt.datetime) else value for name, value in row.items()}


def _table(given: Any) -> pa.Table:
    if isinstance(given, pa.Table):
        return given
    if not hasattr(given, "__arrow_c_stream__"):
        raise QueryError("TG402", f"{kind_of(given)} is no table of results", hint='give session.table("Name")')
    return pa.table(given)


def _require(row: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    missing = [name for name in names if name not in row]
    if missing:
        raise QueryError(
            "TG402",
            f"{what} has no {', '.join(missing)}",
            hint=f"give the rows of situations and of a match of them; columns here: {', '.join(row)}",
        )


def _key(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    return ", ".join(f"{key} = {row[key]}" for key in keys)


def _about(row: Mapping[str, Any]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in row.items() if value is not None)


def _ticks(value: Any) -> Any:
    """Microseconds of a timestamp or of a date's midnight, numbers as they are."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    return instant_ticks(value) if isinstance(value, dt.datetime) else value
