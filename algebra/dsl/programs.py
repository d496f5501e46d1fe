"""From handles to a program: which query feeds which stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate.algebra.diagnostics.shown import kind_of
from tidegate.algebra.dsl.checks.relation import to_finish, what_else
from tidegate.algebra.dsl.checks.results import add_results
from tidegate.algebra.dsl.depth import depth_of, largest_term, references_in
from tidegate.algebra.dsl.here import (
    MAX_DEPTH,
    MAX_REFERENCES,
    MAX_SIZE,
    too_deep,
    too_large,
    too_many_references,
)
from tidegate.algebra.dsl.relation import Declaration, Relation
from tidegate.algebra.dsl.sources import QueryHandle, Result
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.nodes import Scan, occurrences
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import Schema, StreamDef, checked_name


def program_of(queries: Sequence[QueryHandle], named: Mapping[str, Relation], site: Site | None) -> ProgramDef:
    """The program of these queries; result streams that they read and that know their query bring it along."""
    fed: list[Query] = []
    used: dict[str, Result] = {}
    for handle in queries:
        if not isinstance(handle, QueryHandle):
            raise QueryError(
                "TG114", f"a program has queries, not {kind_of(handle)}", hint="write tg.program(Name=relation)"
            )
    streams = [handle.result.definition.name for handle in queries]
    for place, (stream, handle) in enumerate(zip(streams, queries, strict=True)):
        number = f".{streams[: place + 1].count(stream)}" if streams.count(stream) > 1 else ""
        fed.append(_fed(handle.name or stream + number, handle))
        add_results(used, handle.relation._results)
    for name, relation in named.items():
        if not isinstance(relation, Relation):
            raise QueryError(
                "TG114", f"{name} is {what_else(relation)}", hint=f"a program has relations: {to_finish(relation)}"
            )
        if name in streams:
            raise QueryError(
                "TG121",
                f"{name} is fed twice: by tg.query and by name",
                hint="give every query of a declared result stream as tg.query(...)",
            )
        add_results(used, relation._results)
        if not _is_result(name, relation):  # whose own query comes along
            fed.append(named_query(name, relation, site))
    _bring_along(fed, used)
    if not fed:
        raise QueryError("TG124", "a program without queries", hint="write tg.program(Name=relation)")
    program = ProgramDef(tuple(fed))
    _require_consistent(program, used)
    return program


def _walkable(query: Query) -> Query:
    """The query, if it does not nest so much that Python's stack, which all that walks over it uses, could overflow,
    and is not so large, written out, that no walk would end.
    """
    depth = depth_of(query.node)
    if depth > MAX_DEPTH:
        raise too_deep(query.site, depth)
    size = largest_term(query.node)
    if size > MAX_SIZE:
        raise too_large(query.site, size)
    references = references_in(query.node)
    if references > MAX_REFERENCES:
        raise too_many_references(query.site, references)
    return query


def named_query(name: str, relation: Relation, site: Site | None) -> Query:
    """The query that gives a result stream its name; prefixes that distinguish nothing are stripped."""
    plain = relation._unqualified(site)
    declared = None if relation._declaration is None else _declared(name, plain.schema, relation._declaration)
    return _walkable(Query(checked_name(name, "a result"), name, plain._node, declared, site, dict(plain._sites)))


def query_of_result(name: str, relation: Relation, site: Site | None) -> Query:
    """The query of a result that others read; `QueryError` TG122 where it reads another stream of that name."""
    query = named_query(name, relation, site)
    _require_consistent(ProgramDef((query,)), relation._results)
    return query


def _declared(name: str, schema: Schema, declaration: Declaration) -> StreamDef:
    return StreamDef(name, schema, declaration.relations, declaration.progress)


def _fed(name: str, handle: QueryHandle) -> Query:
    definition = handle.result.definition
    sites = {**handle.result._sites, **handle.relation._sites}
    return _walkable(Query(name, definition.name, handle.relation._node, definition, handle.site, sites))


def _is_result(name: str, relation: Relation) -> bool:
    """Whether a relation is the result stream of that name, which knows its query."""
    node, result = relation._node, relation._results.get(name)
    if relation._declaration is not None or result is None or result._fed_by is None:
        return False
    return isinstance(node, Scan) and node.stream.name == name


def _bring_along(queries: list[Query], used: dict[str, Result]) -> None:
    """Adds the queries of result streams that know theirs; `QueryError` for one that nothing feeds."""
    waiting = list(used)
    while waiting:
        name = waiting.pop()
        result = used[name]
        fed_by = result._fed_by
        given = [query for query in queries if query.stream == name]
        if fed_by is None and not given:
            raise QueryError(
                "TG123", f"nothing feeds the result stream {name}", hint=f"add tg.query({name}, ...) to the program"
            )
        if fed_by is None:
            if any(query.declared is None for query in given):
                raise QueryError(
                    "TG121",
                    f"{name} is declared, but its query is given by name",
                    hint=f"write tg.query({name}, ...) instead",
                )
            continue
        if not given:
            queries.insert(0, fed_by)
            waiting += [stream for stream in result._fed_reads if stream not in used]
            add_results(used, result._fed_reads)
        elif [query.node for query in given] != [fed_by.node]:
            raise QueryError(
                "TG121",
                f"{name} is fed by another query than the one whose result is read",
                hint=f"pass the same relation as {name}=..., or leave it out: it comes along. Another result, or one "
                "in contexts of a model of that name, has another name",
            )


def _require_consistent(program: ProgramDef, used: Mapping[str, Result]) -> None:
    """Each name means one stream, and each query one name."""
    known: dict[str, StreamDef] = {name: result.definition for name, result in used.items()}
    for query in program.queries:
        if query.declared is not None and known.setdefault(query.stream, query.declared) != query.declared:
            raise _two_streams(query.stream)
        for stream in occurrences(query.node):
            if stream.name in program.result_names and stream.name not in used:
                raise QueryError(
                    "TG122",
                    f"{stream.name} is an input stream and a result of this program",
                    hint="give the result another name, or read it with tg.result(...) or tg.result_of(...)",
                )
            if known.setdefault(stream.name, stream) != stream:
                raise _two_streams(stream.name)
    names = [query.name for query in program.queries]
    for name in names:
        if names.count(name) > 1:
            raise QueryError("TG121", f"two queries are named {name}", hint="give each a name: tg.query(..., name=...)")


def _two_streams(name: str) -> QueryError:
    return QueryError(
        "TG122", f"{name} has two definitions in this program", hint="define a stream once and share the handle"
    )
