"""What users declare of an operator of their own, checked where it is put to use."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tidegate.algebra.diagnostics.shown import kind_of, nearest, shown
from tidegate.algebra.dsl.ddl import to_schema
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.process import Operator, parameters, values_beside_fields
from tidegate.algebra.types import DataType

#: What an operator declares as values, and how each is written.
_DECLARED: Final = {
    "reads": 'reads = ("speed",)',
    "tables": 'tables = {"last": "speed double"}',
    "wakes": 'wakes = ("last", "due")',
    "most": 'most = {"last": 1}',
    "kept_for": 'kept_for = "1h"',
}
#: Of which kind what it declares is: a field of this kind, with nearly such a name, is misspelt.
_KINDS: Final = {"reads": tuple, "tables": Mapping, "wakes": tuple, "most": Mapping, "kept_for": str}
#: What every operator defines, and how.
_DEFINED: Final = {
    "result": 'def result(self, events): return tg.stream("Name", "t timestamp, ...", progress="t")',
    "step": "def step(self, events, state, reach): return rows, {table: what is kept}",
}


def check_operator(operator: object) -> None:
    """`QueryError` TG114 for what is no operator, for one that lacks a method, and for one whose values no checkpoint
    could tell from others.
    """
    if isinstance(operator, type) and issubclass(operator, Operator):
        name, given = operator.__name__, ", ".join(f"{name}=..." for name in parameters(operator))
        raise QueryError("TG114", f"process got the class {name}, not an operator", hint=f"write {name}({given})")
    if not isinstance(operator, Operator):
        raise QueryError(
            "TG114", f"process got {kind_of(operator)}, not an operator", hint="derive one from tg.Operator"
        )
    name = type(operator).__name__
    if unknown := values_beside_fields(operator):
        raise QueryError(
            "TG114",
            f"{name} keeps {unknown[0]!r} in the object, and it is no field of a dataclass",
            hint=f"a checkpoint belongs to the values of the fields: write @dataclass(frozen=True) above class {name}, "
            f"with a field {unknown[0]}, and no __init__",
        )
    try:
        hash(operator)
    except TypeError as error:
        raise QueryError(
            "TG114",
            f"{name} has no hash: {error}",
            hint=f"write @dataclass(frozen=True) above class {name}, with fields of values that never change: "
            "numbers, texts, tuples",
        ) from None
    _check_names(type(operator))


def _check_names(cls: type[Operator]) -> None:
    """`QueryError` TG114 for a method that is missing, and for a declaration that is misspelt."""
    names = [name for base in cls.__mro__ if issubclass(base, Operator) and base is not Operator for name in vars(base)]
    for name, written in _DEFINED.items():
        if getattr(cls, name) is getattr(Operator, name):
            near = nearest(name, [member for member in names if callable(getattr(cls, member, None))], 1)
            meant = f"is {near[0]} meant? " if near else ""
            raise QueryError("TG114", f"{cls.__name__} has no {name}(...)", hint=f"{meant}write {written}")
        given = inspect.signature(getattr(cls, name))
        try:
            given.bind(*inspect.signature(getattr(Operator, name)).parameters)
        except TypeError as error:
            raise QueryError("TG114", f"{name} of {cls.__name__}: {error}", hint=f"write {written}") from None
    for name in names:
        if name.startswith("_") or callable(getattr(cls, name, None)):
            continue
        # A name of the user's own is left alone, unless it is that of a declaration but for a letter.
        near = [
            member
            for member in nearest(name, _DECLARED, 1)
            if abs(len(member) - len(name)) <= 1 and member not in names
        ]
        is_field = near and name in parameters(cls) and not isinstance(getattr(cls, name, None), _KINDS[near[0]])
        if near and name not in _DECLARED and not is_field:
            raise QueryError(
                "TG114", f"an operator declares no {name!r}: {cls.__name__}", hint=f"did you mean {near[0]}?"
            )


def check_reads(operator: Operator) -> None:
    """`QueryError` TG114 where what is read is not given as several names."""
    given: object = operator.reads
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise _misdeclared(operator, "reads", f'reads = ("{given}",)' if isinstance(given, str) else "")


def check_tables(operator: Operator, time: DataType) -> None:
    """`QueryError` TG114 for tables, their timers and bounds that are not declared as such, or of which one is of a
    table or a column that there is not.
    """
    name, tables, most = type(operator).__name__, _mapping(operator, "tables"), _mapping(operator, "most")
    schemas = {}
    for table, columns in tables.items():
        if not isinstance(columns, str):
            raise _misdeclared(operator, "tables")
        schemas[table] = to_schema(columns)
        if "partition" in schemas[table].names:
            raise QueryError(
                "TG114",
                f"table {table!r} of {name} declares a column partition",
                hint="leave it out: every frame has it as its first column",
            )
    has = f"it has {', '.join(tables) or 'none'}"
    for table, rows in most.items():
        if table not in tables:
            raise QueryError("TG114", f"{name} bounds {shown(table)}, which is no table of it", hint=has)
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise QueryError(
                "TG114",
                f"{name} has at most {shown(rows)} rows of table {table!r}",
                hint="write how many rows a partition has at most, 1 or more; or leave the table out of most",
            )
    wakes: object = operator.wakes
    if wakes is None:
        return
    if not isinstance(wakes, tuple) or len(wakes) != 2:
        raise _misdeclared(operator, "wakes")
    table, column = wakes
    if table not in tables:
        raise QueryError("TG114", f"{name} wakes by {shown(table)}, which is no table of it", hint=has)
    if column not in schemas[table].names or schemas[table][column].type != time:
        raise QueryError(
            "TG114",
            f"{name} wakes by {shown(column)}, which is no {time} of table {table!r}",
            hint=f"the table has {tables[table]}",
        )


def _mapping(operator: Operator, what: str) -> Mapping[str, Any]:
    given: object = getattr(operator, what)
    if not isinstance(given, Mapping):
        raise _misdeclared(operator, what)
    return given


def _misdeclared(operator: Operator, what: str, written: str = "") -> QueryError:
    return QueryError(
        "TG114",
        f"{type(operator).__name__} declares {what} as {shown(getattr(operator, what))}",
        hint=f"write {written or _DECLARED[what]}",
    )
