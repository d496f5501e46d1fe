"""Slips in the values that stand in the names of folders."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

NAMES = "runtime/connectors/folder_values.py"
GIVEN = "runtime/ingest/inputs.py"
PROGRESS = "runtime/ingest/admission.py"

GROUP = Group(
    "folder values",
    ("tests/runtime/test_folder_values.py", "tests/runtime/test_intake_ahead.py"),
    (
        bug("a file has a value in its name", NAMES, "*folders, _ =", "folders ="),
        bug("the outermost folder of a name counts", NAMES, "in folders if", "in reversed(folders) if"),
        bug("names of folders have no escapes", NAMES, 'return unquote(text, errors="strict")', "return text"),
        bug("a folder has no NULL", NAMES, '("", _NULL)', '("",)'),
        bug(
            "a folder counts before the column of a file",
            GIVEN,
            "    lacking = {name: value for name, value in folders.items() if name not in table.column_names}\n",
            "    lacking, table = folders, table.select([name for name in table.column_names if name not in folders])\n",
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
            "schema, task.directory)",
            "schema, None)",
        ),
        bug(
            "the driver of Spark knows no folders",
            "runtime/engines/spark/executor.py",
            "                    offer.files[0].directory,",
            "                    None,",
        ),
        bug(
            "files that are read ahead have no folders",
            "runtime/engines/ahead/read_ahead.py",
            "schema, source.top)",
            "schema, None)",
        ),
        bug(
            "files that are taken in ahead have no folders",
            "runtime/engines/ahead/following.py",
            "self.setup.judged(name), data.top,",
            "self.setup.judged(name), None,",
        ),
        bug(
            "a punctuation has nothing of a folder",
            PROGRESS,
            "name != options.arrival and name not in of_folders]",
            "name != options.arrival]",
        ),
        bug("a folder makes punctuations", PROGRESS, "if column not in of_folders and not", "if not"),
        bug(
            "a row of which folders have all that must be there is a punctuation",
            PROGRESS,
            " and not is_row_without:",
            ":",
        ),
        bug(
            "a directory is proposed whose folder is left out",
            "runtime/engines/rejections.py",
            "is_held and not is_left_out(folder) and not os.path.islink(path)",
            "is_held and not os.path.islink(path)",
        ),
        bug(
            "a directory is proposed whose folder is a link",
            "runtime/engines/rejections.py",
            " and not os.path.islink(path) else",
            " else",
        ),
        bug("tables have no folders", GIVEN, "stream.schema, data.top)", "stream.schema)"),
    ),
)
