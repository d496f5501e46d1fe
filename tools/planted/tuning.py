"""Slips where a run learns what its steps cost, and chooses by that."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

COSTS = "runtime/tuning/costs.py"
TUNER = "runtime/tuning/tuner.py"

GROUP = Group(
    "tuning",
    ("tests/runtime/test_tuning.py",),
    (
        bug("nothing measured is forgotten", COSTS, "KEPT: Final = 0.6", "KEPT: Final = 1.0"),
        bug("rows of all cores count for each", COSTS, "rows / _MILLION / at_once", "rows / _MILLION"),
        bug("more tasks than cores run at once", COSTS, "max(1, min(tasks, cores))", "max(1, tasks)"),
        bug("a wave that is not full does not count", COSTS, "-(-tasks // at_once)", "tasks // at_once"),
        bug("costs are negative", COSTS, "np.maximum(fitted, 0.0)", "fitted - 1.0"),
        bug(
            "costs that are assumed stay as they are where all is slower",
            COSTS,
            "            prior *= (prior @ self.products) / (prior @ self.squares @ prior)\n",
            "            prior *= 1.0\n",
        ),
        bug("a fit that was damaged is used", COSTS, "or not np.isfinite(numbers).all()", ""),
        bug(
            "a fit is read as its other half",
            COSTS,
            "fit.squares = np.triu(fit.squares) + np.triu(fit.squares, 1).T",
            "fit.squares = np.triu(fit.squares)",
        ),
        bug("small steps are chosen for", TUNER, "        if rows < WORTH:\n", "        if rows < 0:\n"),
        bug("the dearest way is chosen", TUNER, "best = min(ways, key=", "best = max(ways, key="),
        bug("a run leaves a way for nothing", TUNER, "BETTER: Final = 0.8", "BETTER: Final = 1.0"),
        bug(
            "a way that was left is never tried again",
            TUNER,
            "return self._elsewhere.get((step, way.place), 0) >= AGAIN",
            "return False",
        ),
        bug("any way is tried again", TUNER, "DEARER: Final = 2.0", "DEARER: Final = 100.0"),
        bug("a run stays with what it tries again", TUNER, "if not self._is_long_ago(step, choice.way):", "if True:"),
        bug("a run never leaves a way", TUNER, "BETTER: Final = 0.8", "BETTER: Final = 0.0"),
        bug(
            "a place that was not measured is as assumed",
            TUNER,
            "million=max(assumed.million * ratio, 1e-9)",
            "million=assumed.million",
        ),
        bug(
            "each of several steps took the whole time",
            TUNER,
            "seconds * expected[step] / whole",
            "seconds",
        ),
        bug(
            "recorded choices of any batch count",
            TUNER,
            "self.recorded.get(self._seq, ())",
            "next(iter(self.recorded.values()), ())",
        ),
        bug("a recorded place with other tasks is none", TUNER, "any(w.place == o.place for o in chosen)", "False"),
        bug("choices of batches before are told again", TUNER, "self._seq, self.choices = seq, []", "self._seq = seq"),
        bug(
            "rows wait for all of the time",
            TUNER,
            "self.seconds_a_batch - self.costs(_BATCH, _BATCH).seconds(rows)",
            "self.seconds_a_batch",
        ),
        bug(
            "a session in the background waits as one that is not tuned",
            "runtime/engines/embedded/background.py",
            "BATCH_SECONDS if left is None else left",
            "BATCH_SECONDS",
        ),
        bug(
            "what can not be done in time is divided all the same",
            "runtime/engines/embedded/background.py",
            "tuner.most_rows() or rows) if tuner.has_time else rows, seconds",
            "tuner.most_rows() or rows), seconds",
        ),
        bug(
            "what can be done in time is done at once",
            "runtime/engines/embedded/background.py",
            "tuner.most_rows() or rows) if tuner.has_time else rows, seconds",
            "rows), seconds",
        ),
        bug(
            "starting a batch may take all of its time",
            TUNER,
            ".start <= self.seconds_a_batch / 2",
            ".start < self.seconds_a_batch",
        ),
        bug("a batch may have no file", TUNER, "some[: max(1, fit)]", "some[:fit]"),
        bug("a batch takes all files", TUNER, "if most is None or whole <= most:", "if True:"),
        bug("each stream fills the time", TUNER, "reached * whole <= sum(rows[name]) * most", "reached <= most"),
        bug(
            "files that were recorded of a batch are taken of any",
            TUNER,
            "for choice in self.recorded.get(seq, ()) if choice.way.place == FILES}",
            "for some in self.recorded.values() for choice in some if choice.way.place == FILES}",
        ),
        bug(
            "a stream of which no file was recorded gives all",
            TUNER,
            "recorded.get(_files_of(name), 0)",
            "recorded.get(_files_of(name), 99)",
        ),
        bug(
            "how many files a batch takes is not told",
            TUNER,
            "if (because := self._why_files(seq, files)) is not None:",
            "if (because := self._why_files(seq, files)) is None:",
        ),
        bug("what others choose is not told", TUNER, "        self.choices += found\n", ""),
        bug(
            "what was recorded for any step is taken",
            TUNER,
            " for choice in recorded if choice.step in steps]",
            " for choice in recorded]",
        ),
        bug(
            "where others have chosen, nothing recorded counts",
            TUNER,
            "if (recorded := self.recorded.get(self._seq)) is not None:",
            "if (recorded := self.recorded.get(-1)) is not None:",
        ),
        bug("costs of an unknown place are loaded", TUNER, " if place in ASSUMED:", ":"),
        bug("densities that are none are loaded", TUNER, "isinstance(rows, int | float) and rows > 0", "True"),
        bug(
            "choices are not told", "runtime/batch/loop.py", "choices=tuple(self.executor.tuner.choices)", "choices=()"
        ),
        bug(
            "what was learnt is lost at a restart",
            "runtime/batch/loop.py",
            "self.executor.tuner.load(last.extra.get(TUNING))",
            "pass",
        ),
    ),
)
