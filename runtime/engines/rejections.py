"""What is said of rejected rows: how many and why, one of them with its place, and what mends them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tidegate.algebra.dsl.checks.suggestions import CONVERT
from tidegate.algebra.errors import Problem, QueryError
from tidegate.algebra.printing.plans import count_of, printable
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.terms import conjuncts
from tidegate.algebra.types import MAX_DECIMAL_PRECISION, Kind
from tidegate.analysis.zones.sites import site_of_failure
from tidegate.runtime.connectors.folder_values import folder_values
from tidegate.runtime.connectors.sources import is_left_out
from tidegate.runtime.ingest.ingest import COLUMNS
from tidegate.runtime.ingest.values import MISSING, NO_OBJECT, UNPARSEABLE
from tidegate.runtime.state.manifest import UNREADABLE

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.algebra.program import ProgramDef
    from tidegate.algebra.schema import Attribute, StreamDef
    from tidegate.runtime.state.manifest import SourceCounts

#: Characters of a rejected row that are shown.
_ROW: Final = 300

#: What text reads as a value of a type.
_TEXTS: Final = {
    Kind.TIMESTAMP: 'a timestamp is text such as "2026-03-02T12:00:00Z" or a datetime: convert other text and numbers '
    'before, in Polars with .str.to_datetime("%d.%m.%Y %H:%M") or pl.from_epoch(column)',
    Kind.DATE: (
        'a date is text such as "2026-03-02" or a date: convert other text before, in Polars with '
        '.str.to_date("%d.%m.%Y")'
    ),
    **dict.fromkeys(
        (Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL),
        "a number is digits with a point at most: take units, separators of thousands and decimal commas out before",
    ),
}
_TYPES: Final = "compare the values with the types that the stream declares: text must read as a value of its type"
_NO_OBJECTS: Final = (
    "each line of such a file is one object, {...}: of a file that is one array write each object on a line of its "
    "own, without the brackets and commas around them"
)
_LINES: Final = "correct these lines; in CSV, text with a comma in it stands in quotes"
#: What holds more than a type does.
_LARGER: Final = {
    Kind.BIGINT: "a bigint has 64 bits, and no type holds longer numbers exactly: declare string for names made of "
    "digits, or double where 15 digits are enough",
    Kind.DECIMAL: f"declare a decimal of more digits, {MAX_DECIMAL_PRECISION} at most, or double where 15 digits are "
    "enough",
    Kind.TIMESTAMP: "such an instant is of no use: correct it where it comes from, or declare a string",
}
_NAMES: Final = "columns are matched by name, and small and capital letters differ"
#: What to do about rows that were rejected, by the reason.
MENDS: Final = {
    "ahead": "these rows are later than the clock: local times without an offset are read as UTC, so give them their "
    "time zone first (docs/how-to/late-data.md); for recorded or planned events give the source skew_guard=None "
    '(in TOML skew_guard = "none")',
    "conflict": "rows with the same key differ: name in key= what tells rows apart",
    "duplicate": (
        "nothing is lost where a source delivers its rows again; rows that differ need a key= that tells them apart"
    ),
    "inexact": "declare a type that holds the values exactly, such as double or decimal(18, 2)",
    "late": "the stream was complete up to their time already: give the source a longer delay= if rows come so late",
    MISSING: f"{_NAMES}; a column that files lack is not NULL by itself: put them there again, with the column and "
    "under other names, or in a folder name=value below the directory of the source",
    "null": (
        "instants on which a stream progresses, and what is declared `not null`, cannot be missing: correct the rows"
    ),
    "old": "these rows are further behind the clock than the source's age_guard= says: correct the clocks of what "
    'sends them, or for recorded events give the source age_guard=None (in TOML age_guard = "none")',
    "out of range": _TYPES,
    "overflow": "such sums are NULL: sum doubles instead, or fewer rows",
    "tie": (
        'name an attribute that orders events of one instant: tie="sequence" in partition_by(...), over(...) or '
        "sequences(...)"
    ),
    "unannounced": (
        "the stream was complete up to their start, and nobody had said that they begin: send a row with NULL for the "
        "end then, or leave begins= out"
    ),
    "unevaluable": (
        "leave such rows out with where(...), or give the term a value for each: with tg.when(...), or NULL by "
        "its try_ form"
    ),
    "unparseable": _TYPES,
    UNREADABLE: "correct the file where it comes from, and put it there under another name",
    "wrong type": _TYPES,
}


def check_accepted(
    counts: Mapping[str, SourceCounts],
    streams: Mapping[str, StreamDef],
    quarantine: Iterable[pa.RecordBatch],
    program: ProgramDef,
) -> None:
    """`QueryError` TG430 for each input of which there were rows and none was accepted."""
    nothing = [name for name, source in counts.items() if is_rejected(source)]
    if nothing:
        kept = list(quarantine)
        raise QueryError.of([all_rejected(streams[name], counts[name], kept, "", program) for name in nothing])


def is_rejected(counts: SourceCounts) -> bool:
    """Whether there were rows, and none was accepted."""
    return counts.rows_in > 0 and not counts.accepted


def all_rejected(
    stream: StreamDef, counts: SourceCounts, quarantine: Iterable[pa.RecordBatch], where: str, program: ProgramDef
) -> Problem:
    """`quarantine` ends with rows of this stream, unless they are not kept."""
    reasons = sorted(counts.rejected, key=lambda reason: -counts.rejected[reason])
    listed = ", ".join(f"{counts.rejected[reason]:,} {reason}" for reason in reasons)
    many = "the only row" if counts.rows_in == 1 else f"all {count_of(counts.rows_in, 'row')}"
    rows = [row for batch in quarantine for row in last_of(batch, stream.name, reasons[0])]
    return Problem(
        "TG430",
        f"{many} of {stream.name}{where} {'was' if counts.rows_in == 1 else 'were'} rejected: {listed}",
        because=tuple(text for row in rows[-1:] for text in (*example(row), *place_of_term(row, program))),
        hint=_mend(stream, reasons[0], rows[-1] if rows else None),
    )


@dataclass(frozen=True, slots=True)
class SomeRows:
    """Rejected rows of one origin that stand together: how many, and one of them, with an attribute if any has one."""

    origin: str
    rows: int
    example: Mapping[str, Any]

    def without(self, rows: int) -> SomeRows:
        """Fewer of them."""
        return replace(self, rows=self.rows - rows)


def file_rejected(stream: StreamDef, parts: Sequence[SomeRows], number: int) -> Problem:
    """All rows of a file that lacks a column, which is the first, tenth and so on of its kind."""
    others = "" if number == 1 else f"; it is file {number:,} of its kind"
    rows, examples = sum(some.rows for some in parts), [some.example for some in parts]
    row = next((row for row in examples if row["attribute"] is not None), examples[-1])
    return Problem(
        "TG430",
        f"{count_of(rows, 'row')} of {stream.name}, all of a file, were rejected: {MISSING}{others}",
        because=tuple(example(row)),
        hint=_mend(stream, MISSING, row),
    )


def place_of_term(row: Mapping[str, Any], program: ProgramDef) -> Iterator[str]:
    """Where in the user's code the term was written that has no value for a row."""
    message = re.sub(r"^TG30\d ", "", row["error"] or "")
    if (site := site_of_failure(program, message)) is not None:
        yield printable(f"written in {site}".partition("\n")[0])


