"""What the benchmarks say is what they measured, the page of figures has a row for each of them, and limits can
fail.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

import tidegate as tg
from benchmarks import (
    background,
    beside,
    contexts,
    contexts_data,
    contexts_search,
    contexts_spark,
    counted,
    duckdb_patterns,
    embedded,
    flat,
    flat_files,
    groups,
    iseq,
    large,
    linear_road_figures,
    look_back,
    papers,
    provenance,
    queries,
    run,
    sequences,
    sequences_spark,
    situations,
    skew,
    stalls,
    start_up,
    state,
    threads,
    windows,
)
from benchmarks.figures import (
    AS_POLARS,
    BEGIN,
    DECLARED,
    END,
    IN_VAIN,
    INTERVAL_TIMES,
    LOOK_BACK,
    LOOK_BACK_NATIVE,
    MERGED,
    ONE_KEY_FORMS,
    PAIRS,
    PANES,
    PASSING,
    PEER_FIGURE,
    STALLED,
    UNMEASURED,
    compared,
    declared,
    lacking,
    rows_of,
    table,
    write_table,
)
from benchmarks.files import write_files
from tidegate.algebra.nodes import Join, nodes_of
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.pipeline import analyse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "figures.md"
PAPERS = PAGE.with_name("tpstream-figures.md")


def test_the_table_of_the_page_has_the_figures_that_are_measured() -> None:
    assert rows_of(PAGE.read_text()) == list(DECLARED), "run make bench ARGS='--write docs/explanation/figures.md'"


def test_targets_and_verdicts_of_the_page_are_those_of_its_figures() -> None:
    """A value that was edited by hand, or a target that has moved, does not keep its verdict."""
    for line in PAGE.read_text().partition(BEGIN)[2].partition(END)[0].splitlines():
        name, *cells = line.removeprefix("| ").split(" | ")
        if name in DECLARED and cells[0] != UNMEASURED:
            value = float(cells[0].split()[0].replace(",", ""))
            assert cells[1] == str(DECLARED[name])
            if cells[2]:
                assert declared(name, value).verdict == cells[2].strip() or cells[0] == f"{_limit(name):.2f}"


def test_the_page_says_which_batches_are_left_out_of_the_longest() -> None:
    left_out = f"{stalls.WARM} of a state that only grows, {stalls.FILLED} of the {stalls.PASSED} of windows, "
    left_out += f"and {stalls.FILLED} of the {stalls.MERGING} with results or rejected"
    assert left_out in " ".join(PAGE.read_text().split())


def _limit(name: str) -> float:
    """A value that is rounded to its limit may be on either side."""
    target = DECLARED[name]
    limit = target.most if target.most is not None else target.least
    assert limit is not None
    return limit


def test_a_table_is_written_in_the_place_of_the_old_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    figures = [declared(name, 7.0, "of two") for name in reversed(DECLARED)]
    write_table(page, figures, "On a machine.")
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\nOn a machine.\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert rows_of(text) == list(DECLARED)


def test_figures_that_were_not_measured_are_told_as_such() -> None:
    text = table([declared("tumbling, embedded", 7.0, "of two")], "On a machine.")
    assert rows_of(text) == list(DECLARED)
    assert "| tumbling, embedded | 7.00 rows/s |  |  | of two |" in text
    assert f"| tumbling, Spark | {UNMEASURED} |  | | |" in text
    assert lacking([declared(name, 1.0) for name in DECLARED]) == []
    assert lacking([declared(name, 1.0) for name in DECLARED if name != "tumbling, Spark"]) == ["tumbling, Spark"]


def test_batches_of_one_file_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_files, "SPAN", 12)
    figures = flat_files.embedded(tmp_path, (30,), 20)
    assert [figure.name.partition("embedded: ")[2] for figure in figures] == [
        "CPU, batch 30 / batch 10",
        "rows read, batch 30 / batch 10",
        "bytes read, batch 30 / batch 10",
        "longest batch / median, before batch 30",
        "CPU of a start after 30 files",
    ]
    assert figures[1].met


def test_batches_of_files_that_are_archived_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_files, "SPAN", 2)
    (figure,) = flat_files.archived(tmp_path, 30, 20)
    assert figure.name == "a file a batch of one name, archived: CPU, batch 30 / batch 10"
    assert figure.most == 1.2
    kept = tmp_path / "old" / "kept"
    assert len(list(kept.iterdir())) == 27 + 12
    assert len(list((tmp_path / "young" / "kept").iterdir())) == 12


def test_batches_of_a_backlog_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_files, "SPAN", 2)
    (figure,) = flat_files.backlog(tmp_path, 30, 20)
    assert figure.name == "a file a batch of a backlog of 30: CPU / of few"
    assert figure.most == 1.2
    assert [len(list((tmp_path / count / "in").iterdir())) for count in ("12", "30")] == [12, 30]


def test_a_page_without_markers_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no table")
    with pytest.raises(ValueError, match="has no lines"):
        write_table(page, [], "On a machine.")


def test_verdicts_follow_targets() -> None:
    floor = "a batch of 50 rows, five queries, embedded"
    assert [declared(floor, value).verdict for value in (9.9, 10.1)] == ["met", "missed"]
    assert [declared("tumbling: rows/s, Spark / native", value).verdict for value in (1.9, 2.1)] == ["missed", "met"]
    assert declared("tumbling, embedded", 1.0).verdict == ""


def test_a_run_goes_on_after_the_sections_that_are_there(tmp_path: Path) -> None:
    file, size = tmp_path / "bench.json", {"rows": 7}
    floor = [declared("a batch of 50 rows, five queries, embedded", 9.5, "of two")]
    done = {"floor": run.Measurement(floor, equal=True, load=0.02, stolen=0.01)}
    assert run._load(file, size, "abc") == {}
    run._save(file, size, "abc", done)
    assert run._load(file, size, "abc") == done
    with pytest.raises(SystemExit, match="another run"):
        run._load(file, {"rows": 8}, "abc")


def test_a_run_does_not_go_on_with_other_code(tmp_path: Path) -> None:
    file, size = tmp_path / "bench.json", {"rows": 7}
    run._save(file, size, "abc", {})
    with pytest.raises(SystemExit, match=r"of the code abc, this is abd: figures of one page are of one commit"):
        run._load(file, size, "abd")
    file.write_text('{"size": {"rows": 7}, "sections": {}}')
    with pytest.raises(SystemExit, match="unknown"):
        run._load(file, size, "abc")


def test_code_is_the_commit_and_what_was_changed_since(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "one.py").write_text("1")
    with pytest.raises(SystemExit, match="need the commit"):
        provenance.code(tmp_path)
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    first = provenance.code(tmp_path)
    (tmp_path / "page.md").write_text("figures")
    assert provenance.code(tmp_path) == first, "the page is not measured"
    (tmp_path / "runtime" / "one.py").write_text("2")
    changed = provenance.code(tmp_path)
    (tmp_path / "runtime" / "one.py").write_text("3")
    assert changed.startswith(f"{first} with changes ")
    assert provenance.code(tmp_path) not in (first, changed)
    git("commit", "-a", "-m", "two")
    assert provenance.code(tmp_path) not in (first, changed)


def test_the_page_says_of_which_code_it_is_and_how_busy_the_machine_was() -> None:
    sections = [run.Measurement([], equal=True, load=load, stolen=stolen) for load, stolen in ((0.5, 0.1), (0.25, 0.2))]
    told = run.busy("abc", sections)
    assert "of the code abc" in told
    assert "load was 0.50 a core" in told
    assert "20 %" in told


def test_a_comparison_has_at_least_three_pairs_and_tells_the_worst() -> None:
    more, less = "tumbling: rows/s, Spark / native", "tumbling: time, embedded / (2 x Polars + 10 ms a batch)"
    assert compared(more, [3.0, 1.0, 2.0]).value == 2.0
    assert compared(more, [3.0, 1.0, 2.0]).detail == "least 1.00, median 2.00, greatest 3.00, worst 1.00 of 3 pairs"
    assert compared(less, [3.0, 1.0, 2.0]).detail.endswith("worst 3.00 of 3 pairs")
    assert compared("deadline by key: time, with the rules / without", [3.0, 1.0, 2.0]).detail.endswith(
        "worst 3.00 of 3 pairs"
    )
    assert compared("Q1, no key: rows/s, two threads / one", [3.0, 1.0, 2.0]).detail.endswith("worst 1.00 of 3 pairs")
    with pytest.raises(ValueError, match="2 pairs are no comparison"):
        compared(more, [1.0, 2.0])


def test_memory_of_a_slow_consumer_is_that_beyond_a_session_that_was_as_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bytes, whatever the process held before and what it held at most. What others left may go."""
    mebibytes = {background.WARM: 600, 7: 256, 5: 0}

    def held(producers: int, pushes: int, *_: object) -> float:
        return float(np.ones(mebibytes[pushes] << 17).sum())

    monkeypatch.setattr(background, "_seconds", held)
    assert 192 << 20 < background.growth(7) < 320 << 20
    assert background.growth(5) < 64 << 20


