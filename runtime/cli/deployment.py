"""A program with all that it needs to run for months: sources, sinks, checkpoint, engine. `tidegate start` runs it.

It stands in the program's file, as `tg.deployment(...)`, or beside it in a TOML file.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.dsl.checks.calls import called, check_options, checked_calls
from tidegate.algebra.dsl.expression import DurationOption, duration_given
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.time import duration_ticks
from tidegate.runtime.arguments import check_threads, mapping_of
from tidegate.runtime.connectors.in_toml import in_toml
from tidegate.runtime.connectors.sinks import Sink, parquet_sink
from tidegate.runtime.connectors.sources import GUARDS, Source, check_rows_given, csv, json, parquet, source_given
from tidegate.runtime.ingest.quarantine import retention
from tidegate.runtime.plan.progress import check_known
from tidegate.runtime.program import Program
from tidegate.runtime.state.store.paths import local_directory
from tidegate.runtime.tuning.aims import Tune, tuner_for

if TYPE_CHECKING:
    from tidegate.runtime.ingest.quarantine import Keep

_T = TypeVar("_T")
EngineName = Literal["embedded", "spark"]
_READERS = {"parquet": parquet, "csv": csv, "json": json}
_KEYS = ("sources", "statics", "sinks", "checkpoint", "engine", "every", "spark", "quarantine_keep", "tune", "threads")


@checked_calls
@dataclass(frozen=True, slots=True)
class Deployment:
    """What `deployment` makes: a program, and how it runs.

    Examples:
        >>> sources = {"Orders": tg.parquet("orders", delay="1m"), "Payments": tg.parquet("payments", delay="10m")}
        >>> deployed = tg.deployment(program, sources=sources, checkpoint="state")
        >>> deployed.engine, deployed.every, deployed.checkpoint
        ('embedded', '1s', 'state')
    """

    program: Program
    sources: Mapping[str, Any]
    checkpoint: str
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    statics: Mapping[str, Any] = field(default_factory=dict)
    engine: EngineName = "embedded"
    every: DurationOption = "1s"
    spark: Mapping[str, str] = field(default_factory=dict)
    quarantine_keep: Keep | None = None
    tune: Tune = "throughput"
    threads: int = 1

    @property
    def seconds(self) -> float:
        """Seconds between two looks for new files.

        Examples:
            >>> tg.deployment(program, sources=inputs, checkpoint="state", every="2m").seconds
            120.0
        """
        return duration_ticks(self.every) / 1_000_000


@called()
def deployment(
    program: Program,
    *,
    sources: Mapping[str, Any],
    checkpoint: str | os.PathLike[str],
    sinks: Mapping[str, Sink] | None = None,
    statics: Mapping[str, Any] | None = None,
    engine: EngineName = "embedded",
    every: DurationOption = "1s",
    spark: Mapping[str, str] | None = None,
    quarantine_keep: Keep | None = None,
    tune: Tune = "throughput",
    threads: int = 1,
) -> Deployment:
    """A program with its sources, sinks and checkpoint, for `tidegate start FILE`.

    `engine`: this process ("embedded"), or "spark", with settings of its session in `spark`. `every`: how often it
    looks for new files. `threads` are those of "embedded"; Spark has cores of its own. The others are those of
    `session`. `QueryError` TG401 for what does not fit.

    Examples:
        >>> sources = {"Orders": tg.parquet("orders", delay="1m"), "Payments": tg.parquet("payments", delay="10m")}
        >>> deployed = tg.deployment(program, sources=sources, checkpoint="state", every="5s")
        >>> deployed.engine, deployed.seconds
        ('embedded', 5.0)
    """
    with Here():
        every = _wait_given(every)
        if not isinstance(program, Program):
            raise QueryError("TG114", f"{shown(program)} is no program", hint="make one: tg.program(Name=relation)")
        if engine not in get_args(EngineName):
            raise QueryError(
                "TG401", f"there is no engine {shown(engine)}", hint=f"one of {', '.join(get_args(EngineName))}"
            )
        local_directory(checkpoint)
        retention(quarantine_keep)
        tuner_for(tune)
        check_threads(threads)
        if threads > 1 and engine == "spark":
            raise QueryError(
                "TG401",
                f"threads={threads} is of engine 'embedded'",
                hint='how many cores Spark has is a setting of its own: spark={"spark.master": "local[4]"}',
            )
        given = mapping_of("sources", sources, 'tg.parquet("a directory")')
        tables = mapping_of("statics", statics, "rows")
        results = mapping_of("sinks", sinks, 'tg.parquet_sink("a directory")')
        settings = mapping_of("spark", spark, '"value"')
        _check_fits(program, given, tables, results)
        return Deployment(
            program,
            dict(given),
            os.fspath(checkpoint),
            dict(results),
            dict(tables),
            engine,
            every,
            dict(settings),
            quarantine_keep,
            tune,
            threads,
        )


def _wait_given(every: object) -> DurationOption:
    """The time between two looks; `QueryError` TG401 or TG104, which names the option, for what is none."""
    given = duration_given(every)
    try:
        ticks = duration_ticks(given)
    except QueryError as error:
        raise QueryError(error.code, f"every={shown(every)}: {error.message}", hint=error.hint) from None
    if ticks <= 0:
        raise QueryError("TG401", f"every={shown(every)} is no time to wait", hint='give one such as "1s"')
    return given  # type: ignore[no-any-return]  # what has ticks is a duration


def _check_fits(
    program: Program, sources: Mapping[str, Any], statics: Mapping[str, Any], sinks: Mapping[str, Any]
) -> None:
    """`QueryError` for names that the program does not have, inputs that are missing, and options that do not fit
    them.
    """
    inputs = {stream.name: stream for stream in program.definition.inputs}
    for name, data in sources.items():
        check_known(name, inputs, "input")
        check_rows_given(name, data)
        if not inputs[name].static:
            source_given(data).options(inputs[name])
    for name in statics:
        check_known(name, [name for name, stream in inputs.items() if stream.static], "static table")
    for name in sinks:
        check_known(name, {query.stream for query in program.definition.queries}, "result")
    missing = sorted(set(inputs) - set(sources) - set(statics))
    if missing:
        raise QueryError(
            "TG407", f"no source for {', '.join(missing)}", hint='sources={"Name": tg.parquet("a directory")}'
        )


def read_deployment(path: Path, program: Program) -> Deployment:
    """The deployment of a program that a TOML file describes; paths in it are relative to the file.

    `QueryError` TG143 for a file that can not be read, or says something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
        settings = tomllib.loads(text)
    except OSError as error:
        raise QueryError("TG143", f"{path} cannot be read: {error.strerror}", hint="check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        hint = 'text and durations stand in quotes, as in delay = "5m", and each table and each name stands there once'
        raise QueryError("TG143", f"{path} is no TOML: {error}", hint=hint).at(_torn(path, str(error))) from error
    places = _Places(path, text)
    try:
        check_options(str(path), settings, _KEYS)
        for needed, written in (("sources", "[sources.Name] and parquet"), ("checkpoint", "checkpoint")):
            if needed not in settings:
                raise QueryError("TG143", f"{path} has no {needed}", hint=f'write {written} = "a directory"')
        folder = path.resolve().parent

        def source(options: dict[str, Any], name: str) -> Source:
            return replace(_source(options, name, folder), site=places.of(("sources", name), {}, ""))

        named = ("engine", "every", "spark", "quarantine_keep", "tune", "threads")
        options = {name: settings[name] for name in named if name in settings}
        return deployment(
            program,
            sources=_each(settings, "sources", source, places),
            statics=_each(settings, "statics", lambda given, name: _source(given, name, folder).data, places),
            sinks=_each(settings, "sinks", lambda given, name: _sink(given, name, folder), places),
            checkpoint=_path("checkpoint", settings["checkpoint"], folder),
            **options,
        )
    except QueryError as error:
        table = _named_in(settings, error.message)
        placed = error.at(places.of(table, settings if not table else {}, error.message))
        raise QueryError.of(
            [replace(problem, hint=in_toml(problem.hint)) for problem in placed.problems]
        ) from error.__cause__


def _torn(path: Path, message: str) -> Site | None:
    """The line at which a file ends to be TOML, where the reader says one."""
    position = re.search(r"at line (\d+)", message)
    if position is None:
        return None
    line = path.read_text(encoding="utf-8").splitlines()[int(position[1]) - 1 :][:1]
    return Site(str(path), int(position[1]), "".join(line).strip())


def _named_in(settings: Mapping[str, Any], message: str) -> tuple[str, ...]:
    """The first table that a message is about: that of a source, a static table or a sink; nothing if it names none."""
    tables = [(what, name) for what in ("sources", "statics", "sinks") for name in _tables(settings, what)]
    return next((table for table in tables if re.search(rf"(?<!\w){re.escape(table[1])}(?!\w)", message)), ())


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the tables and options of a TOML file stand, by their names from the top: `sources`, `E`, `delay`."""

    path: Path
    text: str

    def of(self, table: tuple[str, ...], given: object, message: str) -> Site:
        """The line of the option of a table that a message names, by itself or its value; else of the table."""
        lines, options = self._lines(), given if isinstance(given, Mapping) else {}
        named = [name for name in options if re.search(rf"(?<!\w){re.escape(name)}=", message)]
        named += [name for name, value in options.items() if isinstance(value, str) and repr(value) in message]
        at = next((lines[(*table, name)] for name in named if (*table, name) in lines), lines.get(table, 1))
        return Site(str(self.path), at, "".join(self.text.splitlines()[at - 1 : at]).strip())

    def _lines(self) -> dict[tuple[str, ...], int]:
        lines: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        for number, line in enumerate(self.text.splitlines(), 1):
            head, option = _HEAD.match(line), _OPTION.match(line)
            if head is not None:
                table = _names(head[1])
            full = table if head is not None else table + _names(option[1]) if option is not None else ()
            for end in range(1, len(full) + 1):
                lines.setdefault(full[:end], number)
        return lines


#: The head of a table, and the name of an option, as lines of a TOML file.
_HEAD = re.compile(r"\s*\[+([^\]]+)\]")
_OPTION = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")


def _names(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(r"""[\w-]+|"[^"]*"|'[^']*'""", dotted))


