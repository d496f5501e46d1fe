"""Results as users hold them: the rows of one stream, and all that a run over complete inputs yields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING, Any

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import checked_calls
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError
from tidegate.runtime.batch.status import Status, asides, fates, unreadables
from tidegate.runtime.state.manifest import UNREADABLE

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from tidegate.runtime.batch.report import BatchReport
    from tidegate.runtime.state.manifest import SourceCounts

#: Rows that a text or a notebook shows: the first and the last half of them.
SHOWN_ROWS = 20
#: Polars puts strings between quotes in HTML, though not in text; what it has cut has no second one.
_CELL = re.compile("<t[dh]>")
_UNQUOTED = re.compile(r"<td>&quot;(.*?)(?:&quot;)?</td>", re.DOTALL)


@checked_calls
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResultTable:
    """The rows of a result, as they were when it was asked for them. Printed, and in a notebook, they are a table.

    `table["name"]` is a list of the values of an attribute. Whatever takes Arrow data takes the table as it is, for
    instance `polars.DataFrame(table)` or `duckdb.sql("from table")`.

    Examples:
        >>> table = program.run(inputs)["Unpaid"]
        >>> len(table), table["customer"]
        (2, ['Bob', 'Ada'])
        >>> print(tg.program(Fast=Fast).run(driven)["Fast"])
        Fast: 1 row
        ┌─────┬────┬────┐
        │ car ┆ ts ┆ te │
        ╞═════╪════╪════╡
        │ red ┆ 2  ┆ 5  │
        └─────┴────┴────┘
    """

    name: str
    _table: pa.Table = field(repr=False)

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table.

        Examples:
            >>> program.run(inputs)["Unpaid"].arrow().num_rows
            2
        """
        return self._table

    def polars(self) -> polars.DataFrame:
        """The rows as a Polars frame.

        Examples:
            >>> program.run(inputs)["Unpaid"].polars()["customer"].to_list()
            ['Bob', 'Ada']
        """
        import polars

        frame = polars.from_arrow(self._table)
        assert isinstance(frame, polars.DataFrame)
        return frame

    def pandas(self) -> pandas.DataFrame:
        """The rows as a pandas frame; `QueryError` TG422 where pandas is not installed.

        Examples:
            >>> list(program.run(inputs)["Unpaid"].pandas()["customer"])
            ['Bob', 'Ada']
        """
        try:
            import pandas  # noqa: F401  # Arrow imports it as well, with an error of its own
        except ImportError as error:
            with Here():
                raise QueryError(
                    "TG422", "pandas is not installed", hint="pip install pandas, or take .polars() or .arrow()"
                ) from error
        return self._table.to_pandas()

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries of Python values; `QueryError` TG405 for an instant beyond the year 9999.

        Examples:
            >>> tg.program(Fast=Fast).run(driven)["Fast"].rows()
            [{'car': 'red', 'ts': 2, 'te': 5}]
            >>> program.run(inputs)["Unpaid"].rows()[0]["ordered"].isoformat()
            '2026-03-02T12:07:00+00:00'
        """
        from tidegate.runtime.eval.columns import user_rows

        with Here():
            return user_rows(self._table)

    @property
    def columns(self) -> list[str]:
        """Names of the attributes, in order.

        Examples:
            >>> program.run(inputs)["Unpaid"].columns
            ['order_id', 'customer', 'ordered']
        """
        names: list[str] = self._table.column_names
        return names

    def _ipython_key_completions_(self) -> list[str]:
        return self.columns

    def _elsewhere(self, name: str) -> str:
        """Where what a frame has is found."""
        import polars

        return f"a frame has it: .polars().{name}" if hasattr(polars.DataFrame, name) else ""

    def __len__(self) -> int:
        rows: int = self._table.num_rows
        return rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def __getitem__(self, column: str) -> list[Any]:
        """The values of an attribute, as Python values."""
        if column not in self.columns:
            with Here():
                raise _no_attribute(self, column)
        return [row[column] for row in self.rows()]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return _as_text(_title(self.name, len(self), self.columns), self.polars())

    def _repr_html_(self) -> str:
        """For notebooks."""
        return _as_html(_title(self.name, len(self), self.columns), self.polars())


class ResultRows(list[dict[str, Any]]):
    """Rows of a result as dictionaries, a list like any other. Printed, and in a notebook, they are a table."""

    __slots__ = ("_name", "_schema")

    def __init__(self, table: ResultTable) -> None:
        super().__init__(table.rows())
        self._name = table.name
        self._schema = table.arrow().schema

    def __repr__(self) -> str:
        frame = self._shown()
        return super().__repr__() if frame is None else _as_text(self._title(), frame)

    def _repr_html_(self) -> str | None:
        """For notebooks; None where the text is shown."""
        frame = self._shown()
        return None if frame is None else _as_html(self._title(), frame)

    def _title(self) -> str:
        return _title(self._name, len(self), self._schema.names)

    def _shown(self) -> polars.DataFrame | None:
        """The rows at both ends, as they are now: a list can be changed. None where they are no table any more."""
        import polars

        types = ResultTable(self._name, self._schema.empty_table()).polars().schema
        half = SHOWN_ROWS // 2  # and one between, for which there are dots
        some: list[Any] = list(self) if len(self) <= SHOWN_ROWS else [*self[: half + 1], *self[-half:]]
        if not all(isinstance(row, dict) and row.keys() == types.keys() for row in some):
            return None
        try:
            return polars.DataFrame(some, schema=types)
        except (TypeError, ValueError, OverflowError, polars.exceptions.PolarsError):
            return None


def _title(name: str, rows: int, columns: list[str]) -> str:
    if not rows:
        return f"{name}: no rows, of {', '.join(columns)}"
    return f"{name}: {rows:,} row{'s' if rows > 1 else ''}"


def _as_text(title: str, frame: polars.DataFrame) -> str:
    if not frame.height:
        return title
    with _layout():
        return f"{title}\n{frame}"


def _as_html(title: str, frame: polars.DataFrame) -> str:
    from html import escape

    with _layout():
        table = _UNQUOTED.sub(r"<td>\1</td>", frame._repr_html_()) if frame.height else ""
    return f"<div><p>{escape(title)}</p>{_text_left(table, frame)}</div>"


def _text_left(table: str, frame: polars.DataFrame) -> str:
    """A table of HTML with columns of text at the left of their cells; Polars has all at the right."""
    import polars

    text = cycle([kind == polars.String for kind in frame.dtypes])
    return _CELL.sub(lambda cell: f'{cell[0][:-1]} style="text-align: left">' if next(text) else cell[0], table)


def _no_attribute(table: ResultTable, asked: object) -> QueryError:
    hint = f"it has {', '.join(table.columns)}" if isinstance(asked, str) else "rows are those of a frame: .polars()[0]"
    return QueryError("TG402", f"{table.name} has no attribute {shown(asked)}", hint=hint)


def _layout() -> Any:
    """How Polars lays out a table: all columns, as wide as the terminal, without its names for types."""
    from shutil import get_terminal_size

    import polars

    return polars.Config(
        tbl_rows=SHOWN_ROWS,
        tbl_cols=-1,
        tbl_width_chars=max(get_terminal_size((120, 24)).columns, 60),
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        fmt_str_lengths=60,
    )


@checked_calls
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Results:
    """What a run over complete inputs yields: a table per result, what became of the rows, and what each of the last
    hundred batches did. Printed, and in a notebook, they are the tables, with the rows of each input by their fate.

    Examples:
        >>> results = program.run(inputs)
        >>> results["Unpaid"]["customer"]
        ['Bob', 'Ada']
        >>> results.quarantine["reason"], len(results.reports)
        (['null'], 1)
    """

    tables: Mapping[str, ResultTable]
    reports: tuple[BatchReport, ...]
    quarantine: ResultTable
    """Rows that were rejected and set aside, with reason, source and position."""
    counts: Mapping[str, SourceCounts]
    """Rows of each input by their fate."""

    def __getitem__(self, name: str) -> ResultTable:
        from tidegate.runtime.plan.progress import check_known

        with Here():
            check_known(name, self.tables, "result")
            return self.tables[name]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.tables)

    def _elsewhere(self, name: str) -> str:
        """How a result is taken that was asked for as a member, or their names."""
        if name in self.tables:
            return f'write results["{name}"]'
        return "list(results) has the names of the results" if name in ("keys", "items", "values") else ""

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __contains__(self, name: object) -> bool:
        return name in self.tables

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The only result as a stream of Arrow data, for whatever takes one: `polars.DataFrame(results)`."""
        if len(self.tables) != 1:
            raise QueryError(
                "TG402",
                f"there are {len(self.tables)} results, not one",
                hint=f"choose one of {', '.join(self.tables)}",
            )
        (table,) = self.tables.values()
        return table.__arrow_c_stream__(requested_schema)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Results of a stream as dictionaries; `QueryError` TG402 for a name that is no result.

        Examples:
            >>> tg.program(Fast=Fast).run(driven).rows("Fast")
            [{'car': 'red', 'ts': 2, 'te': 5}]
        """
        return self[name].rows()

    def __repr__(self) -> str:
        return "\n\n".join([*map(repr, self.tables.values()), str(self._inputs())])

    def _repr_html_(self) -> str:
        """For notebooks."""
        tables = "".join(table._repr_html_() for table in self.tables.values())
        return f"<div>{tables}{self._inputs()._repr_html_()}</div>"

    def _inputs(self) -> Status:
        keys = ["source", "origin", "reason"]
        groups = self.quarantine.arrow().group_by(keys, use_threads=False).aggregate([([], "count_all")])
        aside: dict[str, dict[str, int]] = {}
        files: dict[str, int] = {}
        for row in groups.to_pylist():
            if row["reason"] == UNREADABLE:
                files[row["source"]] = files.get(row["source"], 0) + 1
            elif row["origin"] == f"query {row['source']}":
                aside.setdefault(row["source"], {})[row["reason"]] = row["count_all"]
        return Status("rows by their fate", (*fates("in", self.counts), *unreadables(files), *asides(aside)))
