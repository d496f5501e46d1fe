"""The run that `kill_loop.py` kills: a program of the fault tests over directories of files, on either engine.

    python tools/victim.py PLACE PROGRAM ENGINE [tidy]

It reads all files below PLACE that are not read yet, and says on its output where it is: `opening` when it is about to
open the checkpoint, `batch` after each commit. A `tidy` one compacts results and archives files.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.runtime.faults.on_files import run_embedded, run_on_spark  # noqa: E402  # found from wherever this is started
from tests.runtime.faults.scenarios import scenario  # noqa: E402


def main(place: Path, program: str, engine: str, tidy: str = "") -> None:
    one = scenario(program)
    if engine == "embedded":
        say("opening")
        run_embedded(one, place, tidy=bool(tidy), on_batch=lambda _: say("batch"))
        return
    from tidegate.runtime.engines.spark.setup.session import spark_session

    # A task whose worker is killed is tried again, as on a cluster.
    spark = spark_session("kill-loop", master="local[2,3]", config={"spark.sql.shuffle.partitions": "2"})
    say("opening")
    run_on_spark(one, place, spark, tidy=bool(tidy), on_batch=lambda _: say("batch"))
    spark.stop()


def say(what: str) -> None:
    print(what, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
