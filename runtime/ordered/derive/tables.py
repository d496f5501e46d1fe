"""The state of an operator as tables: situations by the keys of their partitions, and the values of their
aggregates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.algebra.schema import Schema
from tidegate.algebra.types import MAX_INSTANT
from tidegate.analysis.ordered.derive import CLOSED, OPEN, VALUES
from tidegate.analysis.ordered.derive import KEPT_END as END
from tidegate.analysis.ordered.derive import KEPT_START as START
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.arrow_arrays import array_of_numbers
from tidegate.runtime.kernels.cells import Situations
from tidegate.runtime.kernels.event_runs import NEVER
from tidegate.runtime.kernels.situations import ClosedSituations, Runs
from tidegate.runtime.ordered.derive.derivation import Derivation
from tidegate.runtime.ordered.derive.partition_states import PartitionStates, StateExtract
from tidegate.runtime.ordered.derive.run_partials import RunPartials
from tidegate.runtime.ordered.derive.run_values import RunValues
from tidegate.runtime.ordered.partitions import Partitions, key_columns
from tidegate.runtime.ordered.state_tables import KEY, NO_ID, StateTable

#: The table of situations: columns beside the keys, which are named by their places. Of an open one, END is the time of
#: the last event of its partition. Where DEFINITION is NOTHING, the partition is one of which none is open any more.
SITUATIONS: Final = "situations"
IS_OPEN: Final = "open"
DEFINITION: Final = "definition"
NUMBER: Final = "number"
NOTHING: Final = NO_ID
#: What the names of tables of different values begin with: a row of theirs is never changed.
DIFFERENT: Final = "different "
COLUMNS: Final = (IS_OPEN, DEFINITION, START, END, NUMBER)
_INSTANTS: Final = pl.col(START).is_between(-MAX_INSTANT, pl.col(END)) & (pl.col(END) <= MAX_INSTANT)


class _Columns(NamedTuple):
    """The columns of the table, for partitions by their numbers."""

    partition: Int64Array
    is_open: BoolArray
    definition: Int64Array
    start: Int64Array
    end: Int64Array
    number: Int64Array


def everything(derivation: Derivation, states: PartitionStates) -> dict[str, pa.Table]:
    """All tables of the state, without empty ones."""
    extract = states.extract(states.all_partitions())
    parts = [
        _open(derivation, extract.partitions, extract.runs),
        _over(extract.partitions, extract.kept, extract.number),
    ]
    return _filled(
        _table(states.partitions, parts), {n: run_values.partials for n, run_values in derivation.values.items()}
    )


def changes(
    derivation: Derivation, partitions: Partitions, before: StateExtract, after: StateExtract, new: BoolArray
) -> dict[str, pa.Table]:
    """What an increment has changed: of the partitions that it looked at all that is open, situations that are over
    since, those `new` in what is kept, and the values of runs that had events.
    """
    was_open = before.open & ~after.open
    closed = after.partitions[was_open]
    zeros = np.zeros(len(closed), dtype=np.int64)
    parts = [
        _open(derivation, after.partitions, after.runs),
        _Columns(closed, np.ones(len(closed), dtype=np.bool_), zeros + NOTHING, zeros, zeros, zeros + NOTHING),
        _chosen(_over(after.partitions, after.kept, after.number), new),
    ]
    return _filled(_table(partitions, parts), {n: run_values.changed() for n, run_values in derivation.values.items()})


def _filled(situations: pa.Table, values: Mapping[int, RunPartials]) -> dict[str, pa.Table]:
    tables = {SITUATIONS: situations} if situations.num_rows else {}
    named = [(name, rows) for n, partials in values.items() for name, rows in named_values(n, partials).items()]
    return tables | {name: rows.to_arrow() for name, rows in named if rows.height}


def values_of(definition: int) -> str:
    """The name of the table of a definition's values."""
    return f"{VALUES} {definition}"


def named_values(definition: int, partials: RunPartials) -> dict[str, pl.DataFrame]:
    """The tables of the values of a definition by name: partial results, then the different values of each
    count_distinct.
    """
    different = {f"{DIFFERENT}{definition}.{place}": rows for place, rows in enumerate(partials.different)}
    return {values_of(definition): partials.merged} | different


def _table(partitions: Partitions, parts: Sequence[_Columns]) -> pa.Table:
    numbers, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    keys = partitions.arrays(numbers)
    names = [KEY.format(place) for place in range(len(keys))]
    return pa.Table.from_arrays([*keys, *map(array_of_numbers, columns)], names=[*names, *COLUMNS])