def _tables(options: Mapping[str, Any], table: str) -> Mapping[str, Any]:
    """The tables of one kind by name; none where something else stands there."""
    given = options.get(table)
    tables = isinstance(given, Mapping) and all(isinstance(value, Mapping) for value in given.values())
    return given if tables and given is not None else {}


def _each(
    options: Mapping[str, Any], table: str, build: Callable[[dict[str, Any], str], _T], places: _Places
) -> dict[str, _T]:
    given = _tables(options, table)
    if table in options and given is not options[table]:
        error = QueryError(
            "TG143", f"{table} is no table of tables", hint=f'write [{table}.Name] and parquet = "a directory"'
        )
        raise error.at(places.of((table,), options[table], error.message))
    built = {}
    for name, settings in given.items():
        try:
            built[name] = build(dict(settings), name)
        except QueryError as error:
            raise error.at(places.of((table, name), settings, error.message)) from error.__cause__
    return built


def _source(options: dict[str, Any], name: str, folder: Path) -> Source:
    format_ = next((reader for reader in _READERS if reader in options), None)
    if format_ is None:
        raise _no_place(f"{name} names no files", options, _READERS, 'write parquet = "a directory", or csv, or json')
    directory = _path(format_, options.pop(format_), folder)
    if "archive" in options:
        options["archive"] = _path("archive", options["archive"], folder)
    options |= {option: _guard(options[option]) for option in GUARDS if option in options}
    return _READERS[format_](directory, **options)


