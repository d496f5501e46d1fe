"""Where rows come from: directories of files, frames and streams, and what is promised about their order."""

from __future__ import annotations

import datetime as dt
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any, Literal, TypedDict, Unpack

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called, check_options, checked_calls
from tidegate.algebra.dsl.expression import DurationOption, duration_given
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.printing.plans import count_of
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import unknown_attribute
from tidegate.algebra.time import duration_ticks, whole_days
from tidegate.algebra.types import MAX_INSTANT, Kind
from tidegate.runtime.arguments import mapping_of
from tidegate.runtime.state.inputs.positions import OLDEST_FIRST, SourceFile
from tidegate.runtime.state.store.paths import local_directory, without_secrets

FileFormat = Literal["parquet", "csv", "json"]
Policy = Literal["quarantine", "drop", "fail"]
POLICIES: tuple[Policy, ...] = ("quarantine", "drop", "fail")
OnError = Literal["quarantine", "fail"]
ON_ERROR: tuple[OnError, ...] = ("quarantine", "fail")
IdleFollows = Literal["clock", "others"]
IDLE_FOLLOWS: tuple[IdleFollows, ...] = ("clock", "others")
OnBadFile = Literal["fail", "quarantine"]
ON_BAD_FILE: tuple[OnBadFile, ...] = ("fail", "quarantine")
#: How far ahead of the clock a row may be where nothing else is said, for sources that go on.
SKEW_GUARD = duration_ticks("1h")
#: Options that say how far from the clock a row may be; None is no limit.
GUARDS = ("skew_guard", "age_guard")
DAY = duration_ticks("1d")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What is promised about a source, and what happens to rows that do not keep it.

    `delay` per progressing attribute, in ticks: no row is further than that behind the greatest value seen. Attributes
    without a delay progress by `progress_columns` (a column saying "everything up to here has arrived"), by calls, and
    at the end of input. `skew_guard` and `age_guard` per guarded attribute, in microseconds: a row further ahead of the
    clock, or further behind it, is rejected. `idle`, in microseconds: after that much clock without data, progress
    follows the clock or the other streams. No two rows have equal `key`s. `arrival` names the attribute that the source
    does not have: it is the instant at which a row was received. `on_error`: whether a row for which a term has no
    value is rejected, or fails the batch; `ties`: whether events of one partition and time that nothing orders are set
    aside, or fail it; `on_bad_file`: whether a file that cannot be read fails it, or is set aside.
    """

    delay: Mapping[str, int] = field(default_factory=dict)
    progress_columns: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = "quarantine"
    skew_guard: Mapping[str, int] = field(default_factory=dict)
    age_guard: Mapping[str, int] = field(default_factory=dict)
    idle: int | None = None
    idle_follows: IdleFollows = "clock"
    key: tuple[str, ...] = ()
    arrival: str | None = None
    on_error: OnError = "quarantine"
    ties: OnError = "quarantine"
    on_bad_file: OnBadFile = "fail"

    def judged(self, schema: Schema) -> Schema:
        """What is read of a source: the stream's attributes without the arrival, and the progress columns beside
        them.
        """
        attributes = (attribute for attribute in schema.attributes if attribute.name != self.arrival)
        extra = (Attribute(c, schema[name].type) for name, c in self.progress_columns.items() if c not in schema)
        return Schema((*attributes, *extra))

    def limits(self, stream: StreamDef, clock: int) -> dict[str, int]:
        """The greatest instant, per attribute with a skew guard, that is not ahead of the clock (microseconds)."""
        return {name: _tick_of(stream, name, clock + guard) for name, guard in self.skew_guard.items()}

    def floors(self, stream: StreamDef, clock: int) -> dict[str, int]:
        """The least instant, per attribute with an age guard, that is not too far behind the clock (microseconds)."""
        return {name: _tick_of(stream, name, clock - guard) for name, guard in self.age_guard.items()}


def _tick_of(stream: StreamDef, name: str, microseconds: int) -> int:
    """The tick of a timestamp or date in which an instant lies."""
    return microseconds if stream.schema[name].type.kind is Kind.TIMESTAMP else microseconds // DAY


@dataclass(frozen=True, slots=True)
class Files:
    """A directory of Parquet, CSV or JSON-lines files, or one such file; files appear whole and are never changed.

    Names that start with . or _ or end with ._COPYING_ are left out: of what is being written, or lies beside the data.
    Files that were read go to the directory `archive`, or are removed where `delete` is true.
    Of the others those are taken whose own name, without folders, fits `pattern`: `*` is any text, `?` one character,
    `[abc]` one of some, `[!abc]` none of them; capital letters differ from small ones. Files in folders below are read
    where it is `deep`.
    """

    directory: str
    format: FileFormat
    per_batch: int | None = None
    archive: str | None = None
    delete: bool = False
    pattern: str | None = None
    deep: bool = True

    def __post_init__(self) -> None:
        if self.pattern is not None and (type(self.pattern) is not str or not self.pattern or "/" in self.pattern):
            raise QueryError(
                "TG401",
                f"{self.directory}: pattern={shown(self.pattern)} fits no name of a file",
                hint='give one such as "*.parquet": names are compared without their folders',
            )
        if type(self.delete) is not bool:
            raise QueryError(
                "TG425",
                f"{self.directory}: delete={shown(self.delete)} says neither yes nor no",
                hint="give True or False",
            )
        if self.delete and self.archive is not None:
            raise QueryError(
                "TG425",
                f"{self.directory}: files that were read can not both be deleted and go to {self.archive}",
                hint="give archive=, or delete=True",
            )
        if self.per_batch is not None and not (type(self.per_batch) is int and self.per_batch >= 1):
            raise QueryError(
                "TG401",
                f"{self.directory}: per_batch={shown(self.per_batch)} is no number of files",
                hint="give 1 or more",
            )

    def written(self, options: Mapping[str, object]) -> str:
        """The source of these files as it is written, with further options."""
        given, path = _given(self, ("directory", "format", "deep")), self.directory
        if not self.deep:
            path = os.path.join(path, given.pop("pattern"))
        return _call(self.format, [repr(path)], {**given, **options})

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name.startswith("__") or name in self.__dataclass_fields__]

    @property
    def top(self) -> str:
        """The directory, as the paths of its files begin."""
        return os.path.abspath(self.directory)

    def found(self) -> list[SourceFile]:
        """The files there are now, oldest first, then by name; a file that vanishes meanwhile is left out, and so is
        what is none, such as a pipe.
        """
        files = []
        if os.path.isfile(self.directory):
            status = os.stat(self.directory)
            return [SourceFile.of(self.top, status)]
        for entry in self._entries(self.top):
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                files.append(SourceFile.of(entry.path, status))
        return sorted(files, key=OLDEST_FIRST)

    def holds(self, path: str | os.PathLike[str]) -> bool:
        """Whether a file is the directory's, by its path."""
        given = os.fspath(path)
        return given == self.top or given.startswith(os.path.join(self.top, ""))

    def takes(self, path: str) -> bool:
        """Whether `found` would have a file below the directory, by its name and those of its folders."""
        within = os.path.relpath(path, self.top)
        *folders, name = within.split(os.sep)
        return within == "." or (self.reads(name) and all(map(self.enters, folders)))

    def reads(self, name: str) -> bool:
        """Whether a file of this name is read."""
        return not is_left_out(name) and (self.pattern is None or fnmatchcase(name, self.pattern))

    def enters(self, folder: str) -> bool:
        """Whether files below a folder of this name are read."""
        return self.deep and not is_left_out(folder)

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        """The files below a folder; folders that vanish or cannot be read are left out, links to folders not
        followed.
        """
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError:
            return
        for entry in entries:
            if not entry.is_dir():
                if self.reads(entry.name):
                    yield entry
            elif not entry.is_symlink() and self.enters(entry.name):
                yield from self._entries(entry.path)


