"""Values of the rows around a row, over all partitions at once, against doing it partition by partition."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tidegate.runtime.kernels.over import moving, queued, running, segments
from tidegate.runtime.kernels.partitions.rows import NEVER, first_tie, mark, segmented, up_to

#: Sizes of partitions: kept rows, and new ones.
SIZES = ((0, 0), (0, 3), (2, 0), (1, 4), (3, 1), (0, 1), (5, 9))


def block(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.random.Generator]:
    """Offsets, first new rows, times that go on within partitions, and a generator."""
    rng = np.random.default_rng(seed)
    offsets = np.cumsum([0, *(kept + new for kept, new in SIZES)])
    first = offsets[:-1] + [kept for kept, _ in SIZES]
    times = [np.sort(rng.integers(0, 12, kept + new)) for kept, new in SIZES]
    return offsets, first, np.concatenate(times), rng


def partitions(offsets: np.ndarray) -> list[range]:
    return [range(start, end) for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


@pytest.mark.parametrize("seed", range(3))
def test_rows_stand_by_partition_and_kept_ones_first(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kept, new = np.sort(rng.integers(0, 6, 9)), rng.integers(0, 6, 20)
    order = rng.permutation(20)
    source, offsets, first = segmented(kept, new, order, 6)
    for p in range(6):
        own = source[offsets[p] : offsets[p + 1]].tolist()
        assert own[: first[p] - offsets[p]] == np.flatnonzero(kept == p).tolist()
        assert own[first[p] - offsets[p] :] == [9 + i for i in order.tolist() if new[i] == p]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("before", "after"), [(-1, 0), (0, 0), (1, 0), (3, 2), (-1, 1)])
def test_frames_hold_the_rows_near_enough(before: int, after: int, seed: int) -> None:
    offsets, _, time, _ = block(seed)
    by_rows = segments.frames_of_rows(offsets, before, after)
    by_range = segments.frames_of_range(offsets, time, before, after, True)
    alone = segments.frames_of_range(offsets, time, before, 0, False)
    for own in partitions(offsets):
        for i in own:
            near = [j for j in own if (before < 0 or j >= i - before) and j <= i + after]
            assert near == list(range(by_rows[0][i], by_rows[1][i]))
            within = [j for j in own if (before < 0 or time[j] >= time[i] - before) and time[j] <= time[i] + after]
            assert within == list(range(by_range[0][i], by_range[1][i]))
            back = [j for j in own if j <= i and (before < 0 or time[j] >= time[i] - before)]
            assert back == list(range(alone[0][i], alone[1][i]))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("within", [-1, 0, 2])
@pytest.mark.parametrize("offset", [-2, -1, 1, 3])
def test_neighbours_and_when_they_are_there(offset: int, within: int, seed: int) -> None:
    offsets, _, time, _ = block(seed)
    found = segments.neighbours(offsets, time, offset, within)
    complete = segments.completed_at(time, segments.neighbours(offsets, time, abs(offset), -1), within, 99)
    for own in partitions(offsets):
        for i in own:
            near = i + offset in own and (within < 0 or abs(time[i + offset] - time[i]) <= within)
            assert found[i] == (i + offset if near else -1)
            known = [time[i + abs(offset)]] if i + abs(offset) in own else []
            assert complete[i] == min([*known, *([time[i] + within] if within >= 0 else [])], default=99)


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_kept_that_a_later_one_needs(seed: int) -> None:
    """Whatever the instants of rows to come are, and for those that wait."""
    offsets, _, time, rng = block(seed)
    until = int(rng.integers(6, 14))
    waiting = time + int(rng.choice([0, 3]))
    needs = [(int(rows), int(ticks)) for rows, ticks in rng.choice([(1, -1), (-1, 3), (2, 4), (0, -1), (-1, 0)], 2)]
    rows, ticks = (np.array(column) for column in zip(*needs, strict=True))
    starts, look, places = segments.kept_rows(offsets, time, waiting, until, rows, ticks)
    assert places.tolist() == [i for p, own in enumerate(partitions(offsets)) for i in own if i >= starts[p]], (
        "a row is kept, and so are those after it"
    )
    for p, own in enumerate(partitions(offsets)):
        waits = next((i for i in own if waiting[i] > until), own.stop)

        def needed(at: int, when: int, own: range = own, waits: int = waits) -> int:
            first = waits
            for back, span in needs:
                near = [
                    i for i in own if i < at and (back < 0 or i >= at - back) and (span < 0 or time[i] >= when - span)
                ]
                first = min([first, *near])
            return first

        wanted = needed(own.stop, until + 1)
        if waits < own.stop:
            wanted = min(wanted, needed(waits, int(time[waits])))
            assert look[p] == min(waiting[i] for i in own if i >= waits)
        elif look[p] != NEVER:
            assert needed(own.stop, int(look[p]) + 1) > wanted == needed(own.stop, int(look[p]))
        assert starts[p] == wanted


@pytest.mark.parametrize("seed", range(3))
def test_running_values_go_on_from_kept_rows(seed: int) -> None:
    offsets, first, _, rng = block(seed)
    n = int(offsets[-1])
    values, valid = rng.integers(-(1 << 62), 1 << 62, n), (rng.random(n) < 0.7).astype(np.uint8)
    count, high, low = (np.zeros(n, dtype=np.int64) for _ in range(3))
    total, lost = np.zeros(n), np.zeros(n)
    doubles = rng.integers(-(1 << 40), 1 << 40, n) * 2.0 ** rng.integers(-20, 20, n)
    for p, own in enumerate(partitions(offsets)):
        if first[p] > own.start:
            count[first[p] - 1], high[first[p] - 1], low[first[p] - 1], total[first[p] - 1] = 7, -3, 5, 0.25
    running.count(offsets, first, valid, count)
    running.add(offsets, first, values, valid, high, low)
    running.add_doubles(offsets, first, doubles, valid, total, lost)
    for p, own in enumerate(partitions(offsets)):
        kept = first[p] > own.start
        so_far = [int(values[i]) for i in range(0)]
        exact = Fraction(0.25) if kept else Fraction(0)
        for i in own[first[p] - own.start :]:
            so_far += [int(values[i])] if valid[i] else []
            exact += Fraction(doubles[i]) if valid[i] else 0
            assert count[i] == 7 * kept + len(so_far)
            assert (int(high[i]) << 32) + int(low[i]) == ((-3 << 32) + 5) * kept + sum(so_far)
            assert 0 <= low[i] < 1 << 32
            assert Fraction(total[i]) + Fraction(lost[i]) == exact


@pytest.mark.parametrize("seed", range(3))
def test_places_of_running_values(seed: int) -> None:
    offsets, first, _, rng = block(seed)
    n = int(offsets[-1])
    keys, valid = rng.integers(0, 4, 2 * n), (rng.random(2 * n) < 0.6).astype(np.uint8)
    number = np.zeros(n, dtype=np.int64)
    for own in partitions(offsets):
        number[own.start : own.stop] = np.arange(1, len(own) + 1) + 5
    best = running.least(offsets, first, keys, valid)
    earliest, latest = (running.end(offsets, first, valid, last) for last in (False, True))
    other = running.previous_different(offsets, first, keys[:n], valid[:n])
    following = segments.next_different(offsets, keys[:n], valid[:n])
    nth = running.nth(offsets, first, number, 8)
    for p, own in enumerate(partitions(offsets)):
        for i in own:
            kept = first[p] - 1 if first[p] > own.start else None
            its = [(keys[j] if valid[j] else None) for j in own]
            after = [j for j in own if j > i and its[j - own.start] != its[i - own.start]]
            assert following[i] == min(after, default=-1)
            if i < first[p]:
                assert best[i] == earliest[i] == latest[i] == (n + i if valid[n + i] else -1)
                continue
            known = [] if kept is None or not valid[n + kept] else [n + kept]
            known += [j for j in range(first[p], i + 1) if valid[j]]
            assert best[i] == min(known, key=lambda j: keys[j], default=-1)
            assert earliest[i] == next(iter(known), -1)
            assert latest[i] == next(iter(known[::-1]), -1)
            before = [j for j in own if j < i and its[j - own.start] != its[i - own.start]]
            if kept is None:
                assert other[i] == max(before, default=-1)
            elif [j for j in before if j >= kept]:
                assert other[i] == max(before)
            else:
                assert other[i] == n + kept
            there = [j for j in own if number[j] == 8]
            assert nth[i] == (-1 if number[i] < 8 else n + kept if kept is not None and number[kept] >= 8 else there[0])


@pytest.mark.parametrize("within", [-1, 0, 3, 9])
@pytest.mark.parametrize("seed", range(3))
def test_rows_are_reported_again_after_so_long(seed: int, within: int) -> None:
    """Of a partition that goes on, the row before the new ones knows when the last one was reported."""
    offsets, first, time, _ = block(seed)
    at, is_reported = np.full(len(time), -99), np.full(len(time), -1)
    for p, own in enumerate(partitions(offsets)):
        if first[p] > own.start:
            at[first[p] - 1] = time[first[p] - 1] - 2
    running.reported(offsets, first, time, within, at, is_reported)
    for p, own in enumerate(partitions(offsets)):
        last = int(time[first[p] - 1]) - 2 if first[p] > own.start else None
        for i in range(first[p], own.stop):
            again = last is None or (within >= 0 and time[i] > last + within)
            last = int(time[i]) if again or last is None else last
            assert (at[i], is_reported[i]) == (last, int(again))
        assert (is_reported[own.start : first[p]] == -1).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("before", "after"), [(0, 0), (2, 0), (5, 1), (40, 0)])
def test_values_over_frames_that_move(before: int, after: int, seed: int) -> None:
    """Of some rows only, as of those that are complete."""
    offsets, _, _, rng = block(seed)
    n = int(offsets[-1])
    low, high = segments.frames_of_rows(offsets, before, after)
    at = np.flatnonzero(rng.random(n) < 0.8)
    keys, valid = rng.integers(0, 5, n), (rng.random(n) < 0.7).astype(np.uint8)
    doubles = rng.integers(-(1 << 40), 1 << 40, n) * 2.0 ** rng.integers(-20, 20, n)
    best = moving.least(at, low, high, keys, valid)
    sums, lost = moving.add_doubles(at, low, high, doubles, valid)
    different = moving.distinct(at, low, high, keys, valid, 5)
    for k, i in enumerate(at.tolist()):
        own = [j for j in range(low[i], high[i]) if valid[j]]
        assert different[k] == len({int(keys[j]) for j in own})
        assert best[k] == min(own, key=lambda j: keys[j], default=-1)
        assert Fraction(sums[k]) + Fraction(lost[k]) == sum(Fraction(doubles[j]) for j in own)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("several", [False, True])
def test_rows_are_undercut_by_later_ones_that_are_no_greater(seed: int, several: bool) -> None:
    offsets, _, _, rng = block(seed)
    count = int(offsets[-1])
    key, valid = rng.integers(0, 3, count), rng.integers(0, 2, count).astype(np.uint8)
    found = moving.undercut(offsets, key, valid, several, 0)
    for own in partitions(offsets):
        for i in own:
            after = [j for j in own if j > i and valid[j]]
            less = [j for j in after if key[j] < key[i] or (key[j] == key[i] and not (several and key[i] == 0))]
            assert found[i] == (not valid[i] or bool(less))


def queue(seed: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, list[list[int]], np.random.Generator]:
    """What kernels of queues take of partitions: places and numbers of the kept rows, which stand among others, times
    of kept and of new rows; and for each partition the places of its rows in arrays of kept and then new ones.
    """
    rng = np.random.default_rng(seed)
    first = np.cumsum([2, *(kept + 3 for kept, _ in SIZES[:-1])])
    count = np.array([kept for kept, _ in SIZES])
    base = np.where(count > 0, rng.integers(1, 14, len(SIZES)), 1)
    offsets = np.cumsum([0, *(new for _, new in SIZES)])
    width = int(first[-1] + count[-1] + 3)
    own = [
        [*range(f, f + c), *range(width + o, width + e)]
        for f, c, o, e in zip(first.tolist(), count.tolist(), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    ]
    time = np.zeros(width + int(offsets[-1]), dtype=np.int64)
    for rows in own:
        time[rows] = np.sort(rng.integers(0, 12, len(rows)))
    return [first, count, base, offsets], time[:width], time[width:], own, rng


def blocks(numbers: list[int]) -> list[range]:
    """The places of the rows of each block, by that of its last row: those that are still there."""
    sizes = [number & -number for number in numbers]
    return [range(max(0, place - size + 1), place + 1) for place, size in enumerate(sizes)]


def asked_of(own: list[list[int]], rng: np.random.Generator) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Some rows in succession of each partition, kept ones too: where they begin, and their partitions and places."""
    asked = []
    for p, rows in enumerate(own):
        start, end = np.sort(rng.integers(0, len(rows) + 1, 2)).tolist()
        asked.append([(p, place) for place in range(start, end)])
    return np.cumsum([0, *map(len, asked)]), [pair for pairs in asked for pair in pairs]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("before", "after", "peers"), [(0, 0, True), (2, 0, False), (20, 0, True), (3, 2, True)])
