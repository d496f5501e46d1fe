"""The manual as `make docs` builds it, once for all tests that look at it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class BuiltManual:
    """Where the pages are, and how the build ended."""

    place: Path
    status: int
    complaints: str
