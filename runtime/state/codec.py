"""JSON documents of the state: versioned, self-checked, read strictly into frozen dataclasses.

A document is `{"body": ..., "checksum": ..., "format": 6, "kind": ...}` in one canonical spelling, so that every
flipped, missing or added byte is noticed. Supported field types: `int` (64 bit), `str`, `bool`, `T | None`, `tuple[T,
...]`, `tuple[A, B]`, `Mapping[str, T]`, dataclasses, `Extended` and `Json`.
"""

from __future__ import annotations

import hashlib
import json
import math
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Final, TypeVar

from tidegate.algebra.errors import InternalError
from tidegate.runtime.state.errors import FORMAT, StateError

FORMAT_VERSION: Final = 6
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

Extended = Annotated[int | float, "extended"]
"""An int64 or one of the two infinities (as float); written as a number, `"inf"` or `"-inf"`."""

Json = Annotated[Any, "json"]
"""Any JSON value, opaque to the state layer."""

T = TypeVar("T")


class _Mismatch(ValueError):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.place = ""

    def inside(self, place: str) -> _Mismatch:
        self.place = place + self.place
        return self


class Texts:
    """The texts of records in documents that follow each other: most records of one are those of the one before.

    A record is known by its identity, since it never changes; with a text its record is held, so that none else takes
    its place in memory. What a document no longer has is forgotten with it.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str]] = {}
        self._before: dict[int, tuple[Any, str]] = {}

    def of(self, value: Any) -> str:
        """The canonical text of a document's dataclass."""
        self._before, self._known = self._known, {}
        cls: Any = type(value)
        text = _spelled(_codec(cls), value, self)
        self._before = {}
        return text

    def inside(self, codec: _Codec, record: Any) -> str:
        """The text of a record inside a document."""
        key = id(record)
        found = self._known.get(key) or self._before.get(key) or (record, _spelled(codec, record, self))
        self._known[key] = found
        return found[1]


@dataclass(frozen=True, slots=True)
class _Codec:
    """How values of a type become plain JSON values, and back.

    `spell` puts the canonical text of a value together from those of the records inside; None where there is none.
    """

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    spell: Callable[[Any, Texts], str] | None = None
    is_record: bool = False


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical(value: Any) -> str:
    """The one spelling of a JSON value: keys sorted, no spaces, ASCII only."""
    return _CANONICAL.encode(value)


def digest(value: Any) -> str:
    """A 128-bit fingerprint of a JSON value."""
    return hashlib.blake2s(canonical(value).encode("ascii"), digest_size=16).hexdigest()


def plain(value: Any) -> Any:
    """A state dataclass as plain JSON values."""
    cls: Any = type(value)
    return _codec(cls).encode(value)


def parse_plain(cls: type[T], value: Any, *, code: str, where: str) -> T:
    """The inverse of `plain`, strict."""
    hint: Any = cls
    try:
        decoded: T = _codec(hint).decode(value)
    except _Mismatch as error:
        raise StateError(code, f"{where} is damaged: {error.place or 'document'}: {error}") from None
    return decoded


def encode(kind: str, value: Any, texts: Texts | None = None) -> bytes:
    """The document of kind `kind` that holds the dataclass `value`; `texts` are known of the one before."""
    return _document(kind, (texts or Texts()).of(value))


