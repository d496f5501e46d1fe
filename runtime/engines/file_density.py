"""How many rows files are likely to have, before any of them was read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.runtime.state.inputs.positions import SourceFile
from tidegate.runtime.tuning.tuner import Tuner

_PARQUET: Final = b"PAR1"
#: Bytes of a text file whose lines are counted.
_HEAD: Final = 1 << 16
#: Files that are looked at of a stream.
_FIRST: Final = 4


def estimate(tuner: Tuner, files: Mapping[str, Iterable[SourceFile]]) -> None:
    """Tells the tuner, of each stream that it knows nothing of, how many rows a byte its first files have at most."""
    for name, some in files.items():
        if not tuner.knows(name):
            densities = [density for file in islice(some, _FIRST) if (density := rows_a_byte(file.path))]
            if densities:
                tuner.assume(name, max(densities))


def rows_a_byte(path: str) -> float | None:
    """The rows of a file by its bytes: as the footer of a Parquet file has them, else lines among the first; None for
    a file that cannot be read.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
        if head.startswith(_PARQUET):
            return float(pq.read_metadata(path).num_rows / os.path.getsize(path))
    except (pa.ArrowException, OSError):
        return None
    return head.count(b"\n") / len(head) if head else None
