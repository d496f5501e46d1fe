"""Slices of a stream: the events that one task reads at once, and those of them that may be joined into event runs."""

from __future__ import annotations

from dataclasses import dataclass


class InterleavedRuns(Exception):
    """Events lie within event runs of others. These were joined too early and have to be stored one by one."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The instants between which events may be joined into event runs: from `low` to `high`.

    Whatever else arrives in time lies outside, provided that all that was promised of the stream's order holds.
    """

    low: int
    high: int

    @classmethod
    def of(cls, earliest: int, latest: int, delay: int) -> Slice:
        """The slice of successive events from `earliest` to `latest`, each at most `delay` late.

        Progress will be beyond `high`, so that all events there are final with this batch; before `low` the end of
        another slice may reach, as both overlap by no more than the delay.
        """
        return cls(earliest + delay, latest - delay - 1)
