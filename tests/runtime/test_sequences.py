"""Row patterns: what they mean, whatever the batching and the engine, when they are certain, and what is kept."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.runtime.batchings import in_any_batches, on_spark
from tests.shards import shards
from tidegate.algebra.ordered.sequences import node as sequences_node
from tidegate.algebra.semantics import evaluate
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.state.errors import PROGRAM, StateError
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

S = tg.stream("S", "k string, t bigint, v bigint, n bigint", progress="t")
UNTYPED: Any = S
#: The rows of a variable by their value.
VALUES: Any = {name: lambda m, name=name, value=value: m[name].v == value for value, name in enumerate("ABC", 1)}
#: The instant at which what only the end of the input decides is certain.
AT_THE_END = 1 << 61


def sequences(pattern: str, **options: Any) -> tg.Relation:
    """Of S, by key, with the variables that a value tells."""
    define = {name: condition for name, condition in VALUES.items() if name in pattern} | options.pop("define", {})
    return S.sequences(pattern, by="k", tie="n", define=define, **options)


def program() -> tg.Program:
    falling = {"D": lambda m: m.D.v < m.D.prev().v, "U": lambda m: m.U.v > m.U.prev().v}
    within = sequences("A B* C", within=9, n=lambda m: m.rows.agg(tg.count()))
    return tg.program(
        Within=within,
        Turns=S.sequences(
            "X D+ U+", by="k", tie="n", define=falling, within=20, low=lambda m: m.D.v, high=lambda m: m.U.v
        ),
        Any=sequences("A B C", matches="any", within=6),
        Next=sequences("A (B | C)", matches="next", within=6, to=lambda m: m.rows.classifier),
        Absent=sequences("A !C[4]", number=lambda m: m.number),
        Three=sequences("A B C", skip="next row"),
        Rows=sequences("A B+", rows="all", unmatched=True, within=8, so_far=lambda m: m.rows.agg(tg.sum(S.v))),
        Long=within.where(within.n > 2).select("k", "detected"),
        Counted=within.group_by(w=tg.ceil(within.detected, 10)).agg(n=tg.count()),
    )


NAMES = ("Within", "Turns", "Any", "Next", "Absent", "Three", "Rows", "Long", "Counted")


def events(seed: int) -> list[Event]:
    """With rows of one instant, and values that are NULL."""
    rng = random.Random(seed)
    times = sorted(rng.randrange(-20, 120) for _ in range(60))
    return [(rng.choice(("a", "b", None)), t, rng.choice((1, 2, 2, 3, None)), n) for n, t in enumerate(times)]


def meant(program: tg.Program, rows: Sequence[Event], name: str) -> list[Event]:
    (query,) = (one for one in program.definition.queries if one.stream == name)
    return sorted(evaluate(query.node, {"S": list(rows)}), key=str)


def found(rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    return sorted((tuple(row.values()) for row in rows), key=str)


def run(relation: tg.Relation, rows: Sequence[Event]) -> list[Event]:
    return found(tg.program(R=relation).run({"S": rows})["R"].rows())


def rows_of(values: str, *, every: int = 1, key: str = "a") -> list[Event]:
    """One row every so many ticks, from 0 on: `"12.3"` are the values 1, 2, NULL, 3."""
    return [(key, at * every, None if v == "." else int(v), at) for at, v in enumerate(values)]


# --- what they mean ---------------------------------------------------------------------------------------------------


def test_rows_that_follow_each_other_are_a_match() -> None:
    told = sequences("A B C", top=lambda m: m.C.v)
    assert run(told, rows_of("1231233")) == [("a", 3, 0, 2, 2), ("a", 3, 3, 5, 5)]
    assert run(told, rows_of("12.3")) == []
    assert run(told, [*rows_of("123"), *rows_of("12", key="b")]) == [("a", 3, 0, 2, 2)]
    assert run(told, []) == []


def test_a_greedy_end_waits_and_a_reluctant_one_does_not() -> None:
    assert run(sequences("A B+"), rows_of("1223")) == [("a", 0, 2, 3)]
    assert run(sequences("A B+?"), rows_of("1223")) == [("a", 0, 1, 1)]
    assert run(sequences("A B+", within=5), rows_of("122")) == [("a", 0, 2, 5)]
    assert run(sequences("A B+"), rows_of("122")) == [("a", 0, 2, AT_THE_END)]


def test_the_end_of_the_input_decides_of_keys_without_new_rows() -> None:
    by_key = sequences("A+", n=lambda m: m.rows.agg(tg.count()))
    with tg.program(R=by_key).session(threads=1) as session:
        for rows, until in ((rows_of("11"), 1), ([("b", 2, 1, 0)], 2)):
            session.push("S", rows)
            session.advance("S", until)
            session.step()
        assert not session.results("R")
        session.finish()
        session.step()
        assert found(session.results("R")) == [("a", 2, 0, 1, AT_THE_END), ("b", 1, 2, 2, AT_THE_END)]


def test_a_row_of_no_match_is_told_when_what_may_begin_there_has_not_come() -> None:
    unmatched = sequences("A B", rows="all", unmatched=True).select("t", "detected")
    with tg.program(R=unmatched).session(threads=1) as session:
        for at, value in enumerate((1, 1, 2, 1)):
            session.push("S", [("a", at, value, 0)])
            session.advance("S", at)
            session.step()
        assert found(session.results("R")) == [(0, 1), (1, 2), (2, 2)]
        session.finish()
        session.step()
        assert found(session.results("R")) == [(0, 1), (1, 2), (2, 2), (3, AT_THE_END)]


@pytest.mark.parametrize(
    ("skip", "starts"),
    [("past last row", [0]), ("next row", [0, 1, 2]), ("last B", [0, 2]), ("first B", [0, 1, 2])],
)
def test_the_search_goes_on_where_it_is_told(skip: str, starts: list[int]) -> None:
    """A match of two rows at each place but the last one."""
    define = {"A": lambda m: m.A.v == 2, "B": lambda m: m.B.v == 2}
    told = S.sequences("A B B?", by="k", tie="n", define=define, skip=skip, within=9)
    assert [row[1] for row in run(told, rows_of("2222"))] == starts


def test_matches_may_skip_rows() -> None:
    """As Table 4.1 of the thesis has it: what could have gone on with a match is not skipped by `next`."""
    rows = rows_of("11233")
    assert run(sequences("A B C", matches="contiguous", within=9), rows) == [("a", 1, 3, 3)]
    assert run(sequences("A B C", matches="next", within=9), rows) == [("a", 0, 3, 3), ("a", 1, 3, 3)]
    assert [row[1:3] for row in run(sequences("A B C", matches="any", within=9), rows)] == [
        (0, 3),
        (0, 4),
        (1, 3),
        (1, 4),
    ]


def test_rows_that_must_not_come_are_waited_for() -> None:
    assert run(sequences("A !C[4]"), rows_of("12")) == [("a", 0, 0, 4)]
    assert run(sequences("A !C[4]"), rows_of("123")) == []
    assert run(sequences("!C[2] A"), rows_of("3.1")) == []
    assert run(sequences("!C[2] A"), rows_of("3..1")) == [("a", 3, 3, 3)]
    between = sequences("A !C B", matches="any", within=9)
    assert run(between, rows_of("1.2")) == [("a", 0, 2, 2)]
    assert run(between, rows_of("132")) == []
    for_a_time = sequences("A !C[2] B", matches="any", within=9)
    assert run(for_a_time, rows_of("1..32")) == [("a", 0, 4, 4)]
    assert run(for_a_time, rows_of("1.3.2")) == []
    assert "!C between two rows holds for a time of its own" in str(tg.program(R=for_a_time).explain())


def test_limits_are_between_any_rows_of_a_match() -> None:
    told = sequences("A B+ C", limits=lambda m: m.C.t - m.B.first().t <= 2, within=9)
    assert run(told, rows_of("1223")) == [("a", 0, 3, 3)]
    assert run(told, rows_of("12223")) == []
    least = sequences("A B+", limits=lambda m: m.B.t - m.A.t >= 2, within=9)
    assert run(least, rows_of("123")) == []
    assert run(least, rows_of("1223")) == [("a", 0, 2, 3)]


def test_a_condition_that_has_no_value_is_not_satisfied() -> None:
    told = sequences("A B", define={"B": lambda m: 6 // (m.B.v - 2) > 0})
    assert run(told, rows_of("1213")) == [("a", 2, 3, 3)]


def test_rows_of_a_match_are_reported_one_by_one() -> None:
    told = sequences("A B+", rows="all", unmatched=True, within=9, sum=lambda m: m.rows.agg(tg.sum(S.v)))
    assert [(row[1], row[3]) for row in run(told, rows_of("31221"))] == [(0, None), (1, 1), (2, 3), (3, 5), (4, None)]


# --- whatever the batching and the engine -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", shards(6))
def test_matches_are_those_of_the_meaning_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    """In disorder that progress permits, and with a start from the checkpoint in between."""
    rows = events(seed)
    by_detection = ("Within", "Turns", "Any", "Next", "Absent", "Three", "Rows", "Long")
    results = in_any_batches(program, rows, seed, tmp_path, dict.fromkeys(by_detection, "detected"))
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name)


@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [pytest.param(0, marks=pytest.mark.long), 1])
def test_spark_has_the_same_matches(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    rows = events(3)
    results = on_spark(program, rows, 30, shard_bytes, spark, monkeypatch)
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name)


# --- when they are certain, and what is kept --------------------------------------------------------------------------


def test_a_match_is_reported_when_nothing_can_change_it() -> None:
    with tg.program(R=sequences("A B+", within=9)).session() as session:
        session.push("S", rows_of("122"))
        session.advance("S", 2)
        session.step()
        assert session.results("R") == []
        session.advance("S", 8)
        session.step()
        assert session.results("R") == []
        session.advance("S", 9)
        session.step()
        assert found(session.results("R")) == [("a", 0, 2, 9)]
        assert session.live_rows()["R: state"] == 0


def test_what_only_the_end_decides_is_certain_when_the_input_ends(tmp_path: Path) -> None:
    """Also in a partition that has no more rows, and after a restart."""
    told = tg.program(R=sequences("A B+"))
    with told.session(checkpoint=tmp_path) as session:
        session.push("S", [*rows_of("12"), *rows_of("1", key="b")])
        session.advance("S", 9)
        session.step()
        assert session.results("R") == []
    with told.session(checkpoint=tmp_path) as session:
        session.finish()
        session.step()
        assert found(session.results("R")) == [("a", 0, 1, AT_THE_END)]


def test_another_version_of_the_rule_is_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cleverer rule would call matches certain sooner: those so far would have other instants than those to come."""
    with program().session(checkpoint=tmp_path) as session:
        session.push("S", rows_of("12"))
        session.advance("S", 2)
        session.step()
    monkeypatch.setattr(sequences_node, "RULE", 1)
    with pytest.raises(StateError) as raised, program().session(checkpoint=tmp_path):
        pass
    assert raised.value.code == PROGRAM
    because = raised.value.problems[0].because
    assert 'rule Within: "certainty, version 2" in the checkpoint, "certainty, version 1" in this program' in because


