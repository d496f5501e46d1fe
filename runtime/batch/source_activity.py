"""Activity of input streams: when each was last active, how far its rows reach, what moves it, and progress while it is
idle.

Whoever declares a source idle after d gives up a guarantee: a row that comes after all, at or below the progress that
was assumed, is late.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.algebra.schema import StreamDef
from tidegate.algebra.time import INF, Extended, format_duration
from tidegate.algebra.types import Kind
from tidegate.runtime.connectors.sources import DAY, SourceOptions
from tidegate.runtime.state.codec import Json

ACTIVITY = "source activity"
"""Where it stands in a manifest's `extra`."""

DELAY = "a delay of"
"""How the means of progress that is a delay begins."""

Progress = Mapping[tuple[str, str], Extended]


@dataclass(frozen=True, slots=True)
class SourceActivity:
    """Of one input stream: `clock` of the last batch in which it was active (or of the first batch), in microseconds;
    `greatest` accepted instant and `means` of progress per attribute, as the last run had them."""

    clock: int
    greatest: Mapping[str, int] = field(default_factory=dict)
    means: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def after(
        self, clock: int | None, greatest: Mapping[str, int], means: Mapping[str, tuple[str, ...]]
    ) -> SourceActivity:
        """After a batch; `clock` None where the stream was not active in it."""
        reached = {a: max(value, self.greatest.get(a, value)) for a, value in greatest.items()}
        return SourceActivity(self.clock if clock is None else clock, {**self.greatest, **reached}, means)


def means_of(stream: StreamDef, options: SourceOptions) -> dict[str, tuple[str, ...]]:
    """What moves the progress of each attribute by itself, in words; calls and the end of input always do."""
    by_attribute = {}
    for name in stream.progress:
        means = ["the clock: it is the time of arrival"] if name == options.arrival else []
        if (delay := options.delay.get(name)) is not None:
            is_timestamp = stream.schema[name].type.kind is Kind.TIMESTAMP
            means.append(f"{DELAY} {format_duration(delay) if is_timestamp else delay}")
        if (column := options.progress_columns.get(name)) is not None:
            means.append(f"the progress column {column}")
        if options.idle is not None and name != options.arrival:
            whom = "the clock" if options.idle_follows == "clock" else "the others"
            means.append(f"{whom}, when idle for {format_duration(options.idle)}")
        by_attribute[name] = tuple(means)
    return by_attribute


def to_json(activity: Mapping[str, SourceActivity]) -> Json:
    return {
        name: [source.clock, dict(source.greatest), {a: list(means) for a, means in source.means.items()}]
        for name, source in activity.items()
    }


def from_json(recorded: Json) -> dict[str, SourceActivity]:
    """What a manifest says; nothing where it is silent."""
    known: dict[str, SourceActivity] = {}
    for name, entry in recorded.items() if isinstance(recorded, dict) else ():
        match entry:
            case [int(clock), dict(greatest), dict(means)]:
                known[name] = SourceActivity(
                    clock,
                    {a: value for a, value in greatest.items() if isinstance(value, int)},
                    {a: tuple(map(str, some)) for a, some in means.items() if isinstance(some, list)},
                )
    return known


def idle_progress(
    streams: Sequence[StreamDef],
    options: Mapping[str, SourceOptions],
    activity: Mapping[str, SourceActivity],
    b: Progress,
    clock: int,
    waiting: Collection[str] = (),
) -> dict[tuple[str, str], Extended]:
    """Progress that idle streams are taken to have: of the clock less d, or the least of the streams that are not idle.

    A stream that has ended is not idle, nor one that is `waiting`: rows of it are there, and this batch has read
    others.
    """
    idle = {s.name for s in streams if s.name not in waiting and is_idle(s, options[s.name], activity, b, clock)}
    assumed: dict[tuple[str, str], Extended] = {}
    for stream in (s for s in streams if s.name in idle):
        given = options[stream.name]
        for name in (a for a in stream.progress if a != given.arrival):
            kind = stream.schema[name].type.kind
            if given.idle_follows == "clock":
                assert given.idle is not None
                assumed[stream.name, name] = _behind(clock, max(given.idle, _delay(given, name, kind)), kind)
                continue
            others = [
                b[other.name, a]
                for other in streams
                if other.name not in idle
                for a in other.progress
                if other.schema[a].type.kind is kind and a != options[other.name].arrival
            ]
            # Streams that have ended say nothing about how far time is.
            if going_on := [value for value in others if value != INF]:
                assumed[stream.name, name] = min(going_on)
    return assumed


def is_idle(
    stream: StreamDef, options: SourceOptions, activity: Mapping[str, SourceActivity], b: Progress, clock: int
) -> bool:
    """Whether a stream with an idle policy has been inactive for long enough and has not ended."""
    if options.idle is None or all(b[stream.name, a] == INF for a in stream.progress):
        return False
    known = activity.get(stream.name)
    return known is not None and clock - known.clock >= options.idle


def _delay(options: SourceOptions, name: str, kind: Kind) -> int:
    return options.delay.get(name, 0) * (DAY if kind is Kind.DATE else 1)


def _behind(clock: int, span: int, kind: Kind) -> int:
    """Everything up to here is older than `span`; of dates, those that are over."""
    return (clock - span) // DAY - 1 if kind is Kind.DATE else clock - span
