"""The test kit: `testing.drive(program)` drives a program step by step, embedded or on Spark; `testing.execute_iseq`
executes an interval sequence as its paper does.
"""

from tidegate.runtime.testkit.drive import PLACES_TO_DIE, Drive, drive
from tidegate.runtime.testkit.interval_executions import ExecutedSequence, execute_iseq
from tidegate.runtime.testkit.waiting import TestClock

__all__ = ["PLACES_TO_DIE", "Drive", "ExecutedSequence", "TestClock", "drive", "execute_iseq"]
