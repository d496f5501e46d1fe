"""Tables of an operator's state, compared with what it can have written: others are refused before anything is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from tidegate.algebra.types import MAX_INSTANT
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.ordered.sizes import END, START
from tidegate.runtime.ordered.tables import (
    COLUMNS,
    DEFINITION,
    DIFFERENT,
    IS_OPEN,
    KEY,
    NOTHING,
    NUMBER,
    SITUATIONS,
    Keeping,
    named_values,
)
from tidegate.runtime.plan.progress import not_of_this_program

#: Numbers of runs are counted up from 0.
_MOST_RUNS: Final = 1 << 62
_INSTANTS: Final = pl.col(START).is_between(-MAX_INSTANT, pl.col(END)) & (pl.col(END) <= MAX_INSTANT)


class KeptShapes:
    """The columns that an operator's tables have, by name, and how many definitions its situations are of."""

    def __init__(self, operator: Keeping) -> None:
        keys = polars_schema(operator.states.partitions.schema)
        types = list(keys.values()) or [pl.Int64()]  # all events are one partition, of which the table says so
        columns = dict(zip(COLUMNS, (pl.Boolean(), *[pl.Int64()] * 4), strict=True))
        situations = {KEY.format(place): type_ for place, type_ in enumerate(types)} | columns
        derivation = operator.derivation
        self.definitions = len(derivation.situations)
        self.shapes: Mapping[str, pl.Schema] = {
            SITUATIONS: pl.Schema(situations),
            **{
                name: rows.schema
                for number, one in derivation.values.items()
                for name, rows in named_values(number, one.partials).items()
            },
        }

    def check(self, query: str, name: str, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of a table; `StateError` TG504 for what the operator of a query can not have written."""
        where = f"state of {query!r:.200}"
        if name not in self.shapes:
            raise not_of_this_program(f"a table {name!r:.200} in the {where}")
        if rows.schema != self.shapes[name]:
            raise not_of_this_program(f"other columns than {', '.join(self.shapes[name])} in the {where}")
        one_each = rows.columns if name.startswith(DIFFERENT) else rows.columns[:1]
        needed = COLUMNS if name == SITUATIONS else one_each
        if any(rows.get_column(column).null_count() for column in needed):
            raise not_of_this_program(f"rows without values in the {where}")
        possible = self._possible() if name == SITUATIONS else _numbered(needed[0]) & pl.struct(one_each).is_unique()
        if not rows.select(possible.all()).item():
            what = "situations" if name == SITUATIONS else "values of runs"
            raise not_of_this_program(f"{what} that can not be in the {where}")
        return rows

    def _possible(self) -> pl.Expr:
        """Whether a row can be: of one of the definitions, with instants in their order; or the word that nothing is open."""
        nothing = pl.col(IS_OPEN) & (pl.col(DEFINITION) == NOTHING)
        known = pl.col(DEFINITION).is_between(0, self.definitions - 1)
        return nothing | (known & _INSTANTS & _numbered(NUMBER))


def _numbered(column: str) -> pl.Expr:
    return pl.col(column).is_between(NOTHING, _MOST_RUNS)
