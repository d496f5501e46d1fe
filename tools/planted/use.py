"""Slips in what is told of a run and of a checkpoint."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

LOWER = "runtime/plan/lower.py"

GROUP = Group(
    "use",
    (
        "tests/runtime/test_state_listing.py",
        "tests/runtime/test_metrics.py",
        "tests/runtime/test_graph.py",
        "tests/runtime/test_session.py",
        "tests/runtime/test_lower.py",
    ),
    (
        bug(
            "buffers told apart by what they hold alone",
            LOWER,
            "return (buffer.id, buffer.chain, *",
            "return (buffer.chain, *",
        ),
        bug(
            "kept until the oldest row may go",
            "runtime/inspect/state_listing.py",
            "min((range_[x][1] + d for",
            "min((range_[x][0] + d for",
        ),
        bug(
            "kept until one of the views lets go",
            "runtime/inspect/state_listing.py",
            "until[a] = max(reach, until.get(a, -INF))",
            "until[a] = min(reach, until.get(a, INF))",
        ),
        bug(
            "a reader needs rows until every promise has gone by",
            "runtime/inspect/state_listing.py",
            "return not self.until or any(self.progress[a] >= t",
            "return not self.until or any(self.progress[a] > t",
        ),
        bug(
            "a bound of the extent that is one tick short",
            "runtime/inspect/metrics/hooks.py",
            "max(0, int(horizon) + newest - slowest + int(behind))",
            "max(0, int(horizon) + newest - slowest + int(behind) - 1)",
        ),
        bug(
            "the slowest input left out of the bound",
            "runtime/inspect/metrics/hooks.py",
            "slowest = min((b for b in reached if b != INF), default=INF)",
            "slowest = max((b for b in reached if b != INF), default=INF)",
        ),
        bug(
            "the least demanding reader bounds a buffer",
            "runtime/inspect/metrics/hooks.py",
            "bound = quantity(max(known), kind)",
            "bound = quantity(min(known), kind)",
        ),
        bug(
            "nothing said of rejected rows",
            "runtime/inspect/metrics/exporters.py",
            'yield "rows", (stream, reason), rows',
            'yield "rows", (stream, "rejected"), rows',
        ),
        bug(
            "a long edge through the boxes",
            "algebra/printing/drawing.py",
            "between = range(layer[edge.source] + 1, layer[edge.target])",
            "between = range(layer[edge.source] + 2, layer[edge.target])",
        ),
        bug(
            "labels that end their quotes",
            "algebra/printing/graph.py",
            'c.isalnum() or c in " .,:_-+()" else',
            "c.isalnum() or c in ' .,:_-+()\"' else",
        ),
    ),
)
