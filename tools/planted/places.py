"""Slips by which a run reads what it writes."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

PLACES = "runtime/connectors/overlaps.py"

GROUP = Group(
    "places",
    ("tests/runtime/test_places.py",),
    (
        bug("links are other places", PLACES, "os.path.realpath(self.path)", "os.path.abspath(self.path)"),
        bug("below an input is apart", PLACES, "if is_below(written.real, place.real):", "if False:"),
        bug("around an input is apart", PLACES, "if is_below(place.real, written.real):", "if False:"),
        bug(
            "names that begin alike are below",
            PLACES,
            "os.path.commonpath([path, directory]) == directory",
            "path.startswith(directory)",
        ),
        bug(
            "a checkpoint may be an input",
            PLACES,
            "for written in (*out, *state) for place in read",
            "for written in out for place in read",
        ),
        bug(
            "results may lie in the checkpoint",
            PLACES,
            "for written in out for place in state",
            "for written in () for place in state",
        ),
        bug("static tables do not count", "runtime/engines/setup.py", "    reads |= read_places(statics)\n", ""),
        bug(
            "what Spark watches does not count",
            "runtime/engines/spark/engine.py",
            "statics, sinks, options, watched)",
            "statics, sinks, options)",
        ),
        bug(
            "results over an input",
            "runtime/cli/run_query.py",
            "if real == input_ or is_below(real, input_):",
            "if False:",
        ),
    ),
)
