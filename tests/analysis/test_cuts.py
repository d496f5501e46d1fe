"""Parts of queries that become streams of their own, so that their rows fold (rule R36), and those that do not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

import tidegate as tg
from tidegate.algebra.time import INF, Extended
from tidegate.analysis import cuts, pipeline
from tidegate.analysis.cuts import _is_same
from tidegate.analysis.facts import ProgramFacts, QueryFacts
from tidegate.analysis.pipeline import _analysed
from tidegate.analysis.progress.propagation import difference
from tidegate.analysis.state.folding.foldable import MOST_OCCURRENCES

r = tg.stream("R", "k bigint, t bigint", progress="t").as_("r")
o = tg.stream("O", "id bigint, k bigint, t bigint, qty bigint", progress="t").as_("o")
c = tg.stream("C", "id bigint, t bigint, v bigint", progress="t").as_("c")
SOON = (c.id == o.id, o.t <= c.t, c.t <= o.t + 30)
VALID = o.anti_join(c, *SOON)
COUNTED = r.left_join(VALID, o.k == r.k, o.t <= r.t).group_by(r.k, r.t).agg(n=tg.count(o.id), s=tg.sum(o.qty))


def queries(made: Any) -> list[QueryFacts]:
    return list(tg.program(Open=made).facts.queries)


def uncut(made: Any) -> ProgramFacts:
    return _analysed(tg.program(Open=made).definition)


def test_rows_that_were_not_cancelled_in_time_fold() -> None:
    """Of an order alone it never is settled whether a cancellation comes after it, though it is that it has none."""
    assert [one.folds for one in uncut(COUNTED).queries[0].occurrences] == [False] * 3
    valid, counted = queries(COUNTED)
    assert (valid.query.name, valid.query.inner, valid.output.progress) == ("Open~1", True, ("o.t",))
    assert [one.stream.name for one in counted.occurrences] == ["R", "Open~1"]
    assert counted.occurrences[1].state == "keys(Open~1 by o.k) + rate(Open~1) × (skew(Open~1) + lag)"
    assert all(type(one.bound).__name__ == "Bounded" for one in valid.occurrences)


def test_the_report_says_what_was_cut_out_and_why() -> None:
    explained = tg.program(Open=COUNTED).explain()
    (inner,) = (one for one in explained.to_dict()["queries"] if "cut_out" in one)
    assert inner["query"] == "Open~1"
    assert inner["cut_out"] == (
        "O would be kept for ever in Open: o.t <= c.t stays open: missing t - c.t <= c; "
        "c.t <= o.t + 30 stays open: missing t - c.t <= c"
    )
    assert f"  cut out     {inner['cut_out']}\n" in str(explained.report)
    assert "Open (its rows): computed first, and read as a stream" in str(explained.report)


def test_a_grouping_with_an_instant_among_its_keys_folds_above_it() -> None:
    """The number of orders at each request is the last known one for later ones."""
    numbers = r.left_join(o, o.k == r.k, o.t <= r.t).group_by(k=r.k, at=r.t).agg(n=tg.count(o.id))
    late = tg.stream("L", "k bigint, t bigint", progress="t").as_("l")
    since = late.left_join(numbers, numbers.k == late.k, numbers.at <= late.t)
    inner, outer = queries(since.group_by(late.k, late.t).agg(n=tg.last(numbers.n, by=numbers.at)))
    assert [one.folds for one in inner.occurrences] == [False, True]
    assert outer.occurrences[1].state.startswith("keys(Open~1 by k) + ")


def test_equal_parts_share_a_stream() -> None:
    """It is named after the query whose name comes first, in whatever order they are written."""
    last = r.join(VALID, o.k == r.k, o.t < r.t).group_by(r.k, r.t).agg(v=tg.last(o.qty, by=o.t))
    for program in (tg.program(Open=COUNTED, Last=last), tg.program(Last=last, Open=COUNTED)):
        (inner, *others) = program.facts.queries
        assert (inner.query.name, {one.query.name for one in others}) == ("Last~1", {"Open", "Last"})
        assert all(one.occurrences[1].folds for one in others)


REJECTED: dict[str, Any] = {
    "a part of which rows stay": r.join(o.join(c, c.id == o.id, o.t <= c.t), o.k == r.k, c.t <= r.t)
    .group_by(r.k, r.t)
    .agg(n=tg.count()),
    "a part whose rows stay": r.join(VALID, o.k == r.k, o.t <= r.t).select(r.k, r.t, since=o.t),
    "a term without a value": r.join(
        o.anti_join(c, *SOON, c.v / o.qty > 2), o.k == r.k, o.t <= r.t
    ).group_by(r.k, r.t).agg(n=tg.count()),
    "rows alone": r.join(o.where(o.qty > 2), o.k == r.k, o.t <= r.t).group_by(r.k, r.t).agg(n=tg.count()),
    "all that there is": o.anti_join(c, *SOON).distinct(),
}  # fmt: skip


@pytest.mark.parametrize("name", REJECTED)
def test_what_is_not_cut(name: str) -> None:
    made = REJECTED[name]
    assert [one.query.name for one in queries(made)] == ["Open"]


def test_where_progress_would_change_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "_is_same", lambda *_: False)
    assert len(queries(COUNTED)) == 1


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A name each time a query is analysed for cuts, and an occurrence for how it folds."""
    names: list[str] = []

    def noted(name: str, called: Any) -> Any:
        def asks(*args: Any, **named: Any) -> Any:
            names.append(name)
            return called(*args, **named)

        return asks

    for name in ("_alone", "folding"):
        monkeypatch.setattr(pipeline, name, noted(name, getattr(pipeline, name)))
    return names


