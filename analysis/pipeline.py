"""The analysis of a program, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from tidegate.algebra.errors import Problem, QueryError
from tidegate.algebra.nodes import occurrences
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.row_wise import completion, multiplying_tables, ordered_operator
from tidegate.algebra.schema import StreamDef
from tidegate.analysis.components import Component, components
from tidegate.analysis.cuts import with_cuts
from tidegate.analysis.derived import derived_relations
from tidegate.analysis.facts import OccurrenceFacts, ProgramFacts, QueryFacts, Recursion
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.inner_queries import inner_owner, owner_of, with_inner_queries
from tidegate.analysis.ordered.table import family_of
from tidegate.analysis.progress.progress_sets import is_static
from tidegate.analysis.progress.propagation import Latencies, Propagation, propagations
from tidegate.analysis.recursion import Standstill, recursion, standstill_problem
from tidegate.analysis.shared_orders import with_shared_orders
from tidegate.analysis.state.bounds import Collected, Unbounded, bound
from tidegate.analysis.state.folding.foldable import MOST_OCCURRENCES, folding, why_unknown
from tidegate.analysis.state.keep import keep
from tidegate.analysis.state.relevance import relevance
from tidegate.analysis.summaries import with_summaries
from tidegate.analysis.validity.validity import (
    contradictions,
    no_progress,
    progress_problems,
    relation_problems,
    scan_problems,
    schema_problems,
    static_problems,
    unmatched,
)
from tidegate.analysis.zones.federation import Federation
from tidegate.analysis.zones.grid import grids

if TYPE_CHECKING:
    from tidegate.analysis.validity.mends import Mends

__all__ = ["OccurrenceFacts", "ProgramFacts", "QueryFacts", "analyse", "analyse_written"]


T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class _StageResult(Generic[T]):
    """The result of a stage, None where its problems leave none, and the problems in the order of the program."""

    value: T | None
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class _ComponentFacts:
    """The facts of a component's valid queries, its streams as defined so far, and all its problems."""

    facts: list[QueryFacts]
    streams: dict[str, StreamDef]
    problems: list[Problem]


@dataclass(frozen=True, slots=True, eq=False)
class _QueryDraft:
    """A query under analysis: its facts by these definitions, before the promises of its stream are known."""

    query: Query
    federation: Federation
    functions: Mapping[str, Propagation]
    streams: Mapping[str, StreamDef]

    def mends(self) -> Mends:
        from tidegate.analysis.validity.mends import Mends  # for programs that are refused

        return Mends(self.query.node, self.streams)


def analyse(program: ProgramDef) -> ProgramFacts:
    """All facts of a program; `QueryError` with the problems of all its queries where it is not valid."""
    # In whatever order queries are written, inner ones that several of them read have the same names.
    together, shared = with_shared_orders(with_summaries(_by_name(program)))
    facts = _analysed(_as_written(with_inner_queries(together, _definition, shared), program))
    cut = with_cuts(replace(facts, program=_by_name(facts.program)), _alone)
    return facts if cut is None else _analysed(_as_written(cut, program))


def _by_name(program: ProgramDef) -> ProgramDef:
    return ProgramDef(tuple(sorted(program.queries, key=lambda query: query.name)))


def _as_written(program: ProgramDef, written: ProgramDef) -> ProgramDef:
    """The queries in the order of those that were written, inner ones before the first of their stream."""
    place = {query.name: number for number, query in enumerate(written.queries)}
    first = {query.stream: place[query.name] for query in reversed(written.queries)}

    def rank(query: Query) -> tuple[int, bool]:
        own = place.get(query.name)
        return (first[inner_owner(query.stream)], False) if own is None else (own, True)

    return ProgramDef(tuple(sorted(program.queries, key=rank)))


def _analysed(program: ProgramDef) -> ProgramFacts:
    """The facts of a program whose operators that gather rows in order are queries of their own."""
    order = components(program)
    problems = _conflicting_inputs(program)
    streams: dict[str, StreamDef] = {}
    facts: list[QueryFacts] = []
    recursions: dict[str, Recursion] = {}
    for component in order:
        analysed = _component(program, component, streams)
        problems += analysed.problems
        streams |= analysed.streams
        facts += analysed.facts
        if component.recursive and len(analysed.facts) == len(_queries_of(program, component.streams)):
            proof = recursion(component, analysed.facts)
            if isinstance(proof, Standstill):
                problems.append(standstill_problem(component, proof))
            else:
                recursions |= dict.fromkeys(component.streams, proof)
    if problems:
        raise _user_problems(problems)
    return ProgramFacts(program, tuple(facts), order, streams, recursions)


