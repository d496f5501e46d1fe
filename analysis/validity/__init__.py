"""Problems of refused queries, their causes, and hints that would mend them."""
