"""Descriptions of the tables of an operator's state: how deltas merge, and which rows are valid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import polars as pl

from tidegate.runtime.eval.aggregates.compiled import last_of_each
from tidegate.runtime.plan.progress import not_of_this_program

#: The columns of a partition's keys, by their places.
KEY: Final = "key {}"
#: The number of no id.
NO_ID: Final = -1
#: Ids are counted up from 0.
_MOST_IDS: Final = 1 << 62
_PLACE: Final = "\0place"


@dataclass(frozen=True, slots=True)
class StateTable:
    """A table that an operator keeps. Its first columns are the keys of the partition, where it has `keys`; else rows
    belong to those of a table with keys that have the same `id`.

    `merge` is what a change does to the rows before. `partition`: it replaces all rows of each partition that it has,
    save for those that are `lasting`, which are never replaced; a row that is `empty` says that nothing else is left.
    Rows for which `adds` holds replace none, and stand behind those that were there.
    `row`: a row replaces the one of its partition with the same `number`. `id`: a row replaces the one with its id.
    `append`: rows are added. `queue`: they are, and those of a partition that were written before are gone up to the
    `number` that a row has in `gone`, which is `empty` then.

    `possible` holds of every row that can have been written; `needed` columns have no NULL, `unique` ones differ from
    row to row.
    """

    columns: pl.Schema
    merge: Literal["partition", "row", "id", "append", "queue"]
    keys: int = 0
    id: str | None = None
    number: str | None = None
    gone: str | None = None
    lasting: pl.Expr | None = None
    adds: pl.Expr | None = None
    empty: pl.Expr | None = None
    needed: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()
    possible: pl.Expr = field(default_factory=lambda: pl.lit(value=True))
    what: str = "rows"

    def check(self, where: str, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows, checked; `StateError` TG504 for rows that cannot have been written."""
        if rows.schema != self.columns:
            raise not_of_this_program(f"other columns than {', '.join(self.columns)} in {where}")
        if any(rows.get_column(column).null_count() for column in self.needed):
            raise not_of_this_program(f"rows without values in {where}")
        possible = self.possible
        if self.id is not None:
            possible &= pl.col(self.id).is_between(NO_ID, _MOST_IDS)
        if self.unique:
            possible &= pl.struct(self.unique).is_unique()
        if not rows.select(possible.all()).item():
            raise not_of_this_program(f"{self.what} that can not be in {where}")
        return rows

    def merged(self, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """Merges rows with the deltas that were written after them, in order."""
        if len(parts) == 1 or self.merge == "append":
            return parts[0] if len(parts) == 1 else pl.concat(parts)
        if self.gone is not None:
            return self._queued(parts, self.gone)
        if self.merge in ("id", "row"):
            keys = list(self.columns)[: self.keys] if self.merge == "row" else []
            alike = [*keys, *(column for column in (self.id, self.number) if column is not None)]
            return last_of_each(pl.concat(parts), alike)
        return self._replaced(parts)

    def _replaced(self, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """The rows of all parts whose partition no later part replaces, and those that are lasting."""
        keys = list(self.columns)[: self.keys]
        lasting = pl.lit(value=False) if self.lasting is None else self.lasting
        replacing = ~lasting if self.adds is None else ~lasting & ~self.adds
        kept, later = [parts[-1]], [parts[-1].filter(replacing).select(keys)]
        for part in reversed(parts[:-1]):
            kept.append(self._without(part, pl.concat(later), keys))
            later.append(part.filter(replacing).select(keys))
        return pl.concat(reversed(kept))

    def _without(self, part: pl.DataFrame, later: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
        """The rows of a part whose keys are not among the later ones, and those that are lasting."""
        rows = part if self.lasting is None else part.with_row_index(_PLACE).filter(~self.lasting)
        left = rows.join(later, on=keys, how="anti", nulls_equal=True, maintain_order="left")
        if self.lasting is None:
            return left
        return pl.concat([part.with_row_index(_PLACE).filter(self.lasting), left]).sort(_PLACE).drop(_PLACE)

    def _queued(self, parts: Sequence[pl.DataFrame], gone: str) -> pl.DataFrame:
        """The rows of all parts without those of which a later part says that they are gone; of each partition the
        greatest number of which any does, for what was written before them.
        """
        assert self.number is not None
        keys, is_mark = list(self.columns)[: self.keys], pl.col(gone).is_not_null()
        rows = pl.concat([some for part in parts for some in (part.filter(is_mark), part.filter(~is_mark))])
        # What a part says of parts before it stands ahead of its own rows.
        later = pl.col(gone).cum_max(reverse=True).backward_fill().over(keys)
        left = pl.when(is_mark).then(pl.col(gone) == pl.col(gone).max().over(keys))
        kept = rows.filter(left.otherwise(later.is_null() | (pl.col(self.number) > later)))
        marks = kept.filter(is_mark).unique(keys, keep="any", maintain_order=True)
        return pl.concat([marks, kept.filter(~is_mark)])

    def whole(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of a delta with no base: markers for partitions without rows are left out."""
        return rows if self.empty is None else rows.filter(~self.empty)


#: The tables of an operator by name.
StateTables = Mapping[str, StateTable]


def folded(
    deltas: Iterable[Mapping[str, pl.DataFrame]], tables: StateTables, *, whole: bool
) -> dict[str, pl.DataFrame]:
    """Merges a base with its deltas: per partition the latest open rows win, per run the latest values. `whole`: it has
    no base.
    """
    parts_by_name: dict[str, list[pl.DataFrame]] = {}
    for delta in deltas:
        for name, rows in delta.items():
            parts_by_name.setdefault(name, []).append(rows)
    joined = {name: tables[name].merged(parts) for name, parts in parts_by_name.items()}
    if whole:
        joined = {name: tables[name].whole(rows) for name, rows in joined.items()}
    return {name: rows for name, rows in joined.items() if rows.height}


def checked(tables: StateTables, query: str, name: str, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of a table of a query's operator; `StateError` TG504 for rows that it cannot have written."""
    where = f"the state of {query!r:.200}"
    if name not in tables:
        raise not_of_this_program(f"a table {name!r:.200} in {where}")
    return tables[name].check(where, rows)
