"""What groups of matches aggregate, as words of the elements that kernels add and multiply (`kernels.paths.totals`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl

from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.ordered.sequences.counting.counted import CountedSequences
from tidegate.algebra.ordered.sequences.counting.values import MatchValue
from tidegate.algebra.ordered.summary import HIGH_BITS, LOW_BITS, Halves
from tidegate.algebra.terms import Attr, Term
from tidegate.algebra.types import BOOLEAN, DOUBLE, DataType
from tidegate.runtime.arrays import BoolArray, Int64Array, UInt64Array
from tidegate.runtime.eval.columns import polars_type
from tidegate.runtime.kernels.paths.counts import MANY
from tidegate.runtime.kernels.paths.totals import (
    AT_EACH,
    AT_FIRST,
    AT_LAST,
    DOUBLE_AT_EACH,
    DOUBLE_AT_FIRST,
    DOUBLE_AT_LAST,
    LEAST,
    LEAST_AT_FIRST,
    LEAST_AT_LAST,
    LEAST_GREATEST,
    LONGEST,
    LOST,
    SHORTEST,
    WITHOUT,
)

#: What a row gives to a word of a value: 1, the value or its complement in the order of values, its size, or half of
#: that where it is positive, or negative; or the bits of a double.
Given: TypeAlias = Literal["one", "value", "reversed", "size", "high", "low", "minus high", "minus low", "bits"]
_HALVES: Final[tuple[Given, ...]] = ("high", "low", "minus high", "minus low")
_LOW: Final = np.uint64(2**LOW_BITS - 1)
_SIGN: Final = np.int64(MANY)


@dataclass(frozen=True, slots=True)
class Word:
    """A word: what it is, for which labels rows are marked, and what a row gives, by the number of a column.

    `present`: only rows in which the column is not NULL are marked. `beside` is the word that tells paths without any.
    """

    kind: int
    labels: int = 0
    column: int = 0
    given: Given = "one"
    present: bool = False
    beside: int = 0


#: What an attribute of the result is: a number; the value of a word, or its complement; halves of a sum, and whether it
#: is too large to tell; a double by its bits.
How: TypeAlias = Literal["number", "end", "complement", "high", "low", "beyond", "double"]


@dataclass(frozen=True, slots=True)
class Told:
    """An attribute of the result: of the words by which it is told, and of the one with the number of values. It is
    too large to tell where one of `sizes` is.
    """

    name: str
    how: How
    number: int
    words: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()


@dataclass(slots=True)
class Words:
    """The words that a node needs, the number of paths first, and the columns of rows that they are made of."""

    node: CountedSequences
    words: list[Word] = field(default_factory=lambda: [Word(WITHOUT)])
    columns: list[Term] = field(default_factory=list)

    told: list[Told] = field(default_factory=list)

    @classmethod
    def of(cls, node: CountedSequences) -> Words:
        words = cls(node)
        for aggregate in node.aggregates:
            words.told.append(words.aggregate(aggregate))
        for total in node.totals:
            words.told += words.total(total)
        return words

    @property
    def table(self) -> Int64Array:
        """The table of the kernel."""
        return np.array(
            [[getattr(word, name) for word in self.words] for name in ("kind", "labels", "beside")], dtype=np.int64
        )

    @property
    def none(self) -> Int64Array:
        """The element of no path."""
        ends = [MANY if LEAST_AT_LAST <= word.kind < LONGEST else -(word.kind == LONGEST) for word in self.words]
        return np.array(ends, dtype=np.int64)

    # --- which words ------------------------------------------------------------------------------------------------

    def word(self, word: Word) -> int:
        if word not in self.words:
            self.words.append(word)
        return self.words.index(word)

    def column(self, term: Term) -> int:
        if term not in self.columns:
            self.columns.append(term)
        return self.columns.index(term)

    def number(self, value: MatchValue) -> int:
        """The number of matches in which the value is not NULL."""
        if value.of == "count":
            return 0
        column, of_row = self.column(value.term), value.of in ("first", "last")
        beside = self.word(Word(WITHOUT, value.labels, column if not of_row else 0, "one", not of_row))
        kind = AT_LAST if value.of == "last" else AT_FIRST
        return self.word(Word(kind, value.labels, column, "one", not of_row, beside))

    def sums(self, value: MatchValue) -> list[int]:
        """The sum of the value over matches: its halves where it is positive, and where it is negative."""
        column = self.column(value.term)
        if value.of == "count":
            return [self.word(Word(AT_EACH, value.labels, column, "one"))]
        if value.of == "sum":
            return [self.word(Word(AT_EACH, value.labels, column, given)) for given in _HALVES]
        beside = self.word(Word(WITHOUT, value.labels))
        kind = AT_LAST if value.of == "last" else AT_FIRST
        return [self.word(Word(kind, value.labels, column, given, beside=beside)) for given in _HALVES]

    def double(self, value: MatchValue) -> int:
        """The sum of doubles over matches; behind it is the word with what that has lost."""
        column = self.column(value.term)
        kinds = {"last": DOUBLE_AT_LAST, "first": DOUBLE_AT_FIRST, "sum": DOUBLE_AT_EACH}
        beside = 0 if value.of == "sum" else self.word(Word(WITHOUT, value.labels))
        word = Word(kinds[value.of], value.labels, column, "bits", beside=beside)
        if word not in self.words:
            self.words += (word, Word(LOST))
        return self.words.index(word)

    def end(self, value: MatchValue, function: Function) -> int:
        """The least value of matches, or the complement of the greatest one."""
        column, greatest = self.column(value.term), function is Function.MAX
        if value.of == "count":
            return self.word(Word(LONGEST if greatest else SHORTEST, value.labels, column, "one"))
        given: Given = "reversed" if greatest else "value"
        if value.of in ("first", "last"):
            beside = self.word(Word(WITHOUT, value.labels))
            kind = LEAST_AT_LAST if value.of == "last" else LEAST_AT_FIRST
            return self.word(Word(kind, value.labels, column, given, beside=beside))
        if (value.of == "greatest") == greatest:
            return self.word(Word(LEAST, value.labels, column, given))
        beside = self.word(Word(WITHOUT, value.labels, column, "one", present=True))
        return self.word(Word(LEAST_GREATEST, value.labels, column, given, True, beside))

    def aggregate(self, aggregate: Aggregate) -> Told:
        if aggregate.argument is None:
            return Told(aggregate.name, "number", 0)
        assert isinstance(aggregate.argument, Attr)
        value = self.node.value(aggregate.argument.name)
        if aggregate.function is Function.COUNT:
            return Told(aggregate.name, "number", self.number(value))
        reverses = aggregate.function is Function.MAX and value.of != "count"
        end = self.end(value, aggregate.function)
        return Told(aggregate.name, "complement" if reverses else "end", self.number(value), (end,))

    def total(self, total: Halves) -> list[Told]:
        value = self.node.value(total.argument)
        if total.double:  # a sum of more matches than a bigint can be has no exact numbers of times
            number, word = self.number(value), self.double(value)
            high, low = (
                Told(name, "double", number, (at,)) for name, at in ((total.high, word), (total.low, word + 1))
            )
            return [high, low, Told(total.beyond, "beyond", number, sizes=(0,))]
        number, sums = self.number(value), tuple(self.sums(value))
        sizes: tuple[int, ...] = ()
        if value.of == "sum":  # of one match, which has none where it is beyond a bigint
            sizes = (self.word(Word(LONGEST, value.labels, self.column(value.term), "size")),)
        hows: tuple[How, ...] = ("high", "low", "beyond")
        return [Told(name, how, number, sums, sizes) for name, how in zip(total.columns, hows, strict=True)]

    def values(self, columns: list[Int64Array], known: list[BoolArray], rows: int) -> Int64Array:
        """What each row gives to each word; `known`: where a column is not NULL."""
        values = np.zeros((rows, len(self.words)), dtype=np.int64)
        for number, word in enumerate(self.words):
            if word.kind == WITHOUT:
                values[:, number] = ~known[word.column] if word.present else 0
            else:
                none = MANY if LEAST_AT_LAST <= word.kind < SHORTEST else 0
                values[:, number] = np.where(known[word.column], _given(word.given, columns[word.column]), none)
        return values

    def result(self, found: Int64Array) -> list[pl.Series]:
        """The attributes of the result, from the elements of groups."""
        return [self._result(told, found).cast(polars_type(self.node.schema[told.name].type)) for told in self.told]

    def _result(self, told: Told, found: Int64Array) -> pl.Series:
        number = found[:, told.number]
        if told.how == "number":
            return pl.Series(told.name, number).set(pl.Series(number == MANY), None)
        if told.how in ("end", "complement"):
            end = found[:, told.words[0]]
            type_ = self.node.schema[told.name].type
            ends = _unordered(told.name, ~end if told.how == "complement" else end, type_)
            return ends.set(pl.Series(number == 0), None)
        if told.how == "double":
            doubles = np.ascontiguousarray(found[:, told.words[0]]).view(np.float64)
            return pl.Series(told.name, doubles).set(pl.Series(number == 0), None)
        none = np.zeros(len(found), dtype=np.int64)
        high, low, beyond = halves(found[:, told.words]) if told.words else (none, none, none != 0)
        for size in told.sizes:
            beyond |= found[:, size] == MANY
        beyond &= number > 0
        if told.how == "beyond":
            return pl.Series(told.name, beyond)
        return pl.Series(told.name, high if told.how == "high" else low).set(pl.Series(beyond | (number == 0)), None)


def halves(sums: Int64Array) -> tuple[Int64Array, Int64Array, BoolArray]:
    """The high and the low half of each total, and whether it is too large to tell, from one word or from four."""
    beyond = (sums == MANY).any(axis=1)
    high, low = np.zeros(len(sums), dtype=np.int64), sums[:, 0]
    if sums.shape[1] > 1:
        high, low = sums[:, 0] - sums[:, 2], sums[:, 1] - sums[:, 3]
    carried = low >> LOW_BITS
    beyond |= np.abs(high) >= 2**HIGH_BITS - 2**LOW_BITS
    return high + np.where(beyond, 0, carried), low & np.int64(_LOW), beyond


def _given(how: Given, values: Int64Array) -> Int64Array:
    if how == "one":
        return np.ones(len(values), dtype=np.int64)
    if how == "bits":
        return np.where(values < 0, values ^ _SIGN, values)
    if how in ("value", "reversed"):
        return values if how == "value" else ~values
    negative = values < 0
    size: UInt64Array = np.where(negative, (~values).astype(np.uint64) + np.uint64(1), values.astype(np.uint64))
    if how == "size":
        return np.minimum(size, np.uint64(MANY)).astype(np.int64)
    half = size >> np.uint64(LOW_BITS) if how in ("high", "minus high") else size & _LOW
    return np.where(negative == (how in ("minus high", "minus low")), half, np.uint64(0)).astype(np.int64)


def ordered(column: pl.Series, type_: DataType) -> pl.Series:
    """Values as integers in the same order, NULL where they are."""
    if type_ != DOUBLE:
        return column.cast(pl.Int64)
    doubles = column.fill_null(0.0).to_numpy() + 0.0  # of the zeros there is one
    doubles = np.where(np.isnan(doubles), np.nan, doubles)
    bits = doubles.view(np.int64)
    integers = pl.Series(column.name, np.where(bits < 0, bits ^ _SIGN, bits))
    return integers.set(column.is_null(), None)


def _unordered(name: str, integers: Int64Array, type_: DataType) -> pl.Series:
    """The values that stand in this order."""
    if type_ == BOOLEAN:
        return pl.Series(name, integers == 1)
    if type_ == DOUBLE:
        bits: Int64Array = np.where(integers < 0, integers ^ _SIGN, integers)
        return pl.Series(name, bits.view(np.float64))
    return pl.Series(name, integers)