def test_values_over_frames_of_queues(before: int, after: int, peers: bool, seed: int) -> None:
    """Of blocks, with what stands before all of them, and behind, and without a row that all have."""
    (first, count, base, offsets), kept_time, time, own, rng = queue(seed)
    asked, places = asked_of(own, rng)
    at = np.array([place for _, place in places], dtype=np.int64)
    width, new = len(kept_time), len(time)
    low, high = np.empty(len(at), dtype=np.int64), np.empty(len(at), dtype=np.int64)
    queued.frames_of_range(first, count, offsets, kept_time, time, asked, at, before, after, peers, low, high)
    times, value = np.concatenate([kept_time, time]), rng.integers(0, 4, width + new)
    valid, tie = rng.integers(0, 3, width + new) > 0, rng.integers(0, 2, width + new)
    value = np.where(valid, value, 0)
    sums, best = np.zeros(width + new), np.zeros(width + new, dtype=np.int64)

    def least(rows: list[int], places: Iterable[int]) -> int:
        known = [k for k in places if valid[rows[k]]]
        return min(known, key=lambda k: (value[rows[k]], tie[rows[k]]), default=-1)

    for p, rows in enumerate(own):
        numbers = [int(base[p]) + place for place in range(len(rows))]
        for place, block_ in enumerate(blocks(numbers)):
            sums[rows[place]] = sum(value[rows[k]] for k in block_)
            chosen = least(rows, block_)
            best[rows[place]] = 0 if chosen < 0 else numbers[chosen] * (1 if valid[rows[place]] else -1)
    doubles, flags = value.astype(float), valid[width:].astype(np.uint8)
    made, lost, total, rest = np.zeros(new), np.zeros(new), np.zeros(len(at)), np.zeros(len(at))
    ours = (first, count, base, offsets, asked, low, high)
    zeros = np.zeros(width)
    queued.add_doubles(*ours, doubles[:width], sums[:width], zeros, doubles[width:], flags, made, lost, total, rest)
    bests, found = np.zeros(new, dtype=np.int64), np.zeros(len(at), dtype=np.int64)
    stored, fresh = (value[:width], tie[:width], best[:width]), (value[width:], tie[width:])
    queued.least(*ours, *stored, *fresh, flags, bests, found)
    assert made.tolist() == sums[width:].tolist()
    assert bests.tolist() == best[width:].tolist()
    for i, (p, place) in enumerate(places):
        rows = own[p]
        near = [k for k, row in enumerate(rows) if -after <= times[rows[place]] - times[row] <= before]
        near = [k for k in near if peers or k <= place]
        assert near == list(range(low[i], high[i]))
        assert total[i] == sum(value[rows[k]] for k in near)
        assert found[i] == least(rows, near)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("further", [0, 2, 9])