def _given(options: Files | Source, others: tuple[str, ...]) -> dict[str, Any]:
    """The options that are not what they are by themselves."""
    given = {}
    for option in fields(options):
        default = option.default_factory() if option.default_factory is not MISSING else option.default
        if option.name not in others and (value := getattr(options, option.name)) != default:
            given[option.name] = value
    return given


def _call(function: str, arguments: list[str], options: Mapping[str, object]) -> str:
    return f"tg.{function}({', '.join([*arguments, *(f'{name}={value!r}' for name, value in options.items())])})"


def _data_text(data: object) -> str:
    """What rows are, and how many: not the rows."""
    if data is None or isinstance(data, str | os.PathLike):
        return repr(data)
    kind, module = type(data).__name__, type(data).__module__.partition(".")[0]
    name = kind if module == "builtins" else f"{module}.{kind}"
    try:
        rows = None if isinstance(data, Mapping) else len(data)  # type: ignore[arg-type]  # lazy frames have none
    except TypeError:
        rows = None
    return f"<{name}>" if rows is None else f"<{name} of {count_of(rows, 'row')}>"


def is_left_out(name: str) -> bool:
    """Whether a file or folder of this name is being written (HDFS copies to such an end) or lies beside the data.

    A folder such as _day=1, too, which Spark reads: it may be renamed to day=1 when it is whole.
    """
    return name.startswith((".", "_")) or name.endswith("._COPYING_")


