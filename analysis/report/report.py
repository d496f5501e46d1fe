"""The report on a program, as text and JSON: schema, progress, finality, state and its bounds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.algebra.dsl.checks.calls import checked_calls
from tidegate.algebra.printing.plans import preformatted
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.terms import conjuncts
from tidegate.algebra.time import INF
from tidegate.analysis.facts import OccurrenceFacts, ProgramFacts, QueryFacts, Recursion
from tidegate.analysis.inner_queries import inner_names
from tidegate.analysis.ordered.table import operator_growth, operator_state
from tidegate.analysis.progress.progress_sets import minimal_progressing_sets
from tidegate.analysis.recursion import rank_text, step_text
from tidegate.analysis.report.predicate_sets import notes
from tidegate.analysis.state.bounds import Bounded
from tidegate.analysis.state.window_partitions import rows_go_by_time, successive_keys, window_ends, window_keys
from tidegate.analysis.summaries import listed
from tidegate.analysis.zones.sites import zone_lines

#: Of more conditions or instants in a row the text has so many: with each of 200 streams it had 200.
MOST_LISTED: Final = 16
#: The words of what is kept and how much, for who has not read the manual.
_MEANINGS = {
    "p(t)": "up to which t the result is final",
    "rate": "rows of the stream in a unit of time",
    "skew": "how far its rows are ahead of the time up to which it is complete",
    "lag": "how far the slowest stream is behind the fastest",
    "keys": "different values of these keys in rows of the stream",
}

#: Where rows fold, of classes by keys: how many rows are stored of so many classes.
_FOLDED: Final = '; up to four times as many folded rows are stored, unless collect_garbage="exact"'


@checked_calls
@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """The report on a program: `str()` is text for people, `to_dict()` the same as JSON."""

    facts: ProgramFacts
    zones: bool = False

    def __str__(self) -> str:
        queries = [_query_text(query, self.facts, zones=self.zones) for query in self.facts.queries]
        return "\n\n".join([*queries, *_words(self.facts)])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The report for notebooks."""
        return preformatted(str(self))

    def to_dict(self) -> dict[str, object]:
        """The report as plain values: lists, dictionaries, strings, numbers."""
        return {
            "components": [list(component.streams) for component in self.facts.components],
            "recursions": [
                _recursion_dict(component.streams, self.facts)
                for component in self.facts.components
                if component.recursive
            ],
            "queries": [_query_dict(query, self.facts, zones=self.zones) for query in self.facts.queries],
        }


def explain(facts: ProgramFacts, *, zones: bool = False) -> Explanation:
    """The report on a valid program; with `zones`, each query's federation as well."""
    return Explanation(facts, zones)


def finality(query: QueryFacts, most: int | None = None) -> tuple[str, ...]:
    """When a row of the result is final, one way per promised attribute; any of them suffices. Of many instants `most`
    are printed.
    """
    return tuple(f"{a} <= {function.describe(most)}" for a, function in query.propagation.items())


def _recursion_dict(streams: tuple[str, ...], facts: ProgramFacts) -> dict[str, object]:
    rank = facts.recursions[streams[0]].rank
    return {
        "streams": list(streams),
        "rank": {stream: rank_text(rank, facts.streams[stream]) for stream in streams},
        "step": step_text(rank, facts.streams[streams[0]]),
    }


def _recursion_lines(query: QueryFacts, recursion: Recursion) -> list[str]:
    streams = dict.fromkeys(member.query.stream for member in recursion.queries)
    read = [name for name in streams if any(o.stream.name == name for o in query.occurrences)]
    rank = recursion.rank
    depends = f"depends on rows of {' and '.join(read)} that rank lower by {step_text(rank, query.output)} or more"
    return [*([depends] if read else [f"begins {', '.join(streams)}"]), f"rank: {rank_text(rank, query.output)}"]