def _open(derivation: Derivation, partitions: Int64Array, runs: Sequence[Runs]) -> _Columns:
    """The open runs of partitions."""
    parts: list[_Columns] = []
    for source, source_runs in zip(derivation.sources, runs, strict=True):
        place, symbol = np.nonzero(source_runs.start != NEVER)
        definition = np.array(source.definitions, dtype=np.int64)[symbol]
        is_open = np.ones(len(place), dtype=np.bool_)
        parts.append(
            _Columns(
                partition=partitions[place],
                is_open=is_open,
                definition=definition,
                start=source_runs.start[place, symbol],
                end=source_runs.last[place],
                number=source_runs.number[place, symbol],
            )
        )
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, dtype=np.int64)
    parts.append(_Columns(none, none.astype(np.bool_), none, none, none, none))
    return _Columns(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _over(partitions: Int64Array, kept: Situations, number: Int64Array) -> _Columns:
    """The closed situations of partitions."""
    cells = np.repeat(np.arange(len(kept.offsets) - 1), np.diff(kept.offsets))
    place, definition = np.divmod(cells, kept.definitions)
    return _Columns(partitions[place], np.zeros(len(cells), dtype=np.bool_), definition, kept.ts, kept.te, number)


def _chosen(columns: _Columns, mask: BoolArray) -> _Columns:
    partition, is_open, definition, start, end, number = columns
    return _Columns(partition[mask], is_open[mask], definition[mask], start[mask], end[mask], number[mask])


def load_runs(
    derivation: Derivation, states: PartitionStates, rows: pl.DataFrame
) -> tuple[Int64Array, tuple[Runs, ...]]:
    """The partitions in a table of situations, and the runs that are open there."""
    partition = states.partitions.of_kept(rows)
    open_, definition, start, last, number = (rows.get_column(name).to_numpy() for name in COLUMNS)
    partitions = states.all_partitions()
    runs_by_source = []
    for source in derivation.sources:
        runs = Runs.empty(len(partitions), len(source.definitions))
        for symbol, wanted in enumerate(source.definitions):
            chosen = open_ & (definition == wanted)
            at = partition[chosen]
            runs.start[at, symbol], runs.number[at, symbol] = start[chosen], number[chosen]
            runs.held[at] |= np.uint64(1 << symbol)
            runs.last[at] = last[chosen]
        runs_by_source.append(runs)
    return partitions, tuple(runs_by_source)


def load_closed(states: PartitionStates, rows: pl.DataFrame) -> ClosedSituations:
    """The closed situations in a table."""
    rows = rows.filter(~pl.col(IS_OPEN))
    _, definition, start, end, number = (rows.get_column(name).to_numpy() for name in COLUMNS)
    partition = states.partitions.of_kept(rows)
    return ClosedSituations(partition, definition.astype(np.int16), start, end, number)


def load_values(derivation: Derivation, tables: Mapping[str, pl.DataFrame], live: Int64Array) -> dict[int, RunValues]:
    """The values of live runs."""
    values = {}
    for number, fresh in derivation.values.items():
        kept = [tables.get(name, none) for name, none in named_values(number, fresh.partials).items()]
        values[number] = RunValues.of(derivation.situations[number], RunPartials.from_tables(kept)).only(live)
    return values


def following(tables: Mapping[str, pl.DataFrame]) -> int:
    """A number that no run has and no later run will get."""
    numbers = [
        rows.get_column(NUMBER if name == SITUATIONS else rows.columns[0]).max() for name, rows in tables.items()
    ]
    return 1 + max([NOTHING, *(int(number) for number in numbers if isinstance(number, int))])


def described(derivation: Derivation, keys: Schema) -> dict[str, StateTable]:
    """The tables of an operator over partitions by these keys."""
    by = key_columns(keys)
    columns = dict(zip(COLUMNS, (pl.Boolean(), *[pl.Int64()] * 4), strict=True))
    nothing = pl.col(IS_OPEN) & (pl.col(DEFINITION) == NOTHING)
    known = pl.col(DEFINITION).is_between(0, len(derivation.situations) - 1)
    situations = StateTable(
        pl.Schema(by | columns),
        "partition",
        len(by),
        NUMBER,
        lasting=~pl.col(IS_OPEN),
        empty=pl.col(DEFINITION) == NOTHING,
        needed=COLUMNS,
        possible=nothing | (known & _INSTANTS),
        what="situations",
    )
    tables = {SITUATIONS: situations}
    for number, run_values in derivation.values.items():
        for name, rows in named_values(number, run_values.partials).items():
            of_run = rows.columns[0]
            different = name.startswith(DIFFERENT)
            unique = tuple(rows.columns) if different else (of_run,)
            tables[name] = StateTable(
                rows.schema,
                "append" if different else "id",
                id=of_run,
                needed=unique,
                unique=unique,
                what="values of runs",
            )
    return tables


def bounds_of(situations: pa.Table) -> dict[str, dict[str, tuple[int, int]]]:
    """The least and greatest start of situations and, where they are over, of ends."""
    rows = pl.DataFrame(situations.select([IS_OPEN, DEFINITION, START, END]))  # `to_numpy` of Arrow loads pandas
    is_open, definition, *_ = (column.to_numpy() for column in rows)
    bounds: dict[str, dict[str, tuple[int, int]]] = {}
    for kind, mask, columns in ((OPEN, is_open & (definition != NOTHING), (START,)), (CLOSED, ~is_open, (START, END))):
        if mask.any():
            instants = {name: rows.get_column(name).to_numpy()[mask] for name in columns}
            bounds[kind] = {name: (int(times.min()), int(times.max())) for name, times in instants.items()}
    return bounds