def test_every_ratio_says_what_is_better() -> None:
    """A comparison without a target can not tell its worst pair else."""
    ratios = [name for name in DECLARED if " / " in name and "peak memory" not in name and "read, late" not in name]
    assert len(ratios) > 40
    for name in ratios:
        target = DECLARED[name]
        assert target.most is not None or target.least is not None or target.better is not None, name


def test_two_commits_are_compared_pair_by_pair() -> None:
    saved = {"sections": {"floor": {"figures": [["a batch", 4.0, "of two"], ["gone", 1.0, ""]]}}}
    assert beside.values(saved) == {"a batch": 4.0, "gone": 1.0}
    theirs = [{"a batch": 4.0, "gone": 1.0}, {"a batch": 2.0}, {"a batch": 8.0}]
    ours = [{"a batch": 2.0, "new": 1.0}, {"a batch": 2.0}, {"a batch": 2.0}]
    _, *told = beside.lines(theirs, ours)
    assert [" ".join(line.split()) for line in told] == [
        "a batch 4.00 2.00 0.50 (least 0.25, greatest 1.00)",
        "gone on one side alone",
        "new on one side alone",
    ]


def test_sections_run_on_few_rows(tmp_path: Path) -> None:
    """Their times say nothing; results are compared inside, and figures have to be declared ones."""
    write_files(tmp_path / "files", queries.rows(4000, 5), 4)
    made = [
        embedded.measure(tmp_path / "files", tmp_path / "files", 4000),
        state.freed_state(2000, 5),
        threads.measure(4000),
        groups.measure(4000),
    ]
    assert all(equal for _, equal in made)
    names = [figure.name for figures, _ in made for figure in figures]
    assert len(names) == len(set(names)) == 4 * 3 + len(AS_POLARS) + 2 * 4 + 2 * 3 + 2


