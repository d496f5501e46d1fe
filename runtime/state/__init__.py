"""Durable state of a run: segments, manifests, positions, intents and the commit protocol, for both engines.

Nothing here knows queries. A run's state is what its newest manifest names; every other file is a leftover.
"""
