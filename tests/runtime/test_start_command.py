"""`tidegate start`: a program from its file, until it is told to stop, with an endpoint that says how it is."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import nullcontext
from pathlib import Path
from threading import Event
from typing import Any

import polars as pl
import pytest

import tidegate as tg
from tidegate.runtime.cli import operation
from tidegate.runtime.cli.commands import main
from tidegate.runtime.cli.operation import STALE, Health
from tidegate.runtime.engines.embedded.session import Session

PROGRAM = """
import tidegate as tg
events = tg.stream("E", "n bigint, t timestamp", progress="t")
program = tg.program(Large=events.where(events.n > 1))
"""
DEPLOYED = """
deployment = tg.deployment(
    program,
    sources={"E": tg.parquet("in", delay=0)},
    sinks={"Large": tg.parquet_sink("out")},
    checkpoint="state",
    every="20ms",
)
"""
SETTINGS = """
checkpoint = "state"
every = "20 milliseconds"

[sources.E]
parquet = "in"
delay = "0s"

[sinks.Large]
parquet = "out"
compact = true
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "program.py").write_text(PROGRAM + DEPLOYED)
    (tmp_path / "plain.py").write_text(PROGRAM)
    (tmp_path / "run.toml").write_text(SETTINGS)
    put(tmp_path, 1)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(place: Path, number: int) -> None:
    """Three rows; the last is the latest, and not final yet."""
    times = [f"2026-01-{number:02}T{hour:02}:00Z" for hour in (1, 2, 3)]
    frame = pl.DataFrame({"n": [number, number + 1, 0], "t": times})
    frame.write_parquet(place / "in" / f".{number}")
    (place / "in" / f".{number}").rename(place / "in" / f"{number}.parquet")


def results(place: Path) -> list[int]:
    files = list(place.glob("out/*.parquet"))
    return sorted(pl.read_parquet(files)["n"].to_list()) if files else []


@pytest.mark.parametrize("arguments", [["program.py"], ["plain.py", "--settings", "run.toml"]])
def test_once_reads_what_is_there_and_goes_on_the_next_time(place: Path, arguments: list[str]) -> None:
    assert main(["start", *arguments, "--once"]) == 0
    assert results(place) == [2]
    put(place, 2)
    assert main(["start", *arguments, "--once"]) == 0
    assert results(place) == [2, 2, 3]


@pytest.mark.parametrize("arguments", [["program.py"], ["plain.py", "--settings", "run.toml"]])
def test_threads_are_those_of_the_session(place: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "program.py").write_text(PROGRAM + DEPLOYED.replace('checkpoint="state"', 'checkpoint="state", threads=3'))
    (place / "run.toml").write_text("threads = 3\n" + SETTINGS)
    opened: list[int] = []
    original = Session.__init__

    def init(self: Session, *given: Any, **options: Any) -> None:
        original(self, *given, **options)
        opened.append(self._batches.options.threads)

    monkeypatch.setattr(Session, "__init__", init)
    assert main(["start", *arguments, "--once"]) == 0
    assert results(place) == [2]
    assert opened == [3]


def test_threads_are_no_cores_of_spark() -> None:
    events = tg.stream("E", "n bigint, t timestamp", progress="t")
    with pytest.raises(tg.QueryError, match="threads=2 is of engine 'embedded'"):
        tg.deployment(
            tg.program(All=events), sources={"E": tg.parquet("in")}, checkpoint="state", engine="spark", threads=2
        )


RECURSION = """
import tidegate as tg
events = tg.stream("E", "n bigint, t bigint", progress="t")
later = tg.result("Later", "t bigint", progress="t")
after = later.select(t=later.t + 1).distinct()
program = tg.program(tg.query(later, events.select(t=events.t)), tg.query(later, after))
"""