def _mend(stream: StreamDef, reason: str, row: Mapping[str, Any] | None) -> str:
    """What to do about rows that were rejected; `row`: one of them, unless they are not kept."""
    if reason == "relation":
        declared = " and ".join(map(term_text, conjuncts(stream.relations)))
        return f"{stream.name} declares {declared}: correct the rows, or leave out what does not hold for all"
    hint = MENDS.get(reason, "the quarantine has the rows, with the reason for each")
    attribute: str = "" if row is None else row["attribute"] or ""
    if row is not None and reason == MISSING and _is_apart_otherwise(row):
        return f"{_NAMES}; columns of a file are apart by commas; {CONVERT}"
    if row is not None and row["error"] == NO_OBJECT:
        return _NO_OBJECTS
    if attribute not in stream.schema:
        return _LINES if row is not None and row["error"] and reason == UNPARSEABLE else hint
    if reason == "null":
        if attribute in stream.progress:
            return (
                f"{stream.name} progresses on {attribute}, so each row needs one: correct the rows, or leave them out"
            )
        return f"{attribute} is declared `not null`: leave that out of the schema, or correct the rows"
    if reason == MISSING and (folder := _folder_of(row, stream.schema[attribute])):
        return f"a folder has the value, {folder!r}: give the source the directory above it, and it reads all its files"
    if hint is _TYPES:
        return (_LARGER if reason == "out of range" else _TEXTS).get(stream.schema[attribute].type.kind, hint)
    return hint


