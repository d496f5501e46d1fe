"""Types of operations and what they mean, by hand-computed examples."""

from __future__ import annotations

import datetime as dt
import itertools
import math

import pytest

from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import EvaluationError, evaluate_term
from tidegate.algebra.formulas import UNITS, And, Compare, Floor, Not, Opaque, Or, Shift, Var, temporal_term
from tidegate.algebra.functions.aggregates import Aggregate, Function, aggregate_type
from tidegate.algebra.functions.numbers import MOD
from tidegate.algebra.printing.plans import formula_text
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Attr, Call, Lit, Param, Term, Value, call
from tidegate.algebra.typed.kernels import DAY, civil
from tidegate.algebra.typed.operations import OPERATIONS, operation, resolve, result_type
from tidegate.algebra.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    DURATION,
    INT64_MAX,
    INT64_MIN,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    decimal,
)

NAN = float("nan")


def of(op: str, *values: tuple[Value, DataType]) -> Value:
    """The operation over attributes that hold these values: never constants, which might be folded."""
    schema = Schema(tuple(Attribute(f"a{i}", type_) for i, (_, type_) in enumerate(values)))
    row = {f"a{i}": value for i, (value, _) in enumerate(values)}
    return evaluate_term(Call(op, tuple(map(Attr, row))), row, schema)


def type_of(op: str, *types: DataType) -> str:
    return str(result_type(op, tuple(Attr(f"a{i}") for i in range(len(types))), types))


@pytest.mark.parametrize(
    ("op", "types", "result"),
    [
        ("add", (TIMESTAMP, DURATION), "timestamp"),
        ("add", (DURATION, TIMESTAMP), "timestamp"),
        ("sub", (TIMESTAMP, DURATION), "timestamp"),
        ("sub", (TIMESTAMP, TIMESTAMP), "duration"),
        ("add", (DATE, BIGINT), "date"),
        ("sub", (DATE, DATE), "bigint"),
        ("mul", (BIGINT, DURATION), "duration"),
        ("idiv", (DURATION, DURATION), "bigint"),
        ("mod", (DURATION, DURATION), "duration"),
        ("div", (DURATION, DURATION), "double"),
        ("div", (BIGINT, BIGINT), "double"),
        ("add", (BIGINT, DOUBLE), "double"),
        ("add", (decimal(10, 2), decimal(12, 4)), "decimal(13,4)"),
        ("mul", (decimal(10, 2), decimal(5, 1)), "decimal(15,3)"),
        ("least", (BIGINT, DOUBLE), "double"),
        ("coalesce", (NULL, STRING), "string"),
        ("if", (BOOLEAN, NULL, DATE), "date"),
        ("eq", (decimal(10, 2), BIGINT), "boolean"),
        ("cast_decimal_9_3", (BIGINT,), "decimal(9,3)"),
    ],
)
def test_types(op: str, types: tuple[DataType, ...], result: str) -> None:
    assert type_of(op, *types) == result


@pytest.mark.parametrize(
    ("op", "types", "hint"),
    [
        ("add", (TIMESTAMP, BIGINT), "give the number a unit"),
        ("lt", (TIMESTAMP, DATE), "declare both as one type"),
        ("lt", (TIMESTAMP, STRING), '.cast("timestamp")'),
        ("add", (DATE, DURATION), "whole days"),
        ("and", (BOOLEAN, BIGINT), "compare with something"),
        ("add", (TIMESTAMP, TIMESTAMP), ""),
        ("floor", (TIMESTAMP, DURATION), "a duration as its unit"),
        ("cast_decimal_9_2", (DOUBLE,), "for hundredths"),
        ("cast_string", (DURATION,), '.cast("bigint") first'),
        ("mul", (decimal(18, 10), decimal(18, 10)), "smaller scale"),
        ("coalesce", (NULL, NULL), ""),
        ("not", (BOOLEAN, BOOLEAN), ""),
    ],
)
def test_mismatches_are_refused_with_a_suggestion(op: str, types: tuple[DataType, ...], hint: str) -> None:
    with pytest.raises(QueryError, match="TG102") as refused:
        type_of(op, *types)
    assert hint in refused.value.hint


def test_unknown_operations_name_their_neighbours() -> None:
    with pytest.raises(QueryError, match="TG131") as refused:
        operation("greatset")
    assert "greatest" in refused.value.hint


