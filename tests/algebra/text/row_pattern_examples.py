"""Worked examples of MATCH_RECOGNIZE from the standard and from other systems' manuals and tests, as data: input rows,
clause, expected rows and source.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tidegate as tg
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.nodes import Row
from tidegate.algebra.ordered.events import in_order, partitions
from tidegate.algebra.ordered.sequences.definition import DETECTED, FIRST, LAST
from tidegate.algebra.ordered.sequences.meaning import matches_of, unmatched
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.partition import Partition
from tidegate.algebra.ordered.sequences.result import reported, unmatched_row
from tidegate.algebra.semantics import aggregated
from tidegate.algebra.terms import Value

_FOLDER = Path(__file__).parent / "examples"
_INSTANTS = (FIRST, LAST, DETECTED)
_WORDS: dict[str, Value] = {"NULL": None, "true": True, "false": False}


@dataclass(frozen=True)
class Example:
    """A clause over some rows, and what it yields: the columns `select` of the result, in any order of rows.

    `refused`: the code of the error instead.
    """

    name: str
    source: str
    clause: str
    schema: str
    rows: tuple[Row, ...]
    expected: tuple[Row, ...]
    select: tuple[str, ...]
    refused: str
    units: dict[str, str]

    def relation(self) -> Relation:
        order = re.search(r"ORDER BY (\w+)", self.clause)
        assert order is not None
        return tg.stream("T", self.schema, progress=order[1])

    def read(self) -> Relation:
        return self.relation().match_recognize(self.clause, units=self.units)


def examples() -> Iterator[Example]:
    """All of them, file by file."""
    for path in sorted(_FOLDER.glob("*.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        for given in _given(data):
            table = data["tables"][given["table"]]
            template = data["templates"][given["template"]] if "template" in given else given["clause"]
            yield Example(
                f"{path.stem}: {' '.join(given['name'].split())}",
                given.get("source", data["source"]),
                re.sub(r"\{([a-z]\w*)\}", lambda found, given=given: given.get(found[1], ""), template),
                table["schema"],
                tuple(_rows(table["rows"])),
                tuple(_rows(given.get("expected", ""))),
                tuple(given.get("select", "").split()),
                given.get("refused", ""),
                table.get("units", {}),
            )


def _given(data: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The examples of a file; those of a group have what the group has, and rows between slashes."""
    yield from data.get("examples", [])
    for group in data.get("groups", []):
        for case in group["cases"]:
            rows = re.sub(r" */ *", "\n", case.get("expected", ""))
            name = next(value for value in case.values())
            yield {"name": f"{group['name']} {name}", **group, **case, "expected": rows}


def _rows(text: str) -> Iterator[Row]:
    for line in text.strip().splitlines():
        yield tuple(map(_value, shlex.split(line)))


def _value(text: str) -> Value:
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def result(relation: Relation, rows: tuple[Row, ...], select: tuple[str, ...] = ()) -> list[Row]:
    """The result as it is defined, without the instants of a match, which no other system has."""
    node = relation._node
    assert isinstance(node, Sequences)
    (reading,) = node.readings
    found: list[Row] = []
    for key, members in partitions(reading, rows):
        partition = Partition(node, in_order(reading, members), aggregated)
        matches = matches_of(partition)
        for match in matches:
            found += reported(partition, key, match, 0)
        if node.reported.unmatched:
            found += [unmatched_row(partition, at, 0) for at in unmatched(partition, matches)]
    names = node.schema.names
    places = [names.index(name) for name in select or as_printed(node)]
    return [tuple(row[place] for place in places) for row in found]


def as_printed(node: Sequences) -> list[str]:
    """The columns as the sources print them, the measures behind all others; without the instants of a match."""
    read = [name for name in node.input.schema.names if name in node.schema]
    return [*read, *(name for name in node.schema.names if name not in (*read, *_INSTANTS))]


def as_bag(rows: list[Row] | tuple[Row, ...]) -> list[str]:
    """Rows in an order of their own; numbers to nine digits."""
    return sorted(repr(tuple(_rounded(value) for value in row)) for row in rows)


def _rounded(value: Value) -> Value:
    return value if isinstance(value, bool | str) or value is None else round(float(value), 9)
