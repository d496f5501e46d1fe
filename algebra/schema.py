"""Schemas: attributes of rows, and the definition of a temporal stream (TSA Def. 8 and 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.diagnostics.tracebacks import trimmed_calls
from tidegate.algebra.errors import QueryError
from tidegate.algebra.terms import TRUE, Term
from tidegate.algebra.types import DataType, Kind

#: Marks fields that say how to evaluate, not what: a checkpoint does not depend on them.
ADVICE: Final = {"advice": True}


@trimmed_calls
@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a row.

    `temporal`: it holds an instant of a timeline, never NULL, so temporal relations may speak of it. Timestamps that
    cannot be NULL are temporal; integers only where a stream's definition says so. `QueryError` TG105 for an attribute
    that is temporal and cannot be.

    Examples:
        >>> paid = payments.schema["paid"]
        >>> print(paid, paid.temporal)
        paid timestamp not null True
    """

    name: str
    type: DataType
    nullable: bool = True
    temporal: bool = False

    def __post_init__(self) -> None:
        if self.temporal and (self.nullable or not self.type.can_be_time):
            raise QueryError(
                "TG105", f"attribute {self.name!r} of type {self.type} cannot hold instants", hint="NULL is no instant"
            )

    def renamed(self, name: str) -> Attribute:
        """The attribute under another name.

        Examples:
            >>> print(payments.schema["paid"].renamed("received"))
            received timestamp not null
        """
        return Attribute(name, self.type, self.nullable, self.temporal)

    def as_nullable(self) -> Attribute:
        """The attribute as the padded side of an outer join yields it: no longer temporal.

        Examples:
            >>> print(payments.schema["paid"].as_nullable())
            paid timestamp
        """
        return Attribute(self.name, self.type, nullable=True, temporal=False)

    def __str__(self) -> str:
        return f"{self.name} {self.type}" + ("" if self.nullable else " not null")


@trimmed_calls
@dataclass(frozen=True, slots=True, repr=False)
class Schema(Mapping[str, Attribute]):
    """The attributes of a relation, in order, by name.

    `QueryError` TG103 where two have one name.

    Examples:
        >>> payments.schema
        Schema(order_id bigint, paid timestamp not null; instants: paid)
        >>> print(payments.schema)
        order_id bigint, paid timestamp not null
        >>> print(payments.schema["order_id"].type)
        bigint
    """

    attributes: tuple[Attribute, ...]
    _by_name: dict[str, Attribute] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name = {attribute.name: attribute for attribute in self.attributes}
        if len(by_name) != len(self.attributes):
            names = [attribute.name for attribute in self.attributes]
            twice = sorted({name for name in names if names.count(name) > 1})
            raise QueryError(
                "TG103", f"ambiguous attribute names: {', '.join(twice)}", hint="give each side a name with as_()"
            )
        object.__setattr__(self, "_by_name", by_name)

    def __getitem__(self, name: str) -> Attribute:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self.attributes)

    def __hash__(self) -> int:
        return hash(self.attributes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes, in order.

        Examples:
            >>> payments.schema.names
            ('order_id', 'paid')
        """
        return tuple(self._by_name)

    @property
    def temporal(self) -> tuple[str, ...]:
        """Names of the attributes that hold instants.

        Examples:
            >>> cars.schema.temporal
            ('time',)
        """
        return tuple(attribute.name for attribute in self.attributes if attribute.temporal)

    def __repr__(self) -> str:
        instants = f"; instants: {', '.join(self.temporal)}" if self.temporal else ""
        return f"Schema({self}{instants})"

    def __str__(self) -> str:
        return ", ".join(str(attribute) for attribute in self.attributes)


@trimmed_calls
@dataclass(frozen=True, slots=True)
class Begins:
    """How a stream of intervals tells their beginnings: by a row at the start of each, in which the end is NULL.

    The row that comes at the end has the same `id`, which no other interval of the stream has, and the same values but
    for the end and the attributes `later`. The stream progresses on `end`: what has come up to an instant are the
    intervals that have ended by then, and the beginnings of those that have begun. So an interval that may still come
    is known from its start on, and rows that wait for no such one go sooner.

    From the papers: interval begin punctuation of ISEQ (Li et al., DEBS 2011), Section 3.

    Examples:
        >>> trips = tg.stream(
        ...     "Trips",
        ...     "id bigint, left timestamp, arrived timestamp",
        ...     progress="arrived",
        ...     relations=lambda trip: trip.left < trip.arrived,
        ...     begins=tg.Begins(id="id", start="left", end="arrived"),
        ... )
        >>> print(trips.schema)
        id bigint not null, left timestamp not null, arrived timestamp not null
    """

    id: str
    start: str
    end: str
    later: tuple[str, ...] = ()


@trimmed_calls
@dataclass(frozen=True, slots=True)
class StreamDef:
    """What is known of a stream, or of a static table (`static`, no progress): schema, progress, relations.

    `relations` is its G as a condition over its own attributes; `progress` are the attributes of its H, a disjunction
    of bounds: every progressing attribute by itself bounds a finite prefix. `begins` says how it tells beginnings of
    intervals, if it does. `QueryError` TG106 for a stream without progress, TG107 for progress on what is no instant.

    From the papers: TSA Def. 11.

    Examples:
        >>> definition = program.definition.inputs[1]
        >>> definition.name, definition.progress, definition.static
        ('Payments', ('paid',), False)
    """

    name: str
    schema: Schema
    relations: Term = TRUE
    progress: tuple[str, ...] = ()
    static: bool = False
    #: No result depends on it, only how long rows are stored.
    begins: Begins | None = field(default=None, metadata=ADVICE)

    def __post_init__(self) -> None:
        if self.static == bool(self.progress):
            what = (
                "a static table has no progress"
                if self.static
                else "a stream needs an attribute on which it progresses"
            )
            raise QueryError("TG106", f"{self.name}: {what}", hint='name it: progress="time"')
        for name in self.progress:
            if name not in self.schema or not self.schema[name].temporal:
                raise QueryError(
                    "TG107", f"{self.name}: progress attribute {name!r} is no temporal attribute of the stream"
                )


#: With it the names of attributes begin that users have not given.
MARK: Final = "~"


def unused_mark(names: Iterable[str]) -> str:
    """A beginning that none of these names has."""
    return MARK * (1 + max((len(name) - len(name.lstrip(MARK)) for name in names), default=0))


def checked_name(name: str, of: str) -> str:
    """A name that a user gives, kept as it is; `QueryError` TG114 for one that is empty or does not print.

    Control characters, marks that turn the direction of text and half surrogate pairs would make a message or a listing
    show something else than there is. Names are compared by code point: what only looks the same is another name.
    """
    if not _can_be_seen(name):
        raise QueryError("TG114", f"{shown(name)} is no name for {of}", hint="use characters that can be seen")
    return name


def _can_be_seen(name: object) -> bool:
    return isinstance(name, str) and name != "" and name.isprintable()


def timestamps_are_temporal(type_: DataType, *, nullable: bool) -> bool:
    """Whether an attribute of this type is temporal without further ado."""
    return type_.kind is Kind.TIMESTAMP and not nullable
