"""The tuner of a run: it learns what steps cost, and chooses by that how the next batch does them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final

from tidegate.runtime.state.codec import Json
from tidegate.runtime.state.inputs.positions import SourceFile
from tidegate.runtime.tuning.choices import FILES, Choice, Way
from tidegate.runtime.tuning.costs import KEPT, CostFit, Costs

#: Where a manifest's `extra` has what `Tuner.to_json` gives.
TUNING: Final = "tuning"
#: What the tuner assumes of a place before it has measured it there: seconds to start, a wave, and a million rows.
ASSUMED: Final = {
    "driver": Costs(0.002, 0.0, 0.1),
    "here": Costs(0.001, 0.0, 0.1),
    "workers": Costs(0.12, 0.02, 0.15),
    "sharded": Costs(0.15, 0.02, 0.3),
    "catalyst": Costs(0.6, 0.05, 0.6),
    "batch": Costs(0.01, 0.0, 1.0),
}
#: Another way has to promise so much less time before a run leaves the one that it took last.
BETTER: Final = 0.8
#: A step of fewer rows is done at the first of its ways: there is nothing to gain, and nothing to learn.
WORTH: Final = 50_000
#: A place where a step was not done so many times in succession is tried again, where that is not expected to take so
#: many times as long: what it was measured to take may be of other times, such as the first batches.
AGAIN: Final = 100
DEARER: Final = 2.0
_BATCH: Final = "batch"
_RECORDED: Final = "as recorded"
#: Rows a byte of a file, before any was read.
DENSITY: Final = 0.1
#: Bytes that a value takes in memory.
_VALUE: Final = 8


@dataclass(slots=True)
class Tuner:
    """Chooses ways to do steps by what they are measured to cost.

    A batch is to take no longer than `seconds_a_batch`, as far as its files can be shared out so; None: as many rows a
    second as can be. `choices` are those of the batch that runs. `recorded`, per batch number, are choices to take
    instead.
    """

    seconds_a_batch: float | None = None
    recorded: Mapping[int, Sequence[Choice]] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)
    _seq: int = 0
    _fits: dict[tuple[str, str], CostFit] = field(default_factory=dict)
    _last: dict[str, Way] = field(default_factory=dict)
    _density: dict[str, float] = field(default_factory=dict)
    #: How many times a step was done elsewhere since it was measured at a place.
    _elsewhere: dict[tuple[str, str], int] = field(default_factory=dict)

    def begin(self, seq: int, files: Mapping[str, Sequence[SourceFile]]) -> None:
        """A batch begins that takes these files; what one that failed has chosen is forgotten."""
        self._seq, self.choices = seq, []
        if (because := self._why_files(seq, files)) is not None:
            self.choices += [Choice(_files_of(s), Way(FILES, len(some)), because) for s, some in files.items() if some]

    def _why_files(self, seq: int, files: Mapping[str, Sequence[SourceFile]]) -> str | None:
        """Why a batch takes so many files; None where that is no choice, as it takes what its sources say."""
        if self._files_recorded(seq):
            return _RECORDED
        if self.seconds_a_batch is None:
            return None
        rows = sum(self.rows_of(name, file.size) for name, some in files.items() for file in some)
        expected = self.costs(_BATCH, _BATCH).seconds(rows)
        return f"{expected:.3g} s expected for {rows:,} rows, {self.seconds_a_batch:.3g} s wanted"

    def take(self, found: Sequence[Choice], steps: Collection[str]) -> list[Choice]:
        """What others have `found` for some of these steps, or in its place what was recorded of the batch for them: it
        is among the choices of the batch from now on.
        """
        if (recorded := self.recorded.get(self._seq)) is not None:
            found = [replace(choice, because=_RECORDED) for choice in recorded if choice.step in steps]
        self.choices += found
        return list(found)

    def choose(self, step: str, rows: int, ways: Sequence[Way]) -> Way:
        """The way in which the batch that runs does a step over so many rows. The first is for what is small."""
        if len(ways) == 1:
            return ways[0]
        recorded = self._recorded(step, ways)
        choice = recorded if recorded is not None else self._cheapest(step, rows, ways)
        if choice is None:
            return ways[0]
        if not self._is_long_ago(step, choice.way):
            self._last[step] = choice.way
        self.choices.append(choice)
        return choice.way

    def cheapest(self, step: str, rows: int, ways: Sequence[Way]) -> Way:
        """The way that a step would be done in, if it were chosen now."""
        choice = self._cheapest(step, rows, ways)
        return ways[0] if choice is None else choice.way

    def _recorded(self, step: str, ways: Sequence[Way]) -> Choice | None:
        """The choice as it was recorded, in as many tasks as there are now where that differs."""
        chosen = [choice.way for choice in self.recorded.get(self._seq, ()) if choice.step == step]
        like = [way for way in ways if way in chosen] or [w for w in ways if any(w.place == o.place for o in chosen)]
        return Choice(step, like[0], _RECORDED) if like else None

    def _files_recorded(self, seq: int) -> dict[str, int]:
        """How many files a batch took, by step."""
        return {choice.step: choice.way.tasks for choice in self.recorded.get(seq, ()) if choice.way.place == FILES}

    def _cheapest(self, step: str, rows: int, ways: Sequence[Way]) -> Choice | None:
        """None where there are too few rows to choose for."""
        if rows < WORTH:
            return None
        seconds = {way: self.seconds(step, way, rows) for way in ways}
        best = min(ways, key=seconds.__getitem__)
        last = self._last.get(step)
        if last in seconds and seconds[best] > BETTER * seconds[last]:
            best = last
        again = [way for way in ways if self._is_long_ago(step, way) and seconds[way] < DEARER * seconds[best]]
        best = min(again, key=seconds.__getitem__, default=best)
        others = "; ".join(f"{way}: {seconds[way]:.3g} s" for way in ways if way != best)
        return Choice(step, best, f"{seconds[best]:.3g} s expected for {rows:,} rows; {others}")

    def _is_long_ago(self, step: str, way: Way) -> bool:
        """Whether what the step takes at that place was measured long ago."""
        return self._elsewhere.get((step, way.place), 0) >= AGAIN

    def seconds(self, step: str, way: Way, rows: int) -> float:
        """What a step is expected to take."""
        return self.costs(step, way.place).seconds(rows, way.tasks, way.cores)

    def costs(self, step: str, place: str) -> Costs:
        """What a step costs at a place. A place that was not measured differs from one that was as it is assumed to."""
        assumed = ASSUMED[place]
        for (of, measured), there in self._fits.items():
            if of == step and measured != place:
                ratio = there.costs(ASSUMED[measured]).million / ASSUMED[measured].million
                assumed = replace(assumed, million=max(assumed.million * ratio, 1e-9))
                break
        fit = self._fits.get((step, place))
        return assumed if fit is None else fit.costs(assumed)

    def measured(self, done: Mapping[str, tuple[Way, int]], seconds: float) -> None:
        """Steps of one place that took so long together: of each its way and its rows. Each has its share of what was
        expected.
        """
        for step, place in self._fits:
            if step in done:  # of however few rows: one that was to be tried was tried
                way, _ = done[step]
                self._elsewhere[step, place] = 0 if place == way.place else self._elsewhere.get((step, place), 0) + 1
        worth = {step: (way, rows) for step, (way, rows) in done.items() if rows >= WORTH}
        if not worth:
            return
        expected = {step: self.seconds(step, way, rows) for step, (way, rows) in worth.items()}
        whole = sum(self.seconds(step, way, rows) for step, (way, rows) in done.items())
        for step, (way, rows) in worth.items():
            fit = self._fits.setdefault((step, way.place), CostFit())
            fit.add(seconds * expected[step] / whole, ASSUMED[way.place], rows, way.tasks, way.cores)

    def rows_of(self, stream: str, size: int) -> int:
        """About how many rows files of so many bytes have."""
        return int(size * self._density.get(stream, DENSITY))

    def memory_of(self, stream: str, size: int, columns: int) -> int:
        """About how many bytes of memory so many columns of files of so many bytes take."""
        return max(size, _VALUE * columns * self.rows_of(stream, size))

    def knows(self, stream: str) -> bool:
        """Whether files of a stream were read."""
        return stream in self._density

    def assume(self, stream: str, density: float) -> None:
        """Files of a stream are likely to have so many rows a byte."""
        self._density[stream] = density

    def share_of(self, files: Mapping[str, Sequence[SourceFile]], seq: int) -> dict[str, tuple[SourceFile, ...]]:
        """The first of these files, by stream, that a batch of that number can take within its time, one of each stream
        at least; or as many as were recorded of it.
        """
        if recorded := self._files_recorded(seq):
            return {name: tuple(some[: max(0, recorded.get(_files_of(name), 0))]) for name, some in files.items()}
        rows = {name: [self.rows_of(name, file.size) for file in some] for name, some in files.items()}
        most, whole = self.most_rows(), sum(map(sum, rows.values()))
        if most is None or whole <= most:
            return {name: tuple(some) for name, some in files.items()}
        share = {}
        for name, some in files.items():
            fit = sum(1 for reached in accumulate(rows[name]) if reached * whole <= sum(rows[name]) * most)
            share[name] = tuple(some[: max(1, fit)])
        return share

    def time_left(self, rows: int) -> float | None:
        """Seconds that a batch of so many rows may wait for more and still be done in time; None where there is no such
        time.
        """
        if self.seconds_a_batch is None:
            return None
        return max(0.0, self.seconds_a_batch - self.costs(_BATCH, _BATCH).seconds(rows))

    @property
    def has_time(self) -> bool:
        """Whether there is a time for a batch, of which starting one leaves at least half for its rows."""
        return self.seconds_a_batch is not None and self.costs(_BATCH, _BATCH).start <= self.seconds_a_batch / 2

    @property
    def lets_go_ahead(self) -> bool:
        """Whether rows may be taken in before their batch: not where how many files that takes, or how it takes them
        in, is chosen for it.
        """
        return self.seconds_a_batch is None and not self.recorded

    def most_rows(self) -> int | None:
        """Rows that a batch may have to be done within its time, or within twice what starting it takes; None where
        nothing limits them.
        """
        if self.seconds_a_batch is None:
            return None
        costs = self.costs(_BATCH, _BATCH)
        # Where starting a batch takes most of the time, fewer rows would not be quicker but never done.
        seconds = max(self.seconds_a_batch - costs.start, costs.start)
        return max(1, int(seconds / max(costs.million, 1e-9) * 1e6))

    def ended(self, files: Mapping[str, Sequence[SourceFile]], rows: Mapping[str, int], seconds: float) -> None:
        """The batch that ran had so many rows of each stream, all of them in these files where it has any, and took so
        long.
        """
        for name, some in files.items():
            if size := sum(file.size for file in some):
                # A few files with hardly any row say little of those that come.
                density = rows.get(name, 0) / size
                self._density[name] = max(density, KEPT * self._density.get(name, 0.0))
        if self.seconds_a_batch is not None and any(rows.values()):
            self._fits.setdefault((_BATCH, _BATCH), CostFit()).add(seconds, ASSUMED[_BATCH], sum(rows.values()))

    def to_json(self) -> Json:
        """What a run that goes on need not learn again, and the choices of the batch; None where nothing was learnt."""
        if not (self._fits or self.choices):
            return None
        fits: list[Json] = [[step, place, fit.to_json()] for (step, place), fit in self._fits.items()]
        density: dict[str, Json] = {name: float(f"{value:.4g}") for name, value in self._density.items()}
        return {"fits": fits, "rows a byte": density, "choices": [choice.to_json() for choice in self.choices]}

    def load(self, value: Json) -> None:
        """Goes on with what was learnt before; what cannot be read is learnt anew, as no result depends on it."""
        if not isinstance(value, dict):
            return
        fits, density = value.get("fits"), value.get("rows a byte")
        for entry in fits if isinstance(fits, list) else ():
            match entry:
                case [str(step), str(place), numbers] if place in ASSUMED:
                    self._fits[step, place] = CostFit.from_json(numbers)
        for name, rows in density.items() if isinstance(density, dict) else ():
            if isinstance(rows, int | float) and rows > 0:
                self._density[name] = float(rows)


def _files_of(stream: str) -> str:
    """The step in which a batch takes files of a stream."""
    return f"files of {stream}"


def choices_of(value: Json) -> list[Choice]:
    """The choices of a batch, as `Tuner.to_json` has written them."""
    entries = value.get("choices") if isinstance(value, dict) else None
    read = [Choice.from_json(entry) for entry in entries] if isinstance(entries, list) else []
    return [choice for choice in read if choice is not None]
