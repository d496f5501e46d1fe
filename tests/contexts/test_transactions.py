"""Every case of the rule of transactions, computed by hand: Act' = (Act - X) + {c in I : c not in Act, or c in X}."""

from __future__ import annotations

import pytest

from tests.contexts.transactions import EVERYWHERE, asked, changes, model_of
from tidegate.algebra.nodes import Row


@pytest.mark.parametrize(
    ("what", "rows", "expected"),
    [
        ("nothing asked for", asked(), []),
        ("the default ends as one begins", asked((1, "+a")), ["1 end d since None", "1 start a"]),
        (
            "and begins as the last one ends",
            asked((1, "+a"), (4, "-a")),
            ["1 end d since None", "1 start a", "4 end a since 1", "4 start d"],
        ),
        ("initiate an active context", asked((1, "+a"), (2, "+a")), ["1 end d since None", "1 start a"]),
        ("initiate twice at one instant", asked((1, "+a"), (1, "+a")), ["1 end d since None", "1 start a"]),
        (
            "terminate twice",
            asked((1, "+a"), (2, "-a"), (3, "-a")),
            ["1 end d since None", "1 start a", "2 end a since 1", "2 start d"],
        ),
        ("terminate what does not hold", asked((1, "-a")), []),
        (
            "contexts overlap",
            asked((1, "+a"), (2, "+b"), (3, "-a"), (5, "-b")),
            ["1 end d since None", "1 start a", "2 start b", "3 end a since 1", "5 end b since 2", "5 start d"],
        ),
        (
            "terminate and initiate at one instant: a new window",
            asked((1, "+a"), (4, "-a"), (4, "+a")),
            ["1 end d since None", "1 start a", "4 end a since 1", "4 start a"],
        ),
        (
            "terminate one and initiate another: the default does not hold between",
            asked((1, "+a"), (4, "-a"), (4, "+b")),
            ["1 end d since None", "1 start a", "4 end a since 1", "4 start b"],
        ),
        (
            "initiate and terminate at the instant at which it begins: it did not hold, so it begins",
            asked((1, "+a"), (1, "-a")),
            ["1 end d since None", "1 start a"],
        ),
        (
            "switch ends what holds",
            asked((1, "+a"), (3, "b")),
            ["1 end d since None", "1 start a", "3 end a since 1", "3 start b"],
        ),
        (
            "switch to itself: a new window",
            asked((1, "+a"), (3, "a in a")),
            ["1 end d since None", "1 start a", "3 end a since 1", "3 start a"],
        ),
        (
            "switch ends only the contexts in which it stands",
            asked((1, "+a"), (2, "+b"), (3, "a in b")),
            ["1 end d since None", "1 start a", "2 start b", "3 end b since 2"],
        ),
        (
            "switch out of one into another that holds already",
            asked((1, "+a"), (2, "+b"), (3, "b in a")),
            ["1 end d since None", "1 start a", "2 start b", "3 end a since 1"],
        ),
        (
            "switch in a context that does not hold",
            asked((1, "+a"), (3, "a in b")),
            ["1 end d since None", "1 start a"],
        ),
        (
            "switch to the default ends the current ones",
            asked((1, "+a"), (2, "+b"), (3, "d")),
            ["1 end d since None", "1 start a", "2 start b", "3 end a since 1", "3 end b since 2", "3 start d"],
        ),
        (
            "switch to the default out of one of two: it does not hold yet",
            asked((1, "+a"), (2, "+b"), (3, "d in a")),
            ["1 end d since None", "1 start a", "2 start b", "3 end a since 1"],
        ),
        ("switch from the default to itself", asked((3, "d")), []),
        ("switch out of the default", asked((3, "b in d")), ["3 end d since None", "3 start b"]),
        ("a query of the default context", asked((1, "+b"), (2, "+a in d")), ["1 end d since None", "1 start b"]),
        (
            "a query of a context that begins at this very instant",
            asked((1, "+a"), (1, "+b in a")),
            ["1 end d since None", "1 start a"],
        ),
        (
            "a query of a context that ends at this very instant",
            asked((1, "+a"), (4, "-a"), (4, "+b in a")),
            ["1 end d since None", "1 start a", "4 end a since 1", "4 start b"],
        ),
        (
            "the default's second window",
            asked((1, "+a"), (4, "-a"), (6, "b in d")),
            ["1 end d since None", "1 start a", "4 end a since 1", "4 start d", "6 end d since 4", "6 start b"],
        ),
        (
            "a match that began before the window",
            asked((2, "+a"), (5, "-a", None, 1)),
            ["2 end d since None", "2 start a"],
        ),
        (
            "a match that began with the window",
            asked((2, "+a"), (5, "-a", None, 2)),
            ["2 end d since None", "2 start a"],
        ),
        (
            "a match that began within the window",
            asked((2, "+a"), (5, "-a", None, 3)),
            ["2 end d since None", "2 start a", "5 end a since 2", "5 start d"],
        ),
    ],
)
def test_a_transaction(what: str, rows: list[Row], expected: list[str]) -> None:
    assert changes(rows) == expected, what
    assert changes(reversed(rows)) == expected, f"{what}, in another order"


