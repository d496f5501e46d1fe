"""Wrong calls: what does not fit, and how it is written."""
