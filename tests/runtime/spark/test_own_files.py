"""What Spark's own checkpoint says of the batch that it has planned last."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.runtime.engines.spark.own_files import is_planned, planned_offsets
from tidegate.runtime.state.errors import StateError


def test_a_batch_that_spark_has_planned_is_recognised(tmp_path: Path) -> None:
    assert not is_planned(str(tmp_path))
    for part, planned in (
        ("offsets/9", True),
        ("commits/9", False),
        ("offsets/10", True),
        ("offsets/.11.crc", True),
        ("commits/10", False),
    ):
        (tmp_path / "spark" / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "spark" / part).touch()
        assert is_planned(str(tmp_path)) == planned
    (tmp_path / "spark" / "commits" / "9").unlink()  # Spark goes by the last one
    assert not is_planned(str(tmp_path))


def test_what_a_planned_batch_is_known_by(tmp_path: Path) -> None:
    """Not by its time, which another batch of the same offsets has as well."""
    (tmp_path / "spark" / "offsets").mkdir(parents=True)
    (tmp_path / "spark" / "offsets" / "3").write_text('v1\n{"batchTimestampMs":1}\n{"wake_up":"a"}\n-')
    assert planned_offsets(str(tmp_path), 3) == ['{"wake_up":"a"}', "-"]
    with pytest.raises(StateError, match="TG509"):
        planned_offsets(str(tmp_path), 4)
