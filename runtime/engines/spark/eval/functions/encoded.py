"""Digests, JSON and UUIDs in Spark, whose JSON differs in what it takes and writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.runtime.engines.spark.eval.functions.shared import by_polars
from tidegate.runtime.eval.functions.frame import Form

FORMS: Final[Mapping[str, Form[Column]]] = {
    "md5": Form(lambda a: F.md5(a)),
    "sha1": Form(lambda a: F.sha1(a)),
    "sha256": Form(lambda a: F.sha2(a, 256)),
    "sha512": Form(lambda a: F.sha2(a, 512)),
    **{name: by_polars(name) for name in ("json", "to_uuid", "uuid5")},
}