def test_progress_values_compare_with_instants_of_every_type() -> None:
    for type_ in (TIMESTAMP, DATE, BIGINT):
        term = call("le", Attr("t"), call("add", Param("b"), Lit(5, BIGINT)))
        schema = Schema((Attribute("t", type_, nullable=False, temporal=True),))
        assert evaluate_term(term, {"t": 12, "$b": 7}, schema) is True
        assert evaluate_term(term, {"t": 13, "$b": 7}, schema) is False


def test_logic_is_three_valued() -> None:
    values = (True, False, None)
    conjunctions = [of("and", (a, BOOLEAN), (b, BOOLEAN)) for a in values for b in values]
    assert conjunctions == [True, False, None, False, False, False, None, False, None]
    disjunctions = [of("or", (a, BOOLEAN), (b, BOOLEAN)) for a in values for b in values]
    assert disjunctions == [True, True, True, True, False, None, True, None, None]
    assert [of("not", (a, BOOLEAN)) for a in values] == [False, True, None]


FAILS = call("eq", call("idiv", Lit(1, BIGINT), Attr("zero")), Lit(1, BIGINT))
ROW: dict[str, Value] = {"zero": 0, "yes": True, "no": False, "unknown": None}
SCHEMA = Schema((Attribute("zero", BIGINT), *(Attribute(n, BOOLEAN) for n in ("yes", "no", "unknown"))))


@pytest.mark.parametrize(
    ("term", "value"),
    [
        (call("and", Attr("no"), FAILS), False),
        (call("or", Attr("yes"), FAILS), True),
        (call("and", Attr("unknown"), Attr("no"), FAILS), False),
        (call("if", Attr("unknown"), FAILS, Attr("no")), False),
        (call("coalesce", Attr("unknown"), Attr("yes"), FAILS), True),
    ],
)
def test_what_no_longer_matters_does_not_fail(term: Term, value: Value) -> None:
    assert evaluate_term(term, ROW, SCHEMA) is value


@pytest.mark.parametrize(
    "term",
    [
        call("and", FAILS, Attr("no")),
        call("and", Attr("unknown"), FAILS),
        call("or", Attr("no"), FAILS),
        call("or", Attr("unknown"), FAILS),
        call("if", FAILS, Attr("yes"), Attr("no")),
        call("coalesce", Attr("unknown"), FAILS),
        call("is_null", FAILS),
        call("eq_null_safe", Attr("unknown"), FAILS),
    ],
)
def test_what_still_matters_fails(term: Term) -> None:
    with pytest.raises(EvaluationError, match="TG302"):
        evaluate_term(term, ROW, SCHEMA)


def test_integer_arithmetic() -> None:
    pairs = [(7, 2), (-7, 2), (7, -2), (-7, -2)]
    assert [of("idiv", (a, BIGINT), (b, BIGINT)) for a, b in pairs] == [3, -3, -3, 3]
    assert [of("floordiv", (a, BIGINT), (b, BIGINT)) for a, b in pairs] == [3, -4, -4, 3]
    assert [of("mod", (a, BIGINT), (b, BIGINT)) for a, b in pairs] == [1, 1, -1, -1]
    assert of("div", (7, BIGINT), (2, BIGINT)) == 3.5
    assert of("mod", (INT64_MIN, BIGINT), (-1, BIGINT)) == 0
    assert of("add", (None, BIGINT), (1, BIGINT)) is None
    assert of("idiv", (None, BIGINT), (0, BIGINT)) is None


@pytest.mark.parametrize(
    ("op", "values", "code"),
    [
        ("add", ((INT64_MAX, BIGINT), (1, BIGINT)), "TG301"),
        ("sub", ((INT64_MIN, BIGINT), (1, BIGINT)), "TG301"),
        ("mul", ((2**32, BIGINT), (2**31, BIGINT)), "TG301"),
        ("neg", ((INT64_MIN, BIGINT),), "TG301"),
        ("abs", ((INT64_MIN, BIGINT),), "TG301"),
        ("idiv", ((INT64_MIN, BIGINT), (-1, BIGINT)), "TG301"),
        ("add", ((10**18 - 1, decimal(18, 0)), (1, decimal(18, 0))), "TG301"),
        ("add", ((10**17, BIGINT), (1, decimal(18, 2))), "TG301"),
        ("cast_decimal_5_2", ((1000, BIGINT),), "TG301"),
        ("div", ((1.0, DOUBLE), (-0.0, DOUBLE)), "TG302"),
        ("mod", ((1, BIGINT), (0, BIGINT)), "TG302"),
        ("cast_bigint", (("1.5", STRING),), "TG303"),
        ("cast_bigint", ((2.0**63, DOUBLE),), "TG303"),
        ("cast_bigint", ((NAN, DOUBLE),), "TG303"),
        ("cast_date", (("2013-02-29", STRING),), "TG303"),
    ],
)
def test_failures(op: str, values: tuple[tuple[Value, DataType], ...], code: str) -> None:
    with pytest.raises(EvaluationError, match=code):
        of(op, *values)
    if f"try_{op}" in OPERATIONS:
        assert of(f"try_{op}", *values) is None


