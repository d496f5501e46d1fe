"""Writes docs/reference/terms.md, names.md and api.md: `python tools/docs_reference.py`.

How an operation is written, what it takes and does comes from the table of operations. What a public name is comes from
its docstring. A test compares the pages with what this writes.
"""

from __future__ import annotations

import pydoc
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.algebra.functions.rules import Operation

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"

_HEAD = """\
# Terms

A term is what is computed from the attributes of one row. Terms are built with Python's operators and with methods of attributes. A
Python value beside a term becomes a constant of the type that is needed: text beside a timestamp is an instant or, where it is added, a
duration.

The letters x, y, z stand for attributes or other terms. *Fails* says of which operands a term has no value. A row with such a term is
[set aside](sources-and-sinks.md#rows-that-cannot-be-evaluated) and counted, or fails the batch, as `on_error` says; the `try_` forms yield NULL instead. An
operation yields NULL if an operand is NULL, unless the table says otherwise. Plans and error messages use the names in the second
column. [Values](values.md) says how values compare and overflow.
"""

_TAIL = """\
## Instants

A term is **temporal** if it is made of instants with these operations only: `x + c` and `x - c` with a constant duration (a number for integer time,
whole days or their number for dates), `tg.min` and `tg.max` of several, `tg.floor`, `tg.ceil` and `tg.tumbling` with a constant unit, in any nesting
(TSA Def. 2). A comparison of two temporal terms, and what `&`, `|` and `~` make of such, is a **temporal relation formula**
(TSA Def. 3): the analysis understands it. Any other condition on instants, such as `x.hour() < 12`, is applied when the query runs, but
tells the analysis nothing.

## Aggregates

Aggregates of [groups](operators.md#group_byagg-tsa-def-15) skip NULL, and are NULL where nothing is left, counts 0. Each takes `filter=`, a
condition. What *merges* keeps a few numbers for each group while rows arrive, or a sketch, which situations do not have; the others keep
every value: they are for groups, for [windows](operators.md#windows) that end and for [frames](operators.md#over) that have a beginning. But for count_distinct those are computed in Python.
Where a query looks back without limit, rows that all count in the same way from now on are [folded](../explanation/how-it-runs.md#rows-folded): the table says what of them is stored for each aggregate.

"""


#: What is no operation of its own, by section.
_NOTES: Mapping[str, str] = {
    "Conditions": "`x.between(low, high)` is `(low <= x) & (x <= high)`; `x.is_in(a, b)` is `(x == a) | (x == b)`.",
    "Time": "`tg.tumbling(x, size)` is `tg.floor(x, size) + size`. Parts of instants are those in UTC.",
}


def terms_page() -> str:
    """The page, complete."""
    from tidegate.algebra.typed.operations import SECTIONS, operation

    parts = [_HEAD]
    for title, operations in SECTIONS.items():
        decimals = ("cast_decimal_18_2", "try_cast_decimal_18_2") if title == "Casts" else ()
        parts += [f"## {title}\n", _table([*operations, *map(operation, decimals)])]
        parts += [f"{_NOTES[title]}\n"] if title in _NOTES else []
    return "\n".join([*parts, _TAIL + _aggregates()])


def _aggregates() -> str:
    from tidegate.algebra.functions.aggregates import TABLE

    lines = ["| written | takes | merges | folded to | |", "| --- | --- | --- | --- | --- |"]
    for one in TABLE.values():
        cells = [_code(one.written), one.takes, "yes" if one.merges else "", one.folded, one.doc]
        lines.append("| " + " | ".join(cells).rstrip() + " |")
    return "\n".join(lines) + "\n"


def _table(operations: Iterable[Operation]) -> str:
    lines = ["| written | name | takes | fails | says |", "| --- | --- | --- | --- | --- |"]
    for one in operations:
        fails = "yes" if one.fallible and not one.name.startswith("try_") else ""
        lines.append("| " + " | ".join([_code(one.written), one.name, one.takes, fails, one.doc]).rstrip() + " |")
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    """Code in a cell of a table, where every reader of Markdown takes `|` for its end."""
    return f"<code>{text.replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"


_NAMES_HEAD = """\
# Public names

Everything that `import tidegate as tg` offers, by the first line of its docstring; `help(tg.stream)` has the rest.
"""


