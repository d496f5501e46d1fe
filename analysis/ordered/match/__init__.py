"""The analysis of temporal patterns: detection, bounds and release of waiting situations, search orders."""
