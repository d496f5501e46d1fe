"""A Python that finds pyspark where it is installed.

Spark starts its Python processes with an archive of pyspark before everything else, in which nothing is compiled:
loading it takes 0.9 s instead of 0.35. Daemons that make copies of themselves pay that once; a source's process pays it
at each start of a query.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import site
import sys
import tempfile
from pathlib import Path

import pyspark

_MADE: dict[str, str] = {}


def quick_python(python: str) -> str | None:
    """A program that does what `python` does, without the paths that Spark gives it.

    None where `python` is not this process's, or would not find this process's pyspark by itself, or nothing can be
    executed in the directory for temporary files.
    """
    path = shutil.which(python)
    installed = os.path.dirname(os.path.dirname(os.path.abspath(pyspark.__file__)))
    if path is None or not os.path.samefile(path, sys.executable) or installed not in site.getsitepackages():
        return None
    if not os.access(_MADE.get(path, ""), os.X_OK):  # made for the first time, or somebody has cleared that directory
        folder = tempfile.mkdtemp(prefix="tidegate-python-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        program = Path(folder) / "python"
        program.write_text(f'#!/bin/sh\nunset PYTHONPATH\nexec {shlex.quote(path)} "$@"\n', encoding="utf-8")
        program.chmod(0o700)
        _MADE[path] = str(program)
    return _MADE[path] if os.access(_MADE[path], os.X_OK) else None
