"""Create a virtual environment from the lock: `python3 tools/setup_venv.py .venv`. Needs only Python and a registry."""

import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
PROMPT = "tidegate"


def main(target: Path, lock: str = "dev.txt") -> int:
    """Exactly what the lock in requirements/ names, checked against its hashes, then the checkout itself as
    editable.
    """
    if sys.version_info < OLDEST:
        print(
            f"Tidegate needs Python >= 3.11, {sys.executable} is {sys.version.split()[0]}: make PYTHON=python3.11 ..."
        )
        return 1
    if not ours(target):
        print(
            f"{target} is not an environment that `make setup` made: remove it yourself, or name another "
            "(make VENV=...)"
        )
        return 1
    try:
        # clear: an environment made for another lock or another Python is not worth mending.
        venv.create(target, clear=True, with_pip=True, prompt=PROMPT)
    except (subprocess.CalledProcessError, ImportError) as problem:
        print(f"Cannot create {target} ({problem}): is Python's venv module installed (Debian: python3-venv)?")
        return 1
    print(f"installing the locked dependencies into {target} (once; a minute or two)", flush=True)
    run(install(target, lock))
    run([*pip(target), "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])
    return 0


def install(target: Path, lock: str) -> list[str]:
    """The command that installs what a lock names and nothing else."""
    return [*pip(target), "--require-hashes", "--no-deps", "-r", str(ROOT / "requirements" / lock)]


def pip(target: Path) -> list[str]:
    """What installs into an environment. Python compiles modules when they are first imported: most of them never
    are.
    """
    python = str(target / "bin" / "python")
    return [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]


def run(command: list[str]) -> None:
    """Runs a command that prints nothing for minutes, and says every ten seconds that it does; fails as it fails."""
    began = time.monotonic()
    with subprocess.Popen(command) as process:
        while True:
            try:
                status = process.wait(10)
            except subprocess.TimeoutExpired:
                print(f"  ... {time.monotonic() - began:.0f} s", flush=True)
                continue
            if status:
                raise subprocess.CalledProcessError(status, command)
            return


def ours(target: Path) -> bool:
    """Whether everything in this place may be deleted: nothing is there, or an environment of an earlier run, and no
    link.
    """
    if target.is_symlink():
        return False
    if not target.exists():
        return True
    if not target.is_dir():
        return False
    said = target / "pyvenv.cfg"
    return not any(target.iterdir()) or (said.is_file() and f"prompt = {PROMPT!r}" in said.read_text().splitlines())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
