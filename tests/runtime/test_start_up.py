"""What a small program loads: what it uses, and no compiler."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
#: A join without a partner, as in the README, from the first line to the rows of the result.
PROGRAM = """
import tidegate as tg
orders = tg.stream("Orders", "order_id bigint, customer string, ordered timestamp", progress="ordered")
payments = tg.stream("Payments", "order_id bigint, paid timestamp", progress="paid")
o, p = orders.as_("o"), payments.as_("p")
unpaid = o.anti_join(p, p.order_id == o.order_id, o.ordered <= p.paid, p.paid <= o.ordered + tg.minutes(30))
with tg.program(Unpaid=unpaid).session() as session:
    session.push("Orders", [(1, "Ada", "2026-03-02T12:00Z"), (2, "Bob", "2026-03-02T12:05Z")])
    session.push("Payments", [(1, "2026-03-02T12:10Z")])
    session.finish()
    session.step()
    rows = [row["customer"] for row in session.results("Unpaid")]
import json, sys
print(json.dumps([rows, sorted(sys.modules)]))
"""
#: Numba takes half a second to load, and each kernel some milliseconds even where it is compiled already.
NOT_LOADED = (
    "numba",
    "sympy",
    "pandas",
    "networkx",
    "lark",
    "pyspark",
    "tidegate.runtime.kernels",
    "tidegate.runtime.ordered.row_operator",
    # Families of operators, contexts, refused queries and what is asked of a run: of programs that have one, or ask.
    "tidegate.analysis.ordered.match",
    "tidegate.analysis.ordered.sequences",
    "tidegate.analysis.ordered.transitions",
    "tidegate.analysis.ordered.windows",
    "tidegate.analysis.validity.mends",
    "tidegate.contexts.optimiser.push_down",
    "tidegate.runtime.inspect.why",
)


def test_a_program_of_few_rows_without_ordered_operators_loads_no_kernels(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{PROGRAM}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    rows, modules = json.loads(done.stdout)
    assert rows == ["Bob"]
    assert [name for name in NOT_LOADED if name in modules] == []
