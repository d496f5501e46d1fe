"""Slips in the values that stand in the names of folders."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

NAMES = "runtime/connectors/folder_values.py"
GIVEN = "runtime/ingest/inputs.py"

GROUP = Group(
    "folder values",
    ("tests/runtime/test_folder_values.py",),
    (
        bug("a file has a value in its name", NAMES, "*folders, _ =", "folders ="),
        bug("the outermost folder of a name counts", NAMES, "in folders if", "in reversed(folders) if"),
        bug("names of folders have no escapes", NAMES, 'return unquote(text, errors="strict")', "return text"),
        bug("a folder has no NULL", NAMES, '("", _NULL)', '("",)'),
        bug(
            "a folder counts before the column of a file",
            GIVEN,
            "        if name not in table.column_names:\n",
            "        if (table := table.select([one for one in table.column_names if one != name])) is not None:\n",
        ),
        bug(
            "a folder fills the lines of JSON that lack a key",
            GIVEN,
            "for name, value in lacking.items() if name not in row} if",
            "for name, value in lacking.items()} if",
        ),
        bug("a broken line has the values of its folder", GIVEN, " if row[name] is None}", "}"),
        bug("a file of CSV that lacks what its folder has is read twice", GIVEN, "{*named, *folders}", "{*named}"),
        bug(
            "workers know no folders",
            "runtime/engines/spark/workers.py",
            "schema, directory=task.directory)",
            "schema)",
        ),
        bug(
            "the driver of Spark knows no folders",
            "runtime/engines/spark/executor.py",
            "directory=offer.files[0].directory,",
            "directory=None,",
        ),
        bug(
            "files that are read ahead have no folders",
            "runtime/engines/ahead/read_ahead.py",
            "schema, source.top)",
            "schema)",
        ),
        bug("tables have no folders", GIVEN, "stream.schema, data.top)", "stream.schema)"),
    ),
)