def live(relation: tg.Relation, rows: Sequence[Event], until: int) -> int:
    with tg.program(R=relation).session() as session:
        session.push("S", rows)
        session.advance("S", until)
        session.step()
        return session.live_rows()["R: state"]


def test_rows_are_kept_that_may_be_part_of_a_match_or_decide_one() -> None:
    assert live(sequences("A B C"), rows_of("1233312"), 6) == 2
    assert live(sequences("A B C"), rows_of("1233333"), 6) == 0
    assert live(sequences("A B* C", within=9), rows_of("1222"), 3) == 4
    assert live(sequences("A B* C", within=9), rows_of("1222"), 8) == 4
    assert live(sequences("A B* C", within=9), rows_of("1222"), 9) == 0


def test_they_are_explained_and_listed(tmp_path: Path) -> None:
    told = str(program().explain())
    assert "sequences of r0 by k in order of t, n; pattern A B* C; A as A.v = 1; B as B.v = 2" in told
    assert "holds       rows: rate(S) × 9\n" in told
    assert "holds       rows: keys(S by k) × 2\n" in told
    unlimited = str(tg.program(R=sequences("A B* C")).explain())
    assert "rows: unbounded: B* has no upper count: missing within= or B{0,n}" in unlimited
    with program().session(checkpoint=tmp_path) as session:
        session.push("S", rows_of("122"))
        session.advance("S", 2)
        session.step()
        assert "has arrived up to 2" in str(session.why("Within"))
    listed = str(list_state(LocalStore(tmp_path)))
    assert "bound       rows: rate(S) × 9" in listed


