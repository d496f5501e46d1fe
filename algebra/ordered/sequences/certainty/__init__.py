"""Which matches of a row pattern nothing to come can change, by the rows up to an instant."""
