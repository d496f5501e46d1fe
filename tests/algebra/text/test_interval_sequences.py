"""The text of interval sequences: what is read, printed and refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import reduce
from operator import and_

import pytest

import tidegate as tg
from tidegate.algebra.text.reader import source_of


def kinds(instants: str) -> dict[str, tg.Intervals]:
    rows = tg.stream("E", f"kind string, a {instants}, z {instants}", progress="z", relations=lambda e: e.a < e.z)
    return {
        name: rows.where(rows.kind == name).select("a", "z").as_intervals(start="a", end="z", name=name)
        for name in "ABCD"
    }


NUMBERS, TIMES = kinds("bigint"), kinds("timestamp")
A, B, C, D = NUMBERS.values()
AGAIN = A.as_("A2")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (
            "EVENT ISEQ [A.ts < B.te < C.te < D.te] (A, B, C, D; 30)",
            lambda: tg.iseq(A.ts < B.te, B.te < C.te, C.te < D.te, of=(A, B, C, D), within=30),
        ),
        (
            "event iseq [A.ts<B.ts ∧ B.ts≤A.te] (A,B;30);",
            lambda: tg.iseq(A.ts < B.ts, B.ts <= A.te, of=(A, B), within=30),
        ),
        ("EVENT ISEQ (A, B; 5)", lambda: tg.iseq(of=(A, B), within=5)),
        ("EVENT ISEQ [A.te - 2 < B.ts] (A, B; 5)", lambda: tg.iseq(A.te - 2 < B.ts, of=(A, B), within=5)),
        ("EVENT ISEQ [] (A, A AS A2; 5) -- twice", lambda: tg.iseq(of=(A, AGAIN), within=5)),
        (
            "EVENT ISEQ [A overlapped by B AND (A.ts = B.ts OR A starts B)] (A, B; 9)",
            lambda: tg.iseq(A.overlapped_by(B), (A.ts == B.ts) | A.starts(B), of=(A, B), within=9),
        ),
        (
            "EVENT ISEQ [A2.ts - A.te <= 3 AND A.te + 1 >= A2.ts AND A.ts - A2.ts > -4] (A, A AS A2; 9)",
            lambda: tg.iseq(
                AGAIN.ts - A.te <= 3, A.te + 1 >= AGAIN.ts, A.ts - AGAIN.ts > -4, of=(A, AGAIN), within=9
            ),
        ),
    ],
)  # fmt: skip
def test_texts_are_read_and_printed(text: str, meant: object) -> None:
    read = tg.read_query(text, NUMBERS)
    assert callable(meant)
    assert read._node == meant()._node
    printed = tg.query_text(read)
    assert tg.read_query(printed, NUMBERS)._node == read._node
    assert tg.query_text(tg.read_query(printed, NUMBERS)) == printed


@pytest.mark.parametrize(
    ("name", "printed"),
    [("P1", "P1"), ("P10", "P10"), ("PT5", "PT5"), ("P1M2", "P1M2"), ("P2D", '"P2D"'), ("PT5M", '"PT5M"')],
)
def test_only_a_name_that_is_a_duration_has_quotes(name: str, printed: str) -> None:
    interval = A.as_(name)
    sequence = tg.iseq(interval.te < B.ts, of=(interval, B), within=5)
    assert tg.query_text(sequence) == f"EVENT ISEQ [{printed}.te < B.ts]\n({printed}, B; 5)\n"
    assert tg.read_query(tg.query_text(sequence), {name: interval, "B": B})._node == sequence._node


@pytest.mark.parametrize("restriction", ["P2D.ts < A.ts", "A.ts < P2D.ts", "P2D overlapped by A", "P2D BEFORE A"])
def test_a_duration_in_place_of_a_name_is_told_of_quotes(restriction: str) -> None:
    with pytest.raises(tg.QueryError, match="TG170") as raised:
        tg.read_query(f"EVENT ISEQ [{restriction}] (A, A AS P2D; 5)", NUMBERS)
    assert raised.value.hint == 'P2D is a duration; as a name it is in double quotes: "P2D"'


def test_the_text_that_is_printed() -> None:
    text = "EVENT ISEQ [A.ts < B.te AND (A.te = B.ts OR A.ts = B.ts) AND B.ts - A.te <= 1m30s] (A, B, A AS A2; 1h)"
    assert tg.query_text(tg.read_query(text, TIMES)) == (
        "EVENT ISEQ [A.ts < B.te\n    AND (A.te = B.ts OR A.ts = B.ts)\n    AND B.ts - A.te <= 1m 30s]\n"
        "(A, B, A AS A2; 1h)\n"
    )


def test_random_lists_are_printed_as_they_are_read() -> None:
    rng = random.Random(3)
    for _ in range(60):
        names = rng.sample("ABCD", rng.randint(1, 4))
        ends = [f"{name}.{end}" for name in names for end in ("ts", "te")]
        lists = [
            f"{rng.choice(ends)} {rng.choice(('<', '<=', '=', '>=', '>'))} {rng.choice(ends)}"
            + rng.choice(("", " + 2", " - 1"))
            for _ in range(rng.randint(0, 5))
        ]
        text = f"EVENT ISEQ [{' AND '.join(lists)}] ({', '.join(names)}; {rng.randint(1, 9)})"
        read = tg.read_query(text, NUMBERS)
        assert tg.read_query(tg.query_text(read), NUMBERS)._node == read._node


@pytest.mark.parametrize(
    ("text", "says", "column"),
    [
        ("EVENT ISEQ [A.ts < B.x] (A, B; 30)", "TG101 B has no end 'x'", 20),
        ("EVENT ISEQ [A.ts < B.ts, B.ts < A.te] (A, B; 30)", "between restrictions stands AND", 24),
        ("EVENT ISEQ [A.ts < C.ts] (A, B; 30)", "TG101 C is restricted, and is not in the sequence", 20),
        ("EVENT ISEQ [A.ts != B.ts] (A, B; 30)", "write two alternatives", 18),
        ("EVENT ISEQ [A.ts < B.ts] (A, B)", "the window stands behind the intervals", 31),
        ("EVENT ISEQ [A.ts < B.ts] (A, A; 3)", "give it a second name: A AS A2", 30),
        ("EVENT ISEQ [A overlap B] (A, B; 3)", "TG171 no relation is called 'overlap'", 15),
        ("EVENT ISEQ [A.ts < B.ts] (A, X; 3)", "TG173 no intervals X are given", 30),
        ("EVENT ISEQ [A.ts < B.ts] (A, B; 3m)", "TG174 ts counts in integers", 33),
        ("EVENT ISEQ [] (A, B; 0)", "TG160 within=0 is not positive", 16),
    ],
)
def test_errors_point_at_the_place(text: str, says: str, column: int) -> None:
    with pytest.raises(tg.QueryError) as raised:
        tg.read_query(text, NUMBERS)
    assert says in str(raised.value)
    assert raised.value.site is not None
    assert raised.value.site.column == column


def test_what_is_no_interval_is_refused() -> None:
    rows = tg.stream("E", "a bigint", progress="a")
    with pytest.raises(tg.QueryError, match="TG173 A is no intervals"):
        tg.read_query("EVENT ISEQ [] (A; 3)", {"A": rows})
    with pytest.raises(tg.QueryError, match="TG173 no intervals A are given"):
        tg.read_query("EVENT ISEQ [] (A; 3)", rows)
    assert tg.read_query("EVENT ISEQ [] (A; 3)", A)._node == tg.iseq(of=(A,), within=3)._node


def test_a_text_of_intervals_names_no_stream() -> None:
    with pytest.raises(tg.QueryError, match="TG175 an interval sequence reads intervals"):
        source_of("EVENT ISEQ [] (A; 3)")


@pytest.mark.parametrize(
    ("relation", "says"),
    [
        (lambda: tg.match(A, B, A.before(B), within=3), "before all of them have ended"),
        (lambda: tg.match(A, B, A.before(B), emission="final"), "without a window"),
        (lambda: tg.iseq(A.ts != B.ts, of=(A, B), within=3), "restriction A.ts != B.ts"),
        (lambda: tg.iseq(of=(A, B), within=3).select("detected"), "attributes selected of an interval sequence"),
    ],
)
def test_what_no_text_says_is_said(relation: object, says: str) -> None:
    assert callable(relation)
    with pytest.raises(tg.QueryError, match=says):
        tg.query_text(relation())


def test_a_contradiction_points_at_the_comparisons_of_its_cycle() -> None:
    read = tg.read_query("EVENT ISEQ [A.ts < B.ts < C.ts < A.ts] (A, B, C; 30)", NUMBERS)
    (problem,) = tg.program(R=read).check()
    assert problem.code == "TG212"
    because = "\n".join(problem.because)
    assert all(
        line in because for line in ("A.ts < B.ts   query:1:13", "B.ts < C.ts   query:1:20", "C.ts < A.ts   query:1:27")
    )


def test_what_is_in_vain_and_what_follows_is_shown() -> None:
    read = tg.read_query("EVENT ISEQ [A.ts < B.te < C.te AND A.ts < C.te AND A.te = B.ts] (A, B, C; 30)", NUMBERS)
    text = str(tg.program(R=read).explain())
    assert "implied     A.ts < B.ts, A.te < B.te, A.te < C.te, B.ts < C.te: inferred" in text
    assert "A.ts < B.te: in vain, it follows from the others" in text
    assert "A.ts < C.te: in vain, it follows from the others" in text
    twice = tg.read_query("EVENT ISEQ [A.ts < B.ts AND A.ts < B.ts] (A, B; 30)", NUMBERS)
    assert str(tg.program(R=twice).explain()).count("in vain") == 1
    alternatives = tg.read_query("EVENT ISEQ [(A.ts < B.ts OR A.ts > B.ts)] (A, B; 30)", NUMBERS)
    assert "  implied     " not in str(tg.program(R=alternatives).explain()).split("buffer E#0")[1]


# --- several sequences, and what is selected --------------------------------------------------------------------------

DATA = tg.stream("F", "kind string, room string, a bigint, z bigint", progress="z", relations=lambda e: e.a < e.z)
WITH_ROOMS = {
    name: DATA.where(DATA.kind == name).select("room", "a", "z").as_intervals(start="a", end="z", name=name)
    for name in "ABCD"
}


def ends(*names: str) -> list[tuple[tg.Intervals, tg.Intervals]]:
    return [(NUMBERS[first], NUMBERS[second]) for first in names for second in names]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (
            "EVENT AND (ISEQ [A.ts < B.ts] (A, B; 5), ISEQ [C.ts < D.ts] (C, D; 9); 9)",
            lambda: tg.iseq(
                A.ts < B.ts, *(x.te - y.ts < 5 for x, y in ends("A", "B")), C.ts < D.ts, of=(A, B, C, D), within=9
            ),
        ),
        (
            "EVENT or (ISEQ [A.ts < B.ts] (A, B; 9), ISEQ [B.ts < A.ts] (A, B; 9))",
            lambda: tg.iseq((A.ts < B.ts) | (B.ts < A.ts), of=(A, B), within=9),
        ),
        (
            "EVENT OR (ISEQ [A.ts < B.ts] (A, B; 9), ISEQ [B.ts < A.ts] (B, A; 4))",
            lambda: tg.iseq(
                (A.ts < B.ts) | reduce(and_, [B.ts < A.ts, *(x.te - y.ts < 4 for x, y in ends("B", "A"))]),
                of=(A, B),
                within=9,
            ),
        ),
        (
            "EVENT OR (ISEQ [A.te < A2.ts] (A, A AS A2; 9), ISEQ [A2.te < A.ts] (A, A AS A2; 9))",
            lambda: tg.iseq((A.te < AGAIN.ts) | (AGAIN.te < A.ts), of=(A, AGAIN), within=9),
        ),
        ("EVENT OR (ISEQ (A, B; 9), ISEQ [B.ts < A.ts] (A, B; 9));", lambda: tg.iseq(of=(A, B), within=9)),
        (
            "EVENT AND (OR (ISEQ [A.ts < B.ts] (A, B; 7), ISEQ [A.te < B.te] (A, B; 7)), ISEQ (C; 7); 7)",
            lambda: tg.iseq((A.ts < B.ts) | (A.te < B.te), of=(A, B, C), within=7),
        ),
    ],
)
def test_sequences_are_put_together(text: str, meant: Callable[[], tg.Relation]) -> None:
    read = tg.read_query(text, NUMBERS)
    assert read._node == meant()._node
    assert tg.read_query(tg.query_text(read), NUMBERS)._node == read._node


@pytest.mark.parametrize(
    ("condition", "meant"),
    [
        ("A.room = B.room", lambda r: r["A.room"] == r["B.room"]),
        ("detected > 5 AND (A.room = 'hall' OR B.te - A.ts < 3)", None),
        ("A.room IS NOT NULL", lambda r: r["A.room"].is_not_null()),
    ],
)
def test_what_is_found_is_selected(condition: str, meant: Callable[[tg.Relation], tg.Expression] | None) -> None:
    text = f"EVENT ISEQ [A.ts < B.ts] (A, B; 9) SELECT {condition}"
    read = tg.read_query(text, WITH_ROOMS)
    found = tg.iseq(WITH_ROOMS["A"].ts < WITH_ROOMS["B"].ts, of=(WITH_ROOMS["A"], WITH_ROOMS["B"]), within=9)
    if meant is not None:
        assert read._node == found.where(meant(found))._node
    printed = tg.query_text(read)
    assert f"SELECT {condition}" in printed
    assert tg.read_query(printed, WITH_ROOMS)._node == read._node
    rows = [("A", "hall", 1, 3), ("B", "hall", 2, 8), ("B", "cellar", 2, 8)]
    assert len(tg.program(R=read).run({"F": rows})["R"].rows()) == {"A.room = B.room": 1}.get(condition, 2)


@pytest.mark.parametrize(
    ("text", "says", "column"),
    [
        ("EVENT AND (ISEQ (A, B; 5), ISEQ (B, C; 5); 9)", "TG103 B is there twice", 34),
        ("EVENT OR (ISEQ (A, B; 5), ISEQ (A, C; 5))", "TG173 alternatives are of the same intervals", 33),
        ("EVENT AND (ISEQ (A; 5), ISEQ (B; 0); 9)", "TG160 within=0 is not positive", None),
        ("EVENT AND (ISEQ (A; 5), ISEQ (B; 3))", "expected", 36),
        ("EVENT ISEQ (A, B; 5) SELECT A.floor = 3", "TG101", 29),
        ("EVENT ISEQ (A, B; 5) SELECT max(A.room) = 'hall'", "matches are grouped in Python", 29),
        ("EVENT ISEQ [A.room = B.room] (A, B; 5)", "stands behind the sequence: SELECT A.room = ...", 13),
        ("EVENT ISEQ [A overlap B] (A, B; 5)", "did you mean overlaps?", 15),
        ("EVENT ISEQ (A, B; 5) WHERE A.room = 3", "a condition on data stands behind the sequence", 22),
    ],
)
def test_errors_of_several_sequences_point_at_the_place(text: str, says: str, column: int | None) -> None:
    with pytest.raises(tg.QueryError) as raised:
        tg.read_query(text, WITH_ROOMS)
    assert says in str(raised.value)
    assert column is None or (raised.value.site is not None and raised.value.site.column == column)
