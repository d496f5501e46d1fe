"""Run options: how a program runs, said once for both engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import get_args

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.errors import QueryError
from tidegate.runtime.arguments import check_bytes, check_clock, check_on_batch, check_threads
from tidegate.runtime.batch.garbage import Folding, GarbageCollection
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sources import OnError
from tidegate.runtime.engines.clock import Clock, system_clock
from tidegate.runtime.ingest.quarantine import Keep, retention
from tidegate.runtime.plan.schedule import Schedule
from tidegate.runtime.plan.steps import PurgeMode
from tidegate.runtime.state.quarantine import Retention
from tidegate.runtime.tuning.aims import Tune, tuner_for
from tidegate.runtime.tuning.tuner import Tuner


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a program runs; `Program.session` says what each option means.

    What needs no program to be judged is checked here, `schedule` and `on_error` where the program is made ready.
    `QueryError` TG401 for what is no such option, TG525 for a `quarantine_keep` that is neither age nor size.
    """

    collect_garbage: GarbageCollection = "amortised"
    purging: PurgeMode = "planned"
    folding: Folding = "on"
    clock: Clock = system_clock
    on_batch: Callable[[BatchReport], None] | None = None
    schedule: Schedule | None = None
    threads: int = 1
    quarantine_keep: Keep | None = None
    on_error: OnError | Mapping[str, OnError] = "quarantine"
    tune: Tune = "throughput"
    cache_bytes: int | None = None
    retention: Retention = field(init=False)
    """What `quarantine_keep` means."""

    def __post_init__(self) -> None:
        check_clock(self.clock)
        check_on_batch(self.on_batch)
        check_threads(self.threads)
        if self.cache_bytes is not None:
            check_bytes("cache_bytes", self.cache_bytes)
        object.__setattr__(self, "retention", retention(self.quarantine_keep))
        _check_one_of("garbage collection", self.collect_garbage, get_args(GarbageCollection))
        _check_one_of("purging", self.purging, get_args(PurgeMode))
        _check_one_of("folding", self.folding, get_args(Folding))
        self.tuner()

    def tuner(self) -> Tuner:
        """A tuner that has learnt nothing yet."""
        return tuner_for(self.tune)


def _check_one_of(what: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise QueryError("TG401", f"unknown {what} {shown(value)}", hint=f"one of {', '.join(known)}")
