"""Random interval sequences: what they mean is what the executions of the ISEQ paper find, and the embedded engine."""

from __future__ import annotations

from tests.properties.families import FAMILIES, Family, by_executions, seeds
from tests.strategies.interval_sequences import random_interval_sequence_case


def test_executions_find_what_is_meant() -> None:
    for seed in seeds(60):
        failure = FAMILIES["iseq"].run(seed)
        assert failure is None, failure


def test_random_cases_have_results() -> None:
    family = Family(by_executions, make=random_interval_sequence_case, scripts=1)
    for seed in range(1, 200, 2):
        assert family.run(seed) is None
    assert family.tally.valid >= 50
    assert family.tally.with_results >= 15
    assert family.tally.results >= 60