def test_they_progress_on_when_they_are_certain() -> None:
    unlimited, limited = sequences("A B* C"), sequences("A B* C", within=9)
    assert tg.program(R=unlimited).check() == []
    (problem,) = tg.program(R=unlimited.drop("detected")).check()
    assert problem.code == "TG201"
    assert "\0" not in problem.message
    assert tg.program(R=limited.drop("detected")).check() == []
    assert tg.program(R=limited.drop("detected", "last")).check() == []
    assert tg.program(R=sequences("A B C").drop("detected")).check() == []


# --- how they are written ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: UNTYPED.sequences("A B", by="k", define={"C": lambda m: m.C.v > 1}),
            "TG101 the pattern has no variable 'C'",
        ),
        (lambda: UNTYPED.sequences("A B", by="k", x=lambda m: m.C.v), "TG131 the pattern has no variable 'C'"),
        (lambda: UNTYPED.sequences("A B", by="k", x=lambda m: m.A.w), "TG131 rows of the match have no attribute 'w'"),
        (lambda: UNTYPED.sequences("A B", by="k", matches="all"), "TG114 matches='all' is none of preferred"),
        (lambda: UNTYPED.sequences("A B", by="k", skip="to B"), "TG114 skip='to B' is none of past last row"),
        (
            lambda: UNTYPED.sequences("A B", by="k", skip="next row", matches="any", within=3),
            "TG114 matches='any' has every",
        ),
        (lambda: UNTYPED.sequences("A B", by="k", rows="some"), "TG114 rows='some' is none of one, all"),
        (lambda: UNTYPED.sequences("A B", by="k", within=-1), "TG160 within=-1 is negative"),
        (lambda: UNTYPED.sequences("A B", by="k", limits=lambda m: m.B.v > m.A.v), "TG116 .* is no limit"),
        (lambda: UNTYPED.sequences("A B", by="k", last=lambda m: m.B.v), "TG103 attribute 'last' exists already"),
        (lambda: UNTYPED.sequences("A B", by="k", order="v"), "TG117 'v' orders no rows"),
        (lambda: UNTYPED.sequences("A B", by="k", x=lambda m: m.A.prev().first().v), "TG114 first chooses a row"),
        (lambda: UNTYPED.sequences("A B", by="k", x=lambda m: m.A.agg(UNTYPED.v)), "TG115 v is no aggregate"),
        (lambda: UNTYPED.sequences(3, by="k"), "TG114 3 is no row pattern"),
    ],
)
def test_what_can_not_be_is_said(make: Any, says: str) -> None:
    with pytest.raises(tg.QueryError, match=says):
        make()


