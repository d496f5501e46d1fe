"""A limit of the matches that begin with one row: the same error for the same row, whatever the batching and the
engine.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tidegate as tg
from tests.shards import shards
from tests.strategies.searched_sequences import (
    S,
    Searched,
    in_order,
    increments,
    is_nested,
    operator_of,
    reloaded,
    without_waits,
)
from tests.strategies.sequences import random_pattern
from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.ordered.sequences.definition import Definition, EveryMatch
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import (
    Absence,
    Concatenation,
    Pattern,
    Step,
    absent_in,
    variables_of,
)
from tidegate.algebra.semantics import bags_equal
from tidegate.algebra.terms import Attr, Lit, call
from tidegate.algebra.time import INF
from tidegate.algebra.types import BIGINT
from tidegate.analysis.ordered.sequences.tables import tables_of
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.ordered.sequences import operator as operators
from tidegate.runtime.plan import placement
from tidegate.runtime.rows import as_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]
UNTYPED: Any = S
E = tg.stream("E", "k string, t bigint, v bigint, n bigint", progress="t")
VALUES: Any = {name: lambda m, name=name, value=value: m[name].v == value for value, name in enumerate("ABC", 1)}


def sequences(pattern: str, **options: Any) -> tg.Relation:
    """Of E, by key, every match that skips rows, with the variables that a value tells."""
    define = {name: condition for name, condition in VALUES.items() if name in pattern} | options.pop("define", {})
    return E.sequences(pattern, by="k", tie="n", define=define, **{"matches": "any", **options})


def rows_of(values: str, *, key: str = "a", begin: int = 0) -> list[Event]:
    """One row every tick: `"12.3"` are the values 1, 2, NULL, 3."""
    return [(key, begin + at, None if v == "." else int(v), at) for at, v in enumerate(values)]


# --- whatever the batching and the engine -----------------------------------------------------------------------------


def limited(rng: random.Random, draw: Callable[[random.Random], Searched]) -> Searched:
    """A pattern of which every match is wanted, so many of each row; of ten in which no row begins more, nine are not
    taken.
    """
    while True:
        case = draw(rng)
        if not isinstance(case.node.selection, EveryMatch) or is_nested(case.node.pattern):
            continue
        node = replace(case.node, per_start=rng.choice((1, 1, 2, 3, 5)))
        longer = not absent_in(node.pattern) and rng.random() < 0.5
        case = Searched(with_an_end(node) if longer else node, case.rows)
        if rng.random() < 0.1 or isinstance(meant(case), str):
            return case


def with_an_end(node: Sequences) -> Sequences:
    """The pattern with a row at its end that comes now and then: what were matches are beginnings of some."""
    end = Definition("D", call("eq", Attr("v"), Lit(0, BIGINT)))
    return replace(node, pattern=Concatenation((node.pattern, Step("D"))), definitions=(*node.definitions, end))


def with_absences(rng: random.Random) -> Searched:
    """A pattern with rows that must not come, or with a least distance; of one that is refused another is drawn."""
    while True:
        try:
            node = _with_absences(rng, rng.choice((0, 1, 2)))
            _ = node.schema
        except QueryError:
            continue
        return Searched(node, without_waits(rng).rows)


def _with_absences(rng: random.Random, value: int) -> Sequences:
    drawn: Pattern = Concatenation((Step("A"), random_pattern(rng, 1, skips=True)))
    within = Absence(Step("N"), rng.choice((1, 3)))
    before, after = Concatenation((within, drawn)), Concatenation((drawn, within))
    pattern = rng.choice((before, after, Concatenation((drawn, Absence(Step("N")), Step("C"))), drawn))
    either: tuple[Any, ...] = (
        lambda m: m.A.v >= 0,
        lambda m: m.A.v == value,
        lambda m: m.A.v >= m.A.prev().v,
    )
    options: dict[str, Any] = {"within": rng.choice((2, 5, 9)), "matches": rng.choice(("contiguous", "next", "any"))}
    define: dict[str, Any] = {"A": rng.choice(either)}
    if pattern is not drawn:
        define["N"] = lambda m: m.N.v == value
    if "C" in variables_of(pattern) and rng.random() < 0.5:
        define["C"] = rng.choice((lambda m: m.A.v != value, lambda m: m.C.v == value))
        options["limits"] = lambda m: m.C.t - m.A.t >= 2
    relation: Any = UNTYPED.sequences(pattern, by="k", order="t", tie="n", define=define, **options)
    node: Sequences = relation._node
    return node


DRAWS = {"searched": without_waits, "absences": with_absences}


def meant(case: Searched) -> list[Event] | str:
    try:
        return case.meant
    except EvaluationError as error:
        return str(error)


def same(one: list[Event] | str, other: list[Event] | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return bags_equal(one, other)


def found(rng: random.Random, case: Searched) -> list[Event] | str:
    """What the operator finds, increment by increment, with restarts in between; the error in the increment that has
    the row with which there are too many.
    """
    operator, rows_found = operator_of(case.node), list[Event]()
    for rows, after, until in increments(rng, case):
        try:
            operator, result = operator.step([rows], after, until)
        except EvaluationError as error:
            by = re.search(r"with the row at (-?\d+) there", str(error))
            assert by is not None
            assert after < int(by[1]) <= until
            return str(error)
        rows_found += as_frame(result).rows()
        if until != INF and rng.random() < 0.3:
            operator = reloaded(operator, case.node, until)
    return in_order(rows_found)


@pytest.mark.parametrize("first", shards(4, 1))
def test_kernels_stop_at_the_row_at_which_the_meaning_stops(first: int) -> None:
    met = Counter[str]()
    for seed in range(60 * first, 60 * first + 60):
        rng = random.Random(f"per start {seed}")
        case = limited(rng, without_waits)
        if isinstance(tables_of(case.node), str):
            continue
        wanted = meant(case)
        for _ in range(3):
            assert same(found(rng, case), wanted), seed
        what = "beginnings" if "beginnings" in wanted else "matches"
        met[what if isinstance(wanted, str) else "rows" if wanted else "none"] += 1
    assert min(met["matches"], met["beginnings"], met["rows"]) > 2, met


@pytest.mark.parametrize("first", shards(4, 1))
@pytest.mark.parametrize("of", DRAWS)
def test_so_does_the_search_without_kernels(first: int, of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "compiled_search", lambda node: None)
    met = Counter[bool]()
    for seed in range(30 * first, 30 * first + 30):
        rng = random.Random(f"per start {of} {seed}")
        case = limited(rng, DRAWS[of])
        wanted = meant(case)
        assert same(found(rng, case), wanted), seed
        met[isinstance(wanted, str)] += 1
    assert min(met[True], met[False]) > 2, met


def test_either_search_goes_on_from_what_the_other_has_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = operators.compiled_search
    for seed in range(30):
        rng = random.Random(f"per start mixed {seed}")
        case = limited(rng, without_waits)
        chosen = random.Random(seed)
        monkeypatch.setattr(operators, "compiled_search", lambda n, c=chosen: compiled(n) if c.random() < 0.5 else None)
        assert same(found(rng, case), meant(case)), seed


#: C reads the first row alone, and that is there: the rule knows that there is no match.
HOPELESS: Any = {
    "A": lambda m: m.A.v > 0,
    "B": lambda m: m.B.v > 0,
    "C": lambda m: m.rows.first().v > 5,
}


@pytest.mark.parametrize(("pattern", "matches", "first"), [("A B+ C", "any", 2), ("(A | B)+ C", "contiguous", 1)])
def test_what_is_known_not_to_come_counts_as_long_as_limits_can_be_kept(
    pattern: str, matches: Any, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no row is skipped, the rule would keep no row."""
    none = UNTYPED.sequences(
        pattern, by="k", order="t", tie="n", define=HOPELESS, matches=matches, within=9, per_start=2
    )
    monkeypatch.setattr(operators, "compiled_search", lambda node: None)
    case = Searched(none._node, tuple((1, at, at, 1, 0.0) for at in range(2 * first)))
    operator = operator_of(case.node)
    for row in case.rows[:first]:
        operator, _ = operator.step([frame([row])], row[1] - 1, row[1])
    with pytest.raises(EvaluationError, match="TG307 the row at 0 where k = 1 begins more than 2 matches") as raised:
        operator.step([frame(case.rows[first:])], first - 1, 2 * first - 1)
    assert meant(case) == str(raised.value)


