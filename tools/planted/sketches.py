"""Slips in sketches of groups."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

SKETCHES = "runtime/eval/aggregates/sketches.py"
DISTINCT = "algebra/functions/sketches/distinct.py"
QUANTILES = "algebra/functions/sketches/quantiles.py"
RUNNING = "runtime/ordered/over/sketches.py"

GROUP = Group(
    "sketches",
    ("tests/runtime/test_sketches.py", "tests/runtime/test_aggregates_conformance.py"),
    (
        bug(
            "parts that two sketches have count once",
            SKETCHES,
            "np.add.at(totals, which, numbers)",
            "totals[which] = numbers",
        ),
        bug(
            "of a class the least number counts",
            SKETCHES,
            "last[:-1] = places[1:] != places[:-1]",
            "last[1:] = places[1:] != places[:-1]",
        ),
        bug(
            "values below zero lie above it",
            SKETCHES,
            "return np.where(bits < 0, -parts - 1, parts) + _MIDDLE",
            "return parts + _MIDDLE",
        ),
        bug(
            "zeros of two signs are two values",
            SKETCHES,
            "np.where(np.isnan(numbers), math.nan, numbers + 0.0)",
            "np.where(np.isnan(numbers), math.nan, numbers)",
        ),
        bug("decimals count without their point", SKETCHES, ".to_numpy() / 10.0**argument.scale", ".to_numpy()"),
        bug("any text is a sketch", SKETCHES, "if not text.startswith(VERSION) or left:", "if False:"),
        bug(
            "small numbers are not corrected", DISTINCT, "z += CLASSES * _sigma(counts[0] / CLASSES)", "z += counts[0]"
        ),
        bug("a quantile is the one above", QUANTILES, "if place < 0:", "if place < -1:"),
        bug(
            "a running sketch starts anew in each batch",
            RUNNING,
            "sketch = OpenSketch.of(aggregate, text)",
            "sketch = OpenSketch.of(aggregate, None)",
        ),
        bug(
            "every kept row has a sketch",
            RUNNING,
            "text, written[first - 1] = written[first - 1], None",
            "text = written[first - 1]",
        ),
        bug(
            "a row without a value says nothing of those before",
            RUNNING,
            "            found[place] = sketch.told",
            "            found[place] = sketch.told if entry is not None else None",
        ),
        bug(
            "a running class has the last number",
            SKETCHES,
            "if not adds and number <= known:",
            "if not adds and number == known:",
        ),
        bug(
            "a sketch of a frame has its NULLs for other values",
            SKETCHES,
            "for first, last in zip(before[start].tolist(), before[end].tolist(), strict=True):",
            "for first, last in zip(start.tolist(), end.tolist(), strict=True):",
        ),
        bug(
            "a window without rows has no sketch to read",
            SKETCHES,
            "    text = VERSION if text is None else text\n",
            "    assert text is not None\n",
        ),
    ),
)
