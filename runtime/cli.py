"""The command line: `tidegate doctor`, `tidegate version`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from tidegate.algebra.errors import TidegateError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0 if all is well, 1 if something is wrong, 2 for wrong usage."""
    options = parser().parse_args(arguments)
    try:
        status: int = options.command(options)
    except TidegateError as problem:
        print(problem, file=sys.stderr)
        return 1
    return status


def parser() -> argparse.ArgumentParser:
    """Every command with its options; each names the function that runs it as `command`."""
    top = argparse.ArgumentParser(prog="tidegate", description="Temporal relational algebra over event streams.")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    doctor = commands.add_parser("doctor", help="say what this machine has and what is missing")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    doctor.set_defaults(command=_doctor)

    version = commands.add_parser("version", help="print the version")
    version.set_defaults(command=_version)
    return top


def _doctor(options: argparse.Namespace) -> int:
    from tidegate.runtime.doctor import diagnose

    diagnosis = diagnose()
    print(json.dumps(diagnosis.to_dict(), indent=2) if options.json else diagnosis)
    return 0 if diagnosis.healthy else 1


def _version(_: argparse.Namespace) -> int:
    import tidegate

    print(f"tidegate {tidegate.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
