"""Parts of the calendar by which rows are put together, and the windows that are meant by them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import Distinct, Group, Imbed, Node, Rename
from tidegate.algebra.ordered.windows.calendar import Unit
from tidegate.algebra.ordered.windows.kinds import CalendarWindow
from tidegate.algebra.ordered.windows.node import END, START, Windows
from tidegate.algebra.terms import Attr, Call, Lit, Term, attributes_of, substitute, subterms
from tidegate.algebra.types import Kind
from tidegate.analysis.validity.forms import Form, by_option, named_below, order_option
from tidegate.analysis.validity.places import Unary, unary_operators

#: Operations that give the day of a timestamp, which is no instant to the analysis.
DATES: Final = ("to_date", "cast_date", "try_cast_date")
#: Operations that give what comes again every week, month or year.
_DAYS: Final = ("day", "day_of_year", "day_of_week", "week", "week_year")
_OF_A_DAY: Final = ("hour", "minute", "second")
_UTC: Final = "UTC"
#: The parts by which a unit of the calendar is told from all others of its kind.
_TOLD_BY: Final = MappingProxyType[Unit, frozenset[str]](
    {
        "day": frozenset({"year", "month", "day"}),
        "week": frozenset({"week_year", "week"}),
        "month": frozenset({"year", "month"}),
        "quarter": frozenset({"year", "quarter"}),
        "year": frozenset({"year"}),
    }
)
#: The parts that directives of `format` show.
_SHOWN: Final = MappingProxyType(
    {
        "%Y": "year",
        **dict.fromkeys(("%m", "%b", "%B"), "month"),
        "%d": "day",
        "%j": "day_of_year",
        **dict.fromkeys(("%a", "%A"), "day_of_week"),
    }
)
_MONTHS: Final = frozenset({"year", "quarter", "month"})
_PARTS: Final = _MONTHS | {*_DAYS}


@dataclass(frozen=True, slots=True)
class Part:
    """A unit of the calendar that is a window, for one that is none: its name, its size, and why the other is none."""

    unit: str
    size: str
    reason: str = ""


_HOURS_OF_PLACE: Final = Part(
    "hour", "1h", "days and months of a time zone differ in length, and are no windows of one size"
)
_DAYS_OF_MONTH: Final = Part("day", "1d", "months, quarters and years differ in length, and are no windows of one size")
_DAYS_ALONE: Final = Part("day", "1d")


def part_of_calendar(above: Sequence[Unary]) -> Part | None:
    """The windows of which the dates are made up by which rows are put together; None for other keys, and for windows
    or parts of a day.
    """
    calls = _calls(_computed_keys(_together(above)).values())
    if any(call.op == "to_local" for call in calls):
        return _HOURS_OF_PLACE
    if any(call.op in _OF_A_DAY for call in calls):
        return None
    if any(call.op in _DAYS for call in calls):
        return _DAYS_ALONE
    given = [_parts(call) for call in calls]
    return _DAYS_OF_MONTH if any(parts is not None and parts <= _MONTHS for parts in given) else None


def calendar_windows(core: Node, above: Sequence[Unary], instants: Sequence[str]) -> Form | None:
    """The days, months and so on of an instant by which rows are put together, as windows of the calendar; None where
    keys are computed of anything else, or are not one window each: a month of any year.
    """
    together = _together(above)
    computed = _computed_keys(together)
    kind = core.schema[instants[0]].type.kind if len(instants) == 1 else None
    unit, zones = _unit(computed.values()), {_zone(term, instants[0]) for term in computed.values()}
    if kind not in (Kind.TIMESTAMP, Kind.DATE) or unit is None or len(zones) != 1:
        return None
    names = together.keys if isinstance(together, Group) else tuple(together.schema)
    found = [named_below(name, together.input, core) for name in names if name not in computed]
    keys = tuple(key for key in found if key is not None)
    aggregates = together.aggregates if isinstance(together, Group) else (Aggregate("n", Function.COUNT),)
    read = frozenset[str]().union(*(attributes_of(term) for one in aggregates for term in one.terms))
    taken = {*keys, *(aggregate.name for aggregate in aggregates)}
    zone = zones.pop()
    if zone is None or len(keys) < len(found) or not read <= {*core.schema} or taken & {START, END}:
        return None
    window = CalendarWindow(unit, 1, None if kind is Kind.DATE else zone)
    node = Windows(core, keys, instants[0], window, aggregates)
    bounds = f'tg.calendar("{unit}"' + (")" if zone == _UTC else f', zone="{zone}")')
    options = f"{bounds}{by_option(keys, core)}{order_option(instants[0], core)}"
    yields = ", ".join(f"{aggregate.name.partition('#')[0]}=..." for aggregate in aggregates)
    yields = yields if isinstance(together, Group) else "n=tg.count()"
    ends = "" if kind is Kind.DATE else ", to which their ends belong"
    return Form(node, f"take windows of the calendar{ends}: windows({options}).agg({yields})")


def _together(above: Sequence[Unary]) -> Group | Distinct:
    """The lowest operator that puts rows together."""
    return next(operator for operator in reversed(above) if isinstance(operator, Group | Distinct))


def _computed_keys(together: Group | Distinct) -> dict[str, Term]:
    """What computes the keys by which rows are put together, where they are no attributes of them."""
    terms: dict[str, Term] = {}
    for operator in reversed(list(unary_operators(together.input))):
        if isinstance(operator, Rename):
            terms.clear()
        elif isinstance(operator, Imbed):
            terms[operator.name] = substitute(operator.term, lambda read: terms.get(getattr(read, "name", ""), read))
    names = together.keys if isinstance(together, Group) else tuple(together.schema)
    return {name: terms[name] for name in names if name in terms}


def _calls(terms: Iterable[Term]) -> list[Call]:
    return [subterm for term in terms for subterm in subterms(term) if isinstance(subterm, Call)]


def _parts(term: Term) -> frozenset[str] | None:
    """The parts of the calendar that an operation gives; None where it gives something else, too."""
    match term:
        case Call("truncate", (_, Lit(str(unit)))):
            return next((parts for known, parts in _TOLD_BY.items() if known == unit), None)
        case Call("format", (_, Lit(form))):
            directives = re.findall("%.", str(form))
            return frozenset(map(_SHOWN.__getitem__, directives)) if {*directives} <= {*_SHOWN} else None
        case Call(op, (_,)) if op in DATES:
            return _TOLD_BY["day"]
        case Call(op, (_,)) if op in _PARTS:
            return frozenset({op})
        case _:
            return None


def _unit(terms: Iterable[Term]) -> Unit | None:
    """The unit of the calendar of which terms together tell one from all others; None where they tell no such."""
    given: set[str] = set()
    for term in terms:
        parts = _parts(term)
        if parts is None:
            return None
        given |= parts
    if given >= _TOLD_BY["day"] or given >= {"year", "day_of_year"}:
        return "day"
    # A month tells its quarter.
    told = given - {"quarter"} if "month" in given else given
    return next((unit for unit, parts in _TOLD_BY.items() if parts == told), None)


def _zone(term: Term, instant: str) -> str | None:
    """The time zone of which an operation gives a part of an instant; None where it is of anything else."""
    match term:
        case Call(_, (Attr(name), *_)) if name == instant:
            return _UTC
        case Call(_, (Call("to_local", (Attr(name), Lit(str(zone)))), *_)) if name == instant:
            return zone
        case _:
            return None