def _query_text(query: QueryFacts, facts: ProgramFacts, *, zones: bool) -> str:
    """One query, a fact per line."""
    recursion = facts.recursions.get(query.query.stream)
    lines = [
        f"query {query.query.name}" + (f" feeds {query.query.stream}" if query.query.stream != query.query.name else "")
    ]
    lines.append(_entry("schema", [str(attribute) for attribute in query.output.schema.attributes]))
    relations = [term_text(part) for part in conjuncts(query.output.relations)]
    if relations:
        lines.append(_entry("relations", relations))
    lines.append(_entry("progress", [", ".join(query.output.progress) or "none: the result is static"]))
    if query.propagation:
        ways = finality(query, MOST_LISTED)
        lines.append(_entry("final when", [ways[0], *(f"or {way}" for way in ways[1:])]))
    if recursion is not None:
        lines.append(_entry("recursion", _recursion_lines(query, recursion)))
    width = max(len(query.federation.occurrence_name(o.index)) for o in query.occurrences)
    names = [query.federation.occurrence_name(o.index).ljust(width) for o in query.occurrences]
    lines.append(_entry("kept", [f"{n}  {_kept(o)}" for n, o in zip(names, query.occurrences, strict=True)]))
    lines.append(_entry("state", [f"{n}  {o.state}" for n, o in zip(names, query.occurrences, strict=True)]))
    stopped = [(n, o.not_folded) for n, o in zip(names, query.occurrences, strict=True) if o.not_folded]
    if stopped:
        lines.append(_entry("not folded", [f"{name}  {'; '.join(reasons)}" for name, reasons in stopped]))
    if _whole_past(query):
        lines.append(_entry("past", ["all of it counts for ever, folded: no run can start from a later part of it"]))
    holds = _holds(query)
    if holds:
        lines.append(_entry("holds", holds))
    if per_window := window_keys(query.query, facts.program):
        lines.append(_entry("per window", _per_window(query, per_window, facts)))
    if query.query.cut:
        lines.append(_entry("cut out", [query.query.cut]))
    if growth := operator_growth(query.query):
        lines.append(_entry("per start", list(growth)))
    if lists := _lists(query, facts):
        lines.append(_entry("lists", lists))
    noted = [problem.message + (f"   {problem.site}" if problem.site else "") for problem in notes(query.query)]
    if noted:
        lines.append(_entry("note", noted))
    if zones:
        for number, zone in enumerate(query.federation.zones, 1):
            lines.append(_entry(f"zone {number}", list(zone_lines(query.federation, zone)) or ["no constraint"]))
    return "\n".join(lines)


def _words(facts: ProgramFacts) -> list[str]:
    """What the words mean by which it is said what is kept: a block with those that occur."""
    parts = [f"{_kept(o)} {o.state}" for query in facts.queries for o in query.occurrences]
    parts += [bound for query in facts.queries for bound in _holds(query)]
    said = " ".join(parts)
    words = {
        word: meaning for word, meaning in _MEANINGS.items() if re.search(rf"\b{word.removesuffix('(t)')}[()]", said)
    }
    if "keys" in words and any(o.folds for q in facts.queries for o in q.occurrences):
        words["keys"] += _FOLDED
    uses = ((q.federation.occurrence_name(o.index), o.stream.name) for q in facts.queries for o in q.occurrences)
    if several := next((use for use, stream in uses if use != stream), ""):
        words[several] = "one of several uses of a stream: by its name in the query, or its place"
    words |= {inner: f"{name}: computed first, and read as a stream" for inner, name in inner_names(facts).items()}
    width = max((len(word) + 2 for word in words), default=0)
    return ["\n".join(["where", *(_entry(word, [meaning], width) for word, meaning in words.items())])] if words else []


def _entry(name: str, values: list[str], width: int = 0) -> str:
    return "\n".join(f"  {name if i == 0 else '':<{max(width, 12)}}{value}" for i, value in enumerate(values))


def _kept(occurrence: OccurrenceFacts) -> str:
    return kept_text(occurrence.kept_by(MOST_LISTED))