@checked_calls
@dataclass(frozen=True, slots=True, repr=False)
class Source:
    """Rows for one stream: `Files`, a frame (Arrow, pandas, Polars, rows) or a Spark DataFrame, with its options.

    `delay`: no row is further than that behind the greatest value seen; a duration for timestamps, one of whole days or
    their number for dates, a number for integer time. `progress_columns`: per attribute the column that says up to
    where all rows have arrived. `policy`: rejected rows are kept ("quarantine"), only counted ("drop"), or fail the
    batch ("fail"). `bounded`: a directory holds all the rows there will ever be, so the stream ends when its files are
    read. Frames and batch DataFrames are bounded by themselves. `skew_guard`: how far ahead of the clock a row may be,
    for all progressing attributes or per attribute; "auto" is an hour, and none where all rows are there from the
    start; None is none. `age_guard`: likewise how far behind the clock; None, the default, is no limit. `idle`: after
    how long without data progress follows `idle_follows`. `key`: attributes that tell rows apart, a progressing one
    among them; a second row with equal values there is rejected. `arrival`: a progressing timestamp that the rows do
    not bring: each gets the recorded clock of the batch that accepts it, and progress there follows the clock without
    data. `on_error`: a row for which a term of a query has no value is rejected ("quarantine"), or fails the batch
    ("fail"). `ties`: of events of one partition that nothing orders, equal ones are one and others are set aside
    ("quarantine"), or the batch fails ("fail"). `on_bad_file`: a file that cannot be read, or changed after it was
    read, fails the batch ("fail"), or is set aside ("quarantine").

    `QueryError` TG401 for options that do not fit, TG104 for what is no duration.

    Examples:
        >>> tg.source(inputs["Orders"], key=("order_id", "ordered"))
        tg.source(<list of 3 rows>, key=('order_id', 'ordered'))
        >>> delayed = tg.source(None, delay="10m")  # rows are pushed, and come at most ten minutes out of order
        >>> session = tg.program(Paid=payments).session(sources={"Payments": delayed})
        >>> session.push("Payments", inputs["Payments"])
        >>> session.step().results  # the last one is final in ten minutes
        {'Paid': 1}
    """

    data: Any
    delay: DurationOption | int | Mapping[str, DurationOption | int] | None = None
    progress_columns: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = "quarantine"
    bounded: bool = False
    skew_guard: DurationOption | Mapping[str, DurationOption | None] | None = "auto"
    age_guard: DurationOption | Mapping[str, DurationOption | None] | None = None
    idle: DurationOption | None = None
    idle_follows: IdleFollows = "clock"
    key: str | Iterable[str] = ()
    arrival: str | None = None
    on_error: OnError = "quarantine"
    ties: OnError = "quarantine"
    on_bad_file: OnBadFile = "fail"
    site: Site | None = field(default=None, compare=False, repr=False)
    """Where it was written."""

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in ("options", "site")]

    def __repr__(self) -> str:
        """As it is written, with the options that were given."""
        options = _given(self, ("data", "site"))
        if isinstance(self.data, Files):
            return self.data.written(options)
        return _call("source", [_data_text(self.data)], options)

    def __post_init__(self) -> None:
        with Here() as site:
            if self.site is None:
                object.__setattr__(self, "site", site)
            self._check()

    def _check(self) -> None:
        """`QueryError` TG401 for what no stream could have, TG104 for durations that are none."""
        choices: tuple[tuple[str, object, tuple[str, ...]], ...] = (
            ("policy", self.policy, POLICIES),
            ("on_bad_file", self.on_bad_file, ON_BAD_FILE),
            ("on_error", self.on_error, ON_ERROR),
            ("ties", self.ties, ON_ERROR),
            ("idle_follows", self.idle_follows, IDLE_FOLLOWS),
        )
        for option, given, known in choices:
            if given not in known:
                raise QueryError("TG401", f"there is no {option}={shown(given)}", hint=f"one of {', '.join(known)}")
        if not isinstance(self.bounded, bool):
            raise QueryError(
                "TG401", f"bounded={shown(self.bounded)} says neither yes nor no", hint="give True or False"
            )
        if self.on_bad_file == "quarantine" and isinstance(self.data, Files) and self.data.delete:
            raise QueryError(
                "TG440",
                "files that cannot be read would be deleted with those that were read",
                hint='give archive= instead of delete=True, or on_bad_file="fail"',
            )
        for option in ("delay", "skew_guard", "age_guard", "idle"):
            value = getattr(self, option)
            by_name = isinstance(value, Mapping) and option != "idle"
            value = {name: duration_given(limit) for name, limit in value.items()} if by_name else duration_given(value)
            for duration in value.values() if by_name else (value,):
                _check_duration(option, duration)
            object.__setattr__(self, option, value)
        object.__setattr__(self, "key", _names(self.key))
        columns = mapping_of("progress_columns", self.progress_columns, '"column"')
        object.__setattr__(self, "progress_columns", columns)
        for column in columns.values():
            if not isinstance(column, str):
                raise QueryError("TG401", f"{shown(column)} names no progress column", hint="give the column's name")
        if self.arrival is not None and not isinstance(self.arrival, str):
            raise QueryError(
                "TG401",
                f"arrival={shown(self.arrival)} names no attribute",
                hint="give the name of the attribute that the rows do not bring",
            )

    @property
    def is_complete(self) -> bool:
        """Whether all rows are there from the start.

        Examples:
            >>> tg.source(inputs["Orders"]).is_complete, tg.parquet("orders").is_complete
            (True, False)
        """
        ongoing = self.data is None or isinstance(self.data, Files) or getattr(self.data, "isStreaming", False)
        return self.bounded or not ongoing

    def options(self, stream: StreamDef) -> SourceOptions:
        """The options in ticks, checked against the stream; `QueryError` TG401 where they do not fit it.

        Examples:
            >>> stream = program.definition.inputs[1]
            >>> tg.parquet("payments", delay="10m").options(stream).delay
            {'paid': 600000000}
        """
        try:
            return self._options(stream)
        except QueryError as error:
            raise error.at(self.site) from error.__cause__

    def _options(self, stream: StreamDef) -> SourceOptions:
        columns = self.progress_columns
        brought = self._brought(stream)
        per_attribute = self.delay if isinstance(self.delay, Mapping) else {}
        if self.delay is not None and not isinstance(self.delay, Mapping):
            if not brought:
                raise QueryError(
                    "TG401", f"{stream.name}: rows are never behind the time of their arrival", hint="leave delay out"
                )
            per_attribute = dict.fromkeys(brought, self.delay)
        guards = [guard for guard in (self.skew_guard, self.age_guard) if isinstance(guard, Mapping)]
        for name in (*per_attribute, *columns, *(name for guard in guards for name in guard)):
            if name not in stream.progress:
                raise QueryError(
                    "TG401",
                    f"{stream.name}: {shown(name)} is not an attribute on which it progresses",
                    hint=f"it progresses on {', '.join(stream.progress)}",
                )
            if name == self.arrival:
                raise QueryError(
                    "TG401",
                    f"{stream.name}.{name} is the time of arrival: the clock alone gives and moves it",
                    hint="give delay, progress column and guards for the other attributes only",
                )
        delays = {name: _delay_ticks(stream, name, value) for name, value in per_attribute.items()}
        skews = {name: self._skew(stream, name) for name in brought}
        ages = {name: self._age(stream, name) for name in brought}
        return SourceOptions(
            delays,
            dict(columns),
            self.policy,
            {name: guard for name, guard in skews.items() if guard is not None},
            {name: guard for name, guard in ages.items() if guard is not None},
            self._idle(stream),
            self.idle_follows,
            self._key(stream, brought),
            self.arrival,
            self.on_error,
            self.ties,
            self.on_bad_file,
        )

    def _brought(self, stream: StreamDef) -> tuple[str, ...]:
        """The progressing attributes that the source's rows have; `QueryError` TG401 for an arrival that can be
        none.
        """
        name = self.arrival
        if name is None:
            return stream.progress
        if name not in stream.progress or stream.schema[name].type.kind is not Kind.TIMESTAMP:
            instants = [a for a in stream.progress if stream.schema[a].type.kind is Kind.TIMESTAMP]
            raise QueryError(
                "TG401",
                f"{stream.name}: arrival={shown(name)} is no timestamp on which it progresses",
                hint=f"name {' or '.join(instants)}" if instants else "give it one: received timestamp",
            )
        return tuple(a for a in stream.progress if a != name)

    def _skew(self, stream: StreamDef, name: str) -> int | None:
        asked = self.skew_guard.get(name, "auto") if isinstance(self.skew_guard, Mapping) else self.skew_guard
        if asked == "auto":
            return None if stream.schema[name].type.kind is Kind.BIGINT or self.is_complete else SKEW_GUARD
        return _guard_ticks(stream, name, "skew_guard", asked)

    def _age(self, stream: StreamDef, name: str) -> int | None:
        asked = self.age_guard.get(name) if isinstance(self.age_guard, Mapping) else self.age_guard
        return _guard_ticks(stream, name, "age_guard", asked)

    def _key(self, stream: StreamDef, brought: tuple[str, ...]) -> tuple[str, ...]:
        key = _names(self.key)
        for name in key:
            if name not in stream.schema:
                raise unknown_attribute(name, stream.schema)
            if stream.schema[name].type.kind is Kind.DOUBLE:
                raise QueryError(
                    "TG401", f"{stream.name}.{name}: a double is no key", hint="name attributes with exact values"
                )
        if self.arrival in key:
            raise QueryError(
                "TG401",
                f"{stream.name}.{self.arrival}: a row that comes again arrives at another time",
                hint="a key has attributes that the row brings",
            )
        if key and not set(key) & set(brought):
            raise QueryError(
                "TG401",
                f"{stream.name}: a key without an attribute on which the stream progresses",
                because=(
                    "a row with another instant could repeat a key at any time, so all keys would have to be kept",
                ),
                hint=f"add {' or '.join(brought) or 'an attribute on which it progresses'} to the key",
            )
        return key

    def _idle(self, stream: StreamDef) -> int | None:
        if self.idle is None:
            return None
        integers = [name for name in stream.progress if stream.schema[name].type.kind is Kind.BIGINT]
        if integers and self.idle_follows == "clock":
            raise QueryError(
                "TG401",
                f"{stream.name}.{integers[0]}: integers have no clock to follow",
                hint='give idle_follows="others"',
            )
        idle = duration_ticks(self.idle)
        if not idle:
            raise QueryError(
                "TG401",
                f"{stream.name}: a source that is idle after no time at all is never heard",
                hint='give a duration such as "10m"',
            )
        return idle


