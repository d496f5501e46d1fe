"""The tools that judge the tests: a run that checked nothing must not pass for one that did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools import compile_kernels, demo, fuzz, kill_loop, planted_bugs, processes, setup_venv, soak, test_all
from tools.planted import GROUPS
from tools.planted.bugs import Bug, Group, Patch

TEST = ("tests/test_tools.py",)
RUN = ["--family", "rules", "--cases", "12", "--shard", "1/2"]


def test_fuzz_resumes_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state.json"
    assert fuzz.main([*RUN, "--resume", str(file)]) == 0
    first = json.loads(file.read_text())
    assert first["done"] == 6
    assert 0 < first["valid"] <= 6
    capsys.readouterr()
    assert fuzz.main([*RUN, "--resume", str(file), "--at-least", str(first["valid"])]) == 0
    assert "6 cases (6 before)" in capsys.readouterr().out
    assert json.loads(file.read_text()) == first


def test_fuzz_starts_anew_where_the_code_has_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state.json"
    assert fuzz.main([*RUN, "--resume", str(file)]) == 0
    state = json.loads(file.read_text())
    file.write_text(json.dumps({**state, "code": "of another day", "done": 6, "valid": 20_000}))
    capsys.readouterr()
    assert fuzz.main([*RUN, "--resume", str(file)]) == 0
    told = capsys.readouterr().out
    assert "starting anew" in told
    assert "6 cases (0 before)" in told
    assert json.loads(file.read_text()) == state


def test_fuzz_fails_where_too_few_cases_were_valid(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main([*RUN, "--at-least", "7"]) == 4
    assert "fewer valid cases than the 7" in capsys.readouterr().out


def test_fuzz_fails_where_the_optimiser_changed_too_few_cases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counted over all runs of a resume file."""
    command = ["--family", "contexts-inside", "--resume", str(tmp_path / "state.json")]
    assert fuzz.main([*command, "--cases", "3", "--optimised-at-least", "4"]) == 4
    assert "the optimiser changed fewer cases than the 4" in capsys.readouterr().out
    first = json.loads((tmp_path / "state.json").read_text())["optimised"]
    fuzz.main([*command, "--cases", "6", "--optimised-at-least", "1"])
    found = json.loads((tmp_path / "state.json").read_text())["optimised"]
    assert 0 < first < found
    assert f", {found} optimised, in" in capsys.readouterr().out


def test_most_random_programs_with_contexts_are_optimised_ones() -> None:
    """Ten thousand valid ones at least, and most of them changed: of what `make test-all` asks for."""
    asked = {"--at-least": 0, "--optimised-at-least": 0}
    for commands in test_all.parts(Path("out"), 2.2, seed=0).values():
        for command in commands:
            family = command[command.index("--family") + 1] if "--family" in command else ""
            for option in asked if family.startswith("contexts") else ():
                asked[option] += int(command[command.index(option) + 1])
    assert asked["--at-least"] >= 10_000
    assert asked["--optimised-at-least"] > asked["--at-least"] / 2


