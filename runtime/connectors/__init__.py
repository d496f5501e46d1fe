"""Where rows come from and where results go: directories of files, frames, streams, sinks."""