def test_a_try_form_forgives_itself_alone() -> None:
    term = call("try_add", call("add", Attr("x"), Attr("x")), Lit(1, BIGINT))
    with pytest.raises(EvaluationError) as failed:
        evaluate_term(term, {"x": INT64_MAX}, Schema((Attribute("x", BIGINT),)))
    assert failed.value.message == "x + x: the result is out of range"
    assert failed.value.problems[0].because == (f"x = {INT64_MAX}",) * 2


def test_an_evaluation_error_survives_as_text() -> None:
    with pytest.raises(EvaluationError) as failed:
        of("idiv", (1, BIGINT), (0, BIGINT))
    again = EvaluationError(f"some engine failed: {failed.value}\n\nThis error occurred somewhere\n")
    assert again.problems == failed.value.problems


def test_the_range_of_a_remainder_holds_all_of_them() -> None:
    ends = range(-4, 5)
    ranges = [(low, high) for low in ends for high in ends if low <= high]
    for a, b in itertools.product(ranges, ranges):
        assert MOD.range is not None
        known = MOD.range(a, b)
        assert known is not None
        low, high = known
        found = {x % y for x in range(a[0], a[1] + 1) for y in range(b[0], b[1] + 1) if y}
        assert all(low <= one <= high for one in found), (a, b)


def test_comparisons() -> None:
    def doubles(op: str, a: float, b: float) -> Value:
        return of(op, (a, DOUBLE), (b, DOUBLE))

    assert doubles("eq", NAN, NAN) is True
    assert doubles("gt", NAN, math.inf) is True
    assert doubles("eq", 0.0, -0.0) is True
    assert doubles("lt", -0.0, 0.0) is False
    assert doubles("least", NAN, 1.0) == 1.0
    assert of("lt", ("\uffff", STRING), ("𝄞", STRING)) is True  # UTF-8 bytes; UTF-16 units would say otherwise
    assert of("eq", (2**53 + 1, BIGINT), (2.0**53, DOUBLE)) is True  # compared as doubles
    assert of("eq", (150, decimal(5, 2)), (1500, decimal(5, 3))) is True
    assert of("lt", (10**18 - 1, decimal(18, 0)), (INT64_MAX, BIGINT)) is True
    assert of("gt", (-(10**17), decimal(18, 18)), (INT64_MIN, BIGINT)) is True
    assert of("eq_null_safe", (None, BIGINT), (None, BIGINT)) is True
    assert of("ne", (None, BIGINT), (1, BIGINT)) is None
    assert of("greatest", (None, BIGINT), (1, BIGINT)) is None


def test_decimals() -> None:
    assert of("add", (150, decimal(5, 2)), (25, decimal(5, 1))) == 400  # 1.50 + 2.5
    assert of("mul", (150, decimal(5, 2)), (25, decimal(5, 1))) == 3750
    assert [of("cast_decimal_9_1", (x, decimal(5, 2))) for x in (125, -125, 124)] == [13, -13, 12]
    assert of("cast_bigint", (-199, decimal(5, 2))) == -1
    assert of("cast_double", (-150, decimal(5, 2))) == -1.5


def test_rounding_to_units() -> None:
    def rounded(op: str, value: int, unit: int) -> Value:
        term = call(op, Attr("t"), Lit(unit, DURATION))
        return evaluate_term(term, {"t": value}, Schema((Attribute("t", TIMESTAMP, nullable=False, temporal=True),)))

    assert [rounded("floor", t, 10) for t in (-11, -10, -1, 0, 9, 10)] == [-20, -10, -10, 0, 0, 10]
    assert [rounded("ceil", t, 10) for t in (-11, -10, -1, 0, 1, 10)] == [-10, -10, 0, 0, 10, 10]


