"""A notebook as its reader sees it: executed by a kernel, turned into a page, looked at in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from tests.docs.browser import chromium, look_at
from tests.docs.test_in_browser import WIDER
from tools.docs_pages import ROOT

pytestmark = pytest.mark.xdist_group("browser")  # the notebook is executed once

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
    """loads = tg.stream("Loads", "k bigint, t timestamp, load bigint", progress="t")
found = loads.partition_by("k").derive(Busy=tg.situation(loads.load > 5), Idle=tg.situation(loads.load < 5))
hits = tg.program(Hits=tg.match(found.Busy.meets(found.Idle), within="1h"))
hits.timeline({"Loads": [(1, f"2026-01-01T00:0{minute}Z", load) for minute, load in enumerate([1, 9, 7, 2, 8, 1])]})""",
    """from time import monotonic
from tidegate.runtime.inspect import live_display
live_display.DELAY = 0.0
until = monotonic() + 20
with live_display.LiveDisplay(None, "the first batch") as display:
    while display._progress is None and monotonic() < until: pass
    print("shown:", type(display._progress).__name__)""",
    """program = tg.program(Unpaid=o.anti_join(p, p.order_id == o.order_id, o.ordered <= p.paid))
program.explain()""",
)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    place = tmp_path_factory.mktemp("notebook")
    # Nothing is written to the home of who runs the tests, or read there.
    with pytest.MonkeyPatch.context() as environment:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            environment.setenv(name, str(place / name.lower()))
        environment.setenv("PYTHONPATH", str(ROOT))
        NotebookClient(made, timeout=120, kernel_name="python3", allow_errors=True).execute()
    return made


def shown(cell: Any, kind: str) -> str:
    return "".join(output["data"].get(kind, "") for output in cell.outputs if "data" in output)


def test_everything_shows_itself(notebook: Any) -> None:
    explanation, results, report, session, relation, timeline, *_ = notebook.cells
    for cell, told in (
        (explanation, "final when"),
        (results, "Bob &lt;b&gt;"),
        (results, "2026-03-02 12:05"),
        (results, "<table"),
        (report, "Orders"),
        (session, "Unpaid"),
        (relation, "Orders"),
        (timeline, "<svg"),
    ):
        assert told in shown(cell, "text/html"), cell.source
    assert "Bob <b>" in shown(results, "text/plain")
    assert shown(timeline, "text/plain") == "Hits: 1 partition\n  k = 1: 4 situations, 2 matches"


def test_an_error_names_the_cell_and_the_line_and_has_no_frames_but_the_users(notebook: Any) -> None:
    (error,) = [output for output in notebook.cells[-1].outputs if output.output_type == "error"]
    assert error.traceback[:4] == [
        "Traceback (most recent call last):",
        '  File "In[8]", line 2, in <module>',
        "    program.explain()",
        (
            "tidegate.algebra.errors.QueryError: TG201 not valid: Payments.paid (p.paid) has no upper bound "
            "relative to ordered"
        ),
    ]
    assert [line for line in error.traceback if "/" in line] == []


def test_a_long_run_is_shown_without_more_packages_and_leaves_nothing(notebook: Any) -> None:
    live = notebook.cells[-2]
    # A busy kernel may send one line as several outputs.
    assert (
        "".join(output["text"] for output in live.outputs if output.output_type == "stream") == "shown: _NotebookLine\n"
    )
    assert [output["data"] for output in live.outputs if "data" in output] == [{"text/plain": ""}]


@pytest.mark.skipif(chromium() is None, reason="there is no Chromium on this machine: install the package chromium")
def test_its_page_is_no_wider_than_a_screen(notebook: Any, tmp_path: Path) -> None:
    page, _ = HTMLExporter().from_notebook_node(notebook)
    (tmp_path / "notebook.html").write_text(page, encoding="utf-8")
    looks = look_at(tmp_path, [("/notebook.html", (1280, 1920, 390))], WIDER.replace("COLUMN", "main"))
    assert {one.width: one.told for one in looks if one.told} == {}


@pytest.mark.skipif(chromium() is None, reason="there is no Chromium on this machine: install the package chromium")
def test_explanations_stand_in_columns_and_results_are_tables_that_are_seen(notebook: Any, tmp_path: Path) -> None:
    page, _ = HTMLExporter().from_notebook_node(notebook)
    (tmp_path / "notebook.html").write_text(page, encoding="utf-8")
    found = look_at(
        tmp_path,
        [("/notebook.html", (1280, 390))],
        """async (window, document) => {
          const outputs = [...document.querySelectorAll('.jp-OutputArea-output.jp-RenderedHTMLCommon')];
          const lines = outputs[0].querySelector('pre'), style = window.getComputedStyle(lines);
          return {
            family: style.fontFamily,
            broken: Math.round(lines.scrollHeight / parseFloat(style.lineHeight)) - lines.textContent.split('\\n').length,
            seen: outputs.map(one => one.querySelectorAll('table, svg, pre').length > 0 && one.offsetHeight > 20),
          };
        }""",
    )
    for one in found:
        assert "monospace" in one.told["family"]
        assert one.told["broken"] in (0, 1), "a line of its own for each line; a bar to scroll it may take one more"
        assert one.told["seen"] == [True] * 6