OPENED = ["1 end d since None", "1 start a"]
CLOSED_AT_5 = [*OPENED, "5 end a since 1", "5 start d"]


@pytest.mark.parametrize(
    ("held_by", "what", "rows", "expected"),
    [
        ("bag", "until all causes are cleared", asked((1, "+a", "x"), (2, "+a", "y"), (3, "-a", "x")), OPENED),
        (
            "bag",
            "the last cause",
            asked((1, "+a", "x"), (2, "+a", "y"), (3, "-a", "x"), (5, "-a", "y")),
            CLOSED_AT_5,
        ),
        ("bag", "a cause that is none", asked((1, "+a", "x"), (3, "-a", "z")), OPENED),
        ("bag", "one cause twice", asked((1, "+a", "x"), (2, "+a", "x"), (5, "-a", "x")), OPENED),
        ("set", "one cause twice", asked((1, "+a", "x"), (2, "+a", "x"), (5, "-a", "x")), CLOSED_AT_5),
        ("bag", "two at one instant", asked((1, "+a", "x"), (1, "+a", "x"), (5, "-a", "x")), OPENED),
        ("set", "two at one instant", asked((1, "+a", "x"), (1, "+a", "x"), (5, "-a", "x")), CLOSED_AT_5),
        (
            "bag",
            "two cleared at one instant",
            asked((1, "+a", "x"), (1, "+a", "x"), (5, "-a", "x"), (5, "-a", "x")),
            CLOSED_AT_5,
        ),
        (
            "bag",
            "NULL is a cause",
            asked((1, "+a", None), (2, "+a", "y"), (3, "-a", "y"), (5, "-a", None)),
            CLOSED_AT_5,
        ),
        (
            "set",
            "cleared and given anew at one instant: a new window",
            asked((1, "+a", "x"), (5, "-a", "x"), (5, "+a", "x")),
            [*OPENED, "5 end a since 1", "5 start a"],
        ),
        (
            "bag",
            "one cleared and another given at one instant: the window goes on",
            asked((1, "+a", "x"), (2, "+a", "y"), (3, "-a", "x"), (3, "+a", "z"), (4, "-a", "y"), (5, "-a", "z")),
            CLOSED_AT_5,
        ),
        ("bag", "a switch ends it whatever its causes", asked((1, "+a", "x"), (2, "+a", "y"), (5, "d")), CLOSED_AT_5),
    ],
)
def test_a_transaction_with_causes(held_by: str, what: str, rows: list[Row], expected: list[str]) -> None:
    model = model_of(EVERYWHERE, {"a": held_by})  # type: ignore[dict-item]
    assert changes(rows, model) == expected, what
    assert changes(reversed(rows), model) == expected, f"{what}, in another order"
