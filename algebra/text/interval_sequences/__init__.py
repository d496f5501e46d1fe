"""The text of interval sequences: `EVENT ISEQ [...] (A, B; W)`."""
