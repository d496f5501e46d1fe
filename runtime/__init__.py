"""What runs an analysed program: the physical plan, both engines, state, sources, sinks and the command line."""