def test_the_example_of_the_readme_is_a_program() -> None:
    text = start_up.example()
    assert text.startswith("from datetime import datetime")
    compile(text, "example.py", "exec")
    assert len(text.splitlines()) > 15


def test_half_of_all_rows_have_one_key() -> None:
    keys = skew.skewed(1000).get_column("key").to_list()
    assert 500 <= keys.count(1) < 520
    assert len(set(keys)) > 100


def test_sections_of_looking_back_run_on_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each query is the same in all three ways, and live state is measured where results are discarded."""
    monkeypatch.setattr(look_back, "BATCHES", 4)
    monkeypatch.setattr(look_back, "PAIRS", 1)
    look_back.write(20_000, 100, tmp_path)
    for query in LOOK_BACK:
        taken = look_back.compare(query, 20_000, 100, tmp_path)
        assert all(taken["equal"]), query
        held = look_back.memory(query, 20_000, 100, tmp_path)
        assert held["live"] > 0, query
        taken = {name: PAIRS * seconds for name, seconds in taken.items()}
        made = look_back._figures(f"{query}, 1,000 keys, one core", 20_000, taken, held)
        assert len(made) == 5
    for form in ONE_KEY_FORMS:
        seconds, more = look_back.one_key(form, 800)
        assert seconds > 0
        assert 0 <= more < 50


@pytest.mark.long
def test_sections_of_windows_and_counts_run_on_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    figures, equal = counted.measure(40_000)
    assert equal
    assert len(figures) == 3
    monkeypatch.setattr(windows, "PANES", {1: PANES[1]})
    assert len(windows.measure(0.001)) == len(windows.AGGREGATES) + len(windows.MOVING) + len(windows.MOVING_LITTLE)
    monkeypatch.setattr(iseq, "LEAST", 0)
    monkeypatch.setattr(iseq, "LENGTHS", (2, 5))
    monkeypatch.setattr(iseq, "PARTS", (50, 10))
    made = iseq.figures(replace(iseq.BASE, windows=1, density=60, length=4), (60,), rounds=1)
    assert len(made) == 4 * 6 + len(INTERVAL_TIMES)


def test_every_setting_of_interval_sequences_has_a_combination_in_each_window() -> None:
    """With the kinds that it restricts, in its order: what is compared is never nothing with nothing."""
    for experiment, varied, setting in iseq.experiments(iseq.BASE):
        intervals = setting.intervals()
        assert len(intervals) == setting.density * setting.windows
        for first in range(0, setting.windows * iseq.WINDOW, iseq.WINDOW):
            inside = [one for one in intervals if first <= one[1] and one[2] < first + iseq.WINDOW]
            reached = first
            for number, end in enumerate(setting.ends):
                ends = [ts if end == "ts" else te for kind, ts, te in inside if kind == f"K{number}"]
                reached = min((one for one in ends if one > reached), default=first + iseq.WINDOW)
            assert reached < first + iseq.WINDOW, (experiment, varied, first)
    settings = list(iseq.experiments(iseq.BASE))
    assert sum(experiment == "share of starts" for experiment, _, _ in settings) == 11, "Table 2"
    sizes = {len(setting.intervals()) for experiment, _, setting in settings if experiment == "density"}
    assert len(sizes) == 1, "as many intervals in each"


def test_a_peer_that_cannot_be_installed_is_said_to_be_lacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "no python"))
    assert sequences.peer_python(tmp_path / "peer") is None
    assert sequences.with_peer(None) == ([], True)
    assert "not available" in capsys.readouterr().out
    assert lacking([declared(name, 1.0) for name in DECLARED if name != PEER_FIGURE]) == []
    (tmp_path / "peer" / "bin").mkdir(parents=True)
    (tmp_path / "peer" / "bin" / "python").touch()
    assert sequences.peer_python(tmp_path / "peer") == str(tmp_path / "peer" / "bin" / "python"), "it is made once"


def test_interval_sequences_without_results_are_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = replace(iseq.BASE, windows=1, density=4, length=3)
    monkeypatch.setattr(iseq, "experiments", lambda *_: [("length", "3", setting)])
    monkeypatch.setattr(iseq, "LEAST", 0)
    monkeypatch.setattr(iseq.Setting, "intervals", lambda _: [("K0", 1, 5)])
    with pytest.raises(RuntimeError, match="no results"):
        list(iseq.run(setting, rounds=1))


def test_queries_in_contexts_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same program both ways, and each of several contexts by itself with all of them together."""
    monkeypatch.setattr(contexts, "PAIRS", 1)
    setting = contexts_data.Setting(20_000, 0.3, queries=2, contexts=2, windows=1)
    ((written, made),) = contexts.sides(setting)
    assert written.found == made.found
    assert all(made.found.values())
    assert made.rate > 0
    for asked, results in ((contexts_data.in_any, 2), (contexts_data.in_each, 6)):
        ((each, together),) = contexts.together(replace(setting, contexts=3, apart=60), asked)
        assert each.found == together.found
        assert len(together.found) == results
        assert all(together.found.values())


