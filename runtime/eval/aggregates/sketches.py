"""Sketches of groups and frames: of single values their places, merged ones as text, and what these say."""

from __future__ import annotations

import base64
import math
from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
import polars as pl

from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.functions.sketches.distinct import FIRST, GOLDEN, REST_BITS, SECOND, hash_of
from tidegate.algebra.functions.sketches.kinds import Sketch
from tidegate.algebra.functions.sketches.quantiles import PART_BITS
from tidegate.algebra.terms import Value
from tidegate.algebra.types import DataType
from tidegate.runtime.arrays import Float64Array, Int64Array, UInt64Array
from tidegate.runtime.eval.functions.shared import held_type
from tidegate.runtime.plan.progress import not_of_this_program

#: What the text of a sketch begins with: the version of its layout.
VERSION: Final = "1"
#: How places and numbers are written.
_TYPES: Final = {Sketch.DISTINCT: ("<u2", "<u1"), Sketch.QUANTILES: ("<u4", "<u8")}
#: Bits of a number beside its place, where both are one integer.
NUMBER_BITS: Final = 6
#: Parts of the number line are counted from here on, so that none is below zero.
_MIDDLE: Final = 1 << 18


def entries(sketch: Sketch, argument: DataType, values: pl.Series) -> pl.Series:
    """The place of each value with its number, as one integer; NULL of NULL."""
    numbers = _parts(values, argument) if sketch is Sketch.QUANTILES else _classes(values)
    found = pl.Series(values.name, numbers, pl.Int64)
    return found.set(values.is_null(), None) if values.null_count() else found


def counted(argument: DataType, pairs: pl.Series) -> pl.Series:
    """The sketch of each value, `v`, that counts several times, `by`; NULL where one of both is."""
    values, numbers = pairs.struct.field("v"), pairs.struct.field("by")
    places = entries(Sketch.QUANTILES, argument, values)
    known = (places.is_not_null() & numbers.is_not_null()).to_list()
    found = zip(places.fill_null(0).to_numpy(), numbers.fill_null(0).to_numpy(), known, strict=True)
    texts = [
        _text(Sketch.QUANTILES, (np.array([place]), np.array([number]))) if some else None
        for place, number, some in found
    ]
    return pl.Series(pairs.name, texts, dtype=pl.String)


def merged(sketch: Sketch, groups: pl.Series) -> pl.Series:
    """The sketch of each group, from a list of integers of single values, or of texts of sketches."""
    is_text = groups.dtype == pl.List(pl.String)
    texts = [
        _text(sketch, _of_texts(sketch, group) if is_text else _of_values(sketch, group.to_numpy())) for group in groups
    ]
    return pl.Series(groups.name, texts, dtype=pl.String)


def results(aggregate: Aggregate, result: DataType, texts: pl.Series) -> pl.Series:
    """What the sketch of each group says."""
    found = [_estimate(aggregate, _read(sketch_of(aggregate), text)) for text in texts.to_list()]
    return pl.Series(texts.name, found, dtype=held_type(result))


def estimates(
    aggregate: Aggregate, argument: DataType, values: pl.Series, start: Int64Array, end: Int64Array
) -> Iterator[Value]:
    """What the sketch of each frame says, from a start to before an end. Each is made anew, for no value leaves one."""
    sketch = sketch_of(aggregate)
    places = entries(sketch, argument, values).drop_nulls().to_numpy()
    before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values.is_not_null().to_numpy(), dtype=np.int64)])
    for first, last in zip(before[start].tolist(), before[end].tolist(), strict=True):
        yield _estimate(aggregate, _of_values(sketch, places[first:last]))


@dataclass(slots=True)
class OpenSketch:
    """A sketch that takes values one by one: `numbers` by place, `order` has the places in ascending order, and `told`
    is what it says.
    """

    aggregate: Aggregate
    numbers: dict[int, int]
    order: list[int] = field(default_factory=list)
    told: Value = None

    @classmethod
    def of(cls, aggregate: Aggregate, text: str | None) -> Self:
        """The sketch that is written so; without a text that of no values."""
        places, numbers = _read(sketch_of(aggregate), text)
        opened = cls(aggregate, dict(zip(places.tolist(), numbers.tolist(), strict=True)), sorted(places.tolist()))
        opened.told = opened._estimate()
        return opened

    def add(self, entry: int) -> None:
        """Takes a value by its place and number, as `entries` has them."""
        adds = sketch_of(self.aggregate).adds
        place, number = (entry, 1) if adds else (entry >> NUMBER_BITS, entry & ((1 << NUMBER_BITS) - 1))
        known = self.numbers.get(place, 0)
        if not adds and number <= known:
            return
        if not known:
            insort(self.order, place)
        self.numbers[place] = known + number if adds else number
        self.told = self._estimate()

    def text(self) -> str:
        places, numbers = self.order, [self.numbers[place] for place in self.order]
        return _text(sketch_of(self.aggregate), (np.array(places, np.int64), np.array(numbers, np.int64)))

    def _estimate(self) -> Value:
        offset = _offset(sketch_of(self.aggregate))
        places, numbers = [place - offset for place in self.order], [self.numbers[place] for place in self.order]
        return self.aggregate.entry.estimate(places, numbers, self.aggregate.parameter)


