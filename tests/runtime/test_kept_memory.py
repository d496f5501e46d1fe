"""Memory that a batch has freed is there for the next one (decision 18); what a compaction took is given back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


#: Prints the resident bytes that a process has more after it merged half a million rows in a directory of results.
MERGED = """
import sys
from pathlib import Path
import numpy, pyarrow, pyarrow.parquet
from tidegate.runtime.state.outputs.compaction import compact
from tidegate.runtime.state.outputs.names import output_name

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

top = Path(sys.argv[1]) / "out"
top.mkdir()
for seq in range(1, 18):
    numbers = numpy.random.default_rng(seq).integers(0, 1 << 40, 1 << 15)
    table = pyarrow.table({"n": numbers, "text": numbers.astype(str)})
    pyarrow.parquet.write_table(table, top / output_name(seq, "Q", 0))
del table, numbers
pyarrow.default_memory_pool().release_unused()
before = resident()
done = compact(top)
assert (done.files, done.rows) == (2, 1 << 19), done
print(resident() - before)
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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc elsewhere")
def test_a_compaction_gives_back_what_it_took(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", MERGED, str(tmp_path)], check=True, capture_output=True, text=True)
    assert int(ran.stdout) < 30 << 20
