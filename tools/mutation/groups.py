"""Parts of the library that are mutated, and the tests that should kill their mutants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Group:
    """Files, as patterns from the root, and tests; with `uncompiled`, kernels run as Python."""

    name: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    uncompiled: bool = False

    def paths(self, root: Path) -> list[str]:
        found = [path.relative_to(root).as_posix() for file in self.files for path in sorted(root.glob(file))]
        if not found:
            raise FileNotFoundError(f"no files of the group {self.name}")
        return [path for path in found if not path.endswith("__init__.py")]


#: Tests that measure time: where others compute beside them they fail without a mutant, and kill none.
TIMED = (
    "tests/analysis/test_performance.py",
    *(
        f"tests/analysis/test_long_queries.py::test_{name}"
        for name in (
            "a_session_over_a_chain_opens_in_steps_that_grow_with_it",
            "conditions_of_a_text_take_time_in_proportion",
            "a_pattern_of_many_situations_is_planned_step_by_step",
            "too_long_a_text_is_refused_before_it_is_read",
        )
    ),
)
EVAL = "runtime/eval"
STATE = "runtime/state"
ORDERED = "runtime/ordered"
GROUPS = (
    Group(
        "kernels", ("runtime/kernels/*.py", "runtime/kernels/ranges/*.py"), ("tests/runtime/kernels",), uncompiled=True
    ),
    Group(
        "joins",
        (
            "runtime/plan/join_parts.py",
            *(f"{EVAL}/joins/{name}.py" for name in ("ranges", "equality", "bands")),
            f"{EVAL}/filters.py",
            f"{EVAL}/relational.py",
            f"{EVAL}/small/joins.py",
            "runtime/rows.py",
            f"{EVAL}/small/terms.py",
            f"{EVAL}/small/trees.py",
        ),
        tuple(
            f"tests/runtime/test_{name}.py"
            for name in ("relational", "joins", "small_batches", "conditions", "many_pairs")
        ),
    ),
    Group(
        "grouping",
        (
            *(f"{EVAL}/aggregates/{name}.py" for name in ("compiled", "partials", "sums", "whole")),
            f"{EVAL}/small/groups.py",
        ),
        tuple(
            f"tests/runtime/test_{name}.py"
            for name in ("relational", "aggregates", "aggregates_conformance", "small_batches", "thresholds")
        ),
    ),
    Group(
        "garbage",
        (
            "runtime/batch/garbage.py",
            "runtime/eval/purge_schedule.py",
            f"{EVAL}/purge_rows.py",
            f"{STATE}/leftovers.py",
        ),
        (
            "tests/runtime/test_garbage.py",
            "tests/runtime/test_looks.py",
            "tests/runtime/test_purge.py",
            "tests/runtime/test_live_state.py",
            "tests/runtime/state/test_checkpoint.py",
            "tests/runtime/state/test_leftovers.py",
            "tests/runtime/state/test_segments.py",
            "tests/runtime/test_thresholds.py",
            "tests/properties/test_purge.py",
        ),
    ),
    Group(
        "commit",
        (
            *(
                f"{STATE}/{name}.py"
                for name in (
                    "batch",
                    "checkpoint",
                    "manifest",
                    "codec",
                    "outputs/staging",
                    "inputs/positions",
                    "segments",
                    "intent",
                )
            ),
            *(f"runtime/batch/{name}.py" for name in ("loop", "state", "admission", "increments")),
        ),
        (
            "tests/runtime/state",
            "tests/runtime/test_session.py",
            "tests/runtime/test_schedule.py",
            "tests/runtime/test_recursion.py",
            "tests/runtime/test_put_away.py",
            "tests/runtime/test_bad_files.py",
            "tests/runtime/test_metrics.py",
            "tests/runtime/test_garbage.py",
            "tests/runtime/test_idle.py",
            "tests/runtime/test_ties.py",
            "tests/runtime/faults/test_failpoints.py",
        ),
    ),
    Group(
        "analysis",
        ("analysis/*.py", "analysis/*/*.py", "analysis/*/*/*.py"),
        (
            "tests/analysis",
            "tests/properties/test_rules.py",
            "tests/properties/test_rejections.py",
            *(
                f"tests/runtime/test_{name}.py"
                for name in ("purge", "why", "lower", "live_state", "match_order", "intervals")
            ),
            "tests/runtime/test_situation_state.py",
        ),
    ),
    Group(
        "look-ups",
        (*(f"{EVAL}/joins/{name}.py" for name in ("look_ups", "key_index", "indexed_rows")),),
        tuple(f"tests/runtime/test_{name}.py" for name in ("look_ups", "looked_up_joins")),
    ),
    Group(
        "folding",
        (
            *(f"{EVAL}/aggregates/{name}.py" for name in ("fold_rows", "look_back", "look_back_form", "slices")),
            "runtime/plan/folding/*.py",
        ),
        tuple(f"tests/runtime/test_{name}.py" for name in ("folding", "look_back")),
    ),
    Group(
        "rewriting",
        (f"{EVAL}/dependents.py", "runtime/engines/embedded/steps/rewriting.py"),
        (
            *(f"tests/runtime/test_{name}.py" for name in ("purge", "garbage", "looks", "folding", "thresholds")),
            "tests/properties/test_purge.py",
        ),
    ),
    Group(
        "kernels of rows",
        tuple(f"runtime/kernels/{folder}/*.py" for folder in ("partitions", "over", "asof")),
        tuple(f"tests/runtime/kernels/test_{name}.py" for name in ("over", "asof")),
        uncompiled=True,
    ),
    Group("over", (f"{ORDERED}/over/*.py", f"{EVAL}/aggregates/order_keys.py"), ("tests/runtime/test_over.py",)),
    Group(
        "as-of joins",
        (f"{ORDERED}/asof/*.py",),
        tuple(f"tests/runtime/test_{name}.py" for name in ("asof", "versioned")),
    ),
    Group("ranks", (f"{ORDERED}/ranks/*.py",), ("tests/runtime/test_ranks.py",)),
    Group(
        "windows",
        (f"{ORDERED}/windows/*.py", f"{EVAL}/aggregates/pairs.py"),
        tuple(f"tests/runtime/test_{name}.py" for name in ("windows", "window_kinds", "pane_queues")),
    ),
    Group("ticks", (f"{ORDERED}/ticks/*.py",), ("tests/runtime/test_ticks.py",)),
    Group(
        "sequences",
        (f"{ORDERED}/sequences/*.py", f"{ORDERED}/sequences/counting/*.py"),
        tuple(
            f"tests/runtime/test_{name}.py"
            for name in (
                "sequences",
                "counted_sequences",
                "aggregated_sequences",
                "sequence_composition",
                "open_searches",
            )
        ),
    ),
    Group(
        "kernels of sequences",
        ("runtime/kernels/sequences/*.py",),
        tuple(f"tests/runtime/test_{name}.py" for name in ("sequence_kernels", "sequences", "open_searches")),
        uncompiled=True,
    ),
    Group(
        "kernels of paths",
        ("runtime/kernels/paths/*.py",),
        tuple(f"tests/runtime/kernels/test_{name}.py" for name in ("paths", "path_totals")),
        uncompiled=True,
    ),
    Group(
        "match",
        (f"{ORDERED}/match/*.py",),
        tuple(
            f"tests/runtime/test_{name}.py"
            for name in ("match_order", "counted_patterns", "intervals", "situation_partners", "situations")
        ),
    ),
    Group(
        "derive",
        (f"{ORDERED}/derive/*.py",),
        tuple(
            f"tests/runtime/test_{name}.py"
            for name in ("situations", "situation_state", "situation_ties", "partition_states", "event_runs")
        ),
    ),
    Group("transitions", (f"{ORDERED}/transitions/*.py",), ("tests/contexts",)),
    Group(
        "process",
        (f"{ORDERED}/process/*.py",),
        ("tests/runtime/test_process.py", "tests/runtime/test_partition_tables.py"),
    ),
    Group(
        "operators' state",
        tuple(
            f"{ORDERED}/{name}.py"
            for name in ("partition_store", "partitions", "row_arrays", "row_operator", "state", "state_tables")
        ),
        tuple(
            f"tests/runtime/test_{name}.py"
            for name in (
                "operator_state",
                "operator_listing",
                "partition_states",
                "partition_tables",
                "row_arrays",
                "state_deltas",
                "over",
                "asof",
                "ranks",
            )
        ),
    ),
    Group(
        "compaction",
        tuple(f"{STATE}/outputs/{name}.py" for name in ("beside", "compaction", "names")),
        ("tests/runtime/state/test_compaction.py",),
    ),
    Group(
        "files",
        (f"{STATE}/inputs/put_away.py", f"{STATE}/inputs/leaving.py", f"{STATE}/inputs/consumed.py"),
        ("tests/runtime/test_put_away.py", "tests/runtime/state/test_consumed.py"),
    ),
    Group(
        "quarantine",
        (f"{STATE}/quarantine.py", "runtime/ingest/quarantine.py"),
        ("tests/runtime/state/test_quarantine.py", "tests/runtime/test_cli_quarantine.py"),
    ),
    Group(
        "store",
        (f"{STATE}/store/*.py",),
        tuple(f"tests/runtime/state/test_{name}.py" for name in ("store", "packs", "foreign")),
    ),
)