def frame(rows: Sequence[Event]) -> pl.DataFrame:
    schema = {"k": pl.Int64, "t": pl.Int64, "n": pl.Int64, "v": pl.Int64, "x": pl.Float64}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


@pytest.mark.parametrize(
    "relation",
    [
        sequences("A B", within=5, limits=lambda m: m.B.t - m.A.t >= 2, define={"B": lambda m: m.A.v > 1}, per_start=9),
        sequences("(A | B)+ C", within=5, matches="contiguous", define=HOPELESS, per_start=9),
    ],
    ids=["any", "contiguous"],
)
def test_a_partition_without_new_rows_is_let_go_when_its_window_is_over(
    relation: tg.Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the second pattern nothing is decided then: its rows are kept for the limit alone."""
    monkeypatch.setattr(operators, "compiled_search", lambda node: None)
    with tg.program(R=relation).session() as session:
        session.push("E", rows_of("11"))
        kept = []
        for until in (1, 5, 6):
            session.advance("E", until)
            session.step()
            kept.append(session.live_rows()["R: state"])
        assert kept == [2, 1, 0]


# --- programs ---------------------------------------------------------------------------------------------------------

EXPLODING = [*rows_of("1222", key="b", begin=1), *rows_of("122222", key="a")]
ERROR = (
    "TG307 the row at 0 where k = 'a' begins more than 4 matches of A B+ C (per_start=4)\n"
    "  in query      R\n"
    "  because       with the row at 3 there are more beginnings of matches that the same rows to come would end\n"
)


@pytest.mark.parametrize("size", [1, 3, 99])
@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
def test_a_batch_fails_and_changes_nothing(size: int, on_error: Any) -> None:
    """The earliest row is named whatever the batching; what matches before it are told."""
    program = tg.program(R=sequences("A B+ C", within=99, per_start=4))
    rows = [*rows_of("12.3", key="c", begin=-9), *sorted(EXPLODING, key=lambda row: row[1])]
    error = ""
    with program.session(on_error=on_error) as session:
        for first in range(0, len(rows), size):
            session.push("E", rows[first : first + size])
            session.advance("E", rows[min(first + size, len(rows)) - 1][1] - 1)
            try:
                session.step()
            except tg.QueryError as raised:
                error = str(raised)
                break
        assert error.startswith(ERROR)
        if size < 9:
            assert len(session.results("R")) == 1


@pytest.mark.parametrize(
    ("pattern", "define", "hint"),
    [
        ("A B+ C", {}, "matches are counted without listing them by group_by(...) and no per_start"),
        (
            "A B+ C",
            {"B": lambda m: m.B.v >= m.A.v},
            "without it group_by(...) would list them as well, since the condition of B reads A.v",
        ),
        ("A B+ !N[3]", {}, "without it group_by(...) would list them as well, since rows must not come"),
    ],
)
def test_the_hint_is_one_that_helps(pattern: str, define: dict[str, Any], hint: str) -> None:
    """Not every pattern is counted without listing its matches."""
    limited = sequences(pattern, within=99, per_start=4, define=define)
    with pytest.raises(tg.QueryError, match="TG307") as raised:
        tg.program(R=limited).run({"E": rows_of("1222222")})
    assert raised.value.hint.endswith(f"or a greater per_start; {hint}")


def test_a_greater_limit_goes_on_from_the_checkpoint(tmp_path: Path) -> None:
    """It says nothing of what is kept."""

    def program(per_start: int | None) -> tg.Program:
        return tg.program(R=sequences("A B+ C", within=99, per_start=per_start))

    with program(2).session(checkpoint=tmp_path) as session:
        session.push("E", rows_of("12"))
        session.advance("E", 1)
        session.step()
        session.push("E", rows_of("23", begin=2))
        session.finish()
        with pytest.raises(tg.QueryError, match="TG307"):
            session.step()
    with program(3).session(checkpoint=tmp_path) as session:
        session.push("E", rows_of("23", begin=2))
        session.finish()
        session.step()
        assert len(session.results("R")) == 3


def test_a_smaller_limit_is_kept_from_the_next_row_on(tmp_path: Path) -> None:
    for limit, rows in ((None, rows_of("1222")), (3, rows_of("2", begin=4))):
        program = tg.program(R=sequences("A B+ C", within=99, per_start=limit))
        with program.session(checkpoint=tmp_path) as session:
            session.push("E", rows)
            session.advance("E", rows[-1][1])
            if limit is None:
                session.step()
            else:
                with pytest.raises(tg.QueryError, match="TG307 the row at 0 where k = 'a'"):
                    session.step()


def test_beginnings_that_limits_have_ended_count_no_more() -> None:
    """Two rows of B at a time can be followed by a C."""

    def near(per_start: int) -> tg.Program:
        of = sequences("A B C", within=99, limits=lambda m: m.C.t - m.B.t <= 1, per_start=per_start)
        return tg.program(R=of)

    assert near(2).run({"E": rows_of("1222222")})["R"].rows() == []
    with pytest.raises(tg.QueryError, match="TG307 the row at 0"):
        near(1).run({"E": rows_of("1222222")})


def test_rows_in_which_there_would_be_too_many_to_list() -> None:
    """2^60 beginnings, of which the search has listed few."""
    with pytest.raises(tg.QueryError, match="TG307"):
        tg.program(R=sequences("A B+ C", within=99, per_start=1000)).run({"E": rows_of("1" + 60 * "2")})
    absent = sequences("A B+ !N[3]", within=99, per_start=100, define={"N": lambda m: m.N.v == 9})
    with pytest.raises(tg.QueryError, match="TG307"):
        tg.program(R=absent).run({"E": rows_of("1" + 60 * "2")})


def test_beginnings_that_limits_have_ended_are_searched_no_more() -> None:
    """Without kernels, too: there are 2^25 of them."""
    far = {"limits": lambda m: [m.C.t - m.B.first().t <= 1, m.C.t - m.A.t >= 2]}
    assert isinstance(tables_of(sequences("A B+ C", within=99, **far)._node), str)
    told = tg.program(R=sequences("A B+ C", within=99, per_start=3, **far))
    assert len(told.run({"E": rows_of("1" + 25 * "2" + "3")})["R"].rows()) == 1


def test_beginnings_that_a_row_has_ended_are_searched_no_more() -> None:
    """The row that must not come has come: without a look at it 2^25 beginnings are searched, and none is a match."""
    ended = {"limits": lambda m: m.C.t - m.A.t >= 2, "define": {"N": lambda m: m.N.v == 4}}
    assert isinstance(tables_of(sequences("A !N B+ C", within=99, **ended)._node), str)
    told = tg.program(R=sequences("A !N B+ C", within=99, per_start=3, **ended))
    assert told.run({"E": rows_of("14" + 25 * "2" + "3")})["R"].rows() == []


def test_matches_that_are_limited_are_listed_where_they_are_counted() -> None:
    """Else the error would come or not as the plan is."""

    def counted(per_start: int | None) -> tg.Program:
        matches = sequences("A B+ C", within=99, per_start=per_start)
        return tg.program(R=matches.group_by("k", w=tg.ceil(matches.detected, 10)).agg(n=tg.count()))

    told = str(counted(4).explain())
    assert "lists       matches one by one: a limit of those that begin with one row is declared (per_start)" in told
    with pytest.raises(tg.QueryError, match="TG307"):
        counted(4).run({"E": rows_of("12223")})
    assert [row["n"] for row in counted(None).run({"E": rows_of("12223")})["R"].rows()] == [7]


@pytest.mark.long
@pytest.mark.spark
def test_spark_names_the_same_row(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The earliest of all shards, also where nothing is set aside."""
    monkeypatch.setattr(placement, "MOST_SHARDS", 4)
    later = [row for key in "cdefgh" for row in rows_of("1222", key=key, begin=1)]
    (tmp_path / "in").mkdir()
    rows = pl.DataFrame([*later, *EXPLODING], schema=["k", "t", "v", "n"], orient="row")
    rows.write_parquet(tmp_path / "in" / "rows.parquet")
    program = tg.program(R=sequences("A B+ C", within=99, per_start=4))
    query = program.start(
        spark,
        sources={"E": parquet(tmp_path / "in", bounded=True, ties="fail")},
        checkpoint=tmp_path / "checkpoint",
        driver_bytes=0,
        shard_bytes=1,
        on_error="fail",
    )
    with pytest.raises(tg.QueryError) as raised:
        query.awaitTermination()
    assert str(raised.value).startswith(ERROR)


# --- how it is written and explained ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"per_start": 0}, "TG114 per_start=0 is no number of matches"),
        ({"per_start": True}, "TG114 per_start=True is no number of matches"),
        ({"per_start": 2.0}, "TG114 per_start=2.0 is no number of matches"),
        (
            {"per_start": 1 << 62},
            "TG114 per_start=4611686018427387904 limits nothing: matches are counted up to 4,611,686,018,427,387,903",
        ),
        ({"per_start": 2, "matches": "preferred"}, 'TG114 matches="preferred" has one match'),
        (
            {"per_start": 2, "define": {"B": lambda m: m.B.next().v > 1}},
            "TG184 2 matches may begin with a row, and a condition reads a row behind its own",
        ),
    ],
)
def test_what_can_not_be_is_said(given: dict[str, Any], says: str) -> None:
    with pytest.raises(tg.QueryError, match=re.escape(says)):
        sequences("A B+", within=9, **given)


