"""Rows that the increments of a batch have set aside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.quarantine import quarantine_table


@dataclass(slots=True)
class AsideRows:
    """What the increment of a query, by its name, has set aside, each with the query or buffer for which it was."""

    _rows: dict[str, list[tuple[str, SetAside]]] = field(default_factory=dict)

    def add(self, query: str, where: str, rows: Iterable[SetAside]) -> None:
        self._rows.setdefault(query, []).extend((where, row) for row in rows)

    def clear(self) -> None:
        self._rows.clear()

    def write(self, batch: Batch, query: str) -> Mapping[tuple[str, str], int]:
        """Writes what an increment has set aside; gives its counts by query, or buffer of a result, and reason."""
        aside = self._rows.pop(query, None)
        if not aside:
            return {}
        rows = [row.as_row(where, number) for number, (where, row) in enumerate(aside)]
        batch.quarantine(quarantine_table(rows))
        return Counter((where, row.reason) for where, row in aside)
