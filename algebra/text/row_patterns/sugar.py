"""Operations that SQL writes in words, as those that conditions have: IN, BETWEEN, LIKE, CASE, CAST."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tidegate.algebra.errors import QueryError
from tidegate.algebra.text.parsing import Part, Text

#: Types by their names in SQL, where those are others.
_TYPES: Final = {
    **dict.fromkeys(("int", "integer", "smallint"), "bigint"),
    **dict.fromkeys(("float", "real"), "double"),
    **dict.fromkeys(("varchar", "char", "text"), "string"),
}
_CASTS: Final = ("bigint", "boolean", "date", "double", "string", "timestamp")
_WORDS: Final = frozenset(("in_list", "between", "like"))


def plain(text: Text, tree: Part) -> Part:
    """The value in operations that all languages have; each stands where the words stood."""
    parts = tuple(plain(text, part) for part in tree.parts)
    kind = tree.kind
    if kind.startswith("not_") and kind.removeprefix("not_") in _WORDS:
        return _part(tree, "not", _in_signs(tree, kind.removeprefix("not_"), parts))
    if kind in _WORDS:
        return _in_signs(tree, kind, parts)
    if kind == "case":
        return _case(tree, None, parts)
    if kind == "case_of":
        return _case(tree, parts[0], parts[1:])
    if kind == "cast":
        return _cast(text, tree, *parts)
    return tree if parts == tree.parts else replace(tree, parts=parts)


def _in_signs(tree: Part, kind: str, parts: tuple[Part, ...]) -> Part:
    value, *given = parts
    if kind == "like":
        return _call(tree, "like", *parts)
    if kind == "between":
        return _part(tree, "and", _part(tree, "ge", value, given[0]), _part(tree, "le", value, given[1]))
    equal = [_part(tree, "eq", value, one) for one in given]
    return equal[0] if len(equal) == 1 else _part(tree, "or", *equal)


def _case(tree: Part, of: Part | None, parts: tuple[Part, ...]) -> Part:
    """The first value of which the condition is true, or of which `of` is equal to what stands there."""
    value = parts[-1].parts[0] if parts[-1].kind == "otherwise" else _part(tree, "null")
    for when in reversed([part for part in parts if part.kind == "when"]):
        condition, then = when.parts
        value = _call(tree, "if", condition if of is None else _part(condition, "eq", of, condition), then, value)
    return value


def _cast(text: Text, tree: Part, value: Part, type_: Part) -> Part:
    name = type_.text.lower()
    to = _TYPES.get(name, name)
    if to not in _CASTS:
        hint = f"there are {', '.join(_CASTS)}"
        raise QueryError("TG112", f"no cast to {type_.text}", hint=hint, site=text.at(type_))
    return _call(tree, f"cast_{to}", value)


def _call(tree: Part, name: str, *given: Part) -> Part:
    return _part(tree, "call", Part("NAME", name, (), tree.line, tree.column), *given)


def _part(tree: Part, kind: str, *parts: Part) -> Part:
    return Part(kind, "", parts, tree.line, tree.column)
