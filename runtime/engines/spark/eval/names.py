"""Names in Spark, which by default ignores case and reads dots as paths: attributes under generated column names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.runtime.engines.spark.eval.column_cache import kept


def quoted(name: str) -> str:
    """A column name as Spark's parser takes it literally."""
    return f"`{name.replace('`', '``')}`"


@kept
def col(name: str) -> Column:
    """The column of exactly this name."""
    return F.col(quoted(name))


@kept
def renamed(name: str, new: str) -> Column:
    """The column of exactly this name, under another."""
    return col(name).alias(new)


@dataclass(frozen=True, slots=True)
class NamedFrame:
    """A DataFrame and the column that holds each attribute; other columns mean nothing."""

    frame: DataFrame
    columns: Mapping[str, str]

    def narrowed(self) -> DataFrame:
        """Just the attributes' columns, in order."""
        return self.frame.select(*(col(column) for column in self.columns.values()))

    def as_users_see_it(self) -> DataFrame:
        """Columns named as the attributes."""
        return self.frame.select(*(renamed(column, name) for name, column in self.columns.items()))
