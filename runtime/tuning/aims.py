"""What a run is tuned for, as users say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from tidegate.algebra.diagnostics.shown import misspelt, shown
from tidegate.algebra.dsl.expression import DurationOption, duration_given
from tidegate.algebra.errors import QueryError
from tidegate.algebra.time import duration_ticks
from tidegate.runtime.tuning.choices import Choice
from tidegate.runtime.tuning.tuner import Tuner

Tune: TypeAlias = Literal["throughput"] | DurationOption | Mapping[int, Sequence[Choice]]
"""As many rows a second as can be; how long a batch may take; or the choices of a run before, by batch."""

_HINT = (
    'give "throughput", how long a batch may take, such as "500ms", or the choices of a run before: '
    "{report.seq: report.choices for report in reports}"
)


def tuner_for(tune: Tune) -> Tuner:
    """A tuner that has learnt nothing yet; `QueryError` TG401 for nothing that a run can be tuned for."""
    if isinstance(tune, Mapping):
        if not all(map(_is_recorded, tune.items())):
            raise QueryError("TG401", "tune= has choices that are none", hint=_HINT)
        return Tuner(recorded=tune)
    if isinstance(tune, str) and tune == "throughput":
        return Tuner()
    meant = ""
    try:
        ticks = duration_ticks(duration_given(tune))
    except QueryError as error:
        ticks = 0
        if isinstance(tune, str) and misspelt(tune, ["throughput"]):
            meant = 'did you mean "throughput"? '
        elif error.hint.startswith("did you mean"):
            meant = f"{error.hint.partition('?')[0]}? "
    if ticks <= 0:
        raise QueryError("TG401", f"tune={shown(tune)} is nothing that a run can be tuned for", hint=meant + _HINT)
    return Tuner(seconds_a_batch=ticks / 1_000_000)


def _is_recorded(item: tuple[object, object]) -> bool:
    """Whether these are a batch's number and its choices."""
    seq, choices = item
    return (
        isinstance(seq, int) and isinstance(choices, Sequence) and all(isinstance(choice, Choice) for choice in choices)
    )
