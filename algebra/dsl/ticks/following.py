"""Ticks that follow several relations."""

from __future__ import annotations

from typing import Final

from tidegate.algebra.dsl.checks.calls import called
from tidegate.algebra.dsl.checks.durations import Duration
from tidegate.algebra.dsl.checks.relation import what_else
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import QueryError

#: What `tg.ticks` calls the instants that it follows; a name of one relation is not that of all.
_TIME: Final = "time"


@called(every=("TG160", 'say how far apart ticks are: tg.ticks("1m", relation)'))
def ticks(every: Duration, *following: Relation, within: Duration = None, offset: Duration = None) -> Relation:
    """The instants that are multiples of `every`, plus `offset`, from the first row of these relations on: one
    attribute, `tick`.

    A tick is there once all relations have come as far. `within`: only so long after a row. Each relation holds one
    instant (else `QueryError` TG117); of others select it first.

    Examples:
        >>> show(tg.ticks(2, cars))
        2
        4
        6
        >>> show(tg.ticks("1d", orders, payments))
        2026-03-03 00:00:00+00:00
    """
    with Here():
        if not following:
            raise QueryError(
                "TG114", "ticks follow rows, and no relation is given", hint='name one: tg.ticks("1m", relation)'
            )
        instants = [_instants(relation) for relation in following]
        return instants[0].union(*instants[1:]).ticks(every, within=within, offset=offset)


def _instants(relation: object) -> Relation:
    if not isinstance(relation, Relation):
        raise QueryError(
            "TG114", f"ticks got {what_else(relation)}", hint="give it a stream or a query, after the period"
        )
    return relation.select(**{_TIME: relation._order(None, "select", "time")})