@pytest.mark.parametrize(("queries", "least"), [(2, 2 * (0.03 * 40 + 8)), (5, 40), (7, 40)])
def test_the_search_for_a_plan_finds_the_best_of_all(queries: int, least: float) -> None:
    """By the cost of look-ups and conditions: each by itself where queries are few, and one of all rows of many."""
    ways, best = contexts_search.exhaustive(contexts_search.conditions()[:queries])
    assert ways == {2: 2, 5: 52, 7: 877}[queries]
    assert best == pytest.approx(least)
    relations = dict([*contexts_search.selections().items()][:queries])
    _, made = contexts_search.searched("24 operators in contexts: search for a plan", relations)
    assert contexts_search.cost_of(made) == pytest.approx(best)
    written = contexts_search.cost_of(analyse(tg.program(**relations).definition))
    assert written == pytest.approx(queries * (0.03 * 40 + 8))


def test_reports_are_candidate_transitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a context that begins once of each car, and of one that begins again and again."""
    monkeypatch.setattr(contexts, "PAIRS", 1)
    done = contexts.Comparison([])
    contexts.candidates(done, 20_000)
    assert done.equal
    assert [figure.name for figure in done.figures] == [name for name in DECLARED if "candidate transition" in name]
    reports = {"Reports": contexts_data.Setting(20_000, 0).inputs()["Reports"]}
    begun = [
        sum(contexts.run(contexts.made(contexts_data.every_report(limit)), reports).found["Q0"].values())
        for limit in IN_VAIN.values()
    ]
    assert begun[2] == reports["Reports"]["car"].n_unique() < begun[1] < begun[0]


def test_contexts_that_are_looked_up_each_by_itself_share_nothing() -> None:
    """Else the figure beside them would be of no sharing."""
    setting = contexts_data.Setting(0, 0.3, queries=2, contexts=3, windows=1, apart=60)

    def joins(facts: ProgramFacts) -> int:
        return sum(isinstance(node, Join) for query in facts.queries for node in nodes_of(query.query.node))

    for asked in (contexts_data.in_any, contexts_data.in_each):
        relations = asked(setting)
        assert (joins(contexts.apart(relations)), joins(contexts.made(relations))) == (6, 2)


def test_reports_of_roads_are_about_as_many_as_asked_for() -> None:
    reports = contexts_data.of_roads(2, 8000)
    assert 10_000 < reports.height < 22_000
    assert reports["time"].is_sorted()
    assert reports["segment"].to_numpy().max() < contexts_data.Setting(8000, 0.1, roads=2).segments
    setting = contexts_data.Setting(3000, 0.9, queries=1, roads=1)
    assert contexts.run(contexts.made(contexts_data.standing(setting)), setting.inputs()).found["Q0"]


@pytest.mark.long
@pytest.mark.spark
def test_queries_in_contexts_on_spark_are_compared(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts_spark, "PAIRS", 1)
    monkeypatch.setattr(contexts_spark, "FILES", 3)
    monkeypatch.setattr(contexts_spark, "SUSPENDED_ON_SPARK", (90,))
    monkeypatch.setattr(contexts_spark, "compared", lambda name, ratios: declared(name, *ratios))
    (figure,), equal = contexts_spark.measure(spark, 40_000)
    assert equal
    assert figure.value > 0


def test_what_takes_hours_is_measured_if_it_is_asked_for() -> None:
    assert {*run.sections(None, spark=True, hours=False)} == {*run.SECTIONS} - {"rating", "spark-rating"}
    assert run.sections(None, spark=True, hours=True) == list(run.SECTIONS)
    assert run.sections(["rating", "spark"], spark=False, hours=False) == ["rating"]


def test_figures_of_linear_road_are_what_its_processes_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written = {"rows": 2_000_000, "seconds": 3.0, "longest": 0.5, "right": True}

    def answers(script: str, *arguments: str) -> object:
        passed = {"mean": 134_000.4, "peak": 187_000, "limit": "Alerts, 40% of their limit"}
        rated = {"good": 64, "bad": 80, "passes": passed}
        return rated if script == "linear_road_rating.py" else [{**written, "roads": arguments[1]}]

    monkeypatch.setattr(linear_road_figures, "_in_process", answers)
    figures, equal = linear_road_figures.measure()
    assert equal
    assert [figure.value for figure in figures] == [1.5, 1.5]
    assert [figure.verdict for figure in figures] == ["met", "met"]
    detail = "80 were not; 134,000 rows/s in the mean, 187,000 at the peak; Alerts, 40% of their limit"
    for engine in ("embedded", "spark"):
        ((rated,), _) = linear_road_figures.rating(engine)
        assert (rated.value, rated.verdict, rated.detail) == (64, "missed", detail)
        ((short,), _) = linear_road_figures.peak(engine)
        assert (short.value, short.verdict, short.detail) == (64, "", detail)
    # Both searches are over within a quarter of an hour.
    assert 2 * linear_road_figures.SHORT_BUDGET <= 900


@pytest.mark.long
def test_linear_road_runs_in_a_process_of_its_own() -> None:
    (made,) = linear_road_figures._in_process("linear_road.py", "--roads", "1", "--start", "150", "--seconds", "4")
    assert made["right"]
    assert made["rows"] > 100


@pytest.mark.parametrize("shape", STALLED)
def test_of_a_state_that_only_grows_no_row_goes(shape: str, tmp_path: Path) -> None:
    """Else the figure would be of a collection that has something to free."""
    made = stalls.run(shape, 40_000, 10_000, "amortised", str(tmp_path))
    if shape == "latest price":  # of the rows that can be folded one of each key stays
        assert 0.9 * 40_000 <= made["rows"] <= 2 * 40_000
        assert len(made["cpu"]) == 4 * stalls.PRICES
    else:
        assert made["rows"] == 40_000
        assert len(made["cpu"]) == 4


@pytest.mark.parametrize("shape", PASSING)
def test_a_state_of_windows_gets_as_large_as_it_stays(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalls, "PASSED", 120)
    made = stalls.run(shape, 2000, 50, "amortised", str(tmp_path))
    assert len(made["cpu"]) == 120
    assert 2000 <= made["rows"] <= 3200  # of sessions one a key, of panes those of 60 batches that have rows


@pytest.mark.long
def test_what_is_merged_as_a_run_goes_on_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that merges nothing would show no stall."""
    monkeypatch.setattr(stalls, "MERGING", 60)
    for shape in MERGED:
        made = stalls.run(shape, 0, 50, "amortised", str(tmp_path / shape))
        assert len(made["cpu"]) == 60
    assert 1 < len(list((tmp_path / MERGED[0] / "out").iterdir())) < 40
    assert 1 <= len(list((tmp_path / MERGED[1] / "checkpoint" / "quarantine").rglob("*.parquet"))) < 30


