"""A job over texts with few calls to the JVM.

PySpark looks up classes and methods of the JVM by their names in every job, and makes there what workers are to know of
their environment: more than thirty calls, for which a batch waits. What is the same for all jobs of a context is made
once here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from tempfile import NamedTemporaryFile
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark import Broadcast, SparkContext
from pyspark.serializers import BatchedSerializer, CloudPickleSerializer
from pyspark.util import _load_from_socket

from tidegate.runtime.engines.spark.tasks.held import packed

Partition = Callable[[Iterable[str]], Iterator[str]]
#: What all tasks of a job share, as it goes with their function, or beside it.
Sent: TypeAlias = bytes | Broadcast[bytes]


def collected(context: SparkContext, work: Partition, texts: Sequence[str]) -> list[str]:
    """What the work makes of each text, in their order: a task for each."""
    known = _known(context)
    reader = BatchedSerializer(known.context._unbatched_serializer, 1)  # type: ignore[no-untyped-call]  # PySpark has no types for it
    command = packed((partial(_of_partition, work), None, reader, known.context.serializer))
    if known.context._encryption_enabled or len(command) > known.most_bytes:
        with sent(context, packed(work)) as shared:
            return context.parallelize(texts, len(texts)).mapPartitions(partial(_of_sent, shared)).collect()
    return known.collected(command, reader, texts)


@contextmanager
def sent(context: SparkContext, shared: bytes) -> Iterator[Sent]:
    """What all tasks of a job share, as a broadcast where it is large; the block runs the job.

    PySpark would make one by itself. Its file would then stay until the JVM ends.
    """
    if 2 * len(shared) <= _known(context).most_bytes:  # a few hundred bytes go with it
        yield shared
        return
    broadcast = context.broadcast(shared)
    try:
        yield broadcast
    finally:
        with suppress(Py4JError, OSError):  # the JVM may be gone, and its files with it
            broadcast.destroy()


def received(shared: Sent) -> bytes:
    """The same in a worker."""
    return shared.value if isinstance(shared, Broadcast) else shared


def _of_sent(shared: Sent, texts: Iterable[str]) -> Iterator[str]:
    work: Partition = CloudPickleSerializer().loads(received(shared))  # type: ignore[no-untyped-call]  # PySpark has no types for it
    return work(texts)


def _of_partition(work: Partition, _: int, texts: Iterable[str]) -> Iterator[str]:
    return work(texts)


@dataclass(slots=True)
class _Jvm:
    """What jobs of a context need of the JVM, by the names that PySpark has for it. `most_bytes`: what all tasks share
    goes as a broadcast if it has more.
    """

    context: Any
    rdds: Any
    read: Any
    collect: Any
    function: Any
    most_bytes: int
    _of: tuple[dict[str, str], list[str]] | None = None
    _environment: Any = None
    _includes: Any = None
    _broadcasts: Any = field(init=False)

    def __post_init__(self) -> None:
        self._broadcasts = self.context._jvm.java.util.ArrayList()

    @classmethod
    def of(cls, context: Any) -> _Jvm:
        jvm = context._jvm
        rdds, most_bytes = jvm.PythonRDD, jvm.PythonUtils.getBroadcastThreshold(context._jsc)
        return cls(context, rdds, rdds.readRDDFromFile, rdds.collectAndServe, jvm.SimplePythonFunction, int(most_bytes))

    def collected(self, command: bytes, reader: Any, texts: Sequence[str]) -> list[str]:
        context = self.context
        with NamedTemporaryFile(dir=context._temp_dir) as file:
            reader.dump_stream(texts, file)
            file.flush()
            given = self.read(context._jsc, file.name, len(texts)).rdd()
        environment, includes = self._told()
        function = self.function(
            bytearray(command),
            environment,
            includes,
            context.pythonExec,
            context.pythonVer,
            self._broadcasts,
            context._javaAccumulator,
        )
        served = self.collect(self.rdds(given, function, False, False))
        with _load_from_socket(served, context.serializer) as stream:
            return list(stream)

    def _told(self) -> tuple[Any, Any]:
        """What workers are to know of their environment, and the files that they are to import from."""
        now = (dict(self.context.environment), list(self.context._python_includes))
        if self._of != now:
            java, self._of = self.context._jvm.java.util, now
            self._environment, self._includes = java.HashMap(), java.ArrayList()
            for name, value in now[0].items():
                self._environment.put(name, value)
            for file in now[1]:
                self._includes.add(file)
        return self._environment, self._includes


_KNOWN: WeakKeyDictionary[SparkContext, _Jvm] = WeakKeyDictionary()


def _known(context: SparkContext) -> _Jvm:
    return _KNOWN.get(context) or _KNOWN.setdefault(context, _Jvm.of(context))
