"""What the temporal relations of a query say of each result row and its sources, with the lines that say so."""