def sketch_of(aggregate: Aggregate) -> Sketch:
    """What is kept of a group for an aggregate that is nearly known."""
    assert aggregate.entry.sketch is not None
    return aggregate.entry.sketch


_Sketched = tuple[Int64Array, Int64Array]


def _estimate(aggregate: Aggregate, sketched: _Sketched) -> Value:
    places, numbers = sketched
    offset = _offset(sketch_of(aggregate))
    return aggregate.entry.estimate((places - offset).tolist(), numbers.tolist(), aggregate.parameter)


def _of_values(sketch: Sketch, values: Int64Array) -> _Sketched:
    if sketch.adds:
        places, numbers = np.unique(values, return_counts=True)
        return places, numbers.astype(np.int64)
    return _greatest(values)


def _of_texts(sketch: Sketch, group: pl.Series) -> _Sketched:
    parts = [_read(sketch, text) for text in group.to_list()]
    nothing = np.empty(0, dtype=np.int64)
    places, numbers = (np.concatenate([nothing, *(part[side] for part in parts)]) for side in (0, 1))
    if not sketch.adds:
        return _greatest(places << NUMBER_BITS | numbers)
    found, which = np.unique(places, return_inverse=True)
    totals = np.zeros(len(found), dtype=np.int64)
    np.add.at(totals, which, numbers)
    return found, totals


def _greatest(values: Int64Array) -> _Sketched:
    """The greatest number of each place."""
    ordered = np.unique(values)
    places = ordered >> NUMBER_BITS
    last = np.ones(len(places), dtype=np.bool_)
    last[:-1] = places[1:] != places[:-1]
    return places[last], ordered[last] & ((1 << NUMBER_BITS) - 1)


def _offset(sketch: Sketch) -> int:
    return _MIDDLE if sketch is Sketch.QUANTILES else 0


def _text(sketch: Sketch, sketched: _Sketched) -> str:
    data = b"".join(array.astype(type_).tobytes() for array, type_ in zip(sketched, _TYPES[sketch], strict=True))
    return VERSION + base64.b64encode(data).decode()


def _read(sketch: Sketch, text: str | None) -> _Sketched:
    """Places and numbers, none without a text; `StateError` TG504 for a text that is no such sketch."""
    text = VERSION if text is None else text
    place, number = map(np.dtype, _TYPES[sketch])
    try:
        data = base64.b64decode(text.removeprefix(VERSION), validate=True)
    except ValueError:
        data = b"?"
    many, left = divmod(len(data), place.itemsize + number.itemsize)
    if not text.startswith(VERSION) or left:
        raise not_of_this_program(f"a sketch in another layout than {VERSION}")
    places = np.frombuffer(data, place, many)
    return places.astype(np.int64), np.frombuffer(data, number, many, place.itemsize * many).astype(np.int64)


def _classes(values: pl.Series) -> Int64Array:
    hashed = _hashes(values)
    rest = hashed & np.uint64((1 << REST_BITS) - 1)
    # Below 2^53 an integer is a double, and its exponent the number of its bits.
    bits = np.frexp(rest.astype(np.float64))[1].astype(np.int64)
    places = (hashed >> np.uint64(REST_BITS)).astype(np.int64)
    return places << NUMBER_BITS | (REST_BITS - bits + 1)


def _hashes(values: pl.Series) -> UInt64Array:
    if values.dtype == pl.String:
        texts = values.to_list()
        known = {text: hash_of(text) for text in set(texts)}
        return np.array([known[text] for text in texts], dtype=np.uint64)
    if values.dtype == pl.Float64:
        mixed = _plain(values.fill_null(0.0).to_numpy()).view(np.uint64)
    else:
        mixed = values.cast(pl.Int64).fill_null(0).to_numpy().astype(np.int64).view(np.uint64)
    mixed = mixed + np.uint64(GOLDEN)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(FIRST)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(SECOND)
    hashed: UInt64Array = mixed ^ (mixed >> np.uint64(31))
    return hashed


def _parts(values: pl.Series, argument: DataType) -> Int64Array:
    numbers = values.cast(pl.Float64).fill_null(0.0).to_numpy() / 10.0**argument.scale
    bits = _plain(numbers).view(np.int64)
    parts = (bits & np.int64((1 << 63) - 1)) >> np.int64(PART_BITS)
    return np.where(bits < 0, -parts - 1, parts) + _MIDDLE


def _plain(numbers: Float64Array) -> Float64Array:
    """Doubles of which equal ones have equal bits."""
    return np.where(np.isnan(numbers), math.nan, numbers + 0.0)
