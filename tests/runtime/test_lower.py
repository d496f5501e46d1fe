"""The physical plan: what becomes a buffer, what is shared, where partial aggregates are stored."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import tidegate as tg
from tidegate.algebra.nodes import occurrences
from tidegate.algebra.rewrites import rewrite_program
from tidegate.algebra.terms import Call
from tidegate.runtime.inspect.plan_text import plan_dict, plan_text
from tidegate.runtime.plan.lower import _stored_as, lower
from tidegate.runtime.plan.steps import Plan, Progress

events = tg.stream("E", "k bigint, t bigint, v double, w double", progress="t")
names = tg.table("N", "k bigint, name string")


def plan_of(**queries: tg.Relation) -> Plan:
    return lower(tg.program(**queries).facts, optimise=rewrite_program)


def test_parts_that_differ_in_names_and_columns_share_a_buffer() -> None:
    a, b = events.as_("a"), events.as_("b")
    plan = plan_of(
        Pairs=a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 5).select(t=a.t, v=b.v),
        Alone=a.anti_join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 5).select(t=a.t, w=a.w),
    )
    assert [buffer.id for buffer in plan.buffers] == ["E#0"]
    assert set(plan.buffers[0].schema.names) == {"k", "t", "v", "w"}
    assert len(plan.readers(plan.buffers[0])) == 4


def test_readers_that_need_the_same_rows_are_asked_once() -> None:
    """Each by the progress of its own query; what they do with the rows makes no difference."""
    a, b = events.as_("a"), events.as_("b")
    pairs = a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 5)
    plan = plan_of(**{f"Q{n}": pairs.select(t=b.t, v=a.v + float(n)) for n in range(9)})
    (buffer,) = plan.buffers
    assert len(plan.readers(buffer)) == 18
    progress: dict[str, Progress] = {query.name: {"t": 100} for query in plan.queries}
    alone = plan_of(Q0=pairs.select(t=b.t, v=a.v))
    assert plan.buffer_keep(buffer, progress) == alone.buffer_keep(alone.buffers[0], progress)
    behind = plan.buffer_keep(buffer, {**progress, "Q3": {"t": 90}})
    assert isinstance(behind, Call)
    assert (behind.op, len(behind.args)) == ("or", 4)


def test_a_buffer_of_another_number_is_another_layout() -> None:
    """A version that numbers buffers differently would read the rows of one as those of another."""
    (buffer,) = plan_of(All=tg.stream("T", "t bigint", progress="t")).buffers
    assert _stored_as(buffer) != _stored_as(replace(buffer, id="T#1"))


def test_a_selection_makes_a_buffer_of_its_own() -> None:
    a, b = events.where(events.v > 1.0).as_("a"), events.as_("b")
    plan = plan_of(Pairs=a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 5).select(t=a.t))
    assert [buffer.id for buffer in plan.buffers] == ["E#0", "E#1"]


def test_joins_with_static_tables_run_before_rows_are_stored() -> None:
    n = names.as_("n")
    plan = plan_of(Named=events.join(n, n.k == events.k).select(t=events.t, name=n.name))
    (buffer,) = plan.buffers
    assert buffer.statics == ((1, "N"),)
    assert occurrences(plan.queries[0].tree)[0].static
    assert plan.queries[0].leaves[0].static is None


def test_clashing_names_of_a_static_table_are_kept_apart() -> None:
    n, e = names.as_("n"), events.as_("e")
    joined = e.join(n, n.k == tg.lit(1)).select(t=e.t, k=n.k)
    (buffer,) = plan_of(Named=joined).buffers
    assert len(set(buffer.schema.names)) == len(buffer.schema.names)


def test_a_grouping_of_one_stream_stores_partial_aggregates() -> None:
    grouped = events.group_by(events.k, w=tg.ceil(events.t, 10)).agg(n=tg.count(), best=tg.max(events.v))
    plan = plan_of(Grouped=grouped)
    (buffer,) = plan.buffers
    assert buffer.partial is not None
    assert set(buffer.instants) < set(buffer.partial.keys)
    assert plan.queries[0].grouping is buffer.partial


def test_an_instant_computed_from_the_window_leaves_the_partial_aggregates() -> None:
    grouped = events.group_by(events.k, w=tg.ceil(events.t, 10)).agg(n=tg.count())
    plan = plan_of(Grouped=grouped.with_(start=grouped.w - 10, later=grouped.w + 5).drop(grouped.w))
    (buffer,) = plan.buffers
    assert buffer.partial is not None
    ((start, one, back), (later, other, on)) = plan.queries[0].leaves[0].outputs
    assert (start, back, later, on) == ("start", -10, "later", 5)
    assert one == other == buffer.instants[0]


@pytest.mark.parametrize("why", ["count_distinct", "join"])
def test_other_groupings_store_rows(why: str) -> None:
    if why == "count_distinct":
        grouped = events.group_by(w=tg.ceil(events.t, 10)).agg(n=tg.count_distinct(events.k))
    else:
        a, b = events.as_("a"), events.as_("b")
        grouped = a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 5).group_by(t=b.t).agg(n=tg.count())
    assert all(buffer.partial is None for buffer in plan_of(Grouped=grouped).buffers)


def test_the_fingerprint_depends_on_the_program_and_not_on_the_run() -> None:
    def program(gap: int) -> Plan:
        a, b = events.as_("a"), events.as_("b")
        return plan_of(Alone=a.anti_join(b, a.k == b.k, a.t < b.t, b.t <= a.t + gap).select(t=a.t))

    assert program(5).fingerprint == program(5).fingerprint
    assert program(5).fingerprint != program(6).fingerprint


def test_queries_stand_after_what_they_read() -> None:
    first = tg.result_of("First", events.select(t=events.t, k=events.k))
    f, e = first.as_("f"), events.as_("e")
    plan = plan_of(
        Second=f.join(e, e.k == f.k, f.t <= e.t, e.t <= f.t + 3).select(t=f.t), Other=events.select(t=events.t)
    )
    assert [sorted(query.name for query in level) for level in plan.levels()] == [["First", "Other"], ["Second"]]


def test_the_plan_reads_as_text_and_as_json() -> None:
    plan = plan_of(Grouped=events.group_by(w=tg.ceil(events.t, 10)).agg(n=tg.count()))
    text = plan_text(plan)
    assert "buffer E#0" in text
    assert "partial aggregates: n by" in text
    assert json.loads(json.dumps(plan_dict(plan)))["queries"][0]["query"] == "Grouped"