def analyse_written(program: ProgramDef) -> ProgramFacts:
    """The facts of a program that somebody wrote: `QueryError` TG204 also for joins that the algebra allows and nobody
    means.
    """
    facts = analyse(program)
    if problems := [problem for query in facts.queries for problem in unmatched(query.query, query.federation)]:
        raise _user_problems(problems)
    return facts


def _definition(query: Query) -> StreamDef:
    """The inferred definition of an inner query's stream; `QueryError` where it is not valid."""
    draft = _analyse(query, {})
    if draft.value is None:
        raise _user_problems(draft.problems)
    output = _output(query.stream, [draft.value], recursive=False)
    if output.value is None:
        raise _user_problems([*draft.problems, *output.problems])
    return output.value


def _alone(query: Query, streams: Mapping[str, StreamDef], bounded: Sequence[int]) -> QueryFacts | None:
    """The facts of a query that alone feeds its stream; None where it is not valid, or keeps rows of one of the
    occurrences `bounded` for ever.
    """
    draft = _analyse(query, streams).value
    output = None if draft is None else _output(query.stream, [draft], recursive=False).value
    if draft is None or output is None:
        return None
    # The facts of the first one that keeps its rows are enough: those of all others take long.
    facts_of = _occurrence_facts(draft, output)
    return None if any(facts_of(i).stays for i in bounded) else _facts(draft, output)


def _user_problems(problems: Sequence[Problem]) -> QueryError:
    """All problems, each with the query that the user knows: an inner query's problems are those of its owner."""
    return QueryError.of([p if p.query is None else replace(p, query=owner_of(p.query)) for p in problems])


def _queries_of(program: ProgramDef, streams: Sequence[str]) -> list[Query]:
    """The queries that feed any of these streams."""
    return [query for query in program.queries if query.stream in streams]


def _component(program: ProgramDef, component: Component, known: Mapping[str, StreamDef]) -> _ComponentFacts:
    """The analysis of a component over the streams `known` before it."""
    facts: list[QueryFacts] = []
    streams, problems = _declared_ahead(program, component) if component.recursive else ({}, [])
    if problems:
        return _ComponentFacts([], streams, problems)
    for stream in component.streams:
        queries = _queries_of(program, [stream])
        checked = [_analyse(query, {**known, **streams}) for query in queries]
        problems += [problem for result in checked for problem in result.problems]
        drafts = [result.value for result in checked if result.value is not None]
        if len(drafts) < len(queries):
            continue
        output = _output(stream, drafts, recursive=component.recursive)
        problems += output.problems
        if output.value is not None:
            streams[stream] = output.value
            facts += [_facts(draft, output.value) for draft in drafts]
    return _ComponentFacts(facts, streams, problems)


def _declared_ahead(program: ProgramDef, component: Component) -> tuple[dict[str, StreamDef], list[Problem]]:
    """A recursive component's streams as declared, before they are proved, up to the first that cannot be read ahead.

    Its queries read earlier rows of them. That is sound, since a row's promises are proved from those of rows of lower
    rank. What is not declared, or static, cannot be read ahead: a problem says so.
    """
    streams: dict[str, StreamDef] = {}
    for stream in component.streams:
        queries = _queries_of(program, [stream])
        if any(query.inner for query in queries):
            read = ", ".join(dict.fromkeys(map(owner_of, component.streams)))
            problem = Problem(
                "TG211",
                "an operator that reads rows in order depends on its own result",
                queries[0].site,
                (f"it reads, directly or through others, {read}",),
                "let it read a stream that does not depend on it: a recursion has relational queries only",
            )
            return streams, [problem]
        declared = next((query.declared for query in queries if query.declared is not None), None)
        if declared is None or not declared.progress:
            problem = Problem(
                "TG211",
                f"{stream} depends on itself, and is not declared to progress",
                queries[0].site,
                (f"its queries read, directly or through others, {', '.join(component.streams)}",),
                f'declare it with tg.result("{stream}", ..., progress=...)',
                queries[0].name,
            )
            return streams, [problem]
        streams[stream] = declared
    return streams, []