def _path(option: str, given: object, folder: Path) -> Path:
    """A path of the file; `QueryError` TG143 for what is no text."""
    if not isinstance(given, str):
        raise QueryError("TG143", f"{option}={shown(given)} is no path", hint=f'write {option} = "a directory"')
    return folder / os.path.expanduser(given)


def _guard(given: object) -> Any:
    """A guard of the clock, of all attributes or of each: "none" is the `None` that TOML does not have."""
    if isinstance(given, Mapping):
        return {name: _guard(value) for name, value in given.items()}
    return None if given == "none" else given


def _no_place(message: str, options: Mapping[str, Any], known: Iterable[str], hint: str) -> QueryError:
    """`QueryError` TG143 for a table without a directory, with the option that may be meant as one."""
    for option, value in options.items():
        if meant := nearest(option, known):
            return QueryError("TG143", f"{message}: {option}={shown(value)}", hint=f"did you mean {meant[0]}?")
    return QueryError("TG143", message, hint=hint)


def _sink(options: dict[str, Any], name: str, folder: Path) -> Sink:
    if "parquet" not in options:
        raise _no_place(f"results of {name} go nowhere", options, ["parquet"], 'write parquet = "a directory"')
    directory = _path("parquet", options.pop("parquet"), folder)
    check_options("parquet_sink", options, ["compact"])
    return parquet_sink(directory, **options)
