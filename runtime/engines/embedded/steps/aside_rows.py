"""Rows that the increments of a batch have set aside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.quarantine import RejectedRows


@dataclass(slots=True)
class AsideRows:
    """What the increment of a query, by its name, has set aside, each with the query or buffer for which it was."""

    _rows: dict[str, list[tuple[str, SetAside]]] = field(default_factory=dict)
    _batch: Batch | None = None
    """The batch whose strata have added rows."""

    def add(self, query: str, where: str, rows: Iterable[SetAside]) -> None:
        self._rows.setdefault(query, []).extend((where, row) for row in rows)

    def begin(self, batch: Batch) -> None:
        """Forgets what an attempt at another batch has added: the strata of one add to what is there."""
        if self._batch is not batch:
            self._rows.clear()
            self._batch = batch

    @property
    def queries(self) -> Collection[str]:
        """Those that have set rows aside."""
        return [query for query, rows in self._rows.items() if rows]

    def clear(self) -> None:
        self._rows.clear()

    def write(self, batch: Batch, query: str) -> Mapping[tuple[str, str], int]:
        """Writes what an increment has set aside; gives its counts by query, or buffer of a result, and reason."""
        aside = self._rows.pop(query, None)
        if not aside:
            return {}
        rejected, counts = RejectedRows(batch.quarantine), Counter[tuple[str, str]]()
        for where, some in aside:
            for row in some.as_rows(where, counts.total()):
                rejected.append(row)
            counts[where, some.reason] += some.count
        if rejected:
            batch.quarantine(rejected.table())
        return counts


@dataclass(slots=True)
class UnsettledQueries:
    """The queries of recursions that have met rows without a value in a stratum of a batch.

    Only the complete strata tell which of these rows are set aside: some may be none in the end, some are met again.
    """

    names: set[str] = field(default_factory=set)
    _batch: Batch | None = None

    def begin(self, batch: Batch) -> None:
        """Forgets the queries of other batches."""
        if self._batch is not batch:
            self.names.clear()
            self._batch = batch

    def add(self, query: str, _where: str, _rows: Iterable[SetAside]) -> None:
        self.names.add(query)
