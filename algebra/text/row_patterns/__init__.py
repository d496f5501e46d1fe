"""The clause MATCH_RECOGNIZE as a language of queries."""
