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

    def add_once(self, query: str, rows: Iterable[SetAside]) -> None:
        """Adds what is not there: a row that does not say in which stratum it passes is met in each."""
        known = self._rows.setdefault(query, [])
        for row in rows:
            if not any(same_group(row, other) for _, other in known):
                known.append((query, row))

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
        rejected = RejectedRows()
        for number, (where, row) in enumerate(aside):
            rejected.append(row.as_row(where, number))
        batch.quarantine(rejected.table())
        return Counter((where, row.reason) for where, row in aside)


def same_group(one: SetAside, other: SetAside) -> bool:
    """Whether two notes are of one attribute of one row."""
    return (one.reason, one.attribute, one.row) == (other.reason, other.attribute, other.row)
