"""The files that were read, known by hashes: as a dictionary of them says."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tidegate.runtime.state.inputs import consumed
from tidegate.runtime.state.inputs.consumed import ConsumedFiles


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("least", [0, 3, 4096])
def test_as_a_dictionary(monkeypatch: pytest.MonkeyPatch, seed: int, least: int) -> None:
    monkeypatch.setattr(consumed, "LEAST_RECENT", least)
    some, expected, found = random.Random(seed), dict[str, tuple[int, int]](), ConsumedFiles()
    paths = [f"/in/{number}" for number in range(60)] + ["/in/\udc80", "", "/in/é"]
    for _ in range(30):
        for _ in range(some.randrange(5)):
            path, version = some.choice(paths[:60]), (some.randrange(9), some.randrange(-5, 2**62))
            expected[path] = version
            found.add(path, *version)
        if some.random() < 0.3:
            many = [(some.choice(paths[:60]), some.randrange(9), some.randrange(9)) for _ in range(6)]
            mixed = [(path, size, at) for path, size, at in many if path not in found._recent]
            expected |= {path: (size, at) for path, size, at in mixed}
            found.add_many([path for path, _, _ in mixed], *np.array([m[1:] for m in mixed], np.int64).reshape(-1, 2).T)
        if some.random() < 0.3:
            gone = some.sample(paths, 4)
            found.discard(gone)
            expected = {path: version for path, version in expected.items() if path not in gone}
        asked = some.sample(paths, some.randrange(len(paths)))
        known = found.known(asked)
        assert known.read.tolist() == [path in expected for path in asked]
        versions = list(zip(known.size.tolist(), known.mtime_ns.tolist(), strict=True))
        assert versions == [expected.get(path, (0, 0)) for path in asked]
        assert len(found) == len(expected)


def test_few_files_stand_in_the_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most so many, or as many as an eighth of the others; then all of them go into the arrays."""
    monkeypatch.setattr(consumed, "LEAST_RECENT", 4)
    found, recent, rest = ConsumedFiles(), 0, 0
    assert len(found) == 0
    for number in range(200):
        found.add(str(number), number, number)
        recent += 1
        if recent > max(4, rest // 8):
            recent, rest = 0, rest + recent
        assert (len(found._recent), len(found._first)) == (recent, rest)
    assert recent + rest == len(found) == 200


def test_names_with_one_first_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a hash may be the same: the other half tells."""
    hashes = ConsumedFiles._hashes

    def colliding(self: ConsumedFiles, paths: object) -> tuple[object, object]:
        first, second = hashes(self, paths)
        return np.full_like(first, 7), second

    monkeypatch.setattr(ConsumedFiles, "_hashes", colliding)
    found, numbers = ConsumedFiles(), np.arange(20)
    found.add_many([str(number) for number in numbers], numbers, numbers)
    known = found.known([str(number) for number in range(30)])
    assert known.read.tolist() == [True] * 20 + [False] * 10
    assert known.size[:20].tolist() == list(range(20))


def test_a_million_take_32_bytes_each() -> None:
    found, numbers = ConsumedFiles(), np.arange(1_000_000)
    found.add_many(numbers.astype(str).tolist(), numbers, numbers)
    arrays = (found._first, found._second, found._size, found._mtime_ns)
    assert sum(array.nbytes for array in arrays) == 32_000_000
    assert len(found) == 1_000_000
    assert found.known(["999999", "x"]).read.tolist() == [True, False]