def _analyse(query: Query, streams: Mapping[str, StreamDef]) -> _StageResult[_QueryDraft]:
    """Federation and propagation of a query, over the definitions of the result streams known so far."""
    problems: list[Problem] = []
    try:
        for stream in dict.fromkeys(occurrences(query.node)):
            if stream.name in streams:
                problems += scan_problems(query, stream, streams[stream.name])
        matching = {s.name: streams[s.name] for s in occurrences(query.node) if _fits(s, streams)}
        federation_ = federation(query.node, matching, sites=query.sites)
    except QueryError as error:
        problems += [
            Problem(p.code, p.message, p.site or query.site, p.because, p.hint, query.name) for p in error.problems
        ]
        return _StageResult(None, problems)
    if contradictory := _operator_problems(query) or contradictions(query, federation_):
        return _StageResult(None, [*problems, *contradictory])
    return _StageResult(_QueryDraft(query, federation_, propagations(federation_), matching), problems)


def _operator_problems(query: Query) -> list[Problem]:
    """The problems of the ordered operator of a query."""
    operator = ordered_operator(query.node)
    return [] if operator is None else family_of(operator).problems(operator, query)


def _fits(stream: StreamDef, streams: Mapping[str, StreamDef]) -> bool:
    return stream.name in streams and streams[stream.name].schema == stream.schema


def _output(name: str, drafts: Sequence[_QueryDraft], *, recursive: bool) -> _StageResult[StreamDef]:
    """The definition of a result stream: as declared, or inferred; None where its queries do not keep or agree on
    it.
    """
    declared = list(dict.fromkeys(draft.query.declared for draft in drafts if draft.query.declared is not None))
    if len(declared) > 1:
        site = drafts[0].query.site
        return _StageResult(
            None, [Problem("TG206", f"{name} is declared in two ways", site, hint="declare a stream once")]
        )
    if declared:
        # What a recursion progresses on is more than a promise: its queries read themselves by it.
        common = () if recursive else _common_progress(declared[0], drafts)
        alone = len(drafts) == 1 and not recursive
        instead = next(iter(common), None)
        broken = [p for draft in drafts for p in _broken_promises(draft, declared[0], instead, alone=alone)]
        return _StageResult(None if broken else declared[0], broken)
    disagreements = _disagreements(name, drafts)
    return _StageResult(None, disagreements) if disagreements else _inferred(name, drafts)


def _broken_promises(draft: _QueryDraft, declared: StreamDef, instead: str | None, *, alone: bool) -> list[Problem]:
    """The promises of a stream that a query does not keep (TSA Def. 19). It might promise progress on `instead`.

    `alone`: no other query feeds the stream, itself among them.
    """
    wrong = schema_problems(draft.query, declared)
    if wrong:
        return wrong
    return [
        *static_problems(draft.query, draft.federation, declared),
        *progress_problems(
            draft.query,
            draft.federation,
            draft.functions,
            declared.progress,
            lambda a, clause: draft.mends().progress(a, clause, instead, declared=True, alone=alone),
        ),
        *relation_problems(draft.query, draft.federation, declared.relations, declared.schema),
    ]


def _common_progress(declared: StreamDef, analysed: Sequence[_QueryDraft]) -> tuple[str, ...]:
    """The attributes on which all queries of a stream progress."""
    return tuple(
        a
        for a in declared.schema.temporal
        if all(a in draft.functions and draft.functions[a].is_finite for draft in analysed)
    )


def _disagreements(name: str, analysed: Sequence[_QueryDraft]) -> list[Problem]:
    first = analysed[0].query
    return [
        Problem(
            "TG206",
            f"the queries of {name} have different attributes",
            draft.query.site,
            (f"{draft.query.name}: {draft.query.node.schema}", f"{first.name}: {first.node.schema}"),
            "give all queries of a stream the same attributes, in the same order",
            draft.query.name,
        )
        for draft in analysed[1:]
        if draft.query.node.schema != first.node.schema
    ]


