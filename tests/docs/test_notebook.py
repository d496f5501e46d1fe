"""A notebook as its reader sees it: executed by a kernel, turned into a page, looked at in a browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from tests.docs.browser import chromium, look_at
from tests.docs.test_in_browser import WIDER

CELLS = (
    """import tidegate as tg
orders = tg.stream("Orders", "order_id bigint, customer string, ordered timestamp", progress="ordered")
payments = tg.stream("Payments", "order_id bigint, paid timestamp", progress="paid")
o, p = orders.as_("o"), payments.as_("p")
unpaid = o.anti_join(p, p.order_id == o.order_id, o.ordered <= p.paid, p.paid <= o.ordered + tg.minutes(30))
program = tg.program(Unpaid=unpaid)
program.explain()""",
    """program.run({
    "Orders": [(1, "Ada", "2026-03-02T12:00Z"), (2, "Bob <b>", "2026-03-02T12:05Z")],
    "Payments": [(1, "2026-03-02T12:10Z")],
})""",
    """session = program.session()
session.push("Orders", [(3, "Cyd", "2026-03-02T12:20Z")])
session.advance("Orders", {"ordered": "2026-03-02T12:20Z"})
session.step()""",
    "session",
    "orders",
    """tg.timeline({"Paid": tg.program(P=payments.select("order_id", ts="paid", te=payments.paid + tg.hours(1))).run(
    {"Payments": [(1, "2026-03-02T12:10Z")]})["P"].arrow()}, partition_by="order_id")""",
    """program = tg.program(Unpaid=o.anti_join(p, p.order_id == o.order_id, o.ordered <= p.paid))
program.explain()""",
)


@pytest.fixture(scope="module")
def notebook() -> Any:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    NotebookClient(made, timeout=120, kernel_name="python3", allow_errors=True).execute()
    return made


def shown(cell: Any, kind: str) -> str:
    return "".join(output["data"].get(kind, "") for output in cell.outputs if "data" in output)


def test_everything_shows_itself(notebook: Any) -> None:
    explanation, results, report, session, relation, timeline, _ = notebook.cells
    assert "final when" in shown(explanation, "text/html")
    for cell, told in (
        (results, "Bob"),
        (report, "Orders"),
        (session, "Unpaid"),
        (relation, "Orders"),
        (timeline, "svg"),
    ):
        assert told in shown(cell, "text/html"), cell.source
    assert "Bob &lt;b&gt;" in shown(results, "text/html")
    assert "2026-03-02 12:05" in shown(results, "text/html")
    assert "Bob <b>" in shown(results, "text/plain")


def test_an_error_names_the_cell_and_the_line_and_has_no_frames_of_ours(notebook: Any) -> None:
    (error,) = [output for output in notebook.cells[-1].outputs if output.output_type == "error"]
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    assert "TG201" in text
    assert re.search(r"Cell In\[7\]|In\[7\]", text), text
    assert "tidegate/algebra" not in text
    assert "tidegate/runtime" not in text


@pytest.mark.skipif(chromium() is None, reason="there is no Chromium on this machine: install the package chromium")
@pytest.mark.xdist_group("browser")
def test_its_page_is_no_wider_than_a_screen(notebook: Any, tmp_path: Path) -> None:
    page, _ = HTMLExporter().from_notebook_node(notebook)
    (tmp_path / "notebook.html").write_text(page, encoding="utf-8")
    looks = look_at(tmp_path, [("/notebook.html", (1280, 1920, 390))], WIDER.replace("COLUMN", "main"))
    assert {one.width: one.told for one in looks if one.told} == {}
