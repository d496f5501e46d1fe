"""The plan as text and as JSON: what is stored of each stream, and what each increment evaluates."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.algebra.nodes import Group, Node
from tidegate.algebra.printing.plans import listed, node_text
from tidegate.algebra.printing.terms import term_text
from tidegate.analysis.ordered.table import family_of, operator_state
from tidegate.runtime.eval.beginnings.untold import untold
from tidegate.runtime.plan.placement import Limits, size_text
from tidegate.runtime.plan.schedule import Timetable
from tidegate.runtime.plan.shared_parts import sharers
from tidegate.runtime.plan.steps import Buffer, OrderedStep, Plan, QueryPlan


def plan_text(plan: Plan, timetable: Timetable | None = None, limits: Limits | None = None) -> str:
    """Buffers first, then queries in the order in which they are evaluated, with the schedule and the limits of a run
    if given.
    """
    limits = limits or Limits()
    parts = [_buffer_text(plan, buffer, limits) for buffer in plan.buffers]
    parts += [
        _query_text(query, shared, timetable or Timetable(), limits)
        for query, shared in zip(plan.queries, sharers(plan.queries), strict=True)
    ]
    return "\n\n".join(parts)


def plan_dict(plan: Plan, timetable: Timetable | None = None, limits: Limits | None = None) -> dict[str, object]:
    """The same as plain values."""
    limits = limits or Limits()
    return {
        "limits": {"driver_bytes": limits.driver_bytes, "shard_bytes": limits.shard_bytes},
        "buffers": [
            {
                "buffer": buffer.id,
                "stream": buffer.stream.name,
                "columns": list(buffer.schema.names),
                "holds": buffer.holds,
                "chain": node_text(buffer.chain),
                "read_by": _readers(plan, buffer),
                "freed_by": _freed_by(plan, buffer),
                "bound": _bounds(plan, buffer),
            }
            for buffer in plan.buffers
        ],
        "queries": [
            {
                "query": query.name,
                "schedule": (timetable or Timetable()).describe(query.stream),
                "reads": _inputs(query),
                "shard_key": None if query.shard_key is None else list(query.shard_key),
                "operator": None if query.ordered is None else node_text(query.ordered.node),
                **_notes(query),
                "events": None if query.ordered is None else _events(query.ordered),
                "tree": node_text(query.tree),
                "shares": [{"tree": node_text(part), "with": names} for part, names in shared],
            }
            for query, shared in zip(plan.queries, sharers(plan.queries), strict=True)
        ],
    }


def _buffer_text(plan: Plan, buffer: Buffer, limits: Limits) -> str:
    holds = buffer.holds if buffer.partial is None else f"{buffer.holds}: {_aggregates(buffer.partial)}"
    head = [f"buffer {buffer.id}", f"  holds       {holds}", f"  read by     {', '.join(_readers(plan, buffer))}"]
    freed_by = _freed_by(plan, buffer)
    head += [f"  {'freed when' if k == 0 else '':<12}{rule}" for k, rule in enumerate(freed_by)]
    if freed_by:
        together = next(some for some in plan.purged() if buffer in some)
        head += [f"  at most     {bound}, also without that" for bound in _bounds(plan, buffer)]
        head.append(f"  on Spark    {_swept([member.id for member in together], limits)}")
    if buffer.encoding is not None:
        by = ", ".join((*buffer.encoding.keys, buffer.encoding.time))
        conditions = ", ".join(map(term_text, buffer.encoding.conditions))
        head.append(f"  joined      by {by}, while these stay as they are: {conditions}")
    return "\n".join([*head, _indented("chain", node_text(buffer.chain))])


def _query_text(
    query: QueryPlan, shared: Sequence[tuple[Node, list[str]]], timetable: Timetable, limits: Limits
) -> str:
    lines = [f"increment {query.name}", f"  reads       {', '.join(dict.fromkeys(_inputs(query))) or 'nothing'}"]
    if schedule := timetable.describe(query.stream):
        lines.append(f"  scheduled   {schedule}; while it is behind, what it reads is kept longer")
    if query.grouping is not None:
        lines.append(f"  merges      {_aggregates(query.grouping)}")
    if query.ordered is not None:
        lines.append(_indented("operator", node_text(query.ordered.node)))
        lines.append(f"  events      {_events(query.ordered)}")
        notes = _notes(query)
        if implied := family_of(query.ordered.node).implied(query.ordered.node):
            lines.append(_indented("implied", "\n".join(implied)))
        for head, said in (
            ("execution", notes["execution"]),
            ("order", notes["order"]),
            ("holds", notes["holds"]),
            ("freed when", notes["freed_by"]),
        ):
            lines += [_indented(head, "\n".join(said))] if said else []
    lines.append(f"  on Spark    {limits.describe(query)}")
    for part, names in shared:
        operator = node_text(part).splitlines()[0]
        users = ", ".join(names)
        lines.append(f"  shares      {operator}, computed at most once for {users} where they advance together")
    return "\n".join([*lines, _indented("tree", node_text(query.tree))])


def _notes(query: QueryPlan) -> dict[str, list[str] | None]:
    """What an operator keeps, what frees some of that sooner, and in which order it looks for what it combines at
    first.
    """
    ordered = query.ordered
    if ordered is None:
        return dict.fromkeys(("execution", "order", "holds", "freed_by"))
    analysed, node = family_of(ordered.node), ordered.node
    freed = [] if ordered.purging == "off" else analysed.freed(node, always=ordered.purging == "always")
    return {
        "execution": _execution(query) if analysed.joins_rows(node) else _judged(query),
        "order": list(analysed.orders(node)),
        "holds": list(operator_state(query.facts.query).bounds),
        "freed_by": list(freed),
    }


def _execution(query: QueryPlan) -> list[str]:
    """Which rows of an operator that joins them go before keep lets them go, and what is known of those to come."""
    federation, rules = query.facts.federation, query.purge
    freed = [leaf.occurrence.index for leaf in query.leaves if leaf.occurrence is not None and leaf.partner]
    if rules is None or not freed:
        return ["naive: rows are stored as long as the window lets them"]
    partners = {pair.counterpart for i in freed for pair in rules.partners_of(i) if pair.begun}
    told = [i for i in sorted(partners) if _tells(query, i)]
    rows = f"rows of {listed(freed, federation.occurrence_name)} go once they have no partner, and none to come"
    return [
        f"by beginnings: {rows}; of {listed(told, federation.occurrence_name)} what has begun is known"
        if told
        else f"by partners: {rows}"
    ]


def _judged(query: QueryPlan) -> list[str]:
    """Which stored rows of an operator that derives what they wait for go before keep lets them go."""
    ordered = query.ordered
    assert ordered is not None
    freed = [] if ordered.purging == "off" else _waiting(ordered)
    judged = [(name, of) for n, name, of in freed if query.leaves[n].judged]
    rows = [f"rows of {name} go once they have no {' or no '.join(of)}, and none to come" for name, of in judged]
    known = ", ".join(dict.fromkeys(other for _, of in judged for other in of))
    return [f"by beginnings: {'; '.join(rows)}; of derived {known} what has begun is known"] if rows else []


def _waiting(ordered: OrderedStep) -> list[tuple[int, str, Sequence[str]]]:
    """The inputs of whose rows an operator says which it needs: leaf, name, and what the rows wait for."""
    freed = family_of(ordered.node).freed_inputs(ordered.node, always=ordered.purging == "always")
    return [(ordered.leaves[place], name, of) for place, (name, of) in freed.items()]


def _events(ordered: OrderedStep) -> str:
    """What is stored of an operator's events, and why."""
    if ordered.encoded is not None:
        return (
            "those that follow each other and meet the same conditions are stored as one row, where the source "
            "has a delay"
        )
    why = family_of(ordered.node).one_by_one(ordered.node, shared=len(set(ordered.leaves)) == 1)
    return f"each is stored, because {' and '.join(why)}" if why else "none: it reads rows that are complete"


