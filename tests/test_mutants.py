"""The tool that draws mutants: it makes the changes that it says, kills what a test notices, and lists what none
does.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools import mutants, test_all
from tools.fuzz import code_hash
from tools.mutation import children, live
from tools.mutation.groups import GROUPS, TIMED, Group
from tools.mutation.operators import mutants_of, mutated

SAMPLE = '''
"""A module."""
import os

LIMIT = 7

def one(a: int, b: int = 3) -> int:
    """Says nothing."""
    assert a < 1000, "told"
    if a < b and not b:
        raise ValueError(f"{a + 1} is wrong")
    for x in range(a):
        if x == 2:
            continue
        os.close(x)
    return max(a, b) + a[1:b]

class C:
    def two(self, on=True):
        self.found = [x for x in on if x > 1]
        self.pairs = zip(on, on, strict=False)
        self.failpoints.hit("two")
        def inner(y):
            return searchsorted(y, "left", strict=True)
        return inner
'''


def test_operators_change_one_place_each() -> None:
    made = {(one.operator, one.old, one.new) for one in mutants_of("sample.py", SAMPLE)}
    for wanted in (
        ("comparison", "a < b", "a <= b"),
        ("and/or", "a < b and (not b)", "a < b or not b"),
        ("removed sign or negation", "not b", "b"),
        ("negated condition", "if x == 2: ...", "if not x == 2: ..."),
        ("constant", "2", "3"),
        ("constant", "2", "1"),
        ("removed statement", "continue", "pass"),
        ("break/continue", "continue", "break"),
        ("removed statement", "os.close(x)", "pass"),
        ("removed statement", "raise ValueError(f'{a + 1} is wrong')", "pass"),
        ("removed statement", "self.found = [x for x in on if x > 1]", "pass"),
        ("min/max, any/all", "max(a, b)", "min(a, b)"),
        ("arithmetic", "max(a, b) + a[1:b]", "max(a, b) - a[1:b]"),
        ("slice", "a[1:b]", "a[1 + 1:b]"),
        ("slice", "a[1:b]", "a[1:b - 1]"),
        ("returned value", "return max(a, b) + a[1:b]", "return None"),
        ("removed condition", " for x in on if x > 1", " for x in on"),
        ("swapped arguments", "searchsorted(y, 'left', strict=True)", "searchsorted('left', y, strict=True)"),
        ("side of a search", "'left'", "'right'"),
        ("truth value", "True", "False"),
    ):
        assert wanted in made, wanted


def test_messages_assertions_defaults_and_constants_stay() -> None:
    made = mutants_of("sample.py", SAMPLE)
    assert not [one for one in made if {"7", "3", "1000", "a + 1", "a < 1000", "False"} & {one.old}]
    assert not [one for one in made if "failpoints" in one.old]
    assert {one.function for one in made} == {"one", "C.two"}
    assert len({one.key for one in made}) == len(made)


def test_each_mutant_differs_and_compiles() -> None:
    original = ast.unparse(ast.parse(SAMPLE))
    texts = [ast.unparse(mutated(SAMPLE, one)) for one in mutants_of("sample.py", SAMPLE)]
    assert original not in texts
    assert len(set(texts)) > 0.9 * len(texts), "an `if` negated is the same as its branches exchanged"
    for one in mutants_of("sample.py", SAMPLE):
        compile(mutated(SAMPLE, one), "sample.py", "exec")


def test_draws_go_by_seed_and_have_enough_to_draw_from() -> None:
    (joins,) = (group for group in GROUPS if group.name == "joins")
    some = mutants.drawn(joins, 30, 5)
    assert mutants.drawn(joins, 10, 5) == some[:10]
    assert mutants.drawn(joins, 30, 6) != some
    shares = mutants._shares(1080, GROUPS)
    assert sum(shares) == 1080
    assert min(shares) >= 40
    assert sum(mutants._shares(10**6, GROUPS)) == sum(len(mutants.all_mutants(group)) for group in GROUPS)


def test_a_draw_stays_as_it_is_where_the_code_does(tmp_path: Path) -> None:
    group, before = Group("sample", ("*.py",), ()), tmp_path / "before"
    for folder, text in ((before, SAMPLE), (tmp_path, SAMPLE + "\ndef three(a):\n    return a + 5\n")):
        folder.mkdir(exist_ok=True)
        (folder / "sample.py").write_text(text)
    old, new = (mutants.drawn(group, 1000, 0, root) for root in (before, tmp_path))
    assert len(old) < len(new)
    assert [one.key for one in new if one.function != "three"] == [one.key for one in old]


def test_all_groups_are_drawn_from_by_all_checks() -> None:
    drawn = [group for half in test_all.HALVES for group in half]
    assert sorted(drawn) == sorted(group.name for group in GROUPS)


def test_tests_and_files_of_groups_are_there() -> None:
    for group in GROUPS:
        assert group.paths(mutants.ROOT)
        assert all((mutants.ROOT / test).exists() for test in group.tests), group.name
    for file, _, test in (one.partition("::") for one in TIMED):
        assert f"def {test}" in (mutants.ROOT / file).read_text(), test
    with pytest.raises(FileNotFoundError):
        Group("none", ("no/such/*.py",), ()).paths(mutants.ROOT)


def test_equivalent_mutants_are_there_and_have_a_reason(tmp_path: Path) -> None:
    """So that an entry whose function has changed is judged again."""
    known = {one.key for group in GROUPS for one in mutants.all_mutants(group)}
    judged = mutants.equivalents()
    assert judged.keys() <= known, sorted(judged.keys() - known)
    assert all(len(why) > 20 for why in judged.values())
    file = tmp_path / "twice.toml"
    file.write_text('[[mutant]]\nkey = "a"\nwhy = "b"\n[[mutant]]\nkey = "a"\nwhy = "c"\n')
    with pytest.raises(ValueError, match="more than once"):
        mutants.equivalents(file)


def test_a_mutant_is_put_into_a_child_only() -> None:
    from tidegate.runtime.plan import join_parts as joins

    text = (mutants.ROOT / "runtime" / "plan" / "join_parts.py").read_text()
    one = next(
        m for m in mutants_of("runtime/plan/join_parts.py", text) if m.function == "_side" and m.new == "return None"
    )

    def told() -> dict[str, str]:
        before = joins._side.__code__
        live.put(mutants.ROOT, one)
        return {"changed": str(joins._side.__code__ is not before)}

    before = joins._side.__code__
    assert children.forked(told, 60) == {"changed": "True"}
    assert joins._side.__code__ is before


def test_a_child_that_does_not_end_is_ended() -> None:
    def forever() -> dict[str, str]:
        children.limit_own_time(100)
        children.limit_own_time(0.1)
        while True:
            pass

    assert children.forked(forever, 60) is None

    def wrong() -> dict[str, str]:
        raise KeyError("no such")

    assert children.forked(wrong, 60) == {"error": "KeyError: 'no such'"}


def test_another_text_of_a_file_is_put_where_bodies_of_functions_differ() -> None:
    from tidegate.runtime.plan import join_parts as joins

    file = "runtime/plan/join_parts.py"
    text = (mutants.ROOT / file).read_text()
    (first,) = [part for part in text.split("\n\n\n") if part.startswith("def _side(")]
    returns = "    return None  # whatever comes\n"
    head, _, body = first.partition(":\n")

    def put(text: str) -> dict[str, str]:
        before = joins._side.__code__
        live.put_text(mutants.ROOT, file, text)
        return {"changed": str(joins._side.__code__ is not before)}

    # Lines of other functions move, and they stay what they are.
    longer = text.replace(first, f"{head}:\n{returns}{body}")
    assert longer != text
    assert children.forked(lambda: put(longer), 60) == {"changed": "True"}
    told = children.forked(lambda: put(text + "\nMORE = 1\n"), 60)
    assert told == {"error": f"ValueError: {file} differs outside the bodies of functions"}


JOINS = "runtime/plan/join_parts.py"
SORTED = "tests/runtime/test_joins.py::test_conjuncts_are_sorted_by_what_they_are_good_for"
#: With the one above they kill each mutant of this file that does not mean the same, in milliseconds.
QUICK = tuple(
    f"tests/runtime/test_joins.py::test_{name}"
    for name in (
        "keys_of_two_types_meet_in_the_wider_one",
        "a_value_that_does_not_fit_the_wider_type_is_not_the_null_of_the_other_side",
        "a_column_that_is_always_null_is_no_key",
        "bounds_of_a_difference_are_ranges_where_nothing_can_overflow",
        "what_can_fail_is_no_key_behind_a_guard",
    )
)


COMPACTION = "tests/runtime/state/test_compaction.py::test_"
#: Other files, by their groups, of which quick tests kill each mutant that does not mean the same.
SAMPLED = {
    "compaction": (
        "runtime/state/outputs/names.py",
        tuple(
            f"{COMPACTION}{name}"
            for name in (
                "names_of_results",
                "parts_and_times_of_merged_files",
                "files_of_several_queries_and_schemas_are_not_mixed",
            )
        ),
    ),
    "files": ("runtime/state/inputs/consumed.py", ("tests/runtime/state/test_consumed.py",)),
}


def sample(code: str, name: str = "joins", file: str = JOINS) -> list[str]:
    """Five mutants of a file, others for each state of the code: a digest of it draws them."""
    (group,) = (group for group in GROUPS if group.name == name)
    judged = mutants.equivalents()
    pool = [one for one in mutants.all_mutants(group) if one.file == file and one.key not in judged]
    return [one.key for one in mutants.some_of(pool, 5, code)]


def test_samples_of_two_states_of_the_code_have_hardly_any_in_common() -> None:
    drawn = [sample(f"state {number}") for number in range(20)]
    assert drawn[3] == sample("state 3")
    assert len({key for some in drawn for key in some}) > 60


NUMBERS = "tests/runtime/kernels/test_partition_numbers.py::test_partitions_are_numbered_by_first_appearance[0-8]"
#: Of a function that the test does not call.
SURVIVES = "runtime/eval/joins/ranges.py::_equal_groups: rights >= 0 => rights > 0"


def test_a_sample_is_killed_and_a_survivor_is_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    resume = tmp_path / "state.json"
    only = [*sample(code_hash(mutants.ROOT, mutants.SOURCES)), SURVIVES]
    command = ["--group", "joins", "--tests", SORTED, *QUICK, "--resume", str(resume), "--only", *only]
    status = mutants.main([*command, "--at-least", "0.8"])
    told = capfd.readouterr().out
    assert status == 0, f"a mutant of {JOINS} survives: it wants a test, or a reason\n{told}"
    assert "6 mutants drawn" in told
    assert "joins: 5 of 6 killed: 83.3 %\n" in told
    assert "0 do not fit; 5 of 6 killed: 83.3 %, in" in told
    assert "SURVIVED runtime/eval/joins/ranges.py:" in told
    assert "- rights >= 0\n  + rights > 0" in told
    assert mutants.main([*command, "--at-least", "0.84"]) == 1, "of the file: nothing runs again"
    assert "without a mutant" not in capfd.readouterr().out
    assert mutants.main([*command, "--each-at-least", "0.83"]) == 0
    assert "asked for" not in capfd.readouterr().out
    assert mutants.main([*command, "--at-least", "0.8", "--each-at-least", "0.84"]) == 1
    assert "less than the 84 % asked for of each group: joins\n" in capfd.readouterr().out
    survivors = tmp_path / "out" / "survivors.txt"
    assert mutants.main([*command, "--survivors", str(survivors)]) == 0
    assert f"; {survivors} lists the 1 others\n" in capfd.readouterr().out
    (one,) = (one for group in GROUPS for one in mutants.all_mutants(group) if one.key == SURVIVES)
    place, old, new, why = survivors.read_text().splitlines()
    assert place.startswith(f"{one.file}:{one.line} {one.function}, ")
    assert (old, new, why) == ("  - rights >= 0", "  + rights > 0", "  (no test calls the function)")
    state = mutants.State(0, "1/1", 7, "other", [])
    with pytest.raises(SystemExit, match="another run"):
        mutants.resumed(resume, state)


@pytest.mark.long
@pytest.mark.parametrize("group", ["compaction", "files"])
def test_samples_of_other_files_are_killed(group: str, capfd: pytest.CaptureFixture[str]) -> None:
    file, tests = SAMPLED[group]
    only = sample(code_hash(mutants.ROOT, mutants.SOURCES), group, file)
    status = mutants.main(["--group", group, "--tests", *tests, "--only", *only, "--at-least", "1"])
    told = capfd.readouterr().out
    assert status == 0, f"a mutant of {file} survives: it wants a test, or a reason\n{told}"
    assert "5 of 5 killed" in told


def test_kernels_run_uncompiled(capfd: pytest.CaptureFixture[str]) -> None:
    """Compiled, a kernel would stay as it was."""
    free = "runtime/kernels/partition_numbers.py::_look_up: number == _FREE => number != _FREE"
    assert mutants.main(["--group", "kernels", "--tests", NUMBERS, "--only", free, "--at-least", "1"]) == 0
    assert "1 of 1 killed" in capfd.readouterr().out


@pytest.mark.long
def test_a_group_whose_tests_fail_without_a_mutant_is_told_and_the_others_go_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    test = tmp_path / "test_wrong.py"
    test.write_text("import os\n\n\ndef test_compiled() -> None:\n    assert 'NUMBA_DISABLE_JIT' not in os.environ\n")
    kernel = next(one.key for one in mutants.all_mutants(GROUPS[0]))
    groups = ["--group", "kernels", "joins", "--tests", str(test), SORTED]
    assert mutants.main([*groups, "--only", kernel, f"{JOINS}::join_parts: rest.append(part) => pass"]) == 2
    told = capfd.readouterr().out
    assert "kernels: 0 of 0 killed: none\njoins: 1 of 1 killed: 100.0 %\n" in told
    assert "kernels: the tests fail before there is any mutant" in told
    assert "1 of 1 killed" in told
    assert "these groups broke, so not all of their mutants were judged: kernels\n" in told
