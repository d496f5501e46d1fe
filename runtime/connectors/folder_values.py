"""Values of columns that stand in the names of folders: `day=2026-03-02`, as Spark, Polars and DuckDB write them."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import unquote

#: What stands for NULL in the name of a folder.
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


def folder_values(path: str, directory: str) -> dict[str, str | None]:
    """The values by column that the folders between a directory and a file below it have in their names, as text.

    Of several folders of one name the innermost counts. Nothing behind the `=` is NULL, as an empty field of CSV is.
    """
    top = os.path.join(directory, "")
    if not path.startswith(top) or "=" not in path[len(top) :]:
        return {}
    *folders, _ = path[len(top) :].split(os.sep)
    named = (folder.partition("=") for folder in folders if "=" in folder)
    return {_decoded(name): None if value in ("", _NULL) else _decoded(value) for name, _, value in named}


def _decoded(text: str) -> str:
    """Text without its escapes, such as %3A for a colon; as it stands where they are no UTF-8."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text
