"""Arrivals that keep a declared delay: what is promised of them, and whether events were joined into event runs for
it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import reduce
from typing import Any
from unittest.mock import patch

from tests.properties.drive import Tally
from tests.strategies.programs import Case
from tests.strategies.streams import Script, Step
from tidegate.algebra.schema import StreamDef
from tidegate.runtime.connectors.sources import Source
from tidegate.runtime.eval.small import event_runs as small_event_runs
from tidegate.runtime.kernels.event_runs import encode
from tidegate.runtime.ordered import event_runs

Delays = dict[str, dict[str, int]]


def delayed(case: Case, script: Script, rng: random.Random) -> tuple[Script, Delays]:
    """The same arrivals in fewer batches, and per stream and attribute a delay that they keep: the least, or a bit
    more.
    """
    fewer: list[Step] = []
    for step in script:
        if fewer and rng.random() < 0.8:
            fewer[-1] = _as_one(fewer[-1], step)
        else:
            fewer.append(step)
    more = rng.choice((0, 0, 1, 3))
    return tuple(fewer), {
        stream.name: {a: least + more for a, least in _kept(stream, fewer).items()} for stream in case.streams
    }


def in_few_batches(script: Script, most: int) -> Script:
    """The same arrivals in at most so many batches."""
    together = -(-len(script) // most)
    return tuple(reduce(_as_one, script[first : first + together]) for first in range(0, len(script), together))


def declared(delays: Delays) -> dict[str, Source]:
    return {name: Source(None, delay=of) for name, of in delays.items() if of}


def _as_one(one: Step, other: Step) -> Step:
    names = {**one.rows, **other.rows}
    streams = {**one.progress, **other.progress}
    return Step(
        {name: (*one.rows.get(name, ()), *other.rows.get(name, ())) for name in names},
        {name: {**one.progress.get(name, {}), **other.progress.get(name, {})} for name in streams},
    )


def _kept(stream: StreamDef, script: list[Step]) -> dict[str, int]:
    """How far rows are behind the greatest instant of the batches before theirs, per attribute."""
    found = dict.fromkeys(stream.progress, 0)
    greatest: dict[str, int] = {}
    for step in script:
        for a in found:
            values = [int(row[a]) for row in step.rows.get(stream.name, ())]  # type: ignore[call-overload]  # an instant
            if values and a in greatest:
                found[a] = max(found[a], greatest[a] - min(values))
            if values:
                greatest[a] = max(*values, greatest.get(a, values[0]))
    return found


@contextmanager
def counting_joined(tally: Tally) -> Iterator[None]:
    """Counts the events that do not begin an event run."""

    def counted(*given: Any) -> Any:
        found, events = encode(*given), given[1]
        tally.joined += 0 if found is None else events - len(found.row)
        return found

    with ExitStack() as stack:
        for module in (event_runs, small_event_runs):
            stack.enter_context(patch.object(module, "encode", counted))
        yield