@pytest.mark.parametrize("waits", [((-1, 3),), ((2, -1),), ((2, 3),), ((2, -1), (-1, 5)), ()])
def test_which_rows_of_queues_wait_and_are_needed(waits: tuple[tuple[int, int], ...], further: int, seed: int) -> None:
    """As `segments` says it of all rows: which are needed, and when fewer are."""
    (first, count, _base, offsets), kept_time, time, own, _rng = queue(seed)
    rows, ticks = (np.array([pair[i] for pair in waits], dtype=np.int64) for i in (0, 1))
    times = np.concatenate([kept_time, time])[[row for rows_ in own for row in rows_]]
    starts, until = np.cumsum([0, *map(len, own)]), int(times.max()) + further
    complete = times
    for many, span in waits:
        there = segments.neighbours(starts, times, many, -1) if many >= 0 else np.full(len(times), -1)
        complete = np.maximum(complete, segments.completed_at(times, there, span, NEVER))
    found = queued.waiting(first, count, offsets, kept_time, time, rows, ticks, until)
    assert found.tolist() == [int((complete[a:b] <= until).sum()) for a, b in itertools.pairwise(starts)]
    needs = np.array([-1, 4, 0, 3], dtype=np.int64), np.array([6, -1, -1, 8], dtype=np.int64)
    first_needed, over = queued.needed(first, count, offsets, kept_time, time, found, until, *needs)
    kept_from, look, _ = segments.kept_rows(starts, times, complete, until, *needs)
    assert first_needed.tolist() == (kept_from - starts[:-1]).tolist()
    rests = found == np.diff(starts)
    assert over[rests].tolist() == look[rests].tolist()
    assert (over[~rests] == NEVER).all()