def _guard_ticks(stream: StreamDef, name: str, option: str, asked: DurationOption | None) -> int | None:
    """How far from the clock an instant may be; `QueryError` TG401 for integers, which have no clock."""
    if asked is None:
        return None
    if stream.schema[name].type.kind is Kind.BIGINT:
        raise QueryError(
            "TG401",
            f"{stream.name}.{name}: integers have no clock to be {'ahead of' if option == 'skew_guard' else 'behind'}",
            hint=f"give {option} for timestamps and dates only",
        )
    return duration_ticks(asked)


def _names(given: Any) -> tuple[str, ...]:
    """One name or several; `QueryError` TG401 for what is none."""
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    names = tuple(given) if several else (given,)
    for name in names:
        if not isinstance(name, str):
            raise QueryError(
                "TG401", f"key: {shown(name)} names no attribute", hint='give names: key="id", or key=("id", "time")'
            )
    return tuple(dict.fromkeys(names))


def _check_duration(option: str, value: object) -> None:
    """`QueryError` for what is no duration of any timeline: TG401, or TG104 for text; whether it fits is for the stream
    to say.
    """
    if value is None or (option == "skew_guard" and value == "auto"):
        return
    if isinstance(value, list | tuple | set):
        raise QueryError(
            "TG401",
            f"{option}={shown(value)} does not say which attribute each is of",
            hint=f'give one, {option}="5m", or one by attribute: {option}={{"time": "5m"}}',
        )
    if isinstance(value, bool) or not isinstance(value, dt.timedelta | str | (int if option == "delay" else str)):
        without = ", or None for no limit" if option in GUARDS else ""
        raise QueryError(
            "TG401", f"{option}={shown(value)} is no duration", hint=f'give one such as {option}="10m"{without}'
        )
    try:
        ticks = value if isinstance(value, int) else duration_ticks(value)
    except QueryError as error:
        raise QueryError(error.code, f"{option}: {error.message}", hint=error.hint) from None
    if ticks < 0:
        raise QueryError("TG401", f"{option}={shown(value)} is negative", hint=f'give one such as {option}="10m"')


