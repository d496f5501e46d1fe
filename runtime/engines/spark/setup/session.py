"""A Spark session set up for Tidegate: local by default, quiet, with the settings that micro-batches want."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import cache
from importlib.resources import as_file, files
from typing import Final

from pyspark.sql import SparkSession

from tidegate.algebra.diagnostics.tracebacks import trimmed
from tidegate.algebra.errors import QueryError
from tidegate.runtime.engines.spark.setup.java import ensure_java

ARROW_ROWS_PER_BATCH = 100_000
SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"

#: Bytes that the path of a socket may have at least on every system, and those of the name that Spark gives it.
_SOCKET_PATH: Final = 103
_SOCKET_NAME: Final = len("/.01234567-0123-0123-0123-0123456789ab.sock")
#: Files that lie in a wheel or archive are unpacked for the JVM until this process ends.
_UNPACKED = ExitStack()
atexit.register(_UNPACKED.close)


def query_settings(*, cores: int) -> dict[str, str]:
    """The settings that a session can have for itself while it runs, and what each is for."""
    return {
        "spark.sql.session.timeZone": "UTC",  # instants are UTC ticks, whatever the machine's zone
        "spark.sql.ansi.enabled": "true",  # overflow and failed casts are errors, as in the semantics
        "spark.sql.caseSensitive": "true",  # n and N are two attributes
        "spark.sql.adaptive.enabled": "false",  # replanning a micro-batch costs more than it wins
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS_PER_BATCH),  # fewer, larger Python calls
        "spark.sql.execution.arrow.compression.codec": "none",  # lz4 was seen to hang
        SHUFFLE_PARTITIONS: str(max(2, min(cores, 16))),  # 200 empty tasks a batch by default
    }


def check_session(spark: object) -> None:
    """`QueryError` TG401 for what is no session, or one of Spark Connect, whose driver is elsewhere."""
    if not isinstance(spark, SparkSession):
        raise QueryError(
            "TG401",
            f"{type(spark).__module__}.{type(spark).__name__} is no session of Spark in this process",
            hint="give a pyspark.sql.SparkSession",
        )


def own_session(spark: SparkSession) -> SparkSession:
    """A session beside the user's, on the same Spark, with the settings that increments want; the user's stay as they
    are.
    """
    session = spark.newSession()
    for key, value in query_settings(cores=spark.sparkContext.defaultParallelism).items():
        session.conf.set(key, value)
    return session


@cache
def socket_settings() -> dict[str, str]:
    """Workers and the JVM talk through sockets that are files, in a directory of this user's alone; nothing where no
    such directory has a short enough path.

    Through TCP every task waits for some 40 ms: the JVM keeps back the end of what it sends until its beginning is
    acknowledged, and a worker that has answered quickly acknowledges late.
    """
    if hasattr(socket, "AF_UNIX"):
        for place in (tempfile.gettempdir(), "/tmp"):
            with suppress(OSError):
                directory = tempfile.mkdtemp(prefix="tidegate-", dir=place)
                atexit.register(shutil.rmtree, directory, ignore_errors=True)
                if len(os.fsencode(directory)) + _SOCKET_NAME <= _SOCKET_PATH:
                    return {
                        "spark.python.unix.domain.socket.enabled": "true",
                        "spark.python.unix.domain.socket.dir": directory,
                    }
    return {}


def session_settings(*, cores: int, local: bool) -> dict[str, str]:
    """The settings and what each is for; `local` adds those which only a single machine wants."""
    quiet = _UNPACKED.enter_context(as_file(files("tidegate.runtime.engines.spark") / "log4j2.properties")).as_uri()
    settings = query_settings(cores=cores) | {
        "spark.ui.showConsoleProgress": "false",
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # else many calls to the JVM for each one that is meant
    }
    if local:
        settings |= socket_settings() | {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "2g",
            # A machine whose own name does not resolve can run Spark all the same.
            "spark.driver.host": "localhost",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
            # Hadoop's other manager starts a `chmod` process for every checkpoint file on a local disk.
            "spark.sql.streaming.checkpointFileManagerClass": (
                "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
            ),
        }
    return settings


@trimmed
def spark_session(app_name: str, *, master: str | None = None, config: Mapping[str, str] | None = None) -> SparkSession:
    """A session with Tidegate's settings; `config` overrides any of them (`{"spark.ui.enabled": "true"}`).

    `master` is local[*] unless the program was started by spark-submit, which then decides. A session that is
    running already is returned, with those settings applied which Spark can change at run time. Java is looked
    for as in `ensure_java`; workers of a local session run the Python of this process.

    `QueryError` TG421 where no Java >= 17 is found.

    Examples:
        >>> spark = tg.spark_session("shop")
        >>> spark.conf.get("spark.sql.session.timeZone")
        'UTC'
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        ensure_java()
        master = master or "local[*]"
    local = master is not None and master.startswith("local")
    if local:
        # Spark's default is whatever `python3` is on the path, which may be another version.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.Builder().appName(app_name)
    if master is not None:
        builder = builder.master(master)
    settings = {**session_settings(cores=os.cpu_count() or 2, local=local), **(config or {})}
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