def test_ties_are_found_within_partitions_alone() -> None:
    assert first_tie(np.array([0, 2, 4]), np.array([1, 2, 2, 3])) == -1
    assert first_tie(np.array([0, 2, 4]), np.array([1, 2, 3, 3])) == 3


@pytest.mark.parametrize("seed", range(3))
def test_values_up_to_a_bound_are_counted_by_partition(seed: int) -> None:
    """Of segments that stand anywhere, some of them empty, in order of other values than their neighbours'."""
    rng = np.random.default_rng(seed)
    values, first, count = rng.integers(-99, 99, 80), np.arange(0, 80, 8), rng.integers(0, 8, 10)
    for start, many in zip(first, count, strict=True):
        values[start : start + many] = np.sort(rng.integers(-4, 5, many))
    for at in (np.arange(10), rng.permutation(10)[:6]):
        bound = rng.integers(-5, 6, len(at))
        own = [values[start : start + many] for start, many in zip(first[at], count[at], strict=True)]
        found = up_to(values, first[at], count[at], bound)
        assert found.tolist() == [int((some <= limit).sum()) for some, limit in zip(own, bound, strict=True)]


def test_marks_are_set_at_numbers_and_stay_where_they_were() -> None:
    marks = np.array([False, True, False, False, False])
    mark(marks, np.array([4, 2, 4], dtype=np.int32))
    assert marks.tolist() == [False, True, True, False, True]


