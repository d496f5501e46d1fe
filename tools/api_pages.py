"""A hook of MkDocs: a page for every public name, which mkdocstrings fills from its docstring, and tables of them in
reference/api.md.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # MkDocs runs this file by itself

from tools.docs_reference import HELD, api_names, first_sentence  # found from wherever this is started

FOLDER = "reference/api"
_EXAMPLES = "The examples run after [these lines](../api.md#before-the-examples)."


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages."""
    for names in api_names().values():
        for name, value in names.items():
            page = f"---\ntitle: {name}\n---\n\n::: {name}\n    options:\n      heading_level: 1\n\n{_EXAMPLES}\n"
            files.append(File.generated(config, f"{FOLDER}/{_file(name, value)}", content=page))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Adds the tables, above what stands before the examples: every name with the first sentence of its docstring, and
    a link.

    A search finds decisions, about the project, after what is for its users.
    """
    if page.file.src_uri.startswith("decisions/"):
        page.meta["search"] = {"boost": 0.1}
    if page.file.src_uri != f"{FOLDER}.md":
        return markdown
    head, before_examples, rest = markdown.partition("## Before the examples\n")
    return "\n".join(
        [head, *(_table(title, names) for title, names in api_names().items()), "", before_examples + rest]
    )


def _table(title: str, names: Mapping[str, object]) -> str:
    rows = [
        f"| [`{_short(name)}`](api/{_file(name, value)}) | {first_sentence(value)} |" for name, value in names.items()
    ]
    return "\n".join([f"\n## {title}\n", "| name | what |", "| --- | --- |", *rows])


def _file(name: str, value: object) -> str:
    """Its file: a function and a class whose names differ in a capital letter alone have two, wherever files lie."""
    return f"{_short(name)}{'-class' if isinstance(value, type) else ''}.md"


def _short(name: str) -> str:
    """As a user writes it after `tidegate.`, or sees it."""
    return name.rpartition(".")[2] if name in HELD else name.removeprefix("tidegate.")
