"""What a run and its checkpoint say of themselves: plans, listings, results, why there is none yet."""