def _indented(name: str, text: str) -> str:
    return "\n".join(f"  {name if i == 0 else '':<12}{line}" for i, line in enumerate(text.splitlines()))


def _aggregates(group: Group) -> str:
    return f"{', '.join(a.name for a in group.aggregates) or 'none'} by {', '.join(group.keys)}"


def _readers(plan: Plan, buffer: Buffer) -> list[str]:
    return list(dict.fromkeys(query.name for query, _ in plan.readers(buffer)))


def _freed_by(plan: Plan, buffer: Buffer) -> list[str]:
    """The rules that free rows before keep does (R21, R22), if no other reader keeps them as long."""
    if not plan.freed_sooner(buffer):
        return []
    rules: dict[str, None] = {}
    for query, leaf in plan.readers(buffer):
        if leaf.judged and query.ordered is not None:
            for number, name, others in _waiting(query.ordered):
                if query.leaves[number] is leaf:
                    rules[f"no {' or no '.join(others)} is there for {name} of {query.name}, and none to come"] = None
        if query.purge is None or leaf.occurrence is None:
            continue
        federation = query.facts.federation
        if leaf.kill:
            for rule in query.purge.kills_of(leaf.occurrence.index):
                rules[
                    (
                        f"a row of {federation.occurrence_name(rule.counterpart)} that has come keeps it out of "
                        f"{query.name}"
                    )
                ] = None
        if leaf.partner:
            for pair in query.purge.partners_of(leaf.occurrence.index):
                keys = f" with equal {', '.join(a for a, _ in pair.keys)}" if pair.keys else ""
                name = federation.occurrence_name(pair.counterpart)
                begun = " or has begun" if pair.begun and _tells(query, pair.counterpart) else ""
                rules[f"no row of {name}{keys} is there for {query.name}{begun}, and none to come"] = None
    return list(rules)


def _tells(query: QueryPlan, occurrence: int) -> bool:
    """Whether it is known of rows of an occurrence from their beginning on that they may come."""
    leaves = (leaf for leaf in query.leaves if leaf.occurrence is not None and leaf.occurrence.index == occurrence)
    return any(leaf.buffer is not None and untold(leaf.buffer) is not None for leaf in leaves)


def _bounds(plan: Plan, buffer: Buffer) -> list[str]:
    """What keep alone bounds of the rows, once per reader that says something else."""
    readers = (leaf for _, leaf in plan.readers(buffer) if leaf.occurrence is not None)
    return list(dict.fromkeys(leaf.occurrence.state for leaf in readers if leaf.occurrence is not None))


def _swept(names: Sequence[str], limits: Limits) -> str:
    if not limits.driver_bytes:
        return "not freed sooner, as the driver evaluates nothing"
    return (
        f"freed in the driver, while {listed(names)} {'holds' if len(names) == 1 else 'hold'} up to "
        f"{size_text(limits.driver_bytes)}"
    )


def _inputs(query: QueryPlan) -> list[str]:
    return [leaf.buffer.id if leaf.buffer is not None else f"table {leaf.static}" for leaf in query.leaves]
