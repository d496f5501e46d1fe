from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.docs.built_manual import BuiltManual
from tools.docs_pages import ROOT


@pytest.fixture(scope="session")
def built_manual(tmp_path_factory: pytest.TempPathFactory) -> BuiltManual:
    pytest.importorskip("mkdocs", reason="mkdocs comes with the extra `docs`")
    place = tmp_path_factory.mktemp("manual")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # Material's maintainers go on with another program
    built = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    return BuiltManual(place, built.returncode, built.stderr)
