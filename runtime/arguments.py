"""What a run is given, checked for its kind before anything is made of it; messages name the kind, never the value."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.algebra.diagnostics.shown import kind_of, shown
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError

_MOST_THREADS = 1 << 16


def mapping_of(option: str, value: object, each: str) -> Mapping[str, Any]:
    """What an option says by name, nothing for None; `QueryError` TG401 for what is no mapping. `each` is how a value
    looks.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        with Here():
            raise QueryError(
                "TG401",
                f"{option} is a mapping of names, not {kind_of(value)}",
                hint=f'write {option}={{"Name": {each}}}',
            )
    return value


def check_function(option: str, value: object, takes: tuple[str, ...], hint: str) -> None:
    """`QueryError` TG401 for what can not be called, or not with so many values; None stands for no function."""
    if value is None:
        return
    with Here():
        if not callable(value):
            raise QueryError("TG401", f"{option} is a function, not {kind_of(value)}", hint=hint)
        try:
            signature = inspect.signature(value)
        except (TypeError, ValueError):  # functions of C may have none
            return
        try:
            signature.bind(*takes)
        except TypeError as error:
            given = f"is called with {' and '.join(takes)}" if takes else "is called with nothing"
            raise QueryError("TG401", f"{option} {given}: {error}", hint=hint) from None


def check_clock(value: object) -> None:
    """`QueryError` TG401 for a clock that is no function."""
    check_function("clock", value, (), "a clock is a function that returns a datetime")


def check_on_batch(value: object) -> None:
    """`QueryError` TG401 for an `on_batch` that is no function."""
    check_function(
        "on_batch",
        value,
        ("the report of a batch",),
        "give a function that takes the report of a batch: on_batch=print",
    )


def check_bytes(option: str, value: object) -> None:
    """`QueryError` TG401 for what is no number of bytes."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise QueryError(
            "TG401", f"{option}={shown(value)} is no number of bytes", hint="give a whole number such as 64 << 20, or 0"
        )


def check_progress(value: object) -> None:
    """`QueryError` TG401 for what does not say whether batches are shown."""
    if value is not None and not isinstance(value, bool):
        raise QueryError(
            "TG401",
            f"progress={shown(value)} says neither yes nor no",
            hint="give True or False; leave it out to show batches on a terminal and in a notebook",
        )


def check_count(option: str, value: object) -> None:
    """`QueryError` TG401 for what is no number of times."""
    if not isinstance(value, int) or value < 0:
        raise QueryError("TG401", f"{option}={shown(value)} is no number of times", hint="give 0 or more")


def check_threads(value: object) -> None:
    """`QueryError` TG401 for what is no number of threads."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_THREADS:
        raise QueryError(
            "TG401", f"threads={shown(value)} is no number of threads", hint="give 1 or more, up to one per core"
        )


def check_rows(name: str, value: object) -> None:
    """`QueryError` TG401 for what is no list of rows."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        raise QueryError("TG401", f"{name}: {kind_of(value)} is no list of rows", hint=f"write {name}=[...]")