def test_parts_are_tried_once_each_and_left_at_the_first_that_stays(asked: list[str]) -> None:
    """Where each part was analysed for each occurrence, 16 streams took 15 seconds at each start."""
    streams = [tg.stream(f"S{i}", "k bigint, t bigint", progress="t").as_(f"s{i}") for i in range(MOST_OCCURRENCES)]
    made: Any = streams[0]
    for before, after in pairwise(streams):
        made = made.join(after, before.k == after.k, before.t <= after.t)
    found = tg.program(One=made, Other=made.select(streams[0].k, streams[-1].t)).facts.queries
    staying, parts = MOST_OCCURRENCES - 1, MOST_OCCURRENCES - 2
    assert [sum(one.stays for one in query.occurrences) for query in found] == [staying, staying]
    assert asked.count("_alone") == parts
    assert asked.count("folding") == 2 * staying + parts


def test_what_is_left_of_a_query_is_tried_once_for_each_part(asked: list[str]) -> None:
    made = queries(REJECTED["a part whose rows stay"])
    assert [one.stays for one in made[0].occurrences] == [False, True, True]
    assert asked.count("_alone") == len(["the part", "what is left"])


def function(*clauses: Sequence[tuple[str, str, Extended]]) -> Any:
    """A propagation function of these clauses, each of alternatives of one stream."""
    return SimpleNamespace(
        clauses=[SimpleNamespace(stream=some[0][0], distances=tuple((y, d) for _, y, d in some)) for some in clauses]
    )


def evaluated(made: Any, b: dict[tuple[str, str], Extended]) -> Extended:
    return min(max(difference(b[one.stream, y], d) for y, d in one.distances) for one in made.clauses)


def test_functions_are_equal_if_they_are_for_all_progress() -> None:
    """Of random functions: composed ones that are called equal are, and others are mostly called different."""
    draw = random.Random(36)
    same = different = 0
    for _ in range(4_000):
        distances: list[Extended] = [0, 1, 2, INF]

        streams, most = draw.choice((("A", 1), ("AB", 2)))

        def some(
            draw: random.Random = draw,
            distances: list[Extended] = distances,
            streams: str = streams,
            most: int = most,
        ) -> Any:
            return function(
                *(
                    [(stream, y, draw.choice(distances)) for y in "xy"[: draw.randint(1, most)]]
                    for stream in draw.choices(streams, k=draw.randint(1, most))
                )
            )

        inner = SimpleNamespace(propagation={"u": some(), "v": some()})
        after = function([("S", "u", draw.choice((0, 1))), ("S", "v", draw.choice((0, 1, INF)))], [("A", "x", 1)])
        before = some()
        called = _is_same(before, after, "S", inner)  # type: ignore[arg-type]  # what is read of them
        equal = True
        for _ in range(30):
            b: dict[tuple[str, str], Extended] = {
                (stream, y): draw.choice((-INF, 0, 1, 2, 3, 4, 5, INF)) for stream in "AB" for y in "xy"
            }
            of_part = {("S", a): evaluated(f, b) for a, f in inner.propagation.items()}
            equal = equal and evaluated(before, b) == evaluated(after, {**b, **of_part})
        assert equal or not called
        same, different = same + called, different + (not equal)
    assert same > 5
    assert different > 1_000
