"""Evaluation orders as users see and pin them: they change what is looked at first, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidegate as tg
from tidegate.algebra.errors import QueryError

readings = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")
found = readings.partition_by("k").derive(
    A=tg.situation(readings.x == 1), B=tg.situation(readings.x == 2), C=tg.situation(readings.x == 3)
)
A, B, C = found.A, found.B, found.C
PATTERN = (A.before(B), B.meets(C))
EVENTS = [(k, t, (t + k) % 4) for k in range(3) for t in range(60)]


def test_explain_shows_orders_and_why() -> None:
    report = tg.program(M=tg.match(*PATTERN, within=20)).explain()
    lines = [line.removeprefix("  order").strip() for line in str(report.plan).splitlines()]
    assert "from A: B, C, cost 23.5" in lines
    assert "from C: B, A, cost 3.9" in lines
    assert "assumed: of a partition A 10, B 10, C 10; of pairs A-B 44.50%, B-C 0.49%" in lines
    (query,) = report.to_dict()["plan"]["queries"]  # type: ignore[index]  # plain values
    assert query["order"][0] == "from A: B, C, cost 23.5"


def test_pinned_orders_stay_and_say_what_they_cost() -> None:
    program = tg.program(M=tg.match(*PATTERN, within=20, order=(A, "C", B)))
    assert "from B: A, C, cost" in str(program.explain().plan)
    with program.session() as run:
        run.push("R", EVENTS)
        run.finish()
        run.step()
        first, second, third, why = run.orders("M")
        assert [line.split(", cost")[0] for line in (first, second, third)] == [
            "from A: C, B",
            "from B: A, C",
            "from C: A, B",
        ]
        assert "where B, C would cost" in first
        assert why.startswith("pinned; ")


def test_orders_change_neither_results_nor_checkpoints(tmp_path: Path) -> None:
    free, pinned = (tg.program(M=tg.match(*PATTERN, within=20, order=order)) for order in ((), (C, A, B)))
    with free.session(checkpoint=tmp_path / "state") as run:
        run.push("R", [event for event in EVENTS if event[1] < 30])
        run.advance("R", {"t": 29})
        run.step()
    with pinned.session(checkpoint=tmp_path / "state") as run:
        run.push("R", [event for event in EVENTS if event[1] >= 30])
        run.finish()
        run.step()
        rows = run.results("M")
    assert len(rows) > 10
    assert sorted(map(str, rows)) == sorted(map(str, free.run({"R": EVENTS}).rows("M")))


@pytest.mark.parametrize("order", [("A", "B"), ("A", "B", "D"), ("A", "B", "B"), "A"])
def test_an_order_names_every_symbol_once(order: object) -> None:
    with pytest.raises(QueryError, match="TG114"):
        tg.match(*PATTERN, within=20, order=order)  # type: ignore[arg-type]  # that is the point
