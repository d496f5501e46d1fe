"""A query in the text language, for the command line: over complete inputs, or as a program that is not run."""

from __future__ import annotations

import csv
import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from tidegate.algebra.dsl.ddl import to_schema
from tidegate.algebra.dsl.here import written_at
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.dsl.situations import parts_of_match
from tidegate.algebra.dsl.sources import stream
from tidegate.algebra.errors import QueryError
from tidegate.algebra.printing.plans import count_of, printable
from tidegate.algebra.schema import Schema
from tidegate.algebra.text.reader import Dialect, StreamClause, read_query, source_of
from tidegate.algebra.text.wording import in_words_of_text
from tidegate.algebra.types import Kind
from tidegate.runtime.connectors.overlaps import is_below
from tidegate.runtime.connectors.parquet_schema import FileSchema, schema_of_parquet
from tidegate.runtime.connectors.sources import FileFormat, Files, Source, files_meant
from tidegate.runtime.inspect.timelines.timeline import DrawingOptions, Timeline, timeline
from tidegate.runtime.program import Program, program
from tidegate.runtime.state.errors import linked, storage_errors

if TYPE_CHECKING:
    from tidegate.runtime.inspect.results import Results

_FORMATS: Mapping[str, FileFormat] = {".parquet": "parquet", ".csv": "csv"}


#: An instant on a timeline of integers; longer numbers are none, and Python refuses to read very long ones.
TICKS = re.compile(r"-?\d{1,40}")


@dataclass(frozen=True, slots=True)
class QueryRun:
    """What `tidegate run` is asked: the query's file, or `-`, the path of each input, and what files do not say."""

    query: Path
    inputs: Mapping[str, Path]
    schema: str | None = None
    time: str | None = None
    units: Mapping[str, str] | None = None
    dialect: Dialect | None = None
    name: str = "Matches"
    close_at: str | None = None

    def run(self, threads: int = 1) -> Results:
        """The results, over all rows that the inputs hold; `QueryError` for what is wrong with query or inputs."""
        with in_words_of_text():
            relation, sources = self._read()
            return self._results({self.name: relation}, sources, threads)

    def check_out(self, out: Path | None) -> None:
        """`QueryError` TG409 where the file of results in this directory would be, or be written over, one of the
        inputs.
        """
        if out is None:
            return
        target = out / f"{self.name}.parquet"
        if target.is_symlink():
            raise linked(str(out), target.name)
        for name, path in self.inputs.items():
            real, input_ = os.path.realpath(target), os.path.realpath(files_meant(path).directory)
            if real == input_ or is_below(real, input_):
                raise QueryError(
                    "TG409",
                    f"the results in {target} would be read as input of {name} ({path})",
                    hint="give --out another directory",
                )

    def timeline(self, **drawing: Unpack[DrawingOptions]) -> Timeline:
        """The situations of the query's pattern and its matches, as a picture; `drawing` as in `timeline`."""
        with in_words_of_text():
            relation, sources = self._read()
            situations, whole, keys = parts_of_match(relation)
            name = self.name
            while name in situations:
                name += "_"
            results = self._results({**situations, name: whole}, sources)
        return timeline({symbol: results[symbol] for symbol in situations}, results[name], partition_by=keys, **drawing)

    def as_program(self) -> Program:
        """The program of the query, which takes no rows: the schema may be said instead of an input."""
        with in_words_of_text():
            return program(**{self.name: self._read(rows=False)[0]})

    def _read(self, *, rows: bool = True) -> tuple[Relation, dict[str, Source]]:
        file, is_input = str(self.query), self.query == Path("-")
        if not is_input and (self.query.is_dir() or not self.query.exists()):
            raise QueryError(
                "TG140", f"there is no file {file}", hint="name a file with a query, or - for standard input"
            )
        try:
            with open(0 if is_input else file, encoding="utf-8", closefd=not is_input) as opened:
                text = opened.read()
        except UnicodeDecodeError as error:
            raise QueryError("TG140", f"{file} is no text: {error}", hint="save it as UTF-8") from None
        try:
            asked = source_of(text, file)
        except QueryError as error:
            if self.query.suffix != ".py":
                raise
            hint = f"{self.query.name} is a Python file: name it without --query, in check or explain"
            raise QueryError(error.code, error.message, hint=hint, site=error.site) from None
        schemas: dict[str, FileSchema] = {}
        streams: dict[str, Relation] = {}
        sources: dict[str, Source] = {}
        try:
            if not rows and not self.inputs:
                streams[asked.stream] = self._stream(asked.stream, self._schema_alone(asked), asked)
            for name, path in self.inputs.items():
                files = _files(name, path)
                sources[name] = Source(files, ties="fail")  # whoever calls can name what orders them
                schemas[name] = self._schema(name, files)
                streams[name] = self._stream(name, schemas[name].schema, asked)
            relation = read_query(text, streams, dialect=self.dialect, units=self.units, file=file)
        except QueryError as error:
            known = schemas.get(asked.stream)
            raise error if known is None else known.meant_by(error) from None
        return relation, sources

    def _stream(self, name: str, schema: Schema, asked: StreamClause) -> Relation:
        time = self.time or asked.time or _only_timestamp(name, schema, asked.keys)
        with written_at(asked.place):
            return stream(name, schema, progress=time)

    def _results(self, queries: Mapping[str, Relation], sources: Mapping[str, Source], threads: int = 1) -> Results:
        query_program = program(**queries)
        read = {input_.name for input_ in query_program.facts.program.inputs}
        at = int(self.close_at) if self.close_at is not None and TICKS.fullmatch(self.close_at) else self.close_at
        inputs = {name: source for name, source in sources.items() if name in read}
        return query_program.run(inputs, close_at=at, threads=threads)

    def _schema_alone(self, asked: StreamClause) -> Schema:
        if self.schema is None:
            raise QueryError(
                "TG177",
                f"{asked.stream}: nothing says which attributes it has",
                hint=f'give --schema "id bigint, time timestamp", or --input {asked.stream}=PATH',
                site=asked.place,
            )
        return to_schema(self.schema)

    def _schema(self, name: str, files: Files) -> FileSchema:
        if self.schema is not None:
            return FileSchema(to_schema(self.schema), {})
        if files.format != "parquet":
            raise QueryError(
                "TG177",
                f"{name}: a CSV file does not say its types",
                hint='say them: --schema "id bigint, time timestamp"',
            )
        return schema_of_parquet(name, files.found()[0].path)


