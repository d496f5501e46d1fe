"""Rows that a valid query keeps for ever, as notes with the condition that would let them go."""

from __future__ import annotations

from tidegate.algebra.dsl.here import written_attribute
from tidegate.algebra.errors import Problem
from tidegate.analysis.facts import QueryFacts
from tidegate.analysis.inner_queries import inner_owner, owner_of, users_names
from tidegate.analysis.ordered.table import operator_state
from tidegate.analysis.state.bounds import Unbounded
from tidegate.analysis.state.folding.classes import OF_PAIRS
from tidegate.analysis.validity.mends import Mends
from tidegate.analysis.zones.sites import partner_site
from tidegate.analysis.zones.zone import is_copy


def kept_for_ever(facts: QueryFacts) -> list[Problem]:
    """A note per occurrence of which rows are kept for ever, with a condition that would let them go."""
    query, federation = facts.query, facts.federation
    streams = {stream.name: stream for stream in federation.occurrences}
    notes = []
    for kept in facts.occurrences:
        zone = next((zone for zone in federation.zones if kept.index not in zone.ignored), None)
        if not isinstance(kept.bound, Unbounded) or zone is None:
            continue
        rows = "every row"
        if kept.folding is not None and kept.folding.runs:
            if not kept.folding.by:
                continue
            rows = f"one row by {', '.join(kept.folding.by)}"
        attribute, stream = kept.bound.missing.attributes[0], federation.occurrences[kept.index]
        row = zone.layout.rows[zone.layout.attributes[attribute]]
        later, earlier = federation.label(row), federation.label(("x", kept.index, stream.progress[0]))
        occurrence = _called(federation.occurrence_name(kept.index), earlier.text)
        text = f"{rows} of {occurrence} is kept for ever: nothing says how long before {later.text} it matters"
        mending = Mends(query.node, streams)
        bound = mending.let_go(kept.index, attribute)
        mend = f"bound it: {bound}"
        if not bound:
            partner = users_names([federation.occurrences[row[1]]] if is_copy(row) else [])
            first = written_attribute(later.text, query.node, partner)
            second = written_attribute(earlier.text, query.node, users_names([stream]))
            mend = f"say how long before {first} {second} may be at most"
        # Who lists pairs may well mean them, near each other.
        mends = sorted([*kept.mends, f"where that is not meant, {mend}"], key=lambda text: text == OF_PAIRS)
        # A bound would contradict the rows between that such a query leaves out.
        hint = mending.last_before() or "; ".join(mends)
        stopped = tuple(f"nor is it folded: {why}" for why in kept.not_folded or ())
        notes.append(Problem("TG224", text, partner_site(query, kept.index) or query.site, stopped, hint, query.name))
    return notes


def _called(occurrence: str, instant: str) -> str:
    """What the user calls an occurrence: an unnamed part of a query by the alias of its instant, where it has one."""
    if not (owner := inner_owner(occurrence)):
        return occurrence
    alias = instant.removeprefix(f"{occurrence}.").rpartition(".")[0]
    return alias or f"a part of {owner}"


def gathered_for_ever(facts: QueryFacts) -> list[Problem]:
    """A note per table of an operator that reads rows in order, where nothing bounds how many rows it keeps."""
    notes = []
    for bound in operator_state(facts.query).bounds:
        table, unbounded, why = bound.partition(": unbounded: ")
        if not unbounded:
            continue
        reason, _, missing = why.partition("missing ")
        reason = reason.removesuffix(": ")
        text = f"nothing bounds what is kept ({table})" + (f": {reason}" if reason else "")
        hint = f"where that is not meant, give {missing or 'within='}"
        notes.append(Problem("TG224", text, facts.query.site, (), hint, owner_of(facts.query.name)))
    return notes
