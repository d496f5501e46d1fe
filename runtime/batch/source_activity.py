"""What is recorded of each input stream besides its progress: when it last spoke, how far its rows reach, what moves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.algebra.schema import StreamDef
from tidegate.algebra.time import format_duration
from tidegate.algebra.types import Kind
from tidegate.runtime.connectors.sources import SourceOptions
from tidegate.runtime.state.codec import Json

HEARD = "heard"
"""Where it stands in a manifest's `extra`."""


@dataclass(frozen=True, slots=True)
class Heard:
    """`clock` of the last batch in which the stream said anything (or of the first batch), in microseconds; `greatest`
    accepted instant and `means` of progress per attribute, as the last run had them."""

    clock: int
    greatest: Mapping[str, int] = field(default_factory=dict)
    means: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def again(self, clock: int | None, greatest: Mapping[str, int], means: Mapping[str, tuple[str, ...]]) -> Heard:
        """After a batch; `clock` None where the stream said nothing."""
        reached = {a: max(value, self.greatest.get(a, value)) for a, value in greatest.items()}
        return Heard(self.clock if clock is None else clock, {**self.greatest, **reached}, means)


def means_of(stream: StreamDef, options: SourceOptions) -> dict[str, tuple[str, ...]]:
    """What moves the progress of each attribute by itself, in words; calls and the end of input always do."""
    found = {}
    for name in stream.progress:
        said = ["the clock: it is the time of arrival"] if name == options.arrival else []
        if (delay := options.delay.get(name)) is not None:
            is_timestamp = stream.schema[name].type.kind is Kind.TIMESTAMP
            said.append(f"a delay of {format_duration(delay) if is_timestamp else delay}")
        if (column := options.progress_columns.get(name)) is not None:
            said.append(f"the progress column {column}")
        if options.idle is not None and name != options.arrival:
            whom = "the clock" if options.idle_follows == "clock" else "the others"
            said.append(f"{whom}, when idle for {format_duration(options.idle)}")
        found[name] = tuple(said)
    return found


def to_json(heard: Mapping[str, Heard]) -> Json:
    return {
        name: [one.clock, dict(one.greatest), {a: list(said) for a, said in one.means.items()}]
        for name, one in heard.items()
    }


def from_json(found: Json) -> dict[str, Heard]:
    """What a manifest says; nothing where it is silent."""
    known: dict[str, Heard] = {}
    for name, one in found.items() if isinstance(found, dict) else ():
        match one:
            case [int(clock), dict(greatest), dict(means)]:
                known[name] = Heard(
                    clock,
                    {a: value for a, value in greatest.items() if isinstance(value, int)},
                    {a: tuple(map(str, said)) for a, said in means.items() if isinstance(said, list)},
                )
    return known
