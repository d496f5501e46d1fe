"""The batch loop of both engines: intent, ingest, progress, increments, garbage collection, commit."""
