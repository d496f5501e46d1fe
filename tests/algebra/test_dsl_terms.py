"""Expressions: operators and constants build the terms they should, and wrong use says so where it stands."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidegate as tg
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.terms import Attr, Lit, call
from tidegate.algebra.types import BIGINT, BOOLEAN, DATE, DOUBLE, DURATION, NULL, STRING, TIMESTAMP, DataType, decimal

r = tg.stream(
    "R",
    "time timestamp, until timestamp not null, n bigint, x double, s string, b boolean, d date, w interval "
    "day to second, p decimal(10,2), tick bigint",
    progress="time",
    temporal="tick",
)
tg_: Any = tg  # for numpy's values, which the signatures do not name
loose: Any = r  # for uses that type checkers refuse as well
MINUTE = Lit(60_000_000, DURATION)


@pytest.mark.parametrize(
    ("built", "term", "type_"),
    [
        (r.n + 1, call("add", Attr("n"), Lit(1, BIGINT)), BIGINT),
        (1 - r.n, call("sub", Lit(1, BIGINT), Attr("n")), BIGINT),
        (r.x * 2, call("mul", Attr("x"), Lit(2.0, DOUBLE)), DOUBLE),
        (r.n / 2, call("div", Attr("n"), Lit(2, BIGINT)), DOUBLE),
        (r.n.div(2), call("idiv", Attr("n"), Lit(2, BIGINT)), BIGINT),
        (r.n // 2, call("floordiv", Attr("n"), Lit(2, BIGINT)), BIGINT),
        (2 // r.n, call("floordiv", Lit(2, BIGINT), Attr("n")), BIGINT),
        (round(r.n, 2), call("round", Attr("n"), Lit(2, BIGINT)), BIGINT),
        (r.n % 2, call("mod", Attr("n"), Lit(2, BIGINT)), BIGINT),
        (2**r.x, call("power", Lit(2.0, DOUBLE), Attr("x")), DOUBLE),
        (-r.n, call("neg", Attr("n")), BIGINT),
        (abs(r.x), call("abs", Attr("x")), DOUBLE),
        (r.time + "1m", call("add", Attr("time"), MINUTE), TIMESTAMP),
        (tg.minutes(1) + r.time, call("add", MINUTE, Attr("time")), TIMESTAMP),
        (r.time - dt.timedelta(minutes=1), call("sub", Attr("time"), MINUTE), TIMESTAMP),
        (r.until - r.time, call("sub", Attr("until"), Attr("time")), DURATION),
        (r.until - r.time <= "1m", call("le", call("sub", Attr("until"), Attr("time")), MINUTE), BOOLEAN),
        (tg.minutes(1) < r.w, call("lt", MINUTE, Attr("w")), BOOLEAN),
        (r.time < "1970-01-01T00:01", call("lt", Attr("time"), Lit(60_000_000, TIMESTAMP)), BOOLEAN),
        (r.time < dt.datetime(1970, 1, 1, 0, 1), call("lt", Attr("time"), Lit(60_000_000, TIMESTAMP)), BOOLEAN),
        (r.time >= dt.date(1970, 1, 2), call("ge", Attr("time"), Lit(86_400_000_000, TIMESTAMP)), BOOLEAN),
        (r.d == "1970-01-03", call("eq", Attr("d"), Lit(2, DATE)), BOOLEAN),
        (r.d + 1, call("add", Attr("d"), Lit(1, BIGINT)), DATE),
        (r.p > 5, call("gt", Attr("p"), Lit(5, decimal(1, 0))), BOOLEAN),
        (r.p == Decimal("-2.50"), call("eq", Attr("p"), Lit(-250, decimal(3, 2))), BOOLEAN),
        (r.s != "a", call("ne", Attr("s"), Lit("a", STRING)), BOOLEAN),
        (r.b == True, call("eq", Attr("b"), Lit(True, BOOLEAN)), BOOLEAN),  # noqa: E712  # builds a comparison
        ((r.n > 1) & (r.n < 5) & r.b, call("and", call("gt", Attr("n"), Lit(1, BIGINT)), call("lt", Attr("n"), Lit(5, BIGINT)), Attr("b")), BOOLEAN),
        (r.b | ~r.b, call("or", Attr("b"), call("not", Attr("b"))), BOOLEAN),
        (r.b & True, call("and", Attr("b"), Lit(True, BOOLEAN)), BOOLEAN),
        (r.n.between(1, 2), call("and", call("le", Lit(1, BIGINT), Attr("n")), call("le", Attr("n"), Lit(2, BIGINT))), BOOLEAN),
        (r.n.is_in(1, 2), call("or", call("eq", Attr("n"), Lit(1, BIGINT)), call("eq", Attr("n"), Lit(2, BIGINT))), BOOLEAN),
        (r.n.same_as(None), call("eq_null_safe", Attr("n"), Lit(None, NULL)), BOOLEAN),
        (r.n.is_null(), call("is_null", Attr("n")), BOOLEAN),
        (r.s.is_not_null(), call("is_not_null", Attr("s")), BOOLEAN),
        (tg.floor(r.time, "1m"), call("floor", Attr("time"), MINUTE), TIMESTAMP),
        (tg.ceil(r.tick, 20), call("ceil", Attr("tick"), Lit(20, BIGINT)), BIGINT),
        (tg.tumbling(r.time, "1m"), call("add", call("floor", Attr("time"), MINUTE), MINUTE), TIMESTAMP),
        (tg.max(r.time, r.until), call("greatest", Attr("time"), Attr("until")), TIMESTAMP),
        (tg.min(r.n, 3), call("least", Attr("n"), Lit(3, BIGINT)), BIGINT),
        (tg.when(r.b, r.x, 0), call("if", Attr("b"), Attr("x"), Lit(0.0, DOUBLE)), DOUBLE),
        (tg.when(r.b, "yes"), call("if", Attr("b"), Lit("yes", STRING), Lit(None, NULL)), STRING),
        (tg.coalesce(r.x, 0), call("coalesce", Attr("x"), Lit(0.0, DOUBLE)), DOUBLE),
        (tg.concat(r.s, "-", r.s), call("concat", Attr("s"), Lit("-", STRING), Attr("s")), STRING),
        (r.n.cast("string"), call("cast_string", Attr("n")), STRING),
        (r.n.cast("int"), call("cast_bigint", Attr("n")), BIGINT),
        (r.s.try_cast("timestamp"), call("try_cast_timestamp", Attr("s")), TIMESTAMP),
        (r.n.cast("decimal(12,2)"), call("cast_decimal_12_2", Attr("n")), decimal(12, 2)),
        (r.s.substring(1, 2).upper(), call("upper", call("substring", Attr("s"), Lit(1, BIGINT), Lit(2, BIGINT))), STRING),
        (r.s.length(), call("length", Attr("s")), BIGINT),
        (r.s.starts_with("a"), call("starts_with", Attr("s"), Lit("a", STRING)), BOOLEAN),
        (r.s.replace("a", "b"), call("replace", Attr("s"), Lit("a", STRING), Lit("b", STRING)), STRING),
        (r.time.hour(), call("hour", Attr("time")), BIGINT),
        (r.time.to_date(), call("to_date", Attr("time")), DATE),
        (r.n.try_add(1), call("try_add", Attr("n"), Lit(1, BIGINT)), BIGINT),
        (r.n.try_div(0), call("try_idiv", Attr("n"), Lit(0, BIGINT)), BIGINT),
        (r.x.sqrt(), call("sqrt", Attr("x")), DOUBLE),
        (tg.duration("PT1M"), MINUTE, DURATION),
        (tg.seconds(0.5), Lit(500_000, DURATION), DURATION),
        (tg.days(1) + tg.hours(1), Lit(90_000_000_000, DURATION), DURATION),
        (tg.timestamp("1970-01-01T00:00:01Z"), Lit(1_000_000, TIMESTAMP), TIMESTAMP),
        (tg.lit(None), Lit(None, NULL), NULL),
        (tg.lit(Decimal("1.50")), Lit(150, decimal(3, 2)), decimal(3, 2)),
    ],
    ids=lambda part: repr(part) if isinstance(part, Expression) else "",
)  # fmt: skip
def test_what_users_write_is_the_term_that_it_says(built: Expression, term: object, type_: DataType) -> None:
    assert built._term == term
    assert built.type == type_


@pytest.mark.parametrize(
    ("wrong", "code", "hint"),
    [
        (lambda: r.tme, "TG101", "did you mean time"),
        (lambda: r["tme"], "TG101", "did you mean time"),
        (lambda: loose.b and loose.b, "TG118", "use & instead of and"),
        (lambda: loose.b or loose.b, "TG118", "use | instead of or"),
        (lambda: not loose.b, "TG118", "use ~ instead of not"),
        (lambda: 1 < r.n < 3, "TG118", "two conditions"),
        (lambda: 1 if loose.b else 2, "TG118", "tg.when"),
        (lambda: r.n in (3, 4), "TG118", "is_in"),
        (lambda: r.n == None, "TG110", "is_null()"),  # noqa: E711  # wrong on purpose
        (lambda: r.n < None, "TG110", "NULL has no order"),
        (lambda: r.n + None, "TG110", "is_null()"),
        (lambda: r.n > 5 & r.n, "TG102", "parentheses"),
        (lambda: r.s > 5, "TG102", "cast"),
        (lambda: r.time > 5, "TG102", "give the number a unit"),
        (lambda: r.time + r.until, "TG102", ""),
        (lambda: ~r.n, "TG102", "compare"),
        (lambda: r.n == object(), "TG110", "values are"),
        (lambda: r.n + 2**63, "TG110", "double"),
        (lambda: r.time < "yesterday", "TG110", "ISO"),
        (lambda: r.time + "soon", "TG104", "90s"),
        (lambda: tg.floor(r.time, 5), "TG102", "duration"),
        (lambda: tg.floor(r.time, "0s"), "TG102", "greater than zero"),
        (lambda: tg.days(10**12), "TG104", "shorter"),
        (lambda: tg.sum(r.x) / tg.count(), "TG115", "agg()"),  # type: ignore[operator]  # what is tested
        (lambda: r.x + tg.sum(r.x), "TG115", "agg()"),  # type: ignore[operator]  # what is tested
        (lambda: tg.max("x"), "TG115", "relation.x"),
        (lambda: tg.sum(r.s), "TG102", "cast"),
        (lambda: tg.when(r.n, 1, 2), "TG102", "compare"),
        (lambda: r.n.cast("strng"), "TG111", "string"),
        (lambda: r.n.is_in(), "TG114", "is_in"),
        (lambda: tg.lit(Decimal("1e30")), "TG110", "round"),
        (lambda: tg.lit(Decimal("NaN")), "TG110", "doubles"),
    ],
)
def test_wrong_use_fails_at_its_line_with_a_suggestion(wrong: Callable[[], object], code: str, hint: str) -> None:
    with pytest.raises(tg.QueryError) as raised:
        wrong()
    error = raised.value
    assert error.code == code
    assert hint in error.hint
    assert error.site is not None
    assert Path(error.site.file).name == "test_dsl_terms.py"
    assert error.site.line == wrong.__code__.co_firstlineno


def test_handles_print_as_what_they_are() -> None:
    assert repr((r.n + 1 > 2) & ~r.b) == "n + 1 > 2 & ~b"
    assert repr(r.until - r.time <= tg.minutes(90)) == "until - time <= 1h 30m"
    assert repr(tg.first(r.x, by=r.time)) == "first(x, by=time)"
    assert repr(tg.count()) == "count()"


def test_hasattr_and_getattr_work_on_relations() -> None:
    assert not hasattr(r, "nothing")
    assert getattr(r, "nothing", None) is None
    assert "until" in dir(r)


def test_numpy_s_scalars_are_the_python_values_that_they_are() -> None:
    r: Any = tg.stream("R", "time timestamp, k bigint, x double, s string, ok boolean, d date", progress="time")
    instant, day, span = (
        np.datetime64("2026-01-02T03:04:05", "ns"),
        np.datetime64("2026-01-02"),
        np.timedelta64(90, "s"),
    )
    for one, other in (
        (r.k == np.int64(5), r.k == 5),
        (np.int32(5) <= r.k, r.k >= 5),
        (r.x == np.float64(5), r.x == 5.0),
        (r.x * np.float32(0.5), r.x * 0.5),
        (r.ok == np.bool_(True), r.ok == True),  # noqa: E712  # builds a condition
        (r.s == np.str_("a"), r.s == "a"),
        (r.time > instant, r.time > dt.datetime(2026, 1, 2, 3, 4, 5)),
        (r.d == day, r.d == dt.date(2026, 1, 2)),
        (r.time + span, r.time + dt.timedelta(seconds=90)),
        (r.time <= tg_.timestamp(instant), r.time <= "2026-01-02T03:04:05"),
        (r.time + tg_.duration(span), r.time + "90s"),
        (r.time + tg_.minutes(np.int64(2)), r.time + "2m"),
        (tg.lit(np.int8(3)), tg.lit(3)),
    ):
        assert one._term == other._term
        assert repr(one) == repr(other)
        assert "np." not in repr(one)


def test_numpy_s_values_without_an_equal_are_refused() -> None:
    r: Any = tg.stream("R", "time timestamp, x double", progress="time")
    for value in (np.datetime64("NaT"), np.timedelta64(1, "ns"), np.timedelta64(1, "M"), np.longdouble(1)):
        with pytest.raises(tg.QueryError, match="TG110"):
            tg.lit(value)
    with pytest.raises(tg.QueryError, match="TG110"):
        _ = r.x == np.array([1.0])


def test_beside_dates_durations_of_whole_days_are_days() -> None:
    for one, other in (
        (r.d + "1 day", r.d + 1),
        ("2 weeks" + r.d, 14 + r.d),
        (r.d - "P1D", r.d - 1),
        (r.d + dt.timedelta(3), r.d + 3),
        (loose.d + np.timedelta64(3, "D"), r.d + 3),
        (tg.days(3) + r.d, 3 + r.d),
        (r.d.try_sub("24h"), r.d.try_sub(1)),
        (tg.floor(r.d, "7 days"), tg.floor(r.d, 7)),
        (tg.ceil(r.d, tg.days(7)), tg.ceil(r.d, 7)),
        (tg.tumbling(r.d, "1d"), tg.tumbling(r.d, 1)),
        (r.d - r.d <= "7 days", r.d - r.d <= 7),
        ((r.d - (r.d + 1)).between("1d", tg.days(2)), (r.d - (r.d + 1)).between(1, 2)),
        (r.d - "2026-01-31", r.d - dt.date(2026, 1, 31)),
    ):
        assert one._term == other._term


@pytest.mark.parametrize(
    ("wrong", "code", "hint"),
    [
        (lambda: r.d + "12h", "TG104", 'write "2d"'),
        (lambda: r.d - tg.hours(36), "TG104", "declare a timestamp instead of the date"),
        (lambda: tg.floor(r.d, "90m"), "TG104", 'write "2d"'),
        (lambda: r.d - r.d < "1h", "TG104", 'write "2d"'),
        (lambda: r.d + "1 dya", "TG104", "did you mean day"),
        (lambda: r.d + r.w, "TG102", 'd + "1 day"'),
        (lambda: tg.floor(r.d, r.n), "TG102", '"7 days", or 7'),
        (lambda: r.n - r.n <= "7 days", "TG102", "write a number"),
        (lambda: r.tick + "5s", "TG102", "write a number"),
    ],
)
def test_beside_dates_and_numbers_other_durations_are_told_what_fits(
    wrong: Callable[[], object], code: str, hint: str
) -> None:
    with pytest.raises(tg.QueryError, match=code) as told:
        wrong()
    assert hint in told.value.hint