@pytest.mark.filterwarnings("ignore:TG445")
def test_once_takes_all_steps_of_a_recursion(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch takes ten of them."""
    monkeypatch.setattr("tidegate.runtime.batch.increments.MOST_STEPS", 10)
    (place / "program.py").write_text(RECURSION + DEPLOYED.replace("Large", "Later"))
    pl.DataFrame({"n": [1, 1], "t": [5, 30]}).write_parquet(place / "in" / "1.parquet")
    assert main(["start", "program.py", "--once"]) == 0
    found = [row for path in place.glob("out/*.parquet") for row in pl.read_parquet(path)["t"].to_list()]
    assert sorted({*found}) == list(range(5, 31))


def test_what_it_did_is_said_in_the_end(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["start", "program.py", "--once"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "1 batch",
        "  in   E      3 rows, accepted",
        "  out  Large  1 row, final up to t 2026-01-01T02:59:59.999999Z",
    ]
    put(place, 2)
    pl.DataFrame({"n": [5, 6], "t": ["2026-01-01T00:30Z", "noon"]}).write_parquet(place / "in" / "late.parquet")
    assert main(["start", "program.py", "--once"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "1 batch",
        "  in   E      5 rows, 3 accepted, 2 rejected: 1 late, 1 unparseable",
        "  out  Large  2 rows, final up to t 2026-01-02T02:59:59.999999Z",
        "rejected rows and why: tidegate quarantine state",
    ]


@pytest.mark.filterwarnings("ignore:TG435")
def test_what_queries_set_aside_is_said_in_the_end(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    derived = "events.partition_by('k').derive(Large=tg.situation(events.n > 0)).Large"
    program = PROGRAM.replace("n bigint", "n bigint, k bigint").replace("events.where(events.n > 1)", derived)
    (place / "program.py").write_text(program + DEPLOYED)
    frame = pl.DataFrame({"n": [0, 1, 1], "k": [1, 1, 1], "t": [f"2026-01-01T0{hour}:00Z" for hour in (1, 1, 2)]})
    frame.write_parquet(place / "in" / "1.parquet")
    assert main(["start", "program.py", "--once"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[-2:] == [
        "       Large  2 set aside: tie; the quarantine says why",
        "rejected rows and why: tidegate quarantine state",
    ]


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["program.py"], ("program.py", '"E": tg.parquet("in", delay=0)')),
        (["plain.py", "--settings", "run.toml"], ("run.toml", "[sources.E]")),
    ],
)
def test_what_a_service_warns_of_is_at_the_line_of_its_source(
    place: Path, arguments: list[str], written: tuple[str, str]
) -> None:
    pl.DataFrame({"n": [5], "t": ["noon"]}).write_parquet(place / "in" / "1.parquet")
    with pytest.warns(tg.RunWarning, match="TG430 the only row of E in batch 1 was rejected") as told:
        assert main(["start", *arguments, "--once"]) == 0
    file, line = written
    assert Path(told[0].filename).name == file
    assert line in (place / file).read_text().splitlines()[told[0].lineno - 1]


def test_a_line_for_each_batch_is_logged(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["start", "program.py", "--once", "--log"]) == 0
    put(place, 2)
    assert main(["start", "program.py", "--once"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    assert [(line["event"], line["batch"], line["results"]) for line in lines] == [("batch", 1, {"Large": 1})]


def test_the_address_is_as_given(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["start", "program.py", "--once", "--port", "0", "--host", "localhost"]) == 0
    assert main(["start", "program.py", "--once", "--port", "0", "--host", "192.0.2.1"]) == 1  # of no machine
    assert "TG401 port 0 of 192.0.2.1 cannot be served" in capsys.readouterr().err


def test_paths_of_settings_are_relative_to_their_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert main(["start", str(place / "plain.py"), "--settings", str(place / "run.toml"), "--once"]) == 0
    assert results(place) == [2]


def test_the_home_directory_is_meant_by_a_tilde_in_settings_and_deployments(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(place))
    (place / "settings").mkdir()
    settings = place / "settings" / "run.toml"
    settings.write_text(SETTINGS.replace('"in"', '"~/in/*.parquet"').replace('"out"', '"~/out"'))
    assert main(["start", "plain.py", "--settings", str(settings), "--once"]) == 0
    assert results(place) == [2]
    (place / "program.py").write_text(PROGRAM + DEPLOYED.replace('"state"', '"~/held"').replace('"out"', '"~/more"'))
    monkeypatch.setattr(operation._Service, "embedded", lambda service: service.begun())
    assert main(["start", "program.py"]) == 0
    assert f"with the checkpoint {place}/held;" in capsys.readouterr().err


def test_a_port_without_the_package_of_prometheus_says_what_is_missing(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(operation, "_has_prometheus", lambda: False)
    port, stop = free_port(), Event()

    def wait(_: float) -> bool:
        with pytest.raises(urllib.error.HTTPError, match="404") as told:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics")
        assert b"pip install 'tidegate[prometheus]'" in told.value.read()
        stop.set()
        return True

    monkeypatch.setattr(stop, "wait", wait)
    monkeypatch.setattr(operation, "_stopping", lambda: nullcontext(stop))
    assert main(["start", "program.py", "--port", str(port)]) == 0
    assert "/health and no /metrics: they need pip install 'tidegate[prometheus]'\n" in capsys.readouterr().err


@pytest.mark.parametrize("once", [[], ["--once"]])
def test_what_looks_like_a_mistake_in_the_program_is_said_when_it_starts(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], once: list[str]
) -> None:
    """As `tidegate check` says it: a state that grows for ever is seen before the disk is full."""
    kept = "events.anti_join(other, other.m == events.n, other.u <= events.t)"
    program = PROGRAM.replace("events.where(events.n > 1)", kept)
    other = 'other = tg.stream("F", "m bigint, u timestamp", progress="u")'
    deployed = DEPLOYED.replace('"in", delay=0)', '"in", delay=0), "F": tg.parquet("other", delay=0)')
    (place / "program.py").write_text(program.replace("program =", f"{other}\nprogram =") + deployed)
    (place / "other").mkdir()
    stop = Event()

    def wait(_: float) -> bool:
        stop.set()
        return True

    monkeypatch.setattr(stop, "wait", wait)
    monkeypatch.setattr(operation, "_stopping", lambda: nullcontext(stop))
    assert main(["start", "program.py", *once]) == 0
    said = capsys.readouterr().err
    assert "TG224 one row by m of F is kept for ever" in said
    assert said.index("TG224") < said.index("1 batch")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


#: How far results are final after the third file.
FINAL = {"Large": "final up to t 2026-01-03T02:59:59.999999Z"}


def test_it_runs_until_it_is_told_to_stop_and_says_how_it_is(place: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "tidegate.runtime.cli.commands", "start", "program.py", "--port", str(port)]
    with subprocess.Popen(command, cwd=place, env=os.environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            until = time.monotonic() + 60
            seen: dict[str, object] = {}
            for number in (2, 3):
                put(place, number)
                while len(results(place)) < 2 * number - 1 and time.monotonic() < until and process.poll() is None:
                    time.sleep(0.02)
            # Results are there a moment before the batch has ended that had them.
            while seen.get("results") != FINAL and time.monotonic() < until:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
                    seen = json.load(answer)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                metrics = answer.read().decode()
            head = urllib.request.Request(f"http://127.0.0.1:{port}/health", method="HEAD")
            with urllib.request.urlopen(head) as answer:
                assert (answer.status, answer.read()) == (200, b"")
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/other")
        finally:
            process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert results(place) == [2, 2, 3, 3, 4]
    assert said.startswith("tidegate "), said
    assert (
        f"with the checkpoint {place / 'state'}; looks for new files every 20ms; http://127.0.0.1:{port}/health" in said
    )
    assert "/health and /metrics\n" in said
    assert seen["status"] == "ok"
    assert seen["results"] == FINAL
    assert "tidegate_rows_total" in metrics or "tidegate_" in metrics
    assert main(["start", "program.py", "--once"]) == 0  # it let go of its checkpoint


def test_a_run_that_fails_or_stands_still_is_unhealthy() -> None:
    health = Health(every=3600.0)
    assert health.to_dict()["status"] == "starting"
    health.begun = True
    assert health.to_dict()["status"] == "ok"
    health.looked -= 3600 + STALE - 1
    assert health.to_dict()["status"] == "ok"
    health.looked -= 2
    assert health.to_dict()["status"] == "stale"
    health.stop.set()
    assert health.to_dict()["status"] == "stale"
    health.looked += 2
    assert health.to_dict()["status"] == "stopping"
    health.error = "TG412 a file can not be read"
    assert health.to_dict()["status"] == "failed"
    assert health.to_dict()["error"] == "TG412 a file can not be read"


@pytest.mark.parametrize(("port", "reason"), [("taken", "Address already in use"), ("99999", "ports are 0 to 65535")])
def test_a_port_that_cannot_be_served_is_told(
    place: Path, port: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = str(taken.getsockname()[1]) if port == "taken" else port
        assert main(["start", "program.py", "--once", "--port", number]) == 1
    assert f"TG401 port {number} of 127.0.0.1 cannot be served: {reason}" in capsys.readouterr().err
    assert results(place) == []


@pytest.mark.parametrize("once", [[], ["--once"]])
def test_what_is_loaded_is_no_garbage_to_a_service(
    place: Path, monkeypatch: pytest.MonkeyPatch, once: list[str]
) -> None:
    frozen = []
    stop = Event()
    monkeypatch.setattr("gc.freeze", lambda: frozen.append(results(place)))
    monkeypatch.setattr(stop, "wait", lambda _: stop.set())
    monkeypatch.setattr(operation, "_stopping", lambda: nullcontext(stop))
    assert main(["start", "program.py", *once]) == 0
    assert len(frozen) == (0 if once else 1)


def test_looks_without_anything_new_are_no_batches(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    real = Session.step

    def step(session: Session) -> tg.BatchReport:
        batches.append(len(batches))
        return real(session)

    stop = Event()
    looks: list[int] = []

    def wait(_: float) -> bool:
        looks.append(len(batches))
        if len(looks) == 2:
            put(place, 2)
        if len(looks) == 5:
            stop.set()
        return stop.is_set()

    monkeypatch.setattr(Session, "step", step)
    monkeypatch.setattr(stop, "wait", wait)
    monkeypatch.setattr(operation, "_stopping", lambda: nullcontext(stop))
    assert main(["start", "program.py"]) == 0
    assert looks == [1, 1, 2, 2, 2]
    assert results(place) == [2, 2, 3]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("checkpoint = ", "TG143 run.toml is no TOML"),
        ('checkpoint = "x"', 'write [sources.Name] and parquet = "a directory"'),
        ('[sources.E]\nparquet = "in"', 'write checkpoint = "a directory"'),
        ('checkpoint = "x"\n[sources.E]\ndelay = "5m"', "TG143 E names no files"),
        ('checkpoint = "x"\n[sources.E]\nparquet = "in"\ndelai = "5m"', "TG114 tg.parquet takes no delai="),
        ('checkpoint = "x"\n[source.E]\nparquet = "in"', "TG114 run.toml takes no source="),
        (
            'checkpoint = "x"\n[sources.E]\nparquet = "in"\n[sinks.Large]\ncsv = "x"',
            "TG143 results of Large go nowhere",
        ),
        (
            'checkpoint = "x"\n[sources.E]\nparquet = "in"\nkey = 3',
            'give names: key = "id", or key = ["id", "time"]',
        ),
        ('checkpoint = "x"\n[sources.E]\nparquet = "in"\nbounded = "yes"', "give true or false"),
        (
            'checkpoint = "x"\n[sources.E]\nparquet = "in"\ndelay = ["5m"]',
            'give one, delay = "5m", or one by attribute: delay = {time = "5m"}',
        ),
        ('checkpoint = "x"\n[sources]', '[sources.Name] and parquet = "a directory"'),
        (
            'checkpoint = "x"\n[sources.E]\ncsv = "in/*.csv"\npattern = "*.csv"',
            "give one: csv = '",
        ),
        ('checkpoint = "x"\nsources = 3', "TG143 sources is no table of tables"),
        ('checkpoint = "x"\nengine = "flink"\n[sources.E]\nparquet = "in"', "TG401 there is no engine 'flink'"),
        ('checkpoint = "x"\nevery = "0s"\n[sources.E]\nparquet = "in"', "TG401 every='0s' is no time to wait"),
        ('checkpoint = "x"\nevery = 2\n[sources.E]\nparquet = "in"', "TG104 every=2: 2 is not a duration"),
        ('checkpoint = "x"\n[sources.E]\nparquet = ["in"]', "TG143 parquet=['in'] is no path"),
        ('checkpoint = 3\n[sources.E]\nparquet = "in"', "TG143 checkpoint=3 is no path"),
        (
            'checkpoint = "x"\n[sources.E]\nparquet = "in"\ndelay = 5m',
            'text and durations stand in quotes, as in delay = "5m"',
        ),
        (
            'checkpoint = "x"\n[sources.E]\nparquet = "in"\nskew_guard = false',
            'skew_guard = "10m", or "none" for no limit',
        ),
        (
            'checkpoint = "x"\n[sources.E]\nparquet = "in"\nage_guard = false',
            'age_guard = "10m", or "none" for no limit',
        ),
    ],
)
def test_settings_that_say_something_else_are_told(
    place: Path, settings: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "run.toml").write_text(settings)
    assert main(["start", "plain.py", "--settings", "run.toml", "--once"]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ('checkpoint = "x"\n\n[sources.E]\nparquet = "in"\ndelai = "5m"', '5   delai = "5m"'),
        ('checkpoint = "x"\n[sources."E"]\nparquet = "in"\ndelay = "5 minutess"', '4   delay = "5 minutess"'),
        ('checkpoint = "x"\n[sources]\nE = {parquet = "in", policy = "no"}', '3   E = {parquet = "in", policy = "no"}'),
        ('checkpoint = "x"\n[sources.E]\ndelay = "5m"', "2   [sources.E]"),
        ('checkpoint = "x"\nsources = 3', "2   sources = 3"),
        ('checkpoint = "x"\nengine = "flink"\n[sources.E]\nparquet = "in"', '2   engine = "flink"'),
        ('checkpoint = "x"\n\n[source.E]\nparquet = "in"', "3   [source.E]"),
        ('checkpoint = "x"\nevery = 2\n[sources.E]\nparquet = "in"', "2   every = 2"),
        ('sources.E.parquet = "in"\nsources.E.delai = 1\ncheckpoint = "x"', "2   sources.E.delai = 1"),
        ('checkpoint = "x"\n[sinks.Large]\nparquet = "x"\ncompac = 1\n[sources.E]\nparquet = "in"', "4   compac = 1"),
    ],
)
def test_a_wrong_setting_is_told_at_its_line(
    place: Path, settings: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "run.toml").write_text(settings)
    assert main(["start", "plain.py", "--settings", "run.toml", "--once"]) == 1
    assert f"\n  run.toml:{line}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plain.py"], "TG141 plain.py says nothing of sources and checkpoint"),
        (["program.py", "--program", "other"], "TG141 program.py defines deployment"),
        (["plain.py", "--settings", "none.toml"], "TG143 none.toml cannot be read"),
    ],
)
def test_what_can_not_be_started_is_told(
    place: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["start", *arguments, "--once"]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("instead", "line", "said"),
    [
        (("[sources.E]", "[sources.EE]"), "[sources.EE]", "the program has no input 'EE'"),
        (("[sinks.Large]", "[sinks.Lage]"), "[sinks.Lage]", "the program has no result 'Lage'"),
        (('parquet = "in"', 'parqet = "in"'), 'parqet = "in"', "did you mean parquet?"),
        (('parquet = "out"', 'parqet = "out"'), 'parqet = "out"', "did you mean parquet?"),
        (('parquet = "in"', 'parquet = "in'), 'parquet = "in', "is no TOML"),
    ],
)
def test_a_misspelt_table_or_option_is_told_at_its_line(
    place: Path, instead: tuple[str, str], line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "run.toml").write_text(SETTINGS.replace(*instead))
    assert main(["start", str(place / "plain.py"), "--settings", str(place / "run.toml"), "--once"]) != 0
    told = capsys.readouterr().err
    number = SETTINGS.replace(*instead).splitlines().index(line) + 1
    assert said in told
    assert f"run.toml:{number}   {line}\n" in told


def test_a_start_that_is_refused_does_not_say_that_it_runs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "program.py").write_text(PROGRAM + DEPLOYED.replace('"out"', '"in"'))
    assert main(["start", "program.py"]) == 1
    assert capsys.readouterr().err.startswith("TG")


def test_a_duration_in_toml_is_told_how_it_is_written_there(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "run.toml").write_text(SETTINGS.replace('"0s"', '"5 foo"'))
    assert main(["start", "plain.py", "--settings", "run.toml"]) == 1
    said = capsys.readouterr().err
    assert "TG104 delay: '5 foo' is not a duration" in said
    assert "timedelta" not in said


@pytest.mark.parametrize(
    ("row", "options", "said"),
    [
        (
            (5, "2026-01-01"),
            "",
            'give its source a delay, such as delay = "5m"; or bounded = true where all files are there',
        ),
        ((5, "2100-01-01"), 'delay = "0s"', 'give the source skew_guard = "none"'),
    ],
)
def test_what_a_run_warns_of_is_mended_in_the_words_of_the_settings(
    place: Path, row: tuple[int, str], options: str, said: str
) -> None:
    pl.DataFrame([row], schema=["n", "t"], orient="row").write_parquet(place / "in" / "1.parquet")
    (place / "run.toml").write_text(SETTINGS.replace('delay = "0s"', options))
    with pytest.warns(tg.RunWarning, match="TG43[01]") as caught:
        assert main(["start", "plain.py", "--settings", "run.toml", "--once"]) == 0
    assert str(caught[0].message).endswith(said)


def test_what_a_run_fails_with_is_mended_in_the_words_of_the_settings(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "in" / "2.parquet").touch()
    assert main(["start", "plain.py", "--settings", "run.toml", "--once"]) == 1
    assert 'on_bad_file = "quarantine" sets such files aside' in capsys.readouterr().err
    assert main(["start", "program.py", "--once"]) == 1
    assert 'on_bad_file="quarantine" sets such files aside' in capsys.readouterr().err


@pytest.mark.parametrize("guard", ['"none"', '{t = "none"}'])
def test_toml_can_switch_the_skew_guard_off(place: Path, guard: str, capsys: pytest.CaptureFixture[str]) -> None:
    times = ["2100-01-01T01:00Z", "2100-01-01T02:00Z"]
    pl.DataFrame({"n": [7, 8], "t": times}).write_parquet(place / "in" / "1.parquet")
    (place / "run.toml").write_text(SETTINGS)
    with pytest.warns(tg.RunWarning, match=r'TG430 all 2 rows of E in batch 1 were rejected: 2 ahead(?s:.*)"none"'):
        assert main(["start", "plain.py", "--settings", "run.toml", "--once"]) == 0
    assert "2 rejected: 2 ahead" in capsys.readouterr().err
    changed = SETTINGS.replace('"state"', '"other"').replace("[sinks", f"skew_guard = {guard}\n\n[sinks")
    (place / "run.toml").write_text(changed)
    assert main(["start", "plain.py", "--settings", "run.toml", "--once"]) == 0
    assert results(place) == [7]


@pytest.mark.parametrize("guard", ['"none"', '{t = "none"}'])
def test_toml_has_the_age_guard(place: Path, guard: str, capsys: pytest.CaptureFixture[str]) -> None:
    times = ["1970-01-01T01:00Z", "1970-01-01T02:00Z"]
    pl.DataFrame({"n": [7, 8], "t": times}).write_parquet(place / "in" / "1.parquet")
    (place / "run.toml").write_text(SETTINGS.replace("[sinks", 'age_guard = "30d"\n\n[sinks'))
    said = r'TG430 all 2 rows of E in batch 1 were rejected: 2 old(?s:.*)give the source age_guard = "none"'
    with pytest.warns(tg.RunWarning, match=said):
        assert main(["start", "plain.py", "--settings", "run.toml", "--once"]) == 0
    assert "2 rejected: 2 old" in capsys.readouterr().err
    changed = SETTINGS.replace('"state"', '"other"').replace("[sinks", f"age_guard = {guard}\n\n[sinks")
    (place / "run.toml").write_text(changed)
    assert main(["start", "plain.py", "--settings", "run.toml", "--once"]) == 0
    assert results(place) == [7]


def test_a_host_without_a_port_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["start", "program.py", "--once", "--host", "0.0.0.0"]) == 1
    assert "TG401 --host without a port" in capsys.readouterr().err
    assert not (place / "state").exists()


def test_being_told_to_stop_while_spark_starts_ends_it_at_once(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen, port = [], free_port()

    def status() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
            return str(json.load(answer)["status"])

    def starting(*_: object, **__: object) -> None:
        seen.append(status())
        os.kill(os.getpid(), signal.SIGTERM)
        Event().wait(60)
        pytest.fail("it waited")

    monkeypatch.setattr(operation, "_has_prometheus", lambda: False)
    monkeypatch.setattr("tidegate.runtime.engines.spark.setup.session.spark_session", starting)
    (place / "program.py").write_text(PROGRAM + DEPLOYED.replace("every=", 'engine="spark", every='))
    assert main(["start", "program.py", "--port", str(port)]) == 0
    assert seen == ["starting"]
    assert capsys.readouterr().err.splitlines()[0] == "starting Spark"
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert not (place / "state").exists()


def test_being_told_to_stop_while_the_program_starts_it_does_not_say_that_it_runs(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = Session.__enter__

    def opened(session: Session) -> Session:
        os.kill(os.getpid(), signal.SIGTERM)
        return real(session)

    monkeypatch.setattr(Session, "__enter__", opened)
    assert main(["start", "program.py"]) == 0
    assert capsys.readouterr().err.splitlines()[0].startswith("0 batches")