def test_fuzz_refuses_the_file_of_another_run(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    fuzz.save(file, fuzz.State("rules", "2/2", 0, "code"))
    with pytest.raises(SystemExit, match="another run"):
        fuzz.main([*RUN, "--resume", str(file)])
    file.write_text('{"done": 3}')
    with pytest.raises(SystemExit, match="no file of this tool"):
        fuzz.main([*RUN, "--resume", str(file)])


def test_code_hash_sees_texts_and_names(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text("1")
    hashes = [fuzz.code_hash(tmp_path, ["a"])]
    (tmp_path / "a" / "x.py").write_text("2")
    hashes.append(fuzz.code_hash(tmp_path, ["a"]))
    (tmp_path / "a" / "x.py").rename(tmp_path / "a" / "y.py")
    hashes.append(fuzz.code_hash(tmp_path, ["a"]))
    assert len(set(hashes)) == 3


@pytest.mark.parametrize("folder", fuzz.SOURCES)
def test_the_hashed_folders_exist(folder: str) -> None:
    assert any((fuzz.ROOT / folder).rglob("*.py"))


def test_planted_bugs_that_were_run_with_this_code_are_not_run_again(tmp_path: Path) -> None:
    bug, file = planted_bugs.all_bugs()[0], tmp_path / "planted.json"
    found = planted_bugs.Outcome(bug, "test_x.py", 3.0)
    assert planted_bugs._remembered(file) == {}
    planted_bugs._remember(file, [found])
    assert planted_bugs._remembered(file) == {bug.name: found}
    file.write_text(file.read_text().replace(fuzz.code_hash(fuzz.ROOT, planted_bugs.COPIED[:-1]), "other"))
    assert planted_bugs._remembered(file) == {}


def test_planted_bugs_have_names_of_their_own_and_still_apply() -> None:
    bugs = planted_bugs.all_bugs()
    assert len({bug.name for bug in bugs}) == len(bugs) > 150
    assert {bug.name: planted_bugs._misfit(patch, fuzz.ROOT) for bug in bugs for patch in bug.patches} == dict.fromkeys(
        bug.name for bug in bugs
    )


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_the_tests_of_planted_bugs_exist(group: Group) -> None:
    for test in group.tests:
        path, _, function = test.partition("::")
        assert f"def {function}(" in (fuzz.ROOT / path).read_text() or not function


def timeout(*_: object, **__: object) -> str | None:
    raise subprocess.TimeoutExpired("pytest", 1, output=b"tests/a.py::test_b[1 2] PASSED [ 1%]\ntests/a.py::test_c ")


def test_a_timeout_is_no_kill_save_for_bugs_that_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted_bugs, "_failed", timeout)
    slow, looping = planted_bugs._run(Bug("slow", ()), TEST), planted_bugs._run(Bug("endless", (), loops=True), TEST)
    assert slow.killed_by is None
    assert "TIMED OUT" in str(slow)
    assert looping.killed_by == "tests/a.py::test_c"
    assert planted_bugs.summary([slow, looping]).startswith("1 of 2 planted bugs killed, 1 timed out, 0 survived")
    assert planted_bugs.good([looping])
    assert not planted_bugs.good([looping] * 10 + [slow])


def test_what_was_compiled_from_other_sources_is_forgotten(tmp_path: Path) -> None:
    """Numba looks at the file of a function alone, and not at those that it calls."""
    inner, outer = tmp_path / "inner.py", tmp_path / "part" / "outer.py"
    made = tmp_path / "part" / "__pycache__" / "outer.call-1.py311.nbi"
    made.parent.mkdir(parents=True)
    outer.write_text("")
    for text in ("one", "two"):
        inner.write_text(text)
        made.write_text("")
        assert compile_kernels.forget_stale(tmp_path)
        assert not made.exists()
        made.write_text("")
        assert not compile_kernels.forget_stale(tmp_path)
        assert made.exists()


def test_kernels_are_compiled_again_where_a_bug_may_be_inside() -> None:
    inlined = [Patch("runtime/kernels/search.py", "", "")]
    assert planted_bugs._stale(inlined) == {"search", "counting", "range_search"}
    ignore = planted_bugs._left_out(planted_bugs._stale(inlined))
    compiled = ["search._search-239.py311.nbi", "pool._hash-111.py311.1.nbc", "search.cpython-311.pyc"]
    assert ignore("kernels/__pycache__", compiled) == [compiled[0]]


def test_each_planted_bug_names_the_test_that_kills_it() -> None:
    """A file that moves takes no test out of reach unseen."""
    killers = planted_bugs.killers()
    assert killers.keys() == {bug.name for bug in planted_bugs.all_bugs()}
    for test in killers.values():
        path, _, function = test.partition("::")
        name = function.partition("[")[0].rpartition("::")[2]
        assert f"def {name}(" in (fuzz.ROOT / path).read_text() or not function


def test_killers_of_bugs_are_written_down_beside_those_known(tmp_path: Path) -> None:
    first, second = planted_bugs.all_bugs()[:2]
    file = tmp_path / "killers.toml"
    planted_bugs.record({first.name: 'tests/test_x.py::test_y["a"]'}, file)
    planted_bugs.record({second.name: "tests/test_x.py"}, file)
    assert planted_bugs.killers(file) == {first.name: 'tests/test_x.py::test_y["a"]', second.name: "tests/test_x.py"}


def test_a_bug_is_killed_by_the_first_test_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Sequence[str]] = []

    def failed(_copy: Path, tests: Sequence[str], **_: object) -> planted_bugs.Failure | None:
        shown.append(tests)
        return planted_bugs.Failure("tests/test_tools.py::test_a", "") if len(shown) < 2 else None

    monkeypatch.setattr(planted_bugs, "_failed", failed)
    outcome = planted_bugs._run(Bug("some", ()), TEST)
    assert outcome.killed_by == "tests/test_tools.py"  # alone the test passes: it needs those before it
    assert shown == [TEST, ["tests/test_tools.py::test_a"]]


