"""The test kit: `testing.drive(program)` drives a program step by step, embedded or on Spark."""

from tidegate.runtime.testkit.drive import PLACES_TO_DIE, Drive, drive
from tidegate.runtime.testkit.waiting import TestClock

__all__ = ["PLACES_TO_DIE", "Drive", "TestClock", "drive"]