#: What says how late rows may come, by the type of the time, and how to write it.
_DELAYS: Mapping[Kind, tuple[Any, str]] = {
    Kind.TIMESTAMP: (dt.timedelta | str, 'a duration such as "10m"'),
    Kind.DATE: (dt.timedelta | str | int, 'whole days: "2d", or 2'),
    Kind.BIGINT: (int, "a whole number"),
}


def _delay_ticks(stream: StreamDef, name: str, value: DurationOption | int) -> int:
    """A delay in the ticks of its attribute: durations for timestamps, whole days or their number for dates, else
    numbers.
    """
    kind = stream.schema[name].type.kind
    if value == 0 and type(value) is int:
        return 0  # no delay, in any unit
    fitting, wanted = _DELAYS[kind]
    if not isinstance(value, fitting):
        raise QueryError("TG401", f"{stream.name}.{name}: {shown(value)} is no delay here", hint=f"give {wanted}")
    ticks = value if isinstance(value, int) else duration_ticks(value)
    if kind is Kind.DATE and not isinstance(value, int):
        ticks = whole_days(value, ticks)
    if ticks > MAX_INSTANT:
        raise QueryError(
            "TG401",
            f"{stream.name}.{name}: delay {shown(value)} is more than {MAX_INSTANT:,} ticks",
            hint="leave delay out if progress comes from calls or columns only",
        )
    return ticks


