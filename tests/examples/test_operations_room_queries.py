"""The queries as written in the DSL mean what the batch answers say: one day through the reference evaluation."""

from collections.abc import Sequence
from datetime import date

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from examples.operations_room import data, expected, queries
from tidegate.algebra.schema import Schema
from tidegate.algebra.semantics import evaluate_program
from tidegate.runtime.eval.columns import held_arrow_schema, to_user_table
from tidegate.runtime.ingest.validation import validate

DAY = data.Period(date(2013, 1, 12), 1)
NAMES = ("HourlyDepartures", "NotDeparted", "PoorStart", "PoorEnd", "PoorVisibility", "WorstDelay", "Bunching")


@pytest.fixture(scope="module")
def answers() -> dict[str, pl.DataFrame]:
    events = data.load(DAY)
    airports = events.airports.filter(pc.is_in(events.airports["faa"], pa.array(["EWR", "JFK", "LGA"])))
    tables = {
        "Schedule": events.schedule,
        "Departure": events.departure,
        "Weather": events.weather,
        "Airports": airports,
        "Airlines": events.airlines,
    }
    definition = queries.program.definition
    rows = {}
    for stream in definition.inputs:
        checked = validate(tables[stream.name], stream.schema)
        assert checked.rejected.num_rows == 0
        rows[stream.name] = [tuple(row.values()) for row in checked.accepted.to_pylist()]
    found = evaluate_program(definition, rows)
    schemas = {query.stream: query.node.schema for query in definition.queries}
    return {name: frame(found[name], schemas[name]) for name in NAMES}


def frame(rows: Sequence[tuple[object, ...]], schema: Schema) -> pl.DataFrame:
    held = held_arrow_schema(schema)
    columns = list(zip(*rows, strict=True)) or [()] * len(held)
    table = pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, held, strict=True)], schema=held)
    return pl.DataFrame(to_user_table(table, schema))


@pytest.fixture(scope="module")
def wanted() -> dict[str, pl.DataFrame]:
    return expected.results(DAY)


@pytest.mark.parametrize("name", NAMES)
def test_a_query_means_what_the_batch_answer_says(
    answers: dict[str, pl.DataFrame], wanted: dict[str, pl.DataFrame], name: str
) -> None:
    assert wanted[name].height > 0
    assert expected.differences(wanted[name], answers[name]) == []
    assert answers[name].columns == wanted[name].columns
