"""Runs over complete inputs: what they refuse instead of giving an answer that is not one."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidegate as tg

events = tg.stream("E", "k bigint, t bigint", progress="t")
marks = tg.stream("M", "k bigint, u bigint", progress="u")


def unmarked() -> tg.Program:
    e, m = events.as_("e"), marks.as_("m")
    return tg.program(Unmarked=e.anti_join(m, m.k == e.k, e.t <= m.u, m.u <= e.t + 5))


def test_a_stream_without_rows_has_to_be_named() -> None:
    with pytest.raises(tg.QueryError, match="TG407 no rows given for stream M"):
        unmarked().run({"E": [(1, 1)]})
    assert unmarked().run({"E": [(1, 1)], "M": []}).rows("Unmarked") == [{"k": 1, "t": 1}]


def test_a_directory_of_results_needs_a_checkpoint(tmp_path: Path) -> None:
    sinks = {"Unmarked": tg.parquet_sink(tmp_path / "out")}
    with pytest.raises(tg.QueryError, match="TG408 results of Unmarked go to a directory"):
        unmarked().run({"E": [(1, 1)], "M": []}, sinks=sinks)
    done = unmarked().run({"E": [(1, 1)], "M": []}, sinks=sinks, checkpoint=tmp_path / "state")
    assert done.rows("Unmarked") == [{"k": 1, "t": 1}]
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 1


@pytest.mark.parametrize("name", ["Order", "orders", "ORDERS"])
def test_a_misspelt_name_is_told_with_the_one_that_is_meant(name: str) -> None:
    orders = tg.stream("Orders", "n bigint, t bigint", progress="t")
    program = tg.program(All=orders)
    for wrong in (
        lambda: program.run({name: []}),
        lambda: program.session(sources={name: []}),
        lambda: program.session().push(name, []),
    ):
        with pytest.raises(tg.QueryError, match=f"TG402 the program has no .*'{name}'") as raised:
            wrong()
        assert raised.value.hint == "did you mean Orders? it has Orders"
    with pytest.raises(tg.QueryError, match="TG407"):
        program.run({})


def test_results_come_in_the_order_of_the_program() -> None:
    names = ["Zebra", "Ant", "Mouse", "Bee", "Yak", "Cat", "Owl"]
    found = tg.program(**{name: events.where(events.k > n) for n, name in enumerate(names)}).run({"E": [(1, 1)]})
    assert list(found) == names