def test_strings() -> None:
    assert of("length", ("a𝄞", STRING)) == 2
    places = [(1, 2), (0, 2), (-1, 3), (4, 9), (2, -1)]
    parts = [of("substring", ("hello", STRING), (start, BIGINT), (length, BIGINT)) for start, length in places]
    assert parts == ["he", "h", "h", "lo", ""]
    assert of("substring", ("hello", STRING), (-(2**62), BIGINT), (2**62 + 3, BIGINT)) == "he"
    assert of("upper", ("aé", STRING)) == "Aé"
    assert (
        of("initcap", ("élan e\u0301TÉ ñandú o'neill a_b 3rd ßx", STRING)) == "Élan E\u0301té Ñandú O'Neill A_B 3rd Ssx"
    )
    assert of("trim", (" \ta ", STRING)) == "\ta"
    assert of("contains", ("a.b", STRING), (".", STRING)) is True
    assert of("concat", ("a", STRING), (None, STRING)) is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("2000-02-29T23:59:58.000001", (2000, 2, 29, 23, 59, 58, 2)),
        ("1969-12-31T00:00:00", (1969, 12, 31, 0, 0, 0, 3)),
        ("0001-01-01T00:00:00", (1, 1, 1, 0, 0, 0, 1)),
        ("9999-12-31T12:30:00", (9999, 12, 31, 12, 30, 0, 5)),
    ],
)
def test_parts_of_instants(text: str, parts: tuple[int, ...]) -> None:
    ticks = of("cast_timestamp", (text, STRING))
    names = ("year", "month", "day", "hour", "minute", "second", "day_of_week")
    assert tuple(of(name, (ticks, TIMESTAMP)) for name in names) == parts
    assert (
        of("cast_string", (ticks, TIMESTAMP))
        == dt.datetime.fromisoformat(text).isoformat(timespec="microseconds") + "Z"
    )


def test_the_calendar_is_total() -> None:
    before = dt.date(1, 1, 1).toordinal() - dt.date(1970, 1, 1).toordinal() - 1
    assert civil(before) == (0, 12, 31)
    assert civil(INT64_MAX)[1:] == civil(INT64_MAX % 146_097)[1:]


def test_temporal_terms_never_need_checks() -> None:
    schema = Schema(
        (*tuple(Attribute(n, TIMESTAMP, nullable=False, temporal=True) for n in "tu"), Attribute("n", BIGINT))
    )
    shifted = call("add", call("ceil", Attr("t"), Lit(3_600_000_000, DURATION)), Lit(2**54, DURATION))
    assert not resolve(call("lt", shifted, call("least", Attr("u"), Attr("t"))), schema).fallible
    assert not resolve(call("le", call("sub", Attr("t"), Attr("u")), Lit(5, DURATION)), schema).fallible
    assert not resolve(call("idiv", Attr("n"), Lit(2, BIGINT)), schema).fallible
    assert resolve(call("add", Attr("n"), Lit(1, BIGINT)), schema).fallible
    assert resolve(call("idiv", Attr("n"), Lit(-1, BIGINT)), schema).fallible


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (call("sub", Attr("a"), call("sub", Attr("b"), Attr("c"))), "a - (b - c)"),
        (call("sub", call("sub", Attr("a"), Attr("b")), Attr("c")), "a - b - c"),
        (call("and", Attr("a"), call("or", Attr("b"), call("not", Attr("c")))), "a & (b | ~c)"),
        (call("lt", Attr("t"), call("add", Attr("u"), Lit(5_400_000_000, DURATION))), "t < u + 1h 30m"),
        (call("eq", Attr("s"), Lit("it's", STRING)), "s = 'it''s'"),
        (call("ge", Attr("t"), Lit(0, TIMESTAMP)), "t >= 1970-01-01T00:00:00Z"),
        (call("mul", call("add", Attr("a"), Lit(-5, decimal(5, 2))), Param("b")), "(a + -0.05) * $b"),
        (call("if", Attr("a"), Lit(None, BIGINT), Lit(True, BOOLEAN)), "if(a, NULL, true)"),
    ],
)
def test_terms_print_as_what_they_are(term: Term, text: str) -> None:
    assert term_text(term) == text


