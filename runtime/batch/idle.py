"""Idle sources: progress of a stream that has been silent, so that it does not hold up the others for ever.

Whoever declares a source idle after d gives up a guarantee: a row that comes after all, at or below the progress that
was assumed, is late.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tidegate.algebra.schema import StreamDef
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import Kind
from tidegate.runtime.batch.source_activity import Heard
from tidegate.runtime.connectors.sources import DAY, SourceOptions

Progress = Mapping[tuple[str, str], Extended]


def idle_progress(
    streams: Sequence[StreamDef],
    options: Mapping[str, SourceOptions],
    heard: Mapping[str, Heard],
    b: Progress,
    clock: int,
    waiting: Collection[str] = (),
) -> dict[tuple[str, str], Extended]:
    """Progress that idle streams are taken to have: of the clock less d, or the least of the streams that are not idle.

    A stream that has ended is not idle, nor one that is `waiting`: rows of it are there, and this batch has read others.
    """
    idle = {s.name for s in streams if s.name not in waiting and is_idle(s, options[s.name], heard, b, clock)}
    found: dict[tuple[str, str], Extended] = {}
    for stream in (s for s in streams if s.name in idle):
        given = options[stream.name]
        for name in (a for a in stream.progress if a != given.arrival):
            kind = stream.schema[name].type.kind
            if given.idle_follows == "clock":
                assert given.idle is not None
                found[stream.name, name] = _behind(clock, max(given.idle, _delay(given, name, kind)), kind)
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
                found[stream.name, name] = min(going_on)
    return found


def is_idle(stream: StreamDef, options: SourceOptions, heard: Mapping[str, Heard], b: Progress, clock: int) -> bool:
    """Whether a stream with an idle policy has been silent for long enough and has not ended."""
    if options.idle is None or all(b[stream.name, a] == INF for a in stream.progress):
        return False
    known = heard.get(stream.name)
    return known is not None and clock - known.clock >= options.idle


def _delay(options: SourceOptions, name: str, kind: Kind) -> int:
    return options.delay.get(name, 0) * (DAY if kind is Kind.DATE else 1)


def _behind(clock: int, span: int, kind: Kind) -> int:
    """Everything up to here is older than `span`; of dates, those that are over."""
    return (clock - span) // DAY - 1 if kind is Kind.DATE else clock - span
