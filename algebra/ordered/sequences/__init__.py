"""Row patterns: sequences of rows of a partition, as SQL's MATCH_RECOGNIZE and the engines of events have them."""