def told(relation: tg.Relation) -> list[str]:
    """What is explained of the matches that begin with one row."""
    explained: Any = tg.program(R=relation).explain()
    listed: list[str] = explained.to_dict()["queries"][0].get("per_start", [])
    shown = [f"  {'' if number else 'per start':<12}{line}" for number, line in enumerate(listed)]
    assert "\n".join(shown) in str(explained.report)
    assert ("per start" in str(explained)) == bool(listed)
    return listed


DOUBLES = "so every row may double the matches that begin with one; per_start=1000 stops the program there (TG307)"
OR = {"A": lambda m: m.A.v > 1, "B": lambda m: m.B.v < 5}
LESS = {"A": lambda m: m.A.v > 5, "B": lambda m: (m.B.v <= 5) & (m.B.v > m.A.v)}
ENDS = {"A": lambda m: m.A.v > 5, "B": lambda m: m.B.v < 2, "C": lambda m: m.C.v > 3}


@pytest.mark.parametrize(
    ("relation", "says"),
    [
        (
            sequences("A B+ C", within=9),
            ["no limit: a row may be skipped or not in B+, which has no upper bound,", DOUBLES],
        ),
        (
            sequences("A* (B C){2,}", within=9),
            ["no limit: a row may be skipped or not in A* and (B C){2,}, each of which has no upper bound,", DOUBLES],
        ),
        (
            sequences("(A | B)+", matches="next", within=9, define=OR),
            ["no limit: a row may have one variable or another in (A | B)+, which has no upper bound,", DOUBLES],
        ),
        (
            sequences("(A B | A C)+", matches="contiguous", define=OR),
            [
                "no limit: a row may have one variable or another in ((A B) | (A C))+, which has no upper bound,",
                DOUBLES,
            ],
        ),
        (
            sequences("A B+ C", within=9, per_start=1000),
            ["limit 1,000: a row that begins more matches stops the program (TG307)"],
        ),
        (sequences("A B{2,3} C", within=9), []),
        (sequences("A B+ C", within=9, matches="next"), []),
        (sequences("(A | B)+", matches="next", within=9), []),
        (sequences("(A | B)+", matches="next", within=9, define=LESS), []),
        (sequences("(A B)+", matches="next", within=9, define=OR), []),
        (sequences("A* B*", matches="contiguous", within=9, define=OR), []),
        (sequences("A (B | C)", within=9), []),
        (sequences("A B+ C", matches="preferred"), []),
        (
            sequences("(A | B | C)+", matches="next", within=9, define=ENDS),
            ["no limit: a row may have one variable or another in (A | B | C)+, which has no upper bound,", DOUBLES],
        ),
    ],
)
def test_it_is_explained_where_matches_may_explode(relation: tg.Relation, says: list[str]) -> None:
    assert told(relation) == says


def test_nothing_is_said_where_matches_are_counted() -> None:
    matches = sequences("A B+ C", within=9)
    counted = tg.program(R=matches.group_by("k", w=tg.ceil(matches.detected, 10)).agg(n=tg.count()))
    assert "per start" not in str(counted.explain())
