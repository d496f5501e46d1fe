"""Which directories a DataFrame reads."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.sql import DataFrame

#: Where a pattern of paths begins.
_PATTERN = re.compile(r"/[^/]*[*?\[{].*")
_LOCAL = re.compile(r"(?:file:)?(?://(?=/))?(/.*)")


def watched_directories(frame: DataFrame) -> list[str]:
    """The local directories and files from which a DataFrame's rows come, as far as Spark's plan tells; of a pattern
    the directory in which it is looked for."""
    try:
        paths = _paths(frame)
    except Py4JError:  # a plan of another form
        return []
    local = (_LOCAL.fullmatch(path) for path in paths)
    return sorted({_PATTERN.sub("", matched[1]) or "/" for matched in local if matched is not None})


def _paths(frame: DataFrame) -> list[str]:
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    places: list[str] = []
    for number in range(leaves.size()):
        leaf = leaves.apply(number)
        match leaf.getClass().getSimpleName():
            case "StreamingRelation":
                source = leaf.dataSource()
                option, paths = source.options().get("path"), source.paths()
                places += [option.get()] if option.isDefined() else []
                places += [paths.apply(i) for i in range(paths.size())]
            case "LogicalRelation" if leaf.relation().getClass().getSimpleName() == "HadoopFsRelation":
                roots = leaf.relation().location().rootPaths()
                places += [roots.apply(i).toString() for i in range(roots.size())]
    return places
