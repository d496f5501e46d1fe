"""What the methods of relations share: checks of arguments, names and origins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from tidegate.algebra.diagnostics.shown import kind_of, shown
from tidegate.algebra.dsl.checks.suggestions import condition_hint
from tidegate.algebra.dsl.expression import Expression, Origin
from tidegate.algebra.dsl.literals import plain
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.formulas import And, Formula, Not, Opaque, Or, temporal_formula
from tidegate.algebra.nodes import Node, OrderedNode, Rename, Scan, children
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import Schema, checked_name
from tidegate.algebra.terms import Attr, Term
from tidegate.algebra.types import BOOLEAN


def require_temporal(parts: Iterable[Expression]) -> None:
    """Declared relations are temporal relation formulas (TSA Def. 3): comparisons of instants, nothing else."""

    def opaque(formula: Formula) -> Term | None:
        match formula:
            case Opaque(source):
                return source
            case And(parts) | Or(parts):
                return next((term for part in parts if (term := opaque(part)) is not None), None)
            case Not(part):
                return opaque(part)
            case _:
                return None

    for part in parts:
        attributes = {name: read.attribute for name, read in part._reads.items()}
        source = opaque(temporal_formula(part._term, attributes)) if part.type == BOOLEAN else part._term
        if source is not None:
            raise QueryError(
                "TG116",
                f"declared relations compare instants, and {term_text(source)} does not",
                hint=(
                    "compare temporal attributes: s.start <= s.end + tg.hours(1); filter by anything else with where()"
                ),
                site=part._sites.get(source),
            )


def applied(function: Callable[..., object], *relations: object, hint: str = "") -> object:
    """What a function makes of relations; `QueryError` TG114 for one that does not take so many, with this hint or how
    a column of them is written.
    """
    try:
        return function(*relations)
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
        names = "ab"[: len(relations)] if len(relations) > 1 else "r"
        raise QueryError(
            "TG114",
            f"the function does not take {'the relation' if len(relations) == 1 else 'both relations'}: {error}",
            hint=hint or f"write lambda {', '.join(names)}: {' == '.join(f'{name}.x' for name in names)}",
        ) from None


def proper_prefixes(node: Node) -> frozenset[str]:
    """Prefixes that no `as_` made: situations of a match, which they tell apart, and what streams were declared
    with.
    """
    prefixes: set[str] = set()
    waiting, seen = [node], {node}
    while waiting:
        current = waiting.pop()
        if isinstance(current, OrderedNode):
            prefixes.update(current.prefixes)
        elif isinstance(current, Scan):
            prefixes.update(name.partition(".")[0] for name in current.schema if "." in name)
        for child in children(current):
            if child not in seen:
                seen.add(child)
                waiting.append(child)
    return frozenset(prefixes)


def short_name(name: str, proper: Collection[str]) -> str:
    """A name without the prefixes that `as_` gave it."""
    prefix, dot, rest = name.partition(".")
    while dot and prefix not in proper:
        name = rest
        prefix, dot, rest = name.partition(".")
    return name


def listed_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def listed(value: Any) -> list[Any]:
    single = isinstance(value, str | bytes | Expression) or callable(value) or not isinstance(value, Iterable)
    return [value] if single else list(value)


def check_condition(condition: object) -> None:
    """`QueryError` TG114 for a plain value in the place of a condition on rows."""
    if isinstance(condition, bool | int | float | str | bytes | None):
        hint = (
            '== builds a condition only from attributes: is one of them named like a method? write relation["name"]'
            if isinstance(condition, bool)
            else condition_hint(condition)
        )
        raise QueryError("TG114", f"{shown(condition)} is no condition on rows", hint=hint)


def require_new(names: Iterable[str], schema: Schema) -> None:
    """`QueryError` TG103 for names of attributes that there are already, TG114 for what is no name."""
    for name in names:
        if name in schema:
            raise QueryError("TG103", f"attribute {name!r} exists already", hint="choose a new name")
        checked_name(name, "an attribute")


def flag(option: str, given: object, when: str) -> bool:
    """What is true or false; `QueryError` TG114 for anything else. `when` says where it is to be true."""
    value = plain(given)
    if not isinstance(value, bool):
        raise QueryError(
            "TG114",
            f"{option}={shown(given)} says neither yes nor no",
            hint=f"give True {when}; else leave it out",
        )
    return value


def is_identifier(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier()


def attribute_name(expression: Expression) -> str:
    assert isinstance(expression._term, Attr)
    return expression._term.name


def renamed(node: Node, pairs: Iterable[tuple[str, str]]) -> Node:
    changed = tuple((old, new) for old, new in pairs if old != new)
    return Rename(node, changed) if changed else node


def fresh_origins(origins: Mapping[str, Origin | None], label: str) -> dict[str, Origin]:
    fresh = Origin(label)
    return {name: origin or fresh for name, origin in origins.items()}


def free_name(name: str, taken: Iterable[str]) -> str:
    names, free, count = set(taken), name, 0
    while free in names:
        count += 1
        free = f"{name}#{count}"
    return free


def place(sites: dict[Term | Node, Site], node: Node, site: Site | None) -> None:
    if site is not None:
        sites.setdefault(node, site)


def require_instants(schema: Schema, names: Iterable[str]) -> None:
    """What progresses holds instants."""
    for name in names:
        if not schema[name].temporal:
            raise QueryError(
                "TG117",
                f"{name!r} cannot progress: it holds no instants of the streams",
                hint=(
                    "instants are temporal attributes of streams, shifted, rounded, or the least or greatest of several"
                ),
            )


def joined_origins(
    left: Schema, left_origins: Mapping[str, Origin], right: Schema, right_origins: Mapping[str, Origin]
) -> dict[str, Origin]:
    """Origins of the attributes of both sides; `QueryError` TG103 for a name that both have."""
    name = next((name for name in left if name in right), None)
    if name is not None and left_origins[name] is right_origins[name]:
        raise QueryError(
            "TG103",
            f"{left_origins[name].label} is used twice here, so {name!r} is ambiguous",
            hint='give each use a name: a, b = relation.as_("a"), relation.as_("b")',
        )
    if name is not None:
        raise QueryError(
            "TG103",
            f"ambiguous name {name!r}: both sides have it",
            hint='give the sides names: a = first.as_("a"), b = second.as_("b")',
        )
    return {**left_origins, **right_origins}


def require_same_attributes(left: Schema, right: Schema, what: str) -> None:
    """Union and difference match attributes by name."""
    first, second = set(left), set(right)
    if first != second:
        raise QueryError(
            "TG108",
            (
                f"{what} needs equal attributes; only left: {listed_names(first - second)}; only right: "
                f"{listed_names(second - first)}"
            ),
            hint="use select(), rename() or unqualified() on one side",
        )


def what_else(value: object) -> str:
    """What stands where a relation should."""
    return "groups without agg(...)" if type(value).__name__ == "Grouped" else f"{kind_of(value)}, not a relation"


def to_finish(value: object) -> str:
    """What makes a relation of it."""
    match type(value).__name__:
        case "Derived":
            return "take one of the situations by its name, or match them: derived.match(...)"
        case "Expression":
            return (
                "rows for which a condition holds are where(...), and periods for which it does are "
                "tg.match(..., within=...)"
            )
        case "Partitioned":
            return "derive situations, and take one by its name: partition_by(...).derive(A=tg.situation(condition)).A"
        case _:
            return "finish groups with agg(...)"


def require_free(new: Mapping[str, str], schema: Schema) -> None:
    """No two attributes have one name after a renaming."""
    after = [new.get(name, name) for name in schema]
    twice = next((name for name in new.values() if after.count(name) > 1), None)
    if twice is not None:
        old = next(name for name, to in new.items() if to == twice)
        raise QueryError(
            "TG103",
            f"rename gives {twice!r} to two attributes",
            hint=f'choose another name for {old}, or .drop("{twice}") first'
            if twice in schema and twice not in new
            else "each attribute needs a name of its own",
        )
