"""Resolve the dependencies of pyproject.toml into the files of requirements/, using pip alone: `make lock`.

Versions are resolved once, on the oldest Python that is supported (run this with Python 3.11), so that one file
serves all. Hashes are then collected for every Python and platform below, so that pip can check each file it
installs. The files name no registry: any mirror that serves the same files will do. What the demo needs is a part of
it, and what it needs first a part of that. With `--keep` (`make lock ARGS=--keep`) what the lock has keeps its version,
and only what is new in pyproject.toml is added.
"""

import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "requirements"
OWN = "tidegate"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "linux x86_64": [f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 17)] + ["manylinux2014_x86_64"],
    "linux aarch64": [f"manylinux_2_{minor}_aarch64" for minor in (28, 27, 17)] + ["manylinux2014_aarch64"],
    "macos arm64": [f"macosx_{major}_0_arm64" for major in (15, 14, 13, 12, 11)],
}
HEADER = f"""\
# Written by `make lock`, never by hand: everything of the extra `{{}}`, for Python {PYTHONS[0]} to {PYTHONS[-1]}
# on {", ".join(PLATFORMS)}.
"""

Hashes = dict[str, set[str]]


def report(*arguments: str) -> list[dict[str, object]]:
    """What pip would install for these arguments, as the entries of its installation report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--report", str(path), *arguments]
        subprocess.run(command, check=True, cwd=ROOT)
        return list(json.loads(path.read_text())["install"])


def name_and_version(entry: dict[str, object]) -> tuple[str, str]:
    """The normalised name (PEP 503) and the version of an entry."""
    metadata = entry["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["name"]).lower().replace("_", "-").replace(".", "-"), str(metadata["version"])


def sha256(entry: dict[str, object]) -> str:
    """The hash of the file that pip chose."""
    download = entry["download_info"]
    assert isinstance(download, dict)
    return str(download["archive_info"]["hashes"]["sha256"])


def write(extra: str, versions: dict[str, str], hashes: Hashes) -> None:
    """The lock of an extra."""
    lines = [
        " \\\n    ".join([f"{name}=={versions[name]}", *(f"--hash=sha256:{value}" for value in sorted(hashes[name]))])
        for name in sorted(versions)
    ]
    path = LOCKS / f"{extra}.txt"
    path.write_text(HEADER.format(extra) + "\n".join(lines) + "\n")
    print(f"{len(versions)} packages in {path.relative_to(ROOT)}")


def locked() -> list[str]:
    """What the lock has now, as pip writes requirements."""
    path = LOCKS / "dev.txt"
    return re.findall(r"^\S+==\S+", path.read_text(), re.MULTILINE) if path.exists() else []


def constrained(extra: str, versions: list[str]) -> list[dict[str, object]]:
    """What pip would install for an extra where these versions are given; the project itself is left out."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("\n".join(versions))
        constraints.flush()
        entries = report(f"{ROOT}[{extra}]", "--constraint", constraints.name)
    return [entry for entry in entries if name_and_version(entry)[0] != OWN]


def main(*arguments: str) -> int:
    """Resolve, collect hashes, write the lock."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--keep", action="store_true", help="what the lock has keeps its version")
    keep = options.parse_args(arguments).keep
    if platform.python_version_tuple()[:2] != ("3", "11"):
        print("lock with Python 3.11: what resolves there serves the newer ones, not the other way round")
        return 1
    resolved = constrained("dev", locked() if keep else [])
    versions = dict(name_and_version(entry) for entry in resolved)
    hashes: Hashes = {name: set() for name in versions}
    from_source = set()
    for entry in resolved:
        name, _ = name_and_version(entry)
        hashes[name].add(sha256(entry))
        if str(entry["download_info"]["url"]).endswith(".tar.gz"):  # type: ignore[index]  # pip's JSON
            from_source.add(name)
    wheels = [f"{name}=={version}" for name, version in versions.items() if name not in from_source]
    for label, tags in PLATFORMS.items():
        for python in PYTHONS:
            print(f"hashes for Python {python} on {label}", flush=True)
            chosen = [argument for tag in tags for argument in ("--platform", tag)]
            target = ["--target", str(ROOT / "out"), "--only-binary=:all:", "--no-deps"]
            for entry in report(*target, "--python-version", python, *chosen, *wheels):
                hashes[name_and_version(entry)[0]].add(sha256(entry))
    LOCKS.mkdir(exist_ok=True)
    write("dev", versions, hashes)
    for extra in ("demo", "demo-embedded"):
        entries = constrained(extra, [f"{name}=={version}" for name, version in versions.items()])
        # The checkout is built with what is installed, so that nothing is downloaded beside the lock.
        needed = dict(map(name_and_version, entries))
        write(extra, {**needed, "setuptools": versions["setuptools"]}, hashes)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
