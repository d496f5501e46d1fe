"""What is held of partitions against a dictionary by their keys, while partitions are given up and numbered anew."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest

from tidegate.algebra.errors import InternalError
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.types import BIGINT
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.cells import NONE, Situations
from tidegate.runtime.kernels.event_runs import NEVER
from tidegate.runtime.kernels.situations import Runs
from tidegate.runtime.ordered import partition_store
from tidegate.runtime.ordered.derive.partition_states import PartitionStates, StateChange, StateExtract

KEYS = Schema((Attribute("k", BIGINT),))
DEFINITIONS = 2
#: Starts of the open runs of two sources, situations that are over per definition, when to look.
Held = tuple[list[int], list[int], list[list[tuple[int, int, int]]], int]
NOTHING: Held = ([NEVER, NEVER], [NEVER], [[], []], NONE)


def frame(keys: list[int | None]) -> pl.DataFrame:
    return pl.DataFrame({"k": keys}, schema={"k": pl.Int64})


def runs(starts: list[list[int]], width: int) -> Runs:
    start = np.array(starts, dtype=np.int64).reshape(-1, width)
    return Runs(start.max(axis=1), (start != NEVER).sum(axis=1).astype(np.uint64), start, start + 1)


def cut_of(partitions: Int64Array, held: list[Held], version: int = 0) -> StateExtract:
    cells = [cell for _, _, kept, _ in held for cell in kept]
    flat = [one for cell in cells for one in cell]
    ts, te, number = (np.array([one[side] for one in flat], dtype=np.int64) for side in range(3))
    offsets = np.cumsum([0, *map(len, cells)])
    look = np.array([look for *_, look in held], dtype=np.int64)
    return StateExtract(
        partitions,
        (runs([one for one, *_ in held], 2), runs([other for _, other, *_ in held], 1)),
        Situations(DEFINITIONS, offsets, ts, te, number),
        number,
        look,
        version,
    )


def held_of(extract: StateExtract) -> list[Held]:
    kept, found = extract.kept, []
    for place in range(len(extract.partitions)):
        cells = []
        for cell in range(place * DEFINITIONS, (place + 1) * DEFINITIONS):
            own = slice(kept.offsets[cell], kept.offsets[cell + 1])
            sides = (kept.ts[own].tolist(), kept.te[own].tolist(), extract.number[own].tolist())
            cells.append(list(zip(*sides, strict=True)))
        one, other = (part.start[place].tolist() for part in extract.runs)
        found.append((one, other, cells, int(extract.look[place])))
    return found


def random_held(rng: random.Random, now: int) -> Held:
    if rng.random() < 0.5:
        return NOTHING
    cells = [[(rng.randrange(99), rng.randrange(99), rng.randrange(99))] * rng.choice((0, 0, 1, 3)) for _ in range(2)]
    one, other = ([rng.choice((NEVER, now)) for _ in range(width)] for width in (2, 1))
    is_held = any(cells) or {*one, *other} != {NEVER}
    return one, other, cells, now + rng.randrange(1, 9) if is_held else NONE


@pytest.mark.parametrize("loose", [0, 3, 10**6])
@pytest.mark.parametrize("seed", range(4))
def test_partitions_hold_what_was_put_last(seed: int, loose: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few of many partitions and many of few; integer keys, and NULL among them, which is numbered in another way."""
    monkeypatch.setattr(partition_store, "LOOSE", loose)
    rng = random.Random(seed)
    states, known = PartitionStates(KEYS, (2, 1), DEFINITIONS), dict[int | None, Held]()
    everything: list[int | None] = [*range(rng.choice((3, 60))), *([None] if seed % 2 else [])]
    made = None
    for now in range(80):
        states.ready()
        assert len(states.partitions) <= len(everything)
        rows = [[rng.choice(everything) for _ in range(rng.choice((0, 1, 2, 40)))] for _ in range(2)]
        parts = [states.partitions.assign(frame(keys)) for keys in rows]
        partitions = states.touched(parts, now)
        keys = states.partitions.rows(partitions).get_column("k").to_list()
        due = {key for key, (*_, look) in known.items() if look <= now}
        assert len(keys) == len(set(keys))
        assert set(keys) == due.union(*rows)
        for part, own in zip(parts, rows, strict=True):
            assert [keys[place] for place in states.places(partitions, part)] == own
        before = states.extract(partitions)
        assert held_of(before) == [known.get(key, NOTHING) for key in keys]
        new = [random_held(rng, now) for _ in keys]
        made = StateChange(before, cut_of(partitions, new, before.version), np.zeros(0, dtype=np.bool_))
        made.settle(states)
        known |= dict(zip(keys, new, strict=True))
        assert states.held == sum(one != NOTHING for one in known.values())
        assert states.open == sum(start != NEVER for one, other, *_ in known.values() for start in (*one, *other))
    assert made is not None
    states.ready()
    made.settle(states)  # once more, as for a batch that is done again: it is known
    keys = states.partitions.rows(states.all_partitions()).get_column("k").to_list()
    assert held_of(states.extract(states.all_partitions())) == [known[key] for key in keys]
    if loose == 0:
        assert states.last is not None
        assert len(keys) <= 2 * max(states.held, len(states.last.partitions))


def test_what_was_cut_before_another_was_put_is_refused() -> None:
    states = PartitionStates(KEYS, (2, 1), DEFINITIONS)
    partitions = np.unique(states.partitions.assign(frame([1, 2]))).astype(np.int64)
    one, other = states.extract(states.touched([partitions.astype(np.int32)], 0)), states.extract(partitions)
    StateChange(one, cut_of(partitions, [NOTHING] * 2), np.zeros(0, dtype=np.bool_)).settle(states)
    with pytest.raises(InternalError, match="TG590"):
        StateChange(other, cut_of(partitions, [NOTHING] * 2), np.zeros(0, dtype=np.bool_)).settle(states)
