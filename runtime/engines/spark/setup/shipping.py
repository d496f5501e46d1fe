"""The library on executors: a wheel from which the driver has it is given to them as an archive that Spark's Python
processes look into.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path
from zipimport import zipimporter

from pyspark import SparkContext


def ship_library(context: SparkContext) -> None:
    """Gives executors the archive from which this process has imported the library; nothing where it is installed.

    `spark-submit --py-files` takes a wheel and puts it on the driver's path. On the paths of executors Spark puts
    archives that are named .zip, .egg or .jar, and no others. So they get the wheel under such a name.
    """
    loader = sys.modules["tidegate"].__loader__
    if not isinstance(loader, zipimporter):
        return
    archive = Path(loader.archive)
    name = f"{archive.stem}.zip"
    if {archive.name, name} & set(context._python_includes or ()):
        return
    folder = tempfile.mkdtemp(prefix="tidegate-library-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # executors fetch it from there whenever one begins
    context.addPyFile(shutil.copyfile(archive, Path(folder) / name).as_posix())
