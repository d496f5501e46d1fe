"""`tidegate check FILE` and `tidegate explain FILE`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tidegate as tg
from tidegate.runtime.cli.commands import main

VALID = """
import tidegate as tg
print("prints of the file are no part of the answer")
smoke = tg.stream("Smoke", "time timestamp, area string, conc double", progress="time")
program = tg.program(Alarm=smoke.where(smoke.conc > 3))
same = program
if __name__ == "__main__":
    raise SystemExit("not when it is only read")
"""
INVALID = """
import tidegate as tg
smoke = tg.stream("Smoke", "time timestamp, until timestamp not null, area string, conc double", progress="time")
good = tg.program(Alarm=smoke.where(smoke.conc > 3))
bad = tg.program(
    Worst=smoke.group_by("area").agg(worst=tg.max(smoke.conc)),
    Never=smoke.where(smoke.time < smoke.until, smoke.until < smoke.time),
)
"""
MODELS = """
import tidegate as tg
minutes = tg.stream("Minutes", "segment bigint, end bigint, cars bigint", progress="end")
roads = tg.context_model("Roads", by="segment", default="clear", contexts=("full", "closed"))
begun = roads.initiate("full", when=minutes.where(minutes.cars > 50))
mended = begun.terminate("full", when=minutes.where(minutes.cars < 30))
read = begun
program = tg.program(Toll=minutes.in_context(begun, "full"))
"""
TEXT = """
text = '''
MODEL Roads BY segment CONTEXT clear, full DEFAULT clear;
INITIATE CONTEXT full PATTERN Minutes m WHERE m.cars > 50;
DERIVE Toll(m.segment, m.end) PATTERN Minutes m CONTEXT full
'''
queries = tg.read_contexts(text, {"Minutes": minutes})
program = tg.program(Toll=queries.results["Toll"])
"""


def write(folder: Path, text: str) -> str:
    path = folder / "alarm.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_valid_file_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, VALID)
    before = list(sys.path)
    assert main(["check", path]) == 0
    assert sys.path == before
    assert capsys.readouterr().out == f"{path}: program is valid\n"
    assert main(["check", path, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {
        "file": path,
        "valid": True,
        "programs": {"program": {"valid": True}},
        "problems": [],
        "notes": [],
    }


def test_conditions_in_vain_are_noted_in_a_valid_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, VALID.replace("smoke.conc > 3", "smoke.conc > 3, smoke.conc < 2"))
    assert main(["check", path]) == 0
    text = capsys.readouterr().out
    assert text.startswith("TG220 never true: conc > 3.0 and conc < 2.0\n  in query      Alarm\n  alarm.py:5")
    assert text.endswith(f"{path}: program is valid\n")
    assert main(["check", path, "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert (note["code"], note["program"], note["query"]) == ("TG220", "program", "Alarm")


def test_findings_of_the_models_that_programs_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of each once, and none of models that are only steps on the way."""
    path = write(tmp_path, MODELS)
    assert main(["check", path]) == 0
    text = capsys.readouterr().out
    assert text.startswith("TG188 closed never holds\n  alarm.py:4   roads = ")
    assert text.count("TG188") == 2
    assert text.endswith(f"{path}: program is valid\n")
    assert main(["check", path, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["valid"]
    assert [(note["code"], note["model"], note["message"]) for note in answer["notes"]] == [
        ("TG188", "begun", "closed never holds"),
        ("TG188", "begun", "full never ends once it holds"),
    ]


def test_findings_of_a_model_that_is_read_from_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    minutes = "".join(MODELS.splitlines(keepends=True)[:3])
    path = write(tmp_path, minutes + TEXT)
    assert main(["check", path, "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert (note["model"], note["message"]) == ("queries", "full never ends once it holds")


def test_all_problems_of_all_programs_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, INVALID)
    assert main(["check", path]) == 1
    text = capsys.readouterr().out
    assert "TG202" in text
    assert "TG204" in text
    assert text.endswith(f"{path}: good is valid\n{path}: bad is not valid\n2 problems\n")
    assert main(["check", path, "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["programs"] == {"good": {"valid": True}, "bad": {"valid": False}}
    assert [(p["program"], p["query"], p["code"]) for p in answer["problems"]] == [
        ("bad", "Worst", "TG202"),
        ("bad", "Never", "TG204"),
    ]
    assert answer["problems"][1]["site"]["line"] == 7


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("import tidegate as tg\ntg.stream('S', 'time timestamp', progress='tme')\n", "TG101", 2),
        ("x = 1\n", "TG141", None),
        ("x = 1\ny = x +\n", "TG142", 2),
        ("def f():\n    return 1 / 0\nf()\n", "TG142", 2),
        ("import sys\nsys.exit(3)\n", "TG142", 2),
        ("raise SystemExit\n", "TG142", 1),
        ("quit('enough')\n", "TG142", 1),
    ],
)
def test_files_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: str, line: int | None
) -> None:
    path = write(tmp_path, text)
    assert main(["check", path, "--json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["code"] == code
    assert (problem["site"] and problem["site"]["line"]) == line
    assert main(["explain", path]) == 1
    assert code in capsys.readouterr().err
    assert main(["explain", path, "--json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"file": path, "valid": False, "problems": [problem]}
    assert printed.err == ""


def test_a_file_that_exits_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, VALID + "raise SystemExit(3)\n")
    assert main(["check", path]) == 1
    text = capsys.readouterr().out
    assert f"TG142 {path} cannot be imported: it exits, with status 3" in text
    assert 'if __name__ == "__main__":' in text


def test_explain_prints_the_problems_of_a_program_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, INVALID)
    assert main(["explain", path, "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert [(p["query"], p["code"]) for p in answer["problems"]] == [("Worst", "TG202"), ("Never", "TG204")]


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "run a program with its sources" in capsys.readouterr().err


def test_who_reads_the_output_may_have_enough_of_it(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "tidegate.runtime.cli.commands", "explain", write(tmp_path, VALID)]
    try:
        ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, "prints of the file are no part of the answer\n")


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "nothing.py")]) == 1
    assert "TG140 there is no file" in capsys.readouterr().out


def test_explain_says_when_results_are_final(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, VALID)
    assert main(["explain", path]) == 0
    text = capsys.readouterr().out
    assert text.startswith("query Alarm\n")
    assert "final when  time <= Smoke.time" in text
    assert main(["explain", path, "--json", "--zones"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["program"]["queries"][0]["progress"] == ["time"]
    assert "zones" in answer["program"]["queries"][0]


def test_a_file_imports_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "streams_beside.py").write_text(VALID.split("program =")[0], encoding="utf-8")
    path = write(tmp_path, "import tidegate as tg\nfrom streams_beside import smoke\np = tg.program(A=smoke)\n")
    try:
        assert main(["check", path]) == 0
    finally:
        sys.modules.pop("streams_beside", None)


def test_the_package_runs_as_the_command_does() -> None:
    ran = subprocess.run([sys.executable, "-m", "tidegate", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"tidegate {tg.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["expain", "x.py"], "'expain' is none of check, explain, (.*); did you mean explain\\?"),
        (["something"], "'something' is none of check, explain, (.*), version$"),
        (["check", "--jsn", "x.py"], "tidegate check: error: there is no option --jsn; did you mean --json\\?"),
        (["start", "x.py", "--setting=x", "--onse"], "there is no option --onse; did you mean --once\\?"),
        (["explain", "x.py", "--graph=graf"], "--graph: 'graf' is none of mermaid, svg$"),
    ],
)
def test_what_is_misspelt_is_told_with_what_is_meant(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert re.search(said, capsys.readouterr().err, re.MULTILINE)


def test_explain_shows_valid_programs_and_all_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "several.py"
    file.write_text(
        "import tidegate as tg\n"
        'e = tg.stream("E", "n bigint, t timestamp", progress="t")\n'
        "good = tg.program(Good=e)\n"
        "bad = tg.program(Bad=e.select(e.n))\n"
        "worse = tg.program(Worse=e.select(e.n, m=e.n + 1))\n"
    )
    assert main(["explain", str(file)]) == 1
    shown = capsys.readouterr()
    assert "query Good" in shown.out
    assert "in query      Bad" in shown.err
    assert "in query      Worse" in shown.err
    assert main(["explain", "--json", str(file)]) == 1
    assert [problem["query"] for problem in json.loads(capsys.readouterr().out)["problems"]] == ["Bad", "Worse"]


@pytest.mark.parametrize("command", ["check", "explain"])
def test_options_of_a_querys_text_are_refused_of_a_python_file(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, write(tmp_path, VALID), "--schema", "id bigint"]) == 1
    said = capsys.readouterr()
    assert "TG401 --schema is of a query as text" in said.out + said.err