def test_a_sum_of_doubles_beyond_all_is_infinite() -> None:
    at, valid = np.arange(3), np.ones(3, dtype=np.uint8)
    low, high = segments.frames_of_rows(np.array([0, 3]), 1, 0)
    for value, wanted in (([np.inf, 1.0, 2.0], [np.inf, np.inf, 3.0]), ([np.nan, 1.0, 2.0], [np.nan, np.nan, 3.0])):
        sums, lost = moving.add_doubles(at, low, high, np.array(value), valid)
        assert np.array_equal(sums + lost, wanted, equal_nan=True)


class Looks:
    """An array that counts how often one of its values is read."""

    def __init__(self, values: np.ndarray, counted: list[int]) -> None:
        self.values, self.counted = values, counted

    def __getitem__(self, place: int) -> Any:
        self.counted[0] += 1
        return self.values[place]


@pytest.mark.parametrize("size", [1, 1_000, 100_000])
def test_frames_look_at_the_rows_that_come_and_leave_and_few_that_stay(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 100,000 rows that are kept, in frames of any size, for each of 100 new ones."""
    kept, new = 100_000, 100
    for module, name in ((queued, "later"), (queued, "better"), (queued, "added")):
        monkeypatch.setattr(module, name, getattr(module, name).py_func)
    first, count, base, offsets = (np.array(of) for of in ([0], [kept], [1], [0, new]))
    counted = [0]
    rng = np.random.default_rng(size)
    value = rng.integers(0, 1000, kept + new)
    time = np.arange(kept + new)
    low, high = np.empty(new, dtype=np.int64), np.empty(new, dtype=np.int64)
    behind, at = Looks(time[:kept], counted), kept + np.arange(new)
    frames = queued.frames_of_range.py_func
    frames(first, count, offsets, behind, time[kept:], offsets, at, size - 1, 0, True, low, high)
    assert (high - low == size).all()
    assert counted[0] < 8 * new
    best = np.array([0, *(number - (number & -number) + 1 for number in range(1, kept + 1))])[1:]
    flags, made, found = np.ones(new, dtype=np.uint8), np.zeros(new, dtype=np.int64), np.zeros(new, dtype=np.int64)
    ours = (first, count, base, offsets, offsets, low, high)
    counted[0] = 0
    stored = [Looks(values, counted) for values in (value[:kept], value[:kept], best)]
    queued.least.py_func(*ours, *stored, value[kept:], value[kept:], flags, made, found)
    assert counted[0] < 12 * new + 500
    counted[0] = 0
    doubles, sums = value.astype(float), np.zeros(new)
    stored = [Looks(doubles[:kept], counted) for _ in range(3)]
    outcome = [np.zeros(new) for _ in range(3)]
    queued.add_doubles.py_func(*ours, *stored, doubles[kept:], flags, sums, *outcome)
    assert counted[0] < 12 * new + 500