def test_a_test_that_kills_a_bug_runs_though_it_is_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[Sequence[str]] = []

    def ran(command: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("tools.planted_bugs.subprocess.run", ran)
    killer = next(test for test in planted_bugs.killers().values() if "::" in test)
    assert planted_bugs._failed(tmp_path, [*TEST, killer], on_spark=False) is None
    assert [command[-2:] for command in commands] == [["", killer], ["not long and not spark", *TEST]]


def test_required_bugs_are_killed_however_many_others_are() -> None:
    killed = planted_bugs.Outcome(Bug("other", ()), "test_tight.py", 1.0)
    missed = planted_bugs.Outcome(Bug("vital", (), required=True), None, 1.0)
    survivor = planted_bugs.Outcome(Bug("minor", ()), None, 1.0)
    assert planted_bugs.good([killed] * 19 + [survivor])
    assert not planted_bugs.good([killed] * 99 + [missed])


def test_names_of_no_bug_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["planted_bugs.py", "--only", "no such bug"])
    assert planted_bugs.main() == 2
    assert "no such bug" in capsys.readouterr().out


def soaked(**grows: float) -> soak.Samples:
    """Two hours of a run of which some measures grow by so much an hour, and the others not."""
    samples = soak.Samples()
    for minute in range(120):
        # Nothing but the slope counts: not what the beginning takes, nor that values jump.
        early, jump = 500.0 * (minute < 20), 10.0 * (minute % 2)
        base = dict.fromkeys((*soak.LIMITS, "batches"), 100.0)
        samples.add(
            minute * 60, **{name: base[name] + early + jump + grows.get(name, 0) * minute / 60 for name in base}
        )
    return samples


def test_the_soak_tells_what_grows_from_what_jumps() -> None:
    assert all(within for within, _ in soak.verdicts(soaked()))
    for name, (part, more) in soak.LIMITS.items():
        found = [text for within, text in soak.verdicts(soaked(**{name: 2 * (part * 300 + more)})) if not within]
        assert [text.split()[0] for text in found] == [name]
    assert all(within for within, _ in soak.verdicts(soaked(descriptors=12), spark=True))
    assert soak.slope([0, 1, 2, 3], [5, 7, 9, 11]) == 2
    assert soak.slope([1, 1], [3, 4]) == 0


def test_where_files_stay_only_what_is_known_of_them_may_grow() -> None:
    known = soaked(batches=60_000, stored=20_000, memory=80)
    assert all(within for within, _ in soak.verdicts(known, keep=True))
    assert [text.split()[0] for within, text in soak.verdicts(known) if not within] == ["memory", "stored"]
    for grows in ({"stored": 60_000}, {"manifest": 60}, {"checkpoint": 100}, {"time": 400}, {"descriptors": 10}):
        found = soak.verdicts(soaked(batches=60_000, **grows), keep=True)
        assert [text.split()[0] for within, text in found if not within] == list(grows)


