"""Digests, JSON and UUIDs in Polars, which has none of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from tidegate.algebra.functions.encoded import KERNELS
from tidegate.runtime.eval.functions.frame import Form
from tidegate.runtime.eval.functions.shared import by_python

FORMS: Final[Mapping[str, Form[pl.Expr]]] = {kernel.name: by_python(kernel.name) for kernel in KERNELS}
