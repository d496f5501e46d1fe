"""What a session stores of rows that fold: no more than a row per class and those that are not settled (rule R34)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tests.properties.drive import Broken
from tidegate.algebra.evaluation import evaluate_term, key_of
from tidegate.algebra.functions.sketches.distinct import class_of
from tidegate.algebra.functions.sketches.kinds import Sketch
from tidegate.algebra.functions.sketches.quantiles import part_of
from tidegate.algebra.typed.operations import term_type
from tidegate.analysis.facts import OccurrenceFacts
from tidegate.analysis.state.folding.foldable import Foldable
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.plan.folding.fold import SettledRows
from tidegate.runtime.plan.steps import Progress

Rows = Mapping[str, Sequence[Mapping[str, object]]]


def check_folded(session: Session, arrived: Rows, settled: Mapping[str, SettledRows], where: str) -> int:
    """How many rows less than were kept of those that arrived are stored; `Broken` where it is more than the bound, or
    the report counts rows as settled that are not.
    """
    live, spared = session.live_rows(), 0
    runner = session._runner
    for buffer in runner.plan.buffers:
        if buffer.fold is None or runner.garbage.folding == "off" or buffer.stream.name not in arrived:
            continue
        readers = [
            (leaf.occurrence, runner.state.progress.queries[query.name])
            for query, leaf in runner.plan.readers(buffer)
            if leaf.occurrence is not None
        ]
        classes, open_, kept = _most(readers, arrived[buffer.stream.name])
        folded = settled[buffer.id].rows
        others = live[buffer.id] - folded
        if folded > classes or others > open_:
            raise Broken(
                f"{where}: of {buffer.id} {folded} settled rows and {others} others, of {classes} classes and {open_} "
                f"rows that are not settled: {'; '.join(occurrence.state for occurrence, _ in readers)}"
            )
        spared += kept - classes - open_
    return spared


def _most(
    readers: Sequence[tuple[OccurrenceFacts, Progress]], rows: Sequence[Mapping[str, object]]
) -> tuple[int, int, int]:
    """How many classes and how many rows that are not settled are kept, and how many rows in all: a row is kept for any
    reader, and settled for all.
    """
    schema = readers[0][0].stream.schema
    foldings = [occurrence.folding for occurrence, _ in readers if occurrence.folding is not None]
    classes, open_, kept = set[object](), 0, 0
    for row in rows:
        instants = {name: int(row[name]) for name in schema.temporal}  # type: ignore[call-overload]  # an instant
        if not any(occurrence.keep.row(instants, p) for occurrence, p in readers):
            continue
        kept += 1
        truths = [folding.truth_values(instants, p) for folding, (_, p) in zip(foldings, readers, strict=True)]
        if None in truths:
            open_ += 1
        else:
            values = [evaluate_term(read.term, row, schema) for read in foldings[0].classes.read]  # type: ignore[arg-type]  # held values
            classes.add((*truths, *map(key_of, values), *_places(foldings[0], row)))
    return len(classes), open_, kept


def _places(folding: Foldable, row: Mapping[str, object]) -> Iterator[object]:
    """The places of a row's values in sketches, which tell classes apart, too."""
    schema = folding.stream.schema
    for part in folding.classes.payload:
        if part.aggregate.entry.sketch is not None and part.argument is not None:
            value = evaluate_term(part.argument, row, schema)  # type: ignore[arg-type]  # held values
            if part.aggregate.entry.sketch is Sketch.QUANTILES:
                yield None if value is None else part_of(value, term_type(part.argument, schema))
            else:
                yield None if value is None else class_of(value)[0]