def kept_text(condition: str) -> str:
    """A condition under which rows are kept, as a part of a sentence."""
    return condition if condition == "never" or condition.partition(":")[0] == "always" else f"while {condition}"


def _whole_past(query: QueryFacts) -> bool:
    """Whether rows fold: the class of an old one is part of results for ever (rule R34)."""
    return any(occurrence.folds for occurrence in query.occurrences)


def _holds(query: QueryFacts) -> list[str]:
    """What an operator that gathers events in order keeps of those it has read, beside what is stored for it."""
    return list(operator_state(query.query).bounds)


def _per_window(query: QueryFacts, keys: Sequence[str], facts: ProgramFacts) -> list[str]:
    """What is freed where each window of a context is a partition, and what a window's end does not do."""
    if rows_go_by_time(query.query):
        return [
            f"by {', '.join(keys)} each window is a partition: its rows go by time, so long after they came as frames",
            "reach; its end frees nothing sooner, and cuts nothing off",
        ]
    if growing := successive_keys(query.query, facts.program):
        when = "it ends" if window_ends(query.query, facts.program) else "the next one has a row"
        return [
            f"by {', '.join(growing)} each window is a partition: it is let go as {when}, but for rows",
            "that are still owed; its end cuts nothing off",
        ]
    return [
        f"by {', '.join(keys)} each window is a partition: its end frees nothing, and cuts nothing off,",
        "so what is kept by key grows with the windows unless a limit in time frees it",
    ]


def _lists(query: QueryFacts, facts: ProgramFacts) -> list[str]:
    """Which rows are made one by one although the query only groups them, and why (rule R47)."""
    return [f"{one.operator.produces} one by one: {one.why}" for one in listed(query.query, facts.program)]


def _query_dict(query: QueryFacts, facts: ProgramFacts, *, zones: bool) -> dict[str, object]:
    document: dict[str, object] = {
        "query": query.query.name,
        "stream": query.query.stream,
        "schema": [
            {"name": a.name, "type": str(a.type), "nullable": a.nullable, "temporal": a.temporal}
            for a in query.output.schema.attributes
        ],
        "relations": [term_text(part) for part in conjuncts(query.output.relations)],
        "progress": list(query.output.progress),
        "progressing_sets": [sorted(chosen) for chosen in minimal_progressing_sets(query.federation)],
        "final_when": {a: function.describe() for a, function in query.propagation.items()},
        "occurrences": [_occurrence_dict(query, occurrence) for occurrence in query.occurrences],
    }
    document["whole_past"] = _whole_past(query)
    document["holds"] = _holds(query)
    if per_window := window_keys(query.query, facts.program):
        document["per_window"] = list(per_window)
        document["let_go"] = list(successive_keys(query.query, facts.program))
        document["by_time"] = rows_go_by_time(query.query)
    if query.query.cut:
        document["cut_out"] = query.query.cut
    if growth := operator_growth(query.query):
        document["per_start"] = list(growth)
    if lists := _lists(query, facts):
        document["lists"] = lists
    document["notes"] = [problem.to_dict() for problem in notes(query.query)]
    if zones:
        document["zones"] = [list(zone_lines(query.federation, zone)) for zone in query.federation.zones]
    return document


def _occurrence_dict(query: QueryFacts, occurrence: OccurrenceFacts) -> dict[str, object]:
    bound = occurrence.bound
    document: dict[str, object] = {
        "occurrence": query.federation.occurrence_name(occurrence.index),
        "stream": occurrence.stream.name,
        "kept": occurrence.kept,
        "state": "folded" if occurrence.folds else type(bound).__name__.lower(),
        "bound": occurrence.state,
    }
    if occurrence.not_folded is not None:
        document["not_folded"] = list(occurrence.not_folded)
    if isinstance(bound, Bounded):
        document["horizon"] = None if bound.horizon == -INF else int(bound.horizon)
    return document
