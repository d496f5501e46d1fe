"""How matches pass that wait for intervals of rows to end, long after their detection: declarations of the streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tidegate.algebra.nodes import Reading
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import Attr, Lit, call, conjunction
from tidegate.analysis.inner_queries import inner_owner
from tidegate.analysis.ordered.family import Analysis
from tidegate.analysis.zones.wording import usual_spans
from tidegate.analysis.zones.zone import is_copy

#: What to do where no declaration is known that would do.
_ENDS: Final = (
    "let the stream progress on starts too, or declare how long a period may be: "
    "relations=lambda r: r.end <= r.start + ..."
)


def waiting_hint(node: Match) -> str | None:
    return _ENDS if any(reading.interval is not None for reading in node.readings) else None


def interval_declarations(node: Match, analysed: Analysis) -> Sequence[tuple[Mapping[str, StreamDef], str]]:
    """Progress on the starts of intervals, and how long these last."""
    progressing: dict[str, StreamDef] = {}
    lasting: dict[str, StreamDef] = {}
    starts: dict[str, str] = {}
    lengths: dict[str, str] = {}
    for stream, start, end in (ends for reading in node.readings for ends in _ends_of(reading, analysed)):
        type_ = stream.schema[end].type
        ticks, span = usual_spans(type_)[0]
        latest = call("add", Attr(start), Lit(ticks, type_.distance))
        relations = conjunction([stream.relations, call("le", Attr(end), latest)])
        progressing[stream.name] = replace(stream, progress=(*stream.progress, start))
        lasting[stream.name] = replace(stream, relations=relations)
        starts[stream.name], lengths[stream.name] = start, f"{end} <= {start} + {span}"
    if not starts:
        return ()
    also = " and ".join(f"{name} on {start}" for name, start in starts.items())
    long = " and ".join(f"{length} in {name}" for name, length in lengths.items())
    return (progressing, f"declare progress of {also}, too"), (lasting, f"declare how long periods last: {long}")


def _ends_of(reading: Reading, analysed: Analysis) -> list[tuple[StreamDef, str, str]]:
    """The user's stream that intervals are rows of, where it does not progress on their starts, and their ends."""
    federation = None if reading.interval is None else analysed(reading.input)
    if federation is None or reading.interval is None:
        return []
    rows = [federation.zones[0].layout.rows[federation.zones[0].layout.attributes[end]] for end in reading.interval]
    if not all(map(is_copy, rows)):
        return []
    (start, end), stream = (row[2] for row in rows if is_copy(row)), federation.occurrences[0]
    return [] if start in stream.progress or inner_owner(stream.name) else [(stream, start, end)]
