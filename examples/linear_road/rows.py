"""The rows of Linear Road: fifteen integers each, -1 where one says nothing."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

POSITION, BALANCE, DAILY = 0, 2, 3  # types of rows; others are nobody's question here
EAST, WEST = 0, 1  # where positions grow, and where they fall
ENTRY, EXIT = 0, 4  # lanes; those between are travelled on
SEGMENTS, MILE = 100, 5280  # of a road, each so many feet long
PERIOD = 30  # seconds from one report of a car to its next
DURATION = 10_800  # seconds that the benchmark takes
MILLION = 1_000_000  # the paper's means are whole millionths of miles an hour, rounded down, so that all agree on them

#: How the latest average velocity is told: as validators do, as the mean of all reports; or by the paper's formulas, as
#: the mean of the minutes' means of the cars' means.
Lav: TypeAlias = Literal["reports", "paper"]


class Row(NamedTuple):
    """A report of a position (type 0), or a question: for the balance of a car (2), for the tolls of a day (3)."""

    type: int
    time: int
    vid: int
    spd: int = -1
    xway: int = -1
    lane: int = -1
    dir: int = -1
    seg: int = -1
    pos: int = -1
    qid: int = -1
    s_init: int = -1
    s_end: int = -1
    dow: int = -1
    tod: int = -1
    day: int = -1


def position(time: int, vid: int, spd: int, xway: int, lane: int, dir: int, pos: int) -> Row:
    """A report; the segment follows from the position in feet."""
    return Row(POSITION, time, vid, spd, xway, lane, dir, pos // MILE, pos)


def balance(time: int, vid: int, qid: int) -> Row:
    """The question what a car owes at this time."""
    return Row(BALANCE, time, vid, qid=qid)


def daily(time: int, vid: int, xway: int, qid: int, day: int) -> Row:
    """The question what a car paid for a road on a day before, of which yesterday is 1."""
    return Row(DAILY, time, vid, xway=xway, qid=qid, day=day)


def history(vid: int, day: int, xway: int) -> int:
    """What a car paid for a road on a day before, where no table says it: made up, and the same for everybody."""
    return (vid * 7919 + day * 104_729 + xway * 1_299_709) % 100
