"""The schema that a Parquet file says, without the columns that no attribute can hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.algebra.dsl.ddl import to_schema
from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import Attribute, Schema
from tidegate.runtime.state.errors import memory_errors

_UNKNOWN = re.compile(r"unknown attribute '(.*)'")


@dataclass(frozen=True, slots=True)
class FileSchema:
    """The attributes of a file; `left_out` says of its other columns why they are none."""

    schema: Schema
    left_out: Mapping[str, QueryError]

    def meant_by(self, error: QueryError) -> QueryError:
        """The error, or, where it misses an attribute that was left out, why that was."""
        asked = _UNKNOWN.fullmatch(error.message) if error.code == "TG101" else None
        cause = None if asked is None else self.left_out.get(asked[1])
        return error if cause is None else cause.at(error.site)


def schema_of_parquet(stream: str, path: str) -> FileSchema:
    """What the columns of a file are; `QueryError` TG412 where it is no Parquet file, TG112 where nothing in it can be
    held.
    """
    try:
        with memory_errors(f"reading {path}"):
            fields = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise QueryError(
            "TG412", f"{stream}: {path} cannot be read as parquet: {error}", hint="repair the file or move it away"
        ) from None
    often = Counter(field.name.lower() for field in fields)
    attributes: list[Attribute] = []
    left_out: dict[str, QueryError] = {}
    for field in fields:
        try:
            if often[field.name.lower()] > 1:
                raise QueryError(
                    "TG103", f"attribute {field.name!r} is given twice", hint="names differ in more than case"
                )
            attributes += to_schema(pa.schema([field])).attributes
        except QueryError as error:
            casts = field.type == pa.uint64() or pa.types.is_dictionary(field.type)
            hint = f"say what it is to be read as: --schema; or {error.hint}" if casts else error.hint
            left_out[field.name] = QueryError(error.code, f"{stream} ({path}): {error.message}", hint=hint)
    if not attributes:
        raise next(iter(left_out.values()), QueryError("TG111", f"{stream}: {path} has no columns"))
    return FileSchema(Schema(tuple(attributes)), left_out)