def _files(name: str, path: Path) -> Files:
    """The files of an input, by what their names end with; all are of one format."""
    meant = files_meant(path)
    if not os.path.exists(meant.directory):
        raise QueryError("TG413", f"{name}: there is no file or directory {meant.directory}", hint="check the path")
    files = meant.files("parquet")
    formats = {_FORMATS.get(Path(file.path).suffix.lower()) for file in files.found()}
    format_ = formats.pop() if len(formats) == 1 else None
    if format_ is None:
        raise QueryError(
            "TG177", f"{name}: {path} holds no files of one known format", hint="name them all .parquet, or all .csv"
        )
    return replace(files, format=format_)


def _only_timestamp(name: str, schema: Schema, keys: Collection[str]) -> str:
    others = [attribute for attribute in schema.attributes if attribute.name not in keys]
    timestamps = [a.name for a in others if a.type.kind is Kind.TIMESTAMP]
    if len(timestamps) != 1:
        could = [a.name for a in others if a.type.can_be_time]
        raise QueryError(
            "TG177",
            f"{name}: which attribute is the time?",
            because=(f"it could be {', '.join(could)}" if could else "no attribute can hold instants",),
            hint="name it: --time NAME, or FROM ... ORDER BY name",
        )
    return timestamps[0]


def timeline_of_files(
    situations: Mapping[str, Path], matches: Path | None, by: Sequence[str], **drawing: Unpack[DrawingOptions]
) -> Timeline:
    """The timeline of results that were written as Parquet: situations by name, and a match of them; `drawing` as in
    `timeline`.
    """
    import pyarrow.parquet as pq

    def table(name: str, path: Path) -> pa.Table:
        if not path.exists():
            raise QueryError("TG413", f"{name}: there is no file or directory {path}", hint="check the path")
        try:
            with storage_errors(f"reading {path}"):
                return pq.read_table(path)
        except pa.ArrowInvalid as error:
            raise QueryError(
                "TG412", f"{name}: {path} is no Parquet: {error}", hint="give results as run --out"
            ) from None

    tables = {name: table(name, path) for name, path in situations.items()}
    return timeline(tables, None if matches is None else table("matches", matches), partition_by=tuple(by), **drawing)


def save_timeline(shown: Timeline, out: Path) -> str:
    """As a page, or, where the file's name ends with .svg, the first partition as a picture; says which."""
    with storage_errors(f"writing {out}"):
        shown.save(out)
    drawn, left_out = len(shown.partitions), shown.partitions_left_out
    if out.suffix.lower() == ".svg":
        of = "" if drawn == 1 else f", the first of {drawn} partitions; a page has all"
        return f"{printable(next(iter(shown.partitions))) or 'the timeline'} in {out}{of}"
    if left_out:
        return f"{drawn:,} of {drawn + left_out:,} partitions in {out}: --most {drawn + left_out} draws all"
    return f"{count_of(drawn, 'partition')} in {out}"


def print_results(results: Results, name: str, out: Path | None) -> None:
    """The rows as CSV on standard output, or as a Parquet file of a directory; rejected rows are counted, with one of
    each kind.
    """
    if out is None:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(results[name].columns)
        writer.writerows(_cells(row) for row in results.rows(name))
    else:
        import pyarrow.parquet as pq

        with storage_errors(f"writing {out / name}.parquet"):
            out.mkdir(parents=True, exist_ok=True)
            pq.write_table(results[name].arrow(), out / f"{name}.parquet")
    rejected = results.quarantine.arrow()
    reasons = rejected.column("reason").to_pylist()
    counts = Counter(reasons)
    examples = {reason: rejected.slice(reasons.index(reason), 1).to_pylist()[0] for reason in counts}
    for reason, count in counts.items():
        print(f"{count_of(count, 'row')} rejected: {reason}\n  {_example(examples[reason])}", file=sys.stderr)
    print(count_of(len(results[name]), "result"), file=sys.stderr)


def _example(row: Mapping[str, object]) -> str:
    attribute = "" if row["attribute"] is None else f"{row['attribute']} of "
    text = str(row["row"])
    return printable(
        f"such as {attribute}{text if len(text) <= 200 else text[:200] + '…'} in {Path(str(row['origin'])).name}"
    )


def _cells(row: Mapping[str, object]) -> list[object]:
    return [value.isoformat() if hasattr(value, "isoformat") else value for value in row.values()]


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """`NAME=VALUE` as it is written on the command line."""
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise QueryError(
                "TG401", f"{option} {text}: a name and a value are missing", hint=f"write {option} NAME=VALUE"
            )
        values[name] = value
    return values