def _folder_of(row: Mapping[str, Any] | None, attribute: Attribute) -> str:
    """The folder `column=value` of a column that a row's file lacks, if a source of the directory above it would have
    the value: the directory that was given is that folder or lies below it.
    """
    path = "" if row is None else os.path.dirname(row["origin"])
    while above := path.rpartition(os.sep)[0]:
        values = folder_values(os.path.join(path, ""), above)
        if attribute.name in values:
            is_held = attribute.nullable or values[attribute.name] is not None
            folder = os.path.basename(path)
            return folder if is_held and not is_left_out(folder) and not os.path.islink(path) else ""
        path = above
    return ""


def _is_apart_otherwise(row: Mapping[str, Any]) -> bool:
    """Whether a row is of a CSV file with one column, as a file looks whose fields are not apart by commas."""
    error = row["error"] or ","
    return ".csv" in row["origin"] and (
        "," not in error if error.startswith(COLUMNS) else error.endswith(" instead of 1")
    )


def last_of(batch: pa.RecordBatch, source: str, reason: str) -> list[dict[str, Any]]:
    return _of(batch, source, reason)[-1:].to_pylist()  # type: ignore[no-any-return]


def rows_by_origin(batch: pa.RecordBatch, source: str, reason: str) -> Iterator[SomeRows]:
    """The rows of a source that were rejected for a reason, those of one origin together."""
    import numpy as np

    rows = _of(batch, source, reason)
    if not rows.num_rows:
        return
    numbers = np.asarray(rows.column("origin").dictionary_encode().indices)
    named = np.asarray(rows.column("attribute").is_valid())
    firsts = np.flatnonzero(np.concatenate(([True], numbers[1:] != numbers[:-1])))
    for first, end in zip(firsts.tolist(), [*firsts[1:].tolist(), len(numbers)], strict=True):
        with_attribute = np.flatnonzero(named[first:end])
        place = first + int(with_attribute[0]) if len(with_attribute) else end - 1
        (example_,) = rows.slice(place, 1).to_pylist()
        yield SomeRows(example_["origin"], end - first, example_)


def _of(batch: pa.RecordBatch, source: str, reason: str) -> pa.RecordBatch:
    import pyarrow.compute as pc

    mask = pc.and_(pc.equal(batch.column("source"), source), pc.equal(batch.column("reason"), reason))
    return batch.filter(mask)


def example(row: Mapping[str, Any]) -> Iterator[str]:
    """A rejected row with its place and the reason, and what its file says of columns where one is missing; or a file
    that cannot be read.
    """
    if row["reason"] == UNREADABLE:
        yield printable(f"such as {row['error']}")
        return
    attribute = "" if row["attribute"] is None else f", for {row['attribute']}"
    why = row["reason"] if row["reason"] == MISSING and row["attribute"] else row["error"] or row["reason"]
    text = row["row"] if len(row["row"]) <= _ROW else f"{row['row'][:_ROW]}…"
    is_file = os.sep in row["origin"]
    place = f"row {row['position']} of {row['origin']}: " if is_file else ""
    yield printable(f"such as {place}{text}: {why}{attribute}")
    if is_file and row["reason"] == MISSING and (row["error"] or "").startswith(COLUMNS):
        yield printable(row["error"][:_ROW])