def measured(**given: Any) -> Any:
    return lambda: UNTYPED.sequences("A B", by="k", **given)


@pytest.mark.parametrize(
    ("make", "says", "hint"),
    [
        (measured(partition_by="k"), "TG114 partition_by='k' is no option", 'write by="k"'),
        (measured(partition_by=UNTYPED.k), "TG114 partition_by=k is no option", 'write by="k"'),
        (measured(group_by=["k"]), r"TG114 group_by=\['k'\] is no option", 'write by="k"'),
        (measured(order_by="t"), "TG114 order_by='t' is no option", 'write order="time"'),
        (measured(window="5m"), "TG114 window='5m' is no option", 'write within="5m"'),
        (measured(timeout=tg.minutes(5)), "TG114 timeout=5m is no option", 'write within="5m"'),
        (measured(withn=5), "TG114 withn=5 is no option", "did you mean within=?"),
        (measured(match="any"), "TG114 match='any' is no option", 'write matches="contiguous"'),
        (measured(after_match="next"), "TG114 after_match='next' is no option", 'write skip="past last row"'),
        (measured(emission="final"), "TG114 emission='final' is no option", "leave it out: a match is reported when"),
        (measured(defines={"A": VALUES["A"]}), "TG114 defines=.* is no option", 'write define={"A": lambda m:'),
        (measured(measures={"n": 1}), "TG114 measures=.* is no option", "n=lambda m: m.A.agg(tg.count())"),
        (measured(x=1), "TG114 x=1 is no option", "a constant is added to the matches, .with_(x=tg.lit(...))"),
        (measured(x=None), "TG114 x=None is no option", "a measure is a function of the match, x=lambda m: m.A.x"),
        (measured(x=False), "TG114 x=False is no option", ".with_(x=tg.lit(...))"),
        (measured(n=tg.count()), r"TG115 count\(\) is an aggregate", "write m.A.agg(tg.count())"),
        (measured(n=lambda m: tg.count(m.B.v)), r"TG115 count\(B.v\) is an aggregate", "write m.B.agg(tg.count())"),
        (measured(n=lambda m: tg.max(m.B.first().v)), "TG115 max.* is an aggregate", "write m.B.agg(tg.max(r.x))"),
        (measured(n=lambda m: m.B.v + tg.sum(m.rows.v)), "TG115 .* is an aggregate", "write m.rows.agg(tg.sum(r.x))"),
        (measured(n=lambda m: tg.count(m.B)), r"TG110 B.\* is a row of the match", "is m.B.agg(tg.count())"),
        (measured(n=lambda m: m.B), r"TG110 B.\* is a row of the match", "name an attribute: m.B.x"),
        (measured(define={"B": lambda m: m.B > 3}), r"TG110 B.\* is a row of the match", "m.B.x"),
        (measured(n=lambda m: m.B.count()), "TG131 rows of the match have no .*'count'", "write m.B.agg(tg.count())"),
        (measured(n=lambda m: m.B.mean("v")), "TG131 rows of the match have no .*'mean'", "m.B.agg(tg.avg(r.x))"),
        (
            measured(subsets={"AB": ["A", "B"]}, n=lambda m: m.AB.count()),
            "TG131 rows of the match have no .*'count'",
            "write m.AB.agg(tg.count())",
        ),
    ],
)
def test_what_is_no_measure_is_said_with_what_is_meant(make: Any, says: str, hint: str) -> None:
    with pytest.raises(tg.QueryError, match=says) as caught:
        make()
    assert hint in caught.value.hint


