"""The demo in an environment of its own: `python3 tools/demo.py .venv-demo ARGUMENTS`. Needs only Python and a
registry.

It starts as soon as there is what it needs in one process. Spark is installed meanwhile.
"""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import setup_venv  # found from wherever this is started

FIRST, WHOLE = "demo-embedded.txt", "demo.txt"


def main(target: Path, *arguments: str) -> int:
    """Exit status of the demo, or of the installation that failed."""
    ready = target / ".ready"
    demo = [str(target / "bin" / "python"), "-m", "examples.operations_room", *arguments]
    if current(ready):
        return subprocess.call(demo)
    if status := setup_venv.main(target, FIRST):
        return status
    log = target / "install.log"
    with log.open("wb") as said, subprocess.Popen([*demo, "--spark-after", str(ready)]) as running:
        if status := subprocess.call(setup_venv.install(target, WHOLE), stdout=said, stderr=said):
            running.terminate()
            print(f"Spark could not be installed:\n{log.read_text(errors='replace')}")
            return status
        ready.touch()
        return running.wait()


def current(ready: Path) -> bool:
    """Whether the environment has what the locks of today name."""
    locks = [setup_venv.ROOT / "requirements" / lock for lock in (FIRST, WHOLE)]
    return ready.exists() and all(ready.stat().st_mtime > lock.stat().st_mtime for lock in locks)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
