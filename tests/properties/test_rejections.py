"""What the analysis accepts is true in a small world, and without rounding and data it rejects nothing that is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.properties.families import seeds
from tools.rejections import FAMILIES, measure


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_accepted_is_true(name: str) -> None:
    rounding, data = FAMILIES[name]
    told: Any = measure(rounding, data, seeds(60))
    assert told["unsound"] == 0
    if not rounding and not data:
        assert told["progress rejected"] == told["relation rejected"] == told["empty, not noticed"] == 0
    assert told["progress true"] >= 8
    assert told["relation true"] >= 8