def test_formulas_print_with_the_signs_of_the_paper() -> None:
    opaque = Opaque(call("eq", Attr("k"), Attr("j")))
    shifted = Compare(Floor(Var("t"), 3_600_000_000), "<=", Shift(Var("u"), -5))
    assert formula_text(And((Or((shifted, opaque)), Not(opaque)))) == "(floor(t, 1h) ≤ u - 5us ∨ [k = j]) ∧ ¬[k = j]"
    assert formula_text(Not(Compare(Var("t"), "!=", Shift(Var("u"), 5))), integer=True) == "¬(t ≠ u + 5)"


def test_types_of_aggregates() -> None:
    x, t = Attr("x"), Attr("t")
    assert aggregate_type(Aggregate("n", Function.COUNT), None, None) == BIGINT
    assert aggregate_type(Aggregate("n", Function.SUM, x), decimal(5, 2), None) == decimal(18, 2)
    assert aggregate_type(Aggregate("n", Function.AVG, x), BIGINT, None) == DOUBLE
    assert aggregate_type(Aggregate("n", Function.FIRST, x, t), STRING, TIMESTAMP) == STRING
    for wrong, type_, by in [
        (Aggregate("n", Function.SUM, x), STRING, None),
        (Aggregate("n", Function.AVG, x), DURATION, None),
        (Aggregate("n", Function.LAST, x), STRING, None),
        (Aggregate("n", Function.MAX, x, t), STRING, TIMESTAMP),
        (Aggregate("n", Function.MAX), None, None),
    ]:
        with pytest.raises(QueryError):
            aggregate_type(wrong, type_, by)


def test_operations_are_called_temporal_that_make_instants_of_instants() -> None:
    schema = Schema(tuple(Attribute(name, TIMESTAMP, nullable=False, temporal=True) for name in "tu"))
    shift = Lit(5, DURATION)
    operands: list[tuple[Term, ...]] = [
        (Attr("t"),),
        (Attr("t"), shift),
        (Attr("t"), Attr("u")),
        (Attr("t"), Lit("week", STRING)),
    ]
    found = {name for name in OPERATIONS if any(temporal_term(Call(name, args), schema) for args in operands)}
    assert found == {name for name, one in OPERATIONS.items() if one.temporal}


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a*)*", "can match no characters"),
        ("(a)+", "a group that is repeated"),
        (r"\bx", "not the same on all engines"),
        ("(?=a)", "engines know differently"),
        ("a)", "was not opened"),
        ("(a", "is not closed"),
        ("[a", "is not closed"),
        ("[]", "without a character"),
        ("[b-a]", "from the later to the earlier"),
        ("a**", "a repetition of a repetition"),
        ("a{2,1}", "the smaller number first"),
        ("a{9999}", "up to 1000"),
        ("a{x}", "begins no repetition"),
        ("*a", "without what it belongs to"),
        ("a\\", "nothing follows"),
        ("[[a]]", "inside of a"),
    ],
)
def test_patterns_that_are_none_or_differ_between_engines_are_refused(pattern: str, why: str) -> None:
    with pytest.raises(QueryError, match="TG134") as refused:
        resolve(call("regexp_like", Attr("s"), Lit(pattern, STRING)), {"s": Attribute("s", STRING)})
    assert why in str(refused.value)


def test_a_pattern_that_matches_nothing_is_not_replaced() -> None:
    with pytest.raises(QueryError, match="matches no characters"):
        resolve(
            call("regexp_replace", Attr("s"), *(Lit(one, STRING) for one in ("a*", ""))), {"s": Attribute("s", STRING)}
        )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.a", "x\ny"),
        ("$.b[1]", "1.50"),
        ('$["c d"]', '{"e":[true,null,"é\\""]}'),
        ("$.c", None),
        ("$.b[7]", None),
        ("$.n", None),
        ("$.half", None),
    ],
)
def test_json_by_path(path: str, value: str | None) -> None:
    text = r'{"a": "x\ny", "b": [0, 1.50], "c d": {"e": [true, null, "\u00e9\""]}, "n": null, "half": "\ud800"}'
    term = call("json", Attr("s"), Lit(path, STRING))
    assert evaluate_term(term, {"s": text}, {"s": Attribute("s", STRING)}) == value
    assert evaluate_term(term, {"s": text[:-1]}, {"s": Attribute("s", STRING)}) is None


