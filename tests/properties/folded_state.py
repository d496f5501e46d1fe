"""What a session stores of rows that fold: no more than a row per class and those that are not settled (rule R34)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.properties.drive import Broken
from tidegate.algebra.evaluation import evaluate_term, key_of
from tidegate.analysis.facts import OccurrenceFacts
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
        ((query, leaf),) = runner.plan.readers(buffer)
        assert leaf.occurrence is not None
        p = runner.state.progress.queries[query.name]
        classes, open_, kept = _most(leaf.occurrence, arrived[buffer.stream.name], p)
        folded = settled[buffer.id].rows
        others = live[buffer.id] - folded
        if folded > classes or others > open_:
            raise Broken(
                f"{where}: of {buffer.id} {folded} settled rows and {others} others, of {classes} classes and {open_} "
                f"rows that are not settled: {leaf.occurrence.state}"
            )
        spared += kept - classes - open_
    return spared


def _most(occurrence: OccurrenceFacts, rows: Sequence[Mapping[str, object]], p: Progress) -> tuple[int, int, int]:
    """How many classes and how many rows that are not settled are kept, and how many rows in all."""
    folding, schema = occurrence.folding, occurrence.stream.schema
    assert folding is not None
    classes, open_, kept = set[object](), 0, 0
    for row in rows:
        instants = {name: int(row[name]) for name in schema.temporal}  # type: ignore[call-overload]  # an instant
        if not occurrence.keep.row(instants, p):
            continue
        kept += 1
        truth = folding.truth_values(instants, p)
        if truth is None:
            open_ += 1
        else:
            values = [evaluate_term(read.term, row, schema) for read in folding.classes.read]  # type: ignore[arg-type]  # held values
            classes.add((truth, *map(key_of, values)))
    return len(classes), open_, kept
