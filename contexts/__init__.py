"""Application contexts: context types, transitions, context-aware queries and their translation to the algebra."""
