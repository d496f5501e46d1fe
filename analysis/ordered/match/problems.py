"""Patterns that can never match, and patterns whose intervals wait for ever, with witnesses (rule R27)."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.algebra.dsl.here import written_attribute
from tidegate.algebra.errors import Problem, QueryError, Site
from tidegate.algebra.ordered.match.node import DETECTED
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.program import Query
from tidegate.algebra.schema import Schema
from tidegate.algebra.types import Kind
from tidegate.analysis.ordered.match.detection import Detection
from tidegate.analysis.ordered.match.matches import Horizon, horizons, matching, other_end
from tidegate.analysis.zones.expansion import MAX_ZONES
from tidegate.analysis.zones.federation import Federation, Label
from tidegate.analysis.zones.sites import edge_lines, first_site, site_of, zone_lines
from tidegate.analysis.zones.wording import amount
from tidegate.analysis.zones.zone import Conflict, Hidden, Variable, Zone


def match_problems(detection: Detection, query: Query) -> list[Problem]:
    """The problems of a pattern: TG212 where nothing can match it, else TG213 per symbol that waits for ever.

    `query` has the places of its terms. `QueryError` TG150 where it has too many cases to tell.
    """
    matches = matching(detection)
    if not matches.zones:
        return [_never(detection, query, matches.conflicts)]
    if detection.within is not None:
        return []
    waiting = [horizon for horizon in horizons(detection) if horizon.witness is not None]
    if waiting and not matches.is_exact:
        raise QueryError(
            "TG150",
            f"the pattern has more than {MAX_ZONES} temporal cases: whether situations {waiting[0].symbol.name} wait "
            "for ever in one of them cannot be decided",
            hint="give the pattern a window, within=…",
        )
    return [_held(detection, query, horizon, horizon.witness) for horizon in waiting if horizon.witness is not None]


def _named(detection: Detection) -> Federation:
    """The endpoints and `detected` under their names, for explanations."""
    time = detection.pattern.time
    names = [*detection.pattern.base.layout.attributes, DETECTED, *(other_end(symbol) for symbol in detection.symbols)]
    labels: dict[Hidden, Label] = {("v", 0, name): Label(name, time) for name in names}
    return Federation((), (), Schema(()), labels)


def _never(detection: Detection, query: Query, conflicts: Sequence[Conflict]) -> Problem:
    site, because = _contradiction(detection, query, conflicts)
    return Problem(
        "TG212",
        "nothing can match this pattern",
        site or query.site,
        because,
        "one of these relations is the wrong way round, or one of the limits too short",
        query.name,
    )


def _contradiction(
    detection: Detection, query: Query, conflicts: Sequence[Conflict]
) -> tuple[Site | None, tuple[str, ...]]:
    """Two symbols without common relation, or a cycle of constraints; nothing but a constant condition has neither."""
    for pair in detection.pattern.pairs:
        if not pair.mask:
            a, b = detection.symbols[pair.i], detection.symbols[pair.j]
            lines = (f"no relation of {a.name} to {b.name} is left by:", *(f"  {term_text(s)}" for s in pair.sources))
            return next((site for s in pair.sources if (site := site_of(query, s))), None), lines
    if not conflicts:
        return None, ("a condition is false whatever the intervals",)
    named = _named(detection)
    cycle = min((conflict.cycle() for conflict in conflicts), key=len)
    surplus = amount(-sum(edge.c for edge in cycle), detection.pattern.time)
    together = f"together: {named.label(cycle[-1].v).text} would lie {surplus} before itself"
    return first_site(query, reversed(cycle)), (*edge_lines(query, named, cycle), together)


def _held(detection: Detection, query: Query, horizon: Horizon, witness: Zone) -> Problem:
    symbol, named = horizon.symbol, _named(detection)
    end: Variable = ("a", symbol.te)
    detected: Variable = ("a", DETECTED)
    known = witness.chain(detected, end)
    because = [f"no chain of constraints bounds {DETECTED} from above by {symbol.te}"]
    if known:
        because += ["only the other way round:", *(f"  {line}" for line in edge_lines(query, named, known))]
    because += ["in the case that:", *(f"  {line}" for line in zone_lines(named, witness))]
    within, wait = ('"1h"', "tg.hours(1)") if detection.pattern.time.kind is Kind.TIMESTAMP else ("100", "100")
    later, earlier = (written_attribute(end, query.node, frozenset()) for end in (_last(detection, witness), symbol.te))
    site = first_site(query, known) or first_site(query, witness.edges) or query.site
    if site is not None and site.column is not None:  # in a text, which has no other way to say it
        mend = "give the pattern a window: WITHIN " + within.strip('"')
    else:
        mend = f"give the pattern a window, within={within}, or bound the wait: {later} - {earlier} <= {wait}"
    return Problem(
        "TG213",
        f"not bounded: when a situation {symbol.name} has ended, it waits for matches for ever",
        site,
        tuple(because),
        mend,
        query.name,
    )


def _last(detection: Detection, witness: Zone) -> str:
    """The endpoint that bounds the detection most tightly in this case."""
    names = detection.pattern.base.layout.attributes
    return min(names, key=lambda name: abs(witness.distance(("a", name), ("a", DETECTED))))
