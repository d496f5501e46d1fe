"""The text language of situations and temporal patterns: TPStream's queries (Körber et al., EDBT 2018, Listing 1)."""