#: What stands before every example: the end of the page of functions and classes shows it, the test of the examples
#: runs it.
EXAMPLES_BEGIN = '''\
from dataclasses import dataclass

import polars as pl

import tidegate as tg

# Orders, and payments for them. The last payment says no time, so it is set aside.
orders = tg.stream(
    "Orders",
    "order_id bigint, customer string, ordered timestamp, amount double, pieces bigint, voucher string",
    progress="ordered",
)
payments = tg.stream("Payments", "order_id bigint, paid timestamp", progress="paid")
inputs = {
    "Orders": [
        (1, "Ada", "2026-03-02T12:00Z", 12.5, 5, "10 "),
        (2, "Bob", "2026-03-02T12:07Z", 30.0, 2, None),
        (3, "Ada", "2026-03-03T09:40:30Z", 8.0, 0, "Ten off"),
    ],
    "Payments": [(1, "2026-03-02T12:10Z"), (3, "2026-03-03T11:00Z"), (2, None)],
}
daily = orders.group_by(day=tg.floor(orders.ordered, "1d"))

# Which orders are not paid within half an hour?
o, p = orders.as_("o"), payments.as_("p")
in_time = p.order_id == o.order_id, o.ordered <= p.paid, p.paid <= o.ordered + tg.minutes(30)
program = tg.program(Unpaid=o.anti_join(p, *in_time).select(o.order_id, o.customer, o.ordered))

# A car: time in seconds, speed in km/h, acceleration in m/s². When is it fast, and when does it brake?
cars = tg.stream("Cars", "car string, time bigint, speed double, accel double", progress="time")
speeds = [(1, 60.0, 3.0), (2, 90.0, 3.0), (3, 95.0, 0.0), (4, 85.0, -3.0), (5, 60.0, -4.0), (6, 50.0, 0.0)]
driven = {"Cars": [("red", *row) for row in speeds]}
driving = cars.partition_by("car").derive(Fast=tg.situation(cars.speed > 80), Braking=tg.situation(cars.accel < -2))
Fast, Braking = driving.Fast, driving.Braking

# Contexts of a car: it is slow from a speed below 70 on, and clear again from 85 on.
traffic = tg.context_model("Traffic", by="car", default="clear", contexts="slow")
traffic = traffic.switch("slow", when=cars.where(cars.speed < 70), within="clear")
traffic = traffic.switch("clear", when=cars.where(cars.speed >= 85), within="slow")


def show(what, **more):
    """Prints the rows of a relation for these inputs, sorted; of a term its value for each order."""
    is_term = isinstance(what, tg.Expression)
    shown = tg.program(Shown=orders.select(orders.ordered, value=what) if is_term else what)
    given = inputs | driven | more
    rows = shown.run({stream.name: given[stream.name] for stream in shown.definition.inputs})["Shown"].rows()
    if is_term:
        print(*(row["value"] for row in sorted(rows, key=lambda row: row["ordered"])), sep=", ")
    else:
        print(*sorted(", ".join(map(str, row.values())) for row in rows), sep="\\n")


# An operator of your own: events above a limit.
@dataclass(frozen=True)
class Above(tg.Operator):
    limit: float
    reads = ("speed",)

    def result(self, events):
        return tg.stream("Above", f"time bigint, speed {events['speed']}", progress="time")

    def step(self, events, state, reach):
        return events.filter(pl.col("speed") > self.limit), {}

    def meaning(self, events):
        return [event for event in events if event["speed"] > self.limit]
'''

#: What stands before the examples that need Spark, after the above.
SPARK_EXAMPLES_BEGIN = """\
import os

spark = tg.spark_session("examples")
query = program.start(spark, sources=inputs, checkpoint="state")  # takes what is there, and ends
query.awaitTermination()

# Two directories for files that are still to come.
os.makedirs("orders")
os.makedirs("payments")
coming = {"Orders": tg.json("orders"), "Payments": tg.json("payments")}
"""

_API_HEAD = f"""\
# Functions and classes

Every public name has a page with its signature and its docstring. Editors and `help(tg.stream)` show the same.

The examples use the orders and payments [at the end of this page](#before-the-examples). `...` in what an example prints stands for
any text.

## Before the examples

The tests run each example in an empty directory, after these lines.

```python
{EXAMPLES_BEGIN}```

An example with `spark`, `query` or `coming` comes after these lines, too:

<!-- spark -->
```python
{SPARK_EXAMPLES_BEGIN}```
"""


def names_page() -> str:
    """All public names with what they are, functions first."""
    import tidegate

    found = {name: getattr(tidegate, name) for name in tidegate.__all__ if not name.startswith("_")}
    functions = {f"tg.{name}": value for name, value in found.items() if not isinstance(value, type)}
    classes = {f"tg.{name}": value for name, value in found.items() if isinstance(value, type)}
    methods = {
        f"{title}.{name}": value
        for title, of in (("program", found["Program"]), ("session", _session()))
        for name, value in vars(of).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property)) and value.__doc__
    }
    tables = [("Functions", functions), ("Programs and sessions", methods), ("Classes", classes)]
    return "\n".join([_NAMES_HEAD, *(f"## {title}\n\n{_names(rows)}" for title, rows in tables)])


#: What public functions and methods yield, and nobody calls by its name.
HELD = (
    "tidegate.algebra.dsl.grouping.Grouped",
    "tidegate.runtime.engines.explanation.ProgramExplanation",
    "tidegate.runtime.inspect.why_answer.Why",
    "tidegate.runtime.batch.status.Status",
)


def api_page() -> str:
    """What all examples have before them; `tools/api_pages.py` adds the names when the manual is built."""
    return _API_HEAD


def api_names() -> dict[str, dict[str, object]]:
    """All that the manual has a page for, by the titles of their tables."""
    import tidegate
    from tidegate import metrics, testing

    found = {f"tidegate.{name}": getattr(tidegate, name) for name in tidegate.__all__ if not name.startswith("_")}
    of_modules = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in (testing, metrics)
        for name in module.__all__
        if callable(getattr(module, name))
    }
    return {
        "Functions": {name: value for name, value in found.items() if not isinstance(value, type)},
        "Classes": {name: value for name, value in found.items() if isinstance(value, type)},
        "What some of them yield": {name: pydoc.locate(name) for name in HELD},
        "To test programs, and to count what batches do": of_modules,
    }


def _session() -> type:
    from tidegate.runtime.engines.embedded.session import Session

    return Session


def _names(rows: Mapping[str, object]) -> str:
    lines = ["| name | what |", "| --- | --- |"]
    lines += [f"| `{name}` | {first_sentence(value)} |" for name, value in rows.items()]
    return "\n".join(lines) + "\n"


def first_sentence(value: object) -> str:
    """The first paragraph of a docstring, for a cell of a table."""
    first = " ".join((value.__doc__ or "").split("\n\n")[0].split())
    return re.sub("`([^`]*)`", lambda code: _code(code[1]), first)


PAGES: Mapping[str, Callable[[], str]] = {"terms.md": terms_page, "names.md": names_page, "api.md": api_page}

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for file, page in PAGES.items():
        (REFERENCE / file).write_text(page())