def decode(kind: str, cls: type[T], data: bytes, *, code: str, where: str, hint: str = "") -> T:
    """The value in a document; `StateError` with `code` for damage, TG502 for another format version."""

    def damaged(why: str) -> StateError:
        return StateError(code, f"{where} is damaged: {why}", hint=hint)

    try:
        envelope = json.loads(data.decode("ascii"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        why = "it is empty" if not data else f"not a document of this format ({type(error).__name__})"
        raise damaged(why) from None
    if not isinstance(envelope, dict):
        raise damaged("not a JSON object")
    version = envelope.get("format")
    if type(version) is int and version != FORMAT_VERSION:
        raise StateError(
            FORMAT,
            f"{where} has format {version}; this version of Tidegate reads format {FORMAT_VERSION}",
            hint="use the version of Tidegate that wrote it, or start with a new checkpoint",
        )
    if set(envelope) != {"body", "checksum", "format", "kind"}:
        raise damaged(f"its keys are {', '.join(sorted(envelope))}")
    if envelope["kind"] != kind:
        raise damaged(f"it is a {envelope['kind']!r}, not a {kind!r}")
    try:
        expected = _document(kind, canonical(envelope["body"]))
    except (ValueError, RecursionError):
        raise damaged("it can not be spelled again") from None
    if expected != data:
        raise damaged("its checksum does not match its content")
    try:
        return parse_plain(cls, envelope["body"], code=code, where=where)
    except StateError as error:
        raise StateError(code, error.message, hint=hint) from None


def _document(kind: str, body: str) -> bytes:
    checksum = hashlib.blake2s(f"{kind}\n{FORMAT_VERSION}\n{body}".encode("ascii"), digest_size=16).hexdigest()
    return f'{{"body":{body},"checksum":"{checksum}","format":{FORMAT_VERSION},"kind":"{kind}"}}\n'.encode("ascii")


def _spelled(codec: _Codec, value: Any, texts: Texts) -> str:
    return canonical(codec.encode(value)) if codec.spell is None else codec.spell(value, texts)


def _item_spelling(codec: _Codec) -> Callable[[Any, Texts], str] | None:
    """How items of a sequence or mapping are spelled; None where no record is inside."""
    if codec.is_record:
        return lambda item, texts: texts.inside(codec, item)
    return codec.spell


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _same(value: Any) -> Any:
    return value


def _int(value: Any) -> int:
    if type(value) is not int:
        raise _Mismatch(f"expected an integer, found {_kind(value)}")
    if not INT64_MIN <= value <= INT64_MAX:
        raise _Mismatch("integer beyond 64 bits")
    return value


def _encode_int(value: Any) -> int:
    if type(value) is not int or not INT64_MIN <= value <= INT64_MAX:
        raise InternalError("TG590", f"{value!r} ({type(value).__name__}) is not an int64")
    return value


def _str(value: Any) -> str:
    if type(value) is not str:
        raise _Mismatch(f"expected text, found {_kind(value)}")
    return value


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise _Mismatch(f"expected true or false, found {_kind(value)}")
    return value


def _extended(value: Any) -> int | float:
    match value:
        case "inf":
            return math.inf
        case "-inf":
            return -math.inf
        case _:
            return _int(value)


def _encode_extended(value: Any) -> Any:
    if value == math.inf:
        return "inf"
    if value == -math.inf:
        return "-inf"
    return _encode_int(value)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int():
            return "an integer"
        case float():
            return "a fraction"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"


@cache  # a memo of a pure function: type hints are slow to read, and a manifest is written for every batch
def _codec(hint: Hashable) -> _Codec:
    if hint is int:
        return _Codec(_encode_int, _int)
    if hint is str:
        return _Codec(_same, _str)
    if hint is bool:
        return _Codec(_same, _bool)
    if isinstance(hint, type) and is_dataclass(hint):
        return _record(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _Codec(_encode_extended, _extended) if arguments[1] == "extended" else _Codec(_same, _same)
    if origin is tuple:
        return _sequence(arguments[0]) if arguments[1:] == (...,) else _pair(arguments)
    if origin is Mapping:
        return _mapping(arguments[1])
    if origin in (typing.Union, types.UnionType) and len(arguments) == 2 and arguments[1] is type(None):
        return _optional(arguments[0])
    raise InternalError("TG590", f"no codec for {hint!r}")


def _record(cls: type) -> _Codec:
    hints = typing.get_type_hints(cls, include_extras=True)
    codecs = {field.name: _codec(hints[field.name]) for field in fields(cls)}
    names = frozenset(codecs)

    def encode_record(value: Any) -> Any:
        return {name: codec.encode(getattr(value, name)) for name, codec in codecs.items()}

    def decode_record(value: Any) -> Any:
        if type(value) is not dict:
            raise _Mismatch(f"expected an object, found {_kind(value)}")
        if value.keys() != names:
            unknown, missing = sorted(value.keys() - names), sorted(names - value.keys())
            parts = [f"unknown key {name!r}" for name in unknown] + [f"key {name!r} is missing" for name in missing]
            raise _Mismatch("; ".join(parts))
        decoded = {}
        for name, codec in codecs.items():
            try:
                decoded[name] = codec.decode(value[name])
            except _Mismatch as error:
                raise error.inside(f".{name}") from None
        try:
            return cls(**decoded)
        except InternalError as error:
            raise _Mismatch(error.message) from None

    def spell_record(value: Any, texts: Texts) -> str:
        parts = (f'"{name}":{_spelled(codecs[name], getattr(value, name), texts)}' for name in sorted(codecs))
        return f"{{{','.join(parts)}}}"

    has_records = any(codec.spell is not None for codec in codecs.values())
    return _Codec(encode_record, decode_record, spell_record if has_records else None, is_record=True)


def _sequence(item: Any) -> _Codec:
    codec = _codec(item)

    def decode_sequence(value: Any) -> Any:
        if type(value) is not list:
            raise _Mismatch(f"expected a list, found {_kind(value)}")
        decoded = []
        for index, entry in enumerate(value):
            try:
                decoded.append(codec.decode(entry))
            except _Mismatch as error:
                raise error.inside(f"[{index}]") from None
        return tuple(decoded)

    spell_item = _item_spelling(codec)

    def spell_sequence(value: Any, texts: Texts) -> str:
        assert spell_item is not None
        return f"[{','.join([spell_item(entry, texts) for entry in value])}]"

    return _Codec(
        lambda value: [codec.encode(entry) for entry in value],
        decode_sequence,
        None if spell_item is None else spell_sequence,
    )


def _pair(items: tuple[Any, ...]) -> _Codec:
    codecs = tuple(_codec(item) for item in items)

    def decode_pair(value: Any) -> Any:
        if type(value) is not list or len(value) != len(codecs):
            raise _Mismatch(f"expected a list of {len(codecs)}, found {_kind(value)}")
        return tuple(codec.decode(entry) for codec, entry in zip(codecs, value, strict=True))

    return _Codec(lambda value: [codec.encode(entry) for codec, entry in zip(codecs, value, strict=True)], decode_pair)


def _mapping(item: Any) -> _Codec:
    codec = _codec(item)

    def decode_mapping(value: Any) -> Any:
        if type(value) is not dict:
            raise _Mismatch(f"expected an object, found {_kind(value)}")
        decoded = {}
        for name, entry in value.items():
            try:
                decoded[name] = codec.decode(entry)
            except _Mismatch as error:
                raise error.inside(f"[{name!r}]") from None
        return decoded

    spell_item = _item_spelling(codec)

    def spell_mapping(value: Any, texts: Texts) -> str:
        assert spell_item is not None
        # A text by itself is spelled so in a tenth of the time.
        parts = [f"{json.dumps(_str(name))}:{spell_item(value[name], texts)}" for name in sorted(value)]
        return f"{{{','.join(parts)}}}"

    return _Codec(
        lambda value: {_str(name): codec.encode(entry) for name, entry in value.items()},
        decode_mapping,
        None if spell_item is None else spell_mapping,
    )


def _optional(item: Any) -> _Codec:
    codec = _codec(item)
    return _Codec(
        lambda value: None if value is None else codec.encode(value),
        lambda value: None if value is None else codec.decode(value),
        None if codec.spell is None else lambda v, texts: "null" if v is None else _spelled(codec, v, texts),
    )