#: What makes a part of a path a pattern.
_PATTERN = re.compile(r"[*?[]")
_BY_SUFFIX: Mapping[str, FileFormat] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}


def source_given(data: Any) -> Source:
    """A source, of whatever stands in its place: rows or a frame, or the path of a file or directory, perhaps with a
    pattern.

    `QueryError` TG401 for a path whose name does not say what format its files have, `StateError` TG500 for a place
    that is no local one.
    """
    if isinstance(data, Source):
        return data
    if not isinstance(data, str | os.PathLike):
        return Source(data)
    meant = files_meant(data)
    format_ = _format_of(os.fspath(data))
    if format_ is None and os.path.isdir(meant.directory):
        formats = {_format_of(file.path) for file in meant.files("parquet").found()}
        format_ = formats.pop() if len(formats) == 1 else None
    if format_ is None:
        raise QueryError(
            "TG401",
            f"{shown(os.fspath(data))} is a path, and does not say the format of its files",
            hint=f"write {reader_of(data)}",
        )
    return Source(meant.files(format_))


def sources_given(given: Mapping[str, Any] | None) -> dict[str, Source]:
    """The sources of a run by stream; `QueryError` TG413 where a directory or file of one is not there.

    It is asked before anything that takes long: an analysis, kernels to compile, a session of Spark.
    """
    named = mapping_of("sources", given, 'tg.parquet("a directory")')
    sources = {name: source_given(data) for name, data in named.items()}
    for name, source in sources.items():
        if isinstance(source.data, Files) and not os.path.exists(source.data.directory):
            raise QueryError(
                "TG413",
                f"{name}: there is no file or directory {source.data.directory}",
                hint="check the path; for files still to come, make the directory",
                site=source.site,
            )
    return sources


