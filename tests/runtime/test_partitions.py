"""The numbers of partitions, where giving them breaks off."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import tidegate as tg
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.types import STRING
from tidegate.runtime.ordered import partition_store, partitions
from tidegate.runtime.ordered.partitions import Partitions

KEYS = Schema((Attribute("k", STRING),))
S = tg.stream("S", "k string, t bigint, v bigint", progress="t")


def frame(*keys: str) -> pl.DataFrame:
    return pl.DataFrame({"k": keys})


def no_memory(*_: Any, **__: Any) -> Any:
    raise MemoryError


def breaks_off(patch: pytest.MonkeyPatch) -> None:
    """The third key of a batch is not read."""
    read = Partitions._hashable

    def some(self: Partitions, keys: pl.DataFrame) -> Iterator[tuple[object, ...]]:
        for number, key in enumerate(read(self, keys)):
            if number == 2:
                raise MemoryError
            yield key

    patch.setattr(Partitions, "_hashable", some)


def test_keys_that_got_a_number_in_vain_get_one_again() -> None:
    numbered = Partitions.of(KEYS)
    assert numbered.assign(frame("a", "b")).tolist() == [0, 1]
    assert numbered.assign(frame("b", "a")).tolist() == [1, 0]
    for where in ("keys", "frames"):
        with pytest.MonkeyPatch.context() as patch:
            if where == "keys":
                breaks_off(patch)
            else:
                patch.setattr(partitions, "pl", SimpleNamespace(**{**vars(pl), "concat": no_memory}))
            with pytest.raises(MemoryError):
                numbered.assign(frame("c", "d", "e"))
        assert len(numbered) == 2
    assert numbered.assign(frame("e", "a", "d")).tolist() == [2, 0, 3]
    assert numbered.rows(np.arange(4)).get_column("k").to_list() == ["a", "b", "e", "d"]


def test_a_batch_that_broke_off_as_it_numbered_keys_is_done_again() -> None:
    program = tg.program(R=S.over(by="k", before=tg.lag(S.v)).select("k", "t", "before"))
    with program.session() as session:
        for t, keys in enumerate(["ab", "ab", "cde", "cdef", "cdef"]):
            session.push("S", [(key, t, 10 * t + place) for place, key in enumerate(keys)])
            session.advance("S", {"t": t})
            if t == 2:
                with pytest.MonkeyPatch.context() as patch:
                    breaks_off(patch)
                    with pytest.raises(tg.TidegateError, match="TG510"):
                        session.step()
            session.step()
        found = {(row["k"], row["t"]): row["before"] for row in session.results("R")}
    assert found == {
        **{(key, t): 10 * (t - 1) + place for t in (1, 4) for place, key in enumerate("ab" if t == 1 else "cdef")},
        **{(key, 3): 20 + place for place, key in enumerate("cde")},
        **dict.fromkeys([("a", 0), ("b", 0), ("c", 2), ("d", 2), ("e", 2), ("f", 3)]),
    }


@pytest.mark.parametrize("function", ["zeros", "empty", "concatenate"])
def test_a_store_that_could_not_grow_grows(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbered = tg.program(R=S.over(by="k", before=tg.lag(S.v)))
    with numbered.session() as session:
        session.push("S", [("a", 0, 0)])
        session.advance("S", {"t": 0})
        session.step()
        session.push("S", [(str(key), 1, key) for key in range(5000)])
        session.advance("S", {"t": 1})
        with monkeypatch.context() as patch:
            patch.setattr(partition_store, "np", SimpleNamespace(**{**vars(np), function: no_memory}))
            with pytest.raises(tg.TidegateError, match="TG510"):
                session.step()
        session.step()
        assert len(session.results("R")) == 5001
