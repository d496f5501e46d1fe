"""A few of the programs over many rows; `tools/fuzz.py --family large` runs a few hundred."""

from __future__ import annotations

import polars as pl
import pytest

from tests.properties import large
from tests.properties.families import seeds

#: Two situations that change often, and one that seldom does among many of another.
PATTERNS = (47, 71, 119, 127)


@pytest.mark.parametrize(
    "seed", [*seeds(6)[:3], *(pytest.param(seed, marks=pytest.mark.long) for seed in seeds(6)[3:]), 114]
)
def test_programs_over_many_rows_answer_as_sql_does(seed: int) -> None:
    family = large.LargeFamily()
    assert family.run(seed) is None
    assert family.tally.cases == 1


@pytest.mark.parametrize("seed", PATTERNS)
def test_patterns_over_many_rows_are_found_as_a_search_by_starts_finds_them(seed: int) -> None:
    assert seed % 8 == large.PATTERN
    assert large.LargeFamily().run(seed) is None


def test_cases_cross_the_sizes_and_come_in_batches() -> None:
    cases = [large.random_large(seed) for seed in range(12)]
    heights = [frame.height for case in cases for rows, _ in case.batches for frame in rows.values()]
    assert max(heights) >= 65_536
    assert min(heights) < 5_000
    assert max(len(case.batches) for case in cases) > 3
    assert sum(bool(case.program.facts) for case in cases) == len(cases)


def test_a_difference_is_told() -> None:
    one = pl.DataFrame({"a": [1, 2, None], "b": [0.5, 1.0, None]})
    assert large.difference(one, one.reverse()) is None
    assert "2 rows instead of 3" in str(large.difference(one.head(2), one))
    assert "too many: [(3, 1.0)], missing: [(2, 1.0)]" in str(
        large.difference(pl.DataFrame({"a": [1, 3], "b": [0.5, 1.0]}), pl.DataFrame({"a": [1, 2], "b": [0.5, 1.0]}))
    )


def test_a_wrong_answer_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    found = large.incrementally
    monkeypatch.setattr(large, "incrementally", lambda case: (found(case)[0].head(7), 0))
    assert "7 rows instead of" in str(large.LargeFamily().run(0))
