"""Which files of a checkpoint's directory are the checkpoint's own: their names have the form that Tidegate or Spark
gives them.

All else in the directory belongs to somebody else. It is never listed, overwritten or deleted.
"""

from __future__ import annotations

import re
from typing import Final

from tidegate.algebra.errors import InternalError
from tidegate.runtime.state.store.paths import check_relative

_SLUG: Final = r"[A-Za-z0-9_-]{1,60}"  # see `paths.slug`
_STATE: Final = rf"{_SLUG}/\d{{10,}}-[A-Za-z0-9_]{{1,40}}-[0-9a-f]{{32}}\.parquet"  # see `segments.new_path`
_RESULT: Final = rf"part-\d{{10}}-(?:to-\d{{10}}-)?{_SLUG}-\d{{5}}\.parquet"  # see `result_names`
#: A copy of a result in another file system, until it is whole; earlier versions left out the number.
_COPY: Final = rf"\.{_RESULT}(?:\.[0-9a-f]{{32}})?\.tmp"
_OUTPUT: Final = rf"(?:{_RESULT}|{_COPY})"
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
#: A file of Hadoop's local file system, the copy under which it is written, and the checksums of both.
_WRITING: Final = rf"{_UUID}(?:\.TID\d+)?\.tmp"
_HADOOP: Final = rf"(?:{{0}}|\.{{0}}\.crc|\.{{0}}\.{_WRITING}|\.\.{{0}}\.{_WRITING}\.crc)"
_NUMBERED: Final = _HADOOP.replace("{0}", r"\d+(?:\.compact)?")
#: What Spark's state stores write, HDFS-backed or RocksDB, below an operator and its partitions.
_STORED: Final = _HADOOP.replace(
    "{0}",
    rf"(?:\d+(?:_{_UUID})?(?:\.(?:delta|snapshot|changelog|zip))?|\d+-{_UUID}\.(?:sst|log)|metadata|schema)",
)
_SPARK: Final = "|".join(
    [
        r"tidegate-sources\.json",
        r"tidegate-wake-up\.json|\.tidegate-wake-up\.json\.tmp",
        _HADOOP.replace("{0}", "metadata"),
        rf"(?:offsets|commits)/{_NUMBERED}",
        rf"sources/\d+/{_NUMBERED}",
        # of streaming DataFrames that aggregate before they are a source
        rf"state/\d+/(?:[A-Za-z0-9_-]+/){{0,4}}{_STORED}",
    ]
)
_WRITTEN: Final = rf"\.?(?:rows\.parquet|_SUCCESS|part-\d+-{_UUID}[A-Za-z0-9._-]*\.parquet)(?:\.crc)?"
_SPARK_ROWS: Final = rf"(?:_temporary/\d+/(?:_temporary/)?(?:(?:attempt|task)_[0-9a-z_]+/)?)?{_WRITTEN}"

#: The form of the names below each of a checkpoint's directories.
_AREAS: Final = {
    area: re.compile(form)
    for area, form in {
        "manifests": r"\d{10}\.json",
        "intents": r"\d{10}\.json",
        "published": r"\d{10}",
        "away": r"\d{10}",
        "segments": _STATE,
        "packs": r"\d{10,}-[A-Za-z0-9_]{1,40}-[0-9a-f]{32}\.pack",  # see `packs.PackWriter`
        "kernel": _STATE,
        "positions": _STATE,
        "staging": _STATE,
        "results": rf"{_SLUG}/{_OUTPUT}",
        "quarantine": _STATE,
        "inputs": rf"{_SLUG}/(?:given|complete|rows/(?:{_SPARK_ROWS}))",
        "statics": rf"{_SLUG}-[0-9a-f]{{32}}\.(?:parquet|tmp)",
        "advances": r"[0-9a-f]{32}\.json",
        "closing": r"\d{6,}\.json",
        "tmp": r"tidegate-[0-9a-f]{32}",  # a digest alone is how others name their files, too
        "spark": _SPARK,
        "spark-replaced": _SPARK,
    }.items()
}
_FILES: Final = frozenset({"meta.json", "lock"})
#: What is the checkpoint's own at the top of its directory; other names there are never looked at.
TOP: Final = _FILES | _AREAS.keys()


def is_copy(name: str) -> bool:
    """Whether this is the name of a result that is copied into its directory and is not whole yet."""
    return re.fullmatch(_COPY, name) is not None


def is_own(path: str) -> bool:
    """Whether a path, relative to the checkpoint, has the form of those that the checkpoint's own files have."""
    area, _, rest = path.partition("/")
    form = _AREAS.get(area)
    return path in _FILES if form is None else form.fullmatch(rest) is not None


def check_own(path: str) -> str:
    """`path` itself if it may be deleted; `InternalError` for one that the checkpoint never writes."""
    if not is_own(check_relative(path)):
        raise InternalError("TG590", f"{path!r} is no file of a checkpoint, so it is not deleted")
    return path
