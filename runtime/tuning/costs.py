"""Costs of a step: seconds = start + wave · waves + million · millions of rows / cores, fitted to what a run measures.

A fit is least squares with forgetting, kept as its normal equations, so that a batch adds to it and nothing is stored
of batches before. Residuals count relative to the time assumed: a large batch does not outweigh small ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tidegate.runtime.arrays import Float64Array
from tidegate.runtime.state.codec import Json

#: What an observation still counts when the next one is made: a change of rate, keys or skew shows within three
#: batches.
KEPT: Final = 0.6
#: What the costs that are assumed before anything is measured count, in observations.
ASSUMED: Final = 0.003
_COSTS = 3
_MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of a step: to start it, for each wave of tasks, and for a million rows on one core."""

    start: float
    wave: float
    million: float

    def seconds(self, rows: int, tasks: int = 1, cores: int = 1) -> float:
        """Of so many rows in so many tasks, of which as many run at once as there are cores."""
        return float(np.dot(_features(rows, tasks, cores), (self.start, self.wave, self.million)))


@dataclass(slots=True)
class CostFit:
    """What was measured of a step at one place: the normal equations of least squares."""

    squares: Float64Array = field(default_factory=lambda: np.zeros((_COSTS, _COSTS)))
    products: Float64Array = field(default_factory=lambda: np.zeros(_COSTS))

    @property
    def is_empty(self) -> bool:
        return not self.squares.any()

    def add(self, seconds: float, assumed: Costs, rows: int, tasks: int = 1, cores: int = 1) -> None:
        """Counts a step that took so long; older ones count less from now on."""
        size = assumed.seconds(rows, tasks, cores)
        features = _features(rows, tasks, cores) / size
        self.squares = KEPT * self.squares + np.outer(features, features)
        self.products = KEPT * self.products + features * (seconds / size)

    def costs(self, assumed: Costs) -> Costs:
        """The costs that fit best. What the measurements leave open is as assumed, in proportion to the rest: all may
        be slower here. A cost assumed to be 0 stays so; none is negative.
        """
        prior = np.array([assumed.start, assumed.wave, assumed.million])
        trust = np.diag(ASSUMED / np.maximum(prior, 1e-12) ** 2)
        if not self.is_empty:
            prior *= (prior @ self.products) / (prior @ self.squares @ prior)
        squares, products = self.squares + trust, self.products + trust @ prior
        free = prior > 0
        fitted = np.zeros(_COSTS)
        while free.any():
            fitted[:] = 0
            fitted[free] = np.linalg.solve(squares[np.ix_(free, free)], products[free])
            if (fitted >= 0).all():
                break
            free &= fitted > 0
        return Costs(*map(float, np.maximum(fitted, 0.0)))

    def to_json(self) -> Json:
        """The six numbers above the diagonal, and the three beside them."""
        upper = self.squares[np.triu_indices(_COSTS)]
        return [float(f"{value:.6g}") for value in (*upper, *self.products)]

    @classmethod
    def from_json(cls, value: Json) -> CostFit:
        """An empty one for what none has written: costs decide nothing but time."""
        numbers = [v for v in value if isinstance(v, int | float)] if isinstance(value, list) else []
        count = _COSTS * (_COSTS + 1) // 2
        if len(numbers) != count + _COSTS or not np.isfinite(numbers).all():
            return cls()
        fit = cls()
        fit.squares[np.triu_indices(_COSTS)] = numbers[:count]
        fit.squares = np.triu(fit.squares) + np.triu(fit.squares, 1).T
        fit.products = np.array(numbers[count:], dtype=np.float64)
        return fit


def _features(rows: int, tasks: int, cores: int) -> Float64Array:
    at_once = max(1, min(tasks, cores))
    return np.array([1.0, -(-tasks // at_once), rows / _MILLION / at_once])
