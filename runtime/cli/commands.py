"""The command line: `tidegate check`, `explain`, `run`, `start`, `timeline`, `why`, `state`, `quarantine`, `compact`,
`doctor`, `compile` and `version`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tidegate.algebra.errors import Problem, QueryError, TidegateError
from tidegate.version import VERSION

if TYPE_CHECKING:
    from tidegate.contexts.model import ContextModel
    from tidegate.runtime.cli.quarantine import QuarantineListing
    from tidegate.runtime.cli.run_query import QueryRun
    from tidegate.runtime.engines.explanation import ProgramExplanation
    from tidegate.runtime.inspect.state_listing import StateListing
    from tidegate.runtime.inspect.timelines.timeline import DrawingOptions
    from tidegate.runtime.program import Program

    _Commands = argparse._SubParsersAction["_Parser"]

#: Seconds by which the clock of a file system may differ from that of the process.
_CLOCK: Final = 0.1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0 if all is well, 1 if something is wrong, 2 for wrong usage."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        parser().print_help(sys.stderr)
        return 2
    options = parser().parse_args(given)
    try:
        status: int = options.command(options)
        sys.stdout.flush()
    except TidegateError as problem:
        print(problem, file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read, such as `head`, has enough; Python would fail once more as it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


class _Parser(argparse.ArgumentParser):
    """Says of a misspelt command, option or choice which one is probably meant, below the usage of the command."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        options, unknown = super().parse_known_args(args, namespace)
        option = next((argument.partition("=")[0] for argument in unknown if argument.startswith("-")), None)
        if option is not None:
            self.error(f"there is no option {option}{_meant(option, self._option_string_actions)}")
        return options, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = ", ".join(action.choices)
            message = f"{value!r} is none of {known}{_meant(value, action.choices)}"
            raise argparse.ArgumentError(action, message)


def _meant(given: str, known: Iterable[str]) -> str:
    from tidegate.algebra.diagnostics.shown import nearest

    names = nearest(given, known)
    return f"; did you mean {' or '.join(names)}?" if names else ""