def _inferred(name: str, drafts: Sequence[_QueryDraft]) -> _StageResult[StreamDef]:
    """The definition of an undeclared result. It progresses where all its queries do, and has the relations of all."""
    schema = drafts[0].query.node.schema
    relations = derived_relations([draft.federation for draft in drafts])
    moving = [draft for draft in drafts if not is_static(draft.federation)]
    if not moving:
        return _StageResult(StreamDef(name, schema, relations, static=True))
    for draft in moving:
        if unbounded := _unbounded_completion(draft):
            return _StageResult(None, unbounded)
    alone = [completed for draft in moving if (completed := _passing_by(draft.query)) is not None]
    promised = tuple(
        a
        for a in schema.temporal
        if all(draft.functions[a].is_finite for draft in moving) and all(a == completed for completed in alone)
    )
    if promised:
        return _StageResult(StreamDef(name, schema, relations, promised))
    for draft in moving:
        if not any(function.is_finite for function in draft.functions.values()):
            return _StageResult(None, no_progress(draft.query, draft.federation, draft.functions, draft.mends()))
    return _StageResult(None, [_no_common_progress(name, moving)])


def _unbounded_completion(draft: _QueryDraft) -> list[Problem]:
    """The problem of an operator of which nothing bounds the instant that alone may let its rows pass."""
    operator, completed = ordered_operator(draft.query.node), _passing_by(draft.query)
    if operator is None or completed is None or draft.functions[completed].is_finite:
        return []
    hint = draft.mends().completion(operator, completed) or family_of(operator).completion_hint(operator)
    problems = progress_problems(draft.query, draft.federation, draft.functions, [completed], lambda *_: "")
    return [replace(problem, hint=hint or "") for problem in problems]


def _no_common_progress(name: str, drafts: Sequence[_QueryDraft]) -> Problem:
    return Problem(
        "TG202",
        f"not valid: the queries of {name} progress on no common attribute",
        drafts[0].query.site,
        tuple(
            f"{draft.query.name}: {', '.join(a for a, f in draft.functions.items() if f.is_finite)}" for draft in drafts
        ),
        "let every query bound the same attribute",
    )


def _passing_by(query: Query) -> str | None:
    """The attribute that says when a row was complete, where that alone may let rows pass."""
    operator = ordered_operator(query.node)
    alone = operator is not None and family_of(operator).completion_hint(operator) is not None
    return completion(query.node) if alone else None


def _facts(draft: _QueryDraft, output: StreamDef) -> QueryFacts:
    """Keep, relevance, state bound and folding of every occurrence, for what the stream promises."""
    promised = {a: draft.functions[a] for a in output.progress}
    facts = tuple(map(_occurrence_facts(draft, output), range(len(draft.federation.occurrences))))
    return QueryFacts(draft.query, output, draft.federation, promised, facts, grids(draft.query.node, tuple(promised)))


def _occurrence_facts(draft: _QueryDraft, output: StreamDef) -> Callable[[int], OccurrenceFacts]:
    """The facts of each occurrence of a query, by its number."""
    node, few = draft.query.node, len(draft.federation.occurrences) <= MOST_OCCURRENCES
    tables = multiplying_tables(node)
    operator = ordered_operator(node)
    # An operator that gathers events in order has read those up to where it has come.
    waited = output.progress if operator is None else tuple(a for a in output.progress if a == completion(node))
    latencies = Latencies.among({a: draft.functions[a] for a in output.progress})

    def facts(i: int) -> OccurrenceFacts:
        kept, joined = keep(draft.federation, i, waited), tables.get(i, ())
        limit = bound(draft.federation, i, kept, latencies, joined)
        folds, unknown = None, ""
        if isinstance(limit, Unbounded | Collected):
            for_ever = isinstance(limit, Unbounded)
            if few:
                folds = folding(node, i, draft.streams, output.progress, latencies, joined, for_ever=for_ever)
            unknown = "" if folds is not None else why_unknown(node, i)
        return OccurrenceFacts(i, draft.federation.occurrences[i], kept, relevance(kept), limit, folds, unknown)

    return facts


def _conflicting_inputs(program: ProgramDef) -> list[Problem]:
    known: dict[str, StreamDef] = {}
    return [
        Problem(
            "TG207",
            f"{stream.name} has two definitions in this program",
            query.site,
            hint="define a stream once and share the handle",
            query=query.name,
        )
        for query in program.queries
        for stream in dict.fromkeys(occurrences(query.node))
        if stream.name not in program.result_names and known.setdefault(stream.name, stream) != stream
    ]
