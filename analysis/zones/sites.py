"""Explanations: chains of constraints with the lines of the user's code that they came from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidegate.algebra.errors import Site
from tidegate.algebra.nodes import Scan, children, occurrences
from tidegate.algebra.printing.plans import listed
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.terms import Attr, Call, Lit, Param, Term, subterms
from tidegate.algebra.types import DataType
from tidegate.analysis.inner_queries import inner_owner
from tidegate.analysis.zones.federation import Federation
from tidegate.analysis.zones.wording import at_most, shifted
from tidegate.analysis.zones.zone import NONE, Edge, Hidden, Matrix, Zone, is_copy, reduced


def site_of(query: Query, source: Term | None) -> Site | None:
    """Where a term was written: its own place, or that of the smallest written term around it."""
    if source is None:
        return None
    if source in query.sites:
        return query.sites[source]
    around: list[tuple[int, Site]] = []
    for key, site in query.sites.items():
        if isinstance(key, Attr | Lit | Param | Call):
            inside = list(subterms(key))
            if source in inside:
                around.append((len(inside), site))
    return min(around, key=lambda pair: pair[0])[1] if around else None


def site_of_failure(program: ProgramDef, message: str) -> Site | None:
    """Where the term was written with which the message of its error begins; None where a rewrite has changed it."""
    for query in program.queries:
        for source, site in query.sites.items():
            if isinstance(source, Call) and message.startswith(f"{term_text(source)}: "):
                return site
    return None


def scan_site(query: Query, federation: Federation, i: int) -> Site | None:
    """Where the stream of an occurrence was defined."""
    name = federation.occurrences[i].name
    scans = (site for node, site in query.sites.items() if isinstance(node, Scan) and node.stream.name == name)
    return next(scans, None)


def partner_site(query: Query, i: int) -> Site | None:
    """Where an occurrence was first joined with others, or united with them."""
    node, first, site = query.node, 0, None
    while below := children(node):
        if len(below) > 1 and node in query.sites:
            site = query.sites[node]
        for child in below:
            count = len(occurrences(child))
            if i < first + count:
                node = child
                break
            first += count
    return site


def site_without_instants(query: Query) -> Site | None:
    """Where the result lost its last instant: at the innermost operator without any, above which each has one input."""
    node, site = query.node, query.site
    while not isinstance(node, Scan) and not node.schema.temporal:
        site = query.sites.get(node, site)
        below = children(node)
        if len(below) != 1:
            break
        (node,) = below
    return site


def edge_lines(query: Query, federation: Federation, edges: Iterable[Edge]) -> tuple[str, ...]:
    """One line per constraint: `fs.time + 1m <= fe.time   alarm.py:14`.

    What a condition says through roundings that have no name is one line.
    """
    lines = []
    for edge in _through_unnamed(federation, edges):
        v, w = federation.label(edge.v), federation.label(edge.w)
        if v.text == w.text and edge.c == 0:
            continue  # a row's instant and the attribute that it became
        text = at_most(v.text, w.text, edge.c, w.type)
        site = site_of(query, edge.source)
        if edge.declared_by:
            owner = inner_owner(edge.declared_by)
            text += f"   (known of a part of {owner})" if owner else f"   (declared by {edge.declared_by})"
        elif site is not None:
            text += f"   {site}"
        lines.append(text)
    return tuple(dict.fromkeys(lines))


def _through_unnamed(federation: Federation, edges: Iterable[Edge]) -> list[Edge]:
    merged: list[Edge] = []
    for edge in edges:
        last = merged[-1] if merged else None
        if (
            last is not None
            and last.v == edge.w
            and not is_copy(edge.w)
            and edge.w not in federation.labels
            and (last.source, last.declared_by) == (edge.source, edge.declared_by)
        ):
            merged[-1] = replace(last, v=edge.v, c=last.c + edge.c)
        else:
            merged.append(edge)
    return merged


def first_site(query: Query, edges: Iterable[Edge]) -> Site | None:
    """The place of the first constraint that a query wrote."""
    return next((site for edge in edges if (site := site_of(query, edge.source)) is not None), None)


def zone_lines(federation: Federation, zone: Zone) -> tuple[str, ...]:
    """The zone as constraints between its variables, without those that others imply, and what it ignores.

    An occurrence's copy that an output attribute names is called by the attribute.
    """
    names: dict[Hidden, str] = {row: federation.label(row).text for row in zone.layout.rows}
    names.update({zone.layout.rows[row]: name for name, row in reversed(list(zone.layout.attributes.items()))})
    lines = matrix_lines(zone.matrix, [(names[row], federation.label(row).type) for row in zone.layout.rows])
    equal = [
        f"{name} = {names[zone.layout.rows[row]]}"
        for name, row in zone.layout.attributes.items()
        if names[zone.layout.rows[row]] != name
    ]
    ignored = [f"ignores {listed(sorted(zone.ignored), federation.occurrence_name)}"] if zone.ignored else []
    return (*lines, *equal, *ignored)


def matrix_lines(matrix: Matrix, variables: list[tuple[str, DataType]]) -> list[str]:
    """The constraints of a closed matrix over named and typed variables; a fixed distance is written with =."""
    lines: list[str] = []
    equal: set[frozenset[int]] = set()
    for w, v, c in reduced(matrix):
        (earlier, type_), (later, _) = variables[w], variables[v]
        if earlier == later and c == 0:
            continue  # an instant and the result's copy of it, which have one name
        if matrix[v, w] < NONE and matrix[w, v] + matrix[v, w] == 0:
            if frozenset((w, v)) not in equal and v > w:
                lines.append(f"{later} = {shifted(earlier, c, type_)}")
            equal.add(frozenset((w, v)))
        else:
            lines.append(at_most(later, earlier, c, type_))
    return lines