@pytest.mark.parametrize(
    ("op", "constant", "given", "wanted"),
    [
        ("truncate", "quarter", "2026-05-31", "2026-04-01T00:00:00.000000Z"),
        ("truncate", "week", "2026-03-01T05:00", "2026-02-23T00:00:00.000000Z"),
        ("truncate", "year", "1969-12-31T23:59:59.5", "1969-01-01T00:00:00.000000Z"),
        ("truncate", "minute", "1969-12-31T23:59:59.5", "1969-12-31T23:59:00.000000Z"),
        ("to_local", "Europe/Berlin", "2026-07-01T12:00", "2026-07-01T14:00:00.000000Z"),
        # The hour that there is twice, and the hour that there is not.
        ("from_local", "Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30:00.000000Z"),
        ("from_local", "Europe/Berlin", "2026-03-29T02:30", "2026-03-29T01:30:00.000000Z"),
        ("format", "%A %d %B %y", None, None),
        ("format", "%a %d %b %Y %I%p %j %z 100%%", "2026-03-02T00:05", "Mon 02 Mar 2026 12AM 061 +0000 100%"),
        ("parse_timestamp", "%d %b %Y %I:%M%p %z", "02 Mar 2026 12:05AM -01:30", "2026-03-02T01:35:00.000000Z"),
        ("parse_timestamp", "%Y/%j", "2024/366", "2024-12-31T00:00:00.000000Z"),
        ("parse_timestamp", "%Y/%j", "2025/366", "TG303"),
        ("parse_timestamp", "%d.%m.%Y", "31.02.2026", "TG303"),
        ("parse_timestamp", "%d.%m", None, None),
    ],
)
def test_instants_and_text(op: str, constant: str, given: str | None, wanted: str | None) -> None:
    type_ = STRING if op == "parse_timestamp" else TIMESTAMP
    term = call(op, Attr("x"), Lit(constant, STRING))
    attributes = {"x": Attribute("x", type_)}
    if given is None:
        with pytest.raises(QueryError, match="TG102"):
            resolve(term, attributes)
        return
    value: Value = (
        given if type_ == STRING else of("cast_timestamp", (given if "T" in given else given + "T00:00", STRING))
    )
    if wanted == "TG303":
        with pytest.raises(EvaluationError, match=wanted):
            evaluate_term(term, {"x": value}, attributes)
        return
    found = evaluate_term(term, {"x": value}, attributes)
    assert (found if op == "format" else of("cast_string", (found, TIMESTAMP))) == wanted


@pytest.mark.parametrize(
    ("day", "months", "wanted"), [("2024-01-31", 1, "2024-02-29"), ("2026-03-31", -13, "2025-02-28")]
)
def test_months_are_added_up_to_the_last_day(day: str, months: int, wanted: str) -> None:
    term = call("add_months", Attr("x"), Lit(months, BIGINT))
    found = evaluate_term(term, {"x": of("cast_date", (day, STRING))}, {"x": Attribute("x", DATE)})
    assert of("cast_string", (found, DATE)) == wanted


def test_truncated_instants_are_the_instants_that_the_analysis_takes_them_for() -> None:
    schema = Schema((Attribute("t", TIMESTAMP, nullable=False, temporal=True),))
    floors = {
        "second": Floor(Var("t"), 10**6),
        "minute": Floor(Var("t"), 60 * 10**6),
        "hour": Floor(Var("t"), 3600 * 10**6),
        "day": Floor(Var("t"), DAY),
        "week": Shift(Floor(Shift(Var("t"), 3 * DAY), 7 * DAY), -3 * DAY),
    }
    instants = [
        0,
        -1,
        1,
        4 * DAY,
        4 * DAY - 1,
        -3 * DAY,
        -3 * DAY - 1,
        20_000 * DAY + 12_345_678_901,
        -20_000 * DAY - 1,
        2**60,
    ]
    for unit, expected in floors.items():
        term = Call("truncate", (Attr("t"), Lit(unit, STRING)))
        assert temporal_term(term, schema) == expected
        size, before = (7 * DAY, 3 * DAY) if unit == "week" else (UNITS[unit], 0)
        for t in instants:
            assert evaluate_term(term, {"t": t}, schema) == (t + before) // size * size - before
    for unit in ("month", "quarter", "year"):
        assert temporal_term(Call("truncate", (Attr("t"), Lit(unit, STRING))), schema) is None
