"""How long an interval lasts at most, by what its stream declares: until then one that has begun may still end."""

from __future__ import annotations

from tidegate.algebra.nodes import Scan
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.federation.views import declared_matrix
from tidegate.analysis.zones.zone import NONE


def longest(stream: StreamDef) -> Extended:
    """The most ticks from start to end of an interval of a stream that tells beginnings; +∞ where nothing bounds
    them.
    """
    matrix, begins = declared_matrix(federation(Scan(stream)), 0), stream.begins
    if matrix is None or begins is None:
        return INF
    instants = stream.schema.temporal
    most = int(matrix[instants.index(begins.start), instants.index(begins.end)])
    return INF if most >= NONE else most
