"""Forms that say what a query is after that a stream can not answer as it is written: the total up to each row, each
value once, windows of rows, the largest of each window, versions, look-ups.

A form goes by the shape of the query. Whether the query progresses in it is for its caller to try.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from tidegate.algebra.dsl.over.build import UNTIL, versions_node, without_repeats
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import Distinct, Group, Imbed, Join, Node, Project, Rename, Scan, Select
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.over import Frame, FrameAggregate, Over
from tidegate.algebra.ordered.ranks import Numbering, RankColumn, RankedBy, Ranks
from tidegate.algebra.ordered.ticks import TICK, Ticks
from tidegate.algebra.ordered.windows.kinds import CountWindow
from tidegate.algebra.ordered.windows.node import Windows
from tidegate.algebra.row_wise import is_row_wise
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr, Call, Lit, Term, attributes_of, conjuncts
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.types import BIGINT
from tidegate.analysis.inner_queries import inner_owner
from tidegate.analysis.validity.places import Unary, below_unary, carrying, free_name, replaced, unary_operators
from tidegate.analysis.validity.written import written_name
from tidegate.analysis.zones.wording import usual_spans

#: Divisions without rest, by which rows that are numbered fall into groups of so many.
_DIVISIONS: Final = ("idiv", "try_idiv", "floordiv")
#: Comparisons of a count with the number of rows that are wanted, and what is added to the number.
_AT_MOST: Final = {"lt": 0, "le": 1}
_MIRRORED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


@dataclass(frozen=True, slots=True)
class Form:
    """The query in another form, and how that is written."""

    node: Node
    text: str


# Results without instants ---------------------------------------------------------------------------------------------


def of_rows(above: Sequence[Unary]) -> Form | None:
    """Windows of so many rows, where rows are numbered and the numbers are divided: `group_by(batch=n.div(5))`."""
    group = _lowest_group(above)
    if group is None:
        return None
    for operator in unary_operators(group.input):
        if not isinstance(operator, Imbed) or operator.name not in group.keys:
            continue
        match operator.term:
            case Call(op, (numbers, Lit(int(size)))) if op in _DIVISIONS and size > 1 and not isinstance(size, bool):
                numbered = [_numbered(name, operator.input) for name in attributes_of(numbers)]
                if len(numbered) == 1 and (rows := numbered[0]) is not None:
                    others = [key for key in group.keys if key != operator.name]
                    return _count_windows(rows, size, [named_below(key, group.input, rows) for key in others])
            case _:
                pass
    return None


def _count_windows(rows: Node, size: int, keys: Sequence[str | None]) -> Form | None:
    known = tuple(key for key in keys if key is not None)
    if len(known) < len(keys) or not rows.schema.temporal:
        return None
    time = rows.schema.temporal[0]
    node = Windows(rows, known, time, CountWindow(size, size), (), None)
    return Form(
        node, f"take windows of {size} rows: windows(tg.rows({size}){by_option(known, rows)}{order_option(time, rows)})"
    )


def largest(above: Sequence[Unary], window: Callable[[Node, str], tuple[Term, str]]) -> Form | None:
    """The first rows of each window, where rows are counted that are greater or less than one of their own stream.

    `window` gives the window of an instant of a node, and how it is written.
    """
    group = _lowest_group(above)
    if group is None or not isinstance(group.input, Join) or group.input.kind not in ("inner", "left"):
        return None
    join, wanted = group.input, _wanted(above[: above.index(group)], group)
    pairs = [_pair(part, join) for part in conjuncts(join.condition)]
    known = [pair for pair in pairs if pair is not None]
    keys = tuple(pair.left for pair in known if pair.op == "eq")
    orders = [pair for pair in known if pair.op != "eq" and not join.left.schema[pair.left].temporal]
    if wanted is None or len(known) < len(pairs) or len(orders) != 1 or len(join.left.schema.temporal) != 1:
        return None
    name, (term, text) = free_name("window", join.left), window(join.left, join.left.schema.temporal[0])
    # A row is counted itself where those as large as it are.
    descending, most = orders[0].op in ("lt", "le"), wanted - (orders[0].op in ("le", "ge"))
    if most < 1:
        return None
    by, place = RankedBy(Attr(orders[0].left), descending), RankColumn(free_name("rank", join.left), Numbering.RANK)
    node = Ranks(Imbed(join.left, name, term), (*keys, name), name, (by,), (place,))
    order = written_name(orders[0].left, join.left)
    order = f"tg.desc({order})" if descending else order
    listed = ", ".join([*(_quoted(key, join.left) for key in keys), f'"{name}"'])
    by_text = f"({listed})" if keys else listed
    return Form(
        node, f"take the first {most} of each window: with_({name}={text}).top_k({most}, by={by_text}, order={order})"
    )


def up_to_each(core: Node, above: Sequence[Unary], instants: Sequence[str]) -> Form | None:
    """The aggregates of all rows up to each row, in the place of those of a group that no window ends."""
    group = _lowest_group(above)
    if group is None or len(instants) != 1 or any(isinstance(operator, Rename) for operator in _below(above, group)):
        return None
    computed = {operator.name for operator in unary_operators(core) if isinstance(operator, Imbed)}
    read = set(group.keys).union(*(_reads(aggregate) for aggregate in group.aggregates))
    if not group.aggregates or computed & {*group.keys} or not read <= {*core.schema}:
        return None
    names = [free_name(aggregate.name, core) for aggregate in group.aggregates]
    columns = tuple(
        FrameAggregate(replace(aggregate, name=name), Frame())
        for name, aggregate in zip(names, group.aggregates, strict=True)
    )
    time = instants[0]
    options = f"{by_option(group.keys, core)}{order_option(time, core)}".removeprefix(", ")
    written = ", ".join([*([options] if options else []), *(f"{name.partition('#')[0]}=..." for name in names)])
    return Form(Over(core, group.keys, time, None, columns), f"for what there is up to each row, take over({written})")


def latest_of_each(core: Node, above: Sequence[Unary], instants: Sequence[str]) -> Form | None:
    """Each row with the instant at which the next one of its key comes, in the place of the last one of each key."""
    keys, known = _keys_of_one_row(core, above, instants, Function.LAST, Function.MAX)
    if not keys or UNTIL in core.schema:
        return None
    options = f"{by_option(keys, core)}{order_option(instants[0], core)}".removeprefix(", ")
    relation, _, _ = written_name(keys[0], core).rpartition(".")
    relation = relation if relation and of_stream(keys[0], core) is not None else "..."
    names = [f'"{key.rpartition(".")[2]}"' for key in keys]
    by = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
    return Form(
        versions_node(core, keys, instants[0], None),
        f"for the latest of each{known}, take the instant at which the next one comes: versions({options}); or look it "
        f"up at each row of another stream: asof_join({relation}, by={by})",
    )


def first_of_each(core: Node, above: Sequence[Unary], instants: Sequence[str]) -> Form | None:
    """The first row of each key, in the place of a group that no window ends."""
    keys, known = _keys_of_one_row(core, above, instants, Function.FIRST, Function.MIN)
    if not keys:
        return None
    listed = ", ".join(_quoted(key, core) for key in keys)
    return Form(
        without_repeats(core, keys, instants[0], None, None),
        f"take the first row of each{known}: distinct_on({listed}{order_option(instants[0], core)})",
    )


def _keys_of_one_row(
    core: Node, above: Sequence[Unary], instants: Sequence[str], by_time: Function, extreme: Function
) -> tuple[tuple[str, ...], str]:
    """The keys of a group that asks for values of one row of each alone, the first or the last; empty of others, and
    of values with a `filter=`: the first one may be of a later row, or of none. So it is where a value is NULL: the
    text says which must not be.
    """
    group = _lowest_group(above)
    if group is None or len(instants) != 1 or any(isinstance(operator, Rename) for operator in _below(above, group)):
        return (), ""
    time, computed = Attr(instants[0]), {o.name for o in unary_operators(core) if isinstance(o, Imbed)}
    asks = [
        (one.function is by_time and one.by == time) or (one.function is extreme and one.argument == time)
        for one in group.aggregates
    ]
    values = dict.fromkeys(one.argument for one in group.aggregates if one.argument is not None)
    unsure = [value for value in values if resolve(value, group.input.schema).nullable]
    names = [value.name for value in unsure if isinstance(value, Attr) and value.name in core.schema]
    if not asks or not all(asks) or computed & {*group.keys} or len(names) < len(unsure):
        return (), ""
    known = " and ".join(written_name(name, core) for name in names)
    return group.keys, f", if {known} {'is' if len(names) == 1 else 'are'} never NULL" if names else ""


def once(core: Node, above: Sequence[Unary], instants: Sequence[str]) -> Form | None:
    """The first of equal rows, with its instant, in the place of a `distinct` that no window ends."""
    distinct = next((operator for operator in reversed(above) if isinstance(operator, Distinct)), None)
    if distinct is None or len(instants) != 1 or _lowest_group(above) is not None:
        return None
    keys, name = distinct.schema.names, free_name("first", distinct)
    rows = carrying(distinct.input, core, name, Attr(instants[0]))
    node = without_repeats(rows, keys, name, None, None)
    quoted = ", ".join(f'"{key}"' for key in keys)
    text = f"select(..., {written_name(instants[0], core)}).distinct_on({quoted})"
    return Form(node, f"take each with the instant at which it comes first: {text}")


def asking(rows: Node, seen: tuple[str, ...]) -> tuple[Node, str, str]:
    """Instants that follow rows, the name of their attribute, and where they are from. Where several instants say
    together when rows are known, they are those of a stream.
    """
    type_, (written, *others) = rows.schema[seen[0]].type, (written_name(name, rows) for name in seen)
    if others:
        attribute = Attribute("time", type_, nullable=False, temporal=True)
        return Scan(StreamDef("ticks~", Schema((attribute,)), progress=("time",))), "time", "a stream of instants"
    relation = written.rpartition(".")[0] or "..."
    if len(rows.schema.temporal) > 1:
        relation += f".select({written})"
    period, every = usual_spans(type_)[0]
    return Ticks(rows, (), seen[0], period), TICK, f"ticks = tg.ticks({every}, {relation})"


# Results that do not progress -----------------------------------------------------------------------------------------


def versions(node: Node) -> Form | None:
    """Each row with the instant at which the next one of its key comes, in the place of rows that no later one has
    replaced.
    """
    join = below_unary(node)
    if not isinstance(join, Join) or join.kind != "anti" or UNTIL in join.left.schema:
        return None
    pairs = [_pair(part, join) for part in conjuncts(join.condition)]
    known = [pair for pair in pairs if pair is not None]
    keys = tuple(pair.left for pair in known if pair.op == "eq")
    later = [pair.left for pair in known if pair.op == "lt" and join.left.schema[pair.left].temporal]
    if not keys or len(known) < len(pairs) or len(known) != len(keys) + 1 or len(later) != 1:
        return None
    mended = versions_node(join.left, keys, later[0], None)
    options = f"{by_option(keys, join.left)}{order_option(later[0], join.left)}".removeprefix(", ")
    return Form(mended, f"take each with the instant at which the next one comes: versions({options})")


def looked_up(node: Node) -> Form | None:
    """The last row before each row, in the place of pairs of which nothing but keys is said."""
    join = below_unary(node)
    if not isinstance(join, Join) or join.kind not in ("inner", "left"):
        return None
    left, right = join.left, join.right
    equal = [equal_keys(part, join) for part in conjuncts(join.condition)]
    keys = [pair for pair in equal if pair is not None]
    sides = (left, right)
    if not keys or len(keys) < len(equal) or not all(is_row_wise(side) for side in sides):
        return None
    if any(len(side.schema.temporal) != 1 for side in sides):
        return None
    if left.schema[left.schema.temporal[0]].type != right.schema[right.schema.temporal[0]].type:
        return None
    found, text = as_of(left, right, keys, "inner" if join.kind == "inner" else "left")
    return Form(replaced(node, join, found), text)


def as_of(
    left: Node, right: Node, keys: Sequence[tuple[str, str]], how: Literal["left", "inner"], *, strict: bool = False
) -> tuple[AsOf, str]:
    """The last row before each row of the left side, and how that is written; either side has one instant."""
    (left_time,), (right_time,) = left.schema.temporal, right.schema.temporal
    left_keys, right_keys = (tuple(pair[side] for pair in keys) for side in (0, 1))
    found = AsOf(left, right, left_keys, right_keys, left_time, right_time, strict=strict, how=how)
    other, dot, _ = written_name(right_keys[0], right).rpartition(".")
    short = [(one.rpartition(".")[2], its.rpartition(".")[2]) for one, its in keys]
    by = [f'"{one}"' if one == its else f'("{one}", "{its}")' for one, its in short]
    listed = f"[{', '.join(by)}]" if len(by) > 1 or by[0].startswith("(") else by[0]
    options = (", strict=True" if strict else "") + (', how="inner"' if how == "inner" else "")
    return found, f"look up the last one before each row: asof_join({other if dot else '...'}, by={listed}{options})"


# Parts of a shape -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pair:
    """A comparison of one attribute of a stream in both of its occurrences: `left op right`."""

    left: str
    op: str


def _pair(part: Term, join: Join) -> _Pair | None:
    """The comparison of a left attribute with the same one of the right side, both of one stream as it is."""
    match part:
        case Call(op, (Attr(one), Attr(other))) if op in ("eq", *_MIRRORED):
            if one not in join.left.schema:
                one, other, op = other, one, _MIRRORED.get(op, op)
            if one not in join.left.schema or other not in join.right.schema:
                return None
            first, second = of_stream(one, join.left), of_stream(other, join.right)
            return _Pair(one, op) if first is not None and first == second else None
        case _:
            return None


def equal_keys(part: Term, join: Join) -> tuple[str, str] | None:
    """The attributes of both sides that a condition says to be equal, and that are no instants."""
    match part:
        case Call("eq", (Attr(one), Attr(other))):
            if one not in join.left.schema:
                one, other = other, one
            if one not in join.left.schema or other not in join.right.schema:
                return None
            first, second = join.left.schema[one], join.right.schema[other]
            return None if first.temporal or second.temporal or first.type != second.type else (one, other)
        case _:
            return None


def of_stream(name: str, node: Node) -> tuple[StreamDef, str] | None:
    """The stream of which a side has all rows, and what the stream calls an attribute of it."""
    while isinstance(node, Rename):
        name = {new: old for old, new in node.pairs}.get(name, name)
        node = node.input
    return (node.stream, name) if isinstance(node, Scan) else None


def _wanted(above: Sequence[Unary], group: Group) -> int | None:
    """How many rows are wanted, where a condition says so of the number of rows that a group counts."""
    counts = {aggregate.name for aggregate in group.aggregates if aggregate.function is Function.COUNT}
    for operator in above:
        if isinstance(operator, Select):
            for part in conjuncts(operator.condition):
                match part:
                    case Call(op, (Attr(name), Lit(int(number)))) if op in _AT_MOST and name in counts:
                        return number + _AT_MOST[op]
                    case _:
                        pass
    return None


def _numbered(name: str, node: Node) -> Node | None:
    """The rows that an attribute numbers; None where it is no number of them."""
    match node:
        case Select() | Project() | Distinct():
            return _numbered(name, node.input)
        case Rename(input_, pairs):
            return _numbered({new: old for old, new in pairs}.get(name, name), input_)
        case Imbed(input_, computed, _):
            return None if name == computed else _numbered(name, input_)
        case Group(Join(left, right, _, _), _, aggregates):
            counts = any(a.name == name and a.function is Function.COUNT for a in aggregates)
            streams = [_stream(side) for side in (left, right)]
            return left if counts and streams[0] is not None and streams[0] == streams[1] else None
        case Scan(stream):
            # Of an operator inside the query only what it yields is known: `row_number()` is never NULL, counts are.
            attribute = node.schema[name]
            own = bool(inner_owner(stream.name)) and not attribute.temporal
            return node if own and attribute.type == BIGINT and not attribute.nullable else None
        case _:
            return None


def _stream(node: Node) -> StreamDef | None:
    while isinstance(node, Select | Rename):
        node = node.input
    return node.stream if isinstance(node, Scan) else None


def named_below(name: str, node: Node, below: Node) -> str | None:
    """What a node further down calls an attribute; None where it is computed on the way, or not there."""
    while node is not below:
        match node:
            case Rename(input_, pairs):
                name, node = {new: old for old, new in pairs}.get(name, name), input_
            case Imbed(input_, computed, _):
                if name == computed:
                    return None
                node = input_
            case Group(input_, keys, _):
                if name not in keys:
                    return None
                node = input_
            case Select() | Project() | Distinct():
                node = node.input
            case Join(left, _, _, _):
                node = left
            case _:
                return None
    return name if name in node.schema else None


def _lowest_group(above: Iterable[Unary]) -> Group | None:
    groups = [operator for operator in above if isinstance(operator, Group)]
    return groups[-1] if groups else None


def _below(above: Sequence[Unary], group: Group) -> Sequence[Unary]:
    return above[above.index(group) + 1 :]


def _reads(aggregate: Aggregate) -> frozenset[str]:
    return frozenset[str]().union(*map(attributes_of, aggregate.terms))


# How they are written -------------------------------------------------------------------------------------------------


def _quoted(name: str, node: Node) -> str:
    """An attribute as an option takes it: after its relation, or its name as text."""
    written = written_name(name, node)
    return written if "." in written else f'"{written}"'


def by_option(keys: Sequence[str], node: Node) -> str:
    names = [_quoted(key, node) for key in keys]
    if not names:
        return ""
    return f", by={names[0]}" if len(names) == 1 else f", by=({', '.join(names)})"


def order_option(time: str, node: Node) -> str:
    """The order, where rows hold several instants."""
    return "" if len(node.schema.temporal) == 1 else f", order={_quoted(time, node)}"