def test_a_soak_counts_the_descriptors_of_all_its_processes(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        own, theirs = processes.open_descriptors([os.getpid()]), processes.open_descriptors([child.pid])
        samples = soak.soak(tmp_path, 0.001, spark=False, every=0, seed=0)
        child.communicate(b"\n")
    assert theirs > 0
    assert processes.open_descriptors([child.pid]) == 0
    assert min(samples.values["descriptors"]) >= own + theirs - 2
    assert 0 < samples.values["manifest"][-1] < samples.values["stored"][-1]


def test_descriptors_that_nobody_else_may_list_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = os.listdir

    def refused(path: str) -> list[str]:
        if path == "/proc/1/fd":
            raise PermissionError(path)
        return listed(path)

    own = processes.open_descriptors([os.getpid()])
    monkeypatch.setattr(os, "listdir", refused)
    assert processes.open_descriptors([1, os.getpid()]) == own


def test_files_and_rejected_rows_stay_where_a_soak_is_to_keep_them(tmp_path: Path) -> None:
    samples = soak.soak(tmp_path, 0.02, spark=False, every=0, seed=0, keep=True)
    assert len(list((tmp_path / "in" / "Orders").iterdir())) == samples.values["batches"][-1]


def test_a_soak_of_seconds_runs_and_says_that_it_is_too_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "FEWEST", 10**9)
    assert soak.main(["--minutes", "0.03", "--every", "0", "--place", str(tmp_path)]) == 1
    assert "samples are too few" in capsys.readouterr().out
    rows = soak.Writer(tmp_path / "again", 0)
    rows.write()
    assert rows.rows == 2 * soak.ROWS
    assert list((tmp_path / "state" / "manifests").iterdir())


def test_a_soak_notices_rows_that_are_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = soak.Writer.write

    def more(self: soak.Writer) -> None:
        write(self)
        self.rows += 1

    monkeypatch.setattr(soak.Writer, "write", more)
    with pytest.raises(AssertionError, match="were counted"):
        soak.soak(tmp_path, 0.001, spark=False, every=0, seed=0)


def test_a_family_of_processes_and_what_it_takes() -> None:
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"1\n"  # the inner one runs
        below = processes.descendants(child.pid)
        assert len(below) == 1
        assert processes.family(os.getpid())[0] == os.getpid()
        assert {child.pid, *below} <= {*processes.family(os.getpid())}
        assert processes.cpu_seconds([child.pid]) > 0
        assert processes.resident_bytes([child.pid, *below]) > processes.resident_bytes(below) > 1 << 20
        child.communicate(b"\n")
    assert processes.descendants(child.pid) == []
    assert processes.cpu_seconds([child.pid]) == processes.resident_bytes([child.pid]) == 0


def test_only_an_environment_of_its_own_is_made_anew(tmp_path: Path) -> None:
    foreign, file, link, empty = (tmp_path / name for name in ("foreign", "file", "link", "empty"))
    foreign.mkdir()
    (foreign / "pyvenv.cfg").write_text("home = /usr/bin\nprompt = 'work'\n")
    file.touch()
    empty.mkdir()
    made = tmp_path / "made"
    venv.create(made, prompt=setup_venv.PROMPT)
    link.symlink_to(made)
    assert setup_venv.ours(empty)
    assert setup_venv.ours(made)
    assert setup_venv.ours(tmp_path / "not there")
    for place in (foreign, file, link, tmp_path):
        assert not setup_venv.ours(place)


