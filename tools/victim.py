"""The run that `kill_loop.py` kills: a program of the fault tests over directories of files, on either engine.

    python tools/victim.py PLACE PROGRAM ENGINE KIND

It reads all files below PLACE that are not read yet, and says on its output where it is: `opening` when it is about to
open the checkpoint, `batch` after each commit, `compaction` as it begins to merge files of results. A run of the kind
`tidy` compacts results, as soon as there are two files of a size, and archives files; one of the kind `kept` leaves its
results in the checkpoint, where few of them wait in packs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.runtime.faults.on_files import (  # noqa: E402  # found from wherever this is started
    compacting_soon,
    run_embedded,
    run_on_spark,
)
from tests.runtime.faults.scenarios import scenario  # noqa: E402
from tidegate.runtime.state.failpoints import Failpoints  # noqa: E402
from tidegate.runtime.state.store.local import LocalStore  # noqa: E402


def main(place: Path, program: str, engine: str, kind: str) -> None:
    one, store = scenario(program), LocalStore(place / "state")
    how: dict[str, Any] = {"tidy": kind == "tidy", "kept": kind == "kept", "store": store}
    how["on_batch"] = lambda _: say("batch")
    tell_compactions(store.failpoints)
    with compacting_soon():
        if engine == "embedded":
            say("opening")
            run_embedded(one, place, **how)
            return
        from tidegate.runtime.engines.spark.setup.session import spark_session

        # A task whose worker is killed is tried again, as on a cluster.
        spark = spark_session("kill-loop", master="local[2,3]", config={"spark.sql.shuffle.partitions": "2"})
        say("opening")
        run_on_spark(one, place, spark, **how)
        spark.stop()


def tell_compactions(failpoints: Failpoints) -> None:
    """Says so at the beginning of every compaction, not only of the next."""

    def tell() -> None:
        say("compaction")
        failpoints.arm("compaction-begun", tell)

    failpoints.arm("compaction-begun", tell)


def say(what: str) -> None:
    print(what, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
