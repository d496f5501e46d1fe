"""Slips in times of arrival; other tests have none."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

ADMISSION = "runtime/batch/admission.py"
INTAKE = "runtime/ingest/ingest.py"
KEYS = "runtime/ingest/keys.py"

GROUP = Group(
    "arrival",
    ("tests/runtime/test_arrival.py",),
    (
        bug(
            "the time of arrival needs data to go on",
            ADMISSION,
            "            if source.arrival is not None:\n",
            "            if source.arrival is not None and name in ingested:\n",
        ),
        bug(
            "rows arrive at the clock although it runs behind",
            ADMISSION,
            "        return max([clock, *(b + 1 for b in before)])\n",
            "        return clock\n",
        ),
        bug(
            "rows arrive when others had arrived already",
            ADMISSION,
            "*(b + 1 for b in before)",
            "*before",
        ),
        bug(
            "rows arrive after the batch that takes them in",
            INTAKE,
            "rows = rows.with_columns(pl.lit(intake.arrival, pl.Int64)",
            "rows = rows.with_columns(pl.lit(intake.arrival + 1, pl.Int64)",
        ),
        bug("equal rows that arrive at different times conflict", KEYS, "not in (*key, arrival)]", "not in key]"),
        bug(
            "the idle follow arrivals",
            "runtime/batch/source_activity.py",
            " and a != options[other.name].arrival\n",
            "\n",
        ),
    ),
)