def test_rows_that_meet_a_static_table_are_stored_once() -> None:
    figures = state.static_tables(6)
    assert [figure.met for figure in figures[::2]] == [True, True]
    assert len(figures) == 4


@pytest.mark.long
def test_thirty_million_rows_in_segments_need_less_than_twice_their_size_and_a_gibibyte(tmp_path: Path) -> None:
    made = stalls.process("part payments", 30_000_000, 1_000_000, "amortised", str(tmp_path))
    assert made["rows"] == 30_000_000
    assert made["more"] <= 2 * made["live"] + (1 << 30)
    assert made["more"] + (1 << 29) <= 6 << 30


@pytest.mark.long
def test_sections_in_processes_of_their_own_run_on_few_rows() -> None:
    figures, equal = situations.measure(20_000)
    assert equal
    assert {f"Q2, {keys} keys, one core: embedded / Polars" for keys in ("1", "100", "100,000")} <= {
        f.name for f in figures
    }
    assert len(flat.measure(flat.FIRST + flat.SPAN + 10, 2000)) == 4 * 3
    assert all(f"of {PAIRS} pairs" in figure.detail for figure in figures if " / " in figure.name)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("name", ["interval join", "silence", "frames"])
def test_native_streaming_joins_with_a_time_bucket_mean_the_same(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Else the figure beside them is one of another query."""
    from benchmarks.native import native
    from benchmarks.on_spark import _same_as_native

    write_files(tmp_path / "files", queries.rows(60_000, 1000), 12)
    (tmp_path / "work").mkdir()
    _, found = native(spark, name, tmp_path / "files", str(tmp_path / "work"))
    expected = queries.batch_polars(name, pl.scan_parquet(tmp_path / "files" / "*.parquet"))
    assert _same_as_native(name, found, expected)
    assert found.height > 20


GOOD = {
    "equal": True,
    "place": "catalyst",
    "bytes": 2_200_000_000,
    "driver before": 150 << 20,
    "driver": 160 << 20,
    "heap": 2 << 30,
    "JVM": 2 << 30,
}


def test_an_increment_of_gigabytes_is_good_within_its_limits() -> None:
    assert large.faults(GOOD, "rule", 2.2) == []
    assert large.faults(GOOD, "catalyst", 2.2) == []


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ({"equal": False}, "RESULTS DIFFER"),
        ({"place": "driver"}, "evaluated driver"),
        ({"bytes": 1_900_000_000}, "1.90 GB only"),
        ({"driver": 300 << 20}, "grew by 150 MiB"),
        ({"JVM": 4 << 30}, "beyond its heap"),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else "",
)
def test_each_limit_of_an_increment_of_gigabytes_can_fail(bad: dict[str, object], what: str) -> None:
    (fault,) = large.faults(GOOD | bad, "rule", 2.2)
    assert what in fault


def test_a_place_that_was_asked_for_is_checked() -> None:
    assert large.faults(GOOD, "sharded", 2.2) == ["the increment was evaluated catalyst"]


def test_the_papers_page_has_the_tables_that_are_made(capsys: pytest.CaptureFixture[str]) -> None:
    """On few events, whose times say nothing; counts are compared with lists inside."""
    page = papers.Page()
    papers.windows(page, 20_000)
    papers.application_time(page, 200_000)
    papers.adaptation(page, 50_000)
    papers.live(page, 20_000)
    assert "does not hold" not in capsys.readouterr().out
    assert _titles("\n".join(page.lines)) <= _titles(PAPERS.read_text())
    assert len(_titles(PAPERS.read_text())) == len(papers.SECTIONS) + 2


def _titles(text: str) -> set[str]:
    return {line for line in text.splitlines() if line.startswith("### ")}


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("query", LOOK_BACK_NATIVE)
def test_what_native_streaming_has_a_word_for_means_the_same(query: str, tmp_path: Path, spark: SparkSession) -> None:
    from benchmarks import look_back_spark

    rows, keys, files = 20_000, 100, tmp_path / "files"
    write_files(files, look_back_spark.events(rows, keys), 8)
    (tmp_path / "work").mkdir()
    made = [
        way(spark, query, rows, keys, files, str(tmp_path / "work"))[1]
        for way in (look_back_spark.tidegate, look_back_spark.native)
    ]
    assert look_back_spark.equal(query, *made)


@pytest.mark.spark
def test_three_steps_on_spark_are_those_of_the_embedded_engine(spark: SparkSession) -> None:
    (figure,), equal = sequences_spark.measure(spark, 1, rows=8_000, batches=3)
    assert equal
    assert figure.value > 0


@pytest.mark.parametrize("name", duckdb_patterns.PATTERNS)
def test_the_queries_of_duckdb_have_the_matches_that_loops_find(name: str) -> None:
    pattern = duckdb_patterns.PATTERNS[name]
    events = pattern.events(20_000)
    meant = pattern.by_loop(events)
    assert meant.height > 1
    for batches in (1, 7):
        found, _ = sequences.run(pattern.matches, events, batches)
        assert found.select(pattern.columns).sort(pattern.columns).equals(meant)


def test_row_patterns_have_medians_of_several_runs() -> None:
    figure = sequences.rate("row pattern, scan: one batch", [3e6, 1e6, 2e6])
    assert (figure.value, figure.met) == (2e6, True)
    assert figure.detail == "least 1,000,000, greatest 3,000,000 of 3"
