"""Choices of a batch: by which way a step is done, and why. Results never depend on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate.runtime.state.codec import Json

INGEST: Final = "ingest"
"""The step that reads, judges and stores new rows. Other steps are named by their queries."""
FILES: Final = "file"
"""The place of files that a batch takes of a stream: each counts as a task."""
PORTIONS: Final = "portion"
"""The place of portions in which a shard is evaluated, each a task."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to do a step: at a place, in so many tasks, of which so many run at once."""

    place: str
    tasks: int = 1
    cores: int = 1

    def __str__(self) -> str:
        if self.place in (FILES, PORTIONS):
            return f"{self.tasks} {self.place}{'s' if self.tasks > 1 else ''}"
        if self.tasks == 1:
            return self.place
        return f"{self.place}, {self.tasks} tasks on {self.cores} core{'s' if self.cores > 1 else ''}"


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for a step of a batch, among several ways, and why."""

    step: str
    way: Way
    because: str

    @property
    def text(self) -> str:
        """The way and the reason."""
        return f"{self.way} ({self.because})"

    def __str__(self) -> str:
        return f"{self.step}: {self.text}"

    def to_json(self) -> Json:
        return [self.step, self.way.place, self.way.tasks, self.way.cores, self.because]

    @classmethod
    def from_json(cls, value: Json) -> Choice | None:
        """None for what is no choice."""
        match value:
            case [str(step), str(place), int(tasks), int(cores), str(because)]:
                return cls(step, Way(place, tasks, cores), because)
            case _:
                return None
