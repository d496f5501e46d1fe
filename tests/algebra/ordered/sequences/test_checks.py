"""Row patterns that are refused, each with its code and what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.strategies.written_sequences import NAVIGATIONS, limit, sequences
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.sequences.definition import Definition, EveryMatch, Reported
from tidegate.algebra.ordered.sequences.navigation import Navigation, RowOf, RowsAggregate, RowValue
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import Absence, Repetition, Step
from tidegate.algebra.terms import TRUE, Attr

LOW: Any = lambda r: r.x < 3  # noqa: E731
EVERY = EveryMatch("any")


def refused(node: Sequences) -> QueryError:
    with pytest.raises(QueryError) as error:
        _ = node.schema
    assert error.value.hint
    return error.value


@pytest.mark.parametrize(
    ("code", "says", "node"),
    [
        ("TG180", "100,000 steps", sequences("A{1,100000}")),
        ("TG186", "at least 3 and at most 2", sequences(Repetition(Step("A"), 3, 2))),
        ("TG181", "a condition is given for 'B'", sequences("A", B=LOW)),
        ("TG181", "the subset 'U' has 'D'", sequences("A B", subsets=(("U", ("A", "D")),))),
        ("TG181", "'A' is defined twice", sequences("A B", subsets=(("A", ("A", "B")),))),
        ("TG181", "a limit names 'C'", sequences("A B", limits=[limit("last(C) - first <= 3")])),
        ("TG181", "the search is to go on at 'C'", sequences("A B", skip="last C")),
        ("TG181", "'first_C_x' reads 'C'", sequences("A", A=lambda r: r.first_C_x > 1)),
        ("TG181", "'count_C' reads 'C'", sequences("A", A=lambda r: r.count_C > 1)),
        ("TG182", "!N can stand before the first row", sequences("A !N")),
        ("TG182", "!N can stand before the first row", sequences("!N A")),
        ("TG182", "!N can stand before the first row", sequences("A !N B?")),
        ("TG182", "!(N M) can stand before the first row", sequences("A !(N M)")),
        ("TG182", "!(N?) asks that there are not even no rows", sequences("A !(N?) B")),
        ("TG182", "!(N M+)[3] has no greatest number of rows", sequences("A !(N M+)[3]")),
        ("TG182", "!(N $)[3] has $ in it", sequences("A !(N $)[3]")),
        ("TG182", "!(N !M) has !M in it", sequences("A !(N !M) B")),
        ("TG186", "at least 3 and at most 2", sequences(Absence(Repetition(Step("N"), 3, 2), 3))),
        ("TG183", "the number of the match", sequences("A", A=lambda r: r.number > 1)),
        ("TG184", "an anchor", sequences("A $", select=EVERY)),
        ("TG184", "an empty match", sequences("()", select=EVERY)),
        ("TG184", "which are of one match", sequences("A", select=EVERY, reported=Reported("all"))),
        ("TG184", "no order", sequences("A", select=EVERY, measures={"n": lambda r: r.number})),
        ("TG184", "here a match is one row", sequences("A", reported=Reported(unmatched=True))),
        ("TG185", "the first A, which is the first row", sequences("A+ B", skip="first A")),
        ("TG185", "the last A, which is the first row", sequences("A B+", skip="last A")),
        ("TG189", "!N stands between two rows", sequences("A !N B")),
        ("TG189", "!N stands between two rows", sequences("(A !N)+ B")),
        ("TG189", "!(N M) stands between two rows", sequences("A !(N M) B", skip="next row")),
        ("TG189", "!N[3] stands between two rows", sequences("A !N[3] B", select=EveryMatch("contiguous"))),
        ("TG101", "unknown attribute 'x'", sequences("A", measures={"m": lambda r: r.x})),
    ],
)
def test_refused(code: str, says: str, node: Sequences) -> None:
    error = refused(node)
    assert (error.code, says in error.message) == (code, True), error


def test_whole_matches_are_for_measures() -> None:
    counted = NAVIGATIONS["count_A"]
    assert isinstance(counted, RowsAggregate)
    final: tuple[Navigation, ...] = (
        RowValue("last_A_x", Attr("x"), RowOf(("A",)), final=True),
        replace(counted, final=True),
    )
    for navigation in final:
        read: Any = lambda r, name=navigation.name: r[name]  # noqa: E731
        more: Any = lambda r, read=read: read(r) > 1  # noqa: E731
        node = sequences("A", A=more)
        error = refused(replace(node, navigations=(navigation,)))
        assert error.code == "TG183"
        assert "the whole match" in error.message
        measured = sequences("A", measures={"m": read})
        assert "m" in replace(measured, navigations=(navigation,)).schema


def test_names_of_two_things() -> None:
    node = sequences("A", A=lambda r: r.prev_x > 1)
    for navigations in (node.navigations * 2, (RowValue("x", Attr("x")),)):
        assert refused(replace(node, navigations=navigations)).code == "TG103"
    assert refused(replace(node, definitions=node.definitions * 2)).code == "TG181"


def test_the_nearest_variable_is_named() -> None:
    node = sequences("Down+ Rise+")
    error = refused(replace(node, definitions=(Definition("Raise", TRUE),)))
    assert error.hint == "did you mean Rise?"


@pytest.mark.parametrize(
    "node",
    [
        sequences("A !N B", N=LOW, select=EVERY),
        sequences("!N[0] A !N[3]", N=LOW),
        sequences("A !N[3] B?", N=LOW),
        sequences("!N?", N=LOW),
        sequences("A !(N M?)[3] B?", N=LOW, M=lambda r: r.last_N_x < r.x),
        sequences("A !(N{1,3} | PERMUTE(N, M)) B", N=LOW, select=EVERY),
        sequences("A+ B", skip="last A"),
        sequences("A? B", skip="first A"),
        sequences("A B", skip="last U", subsets=(("U", ("A", "B")),)),
        sequences("A*", select=EVERY),
        sequences("A", reported=Reported("all", unmatched=True)),
        sequences("A !N B", N=LOW, select=EveryMatch("next")),
        sequences("A !N[3] B | A !N[3]", N=LOW),
    ],
)
def test_allowed(node: Sequences) -> None:
    assert {"first", "last", "detected"} <= set(node.schema)


def test_aggregates_of_all_rows_name_no_variable() -> None:
    assert isinstance(NAVIGATIONS["count_all"], RowsAggregate)
    assert sequences("A", A=lambda r: r.count_all < 5).schema is not None