def _format_of(path: str) -> FileFormat | None:
    return _BY_SUFFIX.get(os.path.splitext(path)[1].lower())


def reader_of(path: str | os.PathLike[str]) -> str:
    """How a path is written as a source, by what its name says; all readers where it says nothing."""
    text = without_secrets(os.fspath(path))
    format_ = _format_of(text)
    return f"tg.parquet({text!r}), tg.csv(...) or tg.json(...)" if format_ is None else f"tg.{format_}({text!r})"


@dataclass(frozen=True, slots=True)
class PathMeant:
    """The local directory or file that a path means, the pattern of names in its last part, if it is one, and whether
    folders below are meant too.
    """

    directory: str
    pattern: str | None = None
    deep: bool = True

    def files(self, format_: FileFormat) -> Files:
        return Files(self.directory, format_, pattern=self.pattern, deep=self.deep)


def files_meant(location: str | os.PathLike[str]) -> PathMeant:
    """What a path of files means: a directory with all its folders, one file, or what fits a pattern.

    What is there by this very name is no pattern. As in shells, Python and Polars, a pattern is one of names in its own
    folder, and in every folder below where `**` stands before it. `QueryError` TG401 for a pattern of folders,
    `StateError` TG500 for a place that is no local one.
    """
    path = local_directory(location)
    there = path
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    parts = [part for part in path[len(there) :].split(os.sep) if part]
    first = next((number for number, part in enumerate(parts) if _PATTERN.search(part)), None)
    if first is None:
        return PathMeant(path)
    *folders, name = parts[first:]
    directory = os.path.join(there, *parts[:first])
    if folders not in ([], ["**"]):
        of_files = _PATTERN.search(name) or os.path.splitext(name)[1]
        raise QueryError(
            "TG401",
            f"{shown(os.fspath(location))} has a pattern of folders, {shown('/'.join(folders))}",
            because=("a pattern is one of names of files; ** before it is every folder, however deep",),
            hint=f"write {os.path.join(directory, '**', name) if of_files else directory!r}, and read all folders",
        )
    return PathMeant(directory, name, deep=bool(folders))


def check_rows_given(name: str, data: object) -> None:
    """`QueryError` TG407 for a source without rows where nobody can push any."""
    if (data.data if isinstance(data, Source) else data) is None:
        raise QueryError(
            "TG407",
            f"{name}: None is no rows, and none can be pushed here",
            hint="give an empty list where there are none",
        )


class SourceKeywords(TypedDict, total=False):
    """What can be promised about a source, as `source` and the readers of files take it; `Source` says what each
    means.
    """

    delay: DurationOption | int | Mapping[str, DurationOption | int] | None
    progress_columns: Mapping[str, str]
    policy: Policy
    bounded: bool
    skew_guard: DurationOption | Mapping[str, DurationOption | None] | None
    age_guard: DurationOption | Mapping[str, DurationOption | None] | None
    idle: DurationOption | None
    idle_follows: IdleFollows
    key: str | Iterable[str]
    arrival: str | None
    on_error: OnError
    ties: OnError
    on_bad_file: OnBadFile


@called()
def source(
    data: Any,
    *,
    delay: DurationOption | int | Mapping[str, DurationOption | int] | None = None,
    progress_columns: Mapping[str, str] | None = None,
    policy: Policy = "quarantine",
    bounded: bool = False,
    skew_guard: DurationOption | Mapping[str, DurationOption | None] | None = "auto",
    age_guard: DurationOption | Mapping[str, DurationOption | None] | None = None,
    idle: DurationOption | None = None,
    idle_follows: IdleFollows = "clock",
    key: str | Iterable[str] = (),
    arrival: str | None = None,
    on_error: OnError = "quarantine",
    ties: OnError = "quarantine",
    on_bad_file: OnBadFile = "fail",
) -> Source:
    """Rows for a stream with what is promised about them; see `Source`.

    Examples:
        >>> twice = [(1, "2026-03-02T12:10Z"), (1, "2026-03-02T12:10Z")]
        >>> results = tg.program(Paid=payments).run({"Payments": tg.source(twice, key=("order_id", "paid"))})
        >>> results.counts["Payments"].rejected
        {'duplicate': 1}
    """
    return Source(
        data,
        delay,
        progress_columns or {},
        policy,
        bounded,
        skew_guard,
        age_guard,
        idle,
        idle_follows,
        key,
        arrival,
        on_error=on_error,
        ties=ties,
        on_bad_file=on_bad_file,
    )


