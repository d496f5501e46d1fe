"""Validity: whether a query keeps the promises of its result stream (TSA Def. 19, rule R12), with witnesses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tidegate.algebra.errors import Problem, Site
from tidegate.algebra.formulas import temporal_formula
from tidegate.algebra.nodes import Scan
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.program import Query
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.terms import Term, conjuncts
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.inner_queries import inner_owner
from tidegate.analysis.progress.progress_sets import is_static
from tidegate.analysis.progress.propagation import Clause, Propagation
from tidegate.analysis.validity.alternatives import narrowed_query
from tidegate.analysis.validity.places import name_above
from tidegate.analysis.zones.expansion import MAX_ZONES
from tidegate.analysis.zones.federation import Federation
from tidegate.analysis.zones.instants import constrained
from tidegate.analysis.zones.sites import (
    edge_lines,
    first_site,
    partner_site,
    scan_site,
    site_of,
    site_without_instants,
    zone_lines,
)
from tidegate.analysis.zones.wording import amount
from tidegate.analysis.zones.zone import Conflict, Edge, Zone, is_copy

if TYPE_CHECKING:
    from tidegate.analysis.validity.mends import Mends

#: What would mend that a promised attribute does not progress on the stream of a clause; empty where nothing is known.
Hint = Callable[[str, Clause], str]
#: Constraints that are looked at for the shortest cycle: 8,000 take half a second.
_MOST_EDGES: Final = 8_000
_WRONG_WAY: Final = "one of these comparisons is the wrong way round, or a duration too short"


def contradictions(query: Query, federation: Federation) -> list[Problem]:
    """A problem if the temporal relations contradict each other, with the cycle of constraints that shows it.

    There is no cycle where a single condition is false by itself, such as `t < t`; over tables alone that is no
    mistake.
    """
    if federation.zones or not (federation.conflicts or any(stream.progress for stream in federation.occurrences)):
        return []
    because: tuple[str, ...] = ("a condition is false whatever the rows",)
    site, hint = query.site, "one of these comparisons compares an instant with itself, or is constant"
    if federation.conflicts:
        because, written = _cycle(query, federation, federation.conflicts)
        site, hint = written or query.site, _WRONG_WAY
    message = "no row can satisfy the temporal relations of this query"
    return [Problem("TG204", message, site, because, hint, query.name)]


def unmatched(query: Query, federation: Federation) -> list[Problem]:
    """A problem per anti or left join whose temporal relations let no row of its left side have a partner.

    The algebra allows it: every row of the left side is a result, whatever comes on the right.
    """
    problems = []
    for partnerless in federation.unmatched:
        because, site = _cycle(query, federation, partnerless.conflicts)
        kind = partnerless.join.kind
        outcome = (
            "every row of its left side is a result" if kind == "anti" else "its right side is NULL in every result"
        )
        message = f"no two rows can satisfy the temporal relations of this {kind} join, so {outcome}"
        problems.append(
            Problem(
                "TG204", message, site or query.sites.get(partnerless.join, query.site), because, _WRONG_WAY, query.name
            )
        )
    return problems


def _cycle(query: Query, federation: Federation, conflicts: Sequence[Conflict]) -> tuple[tuple[str, ...], Site | None]:
    """The shortest cycle of constraints that contradict each other, as text, and where its last condition was
    written. Of many alternatives some are looked at.
    """
    cycle = min((conflict.cycle() for conflict in _some(conflicts)), key=len)
    surplus = sum(edge.c for edge in cycle)
    label = federation.label(cycle[-1].v)
    together = f"together: {label.text} would lie {amount(-surplus, label.type)} before itself"
    return (*edge_lines(query, federation, cycle), together), first_site(query, reversed(cycle))


def _some(conflicts: Sequence[Conflict]) -> Iterator[Conflict]:
    """The first of several conflicts, as long as they have few constraints together: each may have all of a query."""
    edges = 0
    for conflict in conflicts:
        yield conflict
        edges += len(conflict.edges)
        if edges > _MOST_EDGES:
            return


def progress_problems(
    query: Query, federation: Federation, functions: Mapping[str, Propagation], promised: Iterable[str], hint: Hint
) -> list[Problem]:
    """One problem per promised attribute and stream on which it does not progress: f = -∞ there."""
    problems: list[Problem] = []
    for attribute in promised:
        reported: set[str] = set()
        for clause in functions[attribute].clauses:
            if not clause.is_finite and clause.stream not in reported:
                reported.add(clause.stream)
                problems.append(_not_progressing(query, federation, attribute, clause, hint(attribute, clause)))
    return problems


def _not_progressing(query: Query, federation: Federation, attribute: str, clause: Clause, hint: str) -> Problem:
    case = narrowed_query(query, federation, attribute, clause)
    federation, clause = case.federation, case.clause
    zone, i = clause.zone, clause.occurrence
    y = clause.distances[0][0]
    row = zone.layout.rows[zone.layout.attributes[attribute]]
    source, target = federation.label(("x", i, y)), federation.label(row)
    name = f"{federation.occurrences[i].name}.{y}"
    owner = inner_owner(federation.occurrences[i].name)
    called = source.text if owner or source.text.startswith(name) else f"{name} ({source.text})"
    if owner and called.startswith(name) and (users := name_above(query.node, i, y)) != attribute:
        called = users
    known = zone.chain(("x", i, y), ("a", attribute))
    because = [f"no chain of constraints bounds {source.text} from above by {attribute}"]
    if target.text != attribute:
        because.append(f"{attribute} is {target.text}")
    if known:
        because += ["only the other way round:", *(f"  {line}" for line in edge_lines(query, federation, known))]
    if case.lines:
        because += ["with the alternative:", *(f"  {line}" for line in case.lines)]
        hint = hint.replace("bound it: ", "bound it there, too: ")
    elif len(federation.zones) > 1 and (lines := zone_lines(federation, zone)):
        because += ["in the case that:", *(f"  {line}" for line in lines)]
    return Problem(
        "TG201",
        f"not valid: {called} has no upper bound relative to {attribute}",
        first_site(query, _own_constraints(known))
        or first_site(query, _own_constraints(_touching(zone, i)))
        or partner_site(query, i)
        or scan_site(query, federation, i)
        or query.site,
        tuple(because),
        hint
        or (
            f"state how much later than {target.text} {source.text} may be, in a condition or where the stream is "
            "declared"
        ),
        query.name,
    )


def _own_constraints(edges: Iterable[Edge]) -> list[Edge]:
    """The constraints that the query itself states. The user mends these, not declarations elsewhere."""
    return [edge for edge in edges if not edge.declared_by]


def _touching(zone: Zone, i: int) -> list[Edge]:
    return [edge for edge in zone.edges if any(is_copy(row) and row[1] == i for row in (edge.w, edge.v))]


def no_progress(
    query: Query, federation: Federation, functions: Mapping[str, Propagation], mends: Mends
) -> list[Problem]:
    """The problems of a query without declaration none of whose attributes progresses."""
    if not functions:
        return [
            Problem(
                "TG202",
                "not valid: the result holds no instant, so none of its rows is ever final",
                site_without_instants(query),
                ("results of streams need an attribute that progresses with them",),
                mends.instant() or "keep an instant that progresses with the streams, or a window of one",
                query.name,
            )
        ]
    missing = {a: sum(not clause.is_finite for clause in f.clauses) for a, f in functions.items()}
    nearest = min(missing, key=lambda a: missing[a])
    return progress_problems(query, federation, functions, (nearest,), lambda a, clause: mends.progress(a, clause))


def static_problems(query: Query, federation: Federation, declared: StreamDef) -> list[Problem]:
    """A problem if a result declared static waits for streams."""
    if not declared.static or is_static(federation):
        return []
    streams = sorted({stream.name for stream in federation.occurrences if stream.progress})
    return [
        Problem(
            "TG208",
            f"not valid: {declared.name} is declared static, but its query reads {', '.join(streams)}",
            query.site,
            hint="declare the attribute on which it progresses",
            query=query.name,
        )
    ]


def relation_problems(query: Query, federation: Federation, relations: Term, schema: Schema) -> list[Problem]:
    """One problem per declared relation that does not follow: a zone is consistent with its negation.

    The negation is taken before normalising. All zones must refute it; one relation may well need a different proof in
    each of them.
    """
    problems: list[Problem] = []
    for relation in conjuncts(relations):
        witness = refuting(federation, relation, schema)
        if witness is None:
            continue
        point = witness.point()
        values = {name: point[witness.layout.rows[row]] for name, row in witness.layout.attributes.items()}
        shown = ", ".join(f"{a} = {amount(value, schema[a].type)}" for a, value in values.items())
        problems.append(
            Problem(
                "TG203",
                f"not valid: the declared relation {term_text(relation)} does not follow from the query",
                site_of(query, relation) or query.site,
                (f"nothing in the query excludes {shown}",) if shown else ("it speaks of no instants",),
                "add the relation as a condition of the query, or declare less",
                query.name,
            )
        )
    return problems


def refuting(federation: Federation, relation: Term, schema: Schema) -> Zone | None:
    """A zone of the result in which the relation may be false, or None if it holds in all of them."""
    formula = temporal_formula(relation, schema)
    return next(
        (zone for c in federation.zones for zone in constrained([c], formula, MAX_ZONES, positive=False).zones), None
    )


def schema_problems(query: Query, declared: StreamDef) -> list[Problem]:
    """One problem per attribute in which the expression and the declared schema differ (by name, in any order)."""
    given, asked = query.node.schema, declared.schema
    wrong = [f"{name} is missing" for name in asked if name not in given]
    wrong += [f"{name} is not declared" for name in given if name not in asked]
    for name in asked:
        if name in given and given[name].type != asked[name].type:
            wrong.append(f"{name} is declared {asked[name].type}, the query gives {given[name].type}")
        elif name in given and asked[name].temporal and not given[name].temporal:
            wrong.append(f"{name} is declared to hold instants, the query does not give any")
        elif name in given and given[name].nullable and not asked[name].nullable:
            wrong.append(f"{name} is declared not null, the query may give NULL")
    return [Problem("TG205", f"not valid: {declared.name}: {text}", query.site, query=query.name) for text in wrong]


def scan_problems(query: Query, scanned: StreamDef, defined: StreamDef) -> list[Problem]:
    """A problem if a query reads a stream by another definition than the stream's own."""
    wrong: list[str] = []
    if scanned.schema != defined.schema:
        wrong.append(f"attributes ({scanned.schema}) instead of ({defined.schema})")
    if set(scanned.progress) != set(defined.progress):
        wrong.append(f"progress on {_names(scanned.progress)} instead of {_names(defined.progress)}")
    if not wrong and scanned.relations != defined.relations:
        facts = federation(Scan(defined))
        wrong += [
            f"the relation {term_text(relation)}, which does not hold"
            for relation in conjuncts(scanned.relations)
            if refuting(facts, relation, defined.schema) is not None
        ]
    if not wrong:
        return []
    return [
        Problem(
            "TG207",
            f"{scanned.name} is read with another definition than its own",
            query.site,
            tuple(wrong),
            "read it with the handle that its query is declared with, or with result_of",
            query.name,
        )
    ]


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"
