"""The axis of timelines: where instants lie, and which of them are marked, in a picture and in each part of it that is
shown.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tidegate.algebra.time import MICROSECONDS, format_duration, instant_ticks, ticks_instant
from tidegate.runtime.inspect.timelines.zones import clock_offsets, in_zone

#: Where the axis ends, from 0.
WIDTH: Final = 880.0
#: The most marks that are looked for.
MARKS: Final = 8
#: The least part of the axis that is shown in a browser is a 5,000th.
_LEAST_PART: Final = 5_000
_SECOND, _MINUTE, _DAY = (MICROSECONDS[unit] for unit in ("s", "m", "d"))
_MONTH: Final = 30 * _DAY
#: What instants of the axis may lie apart, in seconds and in months; below a second and beyond ten years, round
#: numbers. One is at most two and a half times the one before, so that three marks at least fit where eight of the one
#: before do not.
_STEPS: Final = (
    *(factor * unit for unit in (1, 60) for factor in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 3, 6, 12)),
    *(86_400 * days for days in (1, 2, 5, 10, 20)),
)
_MONTHS: Final = (1, 2, 3, 6, 12, 24, 60, 120)


@dataclass(frozen=True, slots=True)
class Level:
    """How far marks are apart, in ticks or in months, and which letters of an instant's text are their label and the
    whole.
    """

    step: int
    months: int
    label: tuple[int, int]
    whole: int


@dataclass(frozen=True, slots=True)
class Axis:
    """The instants that are drawn, from the first to the last.

    `zone`: whose clocks are shown, None for plain numbers; `offsets`: the parts of the axis in which they have one
    offset.
    """

    first: int
    last: int
    zone: dt.tzinfo | None
    offsets: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, first: int, last: int, zone: dt.tzinfo | None) -> Axis:
        """The axis of a period."""
        return cls(first, last, zone, ((first, last, 0),) if zone is None else tuple(clock_offsets(first, last, zone)))

    def x(self, instant: int) -> float:
        """Where an instant lies."""
        return (instant - self.first) * WIDTH / (self.last - self.first)

    def text(self, instant: int) -> str:
        """An instant in full."""
        return str(instant) if self.zone is None else in_zone(ticks_instant(instant), self.zone).isoformat(sep=" ")

    def length(self, ticks: int) -> str:
        """How long a period is."""
        return str(ticks) if self.zone is None else format_duration(ticks)

    def marks(self) -> Iterator[tuple[int, str, str]]:
        """The instants that are marked, with a label and in full."""
        level = self._level(self.last - self.first)
        dated = level.label[0] < 11  # where no label has a day, the first one has all
        for began, ended, offset in self.offsets:
            period = began + offset, ended + offset
            for wall in _months(level.months, *period) if level.months else _multiples(level.step, *period):
                if self.zone is None:
                    yield wall, str(wall), str(wall)
                    continue
                text = ticks_instant(wall).replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
                yield wall - offset, text[slice(*level.label)] if dated else text[: level.whole], text[: level.whole]
                dated = True

    def to_json(self) -> str:
        """What a browser needs to mark a part of it; ticks are text, as numbers of JavaScript do not hold all of
        them.
        """
        span = self.last - self.first
        spans = [span]
        while spans[-1] > max(1, span // _LEAST_PART):
            spans.append(spans[-1] * 3 // 4)  # steps are half as long again as those before, or longer
        levels = [self._level(span) for span in spans]
        return json.dumps(
            {
                "clock": self.zone is not None,
                "marks": MARKS,
                "offsets": [[*map(str, part)] for part in self.offsets],
                "levels": [
                    [str(level.step), level.months, *level.label, level.whole] for level in dict.fromkeys(levels)
                ],
            }
        )

    def _level(self, span: int) -> Level:
        """Whole hours and the like, so that a span has some marks."""
        least = max(1, -(-span // MARKS))
        if self.zone is None:
            return Level(_round_number(least), 0, (0, 0), 0)
        if least > 20 * _DAY:
            count = -(-least // (_MONTH + _DAY))
            months = next((months for months in _MONTHS if months >= count), 12 * _round_number(-(-count // 12)))
            return Level(months * _MONTH, months, (0, 4 if months % 12 == 0 else 7), 10)
        if least <= _SECOND // 2:
            step = _round_number(least)
            digits = 7 - len(str(step))  # a step is 1, 2 or 5 times a power of ten
            return Level(step, 0, (11, 20 + digits), 20 + digits)
        step = next(_SECOND * seconds for seconds in _STEPS if _SECOND * seconds >= least)
        return Level(step, 0, (0, 10) if step >= _DAY else (5, 16) if step >= _MINUTE else (11, 19), 19)


def _multiples(step: int, first: int, last: int) -> range:
    return range(-(-first // step) * step, last + 1, step)


def _months(step: int, first: int, last: int) -> Iterator[int]:
    """The first days of each `step`th month, from an instant to another."""
    begin = ticks_instant(first)
    at = -(-(begin.year * 12 + begin.month - 1) // step) * step
    while at // 12 <= dt.MAXYEAR:
        wall = instant_ticks(dt.datetime(at // 12, at % 12 + 1, 1, tzinfo=dt.UTC))
        if wall > last:
            return
        if wall >= first:
            yield wall
        at += step


def _round_number(least: int) -> int:
    """The least number 1, 2 or 5 times a power of ten that is no less."""
    power: int = 10 ** (len(str(least)) - 1)
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
