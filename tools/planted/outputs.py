"""Slips in telling whose results a file holds."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

GROUP = Group(
    "outputs",
    ("tests/runtime/test_session.py::test_a_directory_is_read_once_whatever_the_queries_that_feed_it_are_called",),
    (
        bug(
            "results of queries whose names end alike are one",
            "runtime/state/outputs/names.py",
            "result.query == slug(query)",
            "result.query.endswith(slug(query))",
        ),
        bug(
            "any part of a file's name is a query's",
            "runtime/state/outputs/names.py",
            "result is not None and result.query == slug(query)",
            'f"-{slug(query)}-" in name',
        ),
        bug(
            "a query is known by its name as it is written",
            "runtime/state/outputs/names.py",
            "result.query == slug(query)",
            "result.query == query",
        ),
    ),
)
