"""Functions of doubles in Spark, whose own differ from Python's in the last bit: but for the square root they are
Polars'.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.algebra.functions.doubles import TRIGONOMETRY
from tidegate.runtime.engines.spark.eval.functions.shared import by_polars
from tidegate.runtime.eval.functions.frame import Form

FORMS: Final[Mapping[str, Form[Column]]] = {
    "sqrt": Form(lambda a: F.sqrt(a)),
    "degrees": Form(lambda a: a * (180.0 / math.pi)),
    "radians": Form(lambda a: a * (math.pi / 180.0)),
    **{name: by_polars(name) for name in ("exp", "ln", "log10", "log2", "log", "power", "atan2")},
    **{kernel.name: by_polars(kernel.name) for kernel in TRIGONOMETRY},
}
