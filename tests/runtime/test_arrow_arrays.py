"""Arrow arrays of Python's and NumPy's values: those that `pyarrow.array` would make, and no others."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from tidegate.runtime.arrow_arrays import array_of_numbers, array_of_values, empty_table, numbers_of

VALUES: dict[pa.DataType, list[object]] = {
    pa.bool_(): [True, None, False],
    pa.int64(): [1, None, 2**63 - 1, -(2**63)],
    pa.float64(): [1.5, None, float("inf"), -0.0],
    pa.string(): ["a", "ü", None, "", "\0", "x" * 100],
    pa.large_string(): ["a", None],
}


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_values(type_: pa.DataType) -> None:
    for values in (VALUES[type_], [], [None], VALUES[type_][:1]):
        made = array_of_values(values, type_)
        assert (made.type, made.to_pylist()) == (type_, values)
        made.validate(full=True)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.int64(), 2**63),
        (pa.int64(), 10**5000),
        (pa.int64(), 1.0),
        (pa.int64(), "1"),
        (pa.string(), "\ud800"),
        (pa.string(), 1),
        (pa.float64(), "x"),
    ],
    ids=["beyond 64 bits", "of thousands of digits", "a double", "a text", "half a character", "a number", "no number"],
)
def test_values_of_another_type_are_refused(type_: pa.DataType, value: object) -> None:
    with pytest.raises(ValueError):  # any of them says it
        array_of_values([value], type_)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float64", "bool"])
def test_numbers(dtype: str) -> None:
    column = np.arange(20).astype(dtype)
    for some in (column, column[::3], column[:0], column[5:]):
        made = array_of_numbers(some)
        made.validate(full=True)
        assert made.equals(pa.array(some))
        if dtype != "bool":
            assert numbers_of(made).tolist() == some.tolist()
            assert numbers_of(made[1:3]).tolist() == some[1:3].tolist()


def test_no_rows() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.timestamp("us", tz="UTC"))])
    assert empty_table(schema).equals(schema.empty_table())


def test_pandas_is_not_loaded() -> None:
    text = """
import sys, numpy, pyarrow
from tidegate.runtime.arrow_arrays import array_of_numbers, array_of_values, empty_table, numbers_of
numbers_of(array_of_numbers(numpy.arange(3)))
array_of_values(["a", None], pyarrow.string())
empty_table(pyarrow.schema([("a", pyarrow.int64())]))
print("pandas" in sys.modules)
"""
    answer = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"