def test_a_place_of_others_is_refused_and_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert setup_venv.main(tmp_path) == 1
    assert "remove it yourself" in capsys.readouterr().out
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("installed", [True, False])
def test_the_demo_runs_while_spark_is_installed(
    installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    python, ready = tmp_path / "bin" / "python", tmp_path / ".ready"
    began = tmp_path / "began"  # the installation ends when the demo has begun, the demo when Spark is there
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\ntouch {began}\nuntil test -f "$5"; do :; done\necho demo "$@"\n')
    python.chmod(0o755)
    shell = ["sh", "-c", f"until test -f {began}; do :; done; echo what pip says; {'true' if installed else 'exit 3'}"]
    monkeypatch.setattr(setup_venv, "main", lambda target, lock: 0)
    monkeypatch.setattr(setup_venv, "install", lambda target, lock: shell)
    assert demo.main(tmp_path, "--hours") == (0 if installed else 3)
    printed = capfd.readouterr().out
    if installed:
        assert printed == f"demo -m examples.operations_room --hours --spark-after {ready}\n"
        assert demo.current(ready)
    else:
        assert printed == "Spark could not be installed:\nwhat pip says\n\n"
        assert not ready.exists()


def says(text: str, status: int = 0) -> list[str]:
    return [sys.executable, "-c", f"print({text!r}); raise SystemExit({status})"]


def test_all_parts_run_and_one_that_fails_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = {"good": [says("3 passed")], "bad": [says("half well"), says("1 failed", 2)], "last": [says("40 killed")]}
    assert test_all.run(wanted, tmp_path / "all.json") == 1
    told = capsys.readouterr().out
    assert [line.split()[0] for line in told.splitlines()[-4:-1]] == ["passed", "FAILED", "passed"]
    assert "half well; 1 failed, see" in told
    assert told.splitlines()[-1] == "failed: bad"


def test_parts_that_passed_with_this_code_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    count = f"open({str(tmp_path / 'times')!r}, 'a').write('x')"
    once = [[sys.executable, "-c", count]]
    broken = {"once": once, "again": [[sys.executable, "-c", f"{count}; raise SystemExit(1)"]]}
    assert test_all.run(broken, tmp_path / "all.json") == 1
    assert test_all.run({"once": once, "again": once}, tmp_path / "all.json") == 0
    assert (tmp_path / "times").read_text() == "xxx"
    assert "all parts passed" in capsys.readouterr().out
    monkeypatch.setattr(test_all, "code_hash", lambda *_: "another")
    assert test_all.run({"once": once}, tmp_path / "all.json") == 0
    assert (tmp_path / "times").read_text() == "xxxx"
    assert "starting anew" in capsys.readouterr().out


def test_code_that_changes_under_a_run_fails_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = iter(["before", "after"])
    monkeypatch.setattr(test_all, "code_hash", lambda *_: next(codes))
    assert test_all.run({"good": [says("fine")]}, tmp_path / "all.json") == 1


def test_what_all_parts_run_is_there(tmp_path: Path) -> None:
    known = test_all.parts(tmp_path, 2.2, seed=0)
    files = {word for commands in known.values() for command in commands for word in command if word.endswith(".py")}
    assert files >= {"tools/kill_loop.py", "tools/fuzz.py", "tools/planted_bugs.py", "tools/mutants.py"}
    assert all((test_all.ROOT / file).is_file() for file in files)


def test_what_all_parts_draw_is_drawn_by_the_code(tmp_path: Path) -> None:
    """Else tests that were written for what was drawn before are judged by it for ever."""
    drawing = ("tools/fuzz.py", "tools/mutants.py")
    one, other = (
        [" ".join(command) for commands in test_all.parts(tmp_path, 2.2, seed=seed).values() for command in commands]
        for seed in map(test_all.seed_of, ("0a1b", "0a1c"))
    )
    assert len(one) == len(other)
    same = [command for command, another in zip(one, other, strict=True) if command == another]
    assert not [command for command in same if any(tool in command for tool in drawing)]


def test_no_part_goes_on_with_what_other_code_has_drawn(tmp_path: Path) -> None:
    """Its tools would refuse the file as one of another run."""
    kept = []
    for seed in (1, 2):
        commands = [command for part in test_all.parts(tmp_path, 2.2, seed=seed).values() for command in part]
        drawn = [command for command in commands if "--seed" in command]
        kept.append({command[command.index("--resume") + 1] for command in drawn})
        assert len(kept[-1]) == len(drawn) > 40
    assert not kept[0] & kept[1]


@pytest.mark.parametrize(
    ("did", "status"),
    [({"compactions": 1, "merged": 1, "archived": 1}, 0), ({"merged": 1, "archived": 1}, 1), ({"compactions": 1}, 1)],
)
def test_kills_that_meet_no_compaction_show_nothing(
    did: dict[str, int], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shoot(lane: kill_loop.Lane) -> bool:
        for what, count in did.items():
            setattr(lane, what, count)
        return True

    monkeypatch.setattr(kill_loop, "shoot_all", shoot)
    monkeypatch.setattr("sys.argv", ["kill_loop.py", "--embedded", "1", "--spark", "0", "--workers", "0"])
    assert kill_loop.main() == status
    assert ("so this shows nothing of it" in capsys.readouterr().out) == bool(status)