def _rows(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rows")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """Every command with its options; each names the function that runs it as `command`."""
    top = _Parser(prog="tidegate", description="Temporal relational algebra over event streams.")
    top.add_argument("--version", action="version", version=f"tidegate {VERSION}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (
        _add_check,
        _add_explain,
        _add_run,
        _add_timeline,
        _add_start,
        _add_state,
        _add_quarantine,
        _add_compact,
        _add_why,
        _add_doctor,
        _add_compile,
        _add_version,
    ):
        add(commands)
    return top


def _add_check(commands: _Commands) -> None:
    check = commands.add_parser("check", help="say whether the programs in a Python file are valid")
    _add_programs(check)
    check.add_argument("--json", action="store_true", help="print the problems as JSON")
    check.set_defaults(command=_check)


def _add_explain(commands: _Commands) -> None:
    explain = commands.add_parser("explain", help="say when results are final, what is kept, and how much")
    _add_programs(explain)
    explain.add_argument("--zones", action="store_true", help="print each query's temporal constraints as well")
    shown = explain.add_mutually_exclusive_group()
    shown.add_argument("--graph", choices=("mermaid", "svg"), help="print the plan as a graph instead")
    shown.add_argument("--spark", action="store_true", help="print Spark's plan of each query's increment as well")
    explain.add_argument("--json", action="store_true", help="print the report as JSON")
    explain.set_defaults(command=_explain)


def _add_run(commands: _Commands) -> None:
    run = commands.add_parser("run", help="run a query in the text language over files")
    run.add_argument(
        "--query", type=Path, required=True, metavar="FILE", help="a file with the query, or - for standard input"
    )
    run.add_argument(
        "--input",
        action="append",
        required=True,
        metavar="STREAM=PATH",
        help="a Parquet or CSV file, or a directory of them",
    )
    run.add_argument("--schema", help="names and types of the attributes, where the files do not say: 'id bigint, ...'")
    run.add_argument(
        "--time", metavar="ATTRIBUTE", help="the attribute by which events are ordered, unless ORDER BY says it"
    )
    run.add_argument(
        "--unit", action="append", default=[], metavar="ATTRIBUTE=UNIT", help="the unit of an attribute's values"
    )
    run.add_argument("--dialect", choices=("allen", "tpstream"), help="whose `finishes` is meant")
    run.add_argument(
        "--close-open", metavar="INSTANT", help="an instant after the last event: what is still open ends then"
    )
    run.add_argument("--name", default="Matches", help="the name of the results")
    run.add_argument("--out", type=Path, metavar="DIR", help="write a Parquet file there instead of printing CSV")
    run.add_argument("--threads", type=int, default=1, metavar="N", help="threads that read the files of a directory")
    run.set_defaults(command=_run)


def _add_timeline(commands: _Commands) -> None:
    drawn = commands.add_parser("timeline", help="draw situations and matches, of a query or of result files")
    drawn.add_argument("--query", type=Path, metavar="FILE", help="a file with a query in the text language, or -")
    _add_query_options(drawn)
    drawn.add_argument("--close-open", metavar="INSTANT", help="as in run")
    drawn.add_argument(
        "--situations", action="append", default=[], metavar="NAME=PATH", help="Parquet results with ts and te"
    )
    drawn.add_argument("--matches", type=Path, metavar="PATH", help="Parquet results of a match of them")
    drawn.add_argument("--by", action="append", default=[], metavar="ATTRIBUTE", help="what tells partitions apart")
    drawn.add_argument("--most", type=int, default=20, help="at most so many partitions, those with matches first")
    drawn.add_argument("--most-matches", type=int, default=100, help="at most so many matches of each partition")
    drawn.add_argument("--tz", default="UTC", metavar="ZONE", help="whose clocks are shown, such as America/New_York")
    drawn.add_argument("--out", type=Path, required=True, metavar="FILE", help="page.html, or picture.svg of the first")
    drawn.set_defaults(command=_timeline)


def _add_start(commands: _Commands) -> None:
    start = commands.add_parser(
        "start", help="run a program with its sources, sinks and checkpoint until it is stopped"
    )
    start.add_argument("file", type=Path, help="a Python file with deployment = tg.deployment(...), or with a program")
    start.add_argument(
        "--settings", type=Path, metavar="FILE", help="sources, sinks and checkpoint of a program, in TOML"
    )
    start.add_argument("--program", help="the name of the deployment or program in the file, where it defines several")
    start.add_argument("--once", action="store_true", help="end when all that is there has been read")
    start.add_argument("--port", type=int, help="serve /health and /metrics there, on this machine alone")
    start.add_argument(
        "--host",
        metavar="ADDRESS",
        help="with --port: serve on this address instead of 127.0.0.1; 0.0.0.0 for others too",
    )
    start.add_argument("--log", action="store_true", help="write a line of JSON for each batch to standard error")
    start.add_argument("--no-progress", action="store_true", help="show nothing while it runs")
    start.set_defaults(command=_start)


def _add_state(commands: _Commands) -> None:
    state = commands.add_parser("state", help="list what a checkpoint holds, and why it is kept")
    state.add_argument("checkpoint", type=Path, help="the directory of a checkpoint, of a running or a stopped program")
    state.add_argument("--check", action="store_true", help="read every state file and compare it with its checksum")
    state.add_argument("--json", action="store_true", help="print the listing as JSON")
    state.set_defaults(command=_state)


def _add_quarantine(commands: _Commands) -> None:
    quarantine = commands.add_parser("quarantine", help="show the rejected rows that a checkpoint keeps, and why")
    quarantine.add_argument(
        "checkpoint", type=Path, help="the directory of a checkpoint, of a running or a stopped program"
    )
    quarantine.add_argument("--source", metavar="NAME", help="those of one input, or that one result set aside")
    quarantine.add_argument("--reason", help='those that were rejected for one reason, such as "late"')
    quarantine.add_argument(
        "--limit", type=_rows, default=20, metavar="N", help="show the latest N of them (20); all are counted"
    )
    quarantine.add_argument("--json", action="store_true", help="print the rows as JSON")
    quarantine.set_defaults(command=_quarantine)


def _add_compact(commands: _Commands) -> None:
    compact = commands.add_parser("compact", help="merge the small files in directories of results")
    compact.add_argument("results", type=Path, nargs="+", help="directories that were given as tg.parquet_sink(...)")
    compact.add_argument("--json", action="store_true", help="print what was done as JSON")
    compact.set_defaults(command=_compact)


def _add_why(commands: _Commands) -> None:
    why = commands.add_parser("why", help="say what a result in a checkpoint waits for")
    why.add_argument("checkpoint", type=Path, help="the checkpoint's directory, of a run that goes on or has stopped")
    why.add_argument("file", type=Path, help="the Python file that defines the program")
    why.add_argument("--program", help="the program's name in the file, where it defines several")
    why.add_argument("--result", help="one result only")
    why.add_argument(
        "--row", nargs="+", default=[], metavar="ATTRIBUTE=INSTANT", help="when a row with these instants is final"
    )
    why.add_argument("--json", action="store_true", help="print the answer as JSON")
    why.set_defaults(command=_why)


def _add_doctor(commands: _Commands) -> None:
    doctor = commands.add_parser("doctor", help="say what this machine has and what is missing")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    doctor.set_defaults(command=_doctor)


def _add_compile(commands: _Commands) -> None:
    compile_ = commands.add_parser("compile", help="compile the kernels now, so that no program waits for them")
    compile_.add_argument("--json", action="store_true", help="print what was done as JSON")
    compile_.set_defaults(command=_compile)


def _add_version(commands: _Commands) -> None:
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(command=_version)


def _add_programs(command: argparse.ArgumentParser) -> None:
    """What `check` and `explain` are about: a Python file, or a query as text."""
    given = command.add_mutually_exclusive_group(required=True)
    given.add_argument("file", nargs="?", type=Path, help="a Python file that defines one program or several")
    given.add_argument(
        "--query", type=Path, metavar="FILE", help="a file with a query in the text language instead, or -"
    )
    _add_query_options(command)
    command.set_defaults(close_open=None)


def _add_query_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--input", action="append", default=[], metavar="STREAM=PATH", help="as in run")
    command.add_argument("--schema", help="as in run")
    command.add_argument("--time", metavar="ATTRIBUTE", help="as in run")
    command.add_argument("--unit", action="append", default=[], metavar="ATTRIBUTE=UNIT", help="as in run")
    command.add_argument("--dialect", choices=("allen", "tpstream"), help="as in run")


def _programs(options: argparse.Namespace) -> Mapping[str, Program]:
    """The programs of a Python file, or the one of a query as text."""
    from tidegate.runtime.cli.program_files import load_programs

    _check_query_options(options)
    return load_programs(options.file) if options.query is None else {"query": _run_request(options).as_program()}


def _with_models(options: argparse.Namespace) -> tuple[Mapping[str, Program], Mapping[str, ContextModel]]:
    """The programs with the models of contexts that they read, where a file binds these to names."""
    from tidegate.runtime.cli.program_files import load_programs_and_models

    if options.query is not None:
        return _programs(options), {}
    _check_query_options(options)
    return load_programs_and_models(options.file)


def _check_query_options(options: argparse.Namespace) -> None:
    """`QueryError` TG401 for an option that is about the text of a query, where none is given."""
    given = [name for name in ("input", "schema", "time", "unit", "dialect") if getattr(options, name)]
    if given and options.query is None:
        raise QueryError("TG401", f"--{given[0]} is of a query as text", hint="give the query's file: --query FILE")


def _check(options: argparse.Namespace) -> int:
    from tidegate.algebra.text.wording import in_words

    worded = list[Problem] if options.query is None else in_words
    file, problems = options.query or options.file, dict[str, list[Problem]]()
    models: Mapping[str, ContextModel] = {}
    try:
        programs, models = _with_models(options)
        problems = {name: worded(program.check()) for name, program in programs.items()}
        raised: list[Problem] = []
    except TidegateError as error:
        raised = list(error.problems)
    notes = (
        {name: worded(program.notes()) for name, program in programs.items() if not problems[name]} if problems else {}
    )
    found = [(name, finding) for name, model in models.items() for finding in model.check()]
    all_problems = [*raised, *(problem for those in problems.values() for problem in those)]
    if options.json:
        answer = {
            "file": str(file),
            "valid": not all_problems,
            "programs": {name: {"valid": not those} for name, those in problems.items()},
            "problems": [problem.to_dict() for problem in raised]
            + [{**problem.to_dict(), "program": name} for name, those in problems.items() for problem in those],
            "notes": [{**note.to_dict(), "program": name} for name, those in notes.items() for note in those]
            + [{**finding.to_dict(), "model": name} for name, finding in found],
        }
        print(json.dumps(answer, indent=2))
        return 1 if all_problems else 0
    noted = [*(note for those in notes.values() for note in those), *(finding for _, finding in found)]
    for problem in (*all_problems, *noted):
        print(problem, end="\n\n")
    for name, those in problems.items():
        print(f"{file}: {name} is {'not valid' if those else 'valid'}")
    if all_problems:
        print(f"{len(all_problems)} problem{'s' if len(all_problems) > 1 else ''}")
    return 1 if all_problems else 0


def _explain(options: argparse.Namespace) -> int:
    from tidegate.algebra.text.wording import in_words_of_text

    reports: dict[str, ProgramExplanation] = {}
    problems: list[Problem] = []
    try:
        with nullcontext() if options.query is None else in_words_of_text():
            for name, program in _programs(options).items():
                if refused := program.check():
                    problems += refused
                else:
                    reports[name] = program.explain(zones=options.zones)
            if problems and (options.json or not reports):
                raise QueryError.of(problems)
    except TidegateError as error:
        if not options.json:
            raise
        answer = {
            "file": str(options.query or options.file),
            "valid": False,
            "problems": [problem.to_dict() for problem in error.problems],
        }
        print(json.dumps(answer, indent=2))
        return 1
    plans = _spark_plans(reports) if options.spark else {}
    if options.json:
        answers = {
            name: report.to_dict() | ({"spark": plans[name]} if options.spark else {})
            for name, report in reports.items()
        }
        print(json.dumps(answers, indent=2))
        return 0
    for name, report in reports.items():
        text = {"mermaid": report.mermaid, "svg": report.svg, None: report.__str__}[options.graph]()
        text += "".join(f"\n\nSpark's plan of {query}\n\n{plan.strip()}" for query, plan in plans.get(name, {}).items())
        print(f"program {name}\n\n{text}\n" if len(reports) + len(problems) > 1 else text)
    if problems:
        raise QueryError.of(problems)
    return 0


def _run(options: argparse.Namespace) -> int:
    from tidegate.runtime.cli.run_query import print_results

    asked = _run_request(options, options.name)
    asked.check_out(options.out)
    print_results(asked.run(options.threads), options.name, options.out)
    return 0


def _run_request(options: argparse.Namespace, name: str = "Matches") -> QueryRun:
    """What a command is to do with the text of a query; `name` is that of the results."""
    from tidegate.runtime.cli.run_query import QueryRun, pairs

    inputs = {stream: Path(path) for stream, path in pairs(options.input, "--input").items()}
    units = pairs(options.unit, "--unit")
    return QueryRun(
        options.query, inputs, options.schema, options.time, units, options.dialect, name, options.close_open
    )


def _timeline(options: argparse.Namespace) -> int:
    from tidegate.runtime.cli.run_query import pairs, save_timeline, timeline_of_files

    if (options.query is None) == (not options.situations):
        raise QueryError(
            "TG402", "what is to be drawn?", hint="give --query and --input, or --situations NAME=PATH of results"
        )
    _check_query_options(options)
    drawing: DrawingOptions = {"most": options.most, "most_matches": options.most_matches, "tz": options.tz}
    if options.query is None:
        named = {name: Path(path) for name, path in pairs(options.situations, "--situations").items()}
        shown = timeline_of_files(named, options.matches, options.by, **drawing)
    else:
        shown = _run_request(options).timeline(**drawing)
    print(save_timeline(shown, options.out), file=sys.stderr)
    return 0


def _spark_plans(reports: Mapping[str, ProgramExplanation]) -> dict[str, dict[str, str]]:
    """Spark's plans of every program's increments; Spark ends with this process."""
    from tidegate.runtime.extras import spark_extra

    with spark_extra():
        from tidegate.runtime.engines.spark.setup.session import spark_session
    session = spark_session("tidegate explain")
    return {name: report.spark(session) for name, report in reports.items()}


def _start(options: argparse.Namespace) -> int:
    from tidegate.runtime.cli.operation import operate
    from tidegate.runtime.cli.program_files import load_deployment
    from tidegate.runtime.connectors.in_toml import errors_in_toml

    if options.host is not None and options.port is None:
        raise QueryError("TG401", "--host without a port that is served there", hint="add --port 8080")
    deployment = load_deployment(options.file, options.settings, options.program)
    with nullcontext() if options.settings is None else errors_in_toml():
        operate(
            deployment,
            once=options.once,
            port=options.port,
            host=options.host or "127.0.0.1",
            log=options.log,
            progress=False if options.no_progress else None,
        )
    return 0


def _state(options: argparse.Namespace) -> int:
    from tidegate.runtime.inspect.state_listing import list_state
    from tidegate.runtime.state.store.local import LocalStore

    return _listed(lambda: list_state(LocalStore(options.checkpoint), check=options.check), options.json)


def _quarantine(options: argparse.Namespace) -> int:
    from tidegate.runtime.cli.quarantine import list_quarantine

    given = options.checkpoint, options.source, options.reason, options.limit
    return _listed(lambda: list_quarantine(*given), options.json)


def _listed(listing: Callable[[], StateListing | QuarantineListing], as_json: bool) -> int:
    """Prints what a checkpoint holds, or, as JSON, what is wrong with it."""
    try:
        contents = listing()
    except TidegateError as error:
        if not as_json:
            raise
        print(json.dumps({"problems": [problem.to_dict() for problem in error.problems]}, indent=2))
        return 1
    print(json.dumps(contents.to_dict(), indent=2) if as_json else contents)
    return 0


def _compact(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from tidegate.runtime.state.outputs.beside import sweep
    from tidegate.runtime.state.outputs.compaction import compact

    done = []
    for directory in options.results:
        result = compact(directory)
        done.append(asdict(result))
        if not options.json:
            print(f"{directory}: {result}")
    if options.json:
        print(json.dumps(done, indent=2))
    sys.stdout.flush()
    if waits := [wait for directory in options.results if (wait := sweep(directory)) is not None]:
        time.sleep(max(waits) + _CLOCK)
        for directory in options.results:
            sweep(directory)
    return 0


def _why(options: argparse.Namespace) -> int:
    from tidegate.algebra.errors import QueryError
    from tidegate.runtime.cli.program_files import load_programs, only
    from tidegate.runtime.inspect.why import why_checkpoint
    from tidegate.runtime.plan.progress import check_known
    from tidegate.runtime.state.store.local import LocalStore

    program = only(options.file, load_programs(options.file), options.program)
    results = dict.fromkeys(query.query.stream for query in program.facts.queries if not query.query.inner)
    if options.row and options.result is None and len(results) > 1:
        raise QueryError(
            "TG401",
            "--row without the result to which the row belongs",
            hint=f"add --result, with one of {', '.join(results)}",
        )
    if options.result is not None:
        check_known(options.result, program.facts.streams, "result")
    answers = why_checkpoint(program.facts, LocalStore(options.checkpoint), options.result, _row(options.row) or None)
    if options.json:
        print(json.dumps({name: answer.to_dict() for name, answer in answers.items()}, indent=2))
    else:
        print("\n\n".join(str(answer) for answer in answers.values()))
    return 0


def _row(cells: Sequence[str]) -> dict[str, object]:
    """Instants as they are written on the command line; whole numbers are integer time."""
    from tidegate.runtime.cli.run_query import TICKS, pairs

    row: dict[str, object] = {}
    for name, value in pairs(cells, "--row").items():
        row[name] = int(value) if TICKS.fullmatch(value) else value
    return row


def _doctor(options: argparse.Namespace) -> int:
    from tidegate.runtime.cli.doctor import diagnose

    diagnosis = diagnose()
    print(json.dumps(diagnosis.to_dict(), indent=2) if options.json else diagnosis)
    return 0 if diagnosis.healthy else 1


def _compile(options: argparse.Namespace) -> int:
    from tidegate.runtime.cli.kernels import compile_all

    done = compile_all()
    print(json.dumps(done.to_dict(), indent=2) if options.json else done)
    return 0


def _version(_: argparse.Namespace) -> int:
    print(f"tidegate {VERSION}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
