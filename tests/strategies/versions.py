"""Random programs of changes as tables of versions, over events that come in any permitted order."""

from __future__ import annotations

import random
from typing import Any

import tidegate as tg
from tests.strategies.programs import Case, Row
from tidegate.algebra.program import ProgramDef

_COLUMNS = "k bigint, y double, t bigint, u bigint, n bigint, v bigint, w string, b boolean"


def random_versions_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    drawn = _Versions(random.Random(f"versions {seed}"))
    program: ProgramDef = tg.program(**drawn.results()).definition
    return Case(seed, program, {stream.name: drawn.rows[stream.name] for stream in program.inputs})


class _Versions:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.keys: tuple[str, ...] = rng.choice(((), ("k",), ("k",), ("y",), ("k", "y")))
        self.tie = "n" if self.chance(0.4) else None
        self.streams = [self.stream(name) for name in "AC"]
        self.rows = {"A": self.events(peers=True), "C": self.events(peers=False)}

    def stream(self, name: str) -> tg.Relation:
        if not self.chance(0.3):
            return tg.stream(name, _COLUMNS, progress="t")
        # A second instant, which lies before the first or after it.
        progress = self.rng.choice(("t", ("t", "u")))
        return tg.stream(name, _COLUMNS, progress=progress, temporal="u", relations=self.related)

    @staticmethod
    def related(row: Any) -> Any:
        return [row.u <= row.t + 4, row.t <= row.u + 3]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def results(self) -> dict[str, tg.Relation]:
        return {name: self.result() for name in "QR"[: self.rng.choice((1, 1, 2))]}

    def result(self) -> tg.Relation:
        rows, changes = (stream.as_(name) for stream, name in zip(self.streams, "lr", strict=True))
        if self.chance(0.2):
            changes = changes.where(changes.v >= 0)
        elif self.chance(0.15):
            # More than row-wise: a query of its own, whose rows come as it advances.
            changes = changes.distinct()
        table = changes.versioned(by=self.keys, deleted=self.deleted(changes), order=changes.t, tie=self.tie)
        if self.chance(0.3):
            history = table.history()
            return history if self.chance(0.6) else history.group_by(w=tg.ceil(history.until, 5)).agg(n=tg.count())
        joined = rows.temporal_join(table, at=rows.t, how="left" if self.chance(0.5) else "inner")
        if self.chance(0.2):
            return joined.group_by(w=tg.ceil(joined["l.t"], 5)).agg(n=tg.count(), m=tg.count(joined["r.t"]))
        return joined if self.chance(0.7) else joined.where(joined["l.v"] >= 1)

    def deleted(self, changes: tg.Relation) -> Any:
        return self.rng.choice(
            (None, changes.b, changes.b, changes.v < 0, changes.w == "a", changes.b | (changes.v == 2))
        )

    def events(self, *, peers: bool) -> tuple[Row, ...]:
        """Events of a few keys; unless they may be peers no two of one at an instant that nothing orders."""
        found: list[Row] = []
        taken: set[tuple[object, ...]] = set()
        for _ in range(self.rng.choice((6, 14, 24))):
            k, y = self.rng.choice((1, 2, None)), self.rng.choice((0.0, -0.0, 1.5, float("nan"), None))
            time, number = self.rng.randint(0, 30), self.rng.choice((1, 2, 3, None))
            of = {"k": k, "y": None if y is None else str(y + 0.0)}
            place = (*(of[key] for key in self.keys), time, number if self.tie is not None else None)
            if not peers and place in taken:
                continue
            taken.add(place)
            found.append(
                {
                    "k": k,
                    "y": y,
                    "t": time,
                    "u": time + self.rng.randint(-3, 4),
                    "n": number,
                    "v": self.rng.choice((1, 1, 2, -5, None)),
                    "w": self.rng.choice(("", "a", "ä", None)),
                    "b": self.rng.choice((True, False, False, None)),
                }
            )
        return tuple(found)
