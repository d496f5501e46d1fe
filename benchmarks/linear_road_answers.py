"""Linear Road's answers in a run: which there have to be, and whether a run has given them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from examples.linear_road.checker import check
from examples.linear_road.generator import CARS, QUESTIONS
from examples.linear_road.rows import Row

#: Seconds within which an answer is due.
LIMITS = {"Notifications": 5, "Alerts": 5, "Balances": 5, "Daily": 10}
_KEYS = {"Notifications": "vid", "Alerts": "vid", "Balances": "qid", "Daily": "qid"}

Wanted = Mapping[str, Counter[tuple[int, ...]]]


def wanted(given: Sequence[Row], since: int) -> Wanted:
    """The answers to these rows, by the checker: those of instants from `since` on, as bags by result."""
    answers = check(given)
    every: dict[str, Sequence[tuple[int, ...]]] = {
        "Notifications": answers.notifications,
        "Alerts": answers.alerts,
        "Balances": [(asked, qid, owed) for asked, _, qid, owed in answers.balances],
        "Daily": answers.daily,
    }
    return {
        name: Counter(row for row in rows if row[1 if name == "Notifications" else 0] >= since)
        for name, rows in every.items()
    }


@dataclass(slots=True)
class Tally:
    """What a run has answered of instants from `since` on: the rows of the first `distinct` roads, and the number of
    all. Roads beyond these are copies of them.
    """

    distinct: int
    since: int
    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, Counter[tuple[int, ...]]] = field(default_factory=dict)

    def add(self, name: str, rows: pl.DataFrame) -> pl.DataFrame:
        """Counts rows of a result; gives those of instants that count."""
        found = rows.filter(pl.col("time") >= self.since)
        self.counts[name] += found.height
        per_road = CARS if _KEYS[name] == "vid" else QUESTIONS
        own = found.filter(pl.col(_KEYS[name]) < self.distinct * per_road)
        self.first.setdefault(name, Counter()).update(own.iter_rows())
        return found

    def right(self, answers: Wanted, total: int) -> bool:
        """Whether the first roads have these answers, and all `total` roads together as many as they have to."""
        return all(
            self.first.get(name, Counter()) == rows and self.counts[name] * self.distinct == rows.total() * total
            for name, rows in answers.items()
        )