@called()
def parquet(
    directory: str | os.PathLike[str],
    *,
    per_batch: int | None = None,
    pattern: str | None = None,
    archive: str | os.PathLike[str] | None = None,
    delete: bool = False,
    **options: Unpack[SourceKeywords],
) -> Source:
    """A Parquet file, or a directory of such; `per_batch` limits the files read in one batch, `pattern` takes some of
    the names. Read files may leave it (`archive`, `delete`). "in/*.parquet" are files in "in" itself,
    "in/**/*.parquet" those in folders below too, and "~" is the home directory.

    The options are those of `Source`. `QueryError` TG413 at the start of a run where there is no such directory, TG412
    for a file that cannot be read.

    Examples:
        >>> import polars as pl
        >>> pl.DataFrame({"order_id": [1], "paid": ["2026-03-02T12:10Z"]}).write_parquet("payments.parquet")
        >>> tg.program(Paid=payments).run({"Payments": tg.parquet("payments.parquet")})["Paid"]["order_id"]
        [1]
    """
    return _files("parquet", directory, per_batch, pattern, archive, delete, options)


@called()
def csv(
    directory: str | os.PathLike[str],
    *,
    per_batch: int | None = None,
    pattern: str | None = None,
    archive: str | os.PathLike[str] | None = None,
    delete: bool = False,
    **options: Unpack[SourceKeywords],
) -> Source:
    """A CSV file with a header line, or a directory of such; empty fields are NULL. Columns are apart by commas.

    Other CSV is read with Polars: `tg.source(pl.scan_csv("in.csv", separator=";"))`, which is the whole of a stream.
    Convert the files of a directory that grows: `pl.read_csv("in.csv",
    separator=";").write_parquet("payments/in.parquet")`. `per_batch`, `pattern`, `archive`, `delete` and errors are
    those of `parquet`, the options those of `Source`.

    Examples:
        >>> import polars as pl
        >>> pl.DataFrame({"order_id": [1], "paid": ["2026-03-02T12:10Z"]}).write_csv("payments.csv")
        >>> tg.program(Paid=payments).run({"Payments": tg.csv("payments.csv")})["Paid"]["order_id"]
        [1]
    """
    return _files("csv", directory, per_batch, pattern, archive, delete, options)


@called()
def json(
    directory: str | os.PathLike[str],
    *,
    per_batch: int | None = None,
    pattern: str | None = None,
    archive: str | os.PathLike[str] | None = None,
    delete: bool = False,
    **options: Unpack[SourceKeywords],
) -> Source:
    """A file with one JSON object per line, or a directory of such.

    `per_batch`, `pattern`, `archive`, `delete` and errors are those of `parquet`, the options those of `Source`.

    Examples:
        >>> import polars as pl
        >>> pl.DataFrame({"order_id": [1], "paid": ["2026-03-02T12:10Z"]}).write_ndjson("payments.json")
        >>> tg.program(Paid=payments).run({"Payments": tg.json("payments.json")})["Paid"]["order_id"]
        [1]
    """
    return _files("json", directory, per_batch, pattern, archive, delete, options)


def _files(
    format_: FileFormat,
    directory: str | os.PathLike[str],
    per_batch: int | None,
    pattern: str | None,
    archive: str | os.PathLike[str] | None,
    delete: bool,
    options: SourceKeywords,
) -> Source:
    known = ["per_batch", "pattern", "archive", "delete", *SourceKeywords.__annotations__]
    with Here():
        check_options(f"tg.{format_}", options, known)
        kept = None if archive is None else local_directory(archive)
        meant = files_meant(directory)
        place = meant.directory
        if meant.pattern is not None and pattern is not None:
            raise QueryError(
                "TG401",
                f"{shown(os.fspath(directory))} has a pattern of names, and pattern={shown(pattern)} is another",
                hint=f"give one: tg.{format_}({place!r}, pattern={pattern!r})",
            )
        return source(Files(place, format_, per_batch, kept, delete, meant.pattern or pattern, meant.deep), **options)
