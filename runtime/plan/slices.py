"""Slices of a stream: what one task reads in one go, and which of its events are safe to join before others are seen."""

from __future__ import annotations

from dataclasses import dataclass


class Interleaved(Exception):
    """Events lie within event runs of others. These were joined too early and have to be stored one by one."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The instants between which events are joined: none earlier than `low`, none later than `high`.

    Whatever else arrives in time lies outside, provided that all that was promised of the stream's order holds.
    """

    low: int
    high: int

    @classmethod
    def of(cls, earliest: int, latest: int, delay: int) -> Slice:
        """Of events from `earliest` to `latest` that come one after the other, but up to `delay` late.

        Progress will be beyond `high`, so that all events there are final with this batch; before `low` the end of another
        slice may reach, as both overlap by no more than the delay.
        """
        return cls(earliest + delay, latest - delay - 1)
