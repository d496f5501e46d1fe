"""What a query is and what it means: terms, formulas, schemas, operators, the DSL and the reference semantics."""
