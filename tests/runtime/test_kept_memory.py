"""Memory that a batch has freed is there for the next one (decision 18)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

#: Prints how many pages are mapped anew for a frame that is made a second after one of the same size was freed.
TWICE = """
import resource, time
import tidegate
import polars as pl

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    pl.repeat(1, 8_000_000, dtype=pl.Int64, eager=True)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
time.sleep(1.2)
pl.repeat(1, 1_000, dtype=pl.Int64, eager=True)
print(first, faults())
"""


def pages(**environment: str) -> tuple[int, int]:
    inherited = {name: value for name, value in os.environ.items() if name != "_RJEM_MALLOC_CONF"}
    ran = subprocess.run(
        [sys.executable, "-c", TWICE], env=inherited | environment, check=True, capture_output=True, text=True
    )
    first, second = map(int, ran.stdout.split())
    return first, second


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere Polars has another allocator")
def test_freed_memory_is_kept() -> None:
    first, second = pages()
    assert second < first / 2


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere Polars has another allocator")
def test_a_setting_that_is_there_stays() -> None:
    first, second = pages(_RJEM_MALLOC_CONF="dirty_decay_ms:0,muzzy_decay_ms:0")
    assert second > first / 2
