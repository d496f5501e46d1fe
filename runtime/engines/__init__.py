"""The engines: what is set up before the first batch, and who runs the steps of one."""