def test_a_duration_is_no_measure() -> None:
    for given in ("5m", tg.minutes(5), dt.timedelta(minutes=5)):
        with pytest.raises(tg.QueryError, match=r"TG114 lasts=.* is no option of sequences, and no measure"):
            UNTYPED.sequences("A B", by="k", lasts=given)


def test_a_measure_can_be_a_constant_that_is_said_to_be_one() -> None:
    rows = [("a", 1, 1, 1), ("a", 2, 2, 2)]
    named = S.sequences("A B", by="k", define={name: VALUES[name] for name in "AB"}, x=tg.lit("A B"), key=S.v)
    assert run(named.select("x", "key", "detected"), rows) == [("A B", 2, 2)]


@pytest.mark.parametrize("pattern", ["A B", "A B !C[4]"])
@pytest.mark.parametrize("matches", ["preferred", "any"])
def test_where_one_row_must_come_first_something_says_which(pattern: str, matches: str) -> None:
    """In the search by kernels and in the other one, which absences need."""
    of: Any = {name: VALUES[name] for name in "ABC" if name in pattern}
    options: Any = {"by": "k", "define": of, "within": 9, "matches": matches}
    rows = [("a", 3, 1, 1), ("a", 3, 2, 2)]
    with pytest.raises(tg.TidegateError, match="TG304 two events of one partition at 3: nothing says which comes"):
        tg.program(R=S.sequences(pattern, **options)).run({"S": tg.source(rows, ties="fail")})
    with pytest.warns(tg.RunWarning, match="TG304"):
        assert run(S.sequences(pattern, **options), rows) == []
    assert len(run(S.sequences(pattern, tie="n", **options), rows)) == 1
    with pytest.warns(tg.RunWarning, match="TG304"):
        assert run(S.sequences(pattern, tie="v", **options), [*rows, ("a", 3, 2, 3)]) == []
