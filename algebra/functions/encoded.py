"""What text says in another form: digests, JSON and UUIDs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from tidegate.algebra.functions.rules import Operation, arity, coerce, constant, fixed, misfit, mismatch
from tidegate.algebra.terms import Call, Lit
from tidegate.algebra.typed.kernels import BAD_CAST, Kernel, always, bad_cast
from tidegate.algebra.typed.terms import TypedTerm, apply
from tidegate.algebra.types import NULL, STRING, Kind

# --- kernels ---------------------------------------------------------------------------------------------------------


def _digest(algorithm: Callable[..., Any]) -> Callable[[str], str]:
    def value(text: str) -> str:
        digest: str = algorithm(text.encode(), usedforsecurity=False).hexdigest()
        return digest

    return value


class _Number(str):
    """A number of JSON as it is written."""

    __slots__ = ()


_STEP: Final = re.compile(
    r"\.(?P<name>\w+)|\[(?P<place>\d{1,9})\]|\[\"(?P<quoted>[^\"\\]*)\"\]|\['(?P<single>[^'\\]*)'\]"
)


@lru_cache(1 << 10)
def json_path(path: str) -> tuple[str | int, ...] | None:
    """The members and places that a path such as `$.a[0]["b c"]` goes through; None for what is no path."""
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        place = step["place"]
        steps.append(int(place) if place is not None else next(s for s in step.group(1, 3, 4) if s is not None))
        at = step.end()
    return tuple(steps) if path.startswith("$") else None


def _json(text: str, path: str) -> str | None:
    try:
        value = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_no_constant)
        for step in json_path(path) or ():
            if isinstance(step, int):
                value = value[step] if isinstance(value, list) and step < len(value) else None
            else:
                value = value.get(step) if isinstance(value, dict) else None
        written = None if value is None else value if isinstance(value, str) else _written(value)
        if written is not None:
            written.encode()
    except (ValueError, RecursionError):  # no JSON, half a character, or nested too deeply
        return None
    return None if written is None else str(written)


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _written(value: Any) -> str:
    """JSON without spaces, numbers as they were."""
    match value:
        case dict():
            return "{" + ",".join(f"{_written(name)}:{_written(inside)}" for name, inside in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_written, value)) + "]"
        case _Number():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-?)[0-9A-Fa-f]{4}\1[0-9A-Fa-f]{4}\1[0-9A-Fa-f]{4}\1[0-9A-Fa-f]{12}")


def _uuid(text: str) -> str:
    if _UUID.fullmatch(text) is None:
        raise bad_cast(text, "UUID (8-4-4-4-12 hexadecimal digits)")
    import uuid  # takes long to import, as it looks for the machine's own

    return str(uuid.UUID(text))


def _uuid5(text: str, namespace: str) -> str:
    import uuid  # as above

    return str(uuid.uuid5(uuid.UUID(namespace), text))


#: With what `hashlib` calls them.
DIGESTS: Final = tuple(Kernel(name, _digest(getattr(hashlib, name))) for name in ("md5", "sha1", "sha256", "sha512"))
JSON = Kernel("json", _json, nullable=always)
UUID = Kernel("to_uuid", _uuid, failure=BAD_CAST)
UUID5 = Kernel("uuid5", _uuid5)
KERNELS: Final = (*DIGESTS, JSON, UUID, UUID5)

# --- rules -----------------------------------------------------------------------------------------------------------


def _json_rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "a string, and a constant path"
    arity(call, args, 2, 2, takes)
    path = constant(args[1], STRING)
    if args[0].type not in (STRING, NULL) or not isinstance(path, str) or json_path(path) is None:
        hint = 'a path is $ and steps, such as $.a[0]["b c"]'
        if isinstance(path, str) and json_path(f"$.{path}") is not None:
            hint = f'write x.json("$.{path}")'
        raise misfit(call, args, takes, (Kind.STRING,), 'x.json("$.a")', hint)
    return apply(JSON, (coerce(args[0], STRING),), STRING, call, path)


def _uuid_rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "a string"
    arity(call, args, 1, 1, takes)
    if args[0].type not in (STRING, NULL):
        raise mismatch(call, args, takes)
    return apply(UUID, (coerce(args[0], STRING),), STRING, call, lenient=call.op.startswith("try_"))


_DNS: Final = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


def _uuid5_rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "a string, and a constant UUID"
    arity(call, args, 2, 2, takes)
    namespace = constant(args[1], STRING)
    if args[0].type not in (STRING, NULL) or not isinstance(namespace, str) or _UUID.fullmatch(namespace) is None:
        hint = f"the namespace of DNS names is {_DNS}"
        raise misfit(call, args, takes, (Kind.STRING,), f'x.uuid5("{_DNS}")', hint)
    return apply(UUID5, (coerce(args[0], STRING),), STRING, call, namespace)


_PATHS = tuple((Lit(path, STRING),) for path in ("$", "$.a", "$.a[1]", '$["b c"].d'))
_SPACE = Lit("6ba7b810-9dad-11d1-80b4-00c04fd430c8", STRING)
OPERATIONS: Final = (
    *(Operation(kernel.name, "a string", fixed(kernel, (STRING,), STRING), f"x.{kernel.name}()", counts=(1,), doc="Of the UTF-8 bytes, in small hexadecimal digits.") for kernel in DIGESTS),
    Operation("json", "a string and a constant", _json_rule, 'x.json("$.a[0]")', counts=(1,), constants=_PATHS, doc="The value at a path: of strings the text, numbers as they stand, the rest as JSON; NULL where there is none, and of what is no JSON."),
    Operation("to_uuid", "a string", _uuid_rule, "x.to_uuid()", fallible=True, counts=(1,), doc="A UUID in small digits with hyphens; fails for what is none."),
    Operation("try_to_uuid", "a string", _uuid_rule, "x.try_to_uuid()", counts=(1,), doc="The same; NULL for what is none."),
    Operation("uuid5", "a string and a constant", _uuid5_rule, f'x.uuid5("{_SPACE.value}")', counts=(1,), constants=((_SPACE,),), doc="The UUID (version 5) of a name in a namespace."),
)  # fmt: skip
