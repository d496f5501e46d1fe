"""The steps of a batch in this process: segments in memory, the evaluation of jobs, what becomes of their rows."""
